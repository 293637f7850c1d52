"""The page: a template filled with the report's data, one style sheet, and a policy that forbids everything else."""

import base64
import functools
import hashlib
import importlib.resources
import math
from typing import Any

from truthcal.reports.wording import segment_chip, typeset
from truthcal.results.text import clean_text, number, p_number

_DASH = "\N{EN DASH}"
_number = functools.partial(number, digits=3, missing=_DASH)


def page_template(name: str = "report.html") -> Any:
    """Return the template to render; raise an error before anything is drawn if jinja2 is missing."""
    try:
        import jinja2
    except ImportError:
        raise ImportError("the report needs jinja2 and matplotlib: pip install 'truthcal[report]'.") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("truthcal.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean_rendered,
    )
    environment.filters |= {
        "number": _number,
        "signed": functools.partial(_number, sign="+"),
        "p": lambda p: typeset(p_number(p, missing=_DASH)),
        "typeset": typeset,
        "segment_chip": segment_chip,
        "points": _points,
    }
    return environment.get_template(name)


def render_page(template: Any, css: str, content: dict[str, Any]) -> str:
    """Render the HTML of a report. Everything that comes from data is escaped here."""
    style = importlib.resources.files("truthcal.reports").joinpath("templates/report.css").read_text("utf-8") + css
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return str(template.render(style=safe(style), digest=digest, **content))


def safe(markup: str) -> Any:
    """Mark markup to render without escaping: our own, never the user's."""
    import markupsafe

    return markupsafe.Markup(markup)


def _points(points: float) -> str:
    """Format percentage points with one decimal; without a sign if they are 0 after rounding."""
    if math.isnan(points):
        return _DASH
    text = f"{points:+.1f}"
    return "0" if float(text) == 0.0 else text.replace("-", "\N{MINUS SIGN}")


def _clean_rendered(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
