"""Shards change who works on what, never what comes out: collection and embedding."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.build import build
from routeyard.flows.demo import answers as bank
from routeyard.flows.demo.server import running
from routeyard.flows.ledgers import part, sharers
from routeyard.flows.tracking import start
from routeyard.pipelines.collect.plan import cuts
from routeyard.pipelines.common import encoders
from routeyard.pipelines.common import encoders as embed
from routeyard.pipelines.common.errors import BudgetReached
from routeyard.schemas.recipe import Collect, Pool
from routeyard.schemas.recipe.collect import RateLimits
from routeyard.schemas.recipe.pool import Model, Provider
from tests.calls.loopback import Loopback
from tests.calls.test_budget import Billing
from tests.flows.test_sharing import RECIPE

ROOT = Path(__file__).parents[2]


def test_ranges_cover_everything_once():
    for rows in (0, 1, 7, 64):
        for shards in (1, 2, 3, 100):
            ranges = cuts(rows, shards)
            assert [row for start, stop in ranges for row in range(start, stop)] == [*range(rows)]
            assert len(ranges) == min(rows, shards)


@pytest.mark.parametrize("limit", [1, 2, 5, 7, 64, 1024])
@pytest.mark.parametrize("at_once", [1, 2, 3, 8])
def test_as_many_shards_as_a_prefect_limit_admits_keep_every_limit(limit, at_once):
    limits = RateLimits(concurrency=limit, requests_per_minute=600)
    pool = Pool(
        models=[Model(model_id="m", provider="p", limits=RateLimits(concurrency=64))],
        providers=[Provider(name="p", base_url="http://h/v1", limits=limits)],
    )
    count = sharers(pool, Collect(), 1, at_once)
    share = part(limits, count)
    # Each occupies its share of the limit's slots, so this many may ask at a time.
    admitted = limit // share.concurrency
    assert admitted * share.concurrency <= limit
    assert admitted * (share.requests_per_minute or 0) <= 600.0001
    assert admitted * part(RateLimits(concurrency=64), count).concurrency <= 64


# -- embedding ------------------------------------------------------------------


def questions(n):
    texts = [f"question {'x' * (i % 13)} {i}" for i in range(n)]
    ids = [f"q{i}" for i in range(n)]
    return pa.table(
        {"query_id": ids, "question": texts, "choices": pa.array([[]] * n, pa.list_(pa.string()))}
    )


@pytest.fixture
def encoder(monkeypatch):
    """An encoder whose vectors depend on their neighbours, as padded batches do."""
    calls = []

    def encode(texts):
        calls.append(len(texts))
        seed = hashlib.sha256("".join(texts).encode()).digest()[:4]
        vectors = np.random.default_rng(list(seed)).normal(size=(len(texts), 8))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32), [None] * len(texts)

    monkeypatch.setattr(encoders, "load", lambda *_: encode)
    monkeypatch.setattr(embed, "CHUNK", 4)
    return calls


def files(cache):
    return {path.name: path.read_bytes() for path in cache.rglob("*.parquet")}


def test_embedding_in_shards_makes_the_same_cache_to_the_bit(encoder, tmp_path):
    table = questions(50)
    whole = embed.embed(table, encoder="e", cache=tmp_path / "whole")
    assert len(files(tmp_path / "whole")) == 13
    for shards in (2, 3, 7, 20):
        cache = tmp_path / str(shards)
        texts = embed.lacking(table, encoder="e", cache=cache)
        made = [
            embed.fill(texts, encoder="e", cache=cache, shard=(k, shards))
            for k in reversed(range(1, shards + 1))
        ]
        assert sum(made) == 50
        encoder.clear()
        assert embed.embed(table, encoder="e", cache=cache).equals(whole)
        assert encoder == []
        assert files(cache) == files(tmp_path / "whole")


def test_a_killed_shard_goes_on_where_it_was(encoder, tmp_path):
    table = questions(50)
    whole = embed.embed(table, encoder="e", cache=tmp_path / "whole")
    cache = tmp_path / "cut"
    texts = embed.lacking(table, encoder="e", cache=cache)

    def kill(done, _):
        if done >= 8:
            raise KeyboardInterrupt

    embed.fill(texts, encoder="e", cache=cache, shard=(1, 2))
    with pytest.raises(KeyboardInterrupt):
        embed.fill(texts, encoder="e", cache=cache, shard=(2, 2), on_progress=kill)
    encoder.clear()
    # The shard that is tried again embeds what it had not written.
    assert embed.fill(texts, encoder="e", cache=cache, shard=(2, 2)) == 16
    assert embed.embed(table, encoder="e", cache=cache).equals(whole)
    # So does a whole run over a cache with holes in it.
    for path in sorted((cache / "e-float32").glob("*.parquet"))[::3]:
        path.unlink()
    assert embed.embed(table, encoder="e", cache=cache).equals(whole)
    assert files(cache) == files(tmp_path / "whole")


# -- collection -----------------------------------------------------------------


def recipe_for(folder, url, questions=None):
    path = folder / "shared.yaml"
    said = RECIPE.format(bank=bank.write(folder / "bank.jsonl"), url=url)
    if questions:
        said = said.replace("scorer: numeric\n", f"scorer: numeric\n    limit: {questions}\n", 1)
    # Here calls in flight are counted, not calls a minute.
    path.write_text(said.replace("requests_per_minute: 1800", "requests_per_minute: 9000"))
    return path


def counted(url):
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts") as got:
        counts = json.load(got)
    return counts, [n for model in counts["answered"].values() for n in model.values()]


def collect(recipe, yard, shards):
    given = {"recipe": str(recipe), "workspace": str(yard), "until": "collect", "jobs": 2}
    return start(build, **given, shards=shards)["stages"]["collect"]


def test_collection_in_shards_asks_every_pair_once_within_the_limit(tmp_path):
    # Without faults: a later run would meet none of those that an earlier one met.
    with running(latency=0.2, faults=0) as url:
        recipe = recipe_for(tmp_path, url, 60)
        sharded = collect(recipe, tmp_path / "three", 3)
        counts, answered = counted(url)
        assert set(answered) == {1}
        assert len(answered) == sharded["figures"]["responses"]
        # Six calls in flight in sum over two processes.
        assert 2 <= counts["most_at_once"] <= 6
        # The next run asks nothing, whatever the number of shards.
        again = collect(recipe, tmp_path / "three", 5)
        assert again["reused"]
        assert counted(url)[1] == answered
        # A single process gets the same answers: the same fingerprint.
        whole = collect(recipe, tmp_path / "one", 1)
    assert whole["fingerprint"] == sharded["fingerprint"] == again["fingerprint"]


def billed(server):
    return sum(server.usd.values())


@pytest.mark.slow
def test_shards_share_one_budget(tmp_path):
    # A bound was kept by one process once, and shards refused it; the ledger keeps it now.
    bill = Billing()
    rows = "".join(json.dumps({"q": f"question {i}", "a": "1"}) + "\n" for i in range(60))
    (tmp_path / "rows.jsonl").write_text(rows)
    recipe = tmp_path / "recipe.yaml"
    with Loopback(bill) as server:
        for usd, complete in ((1.0, False), (1000.0, True)):
            recipe.write_text(BUDGETED.format(url=server.base_url, usd=usd))
            given = {"recipe": str(recipe), "workspace": str(tmp_path / "yard"), "jobs": 2}
            for _ in range(1 if complete else 2):
                ends = nullcontext() if complete else pytest.raises(BudgetReached, match="budget")
                with ends:
                    start(build, **given, until="collect", shards=3)
            assert (billed(bill) > 1.0) is complete
        assert billed(bill) > 0.3


BUDGETED = """name: shared
version: "1.0.0"
sources:
  - {{name: one, path: rows.jsonl, scorer: em, fields: {{question: q, references: a}}}}
