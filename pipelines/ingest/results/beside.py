"""What is beside the answers: API calls, and figures of whole arms or of many questions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.pool import same_model
from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.values import (
    CACHED,
    FIGURES,
    ReadingNote,
    candidates,
    factor,
    numbers,
    plain,
    rank_of,
    texts,
    vocabulary,
)

# Logs of API calls beside results: what they cost, whom they asked, and what nobody can assign.
#
# A call belongs to no question, so that its tokens and its cost are no answer's; what is wrong with
# them is reported all the same.

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ApiCalls:
    """Calls of one kind.

    Attributes:
        asked, served: (n,) model that was asked for, and that answered; None where not said.
        cost, prompt, completion, cached: (n,) USD and tokens, NaN where not said.
    """

    asked: list[str | None]
    served: list[str | None]
    cost: np.ndarray
    prompt: np.ndarray
    completion: np.ndarray
    cached: np.ndarray


def calls_of(done: Assigned) -> ApiCalls | None:
    """The group's records as API calls; None where they have a question, or no tokens."""
    roles, table = done.roles, done.table
    if "question" in roles or "score" in roles or "completion_tokens" not in roles:
        return None
    named = [c.column for c in candidates(table, "arm")]
    asked = next((name for name in named if "response" not in name.lower()), roles.get("arm"))
    if asked is None:
        return None
    served = roles.get("served_model") or next(
        (name for name in table.column_names if rank_of(name, "served_model") is not None), None
    )
    cached = next((n for n in table.column_names if plain(n.rpartition(".")[2]) in CACHED), None)
    return ApiCalls(
        texts(table.column(asked)).to_pylist(),
        [None] * table.num_rows if served is None else texts(table.column(served)).to_pylist(),
        _floats(table, roles.get("cost"), "cost"),
        _floats(table, roles.get("prompt_tokens"), "prompt_tokens"),
        _floats(table, roles["completion_tokens"], "completion_tokens"),
        _floats(table, cached, "prompt_tokens"),
    )


def _floats(table: pa.Table, name: str | None, field: str) -> np.ndarray:
    values = None if name is None else numbers(table.column(name))
    if values is None or name is None:
        return np.full(table.num_rows, np.nan)
    return values * factor(name, field)


def call_notes(groups: Sequence[ApiCalls], arms: Iterable[str]) -> Iterator[ReadingNote]:
    """What a person has to know of calls beside the answers of some arms."""
    known = sorted(arms)
    for calls in groups:
        n = len(calls.asked)
        says = (
            f"{n:,} API calls name no question ({np.nansum(calls.prompt):,.0f} prompt and "
            f"{np.nansum(calls.completion):,.0f} completion tokens{_dollars(calls.cost)}): no "
            "answer's cost is known from them"
        )
        yield ReadingNote("calls", says, n, (), "API calls")
        yield from _unpriced(calls)
        yield from _of_others(calls, known)
        yield from _served(calls)
        if (cached := np.nansum(calls.cached)) > 0:
            says = (
                f"{cached:,.0f} of {np.nansum(calls.prompt):,.0f} prompt tokens of API calls were "
                "cached: at the price of a prompt token they are counted too dear"
            )
            yield ReadingNote("choice", says, 0, (), "API calls")


def _dollars(cost: np.ndarray) -> str:
    return "" if np.isnan(cost).all() else f", ${np.nansum(cost):,.6g}"


def _unpriced(calls: ApiCalls) -> Iterator[ReadingNote]:
    """Calls with tokens and without a cost, by model."""
    used = np.nan_to_num(calls.prompt) + np.nan_to_num(calls.completion) > 0
    for fault, bad in (("no cost", np.isnan(calls.cost)), ("a cost of 0", calls.cost == 0)):
        counted = Counter(
            name or "no model" for name, b in zip(calls.asked, bad & used, strict=True) if b
        )
        if n := counted.total():
            whom = ", ".join(f"{k:,} of {name}" for name, k in counted.most_common(_SHOWN))
            says = f"{n:,} of {len(bad):,} API calls ({whom}) state {fault}"
            yield ReadingNote(
                "unpriced", f"{says}, which is unknown and not free", n, (), "API calls"
            )


