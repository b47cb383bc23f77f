"""Templates of Markdown: figures as text, and untrusted text that makes no markup."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from routeyard.schemas.text import markdown, prose, visible

#: What is not known is shown so.
UNKNOWN = "–"


@cache
def environment() -> Environment:
    """Templates under `templates/`, with filters that show what is not known as –."""
    made = Environment(
        loader=PackageLoader("routeyard.datacards", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  Markdown, not HTML; cells are escaped by `cell`
    )
    forms = {"count": "{:,}", "usd": "${:,.4f}", "plain": "{:g}"}
    made.filters |= {name: _filter(form) for name, form in forms.items()}
    made.filters |= {
        "percent": lambda value: UNKNOWN if value is None else f"{100 * value:.1f} %",
        "cell": cell,
        "prose": lambda text: prose(str(text)),
        "fenced": lambda text: visible(str(text)).replace("```", "ʼʼʼ"),
        "size": size,
    }
    return made


def _filter(form: str) -> Any:
    return lambda value: UNKNOWN if value is None else form.format(value)


def cell(value: Any) -> str:
    """Text that stays in one cell of a Markdown table and makes no markup."""
    return UNKNOWN if value is None else markdown(str(value))


def table(head: list[str], rows: list[list[str]], numbers: list[bool] | None = None) -> list[str]:
    """Lines of a Markdown table of safe texts; columns of numbers are aligned to the right."""
    right = numbers or [False, *[True] * (len(head) - 1)]
    lines = [head, ["---:" if one else "---" for one in right], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def texts(name: str) -> Any:
    """A YAML file of texts under `templates/`."""
    import yaml

    folder = files("routeyard.datacards").joinpath("templates")
    return yaml.safe_load(folder.joinpath(name).read_text(encoding="utf-8"))


def size(value: int) -> str:
    """Bytes for people."""
    if value < 1000:
        return f"{value} B"
    amount, unit = next(
        (value / 1000**k, unit)
        for k, unit in ((1, "kB"), (2, "MB"), (3, "GB"))
        if value < 1000 ** (k + 1) or unit == "GB"
    )
    return f"{amount:.1f} {unit}"
