"""`routeyard compare`: two routers on the same questions of a release, all differences paired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.extensions.traffic.percentiles import Calls, PairedPercentile, paired_percentiles
from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.errors import BadInput, UnknownName, did_you_mean
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval

#: Every call of a release, with the label and the mean cost of its pair of question and model.
_SQL = """
SELECT r.query_id, r.model_id, r.latency_s, o.score, o.cost_usd / o.n_responses AS cost_usd,
  CAST(r.status IN ('error', 'timeout', 'unanswered') AS INTEGER) AS failed
FROM responses r JOIN outcomes o ON o.query_id = r.query_id AND o.model_id = r.model_id
"""
FORMS = "always:MODEL, RESULTS:ROUTER of a folder that `evaluate` wrote, or a file of choices"
#: A value with the ends of its 95 % interval.
Estimate = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class PairedMean:
    """Means of two routers over the questions where both are known, and first less second."""

    first: Estimate
    second: Estimate
    difference: Estimate
    questions: int


@dataclass(frozen=True)
class RouterComparison:
    """Two routers on the same questions.

    Attributes:
        same: Questions for which both choose the same model.
        only_first, only_second: Questions that only one of them answers right.
        notes: What is left out or unknown, one sentence each.
    """

    first: str
    second: str
    questions: int
    same: int
    accuracy: PairedMean
    only_first: int
    only_second: int
    cost_usd: PairedMean
    latency: list[PairedPercentile]
    notes: list[str]

    def data(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """The comparison for people."""
        yield f"{self.questions:,} questions, the same model chosen for {self.same:,} of them"
        yield f"{'':<10} {self.first:<34} {self.second:<34} first − second (95 % interval)"
        yield _line("accuracy", self.accuracy, 100, " %", " points")
        yield (
            f"{'':<10} only the first is right: {self.only_first:,}; only the second: "
            f"{self.only_second:,}"
        )
        yield _line("cost", self.cost_usd, 1, " USD", " USD")
        for one in self.latency:
            name = f"p{100 * one.first.share:g}"
            ends = (one.difference, one.low, one.high)
            said = (
                f"cannot be told: {name} needs {one.needed} questions"
                if np.isnan(one.difference)
                else _estimate(ends, 1, " s", "+")
            )
            both = (str(of).removeprefix(f"{name} ") for of in (one.first, one.second))
            yield f"{name:<10} " + "".join(f"{text:<35}" for text in both) + said
        yield from (f"note: {note}" for note in self.notes)


def compare_routers(
    release: Path,
    first: str,
    second: str,
    *,
    scheme: str | None = None,
    decision_s: tuple[float, float] = (0.0, 0.0),
    resamples: int = 2_000,
    seed: int = 0,
) -> RouterComparison:
    """Accuracy, cost and latency of two routers on a release's test questions, and differences.

    Every resample draws whole questions, the same for both routers.

    Args:
        first, second: A router in one of `FORMS`.
        scheme: Split whose test questions count; all questions where the release has none.
        decision_s: Seconds that each router takes to decide, added to each of its calls.

    Raises:
        BadInput: it is no release, a router is in no form, or no question has both choices.
    """
    if not release.exists():
        raise BadInput(
            "there is no such release",
            where=str(release),
            next_step="give the folder of a release, such as yard/releases/NAME/1.0.0",
        )
    if not (release / "manifest.json").is_file():
        raise BadInput(
            "a release is expected, where every model answered every question",
            where=str(release),
            next_step="in a log only the chosen arm has an outcome and a latency: `routeyard "
            "shadow` says what it can tell of another router",
        )
    from routeyard.pipelines.release.reader import open_release

    notes: list[str] = []
    with open_release(release) as opened:
        asked = _asked(opened, scheme)
        chosen = [_choices(text, asked, opened.sql("SELECT model_id FROM models"), notes)
                  for text in (first, second)]  # fmt: skip
        shared = sorted(chosen[0].keys() & chosen[1].keys())
        if not shared:
            raise BadInput(
                "no test question has a choice of both routers", where=f"{first}, {second}"
            )
        if len(shared) < len(asked):
            notes.append(f"{len(asked) - len(shared):,} test questions lack a choice: left out")
        answers = opened.sql(_SQL)
    cells, calls = zip(*(_answers(answers, shared, one) for one in chosen), strict=True)
    draws = {"resamples": resamples, "seed": seed}
    score, cost = (np.stack([one[k] for one in cells], axis=1) for k in (0, 1))
    accuracy, cost_usd = _means(score, **draws), _means(cost, **draws)
    right = np.where(np.isnan(score).any(axis=1)[:, None], np.nan, score)
    seconds: list[Calls] = []
    for name, (latency, question, failed), more in zip(
        (first, second), calls, decision_s, strict=True
    ):
        seconds.append((latency + more, question))
        if failed:
            notes.append(f"{failed:,} calls of {name} failed: they have no latency, so that its "
                         "percentiles are of the calls that succeeded")  # fmt: skip
    told = [("accuracy", accuracy), ("cost", cost_usd)]
    notes += [
        f"{name}: {len(shared) - one.questions:,} of {len(shared):,} questions lack a known value "
        "of one of the routers and are left out"
        for name, one in told
        if one.questions < len(shared)
    ]
    latency = paired_percentiles(seconds[0], seconds[1], resamples=resamples, seed=seed)
    if not latency[0].first.calls:
        notes.append("latency: no question has one of both routers")
    return RouterComparison(
        first, second, len(shared), sum(chosen[0][q] == chosen[1][q] for q in shared), accuracy,
        int((right[:, 0] > right[:, 1]).sum()), int((right[:, 1] > right[:, 0]).sum()), cost_usd,
        latency, notes,
    )  # fmt: skip


def _asked(opened: Any, scheme: str | None) -> set[str]:
    """Test questions of a split; all where the release has no split."""
    from routeyard.schemas.release import usual_scheme

    table = opened.sql("SELECT DISTINCT scheme FROM splits") if "splits" in opened.tables else None
    schemes = table.column(0).to_pylist() if table is not None else []
    if not schemes:
        return set(opened.sql("SELECT query_id FROM queries").column(0).to_pylist())
    name = scheme or usual_scheme(schemes)
    if name not in schemes:
        raise UnknownName(f"no split scheme {name!r}", next_step=did_you_mean(name, schemes))
    rows = opened.sql("SELECT query_id, scheme FROM splits WHERE split = 'test'").to_pylist()
    return {row["query_id"] for row in rows if row["scheme"] == name}


def _choices(text: str, asked: set[str], models: pa.Table, notes: list[str]) -> dict[str, str]:
    """Test question → model that a router chooses."""
    names = set(models.column(0).to_pylist())
    place, _, router = text.partition(":")
    if place == "always":
        found = dict.fromkeys(asked, router)
    elif router and Path(place).is_dir():
        found = _of_evaluation(Path(place), router)
    elif Path(text).is_file():
        from routeyard.flows.evaluation.submission import choices_only

        rows = choices_only(Path(text))
        ids = rows.column("query_id").to_pylist()
        found = dict(zip(ids, rows.column("model_id").to_pylist(), strict=True))
        if len(found) < len(ids):
            raise BadInput(f"{len(ids) - len(found):,} questions are chosen for twice", where=text)
    else:
        raise BadInput(
            f"{text!r} is no router",
            next_step=f"did you mean 'always:{text}'? Else give {FORMS}"
            if text in names
            else f"give {FORMS}",
        )
    if unknown := sorted({*map(str, found.values())} - names):
        raise UnknownName(
            f"{text} chooses {unknown[0]!r}, which the release lacks",
            next_step=did_you_mean(unknown[0], sorted(names)),
        )
    if beyond := len(found.keys() - asked):
        notes.append(f"{beyond:,} choices of {text} are of no test question: left out")
    return {query: model for query, model in found.items() if query in asked}


def _of_evaluation(folder: Path, router: str) -> dict[str, str]:
    import pyarrow.parquet as pq

    file = folder / "choices.parquet"
    if not file.is_file():
        raise BadInput("expected a folder that `routeyard evaluate` wrote", where=str(folder))
    rows = pq.read_table(file, columns=["query_id", "router", "model_id"]).to_pylist()
    found = {row["query_id"]: row["model_id"] for row in rows if row["router"] == router}
    if not found:
        known = sorted({row["router"] for row in rows})
        raise UnknownName(
            f"no router {router!r} in {folder}", next_step=did_you_mean(router, known)
        )
    return found


def _answers(
    answers: pa.Table, shared: list[str], choice: dict[str, str]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Any, int]]:
    """((scores, USD) by question, (seconds, question of each call, calls that failed))."""
    picked = pa.table({"query_id": shared, "model_id": [choice[q] for q in shared],
                       "place": np.arange(len(shared))})  # fmt: skip
    table = answers.join(picked, ["query_id", "model_id"], join_type="inner")

    def column(name: str) -> Floats:
        return np.asarray(table.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)

    place, failed = column("place").astype(np.int64), column("failed") == 1
    score, cost = np.full((2, len(shared)), np.nan)
    score[place] = column("score")
    cost[place] = column("cost_usd")
    latency = np.where(failed, np.nan, column("latency_s"))
    return (score, cost), (latency, place, int(failed.sum()))


def _means(values: Floats, *, resamples: int, seed: int) -> PairedMean:
    known = values[~np.isnan(values).any(axis=1)]
    if not len(known):
        nan = (float("nan"),) * 3
        return PairedMean(nan, nan, nan, 0)
    three = np.column_stack([known, known[:, 0] - known[:, 1]])
    drawn = Draws(len(known), resamples, seed).means(three)
    first, second, difference = (
        (float(three[:, k].mean()), *interval(drawn[:, k])) for k in range(3)
    )
    return PairedMean(first, second, difference, len(known))


def _line(name: str, found: PairedMean, scale: float, unit: str, difference: str) -> str:
    if not found.questions:
        return f"{name:<10} not known"
    both = "".join(f"{_estimate(one, scale, unit):<35}" for one in (found.first, found.second))
    return f"{name:<10} {both}{_estimate(found.difference, scale, difference, '+')}"


def _estimate(found: Estimate, scale: float, unit: str, sign: str = "") -> str:
    value, low, high = (scale * one for one in found)
    return f"{value:{sign}.3g}{unit} ({low:{sign}.3g} to {high:{sign}.3g})"
