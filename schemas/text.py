"""Text of others made safe and short (terminals, Markdown, tables, notebooks), and own tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources.abc import Traversable
from typing import Any

#: Cosine from which two questions are near-duplicates (RouterBench+, section 4.2).
SIMILARITY = 0.999


def own_table(path: Traversable, *, words: bool = False) -> Any:
    """Content of a YAML file of this package; `common.files` reads those of others.

    Args:
        words: Every value is text, "on", "no" and "1" too.
    """
    import yaml

    # The parser in C takes a tenth of the time; not every build of the library has it.
    kind = "BaseLoader" if words else "SafeLoader"
    loader = getattr(yaml, f"C{kind}", getattr(yaml, kind))
    return yaml.load(path.read_text(encoding="utf-8"), loader)  # noqa: S506  (a safe one)


def literal(path: str) -> str:
    """A path for DuckDB in which no sign matches other files."""
    return "".join(f"[{sign}]" if sign in "[*?" else sign for sign in path)


# Untrusted text made safe for terminals, Markdown tables and spreadsheets.
#
# Ids, headers, titles and answers come from files and servers of others. None may move the
# cursor, turn the text around, make markup, or be run as a formula.

#: Control characters but line feed and tab, and signs that turn text around or hide in it.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)
#: What a spreadsheet takes for a formula, and the same after apostrophes; some also know
#: the wide forms of these signs.
_FORMULA = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def visible(text: str) -> str:
    """The text with `�` for every sign that a terminal acts on; lines and tabs stay.

    >>> visible("gpt\\x1b[2J\\u202e4")
    'gpt�[2J�4'
    """
    return _UNSEEN.sub("�", text)


def one_line(text: str, most: int | None = None) -> str:
    """`visible` on one line, cut to `most` signs."""
    flat = visible(" ".join(text.split()))
    return flat if most is None or len(flat) <= most else flat[: most - 1] + "…"


def markdown(text: str) -> str:
    """Text on one line that makes no markup, link, image or HTML in Markdown.

    >>> markdown("a|b <img> [x](javascript:0)")
    'a\\\\|b \\\\<img\\\\> \\\\[x\\\\](javascript:0)'
    """
    return re.sub(r"([\\|<>`\[\]])", r"\\\1", one_line(text))


def fenced(text: str) -> str:
    """Lines of text as a block of Markdown that nothing in them can end.

    >>> print(fenced("a ``` b"))
    ````
    a ``` b
    ````
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{visible(text)}\n{fence}"


def prose(text: str) -> str:
    """Paragraphs of Markdown, links included, without HTML, images or signs that act.

    >>> prose("See [us](https://example.org).\\n\\n<script> ![x](https://example.org/seen.gif)")
    'See [us](https://example.org).\\n\\n\\\\<script> !\\\\[x](https://example.org/seen.gif)'
    """
    return re.sub(r"<|(?<=!)\[", lambda sign: "\\" + sign[0], visible(text))


def spreadsheet(value: Any) -> Any:
    """A cell of CSV for people: a text that a spreadsheet would run as a formula gets an
    apostrophe before it; numbers stay, also when they are written as text.

    >>> spreadsheet("=HYPERLINK(0)"), spreadsheet("-3.5"), spreadsheet(-3.5)
    ("'=HYPERLINK(0)", '-3.5', -3.5)
    """
    return guarded(visible(value)) if isinstance(value, str) else value


def guarded(value: Any) -> Any:
    """A cell of CSV for programs and people: as `spreadsheet`, and `unguarded` gives it back.

    >>> guarded("=1+1"), guarded("'=1+1"), guarded("-1")
    ("'=1+1", "''=1+1", '-1')
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def unguarded(text: str) -> str:
    """The text of a cell that `guarded` made.

    >>> unguarded("'=1+1"), unguarded("''=1+1"), unguarded("'tis")
    ('=1+1', "'=1+1", "'tis")
    """
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text


def in_line(text: str) -> str:
    """Text that a message repeats within a line: line breaks in it begin no further line.

    >>> in_line("a.csv\\nerror: all is well")
    'a.csv�error: all is well'
    """
    return visible(text).replace("\n", "�")


#: Rows of a table that a card shows.
SHOWN = 12


def html_card(title: str, facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()) -> str:
    """A heading, `name value` per fact, and the first rows of a table.

    Every text is escaped: names and answers come from strangers. Facts and cells that are None
    are left out or empty.
    """
    items = [f"<b>{_text(name)}</b> {_text(value)}" for name, value in facts.items()
             if value is not None]  # fmt: skip
    parts = [f"<b>{_text(title)}</b>", *([" · ".join(items)] if items else [])]
    if rows:
        names = list(rows[0])
        head = "".join(f"<th>{_text(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{_cells(row.get(name) for name in names)}</tr>" for row in rows[:SHOWN]
        )
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        if len(rows) > SHOWN:
            parts.append(f"… and {len(rows) - SHOWN:,} more rows")
    return "".join(f"<div>{part}</div>" for part in parts)


def _cells(values: Iterable[Any]) -> str:
    return "".join(f"<td>{'' if value is None else _text(value)}</td>" for value in values)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return escape(visible(str(value)))
