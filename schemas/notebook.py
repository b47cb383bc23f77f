"""What a notebook shows of a result: a title, some figures and a table, as safe HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from routeyard.schemas.untrusted_text import visible

#: Rows of a table that a card shows.
SHOWN = 12


def html_card(title: str, facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()) -> str:
    """A heading, `name value` per fact, and the first rows of a table.

    Every text is escaped: names and answers come from strangers. Facts and cells that are None
    are left out or empty.
    """
    told = [f"<b>{_text(name)}</b> {_text(value)}" for name, value in facts.items()
            if value is not None]  # fmt: skip
    parts = [f"<b>{_text(title)}</b>", *([" · ".join(told)] if told else [])]
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
    return "".join(f"<td>{'' if one is None else _text(one)}</td>" for one in values)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return escape(visible(str(value)))