def _of_others(calls: ApiCalls, arms: Sequence[str]) -> Iterator[ReadingNote]:
    """Calls of models that are no arm: a simulated user, a judge, a part of a system."""
    counted = Counter(
        name for name in calls.asked if name and not any(same_model(name, arm) for arm in arms)
    )
    for name, k in counted.most_common(_SHOWN):
        if arms:
            says = (
                f"{k:,} of {len(calls.asked):,} API calls asked {name!r}, which is no arm here (a "
                "simulated user, a judge or a helper?): their tokens and costs are no arm's own"
            )
            yield ReadingNote("other_calls", says, k, (), name)


def _served(calls: ApiCalls) -> Iterator[ReadingNote]:
    """Calls that another model answered than was asked for."""
    counted = Counter(
        (asked, served)
        for asked, served in zip(calls.asked, calls.served, strict=True)
        if asked and served and not same_model(asked, served)
    )
    for (asked, served), k in counted.most_common(_SHOWN):
        says = f"{k:,} API calls that asked {asked!r} were answered by {served!r}"
        yield ReadingNote("served", says, k, (), asked)


# Figures that are stated of many questions: those that contradict one another.

_RATE = re.compile(r"rate|percent|pct|accuracy|acc$|score|pass\d", re.IGNORECASE)
_FAULTS = re.compile(r"error|timeout|malformed|exhausted|failed_to|crash", re.IGNORECASE)
#: Rows of which most agree, so that the others are wrong.
FEWEST, MOST = 5, 0.5


def figure_notes(table: pa.Table, arm: str | None) -> Iterator[ReadingNote]:
    """What is odd in a table with a row per model and figures of many questions each."""
    names = [n for n in table.column_names if not n.startswith("(") and n != arm]
    result = {n: v for n in names if (v := numbers(table.column(n))) is not None}
    counts = [c.column for c in candidates(table, "aggregate") if c.column in result]
    named = table.column(arm if arm in table.column_names else "(at)")
    rows = _Figures(table, result, counts, [str(name) for name in texts(named).to_pylist()])
    for check in (rows.costs, rows.twice, rows.totals, rows.shares, rows.gaps, rows.faults):
        yield from check()


