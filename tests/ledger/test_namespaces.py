"""Two builds in pid namespaces of their own, as two containers with one host name are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.calls.loopback import Do, Loopback, answer, completion

QUESTIONS = 100
#: Calls of one model at a time: so many a build has on their way.
CONCURRENCY = 4
RECIPE: dict[str, Any] = {
    "name": "twice",
    "version": "1.0.0",
    "sources": [
        {
            "name": "sums",
            "path": "questions.jsonl",
            "scorer": "numeric",
            "license": "CC0-1.0",
            "fields": {"id": "id", "question": "question", "references": "answer"},
        }
    ],
    "pool": {
        "models": [
            {"model_id": name, "price_in": 1.0, "price_out": 1.0, "price_date": "2026-01-01"}
            for name in ("m0", "m1", "m2")
        ]
    },
    "collect": {"max_tokens": 64, "limits": {"concurrency": CONCURRENCY}},
    "release": {"license": "CC0-1.0"},
}


def apart_words() -> list[str]:
    """The words that run a command in a pid namespace of its own; skips where none can be."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("util-linux's `unshare` is not installed: no pid namespaces to build in")
    words = [unshare, *([] if os.geteuid() == 0 else ["-U", "-r"]), "-p", "-f", "--mount-proc"]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no pid namespace can be made here: {tried.stderr.strip()}")
    return words


def slow(body: dict[str, Any], seen: int) -> Do:
    return answer(completion("Answer: 1", model=body["model"]), delay=0.6)


def recipe(folder: Path, server: Loopback) -> Path:
    folder.mkdir()
    rows = [{"id": str(i), "question": f"1 + {i}?", "answer": str(i + 1)} for i in range(QUESTIONS)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pool = RECIPE["pool"] | {"providers": [{"name": "p", "base_url": server.base_url}]}
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(RECIPE | {"pool": pool}))
    return path


def begin(words: list[str], folder: Path, path: Path, yard: Path, **env: str) -> Any:
    """A build in a pid namespace of its own, whose output is a file."""
    with (folder / f"{uuid.uuid4().hex}.txt").open("w") as said:
        return subprocess.Popen(
            [
                *words,
                *(sys.executable, "-m", "routeyard", "build", str(path)),
                *("--workspace", str(yard), "--until", "collect"),
            ],
            env={**os.environ, "PREFECT_LOGGING_LEVEL": "ERROR", **env},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def asked(server: Loopback, calls: int, build: Any) -> None:
    """Wait until the server had so many calls."""
    until = time.monotonic() + 90
    while server.requests < calls and time.monotonic() < until and build.poll() is None:
        time.sleep(0.05)


def two_containers(folder: Path, postgres: str | None) -> Counter[Any]:
    """How often the server had each call of two builds; 3 s lie between their beginnings."""
    words = apart_words()
    env, yards = {}, [folder / "yard"] * 2
    if postgres:
        env = {"ROUTEYARD_LEDGER": postgres, "ROUTEYARD_COLLECTORS": "2"}
        yards = [folder / "one", folder / "other"]
    with Loopback(slow) as server:
        path = recipe(folder / "recipe", server)
        builds = []
        for yard in yards:
            builds.append(begin(words, folder, path, yard, **env))
            asked(server, 20, builds[0])
        codes = [build.wait(240) for build in builds]
        said = "\n".join(one.read_text()[-2000:] for one in folder.glob("*.txt"))
        assert codes == [0, 0], said
        assert len(server.seen) == 3 * QUESTIONS
        return server.seen


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_containers_pay_once(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    # Each took the other's claims at once: 403 of 450 calls were paid for again, 440 with
    # PostgreSQL, and both builds exited 0.
    url = request.getfixturevalue("postgres") if kind == "postgres" else None
    seen = two_containers(tmp_path, url)
    twice = sum(times - 1 for times in seen.values())
    print(f"{kind}: {twice} of {len(seen)} calls paid twice")
    assert twice == 0
