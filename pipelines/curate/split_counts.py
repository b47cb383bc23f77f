"""Splits in counts of questions: validation and test exact, train up to its count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipelines.errors import RecipeError


class Unit(Protocol):
    """Questions that stay together, and their seeded place."""

    @property
    def place(self) -> float: ...
    @property
    def name(self) -> str: ...
    @property
    def stratum(self) -> str: ...
    @property
    def members(self) -> tuple[str, ...]: ...


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
        return by_counts(_strata(units, stratify), where="split", **parts)
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
        rows += by_counts(_strata(own, stratify), where=f"split, source {name!r}", **sources[name])
    return rows


def _strata(units: Sequence[Unit], stratify: bool) -> dict[str, list[Unit]]:
    strata: dict[str, list[Unit]] = {}
    for unit in units:
        strata.setdefault(unit.stratum if stratify else "", []).append(unit)
    return strata


def by_counts(
    strata: Mapping[str, Sequence[Unit]], *, train: int, validation: int, test: int, where: str
) -> list[tuple[str, str]]:
    """(query_id, split) with exactly `test` and `validation` questions, strata in proportion.

    Each stratum gives its share of a count, by largest remainder. A group of
    duplicates that does not fit what is left of a share is passed over for the
    next; what no stratum could fill so is filled from all. Train takes what is
    left, up to `train`; beyond that, questions stand in no split.

    Raises:
        RecipeError: there are not enough questions for validation and test, or
            groups of duplicates are too large to meet a count.
    """
    left = {
        name: sorted(units, key=lambda unit: (unit.place, unit.name))
        for name, units in sorted(strata.items())
    }
    total = sum(_size(units) for units in left.values())
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


def _draw(left: dict[str, list[Unit]], count: int) -> list[str]:
    """At most `count` questions, taken out of `left`."""
    quotas = apportion({name: _size(units) for name, units in left.items()}, count)
    taken: list[str] = []
    for name, quota in quotas.items():
        taken += _fill(left, [(name, unit) for unit in left[name]], quota)
    everything = [(name, unit) for name, units in left.items() for unit in units]
    everything.sort(key=lambda pair: (pair[1].place, pair[1].name))
    return taken + _fill(left, everything, count - len(taken))


def _fill(left: dict[str, list[Unit]], units: list[tuple[str, Unit]], room: int) -> list[str]:
    taken: list[str] = []
    gone: dict[str, set[str]] = {}
    for stratum, unit in units:
        if len(taken) + len(unit.members) <= room:
            taken += unit.members
            gone.setdefault(stratum, set()).add(unit.name)
    for stratum, names in gone.items():
        left[stratum] = [unit for unit in left[stratum] if unit.name not in names]
    return taken


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


def _size(units: Sequence[Unit]) -> int:
    return sum(len(unit.members) for unit in units)
