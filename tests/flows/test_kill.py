"""A build that is killed at any moment goes on, and nothing acknowledged is asked again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from routeyard.flows.demo.server import running

ROOT = Path(__file__).parents[2]
# This server outlives the kills and fails a question only at first, so a build that goes on
# after a kill may meet fewer faults; `routeyard demo` starts its own and meets the same ones.
MEASURED = {"requested_at", "latency_s", "ttft_s", "attempts"}


def counts(url: str) -> Mapping[str, Mapping[str, int]]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts") as answer:
        return json.load(answer)["asked"]


def acknowledged(yard: Path) -> set[tuple[str, str]]:
    """(model, question id in the bank) of every answer in the ledger."""
    ledger = yard / "ledger" / "ledger.sqlite"
    if not ledger.is_file():
        return set()
    queries = next((yard / "stages" / "ingest").glob("[!.]*/queries.parquet"))
    table = pq.read_table(queries, columns=["query_id", "source_id"])
    names = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    with sqlite3.connect(ledger) as connection:
        rows = connection.execute(
            "SELECT model_id, query_id FROM attempts WHERE status <> 'error'"
        ).fetchall()
    return {(model, names[query]) for model, query in rows}


def asked(found: Mapping[str, Mapping[str, int]], pair: tuple[str, str]) -> int:
    model, question = pair
    return sum(n for key, n in found[model].items() if key.rpartition("#")[0] == question)


def tables(release: Path) -> dict[str, object]:
    found = {}
    for path in sorted((release / "data").glob("*.parquet")):
        table = pq.read_table(path)
        kept = [name for name in table.column_names if name not in MEASURED]
        found[path.stem] = table.select(kept).to_pylist()
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [3, 10])
def test_kill_9_loses_nothing_and_repeats_nothing(
    tmp_path: Path, demo_yard: Path, demo_release: Path, kills: int
) -> None:
    yard = tmp_path / "yard"
    if kills < 10:  # embedding anew takes most of the time, and is killed in the slow run
        shutil.copytree(demo_yard / "cache", yard / "cache")
    moments = random.Random(kills)
    command = [sys.executable, "-m", "routeyard", "demo", "--workspace", str(yard)]
    with running() as url:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "ROUTEYARD_DEMO_URL": url}
        for _ in range(kills):
            process = subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            time.sleep(moments.uniform(1.5, 9.0))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kept, before = acknowledged(yard), counts(url)
            settled = {pair: asked(before, pair) for pair in kept}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        after = counts(url)
    again = {pair for pair, n in settled.items() if asked(after, pair) > n}
    assert again == set()
    assert tables(yard / "releases" / "demo" / "1.0.0") == tables(demo_release)
