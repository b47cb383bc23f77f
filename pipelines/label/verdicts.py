"""What verifiers and judges share: who is asked about what, and how a verdict is filed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ledger.attempt import Attempt
from routeyard.schemas import VERDICTS
from routeyard.schemas.statuses import ANSWERLESS

#: (query_id, model_id, sample): one response.
ResponseKey = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class AnswerToJudge:
    """One response and the question it answers."""

    key: ResponseKey
    question: str
    references: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class FiledVerdicts:
    """Verdicts of one verifier or judge; responses that were not asked about have none."""

    verdicts: pa.Table
    figures: Mapping[str, Any] = field(default_factory=dict)


def answers(
    queries: pa.Table, responses: pa.Table, only: Iterable[ResponseKey] | None = None
) -> Iterator[AnswerToJudge]:
    """Responses that hold a text, in table order, or in the order of `only`.

    Args:
        only: Responses to ask about; all of them by default.
    """
    if only is not None:
        place = {key: number for number, key in enumerate(only)}
        found = [one for one in answers(queries, responses) if one.key in place]
        yield from sorted(found, key=lambda one: place[one.key])
        return
    asked = {
        query_id: (prompt, tuple(references))
        for query_id, prompt, references in zip(
            queries.column("query_id").to_pylist(),
            queries.column("prompt").to_pylist(),
            queries.column("references").to_pylist(),
            strict=True,
        )
    }
    usable = responses.filter(
        pc.and_(
            pc.invert(pc.is_in(responses.column("status"), value_set=pa.array(ANSWERLESS))),
            pc.is_valid(responses.column("text")),
        )
    )
    columns = ("query_id", "model_id", "sample", "text", "graded_against")
    for batch in usable.select(columns).to_batches(max_chunksize=1000):
        for row in batch.to_pylist():
            key = (row["query_id"], row["model_id"], row["sample"])
            prompt, references = asked[row["query_id"]]
            own = row["graded_against"]
            yield AnswerToJudge(key, prompt, references if own is None else tuple(own), row["text"])


def verdict(
    key: ResponseKey,
    scorer: str,
    version: str,
    outcome: str,
    *,
    score: float | None = None,
    extracted: str | None = None,
    conflict: bool = False,
    reason: str = "",
    cost_usd: float | None = None,
) -> dict[str, Any]:
    """One row of `verdicts`; the score of a right or wrong answer defaults to 1 or 0."""
    if score is None and outcome in ("correct", "incorrect"):
        score = float(outcome == "correct")
    return {
        "query_id": key[0],
        "model_id": key[1],
        "sample": key[2],
        "scorer": scorer,
        "scorer_version": version,
        "outcome": outcome,
        "score": score,
        "extracted": extracted,
        "conflict": conflict,
        "reason": reason,
        "cost_usd": cost_usd,
    }


def error_verdict(key: ResponseKey, scorer: str, version: str, attempt: Attempt) -> dict[str, Any]:
    """The `error` verdict of an attempt without an answer."""
    reason = f"{attempt.error_class}: {attempt.error}"
    if attempt.status != "error":
        # Of a ledger of an earlier version, which took it for a reply.
        reason = f"the reply is {attempt.status}, which is no verdict"
    return verdict(key, scorer, version, "error", reason=reason, cost_usd=attempt.cost_usd)


class Costs:
    """Cost of each prompt, counted once: the first verdict that rests on it bears it."""

    def __init__(self) -> None:
        self._borne: set[str] = set()

    def of(self, attempt: Attempt) -> float | None:
        if attempt.request_hash in self._borne:
            return 0.0
        self._borne.add(attempt.request_hash)
        return attempt.cost_usd


def verdicts_from(
    asked: Iterable[tuple[AnswerToJudge, Attempt | None]],
    scorer: str,
    version: str,
    read: Callable[[AnswerToJudge, str], dict[str, Any]],
) -> list[dict[str, Any]]:
    """One row for each answer that was asked about; an attempt without a reply is an `error`.

    Args:
        read: (answer, reply) → `outcome` and other columns of the verdict.
    """
    rows, costs = [], Costs()
    for answer, attempt in asked:
        if attempt is None:
            continue
        if attempt.status != "ok" or attempt.text is None:
            rows.append(error_verdict(answer.key, scorer, version, attempt))
            continue
        about = {"reason": attempt.text, **read(answer, attempt.text)}
        rows.append(verdict(answer.key, scorer, version, cost_usd=costs.of(attempt), **about))
    return rows


def verdict_table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """VERDICTS table, sorted by key."""
    table = VERDICTS.from_rows(rows)
    return table.sort_by([(name, "ascending") for name in VERDICTS.key])
