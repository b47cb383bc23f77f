"""Several collectors: every pair asked once, limits kept in sum."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.demo.answers import write
from routeyard.flows.demo.server import running
from routeyard.flows.ledgers import collectors, open_ledger, part, share
from routeyard.pipelines.collect.postgres import take_slot
from routeyard.pipelines.common.errors import BadInput
from routeyard.schemas.recipe import Collect, Pool
from routeyard.schemas.recipe.collect import RateLimits

ROOT = Path(__file__).resolve().parents[2]


def test_shares_add_up_to_no_more_than_the_limit():
    limits = RateLimits(concurrency=10, requests_per_minute=60, tokens_per_minute=900)
    third = part(limits, 3)
    assert (third.concurrency, third.requests_per_minute, third.tokens_per_minute) == (3, 20, 300)
    with pytest.raises(BadInput, match="cannot be shared by 11"):
        part(limits, 11)


def test_one_collector_has_everything():
    pool, collect = Pool(), Collect()
    assert share(pool, collect, 1) == (pool, collect)


def test_the_number_of_collectors_is_checked(monkeypatch):
    monkeypatch.delenv("ROUTEYARD_COLLECTORS", raising=False)
    assert collectors() == 1
    for bad in ("0", "-1", "many", "1e3", ""):
        monkeypatch.setenv("ROUTEYARD_COLLECTORS", bad)
        with pytest.raises(BadInput):
            collectors()


def test_a_ledger_address_that_is_no_database_is_refused_unseen(monkeypatch, tmp_path):
    monkeypatch.setenv("ROUTEYARD_LEDGER", "mysql://me:hunter2@host/db")
    with pytest.raises(BadInput) as caught, open_ledger(tmp_path):
        pass
    assert "hunter2" not in str(caught.value)


def test_there_are_as_many_seats_as_said(postgres):
    with take_slot(postgres, 2) as first, take_slot(postgres, 2) as second:
        assert {first, second} == {0, 1}
        with pytest.raises(BadInput, match="all 2 collectors"), take_slot(postgres, 2):
            pass
    with take_slot(postgres, 2):
        pass


RECIPE = """
name: shared
version: 1.0.0
sources:
  - name: bank
    path: {bank}
    scorer: numeric
    where: {{scorer: numeric}}
    fields: {{id: id, question: question, references: references}}
pool:
  providers:
    - {{name: demo, base_url: {url}, limits: {{concurrency: 6, requests_per_minute: 1800}}}}
  models:
    - {{model_id: sim-tern-mini, provider: demo}}
    - {{model_id: sim-nimble-small, provider: demo}}
"""


def counts_of(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts") as got:
        return json.load(got)  # type: ignore[no-any-return]


def runs(ledger: str) -> int:
    """Collectors whose answers are in the ledger."""
    import psycopg

    with psycopg.connect(ledger) as connection:
        row = connection.execute("SELECT count(DISTINCT run) FROM attempts").fetchone()
    return int(row[0])


@pytest.mark.slow
def test_two_collectors_with_workspaces_of_their_own_ask_every_pair_once(postgres, tmp_path):
    # Two hosts: nothing is shared but the database and the provider.
    bank = write(tmp_path / "bank.jsonl")
    with running(latency=4) as url:
        recipe = tmp_path / "shared.yaml"
        recipe.write_text(RECIPE.format(bank=bank, url=url))
        environment = {
            **os.environ,
            "ROUTEYARD_LEDGER": postgres,
            "ROUTEYARD_COLLECTORS": "2",
        }
        command = [sys.executable, "-m", "routeyard", "build", str(recipe), "--until", "collect"]
        both = [
            subprocess.Popen(
                [*command, "--workspace", str(tmp_path / name)],
                cwd=ROOT,
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
            for name in ("one", "two")
        ]
        asked = [(time.monotonic(), time.monotonic(), 0)]
        while any(process.poll() is None for process in both):
            time.sleep(0.2)
            looked = time.monotonic()
            calls = sum(n for model in counts_of(url)["asked"].values() for n in model.values())
            asked.append((looked, time.monotonic(), calls))
        said = [process.communicate(timeout=600)[1] for process in both]
        assert [process.returncode for process in both] == [0, 0], said
        counts = counts_of(url)
    answered = [n for model in counts["answered"].values() for n in model.values()]
    assert set(answered) == {1}
    assert len(answered) > 400  # more than one collector claims ahead
    # At most six calls at once in sum, three for each.
    assert counts["most_at_once"] <= 6
    # 1,800 a minute in sum: over any time 30 a second, and the second each may catch up.
    for i, (began, _, before) in enumerate(asked):
        for _, ended, after in asked[i + 1 :]:
            assert after - before <= 30 * (ended - began + 1) + 2
    assert runs(postgres) == 2  # both took part
    tables = [list((tmp_path / name).glob("stages/collect/*")) for name in ("one", "two")]
    assert [path.name for path in tables[0]] == [path.name for path in tables[1]]
