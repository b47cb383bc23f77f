"""Usage of gateways and providers beyond the six that costs are worked out for by hand.

Each record is written by hand after its provider's documentation; what a record does not say stays
unknown, and what is billed beside tokens leaves the answer's count, and so the cost, unknown.
"""

from __future__ import annotations

from typing import Any

import pytest

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.usage import TokenUsage, usage_of
from routeyard.pipelines.ingest.importers import reading

SHAPES: dict[str, tuple[dict[str, Any], TokenUsage]] = {
    "azure": (
        {"prompt_tokens": 1200, "completion_tokens": 90, "total_tokens": 1290,
         "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 1024},
         "completion_tokens_details": {"accepted_prediction_tokens": 0, "audio_tokens": 0,
                                       "reasoning_tokens": 64, "rejected_prediction_tokens": 8}},
        TokenUsage(1200, 90, 1024, None, 64),
    ),
    "bedrock converse": (
        {"inputTokens": 15, "outputTokens": 127, "totalTokens": 4221,
         "cacheReadInputTokens": 0, "cacheWriteInputTokens": 4079},
        TokenUsage(4094, 127, 0, 4079),
    ),
    "vertex": (
        {"promptTokenCount": 900, "cachedContentTokenCount": 700, "candidatesTokenCount": 30,
         "thoughtsTokenCount": 12, "totalTokenCount": 942, "trafficType": "ON_DEMAND"},
        TokenUsage(900, 42, 700, None, 12),
    ),
    "vertex, python client": (
        {"prompt_token_count": 900, "cached_content_token_count": None,
         "candidates_token_count": 30, "thoughts_token_count": None, "total_token_count": 930,
         "prompt_tokens_details": [{"modality": "MediaModality.AUDIO", "token_count": 250},
                                   {"modality": "MediaModality.TEXT", "token_count": 650}]},
        TokenUsage(900, 30, audio=250),
    ),
    "mistral": (
        {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49,
         "prompt_audio_seconds": None, "num_cached_tokens": None},
        TokenUsage(40, 9),
    ),
    "mistral, sound by the second": (
        {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49,
         "prompt_audio_seconds": 12},
        TokenUsage(40, 9, beside=("prompt_audio_seconds",)),
    ),
    "groq": (
        {"queue_time": 0.02, "prompt_tokens": 4641, "prompt_time": 0.1, "completion_tokens": 1817,
         "completion_time": 5.5, "total_tokens": 6458, "total_time": 5.6,
         "prompt_tokens_details": {"cached_tokens": 4608}},
        TokenUsage(4641, 1817, 4608),
    ),
    "xai": (  # its completion leaves hidden tokens out; its total does not
        {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 289,
         "prompt_tokens_details": {"text_tokens": 32, "audio_tokens": 0, "image_tokens": 0,
                                   "cached_tokens": 6},
         "completion_tokens_details": {"reasoning_tokens": 248, "audio_tokens": 0},
         "num_sources_used": 0},
        TokenUsage(32, 257, 6, None, 248),
    ),
    "together": (
        {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320, "cached_tokens": 256},
        TokenUsage(300, 20, 256),
    ),
    "fireworks": (
        {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320,
         "prompt_tokens_details": {"cached_tokens": 288}},
        TokenUsage(300, 20, 288),
    ),
    "cohere": (  # billed without its own template
        {"billed_units": {"input_tokens": 17, "output_tokens": 12},
         "tokens": {"input_tokens": 83, "output_tokens": 12}, "cached_tokens": 64},
        TokenUsage(17, 12),
    ),
    "cohere, with searches": (
        {"billed_units": {"input_tokens": 17, "output_tokens": 12, "search_units": 1}},
        TokenUsage(17, 12, beside=("billed_units.search_units",)),
    ),
    "anthropic, with searches": (
        {"input_tokens": 105, "output_tokens": 60, "cache_read_input_tokens": 70,
         "cache_creation_input_tokens": 0, "server_tool_use": {"web_search_requests": 1}},
        TokenUsage(175, 60, 70, 0, beside=("server_tool_use.web_search_requests",)),
    ),
    "perplexity": (
        {"prompt_tokens": 14, "completion_tokens": 100, "total_tokens": 114,
         "num_search_queries": 3, "search_context_size": "low"},
        TokenUsage(14, 100, beside=("num_search_queries",)),
    ),
    "qwen": (
        {"prompt_tokens": 3019, "completion_tokens": 104, "total_tokens": 3123,
         "prompt_tokens_details": {"cached_tokens": 2048, "cache_creation_input_tokens": 500}},
        TokenUsage(3019, 104, 2048, 500),
    ),
    "litellm, of anthropic": (
        {"prompt_tokens": 2010, "completion_tokens": 30, "total_tokens": 2040,
         "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 0,
         "prompt_tokens_details": {"cached_tokens": 2000, "text_tokens": None},
         "completion_tokens_details": None},
        TokenUsage(2010, 30, 2000, 0),
    ),
    "langchain": (
        {"input_tokens": 350, "output_tokens": 240, "total_tokens": 590,
         "input_token_details": {"audio": 10, "cache_creation": 200, "cache_read": 100},
         "output_token_details": {"audio": 10, "reasoning": 200}},
        TokenUsage(350, 240, 100, 200, 200, audio=10, output_audio=10),
    ),
    "vercel": (
        {"inputTokens": 350, "outputTokens": 240, "totalTokens": 590, "reasoningTokens": 200,
         "cachedInputTokens": 100},
        TokenUsage(350, 240, 100, None, 200),
    ),
    "openai responses": (
        {"input_tokens": 2800, "input_tokens_details": {"cached_tokens": 2688},
         "output_tokens": 300, "output_tokens_details": {"reasoning_tokens": 256},
         "total_tokens": 3100},
        TokenUsage(2800, 300, 2688, None, 256),
    ),
    "openai, sound": (
        {"prompt_tokens": 119, "completion_tokens": 200, "total_tokens": 319,
         "prompt_tokens_details": {"cached_tokens": 0, "text_tokens": 19, "audio_tokens": 100},
         "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 160}},
        TokenUsage(119, 200, 0, None, 0, audio=100, output_audio=160),
    ),
    "openai realtime": (
        {"total_tokens": 253, "input_tokens": 132, "output_tokens": 121,
         "input_token_details": {"text_tokens": 68, "audio_tokens": 64, "cached_tokens": 80,
                                 "cached_tokens_details": {"text_tokens": 30, "audio_tokens": 50}},
         "output_token_details": {"text_tokens": 30, "audio_tokens": 91}},
        TokenUsage(132, 121, 80, audio=14, cached_audio=50, output_audio=91),
    ),
    "gemini through OpenAI's shape": (  # thoughts are in its total alone
        {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 125},
        TokenUsage(20, 5, hidden=100),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_usage_of_a_shape(name: str) -> None:
    record, usage = SHAPES[name]
    assert usage_of(record) == usage
    read = reading.usage(record, "row 1")
    whole = not usage.hidden and not usage.beside
    assert (read.completion is not None) == whole


@pytest.mark.parametrize(
    "record",
    [{}, {"tokens": 9}, {"usage": {"prompt_tokens": 9}}, {"characters": 900, "units": 2},
     {"prompt_tokens": "many", "note": 1}],
)  # fmt: skip
def test_an_unknown_shape_is_unknown_and_not_free(record: dict[str, Any]) -> None:
    found = usage_of(record)
    assert (found.prompt, found.completion, found.read) == (None, None, None)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 4}, "a total of 4"),
        ({"inputTokens": 5, "outputTokens": 1, "totalTokens": 3}, "a total of 3"),
        ({"prompt_tokens": 5.5, "completion_tokens": 1}, "is 5.5"),
    ],
)
def test_counts_that_contradict_each_other_are_refused_with_the_row(
    record: dict[str, Any], says: str
) -> None:
    with pytest.raises(SourceError, match=says) as refused:
        reading.usage(record, "log.jsonl, record 7")
    assert "record 7" in str(refused.value)
