"""What is wanted, what is there already, and what the rest will cost.

Wanted = covered (query, model) pairs × samples. Missing = wanted minus what the
ledger has settled: a response, or an error that cannot go away. Retryable
errors are missing. Nothing is called.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.collect.budget import TEMPLATE_TOKENS, Price
from routeyard.pipelines.collect.client import Timeouts
from routeyard.pipelines.collect.ledger import Attempt, Ledger, SettledKey
from routeyard.pipelines.collect.request import (
    Message,
    Request,
    RequestSettings,
    content_with_images,
)
from routeyard.pipelines.collect.runner import ModelQueue
from routeyard.pipelines.common.arrays import Bools, Floats, dense_rows
from routeyard.pipelines.common.mapping import compile_field, text_of
from routeyard.pipelines.common.usage import whole_sum
from routeyard.schemas.errors import RecipeError, did_you_mean
from routeyard.schemas.images import IMAGES, QuestionImage, images_of
from routeyard.schemas.recipe.collect import UNANSWERED_AFTER, Budget, Collect, Coverage
from routeyard.schemas.recipe.pool import Model, Pool, Provider

# What one model is asked of each query: the query's own prompt, or the model's frame around it.
#
# A frame makes a way of asking a member of the pool: one model with worked examples
# and the same model without are two lines of it, with separate answers, costs and
# labels.

#: Columns of `queries` that a frame may use; none of them gives the reference away.
SHOWN = ("prompt", "question", "choices", "task", "domain", "source", "metadata")


class ModelPrompts:
    """The messages of one model's requests, by row of the queries."""

    def __init__(
        self, queries: pa.Table, model: Model, collect: Collect, images: Path | None = None
    ) -> None:
        """Args:
        images: Folder of the questions' images, by their SHA-256.
        """
        self._where, self._folder = f"pool.models, {model.model_id}", images
        self._image_tokens, self._collect = model.image_tokens, collect
        #: Row → images of its question.
        self.images = _images(queries)
        self.samples = model.samples or collect.samples
        self.system = collect.system if model.system is None else model.system or None
        self._prompts = queries.column("prompt")
        self._frame: Callable[[Mapping[str, Any]], Any] | None = None
        if model.prompt is not None:
            self._words = model.prompt
            self._frame = compile_field(model.prompt, where=f"{self._where}, prompt")
            self._rows = queries.select([n for n in SHOWN if n in queries.column_names])

    def prompt(self, row: int) -> str:
        """The user message of the query in that row.

        Raises:
            RecipeError: the frame names a column that queries do not have, or gives no text.
        """
        if self._frame is None:
            return str(self._prompts[row].as_py())
        shown = {name: self._rows.column(name)[row].as_py() for name in self._rows.column_names}
        if isinstance(shown.get("metadata"), str):
            shown["metadata"] = json.loads(shown["metadata"])
        text = text_of(
            self._frame(shown), self._words, "prompt", self._where, within="", error=RecipeError
        )
        if not text.strip():
            raise RecipeError(
                f"the mapping {self._words!r} gives no prompt for the question "
                f"{shown.get('question', shown.get('prompt', ''))[:60]!r}",
                where=self._where,
                next_step='give those questions another: "{{ … or prompt }}"',
            )
        return text

    def prompts(self, rows: Any) -> pa.ChunkedArray:
        """The user messages of the queries in `rows`, int32 [q]."""
        if self._frame is None:
            return self._prompts.take(pa.array(rows))
        return pa.chunked_array([pa.array([self.prompt(int(row)) for row in rows], pa.string())])

    def image_tokens(self, rows: Any) -> Any:
        """Tokens of the images that the model is sent with each query at most, float64 [q]."""
        each = float(self._image_tokens or 0)
        return np.array([each * len(self.images.get(int(row), ())) for row in rows])

    def check_images(self, rows: Any) -> None:
        """Stop where images would be sent and nobody said what the model makes of them.

        Raises:
            RecipeError: the model has no `image_tokens`, or answers are collected in batches or
                by agents, which are sent no images.
        """
        shown = sum(int(row) in self.images for row in rows) if self.images else 0
        if shown and (self._collect.transport == "batch" or self._collect.agent is not None):
            raise RecipeError(
                f"{shown:,} questions have images, which neither batches nor agents are sent",
                where="collect",
                next_step="leave out 'agent', and 'transport: batch'",
            )
        if shown and self._image_tokens is None:
            raise RecipeError(
                f"{shown:,} questions have images, and the pool does not say what this model "
                "makes of them",
                where=self._where,
                next_step="write 'image_tokens': the tokens that its provider counts for one image "
                "at most, or 0 for a model that reads text only",
            )

    def lengths(self, rows: Any) -> Any:
        """Characters of the queries' own prompts, float64 [q]: what earlier calls are known by."""
        lengths = pc.utf8_length(self._prompts.take(pa.array(rows)))
        return np.asarray(lengths, dtype=np.float64)

    def messages(self, row: int) -> list[Message]:
        """The messages that ask the query in that row."""
        content: str | list[dict[str, Any]] = self.prompt(row)
        if self._image_tokens and row in self.images:
            content = content_with_images(
                self.prompt(row), self.images[row], self._folder, self._image_tokens, self._where
            )
        asked: list[Message] = [{"role": "user", "content": content}]
        return [{"role": "system", "content": self.system}, *asked] if self.system else asked


