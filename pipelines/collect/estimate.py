"""Tokens and USD of what is missing, before anything is sent.

Prompt tokens are counted with the model's own tokenizer where the pool names
it, else scaled from what the ledger metered for that model, else taken as four
characters a token. Each says how far off it may be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Bools, Floats
from routeyard.pipelines.calls.budget import TEMPLATE_TOKENS
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.calls.request import RequestSettings
from routeyard.pipelines.collect.model_prompts import ModelPrompts
from routeyard.pipelines.errors import RecipeError
from routeyard.pipelines.ledger.attempt import Attempt
from routeyard.schemas.recipe.collect import Budget
from routeyard.schemas.recipe.pool import Model

CHARACTERS_PER_TOKEN = 4.0
#: Relative error of four characters a token on English prose, code and mathematics.
CHARACTERS_ERROR = 0.35
#: Tokens a chat template adds around one user message.
TEMPLATE = 8
#: Tokens of an answer of a model that was never metered, and of the shortest there are. Of the 72
#: models of the recorded GSM8K and MMLU-Pro answers, asked to work step by step, the median model
#: takes 135 and 92 (four characters a token); a letter alone takes 5. Models that think take more.
TYPICAL_TOKENS, LEAST_TOKENS = 120, 5
#: Metered calls that make the ledger a better guide than the length.
ENOUGH = 30


@dataclass(frozen=True)
class Estimate:
    """What the missing calls of one model will take.

    Attributes:
        prompt_tokens_each: Expected prompt tokens per covered query, float64 [q].
        prompt_tokens: Their sum over what is missing.
        prompt_error: Relative error of that sum; null when counted by the tokenizer.
        prompt_source: `tokenizer`, `ledger` or `characters`.
        completion_tokens: Expected sum; null when nothing tells it.
        completion_source: `ledger`, `typical` (`TYPICAL_TOKENS` an answer) or null.
        cost_usd: Expected cost; null when a price or a count is unknown.
        least_cost_usd: What the shortest answers cost; null when `cost_usd` is, or was metered.
        worst_cost_usd: Most it can cost; null when a price or the limit is unknown.
    """

    prompt_tokens_each: Floats
    prompt_tokens: int
    prompt_error: float | None
    prompt_source: str
    completion_tokens: int | None
    completion_source: str | None
    cost_usd: float | None
    least_cost_usd: float | None
    worst_cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Metered:
    """What the ledger says of one model: tokens of each call; of the cache, 0 where unknown."""

    characters: Floats
    prompt: Floats
    completion: Floats
    cache_read: Floats
    cache_write: Floats


def estimate(
    asks: ModelPrompts,
    rows: np.ndarray[Any, np.dtype[np.int32]],
    missing: Bools,
    model: Model,
    settings: RequestSettings,
    metered: Metered | None,
) -> Estimate:
    """Estimate one model's missing calls.

    Args:
        asks: What the model is asked of each query.
        rows: Covered rows of the queries, int32 [q].
        missing: Missing answers, bool [q, samples].
        metered: Earlier calls of this model, if there are any.
    """
    prompts = asks.prompts(rows)
    characters = np.asarray(pc.utf8_length(prompts), dtype=np.float64)
    characters += len(asks.system or "")
    pictures = asks.image_tokens(rows)
    # What was metered is known by the query's own length: frame and system message are the same
    # in every call, so the offset holds them.
    plain = asks.lengths(rows)
    each, error, source = _prompt_tokens(prompts, characters, plain, model, asks.system, metered)
    if source != "ledger":  # what was metered has its images
        each = each + pictures
    answers = missing.sum(axis=1)
    prompt_tokens = int(np.ceil((each * answers).sum()))
    completion, completion_source = _completion(int(answers.sum()), settings, metered)
    # Without `price_up_to`: the counts are sums over calls.
    price = replace(Price.of_model(model), up_to=None)
    limit = settings.max_tokens or model.context_window
    encoded = np.asarray(pc.binary_length(prompts.cast(pa.binary())), dtype=np.float64)
    encoded += len((asks.system or "").encode())
    most = int(((encoded + pictures + 2 * TEMPLATE_TOKENS) * answers).sum())
    return Estimate(
        prompt_tokens_each=each,
        prompt_tokens=prompt_tokens,
        prompt_error=error,
        prompt_source=source,
        completion_tokens=completion,
        completion_source=completion_source,
        cost_usd=price.of(prompt_tokens, completion, *_cached(prompt_tokens, price, metered)),
        least_cost_usd=(
            price.of(prompt_tokens, LEAST_TOKENS * int(answers.sum()))
            if completion_source == "typical"
            else None
        ),
        worst_cost_usd=price.dearest.of(
            most, None if limit is None else limit * int(answers.sum())
        ),
    )


def budget_share(
    budget: Budget, models: Sequence[Mapping[str, Any]], spent: Mapping[str, float]
) -> tuple[float | None, float | None]:
    """Share of the calls that the budget is enough for: as expected, and at the worst; null where a
    price is unknown.

    Args:
        models: Figures of each model of a plan: calls, and USD expected and at most.
        spent: USD per model that are spent or set aside.
    """
    asked = [row for row in models if row["calls"]]
    if any(None in (row["cost_usd"], row["worst_cost_usd"]) for row in asked):
        return None, None
    shares = []
    for name in ("cost_usd", "worst_cost_usd"):
        parts = []  # per model: calls, their USD, and most USD of one
        for row in asked:
            limit = budget.models.get(row["model_id"], budget.per_model_usd)
            left = math.inf if limit is None else limit - spent.get(row["model_id"], 0.0)
            each, most = row[name] / row["calls"], row["worst_cost_usd"] / row["calls"]
            # A call is sent if its worst case fits.
            share = max(0.0, min(1.0, (left - most + each) / row[name])) if row[name] else 1.0
            share *= left >= most
            parts.append((most, share * row["calls"], share * row[name], each))
        left = math.inf if budget.usd is None else budget.usd - sum(spent.values())
        rate, done, sent = sum(usd for *_, usd, _ in parts), 0.0, 0.0
        # All go on side by side, until the dearest fits no more.
        for most, calls, usd, each in sorted(parts, reverse=True):
            step = (left - most + each) / rate if rate > 0 else math.inf
            step = min(1.0 - done, step) if left >= most else 0.0
            left, done, rate = left - step * rate, done + step, rate - usd
            sent += done * calls
        shares.append(sent / sum(row["calls"] for row in asked) if asked else 1.0)
    return shares[0], shares[1]


def metered_by_model(attempts: Iterable[Attempt], queries: pa.Table) -> dict[str, Metered]:
    """What earlier calls were metered at, per model; at most 2,000 calls each."""
    length = dict(
        zip(
            queries.column("query_id").to_pylist(),
            pc.utf8_length(queries.column("prompt")).to_pylist(),
            strict=True,
        )
    )
    found: dict[str, list[tuple[float, ...]]] = {}
    for attempt in attempts:
        rows = found.setdefault(attempt.model_id, [])
        characters = length.get(attempt.query_id)
        if len(rows) >= 2000 or not characters or not attempt.usable:
            continue
        if attempt.prompt_tokens is not None and attempt.completion_tokens is not None:
            cached = attempt.cache_read_tokens or 0, attempt.cache_write_tokens or 0
            rows.append((characters, attempt.prompt_tokens, attempt.completion_tokens, *cached))
    return {
        model_id: Metered(*np.asarray(rows, dtype=np.float64).T)
        for model_id, rows in found.items()
        if len(rows) >= ENOUGH
    }


def _prompt_tokens(
    prompts: pa.ChunkedArray,
    characters: Floats,
    plain: Floats,
    model: Model,
    system: str | None,
    metered: Metered | None,
) -> tuple[Floats, float | None, str]:
    if model.tokenizer is not None:
        count = tokenizer(model.tokenizer, where=f"pool.models, {model.model_id}")
        told = count(system) + TEMPLATE // 2 if system else 0
        each = [count(text) + TEMPLATE + told for text in prompts.to_pylist()]
        return np.asarray(each, dtype=np.float64), None, "tokenizer"
    if metered is not None:
        # Least squares of tokens on characters; the error is that of one call's residual.
        slope, offset = np.polyfit(metered.characters, metered.prompt, 1)
        if slope > 0 and np.ptp(metered.characters) > 0:
            residual = metered.prompt - (slope * metered.characters + offset)
            error = float(residual.std() / metered.prompt.mean())
            return np.maximum(1.0, slope * plain + offset), error, "ledger"
    return characters / CHARACTERS_PER_TOKEN + TEMPLATE, CHARACTERS_ERROR, "characters"


def _cached(prompt_tokens: int, price: Price, metered: Metered | None) -> tuple[int, int]:
    """Prompt tokens that will be read from, and written to, the cache: as they were so far.

    None are where the cache has no price: then what they cost is not known.
    """
    if metered is None or not metered.prompt.sum():
        return 0, 0
    shares = (
        0.0 if usd is None else counts.sum() / metered.prompt.sum()
        for counts, usd in (
            (metered.cache_read, price.cache_read), (metered.cache_write, price.cache_write),
        )
    )  # fmt: skip
    read, write = (int(share * prompt_tokens) for share in shares)
    return (read, write) if read + write <= prompt_tokens else (0, 0)


def tokenizer(path: str, *, where: str) -> Any:
    """Function text → tokens from a `tokenizer.json`, without special tokens."""
    from tokenizers import Tokenizer

    try:
        loaded = Tokenizer.from_file(path)
    except Exception as error:
        raise RecipeError(
            f"the tokenizer {path!r} cannot be read: {error}",
            where=where,
            next_step="point 'tokenizer' at the model's tokenizer.json, or leave it out",
        ) from None
    loaded.no_truncation()
    loaded.no_padding()
    return lambda text: len(loaded.encode(text, add_special_tokens=False).ids)


def _completion(
    answers: int, settings: RequestSettings, metered: Metered | None
) -> tuple[int | None, str | None]:
    if metered is not None:
        return round(float(metered.completion.mean()) * answers), "ledger"
    limit = settings.max_tokens
    return (None, None) if limit is None else (min(limit, TYPICAL_TOKENS) * answers, "typical")
