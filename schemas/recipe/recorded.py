"""Answers that someone already has: files, and which column is what."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from routeyard.schemas.strict import Strict


class RecordedFields(Strict):
    """Which column of the recorded file says what. `query` matches `source_id`."""

    query: str
    """Column that names the question by its source id."""
    model: str
    """Column of the model, in the pool's names; or an expression that translates the file's own, as
    in "{{ {'Llama 3.1': 'llama-70b'}.get(model, model) }}"."""
    text: str | None = None
    """Column of the answer. Null, NaN and an empty cell of a CSV are no answer: missing, not
    wrong."""
    prompt: str | None = Field(default=None, exclude_if=lambda given: given is None)
    """Column of what the model was asked, as text or messages: compared with the recipe's question,
    and not kept."""
    sample: str | None = None
    """Column of the sample's number, from 0."""
    score: str | None = None
    """Column of the score that the source gave, in [0, 1]."""
    graded_against: str | None = None
    """Column of the references the answer was graded against."""
    finish_reason: str | None = None
    """Column of the reason why the answer ended."""
    status: str | None = Field(default=None, exclude_if=lambda given: given is None)
    """Column of how the attempt ended, in the source's own words: `ok`, `truncated`, `refused`,
    `empty`, `error`, `timeout`, `unanswered`, `ungraded`, and words that mean one of them, such as
    `RateLimitError`, `HTTP 503` or `content-filter`. An error, a timeout or an unanswered row has
    no label, whatever its score. `failed` beside an answer or a score is how somebody graded it.
    The build asks about a word that it does not know: `statuses`."""
    error: str | None = Field(default=None, exclude_if=lambda given: given is None)
    """Column of the error's message, kept where the attempt has no answer."""
    served_model: str | None = None
    """Column of the model name that the endpoint reported."""
    prompt_tokens: str | None = None
    """Column of metered prompt tokens."""
    completion_tokens: str | None = None
    """Column of metered completion tokens."""
    cache_read_tokens: str | None = Field(default=None, exclude_if=lambda given: given is None)
    """Column of the prompt tokens, among the metered ones, that were read from a cache."""
    cache_write_tokens: str | None = Field(default=None, exclude_if=lambda given: given is None)
    """Column of the prompt tokens, among the metered ones, that were written to a cache."""
    cost_usd: str | None = None
    """Column of the cost in USD. 0 beside an answer is unknown, unless the pool states a price of 0
    for the model; so are 0 tokens and a latency of 0."""
    latency_s: str | None = None
    """Column of the latency in seconds."""
    calls: str | None = Field(default=None, exclude_if=lambda given: given is None)
    """Column of the number of calls that the answer took: turns of an agent, whose tokens are added
    up. Token counts of several calls are not compared with the one text that is recorded."""


class Recorded(Strict):
    """Files of responses that someone already has."""

    path: str
    """File or glob of answers, relative to the recipe."""
    format: Literal["parquet", "csv", "jsonl"] | None = None
    """Format of the files, where their names do not say it."""
    source: str | None = None
    """Source whose `source_id`s the file names; needed when a recipe has several sources."""
    other_models: Literal["error", "ignore"] = "error"
    """What to do with rows of a model that is not in the pool."""
    other_questions: Literal["error", "ignore", "keep"] = Field(
        default="error", exclude_if=lambda given: given == "error"
    )
    """What to do with answers whose recorded prompt (`fields.prompt`) does not ask the recipe's
    question: stop, leave them out, or take them. The card says how many."""
    duplicates: Literal["error", "first", "last", "missing"] = Field(
        default="error", exclude_if=lambda given: given == "error"
    )
    """What to do with rows that answer what another row has answered: stop, take the first or the
    last of them, or leave pairs with different answers without one. The card says how many."""
    statuses: dict[
        str,
        Literal[
            "missing",
            "wrong",
            "scored",
            "ok",
            "truncated",
            "refused",
            "empty",
            "error",
            "timeout",
            "unanswered",
            "ungraded",
        ],
    ] = Field(default_factory=dict, exclude_if=lambda given: not given)
    """What the source's own words of `fields.status` and `fields.finish_reason` count as in this
    benchmark, as in {max_steps: wrong, timeout: missing, gave_up: error}: an answer that is missing
    has no label, one that is wrong has the score 0, one that is scored has what its source gave
    it, and the name of a status means that. Other words mean what `fields.status` says. The build
    prints how many answers each word decided."""
    fields: RecordedFields
    """Which column is what."""
