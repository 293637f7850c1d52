"""`completion`: scripts for shells, written from the parser, so that they always know all commands and options."""

import argparse
from collections.abc import Iterator

from truthcal.cli.output import out
from truthcal.cli.parser import parser


def completion(args: argparse.Namespace) -> int:
    """`truthcal completion`."""
    out({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]())
    return 0


def _commands() -> dict[str, argparse.ArgumentParser]:
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("the parser has commands")


def _options(own: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (action for action in own._actions if action.option_strings)


def _words(own: argparse.ArgumentParser) -> str:
    """All options, and the values of arguments that come from a list."""
    flags = [flag for action in _options(own) for flag in action.option_strings]
    values = [str(c) for action in own._actions if not action.option_strings and action.choices for c in action.choices]
    return " ".join(flags + values)


def _bash() -> str:
    """Commands first, then the options of the command; files where nothing else is meant."""
    commands = _commands()
    cases = "\n".join(f'    {name}) words="{_words(own)}" ;;' for name, own in commands.items())
    choices = "\n".join(
        f'    {name}:{flag}) COMPREPLY=($(compgen -W "{" ".join(map(str, action.choices))}" -- "$cur")); return ;;'
        for name, own in commands.items()
        for action in _options(own)
        if action.choices
        for flag in action.option_strings
    )
    return f"""_truthcal() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$cur"))
    return
  fi
  case "$command:$prev" in
{choices}
  esac
  case "$command" in
{cases}
  esac
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
    *) [ "$command" = completion ] && COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
  esac
}}
complete -o default -o filenames -F _truthcal truthcal"""


def _zsh() -> str:
    """What bash has, which zsh can run."""
    return f"autoload -Uz compinit bashcompinit\n(( $+functions[compdef] )) || compinit\nbashcompinit\n{_bash()}"


def _fish() -> str:
    lines = []
    for name, own in _commands().items():
        lines.append(f"complete -c truthcal -n __fish_use_subcommand -a {name} -d {_quoted(own.description or '')}")
        for action in _options(own):
            flags = [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in action.option_strings]
            values = f" -xa {_quoted(' '.join(map(str, action.choices)))}" if action.choices else ""
            needed = " -r" if action.nargs is None and not action.choices else ""
            what = f"{' '.join(flags)}{values}{needed} -d {_quoted(action.help or '')}"
            lines.append(f"complete -c truthcal -n '__fish_seen_subcommand_from {name}' {what}")
    shells = next(" ".join(map(str, a.choices or ())) for a in _commands()["completion"]._actions if a.dest == "shell")
    lines.append(f"complete -c truthcal -n '__fish_seen_subcommand_from completion' -xa {_quoted(shells)}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("%%", "%") + "'"
