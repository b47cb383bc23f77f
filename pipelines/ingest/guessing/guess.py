"""A guess of what a table's columns hold, with a reason for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
#: Reason of a field that a person named.
GIVEN = "as given"


class Table:
    """The first rows of a table, and its columns in the order in which they appear."""

    def __init__(self, rows: Sequence[Row]):
        self.rows = rows
        self.columns = list(dict.fromkeys(str(name) for row in rows for name in row))

    def seen(self, column: str) -> list[Any]:
        """The column's value in each row; None where a row lacks it."""
        return [row.get(column) for row in self.rows]

    def values(self, mapping: Any) -> list[Any]:
        """What a mapping, or a list of them, gives for each row; None where it fails."""
        from routeyard.pipelines.errors import RecipeError
        from routeyard.pipelines.mapping.fields import compile_field

        def one(text: str, row: Row) -> Any:
            try:
                return compile_field(text, where="guess")(row)
            except RecipeError:
                return None

        if isinstance(mapping, list):
            return [[one(text, row) for text in mapping] for row in self.rows]
        return [one(mapping, row) for row in self.rows]


@dataclass
class Guess:
    """Field of a source → column or expression, and why.

    Attributes:
        columns: Columns of the table.
        fields: Field → column or Jinja expression.
        reasons: Field → why this column.
        doubts: What a person has to check, because the rows that were read cannot tell.
        origins: Field → the column that it was first taken from.
        labels: Expression of the labels stored with the options; empty without any.
        used: Columns that something was taken from.
    """

    columns: list[str]
    fields: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    labels: str = ""
    used: set[str] = field(default_factory=set)

    def put(self, name: str, value: Any, why: str) -> None:
        """Map a field to a column or an expression."""
        self.fields[name], self.reasons[name] = value, why

    def take(self, name: str, column: str, why: str) -> None:
        """Map a field to a column, which is then used."""
        self.put(name, reach(column), why)
        self.origins[name] = column
        self.used.add(column)

    def drop(self, name: str) -> None:
        """Take back what a field was mapped to."""
        del self.fields[name], self.reasons[name]

    def plain(self, name: str) -> str | None:
        """The column that a field is mapped to as it is; None for an expression or no mapping."""
        column = self.fields.get(name)
        return column if isinstance(column, str) and not column.startswith("{{") else None

    def given(self, name: str) -> bool:
        """Whether a person named the field's column."""
        return self.reasons.get(name) == GIVEN

    @property
    def free(self) -> list[str]:
        """Columns that nothing was taken from so far."""
        return [column for column in self.columns if column not in self.used]

    @property
    def unused(self) -> list[str]:
        """Columns that no field names."""
        named = str(list(self.fields.values()))
        return [column for column in self.free if repr(column) not in named]

    @property
    def lacks(self) -> list[str]:
        """Fields that every source needs and no column was found for."""
        return [name for name in ("question", "references") if name not in self.fields]


def reach(column: str) -> str:
    """How a mapping names a column: as it is, and through the row where it would read as Jinja."""
    return column if "{{" not in column and "{%" not in column else f"{{{{ {here(column)} }}}}"


def here(column: str) -> str:
    """A column inside a mapping's expression."""
    return f"_row[{column!r}]"
