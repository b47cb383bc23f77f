"""Units, scales, encodings and words of an outside user's files: read as meant, or said."""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.audits import audit_path
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.results import AggregatesOnly, Results, read_results
from tests.ingest.results.test_unknown_layouts import ARMS, SHARES, N, dump, right, table

Cell = Callable[[str, int], Any]


def long(folder: Path, **columns: Cell) -> Results:
    """What is read of a long table with a column of the model, of the id and others."""
    rows = [[a, f"q{i}", *[one(a, i) for one in columns.values()]] for a in ARMS for i in range(N)]
    table(folder / "t.csv", ["model", "question_id", *columns], rows)
    return read_results(folder)


def shares(found: Results) -> dict[str, float]:
    """Accuracy of each arm."""
    means = found.table.group_by("arm").aggregate([("score", "mean")]).to_pylist()
    return {row["arm"]: row["score_mean"] for row in means}


def known(found: Results, column: str) -> set[Any]:
    return set(found.table.column(column).to_pylist())


def says(found: Results) -> str:
    return " | ".join(note.says for note in found.notes)


def correct(arm: str, i: int) -> int:
    return int(right(arm, i))


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("incorrect", lambda a, i: int(not right(a, i))),
        ("is_wrong", lambda a, i: not right(a, i)),
        ("tests_passed", lambda a, i: "8/8" if right(a, i) else "0/8"),
        ("pass_pct", lambda a, i: 100 * right(a, i)),
        ("status", lambda a, i: "resolved" if right(a, i) else "unresolved"),
        ("strict_match", correct),
    ],
)
def test_what_is_wrong_what_is_a_share_and_what_is_a_word(
    column: str, cell: Cell, tmp_path: Path
) -> None:
    assert shares(long(tmp_path, **{column: cell})) == pytest.approx(SHARES)


@pytest.mark.parametrize(
    ("column", "cell", "usd"),
    [
        ("cost_cents", 1.25, 0.0125), ("Cost (cents)", 1.25, 0.0125), ("cost", "1.25¢", 0.0125),
        ("cost", "$0.0125", 0.0125), ("cost_per_task", 0.0125, 0.0125),
        ("cost", "€0.5", None), ("cost_eur", 0.5, None), ("price_per_1k_tokens", 0.5, None),
        ("cost_per_1M_tokens", 3, None), ("cost_per_1k_queries", 3.5, None),
    ],
)  # fmt: skip
def test_costs_are_dollars_of_an_answer_or_unknown(
    column: str, cell: object, usd: float | None, tmp_path: Path
) -> None:
    found = long(tmp_path, correct=correct, **{column: lambda a, i: cell})
    assert known(found, "cost_usd") == {usd}
    assert usd is not None or f"{column!r}" in says(found)


def test_times_of_day_are_no_durations_and_milliseconds_are_asked_for(tmp_path: Path) -> None:
    found = long(tmp_path, correct=correct, time=lambda a, i: 1_767_225_600_000 + i)
    assert known(found, "latency_s") == {None}
    assert "times of day" in says(found)
    found = long(tmp_path, correct=correct, latency=lambda a, i: 2_500 + i)
    assert any("seconds, or milliseconds" in one for one in found.questions)
    found = long(tmp_path, correct=correct, output_tokens=lambda a, i: "1.2k")
    assert known(found, "completion_tokens") == {1200.0}


def test_units_of_the_columns_of_models(tmp_path: Path) -> None:
    fields = ("score", "latency_ms", "cost_cents")
    rows = [[f"q{i}", *[v for a in ARMS for v in (correct(a, i), 1500, 2)]] for i in range(N)]
    table(tmp_path / "t.csv", ["id", *[f"{a}_{name}" for a in ARMS for name in fields]], rows)
    found = read_results(tmp_path)
    assert (known(found, "latency_s"), known(found, "cost_usd")) == ({1.5}, {0.02})
    assert shares(found) == pytest.approx(SHARES)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_are_read_or_named(encoding: str, packed: bool, tmp_path: Path) -> None:
    lines = [f"{a},é{i},{correct(a, i)}" for a in ARMS for i in range(N)]
    made = "\n".join(["model,question_id,correct", *lines]).encode(encoding)
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(made) if packed else made)
    if encoding == "latin-1":
        with pytest.raises(SourceError, match="neither UTF-8 nor UTF-16") as error:
            read_results(path)
        assert "iconv" in str(error.value)
    else:
        assert shares(read_results(path)) == pytest.approx(SHARES)
        assert "é3" in known(read_results(path), "question")
    assert codecs.BOM_UTF8 not in (made if encoding == "utf-16" else b"")