@dataclass(frozen=True, slots=True)
class _Figures:
    """Figures of whole models.

    Attributes:
        columns: Columns of numbers, by name.
        counts: Those that count questions.
        who: Name of each row.
    """

    table: pa.Table
    columns: dict[str, np.ndarray]
    counts: list[str]
    who: list[str]

    def some(self, rows: np.ndarray) -> str:
        """Names of some rows."""
        named = list(dict.fromkeys(self.who[int(k)] for k in rows))
        more = f" and {len(named) - _SHOWN}" if len(named) > _SHOWN else ""
        return ", ".join(named[:_SHOWN]) + more

    def costs(self) -> Iterator[ReadingNote]:
        """Costs of 0 and missing ones beside models that cost something."""
        for name, values in self.columns.items():
            if rank_of(name, "cost") is None or not (values > 0).any():
                continue
            for says, end, bad in (
                (f"have {name!r} 0", ": unknown, not free", values == 0),
                (f"state no {name!r}", "", np.isnan(values)),
            ):
                if n := len(rows := np.flatnonzero(bad)):
                    says = f"{n:,} of {len(values):,} rows {says} ({self.some(rows)}){end}"
                    yield ReadingNote("unpriced", says, n, (), name)

    def twice(self) -> Iterator[ReadingNote]:
        """Models with several rows that no other column of words tells apart."""
        apart = [
            n for n in self.table.column_names
            if not n.startswith("(") and n not in self.columns and rank_of(n, "setting") is not None
        ]  # fmt: skip
        settings = [tuple(row.values()) for row in self.table.select(apart).to_pylist()]
        counted = Counter(zip(self.who, settings or [()] * len(self.who), strict=True))
        again = [name for (name, _), k in counted.items() if k > 1]
        if again and len(again) <= 0.2 * len(counted):
            says = f"{len(again):,} models have several rows ({', '.join(again[:_SHOWN])})"
            yield ReadingNote("figures", says, len(again), (), "models")

    def totals(self) -> Iterator[ReadingNote]:
        """Rows over another number of questions than most."""
        for name in self.counts:
            counted = self.columns[name]
            there = counted[~np.isnan(counted)]
            if len(there) < FEWEST:
                continue
            values, number = np.unique(there, return_counts=True)
            usual = values[np.argmax(number)]
            odd = np.flatnonzero(~np.isnan(counted) & (counted != usual))
            if MOST * len(there) < number.max() < len(there):
                others = ", ".join(f"{v:g}" for v in np.unique(counted[odd])[:_SHOWN])
                says = (
                    f"{len(odd):,} of {len(there):,} rows are over {others} questions, the others "
                    f"over {usual:g} ({self.some(odd)})"
                )
                yield ReadingNote("figures", says, len(odd), (), name)

    def shares(self) -> Iterator[ReadingNote]:
        """Rates that are not the numbers of right answers over those of questions beside them."""
        result = self.columns
        for rate in (n for n in result if _RATE.search(n)):
            scale = 100.0 if np.nanmax(result[rate], initial=0) > 1.5 else 1.0
            for right in (n for n in result if n not in (rate, *self.counts) and _alike(rate, n)):
                for total in self.counts:
                    with np.errstate(invalid="ignore", divide="ignore"):
                        share = result[right] / result[total]
                    there = ~np.isnan(result[rate]) & np.isfinite(share)
                    off = there & (np.abs(scale * share - result[rate]) > _rounding(result[rate]))
                    if there.sum() >= FEWEST and off.sum() < MOST * there.sum():
                        break
                else:
                    continue
                if n := len(rows := np.flatnonzero(off)):
                    says = (
                        f"{n:,} rows state a {rate!r} that is not their {right!r} over {total!r} "
                        f"({self.some(rows)})"
                    )
                    yield ReadingNote("figures", says, n, (), rate)

    def gaps(self) -> Iterator[ReadingNote]:
        """Rows that lack figures that nearly all have."""
        odd = {
            n: np.flatnonzero(np.isnan(v)) for n, v in self.columns.items()
            if len(v) >= FEWEST and 0 < np.isnan(v).mean() < 0.2
            and np.any(v[~np.isnan(v)] % 1 != 0) and rank_of(n, "cost") is None
        }  # fmt: skip
        if odd:
            rows = np.unique(np.concatenate(list(odd.values())))
            says = (
                f"{len(rows):,} rows lack {', '.join(list(odd)[:_SHOWN])} "
                f"({self.some(rows)}): a mean over the others is over other questions"
            )
            yield ReadingNote("figures", says, len(rows), (), "figures")

    def faults(self) -> Iterator[ReadingNote]:
        """Rows with errors in a quarter of their questions or more."""
        if not self.counts:
            return
        total = self.columns[self.counts[0]]
        for name in (n for n in self.columns if _FAULTS.search(n) and n not in self.counts):
            faults = self.columns[name]
            with np.errstate(invalid="ignore"):
                many = np.flatnonzero(faults >= np.maximum(0.25 * total, 5))
            if len(many):
                most = int(many[np.argmax(faults[many])])
                says = (
                    f"{len(many):,} rows have {name!r} in a quarter of their questions or more "
                    f"(most: {self.who[most]}, {faults[most]:g} of {total[most]:g} questions)"
                )
                yield ReadingNote("figures", says, len(many), (), name)


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


# Absolute paths in strangers' files: they name people and machines, and travel with a copy.

#: Bytes of each file, and of all files, that are looked at.
_OF_FILE, _OF_ALL = 4_000_000, 256_000_000
_PATH = re.compile(
    rb"(?:(?<![\w.])/(?:Users|home)/|\b[A-Z]:\\{1,2}Users\\{1,2})([A-Za-z][\w.-]{1,30})[/\\]"
)
_TEXT = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".yaml", ".yml", ".txt", ".log", ".md")


def path_notes(paths: Sequence[Path], root: Path) -> list[ReadingNote]:
    """A note of the files with absolute paths of somebody's machine; empty without any."""
    counts: Counter[str] = Counter()
    held, left = [], _OF_ALL
    for path in paths:
        if path.suffix.lower() not in _TEXT or left <= 0:
            continue
        with path.open("rb") as stream:
            data = stream.read(min(_OF_FILE, left))
        left -= len(data)
        homes = _PATH.finditer(data)
        names = [m for m in homes if m[1].decode().lower() not in vocabulary("accounts")]
        if names:
            held.append(path.relative_to(root).as_posix() if path != root else path.name)
            counts.update(m[0].decode(errors="replace") for m in names)
    if not held:
        return []
    shown = ", ".join(repr(item) for item, _ in counts.most_common(_SHOWN))
    says = (
        f"{len(held):,} files hold absolute paths of somebody's machine ({shown}): they are "
        "published with a copy of the files"
    )
    return [ReadingNote("paths", says, len(held), tuple(held[:_SHOWN]), "the files")]


# Figures of whole arms that a source states beside its rows, compared with the rows.

