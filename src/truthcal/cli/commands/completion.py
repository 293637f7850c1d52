"""`truthcal completion`: the completion script of a shell, made by shtab from the parser."""

from truthcal.cli.output import print_exactly
from truthcal.cli.parser import build_parser
from truthcal.cli.request import Request


def run(request: Request) -> int:
    """Run `truthcal completion`."""
    try:
        import shtab
    except ImportError:
        raise ImportError("completion needs shtab: pip install 'truthcal[completion]'.") from None
    script = shtab.complete(build_parser(), shell=request.shell)
    if request.shell == "zsh":  # a plain zsh has no compdef yet; `#compdef` must stay the first line
        first, newline, rest = script.partition("\n")
        script = f"{first}{newline}(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}\n{rest}"
    print_exactly(script)
    return 0
