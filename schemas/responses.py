"""Contracts of `responses`, answers of models, and of `steps`, the calls of agents before them."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

#: Statuses of pairs without an answer: not reached, or (`unanswered`) given up after it
#: was billed as often as the recipe allows. Neither is wrong.
ANSWERLESS = ("error", "unanswered")

_STATUS = {
    "ok": "an answer",
    "truncated": "cut by the token limit",
    "refused": "the provider's filter or the model declined",
    "error": "nothing came, although it was tried again",
    "unanswered": "billed as often as the recipe allows and never answered",
}
_COST_SOURCE = {
    "provider": "as the provider billed or the recording states",
    "price_table": "tokens × the pool's price",
}

RESPONSES = Contract(
    name="responses",
    says="The newest usable answer of one model to one query.",
    key=("query_id", "model_id", "sample"),
    columns=(
        Column("query_id", pa.string(), "question"),
        Column("model_id", pa.string(), "model asked"),
        Column("sample", pa.int32(), "0-based sample number"),
        Column(
            "text",
            pa.string(),
            "the answer, verbatim; null for errors and for sources that carry only a score",
            nullable=True,
        ),
        Column("status", pa.string(), "how the call ended", values=_STATUS),
        Column("finish_reason", pa.string(), "as the server said", nullable=True),
        Column("served_model", pa.string(), "model the server says it used", nullable=True),
        Column("provider", pa.string(), "provider the server says it used", nullable=True),
        Column("system_fingerprint", pa.string(), "as the server said", nullable=True),
        Column("prompt_tokens", pa.int64(), "metered prompt", unit="tokens", nullable=True),
        Column(
            "completion_tokens",
            pa.int64(),
            "metered completion, reasoning included",
            unit="tokens",
            nullable=True,
        ),
        Column(
            "reasoning_tokens", pa.int64(), "metered hidden reasoning", unit="tokens", nullable=True
        ),
        Column(
            "cost_usd",
            pa.float64(),
            "cost of the call; null when unknown",
            unit="USD",
            nullable=True,
        ),
        Column(
            "cost_source",
            pa.string(),
            "where the cost comes from",
            nullable=True,
            values={**_COST_SOURCE, "stated": "by the recipe, for an injected model"},
        ),
        Column("latency_s", pa.float64(), "request sent to last byte", unit="s", nullable=True),
        Column(
            "ttft_s",
            pa.float64(),
            "request sent to first token, when streamed",
            unit="s",
            nullable=True,
        ),
        Column(
            "logprobs",
            pa.string(),
            "JSON list of {token, logprob, top: [[token, logprob], …]}",
            nullable=True,
        ),
        Column("attempts", pa.int32(), "attempts made, this one included"),
        Column("error", pa.string(), "error class and message for status `error`", nullable=True),
        Column("requested_at", pa.string(), "ISO 8601 UTC", nullable=True),
        Column(
            "request_hash",
            pa.string(),
            "hash of model, endpoint, parameters and messages; null for recorded responses",
            nullable=True,
        ),
        Column(
            "given_score",
            pa.float64(),
            "score in [0, 1] that a recorded source carries",
            nullable=True,
        ),
        Column(
            "graded_against",
            pa.list_(pa.string()),
            "references this run was graded against where they differ from the query's",
            nullable=True,
        ),
    ),
    rules=(
        RowRule("error_has_no_text", "status NOT IN ('error', 'unanswered') OR text IS NULL"),
        RowRule(
            "ok_says_something", "status <> 'ok' OR text IS NOT NULL OR given_score IS NOT NULL"
        ),
        RowRule("sample_not_negative", "sample >= 0"),
        RowRule("given_score_range", "given_score IS NULL OR given_score BETWEEN 0 AND 1"),
        RowRule("cost_not_negative", "cost_usd IS NULL OR cost_usd >= 0"),
        RowRule("cost_has_source", "(cost_usd IS NULL) = (cost_source IS NULL)"),
    ),
)

#: What a call has of an answer, said once.
_ANSWERED = {column.name: column for column in RESPONSES.columns}

STEPS = Contract(
    name="steps",
    says="One call of an agent on its way to an answer; `responses` has the whole trajectory.",
    key=("query_id", "model_id", "sample", "step"),
    columns=(
        _ANSWERED["query_id"],
        Column("model_id", pa.string(), "member of the pool whose trajectory it is"),
        _ANSWERED["sample"],
        Column("step", pa.int32(), "0-based number of the call in its trajectory"),
        Column("acted_by", pa.string(), "model that was asked: a relay has several"),
        Column(
            "action",
            pa.string(),
            "what the step did",
            values={
                "search": "asked the tool",
                "answer": "answered the question",
                "none": "neither: an error, a refusal, a cut answer, or one more search when the "
                "steps were used up",
            },
        ),
        Column(
            "said",
            pa.string(),
            "text of the reply, beside its calls of the tool; null where there is none",
            nullable=True,
        ),
        Column("queries", pa.list_(pa.string()), "what it searched for, verbatim"),
        Column("found", pa.list_(pa.string()), "what the tool gave back, query by query"),
        Column("status", pa.string(), "how the call ended", values=_STATUS),
        _ANSWERED["served_model"],
        _ANSWERED["prompt_tokens"],
        Column("completion_tokens", pa.int64(), "metered reply", unit="tokens", nullable=True),
        _ANSWERED["reasoning_tokens"],
        Column(
            "cost_usd",
            pa.float64(),
            "cost of the call, also where another trajectory shares and paid for it; null when "
            "unknown",
            unit="USD",
            nullable=True,
        ),
        Column(
            "cost_source",
            pa.string(),
            "where the cost comes from",
            nullable=True,
            values=_COST_SOURCE,
        ),
        _ANSWERED["latency_s"],
        _ANSWERED["attempts"],
        _ANSWERED["requested_at"],
        Column("request_hash", pa.string(), "hash of model, endpoint, parameters and messages"),
        _ANSWERED["error"],
    ),
    rules=(
        RowRule("a_search_finds", "(action = 'search') = (len(found) > 0)"),
        RowRule("found_for_each_query", "len(found) = 0 OR len(found) = len(queries)"),
        RowRule("step_not_negative", "step >= 0 AND sample >= 0"),
        RowRule("cost_has_source", "(cost_usd IS NULL) = (cost_source IS NULL)"),
        RowRule("cost_not_negative", "cost_usd IS NULL OR cost_usd >= 0"),
    ),
)