def _images(queries: pa.Table) -> dict[int, list[QuestionImage]]:
    """Images of the questions that have any, by row."""
    if "metadata" not in queries.column_names:
        return {}
    column = queries.column("metadata")
    some = pc.fill_null(pc.match_substring(column, f'"{IMAGES}"'), False).to_numpy()
    result = {int(row): images_of(column[int(row)].as_py()) for row in np.flatnonzero(some)}
    return {row: images for row, images in result.items() if images}


def provider_of(model: Model, pool: Pool) -> Provider:
    """The provider that serves a model: the one it names, or the only one there is."""
    known = {provider.name: provider for provider in pool.providers}
    if model.provider in known:
        return known[model.provider]
    if len(known) == 1 and model.provider is None:
        return next(iter(known.values()))
    raise RecipeError(
        f"model {model.model_id!r} "
        + (
            f"is served by {model.provider!r}, which 'pool.providers' does not list"
            if model.provider
            else "names no provider"
        ),
        where=f"pool.models, {model.model_id}",
        next_step=did_you_mean(model.provider or "", known)
        if known
        else "add 'providers: [{name: …, base_url: …}]' to the pool",
    )


def settings_of(
    model: Model, provider: Provider, collect: Collect, *, max_tokens: int | None = None
) -> RequestSettings:
    """Everything a model's requests say beside the messages.

    The recipe's parameters, overridden by the model's; a null takes one away.
    """
    parameters: dict[str, Any] = {"seed": collect.seed}
    if collect.temperature is not None:
        parameters["temperature"] = collect.temperature
    if collect.max_tokens is not None:
        parameters["max_tokens"] = collect.max_tokens
    if collect.logprobs:
        parameters["logprobs"] = True
        if collect.top_logprobs is not None:
            parameters["top_logprobs"] = collect.top_logprobs
    parameters |= collect.parameters
    parameters |= model.parameters
    if max_tokens is not None:
        limit = "max_completion_tokens"
        parameters[limit if parameters.get(limit) is not None else "max_tokens"] = max_tokens
    return RequestSettings.of(
        provider,
        model.endpoint_model or model.model_id,
        {name: value for name, value in parameters.items() if value is not None},
    )


def timeouts_of(collect: Collect) -> Timeouts:
    """Seconds for which a recipe waits for a server."""
    return Timeouts(deadline_s=collect.deadline_s)


def queue_of(
    model: Model,
    provider: Provider,
    collect: Collect,
    requests: Iterator[Request],
    *,
    wanted: int,
    before: int = 0,
) -> ModelQueue:
    """Requests of a model with its limits and its price."""
    return ModelQueue(
        model_id=model.model_id,
        provider=provider,
        requests=requests,
        wanted=wanted,
        before=before,
        limits=model.limits or collect.limits,
        price=Price.of_model(model),
        max_tokens=model.context_window,
        unanswered_after=UNANSWERED_AFTER,
    )


