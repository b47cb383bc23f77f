"""What verifiers and judges share: who is asked about what, and how a verdict is filed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from routeyard.pipelines.calls.prompts import PromptResults
from routeyard.pipelines.calls.request import Request
from routeyard.pipelines.label.verdict_matrix import ResponseKey, with_text
from routeyard.pipelines.ledger.attempt import Attempt
from routeyard.schemas import VERDICTS


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
        row["query_id"]: row
        for row in queries.select(["query_id", "prompt", "references"]).to_pylist()
    }
    columns = ["query_id", "model_id", "sample", "text", "graded_against"]
    for batch in with_text(responses).select(columns).to_batches(max_chunksize=1000):
        for query_id, model_id, sample, text, own in zip(*batch.to_pydict().values(), strict=True):
            one = asked[query_id]
            references = tuple(one["references"] if own is None else own)
            yield AnswerToJudge((query_id, model_id, sample), one["prompt"], references, text)


def verdict(
    key: ResponseKey, scorer: str, version: str, outcome: str, **columns: Any
) -> dict[str, Any]:
    """One row of `verdicts`; the score of a right or wrong answer defaults to 1 or 0."""
    decided = outcome in ("correct", "incorrect")
    return {
        **dict(zip(VERDICTS.key, (*key, scorer, version), strict=True)),
        "outcome": outcome,
        "score": float(outcome == "correct") if decided else None,
        "conflict": False,
        **columns,
    }


def failure(attempt: Attempt) -> str:
    """Why an attempt without a usable reply is no verdict."""
    if attempt.status != "error":
        # Another purpose took it for a reply.
        return f"the reply is {attempt.status}, which is no verdict"
    return f"{attempt.error_class}: {attempt.error}"


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
    asked: Iterable[tuple[AnswerToJudge, Request]],
    results: PromptResults,
    scorer: str,
    version: str,
    read: Callable[[AnswerToJudge, str], dict[str, Any]],
) -> list[dict[str, Any]]:
    """One row for each answer that was asked about; an attempt without a reply is an `error`.

    Args:
        read: (answer, reply) → `outcome` and other columns of the verdict.
    """
    rows, costs = [], Costs()
    for answer, request in asked:
        attempt = results.answers.get(request.request_hash)
        if attempt is None:
            continue
        if attempt.status != "ok" or attempt.text is None:
            about: dict[str, Any] = {
                "outcome": "error",
                "reason": failure(attempt),
                "cost_usd": attempt.cost_usd,
            }
        else:
            about = {"reason": attempt.text, "cost_usd": costs.of(attempt)}
            about |= read(answer, attempt.text)
        rows.append(verdict(answer.key, scorer, version, **about))
    return rows


def verdict_table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """VERDICTS table, sorted by key."""
    table = VERDICTS.from_rows(rows)
    return table.sort_by([(name, "ascending") for name in VERDICTS.key])
