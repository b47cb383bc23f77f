"""What is wanted, what is there already, and what the rest will cost.

Wanted = covered (query, model) pairs × samples. Missing = wanted minus what the
ledger has settled: a response, or an error that cannot go away. Retryable
errors are missing. Nothing is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Bools
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.calls.request import Request, RequestSettings
from routeyard.pipelines.collect.coverage import Rows, covered
from routeyard.pipelines.collect.estimate import Estimate, estimate, metered_by_model
from routeyard.pipelines.collect.missing import missing_of
from routeyard.pipelines.collect.model_prompts import ModelPrompts
from routeyard.pipelines.collect.settings import check_model, check_names, provider_of, settings_of
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model, Pool, Provider


@dataclass(frozen=True)
class ModelPlan:
    """One model's share of the plan.

    Attributes:
        settings: What its requests say; `larger` with the larger token limit, if
            truncated answers are asked again.
        asks: The messages that ask it each query.
        rows: Row numbers in the plan's queries that this model is asked, int32 [q].
        missing: True where an answer is missing, bool [q, samples].
        truncated: True where the larger limit is to be asked, bool [q, samples].
        billed: Attempts so far that were billed without an answer, int32 [q, samples].
        settled: Answers and permanent errors that are there.
        unanswered: Pairs among them that are given up: billed too often for nothing.
    """

    model: Model
    provider: Provider
    settings: RequestSettings
    larger: RequestSettings | None
    asks: ModelPrompts
    rows: np.ndarray[Any, np.dtype[np.int32]]
    missing: Bools
    truncated: Bools
    billed: np.ndarray[Any, np.dtype[np.int32]]
    settled: int
    unanswered: int
    estimate: Estimate

    @property
    def wanted(self) -> int:
        return int(self.missing.size)

    @property
    def calls(self) -> int:
        """Requests to send: with `n`, one asks for all missing samples of a query."""
        if self.provider.supports_n:
            plain = self.missing & ~self.truncated
            return int(plain.any(axis=1).sum()) + int(self.truncated.any(axis=1).sum())
        return int(self.missing.sum())

    @property
    def price(self) -> Price:
        return Price.of_model(self.model)


@dataclass(frozen=True)
class Plan:
    """Everything a run needs to know; made by `plan`.

    Attributes:
        queries: The queries, as given (`query_id`, `prompt`, `task`, …).
        position: Newest attempt the plan took into account.
        benchmark: Whose answers these are, and whose budget pays for them.
        images: Folder of the questions' images.
    """

    queries: pa.Table
    collect: Collect
    models: tuple[ModelPlan, ...]
    position: int
    benchmark: str = ""
    images: Path | None = None

    @property
    def wanted(self) -> int:
        return sum(model.wanted for model in self.models)

    @property
    def missing(self) -> int:
        return sum(int(model.missing.sum()) for model in self.models)

    @property
    def calls(self) -> int:
        return sum(model.calls for model in self.models)

    @cached_property
    def _ids(self) -> pa.ChunkedArray:
        return self.queries.column("query_id")

    def query_id(self, row: int) -> str:
        return str(self._ids[row].as_py())

    def only(self, model_ids: Sequence[str]) -> Plan:
        """The part of the plan that asks these models (one task per model)."""
        kept = tuple(m for m in self.models if m.model.model_id in set(model_ids))
        return replace(self, models=kept)

    def figures(self) -> dict[str, Any]:
        """JSON-ready: counts, tokens and USD, per model and in total. Unknown is null."""
        models = [_figures(model) for model in self.models]
        costs = [m["cost_usd"] for m in models if m["calls"]]
        worst = [m["worst_cost_usd"] for m in models if m["calls"]]
        return {
            "queries": self.queries.num_rows,
            "models": models,
            "wanted": self.wanted,
            "settled": self.wanted - self.missing,
            "missing": self.missing,
            "calls": self.calls,
            "cost_usd": None if None in costs else sum(costs),
            "least_cost_usd": least_of(models),
            "worst_cost_usd": None if None in worst else sum(worst),
        }


def plan(
    queries: pa.Table,
    pool: Pool,
    collect: Collect,
    ledger: Ledger | None,
    *,
    rows: Sequence[Rows] | None = None,
    benchmark: str = "",
    images: Path | None = None,
) -> Plan:
    """Plan the collection of a pool's answers.

    Args:
        queries: `queries` table (columns `query_id`, `prompt` and `task` are read).
        pool: Models and providers; its `file` is already read into `models`.
        ledger: What is there; null for an empty one.
        rows: Rows of `queries` that each model is asked; drawn from
            `collect.coverage` by default: the pool is then the whole one.
        benchmark: The recipe's name; its budget counts what every run of it spent.
        images: Folder of the questions' images, each under its SHA-256.

    Raises:
        RecipeError: a model names no provider the pool lists, or a budget is set
            and a model's worst case cannot be known, or it bounds an unknown model.
    """
    if rows is None:
        check_names(pool.models, collect)
    position = ledger.position() if ledger else 0
    metered = metered_by_model(ledger.attempts(purpose="collect"), queries) if ledger else {}
    drawn = covered(queries, len(pool.models), collect.coverage) if rows is None else rows
    plans = []
    for model, asked in zip(pool.models, drawn, strict=True):
        provider = provider_of(model, pool)
        check_model(model, collect)
        settings = settings_of(model, provider, collect)
        larger = None
        if collect.reask_truncated is not None:
            larger = settings_of(model, provider, collect, max_tokens=collect.reask_truncated)
        asks = ModelPrompts(queries, model, collect, images)
        asks.check_images(asked)
        found = missing_of(asks, asked, settings, larger, collect, ledger, benchmark)
        missing = found.missing
        plans.append(
            ModelPlan(
                model=model,
                provider=provider,
                settings=settings,
                larger=larger,
                asks=asks,
                rows=asked,
                missing=missing,
                truncated=found.truncated,
                billed=found.billed,
                settled=int(missing.size - missing.sum()),
                unanswered=int((found.unanswered & ~missing).sum()),
                estimate=estimate(
                    asks, asked, missing, model, settings, metered.get(model.model_id)
                ),
            )
        )
    return Plan(queries, collect, tuple(plans), position, benchmark, images)


def cuts(rows: int, shards: int) -> list[tuple[int, int]]:
    """(first, one past the last) of at most so many ranges of nearly equal length."""
    edges = [rows * k // shards for k in range(shards + 1)]
    return [(start, stop) for start, stop in pairwise(edges) if stop > start]


def requests(plan: Plan, model: ModelPlan) -> Iterator[Request]:
    """The requests that are missing, made one at a time."""
    tokens = model.estimate.prompt_tokens_each
    for index in np.flatnonzero(model.missing.any(axis=1)):
        row = int(model.rows[index])
        asked = model.asks.messages(row)
        again = model.truncated[index]
        for settings, wanted in (
            (model.settings, model.missing[index] & ~again),
            (model.larger, model.missing[index] & again),
        ):
            samples = [int(s) for s in np.flatnonzero(wanted)]
            if settings is None or not samples:
                continue
            groups = [tuple(samples)] if model.provider.supports_n else [(s,) for s in samples]
            for group in groups:
                yield Request(
                    query_id=plan.query_id(row),
                    model_id=model.model.model_id,
                    settings=settings,
                    messages=asked,
                    samples=group,
                    request_hash=settings.request_hash(asked),
                    tokens_expected=int(tokens[index]),
                    billed=int(model.billed[index, list(group)].max()),
                )


def least_of(models: Sequence[Mapping[str, Any]]) -> float | None:
    """What the calls cost if answers are as short as can be; null where all were metered, or a
    cost is unknown."""
    asked = [m for m in models if m["calls"]]
    if all(m["least_cost_usd"] is None for m in asked) or None in [m["cost_usd"] for m in asked]:
        return None
    return float(sum(m["cost_usd"] if m["least_cost_usd"] is None else m["least_cost_usd"]
                     for m in asked))  # fmt: skip


def unknown(model: ModelPlan) -> list[str]:
    """What has to be written into the recipe before this model's cost can be computed."""
    if not model.calls or (
        model.estimate.cost_usd is not None and model.estimate.worst_cost_usd is not None
    ):
        return []
    prices = ("price_in", "price_out")
    found = [f"the model's '{name}'" for name in prices if getattr(model.model, name) is None]
    limits = ("max_tokens", "max_completion_tokens")
    stated = any(model.settings.parameters.get(name) is not None for name in limits)
    if not stated and (
        model.estimate.completion_tokens is None or model.model.context_window is None
    ):
        found.append("'collect.max_tokens'")
    return found


def _figures(model: ModelPlan) -> dict[str, Any]:
    asked = model.estimate
    missing = int(model.missing.sum())
    return {
        "model_id": model.model.model_id,
        "provider": model.provider.name,
        "wanted": model.wanted,
        "settled": model.settled,
        "missing": missing,
        "unanswered": model.unanswered,
        "calls": model.calls,
        "prompt_tokens": asked.prompt_tokens,
        "prompt_tokens_error": asked.prompt_error,
        "prompt_tokens_source": asked.prompt_source,
        "completion_tokens": asked.completion_tokens,
        "completion_tokens_source": asked.completion_source,
        "cost_usd": asked.cost_usd,
        "least_cost_usd": asked.least_cost_usd,
        "worst_cost_usd": asked.worst_cost_usd,
        "unknown": unknown(model),
        "price_date": model.model.price_date,
    }
