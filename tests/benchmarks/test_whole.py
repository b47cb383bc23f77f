"""All benchmarks by one command: figures of real runs, growth, the page, and comparison."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.whole import all as whole
from benchmarks.whole import page, results, running
from benchmarks.whole.all import outcome
from benchmarks.whole.cases import CASES, Case, Figure, Growth
from benchmarks.whole.compare import compared

SMALL = Case(
    "bootstrap",
    "A small one",
    ("--resamples", "400", "--queries", "1000"),
    (
        Figure("matrix_cpu_s", "400 resamples", "CPU-s"),
        Figure("speedup_vs_loop", "times as fast as a loop", "×", "higher", ratio=True),
        Figure("speedup_vs_nobody", "times as fast as nobody", "×", "higher", ratio=True),
    ),
)


def figure(median: float | None, better: str, *, ratio: bool, spread: float = 0.0) -> Any:
    ends = {} if median is None else {"low": median - spread, "high": median + spread}
    row = {"key": f"{better}{ratio}", "says": "s", "unit": "", "better": better, "ratio": ratio}
    return row | {"median": median, "low": None, "high": None, "runs": 3} | ends


def a_run(*figures: Any) -> dict[str, Any]:
    case = {"name": "case", "title": "A case", "absent": [], "growth": None}
    where = results.surroundings()
    return {
        "surroundings": where,
        "rounds": 3,
        "wall_s": 60,
        "cases": [case | {"figures": figures}],
    }


@pytest.mark.extensions
def test_a_real_case_gives_medians_and_names_what_is_absent(tmp_path: Path) -> None:
    row = running.run_case(SMALL, 1, None, lambda line: None)
    ours, ratio, nobody = row["figures"]
    assert ours["median"] > 0
    assert ratio["median"] > 1  # ten times, with enough to do that no clock hides it
    assert nobody["median"] is None
    assert row["absent"] == ["times as fast as nobody"]
    run = {"surroundings": results.surroundings(), "rounds": 1, "wall_s": 1, "cases": [row]}
    page.write(tmp_path, run)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "| times as fast as nobody | absent |" in text
    assert "plots/ratios.svg" in text
    assert (tmp_path / "plots" / "ratios.svg").read_text().startswith("<svg")


def test_a_case_without_its_data_is_named_and_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROUTEYARD_DATA", raising=False)
    case = next(case for case in CASES if "data" in case.needs)
    row = running.run_case(case, 1, None, lambda line: None)
    assert row["absent"] == ["data"]
    assert row["figures"] == []
    # Nothing was measured, and the exit code said that all is well.
    assert outcome([row]) == {"failed": [], "not_run": {case.name: ["data"]}, "exit": 1}
    measured = {"name": "m", "absent": ["times as fast as nobody"], "figures": [{}]}
    assert outcome([row, measured])["exit"] == 0


@pytest.mark.extensions
def test_a_benchmark_that_fails_says_its_own_words_and_the_others_stay(tmp_path: Path) -> None:
    broken = Case("bootstrap", "Broken", ("--resamples", "many"), ())
    row = running.run_case(broken, 1, None, lambda line: None)
    assert "invalid int value: 'many'" in row["failed"]
    run = a_run(figure(10, "higher", ratio=True))
    run["cases"].append(row)
    page.write(tmp_path, run)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "Failed: " in text
    assert "| s | 10 |" in text


@pytest.mark.parametrize("power", [0.0, 1.0, 1.7, 2.0])
def test_the_exponent_is_the_slope_of_logarithms(power: float) -> None:
    sizes = (10, 30, 90)
    assert running.exponent(sizes, [3 * n**power for n in sizes]) == pytest.approx(power)


def test_every_case_names_a_benchmark_and_sizes_that_grow() -> None:
    from benchmarks.__main__ import BENCHMARKS

    for case in CASES:
        assert case.name in BENCHMARKS
        assert case.figures
        if case.growth:
            assert isinstance(case.growth, Growth)
            assert list(case.growth.sizes) == sorted(set(case.growth.sizes))
            assert len(case.growth.sizes) == 3


@pytest.mark.parametrize(
    ("was", "now", "worse"),
    [
        (figure(10, "higher", ratio=True), figure(7, "higher", ratio=True), True),
        (figure(10, "higher", ratio=True), figure(9, "higher", ratio=True), False),
        (figure(10, "higher", ratio=True), figure(14, "higher", ratio=True), False),
        # A range of ±2 around 10 is noise of 20 %: thrice that is what counts.
        (figure(10, "higher", ratio=True, spread=2), figure(7, "higher", ratio=True), False),
        (figure(1, "exact", ratio=False), figure(0.999, "exact", ratio=False), True),
        (figure(1, "exact", ratio=False), figure(1, "exact", ratio=False), False),
        (figure(10, "higher", ratio=True), figure(None, "higher", ratio=True), False),
    ],
)
def test_worse_is_beyond_tolerance_and_noise(was: Any, now: Any, worse: bool) -> None:
    (row,) = compared(a_run(was), a_run(now), 0.15, absolute=False)
    assert row["worse"] is worse


def test_seconds_are_judged_on_one_machine_only() -> None:
    was, now = a_run(figure(1, "lower", ratio=False)), a_run(figure(2, "lower", ratio=False))
    assert compared(was, now, 0.15, absolute=False) == []
    assert [row["worse"] for row in compared(was, now, 0.15, absolute=True)] == [True]


@pytest.mark.extensions
def test_compare_exits_1_on_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = a_run(figure(10, "higher", ratio=True))
    slower = copy.deepcopy(run)
    slower["cases"][0]["figures"] = [figure(5, "higher", ratio=True)]
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    results.write(old, run)
    results.write(new, slower)
    assert main(["compare", str(old), str(old), "--json"]) == 0
    assert main(["compare", str(old), str(new), "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["worse"][0]["figure"].startswith(
        "case"
    )
    for bad in ("no such file", "[]", '{"layout": 0}'):
        new.write_text(bad)
        with pytest.raises(SystemExit, match="not a file of"):
            main(["compare", str(old), str(new)])


def test_a_busy_machine_is_said(tmp_path: Path) -> None:
    run = a_run()
    cores = run["surroundings"]["cores"]
    (case,) = run["cases"]
    case |= {"on": "2026-11-22", "rounds": 3, "loads": [0.5, cores]}
    page.write(tmp_path, run)
    assert "busy machine**" not in (tmp_path / "RESULTS.md").read_text()
    case["loads"] = [0.5, cores + 3.5]
    page.write(tmp_path, run)
    said = f"2026-11-22, 3 runs, load average 0.5 to {cores + 3.5:g} on {cores} cores: **a busy"
    assert said in (tmp_path / "RESULTS.md").read_text()


def test_a_case_is_measured_again_and_the_others_are_kept() -> None:
    before = a_run() | {"rounds": 1}
    old, other = ({"name": name, "figures": []} for name in ("dedup", "prune"))
    before["cases"] = [other, old]
    new = {"name": "dedup", "figures": [], "on": "2026-11-22", "rounds": 3}
    kept = whole._kept(before, [new])
    assert [case["name"] for case in kept] == ["dedup", "prune"]
    assert kept[0] == new
    day = before["surroundings"]["measured_on"]
    assert kept[1] == {"name": "prune", "figures": [], "on": day, "rounds": 1}
