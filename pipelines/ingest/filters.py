"""`where` and `exclude` of a source: which rows are taken, and conditions that no row meets.

A `where` that no row meets is probably a slip that takes questions away, and stops the build. An
`exclude` that no row meets may be meant (a newer revision corrected its rows): it is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routeyard.pipelines.errors import SourceError, did_you_mean
from routeyard.pipelines.mapping.fields import NoColumn, Sparse, compile_field
from routeyard.schemas.recipe import Source

Row = Mapping[str, Any]
#: Different values of a column that are kept for an error.
_SEEN = 20


class _Condition:
    """A column, nested names as in mappings, and the value that it must have."""

    def __init__(self, kind: str, column: str, value: Any, sparse: Sparse, where: str):
        self.name, self.column, self.value = f"{kind}.{column}", column, value
        self.met = False
        self._seen: dict[Any, None] = {}
        read = compile_field(column, where=f"{where}, {kind}")
        self._read = sparse.reader(self.name, read, needed=False)

    def meets(self, row: Row) -> bool:
        """Whether the row has the value; a key that the row leaves out is None."""
        found = self._read(row)
        if found == self.value:
            self.met = True
        elif len(self._seen) < _SEEN and isinstance(found, str | int | float | bool | None):
            self._seen.setdefault(found)
        return bool(found == self.value)

    def instead(self) -> str:
        """What the column has in place of the value."""
        seen = list(self._seen)
        same = [one for one in seen if str(one) == str(self.value)]
        texts = [one for one in seen if isinstance(one, str)]
        if same:
            return f"write {_shown(same[0])}: the column holds {_kind(same[0])}"
        if isinstance(self.value, str) and texts:
            return did_you_mean(self.value, texts)
        return "the column has " + ", ".join(map(_shown, seen[:8]))


class Filtered:
    """The conditions of one source, and which of them were met so far."""

    def __init__(self, source: Source, where: str):
        self._source, self._place = source.name, where
        self._rows = self._taken = 0
        self._sparse = Sparse()
        self._where, self._exclude = (
            [_Condition(kind, *item, self._sparse, where) for item in conditions.items()]
            for kind, conditions in (("where", source.where), ("exclude", source.exclude))
        )

    def takes(self, row: Row) -> bool:
        """Whether `where` takes the row."""
        self._rows += 1
        met = [condition.meets(row) for condition in self._where]
        self._taken += all(met)
        return all(met)

    def excludes(self, row: Row) -> bool:
        """Whether `exclude` leaves the row out; only for rows that `where` takes."""
        met = [condition.meets(row) for condition in self._exclude]
        return any(met)

    def stopped_early(self) -> None:
        """Not all rows were read: what no row met so far, a later one may meet."""
        self._rows = 0

    def check(self) -> list[str]:
        """Conditions that no row met, once all rows were read.

        Returns:
            One sentence per `exclude` that left nothing out.

        Raises:
            SourceError: a `where` matches nothing; names the values the column has instead.
            NoColumn: no row has the column of a `where`.
        """
        if not self._rows:
            return []
        for one in self._where:
            if not one.met:
                self._sparse.check(one.name)
                raise SourceError(
                    f"'where' of source {self._source!r} matches nothing: no row of "
                    f"{self._rows:,} has {one.column} = {_shown(one.value)}",
                    where=f"{self._place}, {one.name}",
                    next_step=one.instead(),
                )
        if self._where and not self._taken:
            both = " and ".join(f"{one.column} = {one.value!r}" for one in self._where)
            raise SourceError(
                f"'where' of source {self._source!r} matches nothing: none of "
                f"{self._rows:,} rows has {both} at once",
                where=self._place,
                next_step="correct 'where', or take the source out of the recipe",
            )
        return [
            f"'exclude' of source {self._source!r} leaves nothing out: {self._not_met(one)}"
            for one in self._exclude
            if not one.met
        ]

    def _not_met(self, one: _Condition) -> str:
        try:
            self._sparse.check(one.name)
        except NoColumn as error:  # of a dataset's other revision, it may be
            return f"{error.what}, {error.next_step}"
        return f"no row has {one.column} = {_shown(one.value)} ({one.instead()})"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _kind(value: Any) -> str:
    if value is None:
        return "nulls"
    if isinstance(value, bool):
        return "true and false, not text"
    return "text" if isinstance(value, str) else "numbers, not text"