def model_notes(models: Iterable[Model]) -> dict[str, str]:
    """Notes of the pool's entries, so that a ledger can be audited without its recipe."""
    return {f"model:{model.model_id}": model.model_dump_json() for model in models}


def check_names(models: Iterable[Model], collect: Collect) -> None:
    """Every model that the budget bounds is one of the pool.

    Raises:
        RecipeError: one is not, so its bound would bind nobody.
    """
    known = [model.model_id for model in models]
    for model_id in sorted(set(collect.budget.models) - set(known)):
        raise RecipeError(
            f"the budget bounds the model {model_id!r}, which the pool does not have",
            where="collect.budget.models",
            next_step=did_you_mean(model_id, known),
        )


def check_model(model: Model, collect: Collect) -> None:
    """A hard budget needs a worst case, and that needs prices and a token limit."""
    if not collect.budget.is_set:
        return
    where = f"pool.models, {model.model_id}"
    if model.price_in is None or model.price_out is None:
        raise RecipeError(
            f"a budget is set, and the price of {model.model_id!r} is not known",
            where=where,
            next_step="give 'price_in', 'price_out' and 'price_date', or take the budget away",
        )
    limits = (*collect.parameters, *model.parameters)
    if (
        collect.max_tokens is None
        and model.context_window is None
        and not {"max_tokens", "max_completion_tokens"} & set(limits)
    ):
        raise RecipeError(
            f"a budget is set, and the longest answer of {model.model_id!r} is not known",
            where=where,
            next_step="set 'collect.max_tokens' or the model's 'context_window'",
        )


# Which answers of one model are missing, by what the ledger has.

#: Pairs looked up in the ledger at a time.
CHUNK = 1000


def missing_of(
    asks: ModelPrompts,
    rows: np.ndarray[Any, np.dtype[np.int32]],
    settings: RequestSettings,
    larger: RequestSettings | None,
    collect: Collect,
    ledger: Ledger | None,
) -> dict[str, Any]:
    """Wanted minus settled, for the queries in `rows`: the arrays of a `ModelPlan`.

    Args:
        asks: What the model is asked of each query.
        larger: Settings with the larger token limit, if truncated answers are asked again.
    """
    shape = (len(rows), asks.samples)
    missing, billed = np.ones(shape, bool), np.zeros(shape, np.int32)
    truncated, given_up, rejected = (np.zeros(shape, bool) for _ in range(3))
    made = {"missing": missing, "truncated": truncated, "billed": billed, "given_up": given_up}
    if ledger is None:
        return made
    for start in range(0, len(rows), CHUNK):
        asked = [asks.messages(int(row)) for row in rows[start : start + CHUNK]]
        names = [settings.request_hash(texts) for texts in asked]
        again = [larger.request_hash(texts) for texts in asked] if larger else []
        result, found_again = ledger.settled(names), ledger.settled(again)
        for offset, name in enumerate(names):
            for sample in range(asks.samples):
                row = result.get((name, sample))
                at = (start + offset, sample)
                if row is not None and row.status == "error":
                    rejected[at] = row.permanent
                if larger and row is not None and row.status == "truncated":
                    truncated[at] = True
                    row = found_again.get((again[offset], sample))
                missing[at] = not settles(row, collect)
                if row is not None:
                    billed[at] = row.billed
                    given_up[at] = unanswered(row.status, row.billed, collect)
    # What refuses every question refuses how it is asked.
    if rejected.any() and not ledger.has_answers(settings.settings_hash):
        missing[rejected] = True
    return made


def unanswered(status: str, billed: int, collect: Collect) -> bool:
    """Whether a pair is given up: billed so often, and never answered."""
    return status == "error" and billed >= UNANSWERED_AFTER


def settles(row: SettledKey | None, collect: Collect) -> bool:
    """Whether nothing more is asked where this is the result."""
    if row is None:
        return False
    if row.status == "error":
        if unanswered(row.status, row.billed, collect):
            return "unanswered" not in collect.asks_again
        return row.permanent and "error" not in collect.asks_again
    return not (row.status == "refused" and "refused" in collect.asks_again)