pool:
  providers: [{{name: p, base_url: "{url}"}}]
  models:
    - {{model_id: m0, provider: p, price_in: 100, price_out: 1000, price_date: "2026-01-01"}}
    - {{model_id: m1, provider: p, price_in: 100, price_out: 1000, price_date: "2026-01-01"}}
collect:
  max_tokens: 50
  budget: {{usd: {usd}, models: {{m1: 1000.0}}}}
  retry: {{attempts: 6, first_wait_s: 0.0}}
"""


@pytest.mark.slow
def test_killed_shards_go_on_where_they_were(tmp_path):
    with running(latency=1) as url:
        recipe = recipe_for(tmp_path, url)
        yard = tmp_path / "yard"
        words = ["build", str(recipe), "--workspace", str(yard), "--until", "collect"]
        process = subprocess.Popen(
            [sys.executable, "-m", "routeyard", *words, "--shards", "4"],
            cwd=ROOT,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + 120
        while len(counted(url)[1]) < 40 and time.monotonic() < until:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        before = len(counted(url)[1])
        done = collect(recipe, yard, 3)
        answered = counted(url)[1]
        whole = collect(recipe, tmp_path / "one", 1)
    assert 40 <= before < done["figures"]["responses"] == len(answered)
    # Only what was in flight at the kill is asked twice.
    assert sum(answered) - len(answered) <= 6
    assert done["fingerprint"] == whole["fingerprint"]
