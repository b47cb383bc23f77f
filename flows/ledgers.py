"""A workspace's ledger for commands that only read: it must be there."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.flows.tracking import limit_name, made, tracked
from routeyard.pipelines.collect.ledger import Ledger
from routeyard.pipelines.common.errors import GateFailed, Retryable
from routeyard.schemas.errors import BadInput, RecipeError, did_you_mean
from routeyard.schemas.recipe import Collect, Model, Pool
from routeyard.schemas.recipe.collect import RateLimits

if TYPE_CHECKING:
    from routeyard.flows.workspace import BuildContext
    from routeyard.pipelines.collect.ledger import Attempt

# Several collectors on one benchmark: one ledger, and provider limits that hold in sum.
#
# `ROUTEYARD_LEDGER` names a PostgreSQL ledger (`postgresql://…`); without it the
# ledger is the workspace's own file. `ROUTEYARD_COLLECTORS` says how many
# collectors may work at once: each takes an equal share of every limit, and holds
# one of that many slots while it asks, so that one too many is turned away.

LEDGER = "ROUTEYARD_LEDGER"
COLLECTORS = "ROUTEYARD_COLLECTORS"


@contextmanager
def open_ledger(root: Path) -> Iterator[Ledger]:
    """The ledger that the environment names, else the workspace's; closed on leaving."""
    url = os.environ.get(LEDGER)
    if url and not url.startswith(("postgresql://", "postgres://")):
        raise BadInput(
            f"{LEDGER} does not start with postgresql://",
            next_step="unset it to keep the ledger in the workspace",
        )
    if url:
        from routeyard.pipelines.collect.postgres import PostgresLedger

        with PostgresLedger(url) as shared:
            yield shared
        return
    from routeyard.pipelines.collect.sqlite import SqliteLedger
    from routeyard.pipelines.release.storage import outside_releases

    outside_releases(root)
    with SqliteLedger(root / "ledger" / "ledger.sqlite") as own:
        yield own


def collectors() -> int:
    """How many collectors may ask at once, this one included."""
    setting = os.environ.get(COLLECTORS, "1")
    if not (setting.isascii() and setting.isdecimal() and 1 <= int(setting) <= 1000):
        raise BadInput(f"{COLLECTORS} is {setting!r}", next_step="set a number between 1 and 1000")
    return int(setting)


def share(pool: Pool, collect: Collect, collectors: int) -> tuple[Pool, Collect]:
    """Pool and collect section with this collector's share of every limit.

    Raises:
        BadInput: a limit leaves less than one call in flight per collector.
    """
    if collectors == 1:
        return pool, collect

    def shared(value: Any) -> Any:
        return value.but(limits=part(value.limits, collectors))

    models = [shared(model) if model.limits else model for model in pool.models]
    providers = [shared(provider) for provider in pool.providers]
    return pool.but(providers=providers, models=models), shared(collect)


def part(limits: RateLimits, collectors: int) -> RateLimits:
    """One of `collectors` equal shares."""
    if limits.concurrency < collectors:
        raise BadInput(
            f"{limits.concurrency} calls in flight cannot be shared by {collectors} collectors",
            next_step=f"lower {COLLECTORS}, or raise 'limits.concurrency' in the recipe",
        )
    return limits.but(
        concurrency=limits.concurrency // collectors,
        requests_per_minute=_share(limits.requests_per_minute, collectors),
        tokens_per_minute=_share(limits.tokens_per_minute, collectors),
    )


def sharers(pool: Pool, collect: Collect, collectors: int, at_once: int) -> int:
    """Among how many shards each limit of a pool is divided.

    Not more than its smallest concurrency allows, and so many that a Prefect
    limit, of which each holds its share, lets no more of them ask.

    Args:
        collectors: Collectors. at_once: Shards that each of them works on at a time.
    """
    limits = [m.limits or collect.limits for m in pool.models] + [p.limits for p in pool.providers]
    smallest = min(limit.concurrency for limit in limits)
    wanted = max(collectors, min(collectors * at_once, smallest))
    # 5 places for 3 shards make 1 place each, and then 5 of them may ask.
    return max(
        p.limits.concurrency // max(1, p.limits.concurrency // wanted) for p in pool.providers
    )


@contextmanager
def collector_slot(collectors: int) -> Iterator[None]:
    """One of the collectors' slots, held while this one asks.

    With a PostgreSQL ledger the database counts the slots; a collector that dies
    loses its own.
    """
    url = os.environ.get(LEDGER)
    if not url:
        yield
        return
    from routeyard.pipelines.collect.postgres import take_slot

    with take_slot(url, collectors):
        yield


@contextmanager
def provider_slots(pool: Pool) -> Iterator[None]:
    """As much of each provider's Prefect limit as the pool's share says, in a tracked run."""
    with ExitStack() as held:
        if tracked():
            from prefect.concurrency.sync import concurrency

            for provider in pool.providers:
                places = provider.limits.concurrency
                held.enter_context(concurrency(limit_name(provider.name), occupy=places))
        yield


