"""Units of questions that stay together, and splits of them in exact counts."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from routeyard.pipelines.curate.one_question import Together, one_question
from routeyard.pipelines.errors import RecipeError


@dataclass(frozen=True, slots=True)
class Unit:
    """A group of duplicates, or one question, with its seeded place in [0, 1) and its task."""

    place: float
    name: str
    task: str
    members: tuple[str, ...]


Strata = dict[str, list[Unit]]


def units_of(
    queries: pa.Table, duplicates: pa.Table | None, salt: str, together: Together = "near"
) -> list[Unit]:
    """Units of the queries: what `one_question` keeps together."""
    tasks = dict(zip(*(queries.column(c).to_pylist() for c in ("query_id", "task")), strict=True))
    group = one_question(queries, duplicates, together)
    members: dict[str, list[str]] = defaultdict(list)
    for query in sorted(tasks):
        members[group[query]].append(query)
    return [
        Unit(hash01(f"{salt}|{name}"), name, tasks[rows[0]], tuple(rows))
        for name, rows in members.items()
    ]


def hash01(text: str) -> float:
    """Number in [0, 1) drawn by the SHA-256 of a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7]) / 2**56


def strata_of(units: Iterable[Unit], *, stratify: bool) -> Strata:
    """Units by task in order of name, in seeded order; all under one key where not stratified."""
    strata: Strata = defaultdict(list)
    for unit in sorted(units, key=lambda unit: (unit.place, unit.name)):
        strata[unit.task if stratify else ""].append(unit)
    return dict(sorted(strata.items()))


def size_of(units: Iterable[Unit]) -> int:
    """Number of questions in the units."""
    return sum(len(unit.members) for unit in units)


def counted(
    units: Sequence[Unit],
    source: Mapping[str, str],
    parts: Mapping[str, int],
    sources: Mapping[str, Mapping[str, int]],
    *,
    stratify: bool,
) -> list[tuple[str, str]]:
    """(query_id, split) in counts: `parts` of all questions, or `sources` one by one.

    A group of duplicates that spans sources goes with its first question, so it
    stays together; the other source then has fewer to give.

    Args:
        source: query_id → source.

    Raises:
        RecipeError: a source has no questions, or a count cannot be met.
    """
    if not sources:
        return by_counts(strata_of(units, stratify=stratify), where="split", **parts)
    unknown = sorted(set(sources) - set(source.values()))
    if unknown:
        raise RecipeError(
            f"split.sources names {unknown[0]!r}, of which there are no questions",
            where="split",
            next_step=f"known: {', '.join(sorted(set(source.values())))}",
        )
    rows: list[tuple[str, str]] = []
    for name in sorted(sources):
        own = [unit for unit in units if source[unit.members[0]] == name]
        strata = strata_of(own, stratify=stratify)
        rows += by_counts(strata, where=f"split, source {name!r}", **sources[name])
    return rows


def by_counts(
    strata: Strata, *, train: int, validation: int, test: int, where: str
) -> list[tuple[str, str]]:
    """(query_id, split) with exactly `test` and `validation` questions, strata in proportion.

    Each stratum gives its share of a count, by largest remainder. A group of
    duplicates that does not fit what is left of a share is passed over for the
    next; what no stratum could fill so is filled from all. Train takes what is
    left, up to `train`; questions beyond that are in no split.

    Raises:
        RecipeError: there are not enough questions for validation and test, or
            groups of duplicates are too large to meet a count.
    """
    left = dict(strata)
    total = sum(size_of(units) for units in left.values())
    if validation + test > total or (train and validation + test >= total):
        raise RecipeError(
            f"{total:,} questions cannot hold {test:,} for test and {validation:,} for "
            f"validation{' and a train set' if train else ''}",
            where=where,
            next_step="lower the counts, add questions, or scale the recipe (`--scale`)",
        )
    rows: list[tuple[str, str]] = []
    for name, count in (("test", test), ("validation", validation), ("train", train)):
        taken = _draw(left, count)
        short = count - len(taken)
        if short and name != "train":
            raise RecipeError(
                f"{name} lacks {short} of {count:,} questions: the groups of duplicates that "
                "are left are too large",
                where=where,
                next_step=f"lower the count for {name}, or remove duplicates (rule 'dedup')",
            )
        rows += [(query, name) for query in taken]
    return rows


def _draw(left: Strata, count: int) -> list[str]:
    """At most `count` questions, taken out of `left`: each stratum's share, then from all."""
    quotas = apportion({name: size_of(units) for name, units in left.items()}, count)
    taken: dict[str, Unit] = {}
    for name, quota in quotas.items():
        _fill(taken, left[name], quota)
    rest = (unit for units in left.values() for unit in units if unit.name not in taken)
    _fill(
        taken,
        sorted(rest, key=lambda unit: (unit.place, unit.name)),
        count - size_of(taken.values()),
    )
    for name, units in left.items():
        left[name] = [unit for unit in units if unit.name not in taken]
    return [query for unit in taken.values() for query in unit.members]


def _fill(taken: dict[str, Unit], units: Iterable[Unit], room: int) -> None:
    for unit in units:
        if len(unit.members) <= room:
            taken[unit.name] = unit
            room -= len(unit.members)


def apportion(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """`count` in proportion to sizes, whole, by largest remainder; never above a size.

    >>> apportion({"a": 5, "b": 3, "c": 2}, 5)
    {'a': 3, 'b': 1, 'c': 1}
    >>> apportion({"a": 1, "b": 1}, 5)
    {'a': 1, 'b': 1}
    """
    total = sum(sizes.values())
    if count >= total:
        return dict(sizes)
    exact = {name: size * count / total for name, size in sizes.items()}
    out = {name: int(share) for name, share in exact.items()}
    order = sorted(sizes, key=lambda name: (out[name] - exact[name], name))
    for name in order[: count - sum(out.values())]:
        out[name] += 1
    return out
