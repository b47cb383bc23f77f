"""The language of all pages: templates, filters, data blocks, Markdown without markup."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from routeyard.datacards.charts import REFERENCES


@cache
def page_environment(pages: tuple[tuple[str, Any], ...] = ()) -> Environment:
    """Templates of the pages, with autoescape and filters that show what is not known as –.

    Made once: to compile the templates takes longer than to fill them.

    Args:
        pages: Pages of a site that each of them links to.
    """
    environment = Environment(
        loader=PackageLoader("routeyard.datacards", "templates/site"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    environment.globals["pages"] = dict(pages)
    filters: dict[str, Callable[..., Any]] = {
        "count": lambda value: "–" if value is None else f"{value:,}",
        "percent": lambda value: "–" if value is None else f"{100 * value:.1f} %",
        "points": lambda value: "–" if value is None else f"{100 * value:+.1f}",
        "usd": usd,
        "seconds": lambda value: "–" if value is None else f"{value:,.2f} s",
        "plain": lambda value: "–" if value is None else f"{value:.4g}",
        "chance": chance,
        "powers": powers,
        "scorer": scorer,
        "router": router,
        "either": lambda value: "–" if value is None else value,
        "safe_json": safe_json,
        "markdown": markdown,
        "code": code,
    }
    environment.filters |= filters
    return environment


def usd(value: float | None) -> str:
    """An amount with four significant digits, never as a power of ten."""
    if value is None:
        return "–"
    if 0 < abs(value) < 1e-4:
        return f"${value:.{3 - math.floor(math.log10(abs(value)))}f}"
    return f"${value:,.4g}" if abs(value) < 1000 else f"${value:,.0f}"


def router(name: str) -> str:
    """A router's name; what always asks one model is called so."""
    model = name.removeprefix("single:")
    return name if model == name else f"always {model}"


def listed(names: Sequence[str]) -> str:
    """a, b and c; of more than four the first three."""
    if not names:
        return ""
    shown = [*names[:3], f"{len(names) - 3} more"] if len(names) > 4 else list(names)
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def kind_of(name: str) -> str:
    """What a name of an evaluation means: a router, a single model or a reference."""
    if name.startswith("single:"):
        return "model"
    return "reference" if name in REFERENCES else "router"


def scorer(name: str | None) -> str:
    """What decided a label, as a page says it: `given` is a score that came with the answers."""
    words = {
        None: "–",
        "given": "the source's score",
        "unreadable": "no scorer could read the answer",
        "no label": "nothing: these pairs have no label",
    }
    return str(words.get(name, name))


def powers(text: str) -> str:
    """A unit with its powers as people write them: 10^6 is 10⁶."""
    raised = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
    return re.sub(r"\^(-?\d+)", lambda match: match[1].translate(raised), text)


def chance(p: float | None) -> str:
    """A p-value as people read it: three digits after the point, never 3e-05."""
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def safe_json(value: Any) -> Markup:
    """JSON for a data block of a page: nothing in it can end the block."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, code)
    return Markup(text)  # noqa: S704  every sign that HTML reads is written as its code


def code(text: str) -> Markup:
    """A sentence with what it has in backticks as code; everything in it is escaped."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its pair
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if k % 2 else escape(part)
        for k, part in enumerate(parts)
    )


def markdown(text: str) -> Markup:
    """Markdown as HTML without links, images or raw HTML."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.disable(["link", "image", "autolink", "html_block", "html_inline"])
    tokens = reader.parse(text)
    for token in tokens:
        # Columns are aligned by an inline style, which the pages' policy forbids.
        if "right" in str(token.attrs.pop("style", "")):
            token.attrs["class"] = "n"
    html = reader.renderer.render(tokens, reader.options, {})
    return Markup(html)  # noqa: S704  the reader escapes what it is given


def single_page(template: str, *names: str, **content: Any) -> str:
    """A page that carries the site's style and scripts inside it and requests nothing.

    Args:
        template: One that extends `single.html.jinja`.
        names: Scripts it needs; its policy allows them by their hashes.
    """
    page = page_environment().get_template(template)
    return page.render(**_inline(names), **content)


def _inline(names: Sequence[str]) -> dict[str, Any]:
    style = _asset("site.css")
    scripts = [_asset(name) for name in names]
    allowed = f"script-src {' '.join(_hash(script) for script in scripts)}; " if scripts else ""
    return {
        "root": "",
        "book": None,
        "policy": Markup(  # noqa: S704  hashes of our own files
            f"default-src 'none'; {allowed}style-src {_hash(style)}; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        ),
        "style": Markup(style),  # noqa: S704  our own file
        "scripts": [Markup(script) for script in scripts],  # noqa: S704  our own files
    }


def _asset(name: str) -> str:
    folder = files("routeyard.datacards").joinpath("templates", "site")
    return folder.joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
