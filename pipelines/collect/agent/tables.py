"""Trajectories as tables: one row of `responses` each, one row of `steps` for each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.collect.agent.trajectory import Trajectory, TrajectoryStep
from routeyard.pipelines.collect.responses import cost_by_price
from routeyard.pipelines.ledger.attempt import Attempt
from routeyard.schemas import RESPONSES, STEPS
from routeyard.schemas.recipe.pool import Pool
from routeyard.schemas.statuses import ANSWERLESS, response_status

_ORDER = [("model_id", "ascending"), ("query_id", "ascending"), ("sample", "ascending")]
_LAST = (
    "finish_reason", "served_model", "provider", "system_fingerprint", "logprobs",
    "requested_at", "request_hash", "ttft_s",
)  # fmt: skip
_TOKENS = (
    "prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read_tokens",
    "cache_write_tokens",
)  # fmt: skip


def tables_of(trajectories: Sequence[Trajectory], pool: Pool) -> Mapping[str, pa.Table]:
    """`responses` and `steps` of the trajectories that came to an end.

    A trajectory costs what its steps cost, also where another one paid for the same call; what
    is unknown of one step is unknown of the whole.
    """
    prices = {model.model_id: Price.of_model(model) for model in pool.models}
    ended = [one for one in trajectories if one.ended]
    responses = RESPONSES.from_rows([_response(one, prices) for one in ended])
    steps = STEPS.from_rows(
        [
            _step(one, number, step, prices[step.model_id])
            for one in ended
            for number, step in enumerate(one.steps)
        ]
    )
    return {
        "responses": responses.sort_by(_ORDER),
        "steps": steps.sort_by([*_ORDER, ("step", "ascending")]),
    }


def _response(one: Trajectory, prices: Mapping[str, Price]) -> dict[str, Any]:
    last = one.steps[-1]
    attempt = last.attempt
    costs = [cost_by_price(step.attempt, prices[step.model_id]) for step in one.steps]
    usd = [cost["cost_usd"] for cost in costs]
    known = None not in usd
    sources = {cost["cost_source"] for cost in costs}
    row: dict[str, Any] = {name: getattr(attempt, name) for name in _LAST}
    row |= {
        name: _sum([getattr(step.attempt, name) for step in one.steps])
        for name in (*_TOKENS, "latency_s")
    }
    status, text = _outcome(one, last)
    return row | {
        "query_id": one.query_id,
        "model_id": one.member.model_id,
        "sample": one.sample,
        "text": text,
        "status": status,
        "cost_usd": sum(usd) if known else None,
        "cost_source": None
        if not known
        else "provider"
        if sources == {"provider"}
        else "price_table",
        "attempts": sum(step.attempts for step in one.steps),
        "error": attempt.reason,
    }


def _outcome(one: Trajectory, last: TrajectoryStep) -> tuple[str, str | None]:
    """Status and text of the whole: its last step's, unless that still wanted to search."""
    if one.unanswered:
        return "unanswered", None
    if last.attempt.status != "ok":
        return _status(last.attempt), last.attempt.text
    if last.said.queries:
        # The steps are used up and it did not answer: cut off, as by a limit of tokens.
        return "truncated", last.said.text or ""
    return response_status("ok", last.said.text), last.said.text


def _status(attempt: Attempt) -> str:
    return response_status(attempt.status, attempt.text, attempt.error_class)


def _step(one: Trajectory, number: int, step: TrajectoryStep, price: Price) -> dict[str, Any]:
    attempt, said = step.attempt, step.said
    status = "unanswered" if one.unanswered and step is one.steps[-1] else _status(attempt)
    searched = bool(step.found)
    return {
        "query_id": one.query_id,
        "model_id": one.member.model_id,
        "sample": one.sample,
        "step": number,
        "acted_by": step.model_id,
        "action": "search" if searched else "answer" if status == "ok" and not said.queries
        else "none",
        "said": None if status in ANSWERLESS else said.text,
        "queries": list(said.queries),
        "found": list(step.found),
        "status": status,
        **{
            name: getattr(attempt, name)
            for name in (
                *_TOKENS, "served_model", "latency_s", "requested_at",
            )
        },
        **cost_by_price(attempt, price),
        "attempts": step.attempts,
        "request_hash": attempt.request_hash,
        "error": attempt.reason,
        "arm": step.model_id,
        "parent": number - 1 if number else None,
    }  # fmt: skip


def _sum(values: Sequence[Any]) -> Any:
    return None if None in values else sum(values)
