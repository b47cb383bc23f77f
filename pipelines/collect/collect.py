"""Plan → calls → responses: what a run asked, and the table it leaves.

plan = collect.plan(queries, pool, recipe.collect, ledger)
collected = collect.collect(plan, ledger, on_progress=show)
responses = collect.responses_table(plan, ledger)
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.calls.ask import Asked, ask
from pipelines.calls.batch import ask_in_batches
from pipelines.calls.budget import Purse
from pipelines.calls.canary import END, START, canary_requests
from pipelines.calls.lane import Lane
from pipelines.calls.pricing import Price
from pipelines.calls.progress import OnProgress
from pipelines.collect.plan import CHUNK, ModelPlan, Plan, hashes, plan, requests
from pipelines.errors import BadInput
from pipelines.ledger.attempt import Attempt
from pipelines.ledger.ledger import Answered, Ledger
from schemas import RESPONSES
from schemas.recipe.pool import Pool


@dataclass(frozen=True)
class Collected:
    """How a run ended.

    Attributes:
        missing: Answers that asking again may bring, per model that misses any.
        paused: Why a model was given up in this run, by model.
        stopped: Why the whole run stopped early, or null.
        figures: JSON-ready counts per model.
    """

    missing: dict[str, int]
    paused: dict[str, str]
    stopped: str | None
    figures: dict[str, Any]

    @property
    def complete(self) -> bool:
        return not self.missing


def collect(
    plan: Plan,
    ledger: Ledger,
    *,
    on_progress: OnProgress | None = None,
    on_stored: Callable[[Sequence[Attempt]], None] | None = None,
) -> Collected:
    """Ask for everything the plan misses; what arrives is in the ledger.

    Ends normally when a model was paused or a budget was reached: `Collected`
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
    on_stored: Callable[[Sequence[Attempt]], None] | None = None,
) -> Collected:
    """As `collect`, inside a running event loop."""
    run = uuid.uuid4().hex[:12]
    # One purse for all parts of a run: its budget is one.
    purse = Purse(plan.collect.budget)
    await _canaries(plan, ledger, run, purse, START)
    collected = await _once(plan, ledger, run, purse, on_progress, on_stored)
    if plan.collect.reask_truncated is not None and collected.stopped is None:
        # Answers that this run got truncated are asked again in the same run.
        again = await asyncio.to_thread(replan, plan, ledger)
        if any(m.truncated.any() and m.missing.any() for m in again.models):
            second = await _once(again, ledger, run, purse, on_progress, on_stored)
            collected = dataclasses.replace(second, paused=collected.paused | second.paused)
    await _canaries(plan, ledger, run, purse, END)
    return collected


def ask_canaries(plan: Plan, ledger: Ledger, run: str, purpose: str) -> None:
    """Ask the canary prompts of the models the plan misses answers of.

    For a run that several processes share: each `collect` would ask its own.

    Args:
        purpose: `canary.START` before the run, `canary.END` after it, on the same plan.
    """
    asyncio.run(_canaries(plan, ledger, run, Purse(plan.collect.budget), purpose))


async def _canaries(plan: Plan, ledger: Ledger, run: str, purse: Purse, purpose: str) -> None:
    """Ask the canary prompts of every model that this run asks anything."""
    canary = plan.collect.canary
    lanes = [
        dataclasses.replace(
            _lane(plan, model),
            requests=canary_requests(
                model.model.model_id, model.settings, canary.prompts, canary.max_tokens, run
            ),
            wanted=len(canary.prompts),
            before=0,
        )
        for model in plan.models
        if model.missing.any()
    ]
    if canary.prompts and lanes:
        await ask(
            lanes,
            ledger,
            # A key of this run and purpose: nothing older can settle it.
            after=await asyncio.to_thread(ledger.position),
            run=run,
            purpose=purpose,
            retry=plan.collect.retry,
            purse=purse,
            deadline_s=plan.collect.deadline_s,
        )


def replan(made: Plan, ledger: Ledger) -> Plan:
    """The same plan, with what the ledger has now."""
    pool = Pool(
        models=[m.model for m in made.models],
        providers=list({m.provider.name: m.provider for m in made.models}.values()),
    )
    return plan(made.queries, pool, made.collect, ledger, rows=[m.rows for m in made.models])


async def _once(
    plan: Plan,
    ledger: Ledger,
    run: str,
    purse: Purse,
    on_progress: OnProgress | None,
    on_stored: Callable[[Sequence[Attempt]], None] | None,
) -> Collected:
    lanes = [_lane(plan, model) for model in plan.models]
    await asyncio.to_thread(ledger.remember, _notes(plan))
    how: dict[str, Any] = {
        "after": plan.position,
        "run": run,
        "purse": purse,
        "deadline_s": plan.collect.deadline_s,
        "on_progress": on_progress,
        "on_stored": on_stored,
    }
    if plan.collect.transport == "batch":
        asked = await ask_in_batches(lanes, ledger, batch=plan.collect.batch, **how)
    else:
        await asyncio.to_thread(_no_batches, plan, ledger)
        retry, stream = plan.collect.retry, plan.collect.stream
        asked = await ask(lanes, ledger, retry=retry, stream=stream, **how)
    return _collected(asked)


