"""Roles that columns can have (`roles.yaml`), and the search for a role's column by its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from routeyard.pipelines.ingest.guessing.guess import Table
from routeyard.pipelines.ingest.guessing.values import TESTS, mostly_filled, present


@dataclass(frozen=True, slots=True)
class Role:
    """What a column can hold: the names of such columns, best first, and a test of their values."""

    name: str
    values: str
    names: tuple[str, ...]
    #: Only whole names fit, and a column without any value does.
    strict_name: bool
    most_rows: bool = False
    not_ending: str | None = None

    def fits(self, seen: Sequence[Any]) -> bool:
        """Whether a column's values can have the role."""
        there = present(seen)
        if not there:
            return self.strict_name
        few = self.most_rows and not mostly_filled(seen)
        return TESTS[self.values](there) and not few

    def column(self, columns: Sequence[str], table: Table) -> str | None:
        """The column with the best name whose values fit; None without any."""
        by_plain = {plain(column): column for column in reversed(columns)}
        named = [by_plain[name] for name in self.names if name in by_plain]
        if not self.strict_name:  # `the_question_en`, `Correct Answer (text)`
            named += [
                column
                for known in self.names
                for name, column in by_plain.items()
                if len(known) >= 4 and known in name and not name.endswith(self.not_ending or "\0")
            ]
        fitting = [column for column in named if self.fits(table.seen(column))]
        if self.most_rows:  # one without gaps rather than a better name
            fitting.sort(key=lambda column: len(present(table.seen(column))) < len(table.rows))
        return fitting[0] if fitting else None


def plain(name: str) -> str:
    """A column's name without case, spaces and signs."""
    return re.sub(r"[\s_\-.:/()\[\]]+", "", name).lower()


def _group(group: str) -> dict[str, Role]:
    roles = _TABLE[group]
    return {
        name: Role(name, strict_name=group != "questions", **{**role, "names": (*role["names"],)})
        for name, role in roles.items()
    }


_TABLE = yaml.safe_load(files(__package__).joinpath("roles.yaml").read_text(encoding="utf-8"))
#: Roles in a table of questions, in the order in which they take columns.
QUESTION_ROLES = _group("questions")
PASSAGE = _group("context")["passage"]
