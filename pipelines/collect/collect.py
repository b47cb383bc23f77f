"""Plan → calls → responses: what a run asked, and the table it leaves.

plan = collect.plan(queries, pool, recipe.collect, ledger)
collected = collect.collect(plan, ledger, on_progress=show)
responses = responses_table(plan, ledger)
"""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from routeyard.pipelines.collect.batch import PREFIX, BatchNote, run_batches
from routeyard.pipelines.collect.budget import BudgetLedger, OnProgress, Price
from routeyard.pipelines.collect.ledger import AnsweredKey, Attempt, Ledger
from routeyard.pipelines.collect.plan import (
    CHUNK,
    ModelPlan,
    Plan,
    model_notes,
    plan,
    queue_of,
    requests,
    timeouts_of,
    unanswered,
)
from routeyard.pipelines.collect.request import Request, RequestSettings
from routeyard.pipelines.collect.runner import OnStored, RequestRun, RunResult, run_requests
from routeyard.schemas import RESPONSES
from routeyard.schemas.contracts import RESULTS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Pool
from routeyard.schemas.statuses import response_status

# The answers that a ledger holds for a plan, as the table `responses`.


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
    for start in range(0, len(model.rows), CHUNK):
        asked = [model.asks.messages(int(row)) for row in model.rows[start : start + CHUNK]]
        names = [model.settings.request_hash(texts) for texts in asked]
        again_names = [model.larger.request_hash(texts) for texts in asked] if model.larger else []
        result, larger = ledger.answered(names), ledger.answered(again_names)
        rows = []
        for offset, name in enumerate(names):
            second = again_names[offset] if again_names else ""
            for sample in range(model.asks.samples):
                answer = result.get((name, sample))
                if answer is None:
                    continue
                again = larger.get((second, sample))
                row = _row(answer, again, plan.collect) | {
                    # The hash knows nothing of ids: two sources may hold the same question.
                    "query_id": plan.query_id(int(model.rows[start + offset])),
                    "model_id": model.model.model_id,
                    "sample": sample,
                }
                rows.append(row | cost_by_price(_final_attempt(answer, again), model.price))
        columns = [
            pa.array([row.get(c.name) for row in rows], type=c.type) for c in RESPONSES.columns
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=RESPONSES.schema)


#: What is metered of a call, and all columns that are an attempt's own.
METERED = (
    "prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read_tokens",
    "cache_write_tokens",
)  # fmt: skip
OWN = [name for name in RESPONSES.column_names if name in Attempt.__slots__]


def cost_by_price(attempt: Attempt, price: Price) -> dict[str, Any]:
    """The cost by the recipe's price, which may be newer than the one at the time of asking."""
    if attempt.cost_source == "provider" and (attempt.cost_usd or not price.paid):
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


def _final_attempt(answer: AnsweredKey, again: AnsweredKey | None) -> Attempt:
    """The answer with the larger token limit, where it is usable."""
    return again.attempt if again and again.attempt.usable else answer.attempt


def _row(answer: AnsweredKey, again: AnsweredKey | None, collect: Collect) -> dict[str, Any]:
    attempts = answer.attempts + (again.attempts if again else 0)
    attempt = _final_attempt(answer, again)
    row = {name: getattr(attempt, name) for name in OWN}
    row["status"] = response_status(attempt.status, attempt.text, attempt.error_class)
    if attempt.status == "error":
        # What was metered for nothing is no answer's: `routeyard cost ledger` counts it.
        row |= dict.fromkeys(METERED)
        if unanswered(attempt.status, answer.billed, collect):
            row["status"] = "unanswered"
    return row | {
        "attempts": attempts,
        "error": attempt.reason,
        "given_score": None,
        "graded_against": None,
    }


__all__ = ["acollect", "ask_canaries", "collect", "replan", "responses_table"]


def collect(
    plan: Plan,
    ledger: Ledger,
    *,
    on_progress: OnProgress | None = None,
    on_stored: OnStored | None = None,
) -> RunResult:
    """Ask for everything the plan misses; what arrives is in the ledger.

    Ends normally when a model was paused or a budget was reached: `RunResult`
    says what is missing, and the same call on a new plan goes on from there.

    Raises:
        BadInput: a provider's key is not set.
        DiskFull: the ledger can keep no more.
    """
    return asyncio.run(acollect(plan, ledger, on_progress=on_progress, on_stored=on_stored))


async def acollect(
    plan: Plan,
    ledger: Ledger,
    *,
    on_progress: OnProgress | None = None,
    on_stored: OnStored | None = None,
) -> RunResult:
    """As `collect`, inside a running event loop."""
    run = uuid.uuid4().hex[:12]
    # One budget for all parts of a run: its budget is one.
    budget = budget_of(plan, ledger)
    await _canaries(plan, ledger, run, budget, START)
    collected = await _once(plan, ledger, run, budget, on_progress, on_stored)
    if plan.collect.larger_limit is not None and collected.stopped is None:
        # Answers that this run got truncated are asked again in the same run.
        again = await asyncio.to_thread(replan, plan, ledger)
        if any(m.truncated.any() and m.missing.any() for m in again.models):
            before = collected.paused
            collected = await _once(again, ledger, run, budget, on_progress, on_stored)
            for model, tally in collected.tallies.items():
                tally.paused = tally.paused or before.get(model)
    await _canaries(plan, ledger, run, budget, END)
    return collected


