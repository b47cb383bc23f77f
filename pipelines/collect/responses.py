"""The answers that a ledger holds for a plan, as the table `responses`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from routeyard.pipelines.calls.known_answers import KnownAnswers
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.collect.missing import CHUNK, unanswered
from routeyard.pipelines.collect.plan import ModelPlan, Plan
from routeyard.pipelines.ledger.answer_keys import AnsweredKey
from routeyard.pipelines.ledger.attempt import Attempt
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas import RESPONSES
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.statuses import response_status


def responses_table(plan: Plan, ledger: Ledger) -> pa.Table:
    """`responses` of the plan's pairs, sorted by model, query and sample.

    The newest `ok` attempt of each pair, else the newest truncated or refused
    one, else the newest error. A pair that was never asked has no row.
    """
    batches = [batch for model in plan.models for batch in _batches(plan, model, ledger)]
    table = pa.Table.from_batches(batches, schema=RESPONSES.schema)
    return RESPONSES.check(
        table.sort_by(
            [("model_id", "ascending"), ("query_id", "ascending"), ("sample", "ascending")]
        )
    )


def _batches(plan: Plan, model: ModelPlan, ledger: Ledger) -> Iterator[pa.RecordBatch]:
    known = KnownAnswers(ledger, model.settings, plan.benchmark)
    known_larger = KnownAnswers(ledger, model.larger, plan.benchmark) if model.larger else None
    for start in range(0, len(model.rows), CHUNK):
        asked = [model.asks.messages(int(row)) for row in model.rows[start : start + CHUNK]]
        found = known.answered(asked)
        larger = known_larger.answered(asked) if known_larger else {}
        rows = []
        for offset, texts in enumerate(asked):
            name = model.settings.request_hash(texts)
            second = model.larger.request_hash(texts) if model.larger else ""
            for sample in range(model.asks.samples):
                answer = found.get((name, sample))
                if answer is None:
                    continue
                again = larger.get((second, sample))
                use_again = again is not None and again.attempt.usable
                row = _row(answer, again, plan.collect) | {
                    # The hash knows nothing of ids: two sources may hold the same question.
                    "query_id": plan.query_id(int(model.rows[start + offset])),
                    "model_id": model.model.model_id,
                    "sample": sample,
                    # As it is asked today: another port may have answered it.
                    "request_hash": second if use_again else name,
                }
                rows.append(row | cost_by_price(_kept(answer, again), model.price))
        columns = [
            pa.array([row.get(c.name) for row in rows], type=c.type) for c in RESPONSES.columns
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=RESPONSES.schema)


_METERED = (
    "prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read_tokens",
    "cache_write_tokens",
)  # fmt: skip
_SAME = [name for name in RESPONSES.column_names if name in Attempt.__slots__]


def cost_by_price(attempt: Attempt, price: Price) -> dict[str, Any]:
    """The cost by the recipe's price, which may be newer than the one at the time of asking."""
    if attempt.cost_source == "provider":
        return {"cost_usd": attempt.cost_usd, "cost_source": "provider"}
    whole = None
    if attempt.usable:
        whole = price.of(
            attempt.prompt_tokens, attempt.call_completion_tokens,
            attempt.cache_read_tokens, attempt.cache_write_tokens,
        )  # fmt: skip
    if whole is None:
        return {"cost_usd": None, "cost_source": None}
    return {"cost_usd": whole / attempt.choices, "cost_source": "price_table"}


def _kept(answer: AnsweredKey, again: AnsweredKey | None) -> Attempt:
    """The answer with the larger token limit, where it is usable."""
    return again.attempt if again and again.attempt.usable else answer.attempt


def _row(answer: AnsweredKey, again: AnsweredKey | None, collect: Collect) -> dict[str, Any]:
    attempts = answer.attempts + (again.attempts if again else 0)
    kept = _kept(answer, again)
    row = {name: getattr(kept, name) for name in _SAME}
    row["status"] = response_status(kept.status, kept.text, kept.error_class)
    if kept.status == "error":
        # What was metered for nothing is no answer's: `routeyard ledger` counts it.
        row |= dict.fromkeys(_METERED)
        if unanswered(kept.status, answer.billed, collect):
            row["status"] = "unanswered"
    return row | {
        "attempts": attempts,
        "error": kept.reason,
        "given_score": None,
        "graded_against": None,
    }
