"""Usage as six providers state it, in classes, and costs calculated by hand.

Prices are those of `genai-prices` 0.2.3 on the day of the call, in USD per million tokens, written
beside each record; costs are worked out by hand from them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from routeyard.pipelines.collect.prices import billed_cost, class_prices
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.usage import whole_usage

WHEN = datetime(2026, 11, 10, 12, tzinfo=UTC)
SEVENTEEN = WHEN.replace(hour=17)
FLEX, BATCH = {"service_tier": "flex"}, {"processing": "batch"}


def chat(prompt: int, completion: int, cached: int | None = None, **more: Any) -> dict[str, Any]:
    """OpenAI's chat completions, which OpenRouter and vLLM share: prompts include cached tokens."""
    details = {} if cached is None else {"cached_tokens": cached}
    details |= {"cache_write_tokens": more["written"]} if "written" in more else {}
    record = {"prompt_tokens": prompt, "completion_tokens": completion}
    record["total_tokens"] = prompt + completion
    if details:
        record["prompt_tokens_details"] = details
    if "reasoning" in more:
        record["completion_tokens_details"] = {"reasoning_tokens": more["reasoning"]}
    return record


def answers(prompt: int, completion: int, cached: int | None, reasoning: int) -> dict[str, Any]:
    """OpenAI's responses."""
    return {
        "input_tokens": prompt, "output_tokens": completion,
        "input_tokens_details": {} if cached is None else {"cached_tokens": cached},
        "output_tokens_details": {"reasoning_tokens": reasoning},
    }  # fmt: skip


def claude(fresh: int, output: int, read: int, written: int, hour: int = 0) -> dict[str, Any]:
    """Anthropic's: `input_tokens` counts what follows the last cache break point alone."""
    return {
        "input_tokens": fresh, "output_tokens": output, "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour,
        },
    }  # fmt: skip


def gemini(prompt: int, said: int, **more: Any) -> dict[str, Any]:
    """Google's: thoughts are not in candidates; kinds of tokens are listed apart."""
    record: dict[str, Any] = {"promptTokenCount": prompt, "candidatesTokenCount": said}
    for name, key in (("cached", "cachedContentTokenCount"), ("thoughts", "thoughtsTokenCount")):
        record |= {key: more[name]} if name in more else {}
    for name, key in (
        ("kinds", "promptTokensDetails"), ("shown", "candidatesTokensDetails"),
        ("kept", "cacheTokensDetails"),
    ):  # fmt: skip
        if name in more:
            kinds = more[name].items()
            record[key] = [{"modality": kind, "tokenCount": count} for kind, count in kinds]
    return record


def deepseek(hit: int, missed: int, said: int, **more: Any) -> dict[str, Any]:
    both = {"prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": missed}
    return chat(hit + missed, said, **more) | both


