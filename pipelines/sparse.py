"""Mapped fields of rows that may leave keys out, as JSON lines do: missing is null, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pipelines.errors import RecipeError
from pipelines.jinja import NoColumn

Read = Callable[[Mapping[str, Any]], Any]


class Sparse:
    """Wraps the readers of one source or recording; `check` and `notes` follow the last row."""

    def __init__(self) -> None:
        self._read: Counter[str] = Counter()
        self._without: Counter[str] = Counter()
        self._first: dict[str, NoColumn] = {}

    def optional(self, name: str, read: Read) -> Read:
        """None where the row has no such key."""

        def of(row: Mapping[str, Any]) -> Any:
            self._read[name] += 1
            try:
                return read(row)
            except NoColumn as error:
                self._without[name] += 1
                self._first.setdefault(name, error)
                return None

        return of

    def needed(self, name: str, read: Read) -> Read:
        """An error where the row has no such key.

        Raises:
            RecipeError: when called. The mapping is wrong where the first row already lacks the
                key, and the row where others had it.
        """

        def of(row: Mapping[str, Any]) -> Any:
            self._read[name] += 1
            try:
                return read(row)
            except NoColumn as error:
                if self._read[name] == 1:
                    raise
                raise RecipeError(
                    f"a row lacks what every row needs: {error.what}",
                    where=error.where,
                    next_step="add the key to that row, or take the row out of the file",
                ) from error

        return of

    def check(self, *names: str) -> None:
        """Stop at a mapped key that no row so far had: that is a slip of the mapping.

        Args:
            names: Fields to look at; all by default.

        Raises:
            NoColumn: names the column.
        """
        for name in names or self._without:
            if 0 < self._without[name] == self._read[name]:
                raise self._first[name]

    def notes(self) -> list[str]:
        """One sentence per field that some rows have no key for."""
        return [
            f"{count:,} of {self._read[name]:,} rows have no key for fields.{name}: "
            "taken as missing"
            for name, count in sorted(self._without.items())
            if count
        ]
