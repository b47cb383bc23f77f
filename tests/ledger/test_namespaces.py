"""Two processes in pid namespaces of their own, as two containers with one host name are."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.calls.loopback import Do, Loopback, answer, completion

ROOT = Path(__file__).parents[1]
QUESTIONS = 40
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


def recipe(folder: Path, server: Loopback) -> Path:
    folder.mkdir()
    rows = [{"id": str(i), "question": f"1 + {i}?", "answer": str(i + 1)} for i in range(QUESTIONS)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pool = RECIPE["pool"] | {"providers": [{"name": "p", "base_url": server.base_url}]}
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(RECIPE | {"pool": pool}))
    return path


def build(path: Path, yard: Path) -> list[str]:
    """What Python is given to build up to the answers."""
    words = ["-m", "routeyard", "build", str(path), "--workspace", str(yard)]
    return [*words, "--until", "collect"]


def begin(folder: Path, words: list[str], **env: str) -> Any:
    """A command of Python's in a pid namespace of its own, whose output is a file."""
    with (folder / f"{uuid.uuid4().hex}.txt").open("w") as said:
        return subprocess.Popen(
            [*apart_words(), sys.executable, *words],
            env={**os.environ, "PREFECT_LOGGING_LEVEL": "ERROR", **env},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def until(reached: Callable[[], bool], builds: list[Any]) -> None:
    """Wait for something that running builds do."""
    end = time.monotonic() + 200
    while not reached():
        assert time.monotonic() < end, "it did not happen in 200 s"
        assert all(build.poll() is None for build in builds), "a build ended before it"
        time.sleep(0.05)


def leases(folder: Path, postgres: str | None) -> int:
    """How many processes have written to the ledger that they are there."""
    if postgres:
        import psycopg

        with psycopg.connect(postgres) as server:
            (row,) = server.execute("SELECT count(*) FROM owners").fetchall()
    else:
        (path,) = (folder / "yard").rglob("ledger.sqlite")
        with contextlib.closing(sqlite3.connect(path)) as connection:
            (row,) = connection.execute("SELECT count(*) FROM owners").fetchall()
    return int(row[0])


def two_containers(folder: Path, postgres: str | None, *, whole: bool = False) -> Counter[Any]:
    """How often the server had each call of two processes, whole builds or what asks in them.

    Nothing is answered before the second process has seen the claims of the first.
    """
    env, yards = {}, [folder / "yard"] * 2
    if postgres:
        env = {"ROUTEYARD_LEDGER": postgres, "ROUTEYARD_COLLECTORS": "2"}
        yards = [folder / "one", folder / "other"]
    met = threading.Event()

    def behave(body: dict[str, Any], seen: int) -> Do:
        reply = completion("Answer: 1", model=body["model"])
        return answer(reply, held=lambda: not met.is_set())

    with Loopback(behave) as server:
        (folder / "yard").mkdir()
        if whole:
            path = recipe(folder / "recipe", server)
            commands = [build(path, yard) for yard in yards]
        else:
            ledger = postgres or str(folder / "yard" / "ledger.sqlite")
            words = [str(ROOT / "calls" / "collecting.py"), server.base_url, ledger]
            commands = [[*words, str(folder / "kept"), str(QUESTIONS), "3", str(CONCURRENCY)]] * 2
        builds = [begin(folder, commands[0], **env)]
        until(lambda: server.requests >= 3, builds)  # one of each model, to begin with
        builds.append(begin(folder, commands[1], **env))
        until(lambda: leases(folder, postgres) == 2, builds)
        time.sleep(2)  # who takes the claims of another asks at once
        met.set()
        codes = [one.wait(240) for one in builds]
        said = "\n".join(one.read_text()[-2000:] for one in folder.glob("*.txt"))
        assert codes == [0, 0], said
        assert len(server.seen) == 3 * QUESTIONS
        return server.seen


# That a process of another namespace is not taken for dead is the same code in both ledgers:
# tests/ledger/test_ledgers.py asks both.
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_two_containers_pay_once(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    # Each took the other's claims at once: 403 of 450 calls were paid for again, 440 with
    # PostgreSQL, and both builds exited 0.
    url = request.getfixturevalue("postgres") if kind == "postgres" else None
    seen = two_containers(tmp_path, url)
    twice = sum(times - 1 for times in seen.values())
    print(f"{kind}: {twice} of {len(seen)} calls paid twice")
    assert twice == 0