#: Provider, model, record, (hour, context), and the cost by hand in millionths of a dollar.
CALLS: list[tuple[str, str, dict[str, Any], Any, str]] = [
    # 2.5 in, 1.25 cached, 10 out.
    ("openai", "gpt-4o", chat(1000, 100, 0), None, "3500"),  # 2500 + 1000
    ("openai", "gpt-4o", chat(2000, 200, 1536), None, "5080"),  # 464 × 2.5 + 1536 × 1.25 + 2000
    ("openai", "gpt-4o-mini", chat(500, 50), None, "105"),  # 500 × 0.15 + 50 × 0.6
    # 2 in, 0.5 cached, 8 out; hidden tokens are part of the answer and charged as such.
    ("openai", "o3", chat(1200, 900, 1024, reasoning=640), None, "8064"),  # 352 + 512 + 7200
    ("openai", "o3", chat(1200, 900, 1024), (WHEN, FLEX), "4032"),  # 176 + 256 + 3600
    ("openai", "o3", chat(1200, 900, 1024), (WHEN, BATCH), "4288"),  # 176 + 512 + 3600
    # Beyond 272,000 tokens all cost more: 5 in, 0.5 cached, 22.5 out.
    ("openai", "gpt-5.4", chat(300_000, 1000, 256_000), None, "370500"),  # 220000+128000+22500
    ("openai", "gpt-5.4", chat(272_000, 10, 0), None, "680150"),  # 272000 × 2.5 + 10 × 15
    ("openai", "gpt-5", answers(5000, 700, 4096, 512), None, "8642"),  # 1130 + 512 + 7000
    ("openai", "gpt-4o-mini", answers(100, 10, None, 0), None, "21"),  # 15 + 6
    # 1 in, 0.1 read, 1.25 written for 5 minutes, 2 for an hour, 5 out.
    ("anthropic", "claude-haiku-4-5", claude(50, 20, 0, 0), None, "150"),  # 50 + 100
    ("anthropic", "claude-haiku-4-5", claude(10, 30, 2000, 500), None, "985"),  # 10+200+625+150
    ("anthropic", "claude-haiku-4-5", claude(5, 1, 0, 1000, 600), None, "1710"),  # 5+500+1200+5
    ("anthropic", "claude-opus-4-5", claude(3, 400, 10_000, 0), None, "15015"),  # 15+5000+10000
    # Over 200,000 tokens of prompt, cached ones counted: 6, 0.6, 7.5 and 22.5.
    (
        "anthropic",
        "claude-sonnet-4-5",
        claude(1000, 100, 150_000, 60_000),
        None,
        "548250",  # 6000 + 90000 + 450000 + 2250
    ),
    ("anthropic", "claude-sonnet-4-5", claude(1000, 100, 1000, 1000), None, "8550"),  # 3000+300+…
    # 0.3 in, 0.03 cached, 2.5 out, 1 for sound.
    ("google", "gemini-2.5-flash", gemini(1000, 100, thoughts=400), None, "1550"),  # 300 + 1250
    ("google", "gemini-2.5-flash", gemini(5000, 50, cached=4096), None, "519.08"),  # 271.2+122.88+…
    (
        "google",
        "gemini-2.5-flash",
        gemini(1300, 20, kinds={"TEXT": 1000, "AUDIO": 300}),
        None,
        "650",  # 300 + 300 + 50
    ),
    (
        "google",
        "gemini-2.5-flash",
        gemini(900, 0, cached=700, kinds={"TEXT": 400, "AUDIO": 500}, kept={"AUDIO": 300}),
        None,
        "242",  # 0 fresh text, 200 sound at 1, 400 cached text at 0.03, 300 cached sound at 0.1
    ),
    (
        "google",
        "gemini-2.0-flash",
        gemini(300, 10, kinds={"TEXT": 42, "IMAGE": 258}),
        None,
        "34",  # 300 × 0.1 + 10 × 0.4: an image is read at the price of text
    ),
    # Over 200,000: 2.5, 0.25 and 15.
    (
        "google",
        "gemini-2.5-pro",
        gemini(250_000, 1000, cached=200_000, thoughts=500),
        None,
        "197500",  # 125000 + 50000 + 22500
    ),
    (
        "google",
        "gemini-2.5-flash-image",
        gemini(20, 1300, shown={"IMAGE": 1290, "TEXT": 10}),
        None,
        "38731",  # 6 + 10 × 2.5 + 1290 × 30
    ),
    ("deepseek", "deepseek-v4-flash", deepseek(1920, 80, 100), None, "77.76"),  # 12 + 5.76 + 60
    ("deepseek", "deepseek-chat", deepseek(1024, 176, 300), None, "449.2"),  # 47.52 + 71.68 + 330
    # Off the peak, from 16:30, half of it.
    ("deepseek", "deepseek-chat", deepseek(1024, 176, 300), (SEVENTEEN, None), "224.6"),
    ("deepseek", "deepseek-reasoner", deepseek(0, 500, 800, reasoning=600), None, "2027"),  # 275+…
    (
        "openrouter",
        "anthropic/claude-sonnet-4.5",
        chat(3000, 100, 2000, written=800),
        None,
        "5700",  # 200 × 3 + 2000 × 0.3 + 800 × 3.75 + 100 × 15
    ),
    ("openrouter", "openai/gpt-4o", chat(100, 10), None, "350"),  # 250 + 100
    ("openrouter", "deepseek/deepseek-v3.2", chat(1000, 500, 0, reasoning=450), None, "450"),
]