# Which models a query is asked of, when not all of them.

Rows = np.ndarray[Any, np.dtype[np.int32]]


def covered(queries: pa.Table, n_models: int, coverage: Coverage) -> list[Rows]:
    """For each model the rows of `queries` it is asked, int32, ascending.

    Each query is asked of `share` of the pool (rounded, at least one model). The
    queries of a task come in the order of a seeded hash, and each takes the
    models that task has asked least so far, ties broken at random: within a task
    any two models differ by one query at most. Another task's queries change
    nothing; another model or query of the same task may. The dense slice
    (`routeyard.pipelines.common.arrays`) is asked of every model and enters no count.
    """
    everything = np.arange(queries.num_rows, dtype=np.int32)
    draws = max(1, round(coverage.share * n_models))
    if draws >= n_models:
        return [everything] * n_models
    ids = queries.column("query_id").to_pylist()
    dense = dense_rows(queries)
    by_task: dict[str, list[int]] = defaultdict(list)
    for row, task in enumerate(queries.column("task").to_pylist()):
        if not dense[row]:
            by_task[task].append(row)
    asked = np.zeros((n_models, queries.num_rows), dtype=bool)
    asked[:, dense] = True
    for task, rows in by_task.items():
        rows.sort(key=lambda row: _digest(coverage.seed, ids[row]))
        random = np.random.default_rng(list(_digest(coverage.seed, task)))
        counts = np.zeros(n_models)
        for row in rows:
            picks = np.argsort(counts + random.random(n_models), kind="stable")[:draws]
            asked[picks, row] = True
            counts[picks] += 1
    return [np.flatnonzero(row).astype(np.int32) for row in asked]


