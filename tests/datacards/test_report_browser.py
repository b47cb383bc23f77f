"""The report in a real browser: curves toggle, a question is found, nothing is requested."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_report import page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--remote-debugging-port=0 --window-size=1180,2400"
).split()

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")


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
