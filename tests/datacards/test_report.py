"""The report: pure parts, and the page in a real browser."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datacards.report import report
from datacards.report_lookup import lookup
from datacards.report_plots import plot_all

NASTY = "</script><img src=x onerror=alert(1)> & \u2028 {{ 7*7 }}"


def release() -> dict[str, pa.Table]:
    ids, models = ["q1", "q2"], ["large", "small"]
    pairs = [(q, m) for q in ids for m in models]
    return {
        "queries": pa.table(
            {
                "query_id": ids,
                "task": ["sums", "words"],
                "prompt": ["What is 2+2?", NASTY],
                "references": [["4"], ["x"]],
            }
        ),
        "models": pa.table({"model_id": models}),
        "labels": pa.table(
            {
                "query_id": [q for q, _ in pairs],
                "model_id": [m for _, m in pairs],
                "score": pa.array([1.0, 0.0, None, 1.0]),
                "correct": pa.array([True, False, None, True]),
                "decided_by": pa.array(["numeric", "numeric", None, "numeric"]),
            }
        ),
        "responses": pa.table(
            {
                "query_id": [q for q, _ in pairs],
                "model_id": [m for _, m in pairs],
                "sample": pa.array([0] * 4, pa.int32()),
                "status": ["ok", "ok", "error", "ok"],
                "cost_usd": pa.array([0.002, 0.001, None, 0.001]),
                "text": pa.array(["The answer is 4", "5" * 9000, None, NASTY]),
            }
        ),
        "verdicts": pa.table(
            {
                "query_id": ["q1"],
                "model_id": ["large"],
                "sample": pa.array([0], pa.int32()),
                "scorer": ["numeric"],
                "outcome": ["correct"],
                "extracted": ["4"],
            }
        ),
    }


def page(**changes: Any) -> str:
    curve = {
        "router": ["knn", "knn", "oracle", "oracle"],
        "curve": ["deferral"] * 4,
        "measure": ["usd"] * 4,
        "x": [1.0, 2.0, 1.0, 2.0],
        "y": [0.5, 0.7, 0.6, 0.9],
        "low": pa.array([0.4, 0.6, None, None]),
        "high": pa.array([0.6, 0.8, None, None]),
    }
    metrics = {
        "router": ["knn"],
        "metric": ["accuracy"],
        "split": ["test"],
        "value": [0.7],
        "low": [0.6],
        "high": [0.8],
        "reason": pa.array([None], pa.string()),
    }
    parts: dict[str, Any] = {
        "metrics": pa.table(metrics),
        "curves": pa.table(curve),
        "comparisons": pa.table({"metric": ["accuracy"]}),
        "profiles": pa.table({"router": ["knn"], "model_id": ["large"], "share": [1.0]}),
        "ood": None,
        "ranking": [{"router": "knn", "value": 0.7, "best_place": 1, "worst_place": 1}],
        "facts": {"n_test": 2},
        "certificate": None,
        "lookup": lookup(release(), ["q1", "q2"]),
        **changes,
    }
    return report("Routers <b>on</b> demo", **parts)


def unpacked(text: str) -> dict[str, Any]:
    found = re.search(r'id="data">([^<]*)</script>', text)
    assert found
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found.group(1))))
    return content


def test_nothing_untrusted_stands_in_the_page_as_markup() -> None:
    text = page()
    # Model output and questions are inside the compressed data only.
    assert "onerror=alert" not in text
    assert "Routers &lt;b&gt;on" in text
    assert unpacked(text)["lookup"]["queries"][1]["text"] == NASTY


def test_nothing_is_requested_from_elsewhere() -> None:
    text = page()
    assert "default-src 'none'" in text
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a namespace, never fetched


def test_lookup_shows_missing_as_missing() -> None:
    cells = lookup(release(), ["q1", "q2"])["queries"][1]["cells"]
    # An undecided label of a failed call is neither wrong nor free.
    assert cells[0]["score"] is None
    assert cells[0]["cost"] is None
    assert cells[0]["status"] == "error"


def test_lookup_cuts_answers_to_their_budget_and_keeps_the_end() -> None:
    tables = release()
    found = lookup(tables, ["q1"], budget=200)
    cell = found["queries"][0]["cells"][1]
    assert found["excerpt"] == 100
    assert cell["cut"]
    assert len(cell["text"]) == 100


def test_the_same_evaluation_gives_the_same_bytes() -> None:
    assert page() == page()


def test_plots_are_deterministic(tmp_path: Path) -> None:
    curves = pa.table(
        {
            "router": ["knn"] * 3 + ["oracle"] * 3,
            "curve": ["tradeoff"] * 6,
            "measure": pa.array([None] * 6, pa.string()),
            "x": [0.0, 0.5, 1.0] * 2,
            "y": [0.5, 0.65, 0.7, 0.5, 0.8, 0.7],
            "low": pa.array([0.45, 0.6, 0.65, None, None, None]),
            "high": pa.array([0.55, 0.7, 0.75, None, None, None]),
        }
    )
    profiles = pa.table({"router": ["knn", "knn"], "model_id": ["a", "b"], "share": [0.4, 0.6]})
    ood = pa.table(
        {"router": ["knn"], "group": ["math"], "change": [-0.1], "low": [-0.2], "high": [0.0]}
    )
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files = plot_all(tmp_path / name, curves, profiles, ood, {"measures": []}, (0.5, 0.7))
        written.append({path.name: path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert set(written[0]) == {
        f"{name}.{kind}" for name in ("tradeoff", "selection", "ood") for kind in ("png", "svg")
    }


@pytest.mark.parametrize("missing", ["responses", "verdicts"])
def test_lookup_works_without_answers_or_verdicts(missing: str) -> None:
    tables = release()
    del tables[missing]
    assert lookup(tables, ["q1"])["queries"][0]["cells"][0]["score"] == 1.0


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0", "--window-size=1180,2400",
]  # fmt: skip


class Tab:
    """One page over the DevTools protocol."""

    def __init__(self, socket: Any):
        self.socket, self.asked, self.events = socket, 0, []

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.asked += 1
        await self.socket.send_json({"id": self.asked, "method": method, "params": params})
        while True:
            message = await asyncio.wait_for(self.socket.receive_json(), 60)
            if message.get("id") == self.asked:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    async def js(self, code: str) -> Any:
        done = await self.call("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[str]:
    profile = tmp_path / "profile"
    process = subprocess.Popen(
        [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    port = profile / "DevToolsActivePort"
    try:
        for _ in range(600):
            if port.is_file() and port.read_text().strip():
                break
            time.sleep(0.1)
        yield port.read_text().split()[0]
    finally:
        process.terminate()
        process.wait(20)


async def visit(port: str, file: Path, steps: Any) -> Any:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            pages = [p for p in await answer.json(content_type=None) if p["type"] == "page"]
        async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            for domain in ("Page", "Network", "Runtime", "Log"):
                await tab.call(f"{domain}.enable")
            await tab.call("Page.navigate", url=file.as_uri())
            for _ in range(300):
                if await tab.js("document.body?.dataset.ready === 'true'"):
                    break
                await asyncio.sleep(0.1)
            return await steps(tab)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_curves_toggle_and_a_question_is_found(browser: str, tmp_path: Path) -> None:
    facts = {
        "n_test": 2, "n_train": 3, "n_validation": 1, "n_models": 2, "scheme": "dense", "seed": 0,
        "resamples": 100, "clustered_by": None, "coverage": 1.0, "best_single": "large",
    }  # fmt: skip
    row = {
        "metric": "accuracy", "split": "test", "first": "knn", "second": "mlp", "difference": 0.1,
        "low": 0.05, "high": 0.15, "p": 0.01, "p_adjusted": 0.02, "significant": True,
    }  # fmt: skip
    file = tmp_path / "report.html"
    file.write_text(page(facts=facts, comparisons=pa.Table.from_pylist([row])), encoding="utf-8")

    async def steps(tab: Tab) -> None:
        curves = "document.querySelectorAll('#plot .curve').length"
        assert await tab.js("document.body.dataset.ready") == "true"
        assert await tab.js(curves) == 2
        await tab.js("document.querySelector('#legend [data-router=knn]').click()")
        assert await tab.js(curves) == 1
        assert await tab.js("document.querySelectorAll('#plot .band').length") == 0
        await tab.js("document.querySelector('#legend [data-router=knn]').click()")
        assert await tab.js(curves) == 2
        assert await tab.js("document.querySelectorAll('#plot .band').length") == 1
        await tab.js(
            "document.querySelector('#search').value = '2+2'; "
            "document.querySelector('#search').dispatchEvent(new Event('input'))"
        )
        assert await tab.js("document.querySelectorAll('#found button').length") == 1
        await tab.js("document.querySelector('#found button').click()")
        shown = await tab.js("document.querySelector('#question').textContent")
        for word in ("The answer is 4", "numeric: correct", "$0.002", "right", "wrong", "large"):
            assert word in shown
        # The other question is markup; it must be shown, not obeyed.
        await tab.js(
            "document.querySelector('#search').value = 'onerror'; "
            "document.querySelector('#search').dispatchEvent(new Event('input'))"
        )
        await tab.js("document.querySelector('#found button').click()")
        assert await tab.js("document.querySelectorAll('img').length") == 0
        assert "onerror=alert(1)" in await tab.js("document.querySelector('#question').textContent")
        picture = await tab.call("Page.captureScreenshot", captureBeyondViewport=True)
        folder = os.environ.get("ROUTEYARD_SCREENSHOTS")
        if folder:
            Path(folder, "report.png").write_bytes(base64.b64decode(picture["data"]))
        asked = [
            event["params"]["request"]["url"]
            for event in tab.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        assert asked == [file.as_uri()]
        wrong = [
            e for e in tab.events if e["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")
        ]
        assert wrong == []

    asyncio.run(visit(browser, file, steps))


def test_right_is_what_the_court_says_and_no_threshold_of_the_page() -> None:
    tables = release()
    columns = tables["labels"].to_pydict() | {"score": [0.7, 0.3, None, 1.0]}
    # By a recipe's threshold 0.7 can be wrong, and 0.3 right.
    tables["labels"] = pa.table(columns | {"correct": [False, True, None, True]})
    found = lookup(tables, ["q1"])["queries"][0]["cells"]
    assert [(cell["score"], cell["correct"]) for cell in found] == [(0.7, False), (0.3, True)]
    folder = Path(__file__).parents[2] / "datacards" / "templates"
    for page in ("report.js", "site/questions.js"):
        assert "score >=" not in (folder / page).read_text(encoding="utf-8"), page
