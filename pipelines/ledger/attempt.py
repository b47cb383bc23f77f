"""One row of the ledger: what one attempt sent and what came back."""

from __future__ import annotations

from dataclasses import dataclass, fields

#: Outcomes that give a response; a plan asks for nothing more.
USABLE = ("ok", "truncated", "refused")
#: Errors in which the server did its work and gave nothing to use: it bills them.
BILLED = ("no_content", "no_choices", "unreadable_verdict", "cut_verdict", "filtered_verdict")
#: The same for SQL, over the columns of an attempt.
BILLED_SQL = (
    "status = 'error' AND (cost_usd IS NOT NULL OR prompt_tokens IS NOT NULL "
    f"OR error_class IN ({', '.join(repr(name) for name in BILLED)}))"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt for one sample. Null is unknown, never zero or free."""

    request_hash: str
    sample: int
    query_id: str
    model_id: str
    settings_hash: str
    run: str
    purpose: str
    #: `ok`, `truncated`, `refused` or `error`
    status: str
    #: true when asking again cannot succeed
    permanent: bool
    requested_at: str
    http_status: int | None = None
    error_class: str | None = None
    error: str | None = None
    text: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    provider: str | None = None
    system_fingerprint: str | None = None
    #: Choices that shared this call; their completion tokens are not told apart.
    choices: int = 1
    #: Completion tokens of the whole call.
    call_completion_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    latency_s: float | None = None
    ttft_s: float | None = None
    logprobs: str | None = None
    #: Among the prompt's tokens: read from the provider's cache, and written to it.
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def usable(self) -> bool:
        return self.status in USABLE

    @property
    def reason(self) -> str | None:
        """Why there is no answer; null where there is one."""
        if self.status != "error":
            return None
        return f"{self.error_class}: {self.error}" if self.error else self.error_class

    @property
    def final(self) -> bool:
        """Nothing more is asked: a response, or an error that cannot go away."""
        return self.usable or self.permanent


def is_billed(attempt: Attempt) -> bool:
    """Whether an attempt without an answer was billed, as far as the server said."""
    return attempt.status == "error" and (
        attempt.cost_usd is not None
        or attempt.prompt_tokens is not None
        or attempt.error_class in BILLED
    )


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Attempt))
