"""Each check finds its fault, names the rows, and stays silent over honest metering."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from routeyard.pipelines.audit.metering import apply_waivers, audit
from routeyard.pipelines.common.pool import same_model
from routeyard.schemas import MODELS, RESPONSES
from routeyard.schemas.recipe.collect import Metering
from routeyard.schemas.release import Waiver

PRICED = {"price_in": 1.0, "price_out": 2.0, "price_date": "2026-01-01"}


def honest(number: int, **changes: Any) -> dict[str, Any]:
    text = "The answer is forty two. " * (1 + number % 7)
    tokens = len(text) // 4
    row = {
        "query_id": f"q{number:03d}",
        "model_id": "gpt-x",
        "sample": 0,
        "text": text,
        "status": "ok",
        "served_model": "gpt-x-2026-02-03",
        "prompt_tokens": 12 + number % 5,
        "completion_tokens": tokens,
        "cost_usd": (12 + number % 5 + 2 * tokens) / 1e6,
        "cost_source": "price_table",
        "latency_s": 1.0 + 0.1 * (number % 9),
        "attempts": 1,
    }
    return row | changes


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return RESPONSES.from_rows(rows)


def models(**changes: Any) -> pa.Table:
    row = {"model_id": "gpt-x", "kind": "real", "simulated": False, **PRICED} | changes
    return MODELS.from_rows([row])


def found(rows: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    pool = options.pop("models", models())
    return {f.check: f for f in audit(table(rows), pool, **options)}


def test_honest_metering_has_no_findings() -> None:
    assert found([honest(i) for i in range(200)]) == {}


def test_errors_are_not_answers() -> None:
    bad = {"status": "error", "text": None, "prompt_tokens": None, "cost_usd": None}
    rows = [honest(i, **bad, completion_tokens=None, cost_source=None) for i in range(50)]
    assert found(rows) == {}


CASES: dict[str, dict[str, Any]] = {
    "price_unknown": {"cost_usd": None, "cost_source": None},
    "usage_missing": {"prompt_tokens": None, "cost_usd": None, "cost_source": None},
    "implausible_count": {"text": "A", "completion_tokens": 900},
    "served_model": {"served_model": "gpt-x-mini"},
    "latency": {"latency_s": 500.0},
    "logprob_count": {
        "logprobs": json.dumps([{"token": "a", "logprob": 0.0, "top": []}]),
        "completion_tokens": 40,
        "text": "long enough for forty tokens " * 5,
    },
    "totals": {"reasoning_tokens": 10_000},
    "truncated": {"status": "truncated"},
    "refused": {"status": "refused"},
}


def test_each_fault_is_found_and_its_rows_are_named() -> None:
    bad = {check: range(20 + 25 * k, 40 + 25 * k) for k, check in enumerate(CASES)}
    of_row = {i: CASES[check] for check, rows in bad.items() for i in rows}
    results = found([honest(i, **of_row.get(i, {})) for i in range(250)])
    for check, faulty in bad.items():
        finding = results[check]
        # What has no usage has no price either; the first twenty are shown.
        assert finding.count == len(faulty) * (2 if check == "price_unknown" else 1), check
        assert finding.rows == tuple((f"q{i:03d}", 0) for i in faulty)
        assert finding.model_id == "gpt-x"


def test_too_few_tokens_for_so_many_words() -> None:
    rows = [honest(i) for i in range(50)]
    rows[7] |= {"text": "word " * 500, "completion_tokens": 20}
    assert found(rows)["implausible_count"].rows == (("q007", 0),)


def test_languages_without_spaces_are_plausible() -> None:
    # One character of Chinese takes one token or more; there are no words to count.
    rows = [honest(i, text="答案是四十二。" * 20, completion_tokens=140) for i in range(50)]
    assert "implausible_count" not in found(rows)


def test_constant_counts_need_texts_that_differ() -> None:
    constant = [honest(i, completion_tokens=30) for i in range(200)]
    assert found(constant)["constant_count"].count == 200
    # A letter takes one token each time: nothing to find.
    letters = [honest(i, text="ABCD"[i % 4], completion_tokens=1) for i in range(200)]
    assert "constant_count" not in found(letters)


def test_totals_from_a_ledger() -> None:
    rows = table([honest(i) for i in range(30)])
    sums = [row["prompt_tokens"] + row["completion_tokens"] for row in rows.to_pylist()]
    sums[3] += 1
    findings = audit(rows.append_column("total_tokens", pa.array(sums)), models())
    assert [(f.check, f.rows) for f in findings] == [("totals", (("q003", 0),))]


def test_prompts_bound_their_counts() -> None:
    rows = [honest(i, prompt_tokens=3) for i in range(30)]
    queries = pa.table(
        {"query_id": [f"q{i:03d}" for i in range(30)], "prompt": ["many words here " * 50] * 30}
    )
    assert found(rows, queries=queries)["implausible_count"].count == 30


def test_a_price_table_off_by_ten() -> None:
    rows = [honest(i, cost_source="provider") for i in range(30)]
    assert found(rows) == {}
    off = models(price_in=10.0, price_out=20.0)
    assert found(rows, models=off)["price_mismatch"].count == 30


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("openai/gpt-4o", "gpt-4o", True),
        ("meta/llama-3:free", "meta/llama-3", True),
        ("claude-3-opus-latest", "claude-3-opus-20240229", False),
        ("m1", "m10", False),
        ("Qwen/Qwen2.5-7B", "qwen2.5-7b", True),
    ],
)
def test_served_names(asked: str, served: str, same: bool) -> None:
    assert same_model(asked, served) is same


def test_names_the_recipe_allows() -> None:
    rows = [honest(i, served_model="vendor-build-7") for i in range(30)]
    assert found(rows)["served_model"].count == 30
    assert found(rows, thresholds=Metering(served_as={"gpt-x": ["vendor-build-7"]})) == {}
    assert found(rows, names={"gpt-x": "vendor-build-7"}) == {}


def test_canary_drift() -> None:
    rows = [
        {"model_id": m, "prompt": f"p{i}", "phase": phase, "text": text, "served_model": m}
        for m, changed in (("steady", 0), ("drifting", 4))
        for i in range(5)
        for phase, text in (("start", "a"), ("end", "b" if i < changed else "a"))
    ]
    findings = audit(table([]), models(), canaries=pa.Table.from_pylist(rows))
    assert [(f.check, f.model_id, f.count) for f in findings] == [("canary_drift", "drifting", 4)]


def test_waivers_cover_one_check_or_all() -> None:
    rows = [honest(i, status="truncated", cost_usd=None, cost_source=None) for i in range(50)]
    findings = audit(table(rows), models())
    one = Waiver(gate="metering:price_unknown", reason="prices were never published")
    stands, waived = apply_waivers(findings, [one])
    assert [f.check for f in stands] == ["truncated"]
    assert [(f.check, w.reason) for f, w in waived] == [("price_unknown", one.reason)]
    everything = Waiver(gate="metering", reason="recorded outputs hold no usage")
    assert apply_waivers(findings, [everything])[0] == ()


def cached(number: int, read: int, **changes: Any) -> dict[str, Any]:
    """A call a minute, of 2,000 prompt tokens, some of them read from the cache."""
    sent = f"2026-11-01T{number // 60:02}:{number % 60:02}:00Z"
    counts = {"prompt_tokens": 2_000, "cache_read_tokens": read, "requested_at": sent}
    return honest(number, **(counts | changes))


def test_answers_that_were_cut_have_as_many_tokens_as_the_limit() -> None:
    text = "The answer is forty two. "
    rows = [
        honest(i, status="truncated", completion_tokens=16, text=text[: 6 + i % 9] * (2 + i % 5))
        for i in range(100)
    ]
    assert "constant_count" not in found(rows)
    rows = [row | {"status": "ok"} for row in rows]
    assert found(rows)["constant_count"].count == 100


def test_cached_tokens_are_among_the_prompts() -> None:
    rows = [cached(i, 1_920 if i else 0) for i in range(200)]
    assert found(rows) == {}
    rows[7]["cache_write_tokens"] = 81
    finding = found(rows)["cached_tokens"]
    assert (finding.count, finding.rows) == (1, (("q007", 0),))


def test_what_nobody_wrote_cannot_be_read() -> None:
    # Nothing was sent in the hour before every tenth call: its cache must be somebody else's.
    rows = [cached(i, 1_920, requested_at=f"2026-11-{1 + i // 10:02}T10:{i % 10:02}:00Z")
            for i in range(200)]  # fmt: skip
    finding = found(rows)["cache_unwritten"]
    assert finding.count == 20
    assert finding.rows[0] == ("q000", 0)
    few = [cached(i, 1_920 if i else 1_000) for i in range(200)]
    assert found(few) == {}  # the first: one in 200, written by traffic that is not here
    unknown = [row | {"requested_at": None} for row in rows]
    assert found(unknown) == {}


def test_cached_tokens_without_a_price_are_named() -> None:
    rows = [cached(i, 1_920 if i else 0, cost_usd=None, cost_source=None) for i in range(50)]
    assert "the model has no price_cache_read" in found(rows)["price_unknown"].says
    known = found(rows, models=models(price_cache_read=0.1))["price_unknown"]
    assert "their tokens are not known" in known.says


def test_a_machine_that_hiccups_says_nothing_about_a_model() -> None:
    # A server on loopback: milliseconds with no spread, so any pause is hundreds of deviations out.
    def fast(i: int) -> float:
        return 0.01 + 0.0005 * (i % 5)

    pause = [honest(i, latency_s=2.5 if i < 40 else fast(i)) for i in range(300)]
    assert "latency" not in found(pause)  # many calls waited, none for long
    few = [honest(i, latency_s=60.0 if i < 5 else fast(i)) for i in range(100)]
    assert "latency" not in found(few)  # long, and a handful
    slow = [honest(i, latency_s=60.0 if i < 6 else fast(i)) for i in range(100)]
    assert found(slow)["latency"].count == 6
