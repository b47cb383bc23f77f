"""Killed processes, two processes at once: nothing acknowledged is lost, nothing is sent twice."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.collect import responses_table
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Collect
from tests.calls.collecting import PROCESSES, collected, pool, queries
from tests.calls.loopback import Do, Loopback, answer, completion


def start(server: Loopback, folder: Path, n: int, models: int, concurrency: int) -> Any:
    files = str(folder / "ledger.sqlite"), str(folder / "acknowledged")
    process = PROCESSES.Process(
        target=collected, args=(server.base_url, *files, n, models, concurrency)
    )
    process.start()
    return process


def code(process: Any) -> int | None:
    """With what it ended."""
    process.join(600)
    return process.exitcode  # type: ignore[no-any-return]


def slow_answer(body: dict[str, Any], seen: int) -> Do:
    return answer(completion(f"{body['model']} {body['messages'][0]['content']}"), delay=0.02)


def kept(folder: Path) -> set[tuple[str, str]]:
    """(model, query) that the ledger has a usable answer for."""
    with SqliteLedger(folder / "ledger.sqlite") as ledger:
        return {(a.model_id, a.query_id) for a in ledger.attempts() if a.usable}


def kill_and_resume(folder: Path, n: int, models: int, kills: int, concurrency: int) -> None:
    pairs = n * models
    randomly = random.Random(kills)
    with Loopback(slow_answer) as server:
        at_risk: list[set[tuple[str, str]]] = []
        for _ in range(kills):
            process = start(server, folder, n, models, concurrency)
            # Any moment: at start-up, in full flight, or between answer and commit.
            goal = server.requests + randomly.randrange(0, 2 * pairs // kills)
            while server.requests < goal and process.is_alive():
                time.sleep(0.001)
            time.sleep(randomly.random() * 0.1)
            process.kill()
            process.join()
            sent = {(model, prompt) for model, prompt, _ in server.seen}
            at_risk.append(sent - kept(folder))
            assert len(at_risk[-1]) <= models * concurrency
        assert code(start(server, folder, n, models, concurrency)) == 0
        counts = {(model, prompt): times for (model, prompt, _), times in server.seen.items()}
    # Only what was in flight or uncommitted at a kill may have been sent again.
    for pair, times in counts.items():
        assert times <= 1 + sum(pair in risk for risk in at_risk)
    assert len(counts) == pairs
    acknowledged = set((folder / "acknowledged").read_text().splitlines())
    with SqliteLedger(folder / "ledger.sqlite") as ledger:
        made = plan(queries(n), pool(server.base_url, models), Collect(), ledger)
        responses = responses_table(made, ledger)
        usable = [a for a in ledger.attempts() if a.usable]
    assert made.missing == 0
    assert acknowledged <= {f"{a.request_hash} {a.sample}" for a in usable}
    assert responses.num_rows == pairs
    for row in responses.to_pylist():
        assert row["text"] == f"{row['model_id']} {row['query_id']}"
    # What the ledger holds twice was answered twice: every answer that came is kept.
    assert len(usable) <= sum(counts.values())


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, n=200, models=2, kills=3, concurrency=16)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kill_9_at_twenty_moments_of_5000_calls(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, n=2500, models=2, kills=20, concurrency=32)


def test_two_processes_send_every_pair_once(tmp_path: Path) -> None:
    with Loopback(slow_answer) as server:
        both = [start(server, tmp_path, 300, 2, 16) for _ in range(2)]
        assert [code(process) for process in both] == [0, 0]
        assert set(server.seen.values()) == {1}
        assert len(server.seen) == 600
    assert len(kept(tmp_path)) == 600


def test_the_claims_of_a_killed_process_lapse_at_once(tmp_path: Path) -> None:
    # The lease is two minutes; on one host nobody has to wait for it.
    with Loopback(lambda body, seen: Do(hang=True)) as server:
        process = start(server, tmp_path, 50, 1, 16)
        while not server.requests:
            time.sleep(0.01)
        process.kill()
        process.join()
    with Loopback(slow_answer, server.port) as server:
        started = time.monotonic()
        assert code(start(server, tmp_path, 50, 1, 16)) == 0
        assert time.monotonic() - started < 60
    assert len(kept(tmp_path)) == 50
