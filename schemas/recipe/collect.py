"""How answers are collected: asked for, or imported as recorded."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from routeyard.schemas.strict import Name, Share, Strict

# Questions answered in several steps: an agent that may search before it answers.


class Search(Strict):
    """The corpus that is searched, by BM25: passages of the questions themselves, or a file."""

    passages: str | None = None
    """Expression over a question's metadata that gives its passages: texts, or pairs of a title and
    a text (or a list of sentences). Those of all questions are one corpus."""
    file: str | None = None
    """JSONL, CSV or Parquet file with the columns `text` and, where there is one, `title`."""
    results: int = Field(default=3, ge=1, le=20)
    """Passages that one search gives."""

    @model_validator(mode="after")
    def _one_corpus(self) -> Search:
        if (self.passages is None) == (self.file is None):
            raise ValueError("'search' needs a corpus: 'passages' or 'file', one of the two")
        return self


class Agent(Strict):
    """How a trajectory goes: at each step the model searches, or answers and ends it."""

    steps: int = Field(default=5, ge=2, le=50)
    """Calls of one trajectory at most; in the last one the model can only answer."""
    calls: Literal["tools", "text"] = "tools"
    """`tools` declares the search as a tool; `text` tells models that know no tools to write a line
    `Search: …`."""
    search: Search
    """What the tool searches in."""


class Relay(Strict):
    """A member of the pool made of two others: one begins, the other takes over."""

    first: Name
    """Model that takes the first steps."""
    steps: PositiveInt
    """How many it takes."""
    then: Name
    """Model that takes the others."""


# Answers that someone already has: files, and which column is what.


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
    prompt: str | None = None
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
    status: str | None = None
    """Column of how the attempt ended, in the source's own words: `ok`, `truncated`, `refused`,
    `empty`, `error`, `timeout`, `unanswered`, `ungraded`, and words that mean one of them, such as
    `RateLimitError`, `HTTP 503` or `content-filter`. An error, a timeout or an unanswered row has
    no label, whatever its score. `failed` beside an answer or a score is how somebody graded it.
    The build asks about a word that it does not know: `statuses`."""
    error: str | None = None
    """Column of the error's message, kept where the attempt has no answer."""
    served_model: str | None = None
    """Column of the model name that the endpoint reported."""
    prompt_tokens: str | None = None
    """Column of metered prompt tokens."""
    completion_tokens: str | None = None
    """Column of metered completion tokens."""
    cache_read_tokens: str | None = None
    """Column of the prompt tokens, among the metered ones, that were read from a cache."""
    cache_write_tokens: str | None = None
    """Column of the prompt tokens, among the metered ones, that were written to a cache."""
    cost_usd: str | None = None
    """Column of the cost in USD. 0 beside an answer is unknown, unless the pool states a price of 0
    for the model; so are 0 tokens and a latency of 0."""
    latency_s: str | None = None
    """Column of the latency in seconds."""
    calls: str | None = None
    """Column of the number of calls that the answer took: turns of an agent, whose tokens are added
    up. Token counts of several calls are not compared with the one text that is recorded."""


#: What `mapping` of a recording names.
RecordedRole = Literal[
    "arm", "question", "sample", "prompt", "text", "score", "status", "error", "served_model",
    "prompt_tokens", "completion_tokens", "cached_tokens", "cost", "latency",
]  # fmt: skip


