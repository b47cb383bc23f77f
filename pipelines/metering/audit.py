"""The metering audit: are usage, prices and served models what they claim to be?

    found = audit(responses, models, thresholds)
    unresolved, waived = apply_waivers(found, recipe.release.waivers)

A finding names its check, its model and its rows. An unresolved finding stops a release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import UnknownName
from routeyard.pipelines.metering.answers import AnswerColumns
from routeyard.pipelines.metering.checks import CHECKS, run_check
from routeyard.pipelines.metering.findings import GATE, SHOWN, MeteringFinding, MeteringInput
from routeyard.schemas.recipe import Pool, Recipe
from routeyard.schemas.recipe.collect import Metering
from routeyard.schemas.statuses import ANSWERLESS
from routeyard.schemas.waiver import Waiver

#: Columns of an answer that the checks read.
NEEDED = (
    "query_id", "model_id", "sample", "status", "text", "served_model", "prompt_tokens",
    "completion_tokens", "reasoning_tokens", "cost_usd", "cost_source", "latency_s", "logprobs",
    "calls", "cache_read_tokens", "cache_write_tokens", "requested_at",
)  # fmt: skip
#: What a ledger knows and a release does not.
_EXTRA = ("total_tokens",)


def audit(
    responses: pa.Table,
    models: pa.Table,
    thresholds: Metering | None = None,
    *,
    queries: pa.Table | None = None,
    names: Mapping[str, str] | None = None,
    price_changed: Mapping[str, str] | None = None,
    canaries: pa.Table | None = None,
) -> tuple[MeteringFinding, ...]:
    """Run every check; findings in order of check, then model.

    Args:
        responses: `responses` table, or a ledger's answers with further columns.
        models: `models` table (prices and their dates).
        queries: For the plausibility of prompt counts (`query_id`, `prompt`).
        names: model_id → name the endpoint was asked for, where it differs.
        price_changed: model_id → day its price last changed, as far as known.
        canaries: Answers to canary prompts: `model_id`, `prompt`, `phase`
            (`start` or `end`), `text`, `served_model`.
    """
    thresholds = thresholds or Metering()
    prompts: dict[str, str] = {}
    if queries is not None:
        ids, texts = (queries.column(n).to_pylist() for n in ("query_id", "prompt"))
        prompts = dict(zip(ids, texts, strict=True))
    known = MeteringInput(
        models={row["model_id"]: row for row in models.to_pylist()},
        thresholds=thresholds,
        prompts=prompts,
        names=names or {},
        price_changed=price_changed or {},
    )
    found = [
        finding
        for model_id, answers, there in _by_model(responses)
        for name, check in CHECKS.items()
        if not check.needs or there.intersection(check.needs)
        for finding in run_check(name, known, model_id, answers)
    ]
    if canaries is not None:
        found += _canary_drift(thresholds, canaries)
    order = [*CHECKS, "canary_drift"]
    return tuple(sorted(found, key=lambda f: (order.index(f.check), f.model_id)))


def audited(
    recipe: Recipe, responses: pa.Table, queries: pa.Table, models: pa.Table
) -> tuple[tuple[MeteringFinding, ...], tuple[tuple[MeteringFinding, Waiver], ...]]:
    """(unresolved findings, findings that the recipe waives) over answers to its questions."""
    thresholds, known = recipe.collect.metering, known_of(recipe.pool)
    found = audit(responses, models, thresholds, queries=queries, **known)
    return apply_waivers(found, recipe.release.waivers)


def known_of(pool: Pool) -> dict[str, dict[str, str]]:
    """`names` and `price_changed` for `audit`: what the `models` table does not hold."""
    return {
        "names": {m.model_id: m.endpoint_model for m in pool.models if m.endpoint_model},
        "price_changed": {m.model_id: m.price_changed for m in pool.models if m.price_changed},
    }


def check_gate(gate: str, *, where: str | None = None) -> None:
    """Raises UnknownName: there is no such gate, so that waiving it would waive nothing."""
    from routeyard.pipelines.audit.checks import CHECKS as DEFECTS

    kinds = {GATE: (*CHECKS, "canary_drift"), "audit": tuple(one.kind for one in DEFECTS)}
    known = [name for word in kinds for name in (word, *(f"{word}:{k}" for k in kinds[word]))]
    if gate not in known:
        raise UnknownName(
            f"there is no gate {gate!r} to waive",
            where=where,
            next_step=f"known: {', '.join(known)}; `{GATE}` or `audit` alone waives all of its "
            "checks",
        )


class Gated(Protocol):
    """A finding that can be waived by name: `metering:latency`, `audit:leak`."""

    @property
    def gate(self) -> str: ...


OneFinding = TypeVar("OneFinding", bound=Gated)


def apply_waivers(
    findings: Iterable[OneFinding], waivers: Sequence[Waiver]
) -> tuple[tuple[OneFinding, ...], tuple[tuple[OneFinding, Waiver], ...]]:
    """(unresolved findings, findings a waiver covers with that waiver).

    A waiver names a gate whole (`metering`) or one check of it (`metering:latency`).
    """
    by_gate = {waiver.gate: waiver for waiver in waivers}
    unresolved: list[OneFinding] = []
    waived: list[tuple[OneFinding, Waiver]] = []
    for finding in findings:
        waiver = by_gate.get(finding.gate) or by_gate.get(finding.gate.partition(":")[0])
        if waiver:
            waived.append((finding, waiver))
        else:
            unresolved.append(finding)
    return tuple(unresolved), tuple(waived)


def _by_model(responses: pa.Table) -> Iterator[tuple[str, AnswerColumns, set[str]]]:
    """Answers of one model at a time, and the columns in which any of them has a value."""
    names = [n for n in (*NEEDED, *_EXTRA) if n in responses.column_names]
    answers = responses.select(names)
    named = answers.column("model_id")
    answered = pc.invert(pc.is_in(answers.column("status"), value_set=pa.array(ANSWERLESS)))
    for model_id in sorted(pc.unique(named.filter(answered)).to_pylist()):
        mine = answers.filter(pc.and_(answered, pc.equal(named, model_id)))
        there = {n for n in names if mine.column(n).null_count < mine.num_rows}
        yield model_id, AnswerColumns(mine), there


def _canary_drift(thresholds: Metering, canaries: pa.Table) -> list[MeteringFinding]:
    """Fixed prompts at temperature 0, asked at the start and again at the end."""
    answers: dict[tuple[str, str], dict[str, tuple[str | None, str | None]]] = {}
    for row in canaries.to_pylist():
        pair = answers.setdefault((row["model_id"], row["prompt"]), {})
        pair[row["phase"]] = (row["text"], row["served_model"])
    by_model: dict[str, list[tuple[str, bool]]] = {}
    for (model_id, prompt), phases in sorted(answers.items()):
        if {"start", "end"} <= set(phases):
            differs = phases["start"] != phases["end"]
            by_model.setdefault(model_id, []).append((prompt, differs))
    found = []
    for model_id, pairs in by_model.items():
        drifted = [prompt for prompt, differs in pairs if differs]
        if len(drifted) > thresholds.canary_drift * len(pairs):
            found.append(
                MeteringFinding(
                    "canary_drift",
                    model_id,
                    "canary prompts answered differently at the end",
                    len(drifted),
                    tuple((prompt[:80], 0) for prompt in drifted[:SHOWN]),
                    len(drifted) / len(pairs),
                )
            )
    return found
