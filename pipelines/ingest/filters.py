"""`where` and `exclude` of a source: which rows are taken, and what matches nothing.

A `where` that no row meets is a slip of the pen that takes questions away, and stops the
build. An `exclude` that meets none may be meant (a newer revision mended its rows): it is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipelines.errors import SourceError, did_you_mean
from pipelines.mapping.fields import NoColumn, Sparse, compile_field
from schemas.recipe import Source

Row = Mapping[str, Any]
#: Different values of a column that are kept for an error.
_SEEN = 20


class Filtered:
    """The conditions of one source, and which of them were met so far."""

    def __init__(self, source: Source, where: str):
        self._source = source
        self._where = where
        self._rows = 0
        self._taken = 0
        self._met: set[tuple[str, str]] = set()
        self._seen: dict[str, dict[Any, None]] = {}
        self._sparse = Sparse()
        self._readers: dict[str, Callable[[Row], Any]] = {}

    def takes(self, row: Row) -> bool:
        """Whether `where` takes the row."""
        self._rows += 1
        if not self._source.where:
            return True
        met = [
            self._meets("where", column, value, row) for column, value in self._source.where.items()
        ]
        self._taken += all(met)
        return all(met)

    def excludes(self, row: Row) -> bool:
        """Whether `exclude` leaves the row out; it is asked of rows that `where` takes."""
        met = [
            self._meets("exclude", column, value, row)
            for column, value in self._source.exclude.items()
        ]
        return any(met)

    def stopped_early(self) -> None:
        """Not all rows were read: what no row met so far, a later one may meet."""
        self._rows = 0

    def check(self) -> list[str]:
        """What has to be said of conditions that no row met, once all rows were read.

        Returns:
            One sentence per `exclude` that left nothing out.

        Raises:
            SourceError: a `where` matches nothing; names the values the column has instead.
            NoColumn: no row has the column of a `where`.
        """
        if not self._rows:
            return []
        for column, value in self._source.where.items():
            if ("where", column) not in self._met:
                self._sparse.check(f"where.{column}")
                self._refuse(column, value)
        if self._source.where and not self._taken:
            both = " and ".join(f"{c} = {v!r}" for c, v in self._source.where.items())
            raise SourceError(
                f"'where' of source {self._source.name!r} matches nothing: none of "
                f"{self._rows:,} rows has {both} at once",
                where=self._where,
                next_step="correct 'where', or take the source out of the recipe",
            )
        return [
            f"'exclude' of source {self._source.name!r} leaves nothing out: "
            + self._not_met(column, value)
            for column, value in self._source.exclude.items()
            if ("exclude", column) not in self._met
        ]

    def _not_met(self, column: str, value: Any) -> str:
        try:
            self._sparse.check(f"exclude.{column}")
        except NoColumn as error:  # of a dataset's other revision, it may be
            return f"{error.what}, {error.next_step}"
        return f"no row has {column} = {_shown(value)} ({self._instead(column, value)})"

    def _instead(self, column: str, value: Any) -> str:
        seen = list(self._seen.get(column, {}))
        texts = [one for one in seen if isinstance(one, str)]
        if isinstance(value, str) and texts:
            hint = did_you_mean(value, texts)
        else:
            hint = "the column has " + ", ".join(map(_shown, seen[:8]))
        if any(str(one) == str(value) for one in seen):
            same = next(one for one in seen if str(one) == str(value))
            hint = f"write {_shown(same)}: the column holds {_kind(same)}"
        return hint

    def _refuse(self, column: str, value: Any) -> None:
        raise SourceError(
            f"'where' of source {self._source.name!r} matches nothing: no row of "
            f"{self._rows:,} has {column} = {_shown(value)}",
            where=f"{self._where}, where.{column}",
            next_step=self._instead(column, value),
        )

    def _value(self, kind: str, column: str, row: Row) -> Any:
        """What the row has there, nested names as in mappings; None where it leaves the key out."""
        name = f"{kind}.{column}"
        if name not in self._readers:
            read = compile_field(column, where=f"{self._where}, {kind}")
            self._readers[name] = self._sparse.optional(name, read)
        return self._readers[name](row)

    def _meets(self, kind: str, column: str, value: Any, row: Row) -> bool:
        found = self._value(kind, column, row)
        if found == value:
            self._met.add((kind, column))
            return True
        seen = self._seen.setdefault(column, {})
        if len(seen) < _SEEN and isinstance(found, str | int | float | bool | None):
            seen.setdefault(found)
        return False


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _kind(value: Any) -> str:
    if value is None:
        return "nulls"
    if isinstance(value, bool):
        return "true and false, not text"
    return "text" if isinstance(value, str) else "numbers, not text"