def _digest(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{name}".encode()).digest()


# Tokens and USD of what is missing, before anything is sent.
#
# Prompt tokens are counted with the model's own tokenizer where the pool names
# it, else scaled from what the ledger metered for that model, else taken as four
# characters a token. Each says how far off it may be.

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
        prompt_tokens_error: Relative error of that sum; null when counted by the tokenizer.
        prompt_tokens_source: `tokenizer`, `ledger` or `characters`.
        completion_tokens: Expected sum; null when nothing tells it.
        completion_tokens_source: `ledger`, `typical` (`TYPICAL_TOKENS` an answer) or null.
        cost_usd: Expected cost; null when a price or a count is unknown.
        least_cost_usd: What the shortest answers cost; null when `cost_usd` is, or was metered.
        worst_cost_usd: Most it can cost; null when a price or the limit is unknown.
    """

    prompt_tokens_each: Floats
    prompt_tokens: int
    prompt_tokens_error: float | None
    prompt_tokens_source: str
    completion_tokens: int | None
    completion_tokens_source: str | None
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
    # Counts are sums over calls: their price is that of the mean prompt, at worst of the longest.
    stated, calls = Price.of_model(model), max(1, int(answers.sum()))
    price = stated.at(prompt_tokens / calls)
    limit = settings.max_tokens or model.context_window
    encoded = np.asarray(pc.binary_length(prompts.cast(pa.binary())), dtype=np.float64)
    encoded += len((asks.system or "").encode())
    longest = encoded + pictures + 2 * TEMPLATE_TOKENS
    most = int((longest * answers).sum())
    return Estimate(
        prompt_tokens_each=each,
        prompt_tokens=prompt_tokens,
        prompt_tokens_error=error,
        prompt_tokens_source=source,
        completion_tokens=completion,
        completion_tokens_source=completion_source,
        cost_usd=price.of(prompt_tokens, completion, *_cached(prompt_tokens, price, metered)),
        least_cost_usd=(
            price.of(prompt_tokens, LEAST_TOKENS * int(answers.sum()))
            if completion_source == "typical"
            else None
        ),
        worst_cost_usd=stated.dearest.at(longest[answers > 0].max(initial=0)).of(
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
    result: dict[str, list[tuple[float, ...]]] = {}
    for attempt in attempts:
        rows = result.setdefault(attempt.model_id, [])
        characters = length.get(attempt.query_id)
        if len(rows) >= 2000 or not characters or not attempt.usable:
            continue
        if attempt.prompt_tokens is not None and attempt.completion_tokens is not None:
            cached = attempt.cache_read_tokens or 0, attempt.cache_write_tokens or 0
            rows.append((characters, attempt.prompt_tokens, attempt.completion_tokens, *cached))
    return {
        model_id: Metered(*np.asarray(rows, dtype=np.float64).T)
        for model_id, rows in result.items()
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
        system_tokens = count(system) + TEMPLATE // 2 if system else 0
        each = [count(text) + TEMPLATE + system_tokens for text in prompts.to_pylist()]
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
        given_up: True where they are so many that nothing more is asked, bool [q, samples].
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
    given_up: Bools
    estimate: Estimate

    @property
    def settled(self) -> int:
        """Answers and permanent errors that are there."""
        return int((~self.missing).sum())

    @property
    def unanswered(self) -> int:
        """Pairs among them that are given up: billed too often for nothing."""
        return int((self.given_up & ~self.missing).sum())

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

    def figures(self) -> dict[str, Any]:
        """JSON-ready: counts, tokens and USD, per model and in total. Unknown is null."""
        models = [_figures(model) for model in self.models]
        return {
            "queries": self.queries.num_rows,
            "models": models,
            "wanted": self.wanted,
            "settled": self.wanted - self.missing,
            "missing": self.missing,
            "calls": self.calls,
            **total_costs(models),
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
        if collect.larger_limit is not None:
            larger = settings_of(model, provider, collect, max_tokens=collect.larger_limit)
        asks = ModelPrompts(queries, model, collect, images)
        asks.check_images(asked)
        result = missing_of(asks, asked, settings, larger, collect, ledger)
        metered_calls = metered.get(model.model_id)
        plans.append(
            ModelPlan(
                model=model,
                provider=provider,
                settings=settings,
                larger=larger,
                asks=asks,
                rows=asked,
                estimate=estimate(asks, asked, result["missing"], model, settings, metered_calls),
                **result,
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


def total_costs(models: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """USD of all calls of a plan's models: expected, if answers are as short as can be, and at
    most. Null where a cost is unknown; the least also where all models were metered."""
    asked = [m for m in models if m["calls"]]
    cost, worst = ([m[name] for m in asked] for name in ("cost_usd", "worst_cost_usd"))
    least = [m["cost_usd"] if m["least_cost_usd"] is None else m["least_cost_usd"] for m in asked]
    metered = all(m["least_cost_usd"] is None for m in asked)
    return {
        "cost_usd": whole_sum(cost),
        "least_cost_usd": None if metered or None in cost else float(sum(least)),
        "worst_cost_usd": whole_sum(worst),
    }


def unknown(model: ModelPlan) -> list[str]:
    """What has to be written into the recipe before this model's cost can be computed."""
    if not model.calls or (
        model.estimate.cost_usd is not None and model.estimate.worst_cost_usd is not None
    ):
        return []
    prices = ("price_in", "price_out")
    results = [f"the model's '{name}'" for name in prices if getattr(model.model, name) is None]
    limits = ("max_tokens", "max_completion_tokens")
    stated = any(model.settings.parameters.get(name) is not None for name in limits)
    if not stated and (
        model.estimate.completion_tokens is None or model.model.context_window is None
    ):
        results.append("'collect.max_tokens'")
    return results


def _figures(model: ModelPlan) -> dict[str, Any]:
    estimate = {field.name: getattr(model.estimate, field.name) for field in fields(model.estimate)}
    del estimate["prompt_tokens_each"]
    return {
        "model_id": model.model.model_id,
        "provider": model.provider.name,
        "wanted": model.wanted,
        "settled": model.settled,
        "missing": int(model.missing.sum()),
        "unanswered": model.unanswered,
        "calls": model.calls,
        **estimate,
        "unknown": unknown(model),
        "price_date": model.model.price_date,
    }
