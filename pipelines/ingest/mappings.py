"""The page on what a mapping of a source may say; a test evaluates each example of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

import yaml
from jinja2 import Environment


def examples() -> dict[str, list[Mapping[str, Any]]]:
    """Title → examples: a mapping, what it says, and what it gives for a row."""
    found: dict[str, list[Mapping[str, Any]]] = yaml.safe_load(_text("mappings.yaml"))
    return found


def page() -> Iterator[str]:
    """The table in Markdown, with the names of Jinja's filters at the end."""
    from routeyard.pipelines.mapping.expressions import words

    plain = Environment(trim_blocks=True, keep_trailing_newline=True)  # noqa: S701  (no HTML)
    plain.filters |= {"bar": _bar, "code": _code, "json": partial(json.dumps, ensure_ascii=False)}
    template = plain.from_string(_text("mappings.md.jinja"))
    yield template.render(examples=examples(), filters=words()[1])


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _code(text: str) -> str:
    return f"`{_bar(text)}`".replace("\n", "↵")


def _bar(text: str) -> str:
    return text.replace("|", "\\|")
