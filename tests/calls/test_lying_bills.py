"""Understated usage: a budget holds as far as the text shows what must have been billed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.budget import (
    LeastUsage,
    Price,
    UsageWatch,
    counted,
    counted_fault,
    least_tokens,
    least_usage,
)
from routeyard.pipelines.collect.reply import CallFault, ReplyChoice, Usage
from routeyard.pipelines.collect.sqlite import SqliteLedger
from tests.calls.loopback import Loopback, answer, completion
from tests.calls.lying import CONCURRENCY, LIES, LIMIT, spend, worst_call
from tests.calls.test_one_budget import build


@pytest.mark.parametrize("name", LIES)
def test_a_lying_server_gets_no_more_than_its_text_hides(name: str, tmp_path: Path) -> None:
    # 20 times the budget was spent with usage of 1 and 1, 3 times with empty texts of no tokens;
    # an error with usage in a 200, or in a 400, was free.
    bill, ended = spend(LIES[name], tmp_path)
    print(
        f"{name}: {bill.usd:.3f} of {LIMIT} USD, of which {bill.unseen:.3f} USD neither text nor "
        f"report shows; {bill.calls} calls, a call costs at most {bill.ratio:.2f} times its lower "
        f"bound; {next(iter(ended.paused.values()), '')[:60]}"
    )
    assert bill.usd <= LIMIT * bill.ratio + CONCURRENCY * worst_call()
    # And no more than what nobody could have counted, and the calls in flight.
    assert bill.usd - bill.unseen <= LIMIT + CONCURRENCY * worst_call()
    assert bill.ratio < 6
    # Not by asking nothing.
    assert bill.calls > 5
    assert ended.missing or name in ("400 with usage",)


def test_impossible_usage_pauses_before_the_budget_is_gone(tmp_path: Path) -> None:
    bill, ended = spend(LIES["one token each"], tmp_path)
    assert bill.usd < LIMIT
    assert "its usage is impossible: 20 prompts of at least" in ended.paused["m"]
    assert "take the budget away" in ended.paused["m"]
    assert not ended.out_of_budget


def test_the_tables_keep_the_providers_figure(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion("many words " * 20))) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        build(server, ledger, "b")
        (row,) = ledger.summary()
        reported = row["ok"] * (10 * 100 + 5 * 1000) / 1e6
        assert row["cost_usd"] == pytest.approx(reported)
        assert sum(ledger.charged("b").values()) > 2 * reported


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("", 0),
        (" \n" * 500, 0),
        ("one two three", 2),
        ("word", 1),
        # One sign many times is few tokens, whatever its length.
        ("=" * 4000, 1),
        ("a" * 4000, 1),
        ("\u4f60\u597d\u5417" * 32, 18),
        ("deadbeef" * 32, 16),
    ],
)
def test_fewest_tokens(text: str, least: int) -> None:
    assert least_tokens(text) == least


def test_a_bound_never_exceeds_what_a_tokenizer_makes() -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    page = Path(__file__).parents[2] / "README.md"
    for line in page.read_text(encoding="utf-8").splitlines():
        # Byte-level merges never cross the pieces that it cuts first.
        assert least_tokens(line) <= len(byte_level.pre_tokenize_str(line)) + len(line) / 16


def choice(text: str | None, status: str = "ok") -> ReplyChoice:
    return ReplyChoice(text, status, "stop", None)


@pytest.mark.parametrize(
    ("usage", "choices", "expected"),
    [
        (Usage(1, 1), [choice("a b c d")], 3.0),
        (Usage(50, 60), [choice("a b c d")], 110.0),
        (Usage(1, 0), [choice("")], None),
        (Usage(1, 1), [choice("")], 2.0),
        (Usage(1, 0), [choice("", "refused")], 1.0),
        (Usage(1, 1), [choice("a b c d"), choice("e f g h")], 5.0),
        (Usage(1, None), [choice("a b c d")], None),
    ],
)
def test_what_is_counted(usage: Usage, choices: Any, expected: float | None) -> None:
    least = least_usage([{"role": "user", "content": "x"}], choices)
    found = counted(usage, Price(1e6, 1e6), least)
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (CallFault("http_400", "", status=400, maybe_billed=False), 0.0),
        (CallFault("http_500", "", status=500), None),
        # An error with usage was billed: all of the charge stays.
        (CallFault("http_400", "", status=400, maybe_billed=False, usage=Usage(5, 5)), None),
        (CallFault("http_500", "", status=500, usage=Usage(5, 5)), None),
        # More than was charged is believed.
        (CallFault("http_400", "", status=400, maybe_billed=False, usage=Usage(50, 70)), 120.0),
        (CallFault("no_content", "", status=200, usage=Usage(5, 5)), 10.0),
        (CallFault("no_content", "", status=200, usage=Usage(5, 0)), None),
    ],
)
def test_what_an_error_counts(fault: CallFault, expected: float | None) -> None:
    assert counted_fault(fault, Price(1e6, 1e6), LeastUsage(2), charged=100.0) == expected


def test_honest_usage_is_never_impossible() -> None:
    watch = UsageWatch()
    for n in range(100):
        text = "The answer, I think, is 42 apples: 6 times 7. " * (1 + n % 5)
        least = least_usage([{"role": "user", "content": text}], [choice(text)])
        assert watch.add(Usage(len(text) // 5, len(text) // 5), least) is None
