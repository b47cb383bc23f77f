"""Figures that are stated of many questions: those that contradict one another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from routeyard.pipelines.ingest.results.roles import candidates, rank_of
from routeyard.pipelines.ingest.results.values import ReadingNote, numbers, plain, texts

_RATE = re.compile(r"rate|percent|pct|accuracy|acc$|score|pass\d", re.IGNORECASE)
_FAULTS = re.compile(r"error|timeout|malformed|exhausted|failed_to|crash", re.IGNORECASE)
_SHOWN = 3
#: Rows of which most agree, so that the others are wrong.
FEWEST, MOST = 5, 0.5


def figure_notes(table: pa.Table, arm: str | None) -> Iterator[ReadingNote]:
    """What is odd in a table with a row per model and figures of many questions each."""
    names = [n for n in table.column_names if not n.startswith("(") and n != arm]
    found = {n: v for n in names if (v := numbers(table.column(n))) is not None}
    who = _names(table, arm)
    counts = [c.column for c in candidates(table, "aggregate") if c.column in found]
    yield from _costs(found, who)
    yield from _twice(table, found, who)
    yield from _totals(found, counts, who)
    yield from _shares(found, counts, who)
    yield from _gaps(found, who)
    yield from _faults(found, counts, who)


def _names(table: pa.Table, arm: str | None) -> list[str]:
    if arm is None or arm not in table.column_names:
        return [str(place) for place in table.column("(at)").to_pylist()]
    return [str(name) for name in texts(table.column(arm)).to_pylist()]


def _some(who: Sequence[str], rows: np.ndarray) -> str:
    named = list(dict.fromkeys(who[int(k)] for k in rows))
    return ", ".join(named[:_SHOWN]) + (
        f" and {len(named) - _SHOWN}" if len(named) > _SHOWN else ""
    )


def _costs(found: dict[str, np.ndarray], who: Sequence[str]) -> Iterator[ReadingNote]:
    """Costs of 0 and missing ones beside models that cost something."""
    for name, values in found.items():
        if rank_of(name, "cost") is None or not (values > 0).any():
            continue
        zero, absent = np.flatnonzero(values == 0), np.flatnonzero(np.isnan(values))
        if len(zero):
            says = f"{len(zero):,} of {len(values):,} rows have {name!r} 0 ({_some(who, zero)})"
            yield ReadingNote("unpriced", f"{says}: unknown, not free", len(zero), (), name)
        if len(absent):
            says = (
                f"{len(absent):,} of {len(values):,} rows state no {name!r} ({_some(who, absent)})"
            )
            yield ReadingNote("unpriced", says, len(absent), (), name)


def _twice(
    table: pa.Table, found: dict[str, np.ndarray], who: Sequence[str]
) -> Iterator[ReadingNote]:
    """Models with several rows that no other column of words tells apart."""
    words = [
        n for n in table.column_names
        if not n.startswith("(") and n not in found and rank_of(n, "setting") is not None
    ]  # fmt: skip
    settings = [tuple(table.column(n)[k].as_py() for n in words) for k in range(len(who))]
    counted = Counter(zip(who, settings, strict=True))
    again = [name for (name, _), k in counted.items() if k > 1]
    if again and len(again) <= 0.2 * len(counted):
        says = f"{len(again):,} models have several rows ({', '.join(again[:_SHOWN])})"
        yield ReadingNote("figures", says, len(again), (), "models")


def _totals(
    found: dict[str, np.ndarray], counts: Sequence[str], who: Sequence[str]
) -> Iterator[ReadingNote]:
    """Rows over another number of questions than most."""
    for name in counts:
        there = found[name][~np.isnan(found[name])]
        if len(there) < FEWEST:
            continue
        values, number = np.unique(there, return_counts=True)
        usual = values[np.argmax(number)]
        odd = np.flatnonzero(~np.isnan(found[name]) & (found[name] != usual))
        if MOST * len(there) < number.max() < len(there):
            others = ", ".join(f"{v:g}" for v in np.unique(found[name][odd])[:_SHOWN])
            says = (
                f"{len(odd):,} of {len(there):,} rows are over {others} questions, the others over "
                f"{usual:g} ({_some(who, odd)})"
            )
            yield ReadingNote("figures", says, len(odd), (), name)


def _shares(
    found: dict[str, np.ndarray], counts: Sequence[str], who: Sequence[str]
) -> Iterator[ReadingNote]:
    """Rates that are not the numbers of right answers over those of questions beside them."""
    for rate in (n for n in found if _RATE.search(n)):
        for right in (n for n in found if n != rate and n not in counts and _alike(rate, n)):
            best: tuple[float, str, np.ndarray] | None = None
            for total in counts:
                with np.errstate(invalid="ignore", divide="ignore"):
                    share = found[right] / found[total]
                scale = 100.0 if np.nanmax(found[rate], initial=0) > 1.5 else 1.0
                there = ~np.isnan(share) & ~np.isnan(found[rate]) & np.isfinite(share)
                off = there & (np.abs(scale * share - found[rate]) > _rounding(found[rate]))
                part = float(off.sum() / max(there.sum(), 1))
                fits = there.sum() >= FEWEST and part < MOST
                if fits and best is None:
                    best = (part, total, np.flatnonzero(off))
            if best is not None and len(best[2]):
                says = (
                    f"{len(best[2]):,} rows state a {rate!r} that is not their {right!r} over "
                    f"{best[1]!r} ({_some(who, best[2])})"
                )
                yield ReadingNote("figures", says, len(best[2]), (), rate)


def _alike(rate: str, count: str) -> bool:
    """Whether a number of right answers is that of a rate: `pass_rate_2` and `pass_num_2`."""
    cut = re.compile(r"rate|percent|pct|num(?:ber)?|count|n_|_n$|accuracy|correct|right|solved")
    said = cut.search(count.lower()) is not None
    return said and plain(cut.sub("", rate.lower())) == plain(cut.sub("", count.lower()))


def _rounding(values: np.ndarray) -> float:
    """Half of the last decimal place that values are written with, and a little."""
    for places in range(6):
        if np.allclose(np.round(values, places), values, atol=1e-9, equal_nan=True):
            return 0.505 * 10.0**-places
    return 1e-6


def _gaps(found: dict[str, np.ndarray], who: Sequence[str]) -> Iterator[ReadingNote]:
    """Rows that lack figures that nearly all have."""
    figures = {
        n: v for n, v in found.items()
        if len(v) >= FEWEST and np.isnan(v).mean() < 0.2 and np.any(v[~np.isnan(v)] % 1 != 0)
    }  # fmt: skip
    odd = {n: np.flatnonzero(np.isnan(v)) for n, v in figures.items() if np.isnan(v).any()}
    odd = {n: rows for n, rows in odd.items() if rank_of(n, "cost") is None}
    if odd:
        rows = np.unique(np.concatenate(list(odd.values())))
        says = (
            f"{len(rows):,} rows lack {', '.join(list(odd)[:_SHOWN])} "
            f"({_some(who, rows)}): a mean over the others is over other questions"
        )
        yield ReadingNote("figures", says, len(rows), (), "figures")


def _faults(
    found: dict[str, np.ndarray], counts: Sequence[str], who: Sequence[str]
) -> Iterator[ReadingNote]:
    """Rows with errors in a quarter of their questions or more."""
    total = next((found[n] for n in counts), None)
    if total is None:
        return
    for name in (n for n in found if _FAULTS.search(n) and n not in counts):
        with np.errstate(invalid="ignore"):
            many = np.flatnonzero(found[name] >= np.maximum(0.25 * total, 5))
        if len(many):
            most = int(many[np.argmax(found[name][many])])
            says = (
                f"{len(many):,} rows have {name!r} in a quarter of their questions or more (most: "
                f"{who[most]}, {found[name][most]:g} of {total[most]:g} questions)"
            )
            yield ReadingNote("figures", says, len(many), (), name)
