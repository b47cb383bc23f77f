"""A recording as arrays: what every check of the audit reads."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

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
        value: T = self._kept[name]
        return value

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
        return self.cached(f"numbers of {column}", lambda own: _floats(own.texts(column)))

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
            return _floats(pc.utf8_length(answers.texts(column)))

        return self.cached(f"lengths of {column}", counted)

    def different(self, column: str) -> pa.DictionaryArray:
        """A column with each different text once: long texts are compared by several checks."""
        return self.cached(f"different {column}", lambda a: a.texts(column).dictionary_encode())

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
        def codes(answers: Answers) -> tuple[Codes, list[str]]:
            values = answers.texts(column)
            if column in ("suite", "arm"):
                values = pc.fill_null(values, "")
            encoded = values.dictionary_encode()
            names = encoded.dictionary.to_pylist()
            order = np.argsort(np.array(names, dtype=object)) if names else np.empty(0, np.int64)
            place = np.full(len(names) + 1, -1)
            place[order] = np.arange(len(names))
            raw = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
            return place[raw], [names[k] for k in order]

        return self.cached(f"codes of {column}", codes)

    def place(self, row: int) -> dict[str, Any]:
        """Where a person finds a row."""
        named = self.table.slice(int(row), 1).select(["arm", "suite", "question", "sample", "at"])
        return {k: v for k, v in named.to_pylist()[0].items() if v not in (None, "")}


def _floats(values: pa.Array) -> Floats:
    return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def sums(groups: Codes, values: Floats, size: int) -> Floats:
    """(size,) sum of the known values of each group."""
    known = ~np.isnan(values)
    totals = np.bincount(groups[known], weights=values[known], minlength=size)
    return np.asarray(totals, dtype=np.float64)


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


def components(left: Codes, right: Codes, n: int, m: int) -> Codes:
    """(n,) smallest of the left nodes that edges of a bipartite graph connect with each of them.

    `scipy.sparse.csgraph` says the same; its import takes longer than most audits.

    Args:
        left, right: (edges,) nodes 0 … n − 1 and 0 … m − 1.

    >>> components(np.array([0, 1, 2]), np.array([0, 1, 0]), 3, 2).tolist()
    [0, 1, 0]
    """
    label, before = np.arange(n), np.full(n, -1)
    while not np.array_equal(label, before):
        before = label.copy()
        least = np.full(m, n)
        np.minimum.at(least, right, label[left])
        np.minimum.at(label, left, least[right])
    return label


# A finding of the audit, and what a check hands over.

#: `grave` stops a release and makes a recording defective; `doubt` makes it doubtful; a `note`
#: changes no verdict.
Severity = Literal["grave", "doubt", "note"]
#: What mending a finding makes unknown: scores or costs of its rows, or nothing.
Mends = Literal["score", "cost", "nothing"]
#: Rows that a finding names.
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Found:
    """What a check found: whom it is about, the sentence, and the rows.

    Attributes:
        rows: indices of the answers.
        severity: where it is not the check's own.
        swap: arm to which each row belongs after mending, where rows change their arm.
        before, after: (arms,) accuracy as recorded and mended, where rows do not tell.
    """

    about: str
    says: str
    rows: NDArray[np.int64]
    severity: Severity | None = None
    swap: NDArray[np.int64] | None = None
    before: NDArray[np.float64] | None = None
    after: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class AuditCheck:
    """One check.

    Attributes:
        kind: its name in findings and waivers.
        find: answers → what it found; None of a check that `recording.sql` holds.
        needs: columns of which the source must say something.
        key: the recipe key that mends what it finds.
        sql: the statement of a check that is one.
    """

    kind: str
    find: Callable[[Answers], Iterator[Found]] | None
    needs: tuple[str, ...]
    severity: Severity
    mends: Mends
    key: str
    sql: str = ""

    @classmethod
    def of_sql(cls, kind: str, sql: str, head: Mapping[str, Any], find: Any = None) -> AuditCheck:
        """A check with the words of its statement's head."""
        needs = tuple(name for name in re.findall(r"\w+", head["needs"]) if name != "nothing")
        return cls(kind, find, needs, head["severity"], head["mends"], head["key"], sql)


@dataclass(frozen=True)
class AuditFinding:
    """One defect.

    Attributes:
        count: answers that it is about.
        rows: where a person finds the first of them.
        effect: what mending it does to the leaderboard.
        swaps: pairs of arms that change places when it is mended.
        moved: largest change of an arm's accuracy, or relative change of its mean cost.
        key: recipe key that mends it.
        parts: `about`, `says` and `count` of each arm, cell or suite, where several have one cause.
    """

    kind: str
    about: str
    says: str
    count: int
    rows: tuple[dict[str, Any], ...]
    effect: str
    severity: Severity
    swaps: int = 0
    moved: float = 0.0
    key: str = field(kw_only=True)
    parts: tuple[dict[str, Any], ...] = ()

    @property
    def stops(self) -> bool:
        """Whether a release with it is not built unless it is waived."""
        return self.severity == "grave"

    @property
    def gate(self) -> str:
        """What `release.waivers` names it."""
        return f"audit:{self.kind}"


# Cells of arm × suite that fit neither their arm nor their suite, and their siblings.