def _no_batches(plan: Plan, ledger: Ledger) -> None:
    """What a batch is asking already must not be asked live as well."""
    models = {m.model.model_id for m in plan.models}
    for name, text in ledger.recall("batch:").items():
        if (model_id := json.loads(text)["model_id"]) in models:
            raise BadInput(
                f"a batch of model {model_id!r} is still under way",
                where=f"batch {name} in the ledger",
                next_step="run once with 'collect.transport: batch' to fetch its answers",
            )


def _lane(plan: Plan, model: ModelPlan) -> Lane:
    return Lane(
        model_id=model.model.model_id,
        provider=model.provider,
        requests=requests(plan, model),
        wanted=model.wanted,
        before=model.settled,
        limits=model.model.limits or plan.collect.limits,
        price=model.price,
        max_tokens=model.model.context_window,
    )


def _notes(plan: Plan) -> dict[str, str]:
    """What was asked and of whom, so that a ledger can be audited without its recipe."""
    both = [s for m in plan.models for s in (m.settings, m.larger) if s is not None]
    notes = {f"settings:{s.settings_hash}": s.identity.decode() for s in both}
    models = [m.model for m in plan.models]
    return notes | {f"model:{m.model_id}": m.model_dump_json() for m in models}


def _collected(asked: Asked) -> Collected:
    tallies = asked.tallies
    models = {
        model_id: {
            "wanted": t.wanted,
            "before": t.before,
            "ok": t.ok,
            "truncated": t.truncated,
            "refused": t.refused,
            "failed": t.failed,
            "permanent": t.permanent,
            "attempts": t.asked,
            "errors": dict(sorted(t.errors.items())),
            "spent_usd": t.spent_usd,
            "cost_unknown": t.unpriced,
            "paused": t.paused,
        }
        for model_id, t in tallies.items()
    }
    return Collected(
        missing={m: n for m, t in tallies.items() if (n := t.wanted - t.done - t.permanent) > 0},
        paused={m: t.paused for m, t in tallies.items() if t.paused},
        stopped=asked.stopped,
        figures={"elapsed_s": asked.elapsed_s, "models": models},
    )


def responses_table(plan: Plan, ledger: Ledger, models: Sequence[str] | None = None) -> pa.Table:
    """`responses` of the plan's pairs, sorted by model, query and sample.

    The newest `ok` attempt of each pair, else the newest truncated or refused
    one, else the newest error. A pair that was never asked has no row.

    Args:
        models: Model ids to read; all of the plan by default.
    """
    batches = [
        batch
        for model in plan.models
        if models is None or model.model.model_id in models
        for batch in _batches(plan, model, ledger)
    ]
    table = pa.Table.from_batches(batches, schema=RESPONSES.schema)
    return RESPONSES.check(
        table.sort_by(
            [("model_id", "ascending"), ("query_id", "ascending"), ("sample", "ascending")]
        )
    )


def _batches(plan: Plan, model: ModelPlan, ledger: Ledger) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(model.rows), CHUNK):
        first = hashes(plan, model, model.settings, start, start + CHUNK)
        found = ledger.answered(first)
        second = hashes(plan, model, model.larger, start, start + CHUNK) if model.larger else []
        larger = ledger.answered(second) if model.larger else {}
        rows = []
        for offset, request_hash in enumerate(first):
            for sample in range(plan.collect.samples):
                answer = found.get((request_hash, sample))
                if answer is None:
                    continue
                again = larger.get((second[offset], sample)) if second else None
                query_id = plan.query_id(int(model.rows[start + offset]))
                row = _row(query_id, model.model.model_id, sample, answer, again)
                kept = _kept(answer, again)
                rows.append(row | _cost(kept, model.price))
        columns = [
            pa.array([row.get(c.name) for row in rows], type=c.type) for c in RESPONSES.columns
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=RESPONSES.schema)


_SAME = [name for name in RESPONSES.column_names if name in Attempt.__slots__]


def _cost(attempt: Attempt, price: Price) -> dict[str, Any]:
    """The cost by the recipe's price, which may be newer than the one at the time of asking."""
    if attempt.cost_source == "provider":
        return {"cost_usd": attempt.cost_usd, "cost_source": "provider"}
    whole = None
    if attempt.usable:
        whole = price.of(attempt.prompt_tokens, attempt.call_completion_tokens)
    if whole is None:
        return {"cost_usd": None, "cost_source": None}
    return {"cost_usd": whole / attempt.choices, "cost_source": "price_table"}


def _kept(answer: Answered, again: Answered | None) -> Attempt:
    """The answer with the larger token limit, where it is usable."""
    return again.attempt if again and again.attempt.usable else answer.attempt


def _row(
    query_id: str, model_id: str, sample: int, answer: Answered, again: Answered | None
) -> dict[str, Any]:
    attempts = answer.attempts + (again.attempts if again else 0)
    kept = _kept(answer, again)
    row = {name: getattr(kept, name) for name in _SAME}
    error = None
    if kept.status == "error":
        error = f"{kept.error_class}: {kept.error}" if kept.error else kept.error_class
    return row | {
        # The hash knows nothing of ids: two sources may hold the same question.
        "query_id": query_id,
        "model_id": model_id,
        "sample": sample,
        "attempts": attempts,
        "error": error,
        "given_score": None,
        "graded_against": None,
    }
