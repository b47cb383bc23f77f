"""How the models of a pool are asked: provider, parameters, limits, and a budget that can hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.collect.budget import Price
from routeyard.pipelines.collect.http import Timeouts
from routeyard.pipelines.collect.request import (
    Message,
    Request,
    RequestSettings,
    content_with_images,
)
from routeyard.pipelines.collect.runner import ModelQueue
from routeyard.pipelines.common.mapping import compile_field, text_of
from routeyard.schemas.errors import RecipeError, did_you_mean
from routeyard.schemas.images import IMAGES, QuestionImage, images_of
from routeyard.schemas.recipe.collect import UNANSWERED_AFTER, Collect
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