#: Answers below which a cell is not judged.
FEWEST = 10
#: Standard deviations and accuracy between a cell and its siblings from which it is a finding.
#: (z, gap): a smaller gap asks for more deviation.
ODD = ((3.6, 0.15), (2.8, 0.25))
GAP = 0.25
#: Siblings: arms nearest in accuracy on the other suites. Arms further off, in the mean, count only
#: where too few are near.
SIBLINGS, FAR, ENOUGH = 5, 0.25, 3


def polish(values: Floats, rounds: int = 20) -> Floats:
    """Residuals of a two-way table after row and column medians (Tukey 1977, median polish).

    Args:
        values: (arms, suites); NaN where nothing is known.
    """
    left = values.copy()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a row of which nothing is known
        for _ in range(rounds):
            for axis in (1, 0):
                middle = np.nanmedian(left, axis=axis, keepdims=True)
                left -= np.where(np.isnan(middle), 0.0, middle)
    return left


def residuals(values: Floats) -> tuple[Floats, float]:
    """Residuals of `polish` where a table is large enough, else NaN; and their robust spread."""
    known = ~np.isnan(values)
    left = polish(values)
    few = (known.sum(axis=1, keepdims=True) < 3) | (known.sum(axis=0, keepdims=True) < 3)
    left[few | ~known] = np.nan
    size = np.abs(left[~np.isnan(left)])
    # Half of a polished table may be 0, so the spread is read off a high quantile too.
    spread = (
        max(1.4826 * float(np.median(size)), float(np.quantile(size, 0.8)) / 1.2816, 1e-9)
        if len(size)
        else np.inf
    )
    return left, spread


@dataclass(frozen=True, eq=False)
class CellGrid:
    """Accuracy of arms on suites.

    Attributes:
        n: (arms, suites) scored answers.
        p: (arms, suites) accuracy; NaN below `FEWEST` answers.
        z: (arms, suites) residual on the logit scale over its standard deviation.
        low, high: (arms, suites) range of the siblings' accuracy on the suite.
    """

    n: Floats
    p: Floats
    z: Floats
    low: Floats
    high: Floats


def grid_of(answers: Answers) -> CellGrid:
    """Accuracy, residuals and siblings of every cell."""
    shape = (len(answers.arms), len(answers.suites))
    size = shape[0] * shape[1]
    score = np.clip(answers.score, 0, 1)
    n = counts(answers.cell, size, ~np.isnan(score)).reshape(shape)
    right = sums(answers.cell, score, size).reshape(shape)
    p = np.where(n >= FEWEST, right / np.maximum(n, 1), np.nan)
    smooth = (right + 0.5) / (n + 1)
    logit = np.where(n >= FEWEST, np.log(smooth / (1 - smooth)), np.nan)
    left, spread = residuals(logit)
    noise = 1 / ((n + 1) * smooth * (1 - smooth))
    low, high = siblings(p)
    return CellGrid(n, p, left / np.sqrt(spread**2 + noise), low, high)


def siblings(p: Floats) -> tuple[Floats, Floats]:
    """(arms, suites) 20th and 80th percentile of each arm's siblings' accuracy on each suite.

    Siblings of an arm, for one suite, are the arms whose accuracies on all other suites are
    nearest to its own.
    """
    low, high = np.full_like(p, np.nan), np.full_like(p, np.nan)
    known = ~np.isnan(p)
    for a in range(len(p)):
        away = np.abs(p - p[a])
        away[~known | ~known[a][None, :]] = np.nan
        total, shared = np.nansum(away, axis=1), (~np.isnan(away)).sum(axis=1)
        for s in np.flatnonzero(known[a]):
            other = total - np.nan_to_num(away[:, s])
            number = shared - ~np.isnan(away[:, s])
            usable = (number > 0) & known[:, s]
            usable[a] = False
            if not usable.any():
                continue
            distance = np.where(usable, other / np.maximum(number, 1), np.inf)
            nearest = np.argsort(distance, kind="stable")[: min(SIBLINGS, int(usable.sum()))]
            if (near := distance[nearest] <= FAR).sum() >= ENOUGH:
                nearest = nearest[near]
            # Of five, the outermost are left out: one odd sibling widens no range.
            low[a, s], high[a, s] = np.quantile(p[nearest, s], (0.2, 0.8))
    return low, high


def odd_cells(grid: CellGrid) -> list[tuple[int, int]]:
    """(arm, suite) of cells that fit neither, the strangest first."""
    noise = np.sqrt(np.clip(grid.p * (1 - grid.p), 0.01, None) / np.maximum(grid.n, 1))
    distance = np.fmax(grid.low - grid.p, grid.p - grid.high)
    with np.errstate(invalid="ignore"):
        odd = np.any([(np.abs(grid.z) > z) & (distance > gap) for z, gap in ODD], axis=0)
        odd &= distance > 4 * noise
        # Not one right answer, where the weakest sibling's rate lets expect a dozen.
        odd |= (grid.p == 0) & (grid.low * grid.n > 12)
    places = np.argwhere(odd)
    order = np.argsort([-abs(grid.z[a, s]) for a, s in places], kind="stable")
    return [(int(places[k][0]), int(places[k][1])) for k in order]