#: What a word of a recording may count as.
RecordedStatus = Literal[
    "missing", "wrong", "scored", "ok", "truncated", "refused", "empty", "error", "timeout",
    "unanswered", "ungraded",
]  # fmt: skip


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
    other_questions: Literal["error", "ignore", "keep"] = "error"

    """What to do with answers whose recorded prompt (`fields.prompt`) does not ask the recipe's
    question: stop, leave them out, or take them. The card says how many."""
    duplicates: Literal["error", "first", "last", "missing"] = "error"

    """What to do with rows that answer what another row has answered: stop, take the first or the
    last of them, or leave pairs with different answers without one. The card says how many."""
    statuses: dict[str, RecordedStatus] = {}
    """What the source's own words of `fields.status` and `fields.finish_reason` count as in this
    benchmark, as in {max_steps: wrong, timeout: missing, gave_up: error}: an answer that is missing
    has no label, one that is wrong has the score 0, one that is scored has what its source gave
    it, and the name of a status means that. Other words mean what `fields.status` says. The build
    prints how many answers each word decided."""
    fields: RecordedFields = RecordedFields(query="query", model="model")
    """Which column is what, in the words of the table `responses`."""
    mapping: dict[RecordedRole, str] = {}
    """The same in the words of `audit --map`, in place of `fields`, as in {arm: engine, question:
    case, text: reply, latency: took_ms}: a column, a path (`usage.in`), an expression, or a
    constant (`=gpt-4o`). A column's name says its unit (`_ms`, `cents`)."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if ("fields" in self.model_fields_set) == bool(self.mapping):
            raise ValueError("expected either `fields` or `mapping`: which column is what")
        if self.mapping and not {"arm", "question"} <= self.mapping.keys():
            raise ValueError("expected `arm` and `question` in `mapping`, each with a column")
        return self


#: What a request may carry beside model and messages; `null` takes a default away.
Parameter = (
    str
    | int
    | float
    | bool
    | list[str]
    | dict[str, str | int | float | bool | list[str] | None]
    | None
)


class RateLimits(Strict):
    """What a provider or a model may be asked at once and per minute."""

    concurrency: int = Field(default=64, ge=1, le=4096)
    """Calls in flight at most; the adaptive window moves between 1 and this."""
    requests_per_minute: PositiveFloat | None = None
    """Requests per minute at most."""
    tokens_per_minute: PositiveFloat | None = None
    """Tokens per minute at most."""


class Retry(Strict):
    """When a failed call is asked again, and when a model is given up for this run."""

    attempts: int = Field(default=6, ge=1, le=100)
    """Attempts per pair and run, the first included."""
    first_wait_s: float = Field(default=0.5, ge=0)
    """Seconds before the second attempt; each further wait is longer. The first two waits are a
    tenth where the model answers other calls meanwhile."""
    pause_after: PositiveInt = 20
    """Pairs in a row that failed for good before a model is paused."""


class Budget(Strict):
    """Hard limits in USD over all runs of the benchmark, on all hosts of its ledger.

    A call is sent only when its worst case still fits.
    """

    usd: PositiveFloat | None = None
    """Most USD, over all runs of the benchmark."""
    per_model_usd: PositiveFloat | None = None
    """For each model that `models` does not name."""
    models: dict[str, Annotated[float, Field(gt=0)]] = {}
    """Most USD of single models, by name."""

    @field_validator("usd", "per_model_usd", "models", mode="before")
    @classmethod
    def _an_amount(cls, value: object) -> object:
        values = value.values() if isinstance(value, dict) else [value]
        if any(isinstance(item, bool) for item in values):
            raise ValueError("an amount in USD is a number, not yes or no")
        return value

    @property
    def is_set(self) -> bool:
        return self.usd is not None or self.per_model_usd is not None or bool(self.models)


#: Billed attempts without an answer, over all runs, after which a pair is `unanswered`.
UNANSWERED_AFTER = 6


class Unanswered(Strict):
    """What becomes of pairs that were billed 6 times, over all runs, and never answered."""

    release: Literal["go_on", "stop"] = "go_on"
    """Whether a release is made without those answers, or the build stops."""
    refused_share: Share = 0.0
    """Share of all answers, and of verifiers' and judges' verdicts, that a release may lack because
    a key, an address or a model was refused; more stops the build. They are asked again."""


class Coverage(Strict):
    """Share of the pool that each query is asked of, balanced over models and tasks."""

    share: float = Field(default=1.0, gt=0, le=1)
    """Share of the pool that each question is asked of."""
    seed: int = 0
    """Seed of the choice."""


class Informative(Strict):
    """Rounds of `strategy: informative`: questions that part models still too close. There are 16
    at most, the pilot included, each 1.3 times the one before."""

    resolve: float = Field(default=0.02, gt=0, le=1)
    """A pair of models is done with when its difference is known to this, or is beyond doubt."""
    pilot: int = Field(default=100, ge=2)
    """Questions of the pilot, which every model is asked."""
    calls: PositiveInt | None = None
    """Pairs of question and model that are asked at most, over all rounds."""


class Metering(Strict):
    """Thresholds of the metering audit (`routeyard audit WORKSPACE`)."""

    truncated: Share = 0.05
    """Share of a model's answers that may be cut off."""
    refused: Share = 0.05
    """Share of a model's answers that may be refusals."""
    cache_unwritten: Share = 0.05
    """Share of a model's answers that may read more from a cache than any prompt of the hour before
    had: other traffic of the same account may have filled it."""
    served_as: dict[str, list[str]] = {}
    """Names a model may be served under, beside the one asked for."""


