"""The agentic benchmark as a release like any other: built, killed, gone on with, verified."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from routeyard.flows.cli import run
from routeyard.flows.demo.answers import act, hops, write_hops
from routeyard.flows.demo.server import running
from routeyard.pipelines.release.reader import open_release

ROOT = Path(__file__).parents[2]


def acknowledged(yard: Path) -> int:
    ledger = yard / "ledger" / "ledger.sqlite"
    if not ledger.is_file():
        return 0
    try:
        with sqlite3.connect(ledger) as connection:
            found = connection.execute("SELECT count(*) FROM attempts WHERE status <> 'error'")
            return int(found.fetchone()[0])
    except sqlite3.Error:
        return 0


def requests(url: str) -> int:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts") as answer:
        return int(json.load(answer)["requests"])


def contents(release: Path) -> dict[str, str]:
    manifest = json.loads((release / "manifest.json").read_text())
    return {name: table["content_without_times"] for name, table in manifest["tables"].items()}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_kill_9_loses_nothing_and_pays_nothing_twice(tmp_path: Path) -> None:
    questions, bank = write_hops(tmp_path / "hops")
    draw = random.Random(5)
    with running("rehearsed", bank=str(bank)) as url:
        environment = os.environ | {
            "PYTHONPATH": str(ROOT), "ROUTEYARD_HOPS": str(questions), "ROUTEYARD_HOPS_URL": url,
        }  # fmt: skip

        def command(yard: Path) -> list[str]:
            return [
                sys.executable,
                "-m",
                "routeyard",
                "build",
                "agent_demo",
                "--workspace",
                str(yard),
            ]

        killed = tmp_path / "killed"
        for _ in range(3):
            process = subprocess.Popen(
                command(killed), env=environment, start_new_session=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            want = acknowledged(killed) + draw.randint(20, 90)
            while process.poll() is None and acknowledged(killed) < want:
                time.sleep(0.005)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert acknowledged(killed) >= 60
        time.sleep(0.5)  # what lay in the socket when it was killed is still read
        lost = requests(url) - acknowledged(killed)
        done = subprocess.run(command(killed), env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        # What was in flight when it was killed is asked again; nothing that was acknowledged is.
        assert requests(url) - acknowledged(killed) == lost
        whole = tmp_path / "whole"
        done = subprocess.run(command(whole), env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    one, other = (yard / "releases" / "agent_demo" / "1.0.0" for yard in (killed, whole))
    assert contents(one) == contents(other)
    assert "steps" in contents(one)
    assert run(["verify", str(one)]) == 0
    with sqlite3.connect(killed / "ledger" / "ledger.sqlite") as connection:
        twice = connection.execute(
            "SELECT request_hash, sample, count(*) FROM attempts WHERE status <> 'error' "
            "GROUP BY 1, 2 HAVING count(*) > 1"
        ).fetchall()
    assert twice == []
    with open_release(one) as release:
        steps, responses = (
            release.arrow("steps").to_pylist(),
            release.arrow("responses").to_pylist(),
        )
    by_answer: dict[tuple[str, str], list[dict]] = {}
    for step in steps:
        by_answer.setdefault((step["query_id"], step["model_id"]), []).append(step)
    assert len(responses) == 480
    for row in responses:
        mine = by_answer[row["query_id"], row["model_id"]]
        assert row["cost_usd"] == pytest.approx(sum(step["cost_usd"] for step in mine))
        assert row["prompt_tokens"] == sum(step["prompt_tokens"] for step in mine)
    relayed = {s["acted_by"] for s in steps if s["model_id"] == "over-after-1" and s["step"] > 0}
    assert relayed == {"sim-ibis"}


def test_no_question_can_be_answered_from_one_passage() -> None:
    made = hops()
    assert len({row["question"] for row in made}) == len(made) == 120
    for row in made:
        first, second = ("".join(part) for part in row["context"]["sentences"])
        assert row["answer"] in second
        assert row["answer"] not in first
        assert row["bridge"] in first
        assert row["bridge"] not in row["question"]


def test_a_simulated_agent_knows_only_what_it_found() -> None:
    row = {"question": "Where?", "references": ["Lissa"], "bridge": "Ada Orn"}
    asked = [{"role": "user", "content": "Where?"}]
    for seed in range(20):
        query, answer = act("m", row, asked, seed)
        assert (query, answer) == ("Where?", None)
        lost = [*asked, *({"role": "tool", "content": "No passage was found."} for _ in range(3))]
        assert act("m", row, lost, seed) == (None, "I do not know")
