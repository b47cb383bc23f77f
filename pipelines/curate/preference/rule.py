"""Rule `preference`: pairs of a strong and a weak model, won by the surer one.

Zhang et al. 2025, "Leveraging Uncertainty Estimation for Efficient LLM
Routing" (the confidence-driven router), section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from routeyard.pipelines.curate.preference.by_entropy import NoPair, compare
from routeyard.pipelines.curate.preference.by_score import (
    Scores,
    by_correctness,
    by_judge,
    judge_scorer,
)
from routeyard.pipelines.curate.preference.entropy import ESTIMATORS
from routeyard.pipelines.curate.preference.record import (
    Sides,
    delta,
    record,
    winner_by_entropy,
    winner_by_score,
)
from routeyard.pipelines.curate.preference.samples import gather, need
from routeyard.pipelines.curate.preference.semantic import (
    EQUALITY,
    entropy_table,
    measure,
    predictive_power,
)
from routeyard.pipelines.curate.preference.signals import signal_table
from routeyard.pipelines.curate.preference.tau_sweep import TAUS, Compared, tau_sweep
from routeyard.pipelines.curate.rule import Curated, Rule, removals
from routeyard.pipelines.equivalence_types import Entailment
from routeyard.pipelines.errors import RecipeError, did_you_mean
from routeyard.schemas import PREFERENCES

STAGE = "curate.preference"
BASES = ("semantic_entropy", "correctness", "judge")

#: (prompt, answer) pairs of the weak model → its probability that each answer is right.
Assess = Callable[[Sequence[tuple[str, str]]], Sequence[float | None]]
#: A query's texts and both models' samples → its record, or why it makes no pair.
Decider = Callable[[Sides, Sequence[Any]], dict[str, Any] | NoPair]


def preference(
    tables: Mapping[str, pa.Table],
    *,
    strong: str,
    weak: str,
    tau: float = 0.1,
    backend: str | Mapping[str, Any] = "equivalence",
    estimator: str = "auto",
    length_normalised: bool = False,
    min_samples: int = 2,
    basis: str | Sequence[str] = "semantic_entropy",
    judge: str | None = None,
    taus: Sequence[float] = TAUS,
    seed: int = 0,
    self_assessment: bool = False,
    entailment: Entailment | None = None,
    assess: Assess | None = None,
) -> Curated:
    """Entropies of two models' samples, and which of the two each query prefers.

    Args:
        strong: `model_id` of the strong model; δ is relative to its entropy.
        weak: `model_id` of the weak model; its `signals` are added too.
        tau: δ at or below which a pair is a tie (the paper's 0.1).
        backend: `equivalence`, or `{name: cross_encoder, model: FOLDER_OR_HUB_ID}`, or
            `{name: judge, model: model_id}`: the flow makes `entailment` from it.
            `equality` needs nothing and calls two answers the same when their
            extracted answers or texts are equal.
        estimator: One of `entropy.ESTIMATORS`, or `auto`: the paper's
            sequence-probability form where both models have log-probabilities
            for every sample, else the discrete form for both. Entropies of two
            estimators are never compared.
        min_samples: Fewer usable samples of either model make no pair: one
            sample agrees with itself.
        basis: What decides: `semantic_entropy`, `correctness`, `judge`, or several.
        judge: With basis `judge`, the judge's name as in `judge:<name>`.
        self_assessment: Ask the weak model whether its answers are right.
        entailment: What decides that two answers mean the same.
        assess: Puts the question of `self_assessment`.

    Returns:
        `queries` unchanged; `entropies`, `preferences` and, where the weak model
        has log-probabilities, `signals` added; one `removals` row of entity
        `pair` for each query and basis that made no pair.

    Raises:
        RecipeError: an unknown model, backend, estimator or basis.
    """
    bases = (basis,) if isinstance(basis, str) else tuple(dict.fromkeys(basis))
    _check(tables, (strong, weak), tau, estimator, bases)
    if entailment is None and backend != EQUALITY:
        raise _refused(
            f"no entailment backend {backend!r} was given to the rule",
            "run it through `routeyard build`, which makes one, or set 'backend: equality'",
        )
    if self_assessment and assess is None:
        raise _refused(
            "no way to ask the weak model was given to the rule",
            "run it through `routeyard build`, or set 'self_assessment: false'",
        )
    queries = need(tables, "queries", "preference")
    responses = need(tables, "responses", "preference")
    verdicts = tables.get("verdicts")
    name = entailment.name if entailment is not None else EQUALITY
    names = (strong, weak)

    gathered = gather(tables, names, length_normalised=length_normalised)
    measured, clustering = measure(gathered, entailment)
    groups = {(one.samples.query["query_id"], one.samples.model_id): one for one in measured}
    correct = by_correctness(tables.get("labels"), names)
    scorer = judge_scorer(verdicts, judge) if "judge" in bases else "judge"
    deciders: dict[str, Decider] = {
        "semantic_entropy": partial(
            _by_entropy,
            backend=name,
            estimator=estimator,
            min_samples=min_samples,
            tau=tau,
            seed=seed,
        ),
        "correctness": partial(_by_score, basis="correctness", scores=correct, seed=seed),
        scorer: partial(
            _by_score, basis=scorer, scores=by_judge(verdicts, names, scorer), seed=seed
        ),
    }
    deciders = {one: by for one, by in deciders.items() if one.partition(":")[0] in bases}
    records, removed = _pairs(queries, groups, names, deciders)
    records.sort(key=lambda row: str(row["id"]))
    compared = [
        _compared(row, names, correct) for row in records if row["basis"] == "semantic_entropy"
    ]
    added = {
        "entropies": entropy_table(measured, name, length_normalised=length_normalised),
        "preferences": PREFERENCES.from_rows(records),
    }
    signals = signal_table(queries, responses, weak, assess)
    if signals.num_rows:
        added["signals"] = signals
    figures: dict[str, Any] = {
        "strong": strong,
        "weak": weak,
        "tau": tau,
        "backend": name,
        "length_normalised": length_normalised,
        "queries": queries.num_rows,
        "pairs": len(records),
        "pairs_by_basis": _wins(records, strong),
        "estimators": dict(
            sorted(Counter(row["estimator"] for row in records if row["estimator"]).items())
        ),
        "no_pair": dict(sorted(Counter(reason for _, reason, _ in removed).items())),
        "tau_sweep": tau_sweep(compared, taus),
        "predictive_power": predictive_power(measured),
        "truncated_pairs": getattr(entailment, "truncated", None),
        "entailment_calls": clustering.calls,
        "entailment_calls_naive": clustering.calls_naive,
        "unreadable_samples": sum(
            extracted is None for samples in gathered for extracted in samples.extracted
        ),
    }
    return Curated({"queries": queries}, removals(STAGE, "pair", removed), added, figures)


def _pairs(
    queries: pa.Table,
    groups: Mapping[tuple[str, str], Any],
    names: tuple[str, str],
    deciders: Mapping[str, Decider],
) -> tuple[list[dict[str, Any]], list[tuple[str, str, str]]]:
    """Records of all queries on every basis, and (key, reason, detail) of those without one."""
    records: list[dict[str, Any]] = []
    removed: list[tuple[str, str, str]] = []
    for query in queries.select(["query_id", "prompt"]).to_pylist():
        here = [groups.get((query["query_id"], model)) for model in names]
        texts = [None if one is None else one.samples.texts[0] for one in here]
        sides = Sides(query["query_id"], query["prompt"], *names, *texts)
        for basis, decide in deciders.items():
            found = decide(sides, here)
            if isinstance(found, NoPair):
                removed.append(("|".join((query["query_id"], *names, basis)), *found))
            else:
                records.append(found)
    return records, removed


def _by_entropy(
    sides: Sides,
    here: Sequence[Any],
    *,
    backend: str,
    estimator: str,
    min_samples: int,
    tau: float,
    seed: int,
) -> dict[str, Any] | NoPair:
    names = (sides.strong, sides.weak)
    found = compare(*here, names=names, estimator=estimator, min_samples=min_samples)
    if isinstance(found, NoPair):
        return found
    return record(
        replace(sides, **found._asdict(), backend=backend),
        winner_by_entropy(found.se_strong, found.se_weak, tau),
        basis="semantic_entropy",
        seed=seed,
        gap=delta(found.se_strong, found.se_weak),
    )


def _by_score(
    sides: Sides, _: Sequence[Any], *, basis: str, scores: Scores, seed: int
) -> dict[str, Any] | NoPair:
    names = (sides.strong, sides.weak)
    strong, weak = (scores.get((sides.query_id, model)) for model in names)
    if strong is None or weak is None:
        without = [m for m, score in zip(names, (strong, weak), strict=True) if score is None]
        return NoPair("no_score", f"no {basis} score of {' and '.join(without)}")
    return record(sides, winner_by_score(float(strong), float(weak)), basis=basis, seed=seed)


def _compared(row: Mapping[str, Any], names: tuple[str, str], correct: Scores) -> Compared:
    """Entropies and labels of a pair, strong model first."""
    entropy = {row["model_a"]: row["se_a"], row["model_b"]: row["se_b"]}
    known = [correct.get((row["query_id"], model)) for model in names]
    right = [None if one is None else bool(one) for one in known]
    return Compared(*(entropy[model] for model in names), *right)


def _wins(records: Sequence[Mapping[str, Any]], strong: str) -> dict[str, dict[str, int]]:
    """Basis → number of pairs, ties, and wins of each side."""
    found: dict[str, dict[str, int]] = {}
    for row in records:
        counts = found.setdefault(
            str(row["basis"]), {"pairs": 0, "ties": 0, "strong_wins": 0, "weak_wins": 0}
        )
        counts["pairs"] += 1
        if row["winner_tie"]:
            counts["ties"] += 1
        else:
            winner = row["model_a"] if row["winner_model_a"] else row["model_b"]
            counts["strong_wins" if winner == strong else "weak_wins"] += 1
    return dict(sorted(found.items()))


def _check(
    tables: Mapping[str, pa.Table],
    models: tuple[str, str],
    tau: float,
    estimator: str,
    bases: Sequence[str],
) -> None:
    if models[0] == models[1]:
        raise _refused(f"strong and weak are both {models[0]!r}", "name two different models")
    if not tau >= 0:
        raise _refused(f"tau is {tau}", "tau is a relative difference: 0 or more, usually 0.1")
    if estimator not in ("auto", *ESTIMATORS):
        raise _refused(
            f"there is no estimator {estimator!r}", did_you_mean(estimator, ("auto", *ESTIMATORS))
        )
    for one in bases:
        if one not in BASES:
            raise _refused(f"there is no basis {one!r}", did_you_mean(one, BASES))
    if "correctness" in bases and "labels" not in tables:
        raise _refused("basis 'correctness' needs the table 'labels'", "label before curating")
    if "models" in tables:
        known = tables["models"].column("model_id").to_pylist()
        for model in models:
            if model not in known:
                raise _refused(f"the pool has no model {model!r}", did_you_mean(model, known))


def _refused(what: str, next_step: str) -> RecipeError:
    return RecipeError(what, where="curation rule 'preference'", next_step=next_step)


RULE = Rule(
    "preference",
    preference,
    reads=("responses", "verdicts", "labels"),
    needs=("entailment", "assess"),
)
