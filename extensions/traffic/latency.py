"""`routeyard latency`: percentiles, promises, and a rule that keeps a deadline on later hours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.extensions.traffic.percentiles import (
    Percentile,
    PromiseReport,
    by_group,
    fit_deadline,
    split_by_time,
    under_promise,
)
from routeyard.extensions.traffic.reading import read_steps
from routeyard.pipelines.common.arrays import Array, Bools, Floats, Ints
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.trajectories import seconds

#: Calls of a release with what they were worth; one row for each question, model and sample.
_SQL = """
SELECT r.query_id, r.model_id AS arm, q.task, r.latency_s, r.requested_at, l.score, r.cost_usd
FROM responses r JOIN queries q USING (query_id)
LEFT JOIN labels l ON l.query_id = r.query_id AND l.model_id = r.model_id
WHERE r.status NOT IN ('error', 'timeout', 'unanswered') ORDER BY ALL
"""
BY = ("arm", "task", "hour")
#: Share of all calls below which the earlier or the later hours tell too little.
_LEAST_SIDE = 0.1


@dataclass(frozen=True)
class LatencyReport:
    """Latency of recorded calls.

    Attributes:
        groups: Arm, task or hour → percentiles.
        promises: Arm (of every call) or the deadline's rule → what it does on the held-out hours.
        rule: How the rule with a deadline was made; None where it cannot be.
        notes: What is unknown, one sentence each.
    """

    by: str
    groups: Mapping[str, list[Percentile]]
    promises: Mapping[str, PromiseReport]
    rule: str | None
    notes: list[str]

    def data(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """The report for people."""
        for name, rows in self.groups.items():
            calls = rows[0].calls
            yield f"{self.by} {name}: {'; '.join(map(str, rows))}; {calls:,} calls"
        if self.rule is not None:
            yield self.rule
        for name, report in self.promises.items():
            first, *more = report.lines()
            yield f"{name}: {first}"
            yield from more
        yield from (f"note: {note}" for note in self.notes)


@dataclass(frozen=True)
class _Calls:
    task: Array
    arm: Array
    group: Ints
    latency: Floats
    time: Floats
    score: Floats
    cost: Floats


def latency_report(
    path: Path,
    *,
    by: str = "arm",
    limit_s: float | None = None,
    share: float = 0.95,
    decision_s: float = 0.0,
    session: str | None = None,
    resamples: int = 2_000,
) -> LatencyReport:
    """Percentiles of recorded calls and, with a limit, who keeps it on later hours.

    Args:
        path: A release, or steps and logs as `read_steps` takes them.
        by: What the percentiles are grouped by: `arm`, `task` or `hour` (UTC).
        limit_s: Seconds that `share` of the calls are promised not to exceed.
        decision_s: Seconds that a router takes to decide, added to each of its calls.

    Raises:
        BadInput: no call has a latency.
    """
    if by not in BY or not 0 < share < 1:
        raise BadInput(f"expected one of {', '.join(BY)} and a share between 0 and 1")
    calls, full = _calls(path, session)
    if np.isnan(calls.latency).all():
        raise BadInput(
            "no call has a latency",
            where=str(path),
            next_step="name a release or a log that states seconds (`latency_s`) of each call",
        )
    keys = {"arm": calls.arm, "task": calls.task, "hour": _hours(calls.time)}[by]
    groups = by_group(calls.latency, keys, resamples=resamples)
    notes = []
    if unknown := int(np.isnan(calls.latency).sum()):
        notes.append(f"{unknown:,} calls have no latency and are left out")
    if limit_s is None:
        return LatencyReport(by, groups, {}, None, notes)
    train, test, how = _halves(calls, notes)
    promises = {
        str(arm): _promise(calls, test & (calls.arm == arm), limit_s, share, 0.0, resamples)
        for arm in np.unique(calls.arm)
    }
    rule = None
    if full:
        rule, chosen = _by_rule(calls, train, test, limit_s, share, decision_s)
        promises["rule"] = _promise(calls, chosen, limit_s, share, decision_s, resamples)
        rule += f"; {how}"
    else:
        notes.append(
            "a rule that chooses among arms cannot be tested: only the arm that was chosen has a "
            "latency in each call"
        )
    return LatencyReport(by, groups, promises, rule, notes)


def _calls(path: Path, session: str | None) -> tuple[_Calls, bool]:
    """(calls, whether several arms answered the same question)."""
    if (path / "manifest.json").is_file():
        from routeyard.pipelines.release.reader import open_release

        with open_release(path) as release:
            table = release.sql(_SQL)
        full = True
    else:
        steps = read_steps(path, session=session).steps
        arms = [a or b for a, b in zip(*(steps.column(n).to_pylist() for n in ("arm", "acted_by")),
                                       strict=True)]  # fmt: skip
        table = pa.table(
            {"query_id": steps.column("query_id"), "arm": arms, "task": steps.column("query_id"),
             "latency_s": steps.column("latency_s"), "requested_at": steps.column("requested_at"),
             "score": steps.column("outcome"), "cost_usd": steps.column("cost_usd")}
        )  # fmt: skip
        full = False

    def column(name: str) -> Floats:
        return np.asarray(table.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)

    names = [np.array(table.column(n).to_pylist(), dtype=str) for n in ("query_id", "arm", "task")]
    codes = np.unique(names[0], return_inverse=True)[1]
    return _Calls(
        names[2], names[1], codes, column("latency_s"), seconds(table, "requested_at"),
        column("score"), column("cost_usd"),
    ), full  # fmt: skip


def _hours(time: Floats) -> Array:
    known = ~np.isnan(time)
    hours = np.full(len(time), "unknown", dtype="<U16")
    hours[known] = time[known].astype("datetime64[s]").astype("datetime64[h]").astype(str)
    return hours


def _halves(calls: _Calls, notes: list[str]) -> tuple[Bools, Bools, str]:
    """(train, test, how): earlier and later hours, else halves of the questions."""
    train, test = split_by_time(calls.time)
    if min(train.sum(), test.sum()) >= _LEAST_SIDE * len(train):
        return train, test, "learned on the earlier hours, measured on the later ones"
    notes.append(
        "nearly all calls are of one hour or have no time: halves of the questions are used in "
        "place of hours, and what changes with time is unknown"
    )
    half = np.random.default_rng(0).permutation(int(calls.group.max()) + 1) % 2 == 0
    return half[calls.group], ~half[calls.group], "learned on one half of the questions"


def _promise(
    calls: _Calls, rows: Bools, limit_s: float, share: float, decision_s: float, resamples: int
) -> PromiseReport:
    return under_promise(
        calls.latency[rows], calls.score[rows], calls.cost[rows], limit_s, share,
        decision_s=decision_s, groups=calls.group[rows], resamples=resamples,
    )  # fmt: skip


def _by_rule(
    calls: _Calls, train: Bools, test: Bools, limit_s: float, share: float, decision_s: float
) -> tuple[str, Bools]:
    """(text of the rule, test calls it selects); scores are means by task of the train part."""
    arms, arm = np.unique(calls.arm, return_inverse=True)
    tasks, task = np.unique(calls.task, return_inverse=True)
    known = train & ~np.isnan(calls.score)
    overall = _cell_means(np.zeros(len(arm), np.int64), arm, calls.score, known, 1, len(arms))
    means = _cell_means(task, arm, calls.score, known, len(tasks), len(arms))
    means = np.where(np.isnan(means), np.nan_to_num(overall), means)
    latency = np.full((int(train.sum()), len(arms)), np.nan)
    latency[np.arange(len(latency)), arm[train]] = calls.latency[train] + decision_s
    rule = fit_deadline(means[task[train]], latency, limit_s, share)
    choice = rule.choose(means)[task]
    said = f"rule: best mean score by task − {rule.weight:.3g} × share of late calls of the arm" + (
        "" if rule.attainable else " (even the fastest arm breaks the promise)"
    )
    return said, test & (choice == arm)


def _cell_means(
    row: Ints, column: Ints, values: Floats, where: Bools, rows: int, columns: int
) -> Floats:
    place = row[where] * columns + column[where]
    sums = np.bincount(place, values[where], rows * columns)
    counts = np.bincount(place, minlength=rows * columns)
    found = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return np.asarray(found.reshape(rows, columns))