def at_server(pool: Pool) -> Pool:
    """The pool with providers' limits as the Prefect server has them, where they are lower.

    Makes those that are not there. Outside a tracked run the pool as it is.
    """
    if not tracked():
        return pool

    there = made({p.name: p.limits.concurrency for p in pool.providers})
    providers = []
    for provider in pool.providers:
        lower = min(provider.limits.concurrency, there[provider.name])
        limits = provider.limits.but(concurrency=lower)
        providers.append(provider.but(limits=limits))
    return pool.but(providers=providers)


def _share(value: float | None, collectors: int) -> float | None:
    return None if value is None else value / collectors


def ledger_exists(workspace: Path) -> bool:
    """Whether there is a ledger to read: the shared one, or the workspace's own file."""
    return bool(os.environ.get(LEDGER)) or (workspace / "ledger" / "ledger.sqlite").is_file()


@contextmanager
def existing_ledger(workspace: Path) -> Iterator[Ledger]:
    """The ledger to read: the shared one, or the workspace's own file.

    Raises:
        BadInput: nothing was asked from this workspace.
    """
    if not ledger_exists(workspace):
        raise BadInput(
            "this workspace has no ledger: no model was asked from it",
            where=str(workspace / "ledger" / "ledger.sqlite"),
            next_step="name a workspace in which a recipe with provider 'openai' was built",
        )
    with open_ledger(workspace) as ledger:
        yield ledger


def prompts(workspace: Path) -> Any:
    """`query_id` and `prompt` of every question the workspace has ingested, or null."""
    import duckdb

    files = [str(path) for path in workspace.glob("stages/ingest/*/queries.parquet")]
    if not files:
        return None
    with duckdb.connect() as connection:
        return connection.sql(
            "SELECT query_id, min(prompt) AS prompt FROM read_parquet(?) GROUP BY 1 ORDER BY 1",
            params=[files],
        ).to_arrow_table()


# Prompts that are asked beside a benchmark's questions: judges, probes, self-assessment.
#
# Through the same client and ledger as collection, under another purpose: paid
# once, resumed after a crash, and never taken for a benchmark's answers.


def model_to_ask(pool: Pool, model_id: str, provider: str | None = None) -> Model:
    """A model of the pool, or one that only a provider of the pool serves.

    Raises:
        RecipeError: the pool does not have it, and no provider is named.
    """

    models = {model.model_id: model for model in pool.models}
    if model_id in models:
        return models[model_id]
    if provider is None:
        raise RecipeError(
            f"the pool has no model {model_id!r} to ask",
            where="pool.models",
            next_step=did_you_mean(model_id, models) + ", or name its 'provider'",
        )
    return Model(model_id=model_id, provider=provider)


def ask_prompts(
    context: BuildContext,
    pool: Pool,
    collect: Collect,
    model: Model,
    prompts: Sequence[str],
    *,
    purpose: str,
    parameters: Mapping[str, Any],
) -> list[Attempt | None]:
    """One attempt per prompt, in order; None where asking again cannot give an answer.

    Args:
        parameters: Added to the model's own.

    Raises:
        RecipeError: no provider of the pool serves the model.
        Retryable: some answers are still missing (an outage, a spent budget): a
            result made without them would be kept as if it were whole.
        GateFailed: they are missing because a key, an address or the model was refused.
    """
    from routeyard.pipelines.collect.budget import BudgetLedger
    from routeyard.pipelines.collect.plan import provider_of, queue_of, timeouts_of
    from routeyard.pipelines.collect.prompts import ask_prompts as ask_queue
    from routeyard.pipelines.collect.prompts import request_for
    from routeyard.pipelines.collect.request import RequestSettings

    provider = provider_of(model, pool)
    settings = RequestSettings.of(
        provider, model.endpoint_model or model.model_id, {**model.parameters, **parameters}
    )
    requests = [request_for(settings, model.model_id, "", text) for text in prompts]
    named = [replace(r, query_id=f"{purpose}:{r.request_hash[:20]}") for r in requests]
    queue = queue_of(model, provider, collect, iter(()), wanted=0)
    with open_ledger(context.root) as ledger:
        results = ask_queue(
            named,
            queue,
            ledger,
            run=uuid.uuid4().hex[:12],
            purpose=purpose,
            retry=collect.retry,
            budget=BudgetLedger(collect.budget, ledger, context.benchmark),
            timeouts=timeouts_of(collect),
        )
    if results.missing:
        last = next((answer for answer in results.answers.values() if not answer.final), None)
        unsent = last.error if last else "not sent"
        kind = GateFailed if results.refusal else Retryable
        raise kind(
            f"{results.missing} of {len(set(prompts))} {purpose} questions to {model.model_id!r} "
            f"were not answered: {results.refusal or results.stopped or unsent}",
            where=f"provider {provider.name!r}",
            next_step="run the same command again: what was answered is kept and not paid twice",
        )
    standing = [results.answers[request.request_hash] for request in requests]
    return [attempt if attempt.usable else None for attempt in standing]