@pytest.mark.parametrize(("provider", "model", "record", "at", "micros"), CALLS)
def test_costs_are_those_worked_out_by_hand(
    provider: str, model: str, record: dict[str, Any], at: Any, micros: str
) -> None:
    prices = class_prices(provider, model, *(at or (WHEN,)))
    assert prices is not None
    cost = billed_cost(whole_usage(record), prices)
    assert cost == Decimal(micros) / 1_000_000


def test_a_server_of_ones_own_costs_what_the_recipe_states() -> None:
    """vLLM says what it had cached only where it is told to, and has no list."""
    prices = {"input_mtok": 0.1, "output_mtok": 0.2}
    silent, told = whole_usage(chat(400, 100)), whole_usage(chat(400, 100, 320))
    assert (silent.read, told.read) == (None, 320)
    assert billed_cost(silent, prices) == Decimal("0.00006")
    assert billed_cost(told, prices) is None  # read at a price nobody states
    cached = prices | {"cache_read_mtok": 0.01}
    assert billed_cost(told, cached) == Decimal("0.0000312")  # 8 + 3.2 + 20
    assert billed_cost(silent, {}) is None


TOOLS = {"promptTokenCount": 100, "toolUsePromptTokenCount": 40, "candidatesTokenCount": 5}
THOUGHTS = claude(10, 9, 60, 30) | {"output_tokens_details": {"thinking_tokens": 4}}


@pytest.mark.parametrize("record", [*(record for _, _, record, _, _ in CALLS), TOOLS, THOUGHTS])
def test_whole_counts_are_the_sums_of_billed_classes(record: dict[str, Any]) -> None:
    usage = whole_usage(record)
    assert usage.prompt is not None
    assert usage.completion is not None
    assert sum(usage.classes.values()) == usage.prompt + usage.completion
    assert min(usage.classes.values()) >= 0


def test_classes_add_up_to_the_whole() -> None:
    for _, _, record, _, _ in CALLS:
        usage = whole_usage(record)
        prompt = record.get("prompt_tokens", record.get("input_tokens", 0))
        prompt += record.get("cache_read_input_tokens", 0)
        prompt += record.get("cache_creation_input_tokens", 0)
        assert usage.prompt == record.get("promptTokenCount", prompt)
        said = record.get("completion_tokens", record.get("output_tokens", 0))
        google = record.get("candidatesTokenCount", 0) + record.get("thoughtsTokenCount", 0)
        assert usage.completion == said + google
    named = {name: n for name, n in whole_usage(chat(10, 9, 4, reasoning=2)).classes.items() if n}
    assert named == {"fresh": 6, "cache_read": 4, "output": 7, "reasoning": 2}


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (chat(100, 10, 101), "prompt of 100 tokens with parts"),  # more cached than there was
        (chat(100, 10, 5, reasoning=11), "answer of 10 tokens"),
        (chat(100, 10) | {"prompt_cache_hit_tokens": 1, "prompt_cache_miss_tokens": 2}, "1 + 2"),
        (claude(1, 1, 0, 5, 6), "cache write of 5 tokens"),
        (gemini(5, 1, kinds={"AUDIO": 6}), "prompt of 5"),
        (chat(True, 10), "'prompt_tokens' is True"),
        ({"tokens": 5}, "no counts of a shape that is known"),
        ({"promptTokenCount": -1}, "-1"),
        (chat(100, 10) | {"total_tokens": 105}, "100 + 10 tokens of a total of 105"),
        (chat(100, 10) | {"total_tokens": 130}, "20 tokens of the total of no class"),
        ({"input_tokens": 5, "output_tokens": 1,
          "cache_creation": {"ephemeral_1h_input_tokens": 3}}, "cache write of None"),
    ],
)  # fmt: skip
def test_counts_that_contradict_each_other_are_no_usage(record: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says.replace("+", r"\+")):
        whole_usage(record)
