"""The metering audit against the answers: run once more, and compared with the manifest's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.metering.audit import NEEDED, audit, known_of
from routeyard.pipelines.proof.claims import Results, contradiction, not_run, proved
from routeyard.pipelines.proof.evidence import Evidence

#: Answers beyond which only those of some models are audited without `--full`: findings are about
#: one model each.
_MOST = 400_000
#: Columns of text, which no check reads where no tokens were counted.
_TEXTS = ("text", "logprobs")


def metering_of_answers(evidence: Evidence) -> Results:
    """Contradictions between the metering audit in the manifest and one of the answers."""
    if not evidence.built and "audit" not in evidence.manifest.figures:
        return
    if why := _cannot_be_made(evidence):
        yield not_run("figures.audit", "the metering audit of the answers", why)
        return
    assert evidence.collect is not None
    assert evidence.pool is not None
    told = evidence.figures("audit").get("findings")
    if not isinstance(told, list):
        yield contradiction("figures.audit", 1, 1, "findings are no list", [str(told)[:60]])
        return
    stored = {_id(row): row for row in told}
    stored = {key: row for key, row in stored.items() if key[0] != "canary_drift"}
    audited = _models(evidence)
    others = set(evidence.real.to_pylist()) - set(audited)
    stored = {key: row for key, row in stored.items() if key[1] not in others}
    answers, counted = _answers(evidence, audited)
    queries = evidence.table("queries", ["query_id", "prompt"]) if counted else None
    fresh = audit(
        answers, evidence.table("models", _MODEL), evidence.collect.metering,
        queries=queries, **known_of(evidence.pool),
    )  # fmt: skip
    expected = {(one.check, one.model_id, one.count): {"says": one.says} for one in fresh}
    wrong = [f"{_shown(key)} is not listed" for key in expected if key not in stored]
    wrong += [
        f"{_shown(key)} is listed, and the answers have none"
        for key in stored
        if key not in expected
    ]
    if wrong:
        what = "findings of the metering audit differ from those of the answers"
        yield contradiction("figures.audit", len(wrong), len({**stored, **expected}), what, wrong)
    else:
        says = f"{len(expected):,} findings follow from {answers.num_rows:,} answers"
        if others:
            some = f"{len(audited)} of {len(evidence.real)} models, seed {evidence.seed}"
            says += f" (a sample: {some}; `--full` audits all)"
        yield proved("figures.audit", says, *([] if others else ["figures.audit.findings"]))


def _cannot_be_made(evidence: Evidence) -> str:
    """Why the audit cannot be made again from what the release holds; empty where it can."""
    if "audit" not in evidence.manifest.figures:
        return "the manifest states no findings of one"
    if evidence.collect is None or evidence.pool is None:
        return evidence.unread("collect" if evidence.collect is None else "pool")
    if evidence.has("steps"):
        return "the audit of an agent's calls, some of which are left out"
    return "the audit read texts that are withheld" if len(evidence.withheld) else ""


_MODEL = (
    "model_id",
    "price_in",
    "price_out",
    "price_date",
    "price_up_to",
    "kind",
    "provider",
    "price_cache_read",
    "price_cache_write",
)


def _models(evidence: Evidence) -> list[str]:
    """Real models whose answers are audited: all, or as many as have so many answers, drawn."""
    names: list[str] = evidence.real.to_pylist()
    if evidence.full or evidence.rows("responses") <= _MOST:
        return names
    drawn = np.random.Generator(np.random.PCG64(evidence.seed)).permutation(sorted(names))
    share = len(names) * _MOST // evidence.rows("responses")
    return [str(name) for name in drawn[: max(1, share)]]


def _answers(evidence: Evidence, models: list[str]) -> tuple[pa.Table, bool]:
    """Answers of real models, and whether tokens of any were counted; else without their texts."""
    counts = evidence.table("responses", ["prompt_tokens", "completion_tokens"])
    counted = any(column.null_count < len(column) for column in counts.columns)
    answers = evidence.table("responses", [n for n in NEEDED if counted or n not in _TEXTS])
    for name in _TEXTS:
        if name not in answers.column_names:
            answers = answers.append_column(name, pa.nulls(answers.num_rows, pa.string()))
    there = pc.is_in(answers.column("model_id"), value_set=pa.array(models, pa.string()))
    return answers.filter(there), counted


def _id(row: Any) -> tuple[str, str, int]:
    found = row if isinstance(row, Mapping) else {}
    count = found.get("count")
    return (
        str(found.get("check")),
        str(found.get("model_id")),
        count if isinstance(count, int) else -1,
    )


def _shown(key: tuple[str, str, int]) -> str:
    check, model_id, count = key
    return f"{check} of {model_id} ({count:,} answers)"