def ask_canaries(plan: Plan, ledger: Ledger, run: str, purpose: str) -> None:
    """Ask the canary prompts of the models the plan misses answers of.

    For a run that several processes share: each `collect` would ask its own.

    Args:
        purpose: `START` before the run, `END` after it, on the same plan.
    """
    budget = budget_of(plan, ledger)
    asyncio.run(_canaries(plan, ledger, run, budget, purpose))


async def _canaries(
    plan: Plan, ledger: Ledger, run: str, budget: BudgetLedger, purpose: str
) -> None:
    """Ask the canary prompts of every model that this run asks anything."""
    canary = plan.collect.canary
    queues = [
        queue_of(
            model.model,
            model.provider,
            plan.collect,
            canary_requests(model.model.model_id, model.settings, canary, run),
            wanted=len(canary),
        )
        for model in plan.models
        if model.missing.any()
    ]
    if canary and queues:
        # A key of this run and purpose: nothing older can settle it.
        after = await asyncio.to_thread(ledger.position)
        timeouts = timeouts_of(plan.collect)
        how = RequestRun(ledger, after, run, purpose, plan.collect.retry, budget, timeouts=timeouts)
        await run_requests(queues, how)


def replan(made: Plan, ledger: Ledger) -> Plan:
    """The same plan, with what the ledger has now."""
    pool = Pool(
        models=[m.model for m in made.models],
        providers=list({m.provider.name: m.provider for m in made.models}.values()),
    )
    rows = [m.rows for m in made.models]
    about: dict[str, Any] = {"benchmark": made.benchmark, "images": made.images}
    return plan(made.queries, pool, made.collect, ledger, rows=rows, **about)


async def _once(
    plan: Plan,
    ledger: Ledger,
    run: str,
    budget: BudgetLedger,
    on_progress: OnProgress | None,
    on_stored: OnStored | None,
) -> RunResult:
    settings = plan.collect
    queues = [
        queue_of(
            model.model,
            model.provider,
            settings,
            requests(plan, model),
            wanted=model.wanted,
            before=model.settled,
        )
        for model in plan.models
    ]
    await asyncio.to_thread(ledger.remember, model_notes(m.model for m in plan.models))
    how = RequestRun(
        ledger, plan.position, run, "collect", settings.retry, budget, on_stored,
        timeouts_of(settings), settings.stream, on_progress,
    )  # fmt: skip
    if settings.transport == "batch":
        return await run_batches(queues, how)
    await asyncio.to_thread(_no_batches, plan, ledger)
    return await run_requests(queues, how)


def _no_batches(plan: Plan, ledger: Ledger) -> None:
    """What a batch is asking already must not be asked live as well."""
    models = {m.model.model_id for m in plan.models}
    for name, text in ledger.recall(PREFIX).items():
        if (model_id := BatchNote.read(text).model_id) in models:
            raise BadInput(
                f"a batch of model {model_id!r} is still under way",
                where=f"batch {name} in the ledger",
                next_step="run once with 'collect.transport: batch' to fetch its answers",
            )


def budget_of(plan: Plan, ledger: Ledger) -> BudgetLedger:
    """The benchmark's budget."""
    return BudgetLedger(plan.collect.budget, ledger, plan.benchmark)


# Canary prompts: fixed prompts asked at the start and again at the end of a run.
#
# An endpoint that changes under a run (another model behind the name, another
# quantisation) answers them differently. They are kept in the ledger under
# separate purposes, never enter `responses`, and are asked in every run.

START, END = "canary:start", "canary:end"


def canary_requests(
    model_id: str, settings: RequestSettings, prompts: Sequence[str], run: str
) -> Iterator[Request]:
    """One request per prompt at temperature 0 for 64 tokens, with the model's other parameters.

    The run's name is part of the key, so that each run asks anew.
    """
    parameters = {k: v for k, v in settings.parameters.items() if k != "max_completion_tokens"}
    limit = "max_completion_tokens" if parameters != settings.parameters else "max_tokens"
    parameters |= {"temperature": 0, "seed": 0, limit: 64}
    asked = dataclasses.replace(settings, parameters=parameters)
    for prompt in prompts:
        messages = [{"role": "user", "content": prompt}]
        yield Request(
            query_id=prompt,
            model_id=model_id,
            settings=asked,
            messages=messages,
            samples=(0,),
            request_hash=f"{run}:{asked.request_hash(messages)}",
        )


def canary_answers(ledger: Ledger) -> pa.Table | None:
    """Canary answers of the newest run that asked any at its end; null without one.

    Columns `model_id`, `prompt`, `phase` (`start`, `end`), `text`, `served_model`.
    """
    answers = [
        (phase, attempt)
        for phase, purpose in (("start", START), ("end", END))
        for attempt in ledger.attempts(purpose=purpose)
        if attempt.usable
    ]
    if not answers:
        return None
    newest = answers[-1][1].run
    return pa.Table.from_pylist(
        [
            {
                "model_id": attempt.model_id,
                "prompt": attempt.query_id,
                "phase": phase,
                "text": attempt.text,
                "served_model": attempt.served_model,
            }
            for phase, attempt in answers
            if attempt.run == newest
        ],
        schema=RESULTS["canary_answers"],
    )