_WORDS = {"accuracy": "accuracy", "mean_cost": "mean cost", "total_cost": "total cost"}
#: Relative difference of a cost that rounding does not explain.
_COST = 0.01


@dataclass(frozen=True, slots=True)
class StatedFigure:
    """One figure of an arm: its kind, value, and the column that states it."""

    arm: str
    kind: str
    value: float
    column: str


def figures_of(done: Assigned, columns: Sequence[str]) -> set[StatedFigure]:
    """Figures of whole arms in these columns; without a column of the arm none."""
    table, arm = done.table, done.roles.get("arm")
    figures: set[StatedFigure] = set()
    if arm is None or arm not in table.column_names:
        return figures
    names = texts(table.column(arm)).to_pylist()
    for column in columns:
        leaf = plain(column.rpartition(".")[2])
        kind = next((k for k, called in FIGURES.items() if called.fullmatch(leaf)), None)
        values = None if kind is None else numbers(table.column(column))
        if kind is None or values is None:
            continue
        values = values * (factor(column, "cost") if "cost" in kind else 1.0)
        figures |= {
            StatedFigure(name, kind, float(value), column.removeprefix("(name)."))
            for name, value in zip(names, values, strict=True)
            if name and not np.isnan(value)
        }
    return figures


def stated_notes(figures: set[StatedFigure], table: pa.Table) -> Iterator[ReadingNote]:
    """Stated figures that the rows contradict; an arm with several figures of a kind is left out.

    Args:
        table: The recording of all rows.
    """
    by_kind: dict[str, dict[str, list[StatedFigure]]] = defaultdict(lambda: defaultdict(list))
    for figure in figures:
        by_kind[figure.kind][figure.arm].append(figure)
    if not by_kind:
        return
    ours = _of_rows(table)
    for kind, arms in sorted(by_kind.items()):
        off, compared = [], 0
        for arm, said in sorted(arms.items()):
            names = [name for name in ours if name == arm or same_model(name, arm)]
            if len(said) != 1 or len(names) != 1 or not (mine := ours[names[0]].get(kind)):
                continue
            compared += 1
            if not any(_agree(said[0], value) for value in mine):
                off.append(f"{arm}: {said[0].value:g} stated, {mine[0]:.6g} over its rows")
        if off:
            listed = "; ".join(off[:_SHOWN]) + (
                f"; and {len(off) - 3} more" if len(off) > 3 else ""
            )
            column = next(iter(arms.values()))[0].column
            says = (
                f"{column!r} states another {_WORDS[kind]} than the rows give for {len(off)} of "
                f"{compared} arms ({listed})"
            )
            yield ReadingNote("figures", says, len(off), (), column)


def _of_rows(table: pa.Table) -> dict[str, dict[str, list[float]]]:
    """Arm → kind of figure → values that the rows give, missing ones left out or as zeros."""
    coded = table.column("arm").combine_chunks().dictionary_encode()
    arm = np.asarray(coded.indices.fill_null(-1))
    result: dict[str, dict[str, list[float]]] = {}
    score, cost = (
        table.column(name).to_numpy(zero_copy_only=False) for name in ("score", "cost_usd")
    )
    questions = table.column("question").dictionary_encode().combine_chunks()
    everything = len(questions.dictionary)
    for code, name in enumerate(coded.dictionary.to_pylist()):
        mine = arm == code
        own, paid = score[mine], cost[mine]
        own, paid = own[~np.isnan(own)], paid[~np.isnan(paid)]
        result[name] = {}
        if len(own):
            result[name]["accuracy"] = [own.mean(), own.sum() / max(mine.sum(), everything)]
        if len(paid) and len(paid) == mine.sum():
            result[name]["mean_cost"], result[name]["total_cost"] = [paid.mean()], [paid.sum()]
    return result


def _agree(said: StatedFigure, ours: float) -> bool:
    """Whether a figure is ours, give or take the rounding it is written with."""
    if said.kind != "accuracy":
        return abs(said.value - ours) <= _COST * max(abs(ours), 1e-9) + _half_place(said.value)
    percent = abs(100 * ours - said.value) <= _half_place(said.value)
    return percent or abs(ours - said.value) <= _half_place(said.value)


def _half_place(value: float) -> float:
    """Half of the last decimal place of a number as it is written, at least 5e-5."""
    places = min(len(repr(value).partition(".")[2].rstrip("0")), 4)
    return 0.505 * 10.0 ** -max(places, 1)