def test_a_packed_document_is_one_document(tmp_path: Path) -> None:
    made = {a: {f"q{i}": {"score": correct(a, i)} for i in range(N)} for a in ARMS}
    (tmp_path / "all.json.gz").write_bytes(gzip.compress(json.dumps(made).encode()))
    assert shares(read_results(tmp_path)) == pytest.approx(SHARES)


def test_a_question_that_only_the_path_names(tmp_path: Path) -> None:
    for a in ARMS:
        for i in range(N):
            dump(tmp_path / a / f"task_{i}" / "result.json", {"success": right(a, i), "turns": 4})
    found = read_results(tmp_path)
    assert shares(found) == pytest.approx(SHARES)
    assert "task_3" in known(found, "question")


def test_calls_of_no_question_are_looked_at(tmp_path: Path) -> None:
    long(tmp_path, correct=correct)
    for k in range(30):
        used = {"prompt_tokens": 50, "completion_tokens": 9, "cost_microdollars": 7 if k else None}
        asked, served = (ARMS[0], "tiny-1b") if k < 20 else ("judge-9b", "judge-9b")
        dump(tmp_path / "calls" / f"call-{k}.json", {"request": {"model": asked},
             "response": {"model": served, "usage": used}})  # fmt: skip
    page = audit_path(tmp_path)
    told = {one.kind: one.says for one in page.findings}
    assert "30 API calls name no question (1,500 prompt" in told["calls_without_question"]
    assert "$0.000203" in told["calls_without_question"]
    assert f"1 of 30 API calls (1 of {ARMS[0]}) state no cost" in told["cost_unknown"]
    assert "10 of 30 API calls asked 'judge-9b'" in told["calls_of_no_arm"]
    assert "20 API calls" in told["served_by_another"]


def test_figures_that_contradict_the_rows_or_one_another_are_named(tmp_path: Path) -> None:
    long(tmp_path, correct=correct)
    stated = [{"model": a, "accuracy": 100 * SHARES[a], "n_questions": N} for a in ARMS]
    dump(tmp_path / "summary.json", stated)
    assert audit_path(tmp_path).verdict == "clean"
    stated[0]["accuracy"] = 55.0
    dump(tmp_path / "summary.json", stated)
    one = next(f for f in audit_path(tmp_path).findings if f.kind == "figures_disagree")
    assert f"1 of 2 arms ({ARMS[0]}: 55 stated, 0.35 over its rows)" in one.says


def test_what_is_odd_in_a_leaderboard_is_named(tmp_path: Path) -> None:
    rows = [{"model": f"llama-{k}b", "pass_rate": 100 * k / 225, "pass_num": k,
             "test_cases": 225, "total_cost": 0.5 * k, "error_outputs": 0}
            for k in range(30, 60)]  # fmt: skip
    rows[0] |= {"total_cost": 0.0}
    rows[1] |= {"test_cases": 223}
    rows[2] |= {"pass_rate": 90.0, "error_outputs": 200}
    rows[3] |= {"model": "llama-59b"}
    dump(tmp_path / "board.json", rows)
    with pytest.raises(AggregatesOnly) as error:
        read_results(tmp_path)
    told = " | ".join(note.says for note in error.value.notes)
    for part in (
        "1 of 30 rows have 'total_cost' 0 (llama-30b)",
        "1 of 30 rows are over 223",
        "'pass_rate' that is not their 'pass_num' over 'test_cases' (llama-31b",
        "'error_outputs' in a quarter",
        "1 models have several rows (llama-59b)",
    ):
        assert part in told
    assert audit_path(tmp_path).verdict == "doubtful"


def test_defects_of_public_folders_are_named(data: Path) -> None:
    told = {f.kind: f.says for f in audit_path(data / "shapes" / "leaderboards_agg").findings}
    assert "17 of 69 rows have 'total_cost' 0" in told["cost_unknown"]
    assert "67 of 98 rows have 'total_cost' 0" in told["cost_unknown"]
    assert "5 rows state a 'pass_rate_2' that is not their 'pass_num_2'" in told["figures_disagree"]
    gateway = {
        f.kind: f.says for f in audit_path(data / "shapes" / "trustedrouter_gateway").findings
    }
    assert "250 of 793 API calls asked 'openai/gpt-4.1'" in gateway["calls_of_no_arm"]
    assert "532 of 793 API calls" in gateway["cost_unknown"]
    arena = {f.kind: f.says for f in audit_path(data / "shapes" / "routerarena_cached").findings}
    assert "'The' of AsDiv_1044, '18;' of AsDiv_1347" in arena["damaged_reference"]
