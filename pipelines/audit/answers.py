"""A recording as arrays: what every check of the audit reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Answers:
    """n answers of a recording (`RECORDING`), in the order of the source.

    Attributes:
        table: the recording; rows without an arm or a question are not in it.
        free: arms whose price is stated as 0: their cost of 0 is known.
    """

    table: pa.Table
    free: frozenset[str] = frozenset()
    _kept: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table, free: Iterable[str] = ()) -> Answers:
        """The rows that name an arm and a question; the order of rows is kept."""
        named = pc.and_(pc.is_valid(table.column("arm")), pc.is_valid(table.column("question")))
        # Texts are copied only where a row is left out, or where they are in pieces.
        left = table if pc.all(named, min_count=0).as_py() else table.filter(named)
        return cls(left.combine_chunks(), frozenset(free))

    def cached(self, name: str, make: Callable[[Answers], T]) -> T:
        """What `make` finds; made once, for several checks."""
        if name not in self._kept:
            self._kept[name] = make(self)
        found: T = self._kept[name]
        return found

    @cached_property
    def free_rows(self) -> Mask:
        """(n,) whether the arm's price is stated as 0."""
        return np.isin(self.arm, [k for k, name in enumerate(self.arms) if name in self.free])

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def arms(self) -> list[str]:
        """Names of the arms, sorted."""
        return self._coded("arm")[1]

    @cached_property
    def suites(self) -> list[str]:
        """Names of the suites, sorted; one empty name where the source has none."""
        return self._coded("suite")[1]

    @cached_property
    def arm(self) -> Codes:
        """(n,) index into `arms`."""
        return self._coded("arm")[0]

    @cached_property
    def suite(self) -> Codes:
        """(n,) index into `suites`."""
        return self._coded("suite")[0]

    @cached_property
    def question(self) -> Codes:
        """(n,) number of the question: its id inside its suite."""
        ids = self._coded("question")[0]
        pairs = self.suite * (int(ids.max(initial=0)) + 1) + ids
        return np.asarray(np.unique(pairs, return_inverse=True)[1].astype(np.int64))

    @cached_property
    def first(self) -> Codes:
        """(questions,) a row of each question."""
        return np.unique(self.question, return_index=True)[1].astype(np.int64)

    @property
    def n_questions(self) -> int:
        return len(self.first)

    @cached_property
    def cell(self) -> Codes:
        """(n,) number of the arm × suite cell."""
        return self.arm * len(self.suites) + self.suite

    def numbers(self, column: str) -> Floats:
        """(n,) a column of numbers; NaN where the source says nothing."""
        if column not in self._numbers:
            values = self.texts(column)
            self._numbers[column] = values.to_numpy(zero_copy_only=False).astype(np.float64)
        return self._numbers[column]

    @cached_property
    def _numbers(self) -> dict[str, Floats]:
        return {}

    @property
    def score(self) -> Floats:
        return self.numbers("score")

    def has(self, column: str) -> bool:
        """Whether the source says anything of a column."""
        values = self.table.column(column)
        if column == "suite":
            return len(self.suites) > 1
        return bool(values.null_count < len(values))

    def texts(self, column: str) -> pa.Array:
        """A column as one array, which is a copy where it is in pieces."""
        values = self.table.column(column)
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()

    def lengths(self, column: str) -> Floats:
        """(n,) characters of a text; NaN where the text is missing."""

        def counted(answers: Answers) -> Floats:
            lengths = pc.utf8_length(answers.texts(column)).cast(pa.float64())
            return np.asarray(lengths.to_numpy(zero_copy_only=False), dtype=np.float64)

        return self.cached(f"lengths of {column}", counted)

    def different(self, column: str) -> pa.DictionaryArray:
        """A column with each different text once: long texts are compared by several checks."""
        return self.cached(f"different {column}", lambda one: one.texts(column).dictionary_encode())

    def equal(self, column: str) -> Codes:
        """(n,) one number for equal texts of a column, −1 where the text is missing.

        Without an order, unlike `coded`: sorting long texts takes longer than comparing them.
        """
        return np.asarray(pc.fill_null(self.different(column).indices, -1)).astype(np.int64)

    def names(self, column: str) -> list[str]:
        """The different texts of a column; `coded` numbers them."""
        return self._coded(column)[1]

    def coded(self, column: str) -> Codes:
        """(n,) a number for each text of a column, −1 where the text is missing."""
        return self._coded(column)[0]

    def _coded(self, column: str) -> tuple[Codes, list[str]]:
        if column not in self._codes:
            values = self.texts(column)
            if column in ("suite", "arm"):
                values = pc.fill_null(values, "")
            encoded = values.dictionary_encode()
            names = encoded.dictionary.to_pylist()
            order = np.argsort(np.array(names, dtype=object)) if names else np.empty(0, np.int64)
            place = np.empty(len(names) + 1, np.int64)
            place[order] = np.arange(len(names))
            place[-1] = -1
            raw = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
            self._codes[column] = (place[raw], [names[k] for k in order])
        return self._codes[column]

    @cached_property
    def _codes(self) -> dict[str, tuple[Codes, list[str]]]:
        return {}

    def place(self, row: int) -> dict[str, Any]:
        """Where a person finds a row."""
        named = self.table.slice(int(row), 1).select(["arm", "suite", "question", "sample", "at"])
        return {k: v for k, v in named.to_pylist()[0].items() if v not in (None, "")}


def sums(groups: Codes, values: Floats, size: int) -> Floats:
    """(size,) sum of the known values of each group."""
    known = ~np.isnan(values)
    found = np.bincount(groups[known], weights=values[known], minlength=size)
    return np.asarray(found, dtype=np.float64)


def counts(groups: Codes, size: int, where: Mask | None = None) -> Floats:
    """(size,) rows of each group, of those `where`."""
    chosen = groups if where is None else groups[where]
    return np.asarray(np.bincount(chosen, minlength=size).astype(np.float64))


def means(groups: Codes, values: Floats, size: int) -> Floats:
    """(size,) mean of the known values of each group; NaN where none is known."""
    number = counts(groups, size, ~np.isnan(values))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(number > 0, sums(groups, values, size) / number, np.nan)


def ranks(values: Floats) -> Floats:
    """(n,) rank of each value, 1 for the least; equal values share the mean of theirs.

    `scipy.stats.rankdata` gives the same; its import takes longer than most audits.

    >>> ranks(np.array([0.5, 0.1, 0.5])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, number = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(number) - (number - 1) / 2)[place])
