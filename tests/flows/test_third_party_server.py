"""Agents against a server of tool calls that is not ours: llama.cpp's own, with SmolLM2.

The model is bad at it: it searches for sentences, and its answers are wrong. What has to hold is
the protocol: each call recorded and metered, the budget, the limits, and nothing asked twice.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows.build import run_build
from routeyard.flows.demo.real import source
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BudgetReached
from tests.flows.test_real_model import NEEDED, weights_at_hand

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not (all(find_spec(name) for name in NEEDED) and weights_at_hand()),
        reason="needs `pip install '.[real]'` and one `routeyard demo --real`",
    ),
]
#: USD; a step takes about 0.00003.
BUDGET = 0.0002


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """Base address of llama.cpp's server, whose log says what it was asked."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "model": source(), "model_alias": "smollm2", "chat_format": "chatml-function-calling",
        "host": "127.0.0.1", "port": port, "n_ctx": 2048, "n_threads": 1, "n_threads_batch": 1,
        "verbose": "false",
    }  # fmt: skip
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with log.open("ab") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "llama_cpp.server", *words], stdout=out, stderr=out
        )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                assert server.poll() is None, log.read_text(encoding="utf-8")[-2000:]
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(30)


def recipe(folder: Path, url: str, budget: float) -> str:
    text = (ROOT / "flows" / "recipes" / "agent_demo.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    content["sources"][0]["limit"] = 5
    content["pool"] = {
        "providers": [{"name": "llama", "base_url": url, "limits": {"concurrency": 1}}],
        "models": [
            {
                "model_id": "smollm2", "price_in": 0.074, "price_out": 0.22,
                "price_date": "2026-11-21", "context_window": 2048,
                # This server calls no tool unless it is told that it may.
                "parameters": {"temperature": 0.1, "tool_choice": "auto"},
            }
        ],
    }  # fmt: skip
    content["collect"]["agent"]["steps"] = 3
    content["collect"] |= {"max_tokens": 48, "budget": {"usd": budget}}
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def test_llama_cpps_own_server_keeps_the_protocol(tmp_path: Path) -> None:
    yard, log = tmp_path / "yard", tmp_path / "log"

    def build(url: str, budget: float) -> dict[str, Any]:
        return run_build(recipe(tmp_path, url, budget), str(yard), until="label")

    def asked() -> int:
        return log.read_text(encoding="utf-8").count("POST /v1/chat/completions")

    with serving(log) as url:
        with pytest.raises(BudgetReached):
            build(url, BUDGET)
        first = asked()
        with SqliteLedger(yard / "ledger" / "ledger.sqlite") as ledger:
            spent = sum(a.cost_usd or 0.0 for a in ledger.attempts(purpose="agent"))
        assert first >= 1
        assert spent <= BUDGET
        figures = build(url, 1.0)["stages"]["collect"]["figures"]
        assert figures["responses"] == 5
        # What the smaller budget paid for was not asked again.
        assert asked() == figures["steps"]
    # And with nobody there any more, all of it is found again.
    assert build(url, 1.0)["stages"]["collect"]["figures"] == figures
    (found,) = (yard / "stages" / "collect").glob("*/steps.parquet")
    steps = pq.read_table(found).to_pylist()
    assert len(steps) == figures["steps"]
    for step in steps:
        assert step["step"] < 3
        assert step["prompt_tokens"] > 100  # the tool and how to call it stand in the prompt
        assert step["cost_usd"] > 0
    searches = [step for step in steps if step["action"] == "search"]
    assert searches
    assert all(step["step"] < 2 and len(step["found"]) == len(step["queries"]) for step in searches)
    assert any(query for step in searches for query in step["queries"])
    # One at a time, as the provider's limit says.
    began = sorted((datetime.fromisoformat(str(s["requested_at"])), s["latency_s"]) for s in steps)
    for (start, took), (following, _) in pairwise(began):
        assert (following - start).total_seconds() > 0.9 * took
