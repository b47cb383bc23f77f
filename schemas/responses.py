"""Contracts of `responses`, answers of models, and of `steps`, the calls of agents before them."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

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
    "responses",
    "The newest usable answer of one model to one query.",
    key=("query_id", "model_id", "sample"),
    columns=columns(
        query_id="string: question",
        model_id="string: model asked",
        sample="int32: 0-based sample number",
        text="string?: the answer, verbatim; null for errors and for sources that carry only a "
        "score",
        status=("string: how the call ended", _STATUS),
        finish_reason="string?: as the server said",
        served_model="string?: model the server says it used",
        provider="string?: provider the server says it used",
        system_fingerprint="string?: as the server said",
        prompt_tokens="int64? [tokens]: metered prompt",
        completion_tokens="int64? [tokens]: metered completion, reasoning included",
        reasoning_tokens="int64? [tokens]: metered hidden reasoning",
        cost_usd="float64? [USD]: cost of the call; null when unknown",
        cost_source=(
            "string?: where the cost comes from",
            {**_COST_SOURCE, "stated": "by the recipe, for an injected model"},
        ),
        latency_s="float64? [s]: request sent to last byte",
        ttft_s="float64? [s]: request sent to first token, when streamed",
        logprobs="string?: JSON list of {token, logprob, top: [[token, logprob], …]}",
        attempts="int32: attempts made, this one included",
        error="string?: error class and message for status `error`",
        requested_at="string?: ISO 8601 UTC",
        request_hash="string?: hash of model, endpoint, parameters and messages; null for "
        "recorded responses",
        given_score="float64?: score in [0, 1] that a recorded source carries",
        graded_against="list<string>?: references this run was graded against where they differ "
        "from the query's",
    ),
    rules=rules(
        error_has_no_text="status NOT IN ('error', 'unanswered') OR text IS NULL",
        ok_says_something="status <> 'ok' OR text IS NOT NULL OR given_score IS NOT NULL",
        sample_not_negative="sample >= 0",
        given_score_range="given_score IS NULL OR given_score BETWEEN 0 AND 1",
        cost_not_negative="cost_usd IS NULL OR cost_usd >= 0",
        cost_has_source="(cost_usd IS NULL) = (cost_source IS NULL)",
    ),
)

STEPS = Contract(
    "steps",
    "One call of an agent on its way to an answer; `responses` has the whole trajectory.",
    key=("query_id", "model_id", "sample", "step"),
    columns=columns(
        query_id=RESPONSES["query_id"],
        model_id="string: member of the pool whose trajectory it is",
        sample=RESPONSES["sample"],
        step="int32: 0-based number of the call in its trajectory",
        acted_by="string: model that was asked: a relay has several",
        action=(
            "string: what the step did",
            {
                "search": "asked the tool",
                "answer": "answered the question",
                "none": "neither: an error, a refusal, a cut answer, or one more search when the "
                "steps were used up",
            },
        ),
        said="string?: text of the reply, beside its calls of the tool; null where there is none",
        queries="list<string>: what it searched for, verbatim",
        found="list<string>: what the tool gave back, query by query",
        status=("string: how the call ended", _STATUS),
        served_model=RESPONSES["served_model"],
        prompt_tokens=RESPONSES["prompt_tokens"],
        completion_tokens="int64? [tokens]: metered reply",
        reasoning_tokens=RESPONSES["reasoning_tokens"],
        cost_usd="float64? [USD]: cost of the call, also where another trajectory shares and paid "
        "for it; null when unknown",
        cost_source=("string?: where the cost comes from", _COST_SOURCE),
        latency_s=RESPONSES["latency_s"],
        attempts=RESPONSES["attempts"],
        requested_at=RESPONSES["requested_at"],
        request_hash="string: hash of model, endpoint, parameters and messages",
        error=RESPONSES["error"],
    ),
    rules=rules(
        a_search_finds="(action = 'search') = (len(found) > 0)",
        found_for_each_query="len(found) = 0 OR len(found) = len(queries)",
        step_not_negative="step >= 0 AND sample >= 0",
        cost_has_source="(cost_usd IS NULL) = (cost_source IS NULL)",
        cost_not_negative="cost_usd IS NULL OR cost_usd >= 0",
    ),
)
