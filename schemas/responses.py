"""Contract of `responses`: the newest usable answer of one model to one query."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, Rule

#: Statuses of pairs without an answer: not reached, or (`unanswered`) given up after it
#: was billed as often as the recipe allows. Neither is wrong.
ANSWERLESS = ("error", "unanswered")

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
        Column("status", pa.string(), "`ok`, `truncated`, `refused` or `error`"),
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
            "`provider`, `price_table`, `stated` for a simulated model, or null",
            nullable=True,
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
        Rule("status_known", "status IN ('ok', 'truncated', 'refused', 'error', 'unanswered')"),
        Rule("error_has_no_text", "status NOT IN ('error', 'unanswered') OR text IS NULL"),
        Rule("ok_says_something", "status <> 'ok' OR text IS NOT NULL OR given_score IS NOT NULL"),
        Rule("sample_not_negative", "sample >= 0"),
        Rule("given_score_range", "given_score IS NULL OR given_score BETWEEN 0 AND 1"),
        Rule("cost_not_negative", "cost_usd IS NULL OR cost_usd >= 0"),
        Rule("cost_has_source", "(cost_usd IS NULL) = (cost_source IS NULL)"),
    ),
)
