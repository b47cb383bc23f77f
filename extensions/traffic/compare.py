"""`routeyard compare` and `replay`: two routers, arms, recorded steps under policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.extensions.traffic.latency import Calls, PairedPercentile, paired_percentiles
from routeyard.extensions.traffic.outcome import (
    CacheCheck,
    PolicyCost,
    UsageCost,
    assumptions,
    cache_check,
    policy_costs,
    stated_cost,
    usage_cost,
)
from routeyard.extensions.traffic.reading import arm_prices, arms_in, page, read_steps, with_ends
from routeyard.extensions.traffic.replay import (
    StepFinding,
    SufficientArms,
    Trajectories,
    audit_steps,
    policy_arms,
    sufficient_arms,
    trajectories_of,
)
from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.trajectories import ArmPrice, cache_rule
from routeyard.pipelines.evaluate.axis_steps import AxisStep, axis_steps
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.schemas.errors import BadInput, UnknownName, did_you_mean

# `routeyard replay`: recorded steps under stated policies of arms, with what it rests on.

#: Name of the recorded arms' cost where prices and cache rules tell it, not the log.
MODELLED = "recorded, modelled"


@dataclass(frozen=True)
class ReplayReport:
    """Costs of policies over recorded steps, and everything they rest on.

    Attributes:
        costs: Of each policy, modelled; before the recorded arms' what the log states of them.
        usage: What the log's own token classes cost at the stated prices.
        check: Cached tokens that replaying the recorded arms predicts, beside the recorded ones.
        sufficient: The cheapest arm that sufficed, where several were executed.
    """

    steps: int
    trajectories: int
    tasks: int
    costs: list[PolicyCost]
    usage: UsageCost
    check: CacheCheck | None
    sufficient: SufficientArms
    prices: Mapping[str, ArmPrice]
    assumptions: list[str]
    findings: list[StepFinding]
    doubts: list[str]

    @property
    def first(self) -> PolicyCost:
        """The policy that the others are compared with."""
        return next(item for item in self.costs if item.policy != "recorded")

    @property
    def width(self) -> int:
        return max(len(item.policy) for item in self.costs)

    def lines(self) -> Iterator[str]:
        """The report for people."""
        return page("replay", self)


def replay_steps(
    path: Path,
    policies: Sequence[str],
    *,
    pool: Path | None = None,
    caches: Sequence[str] = (),
    named: str | None = None,
    resamples: int = 1_000,
    seed: int = 0,
) -> ReplayReport:
    """What recorded steps would have cost under other policies of arms.

    Args:
        path: A release with `steps`, the folder of an import, a Parquet file of steps, or a log.
        policies: Forms of `FORMS`; the first is what the others are compared with.
        pool: File with prices of the arms.
        caches: `ARM=RULE` each, in place of the rule of the arm's provider.

    Raises:
        BadInput: there are no steps or no prices, or a policy cannot be read.
    """
    recorded = read_steps(path, named=named)
    steps = trajectories_of(recorded.steps)
    prices = arm_prices(recorded.models, pool, caches, arms_in(policies, steps.arms))
    if not prices:
        raise BadInput(
            "no prices are known",
            where=str(path),
            next_step="give a file of models with price_in, price_out, price_cache_read and "
            "price_cache_write (USD per 10^6 tokens): --pool pool.yaml",
        )
    names = tuple(sorted({*prices, *steps.arms}))
    chosen = {text: policy_arms(text, steps, names, recorded.steps) for text in policies}
    draws = {"resamples": resamples, "seed": seed}
    costs = list(_named(steps, policy_costs(steps, chosen, prices, names, **draws), **draws))
    return ReplayReport(
        steps=len(steps),
        trajectories=int(steps.trajectory[-1]) + 1,
        tasks=len(steps.tasks),
        costs=costs,
        usage=usage_cost(steps, [(-np.inf, prices)]),
        check=cache_check(steps, prices),
        sufficient=sufficient_arms(recorded.steps),
        prices=prices,
        assumptions=[*assumptions(steps, names), *_rules(prices, chosen, names)],
        findings=audit_steps(recorded.steps),
        doubts=list(recorded.doubts),
    )


def _named(steps: Trajectories, costs: Sequence[PolicyCost], **draws: int) -> Iterator[PolicyCost]:
    """The costs, with `recorded` for what the log states and `recorded, modelled` for the rest."""
    for cost in costs:
        if cost.policy == "recorded":
            if (stated := stated_cost(steps, cost, **draws)) is not None:
                yield stated
            cost = replace(cost, policy=MODELLED)
        yield cost


def _rules(
    prices: Mapping[str, ArmPrice], chosen: Mapping[str, Any], names: Sequence[str]
) -> Iterator[str]:
    """Prices and cache rule of each arm that a policy uses."""
    used = sorted({names[k] for arms in chosen.values() for k in np.unique(arms)})
    for name in used:
        price = prices.get(name)
        if price is None:
            yield f"{name}: no price is stated"
            continue
        rule = cache_rule(price.rule)
        stated = {"in": price.input, "out": price.output, "read": price.read, "write": price.write}
        rates = ", ".join(f"{word} {usd:g}" for word, usd in stated.items() if usd is not None)
        where = f" ({price.source})" if price.source else ""
        long = "" if price.up_to is None else f", for prompts up to {price.up_to:,} tokens"
        yield (
            f"{name}: USD per 10^6 tokens {rates}{long}{where}; cache {rule.name} ({rule.source})"
        )


#: Tasks with questions that flip back, shown for each step.
SHOWN = 5


@dataclass(frozen=True)
class ArmsReport:
    """Steps along the axes of a release's arms.

    Attributes:
        cannot: What the release cannot tell of them, one sentence each.
    """

    steps: list[AxisStep]
    cannot: list[str]

    def data(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self) | {"monotone": {" ".join(k): v for k, v in self._monotone().items()}}

    def lines(self) -> Iterator[str]:
        """The report for people."""
        for line, said in self._monotone().items():
            model, axis, fixed = line
            yield f"{model}, {axis}{f' ({fixed})' if fixed else ''}: {said}"
            for step in self.steps:
                if (step.model, step.axis, step.fixed) == line:
                    yield from _step(step)
        yield from self.cannot

    def _monotone(self) -> dict[tuple[str, str, str], str]:
        """(model, axis, other axes) → whether more is better all along."""
        lines: dict[tuple[str, str, str], list[AxisStep]] = {}
        for step in self.steps:
            lines.setdefault((step.model, step.axis, step.fixed), []).append(step)
        sentences = {}
        for line, steps in lines.items():
            rises = [item.rises for item in steps]
            falls = [" → ".join(item.names) for item in steps if item.rises is False]
            if falls:
                sentences[line] = f"more is not always better: it falls from {', '.join(falls)}"
            elif all(rises):
                sentences[line] = "more is better at every step"
            else:
                unclear = [" → ".join(item.names) for item in steps if item.rises is None]
                sentences[line] = f"whether more is better is unknown from {', '.join(unclear)}"
        return sentences


def _step(step: AxisStep) -> Iterator[str]:
    cost = "cost unknown" if step.cost is None else f"{with_ends(step.cost)} USD a question"
    point = "" if step.per_point is None else f", {with_ends(step.per_point)} USD a right answer"
    yield (
        f"  {step.names[0]} → {step.names[1]}: {step.less:.3f} → {step.more:.3f} "
        f"(gain {with_ends(step.gain)}), {step.gained:.1%} gained, {step.flipped_back:.1%} flip "
        f"back; {cost}{point}; {step.questions:,} questions"
    )
    shown = [f"{task} {count} ({', '.join(ids)})" for task, (count, ids) in step.back.items()]
    if shown:
        more = f"; {len(shown) - SHOWN} more tasks" if len(shown) > SHOWN else ""
        yield f"    flip back: {'; '.join(shown[:SHOWN])}{more}"


def arms_report(release: Path, *, resamples: int = 2_000, seed: int = 0) -> ArmsReport:
    """Each step along each axis of the arms of a release's pool.

    Raises:
        BadInput: the pool has no arms.
    """
    from routeyard.flows.evaluation.released import read_release
    from routeyard.pipelines.common.matrix import core_of

    tables = read_release(release)
    core = core_of(tables.without("embeddings"))
    steps = axis_steps(tables["models"].to_pylist(), core, resamples=resamples, seed=seed)
    if not steps:
        raise BadInput(
            "no two members of the pool are one model asked with less and with more effort, output "
            "or samples",
            where=str(release),
            next_step="declare axes in the pool, such as `axes: {effort: [low, medium, high]}`",
        )
    cannot = []
    if core.samples is None:
        cannot.append(
            "One answer of each arm: a question that flips back may do so by chance; ask for "
            "`samples` to tell."
        )
    if any(step.cost is None for step in steps):
        cannot.append("Costs are not known of every answer: state prices, cached tokens included.")
    return ArmsReport(steps, cannot)


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
        for item in self.latency:
            name = f"p{100 * item.first.share:g}"
            ends = (item.difference, item.low, item.high)
            said = (
                f"cannot be told: {name} needs {item.needed} questions"
                if np.isnan(item.difference)
                else _estimate(ends, 1, " s", "+")
            )
            both = (str(of).removeprefix(f"{name} ") for of in (item.first, item.second))
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
    cells, calls = zip(*(_answers(answers, shared, item) for item in chosen), strict=True)
    draws = {"resamples": resamples, "seed": seed}
    score, cost = (np.stack([cell[k] for cell in cells], axis=1) for k in (0, 1))
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
    measures = [("accuracy", accuracy), ("cost", cost_usd)]
    notes += [
        f"{name}: {len(shared) - item.questions:,} of {len(shared):,} questions lack a known value "
        "of one of the routers and are left out"
        for name, item in measures
        if item.questions < len(shared)
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
        result = dict.fromkeys(asked, router)
    elif router and Path(place).is_dir():
        result = _of_evaluation(Path(place), router)
    elif Path(text).is_file():
        from routeyard.flows.evaluation.released import choices_only

        rows = choices_only(Path(text))
        ids = rows.column("query_id").to_pylist()
        result = dict(zip(ids, rows.column("model_id").to_pylist(), strict=True))
        if len(result) < len(ids):
            raise BadInput(f"{len(ids) - len(result):,} questions are chosen for twice", where=text)
    else:
        raise BadInput(
            f"{text!r} is no router",
            next_step=f"did you mean 'always:{text}'? Else give {FORMS}"
            if text in names
            else f"give {FORMS}",
        )
    if unknown := sorted({*map(str, result.values())} - names):
        raise UnknownName(
            f"{text} chooses {unknown[0]!r}, which the release lacks",
            next_step=did_you_mean(unknown[0], sorted(names)),
        )
    if beyond := len(result.keys() - asked):
        notes.append(f"{beyond:,} choices of {text} are of no test question: left out")
    return {query: model for query, model in result.items() if query in asked}


def _of_evaluation(folder: Path, router: str) -> dict[str, str]:
    import pyarrow.parquet as pq

    file = folder / "choices.parquet"
    if not file.is_file():
        raise BadInput("expected a folder that `routeyard evaluate` wrote", where=str(folder))
    rows = pq.read_table(file, columns=["query_id", "router", "model_id"]).to_pylist()
    result = {row["query_id"]: row["model_id"] for row in rows if row["router"] == router}
    if not result:
        known = sorted({row["router"] for row in rows})
        raise UnknownName(
            f"no router {router!r} in {folder}", next_step=did_you_mean(router, known)
        )
    return result


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


def _line(name: str, mean: PairedMean, scale: float, unit: str, difference: str) -> str:
    if not mean.questions:
        return f"{name:<10} not known"
    both = "".join(f"{_estimate(item, scale, unit):<35}" for item in (mean.first, mean.second))
    return f"{name:<10} {both}{_estimate(mean.difference, scale, difference, '+')}"


def _estimate(estimate: Estimate, scale: float, unit: str, sign: str = "") -> str:
    value, low, high = (scale * item for item in estimate)
    return f"{value:{sign}.3g}{unit} ({low:{sign}.3g} to {high:{sign}.3g})"