class Collect(Strict):
    """`provider: openai` asks models through their APIs; `recorded` imports."""

    provider: Literal["openai", "recorded"] = "openai"
    """`openai` asks models through their APIs, `recorded` imports answers."""
    recorded: list[Recorded] = []
    """Files of answers that exist already."""
    transport: Literal["live", "batch"] = "live"
    """One call per answer (`chat`), or batch files (`batch`)."""
    system: str | None = None
    """System prompt."""
    samples: int = Field(default=1, ge=1, le=1000)
    """Answers per question and model."""
    temperature: NonNegativeFloat | None = None
    """Sampling temperature; null leaves it to the provider."""
    max_tokens: int | None = Field(default=None, ge=1, le=100_000_000)
    """Most tokens of an answer; needed to know what a run can cost."""
    seed: int = 0
    """Seed that is sent along."""
    logprobs: bool = False
    """Ask for the log-probabilities of tokens."""
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    """Alternatives per token to ask for."""
    stream: bool = False
    """Stream answers, which measures the time to the first token."""
    parameters: dict[str, Parameter] = {}
    """Further request parameters for all models."""
    deadline_s: PositiveFloat = 600.0
    """Seconds after which a call is given up."""
    unanswered: Unanswered = Unanswered()
    """What becomes of a pair that is billed again and again and never answered."""
    limits: RateLimits = RateLimits()
    """Limits of each model without limits in the pool."""
    retry: Retry = Retry()
    """When a failed call is asked again."""
    budget: Budget = Budget()
    """Hard limits in USD."""
    coverage: Coverage = Coverage()
    """Share of the pool that each question is asked of."""
    strategy: Literal["uniform", "informative"] = "uniform"

    """`uniform` asks what `coverage` says; `informative` asks in rounds, where models that are not
    told apart yet can be."""
    informative: Informative = Informative()
    """Pilot, rounds and end of `strategy: informative`."""
    agent: Agent | None = None
    """Questions are answered in several steps, by an agent that may search."""
    metering: Metering = Metering()
    """Thresholds of the metering audit."""
    canary: list[str] = []
    """Fixed prompts, asked at temperature 0 for 64 tokens at the start and again at the end: they
    show whether a model changed during the run."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        informative, recorded = self.strategy == "informative", self.provider == "recorded"
        agent, shared = self.agent is not None, self.coverage.share < 1
        only = {"provider": "openai", "transport": "live", "strategy": "uniform"}
        limit, most = self.larger_limit, self.max_tokens
        for wrong, fault in (
            (informative and recorded,
             "'strategy: informative' chooses what is asked; 'provider: recorded' asks nothing. "
             "Write 'provider: openai', or leave 'strategy' out"),
            (informative and shared,
             "'strategy: informative' draws its own questions: leave 'coverage.share' out"),
            *((agent and getattr(self, name) != value,
               f"'agent' asks step by step: '{name}' can only be '{value}'")
              for name, value in only.items()),
            (agent and (self.stream or limit is not None or shared),
             "'agent' knows neither 'stream' nor a share of 'coverage', nor does its build "
             "know --reask-truncated"),
            (recorded and not self.recorded,
             "provider 'recorded' needs a 'recorded' list of files"),
            (self.top_logprobs is not None and not self.logprobs,
             "'top_logprobs' needs 'logprobs: true'"),
            (limit is not None and (most is None or limit <= most),
             "--reask-truncated needs to be larger than 'max_tokens'"),
        ):  # fmt: skip
            if wrong:
                raise ValueError(fault)
        return self

    @property
    def asks_again(self) -> list[str]:
        """Outcomes that this run asks again although they are permanent (`build --reask`)."""
        return self.reask if isinstance(self, CollectAgain) else []

    @property
    def larger_limit(self) -> int | None:
        """The limit with which this run asks truncated answers again (`--reask-truncated`)."""
        return self.reask_truncated if isinstance(self, CollectAgain) else None


class CollectAgain(Collect):
    """`collect` of one run of a recipe that is to ask some answers again: options of `build`."""

    reask: list[str] = []
    reask_truncated: PositiveInt | None = None

    @field_validator("reask")
    @classmethod
    def _known(cls, outcomes: list[str]) -> list[str]:
        known = ("error", "refused", "unanswered")
        if wrong := [name for name in outcomes if name not in known]:
            raise ValueError(f"--reask takes {', '.join(known)}; got {wrong[0]!r}")
        return outcomes
