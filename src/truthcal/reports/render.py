"""The page: a template filled with what the report says, one style sheet, and the policy that lets in nothing else."""

import base64
import hashlib
import importlib.resources
from typing import Any

from truthcal.reports.sanitize import clean


def page_template() -> Any:
    """The template of the page; where jinja2 is missing, an error before anything is drawn."""
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
        finalize=_fit,
    )
    return environment.get_template("report.html")


def page(template: Any, css: str, content: dict[str, Any]) -> str:
    """The HTML of a report: all that comes from data is escaped here, whatever it holds."""
    style = importlib.resources.files("truthcal.reports").joinpath("templates/report.css").read_text("utf-8") + css
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return str(template.render(style=safe(style), digest=digest, **content))


def safe(markup: str) -> Any:
    """Text that is markup already: of our own making, never of the user's."""
    import markupsafe

    return markupsafe.Markup(markup)


def _fit(value: Any) -> Any:
    """Without characters that no page may hold."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return clean(value)
    return value
