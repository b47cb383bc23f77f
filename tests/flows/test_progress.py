"""The progress display: live lines on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import io
from collections import Counter

from rich.console import Console

from routeyard.flows.console import collecting, duration
from routeyard.flows.console import progress_line as line
from routeyard.pipelines.collect.budget import Tally, snapshot


def tallies() -> dict[str, Tally]:
    busy = Tally(wanted=1000, before=100, ok=380, truncated=20, failed=5, in_flight=8)
    busy.errors = Counter({"http_429": 7, "timeout": 2})
    busy.spent_usd = 1.0
    stuck = Tally(wanted=1000, paused="the provider refuses model or key")
    return {"busy": busy, "stuck": stuck}


def test_a_snapshot_projects_cost_and_time() -> None:
    busy, stuck = snapshot(tallies(), 10.0, finished=False).models
    assert (busy.done, busy.rate) == (500, 40.5)
    # 400 answers cost one dollar, 495 are to come.
    assert busy.projected_usd == 1.0 + 495 / 400
    assert busy.eta_s == 495 / 40.5
    # Nothing came: neither cost nor time is known.
    assert (stuck.projected_usd, stuck.eta_s) == (None, None)


def test_lines_without_a_terminal() -> None:
    out = io.StringIO()
    with collecting(Console(file=out, force_terminal=False, width=200)) as show:
        show(snapshot(tallies(), 1.0, finished=False))  # not due yet
        assert out.getvalue() == ""
        show(snapshot(tallies(), 10.0, finished=True))
    first, second = out.getvalue().splitlines()
    assert (
        "busy: 500/1,000 (100 of an earlier run), 40.5/s, http_429:7 timeout:2, "
        "$1.0000 spent in this run, $2.24 projected" in first
    )
    assert second.endswith("paused: the provider refuses model or key")


def test_live_lines_and_their_sum_on_a_terminal() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120)
    with collecting(console) as show:
        show(snapshot(tallies(), 10.0, finished=False))
    assert "projected" in out.getvalue()
    assert "500/1,000" in out.getvalue()
    said = " ".join(out.getvalue().split())
    assert "all: 500/2,000 (100 of an earlier run), $1.0000 spent in this run" in said


def test_words_for_time() -> None:
    assert [duration(s) for s in (None, 4.2, 720, 12_000)] == ["?", "4 s", "12 min", "3 h 20 min"]


def test_unknown_costs_show() -> None:
    state = tallies()
    state["busy"].unpriced = 3
    assert "$1.0000+? spent" in line(snapshot(state, 10.0, finished=False).models[0])


def test_what_another_process_asks_for_is_waited_for_in_words() -> None:
    state = {"m": Tally(wanted=5, before=3, held=2)}
    said = line(snapshot(state, 10.0, finished=False).models[0])
    assert "waits for 2 that another process asks for" in said
    assert "140 s after its last sign of life" in said
    state["m"].held = 0
    assert "waits" not in line(snapshot(state, 10.0, finished=False).models[0])
