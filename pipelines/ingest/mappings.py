"""The page on what a mapping of a source may say; a test evaluates each example of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import yaml


def examples() -> dict[str, list[Mapping[str, Any]]]:
    """Title → examples: a mapping, what it says, and what it gives for a row."""
    text = files(__package__).joinpath("mappings.yaml").read_text(encoding="utf-8")
    found: dict[str, list[Mapping[str, Any]]] = yaml.safe_load(text)
    return found


def page() -> Iterator[str]:
    """The table in Markdown, line by line, with the names of Jinja's filters at the end."""
    from routeyard.pipelines.mapping.expressions import words

    yield "# What a mapping may say\n"
    yield (
        "`fields`, `each`, `where` and `exclude` of a source, and `fields` of a recording, name a "
        "column or hold [Jinja](https://jinja.palletsprojects.com/en/stable/templates/) "
        "expressions over one row. A mapping that is one `{{ … }}` gives the expression's own "
        "value (a list stays a list), any other text with `{{` a text. `choices` and `references` "
        "take a list, or a list of mappings that give a text each. Null and NaN are nothing. "
        "Expressions run in Jinja's sandbox, with limits of time and memory for each row.\n"
    )
    for title, listed in examples().items():
        yield f"## {title}\n"
        yield "| mapping | what it is | of the row | gives |\n| --- | --- | --- | --- |"
        for one in listed:
            row, gives = _code(_json(one["row"])), _code(_json(one["gives"]))
            yield f"| {_code(one['mapping'])} | {_bar(one['says'])} | {row} | {gives} |"
        yield ""
    yield "## Jinja's own filters\n"
    yield ", ".join(f"`{name}`" for name in words()[1]) + ".\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _code(text: str) -> str:
    return f"`{_bar(text)}`".replace("\n", "↵")


def _bar(text: str) -> str:
    return text.replace("|", "\\|")
