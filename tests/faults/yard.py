"""A small benchmark with everything a build does, and what is asked of it after a fault.

24 sums for three models behind a counting server on loopback, a judge for what the rule cannot
read, twins for the near-duplicate rule, a certificate and a release. All of the server's answers
follow from the question, so whatever else a release says was invented.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.calls.loopback import Do, Loopback, answer, completion

ROOT = Path(__file__).parents[2]
STAGES = ("ingest", "pool", "collect", "label", "embed", "curate", "audit", "certify", "release")
#: Calls that a lane has at the server at most.
CONCURRENCY = 4
MODELS = ("m0", "m1", "m2")
_PROVIDER = {"name": "p", "base_url": "${ROUTEYARD_FAULTS_URL}"}
_PRICE = {"price_in": 1.0, "price_out": 2.0}
RECIPE: dict[str, Any] = {
    "name": "faults",
    "version": "1.0.0",
    "sources": [
        {
            "name": "sums",
            "path": "questions.jsonl",
            "scorer": "numeric",
            "license": "CC0-1.0",
            "fields": {"id": "id", "question": "question", "references": "answer", "task": "task"},
        }
    ],
    "pool": {
        "providers": [_PROVIDER],
        "models": [
            {"model_id": name, "price_date": "2026-01-01", "price_source": "made up"} | _PRICE
            for name in MODELS
        ],
    },
    "collect": {
        "max_tokens": 64,
        "deadline_s": 5.0,
        "limits": {"concurrency": CONCURRENCY},
        "retry": {"attempts": 2, "first_wait_s": 0.01},
    },
    "label": {
        "default": {"then": ["judge:j"]},
        "judges": [{"name": "j", "provider": _PROVIDER, "concurrency": CONCURRENCY} | _PRICE],
    },
    "curate": [{"rule": "dedup", "threshold": 0.999}],
    "split": {"train": 0.5, "validation": 0.25, "test": 0.25},
    "release": {
        "license": "CC0-1.0",
        "waivers": [{"gate": "metering", "reason": "A server for tests says the same of all."}],
    },
}


def write(folder: Path, change: Mapping[str, Any] | None = None, questions: int = 24) -> Path:
    """Questions and recipe in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "id": str(i),
            "question": f"What is {i} + {i + 1}?" if i % 12 else f"WHAT  is {i + 1} + {i + 2}?",
            "answer": str(2 * i + 1 if i % 12 else 2 * i + 3),
            "task": ("even", "odd")[i % 2],
        }
        for i in range(questions)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "questions.jsonl").write_text(text)
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(RECIPE | dict(change or {}), indent=1))  # JSON is YAML
    return path


def says(model: str, prompt: str) -> str:
    """What the pool answers: right, wrong, or in words that only a judge can read."""
    if model == "j":
        return "It says so. [[1]]"
    first, second = (int(n) for n in re.findall(r"(\d+) \+ (\d+)", prompt)[0])
    if (first + MODELS.index(model)) % 7 == 5:
        return "the sum of both"
    wrong = model != "m0" and first % (MODELS.index(model) + 2) == 1
    return f"Answer: {first + second + wrong}"


def behave(body: dict[str, Any], seen: int) -> Do:
    text = says(body["model"], body["messages"][-1]["content"])
    return answer(completion(text, model=body["model"]), delay=0.004)


class Builder:
    """A process that has imported what a build needs, and forks one at a time."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(Path(__file__).with_name("building.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["ready"]

    def run(self, *jobs: dict[str, Any]) -> list[dict[str, Any]]:
        """Run jobs beside each other; what became of each."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(jobs) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        self.process.kill()  # it holds nothing
        self.process.wait()


@dataclass
class Yard:
    """A workspace, its recipe and the server behind it."""

    folder: Path
    builder: Builder
    server: Loopback
    #: Stage → changes of files, seconds, CPU-seconds.
    took: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.folder / "recipe.yaml").is_file():
            write(self.folder)

    @property
    def workspace(self) -> Path:
        return self.folder / "yard"

    @property
    def release(self) -> Path:
        return self.workspace / "releases/faults/1.0.0"

    @property
    def ledger(self) -> Path:
        return self.workspace / "ledger/ledger.sqlite"

    @property
    def said(self) -> str:
        return (self.folder / "said.txt").read_text(errors="replace")

    def to_do(self, *words: str, **job: Any) -> dict[str, Any]:
        """A command (default: build) as a job."""
        command = list(words) or ["build", "recipe.yaml"]
        command = [str(self.folder / word) if word == "recipe.yaml" else word for word in command]
        given = {"still": True, "out": str(self.folder / "said.txt")} | job
        given["words"] = [*command, "--workspace", str(self.workspace)]
        given["env"] = {"ROUTEYARD_FAULTS_URL": self.server.base_url} | job.get("env", {})
        return given

    def run(self, *words: str, **job: Any) -> dict[str, Any]:
        """Run a command (default: build) in a fork."""
        (done,) = self.builder.run(self.to_do(*words, **job))
        return done

    def stopped(self, done: dict[str, Any]) -> bool:
        """Whether a run ended in an error of ours, told in words."""
        return done["code"] in (1, 2, 3) and "error:" in self.said and "Traceback" not in self.said

    def whole(self, **job: Any) -> dict[str, Any]:
        """Run a build that must succeed."""
        done = self.run(**job)
        assert done["code"] == 0, self.said[-3000:]
        return done

    # -- what is asked of it -----------------------------------------------------

    def kept(self) -> dict[tuple[str, str, str], str]:
        """(purpose, model, request) → text of every answer in the ledger."""
        if not self.ledger.is_file():
            return {}
        with sqlite3.connect(self.ledger) as connection:
            rows = connection.execute(
                "SELECT purpose, model_id, request_hash, text FROM attempts WHERE status <> 'error'"
            ).fetchall()
        connection.close()
        return {(purpose, model, request): text for purpose, model, request, text in rows}

    def paid_twice(self, *models: str) -> int:
        """How often the server was asked again what it had answered."""
        return sum(n - 1 for key, n in self.server.seen.items() if key[0] in (*models,))

    def invented(self) -> int:
        """Answers and labels of the release that do not follow from what the server said."""
        prompts = columns(self.release / "data/queries.parquet", "query_id", "prompt")
        wrong = 0
        for query, model, text in columns(
            self.release / "data/responses.parquet", "query_id", "model_id", "text"
        ):
            wrong += text != says(model, dict(prompts)[query])
        for query, model, correct in columns(
            self.release / "data/labels.parquet", "query_id", "model_id", "correct"
        ):
            prompt = dict(prompts)[query]
            first, second = (int(n) for n in re.findall(r"(\d+) \+ (\d+)", prompt)[0])
            text = says(model, prompt)
            wrong += correct != (text == f"Answer: {first + second}" or "sum" in text)
        return wrong

    def left_over(self) -> list[str]:
        """Half-written folders and files."""
        return sorted(
            str(path.relative_to(self.workspace))
            for path in self.workspace.rglob(".*")
            if not path.name.startswith(".cache")
        )


def columns(path: Path, *names: str) -> list[tuple[Any, ...]]:
    table = pq.read_table(path, columns=list(names))
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def bytes_of(release: Path) -> dict[str, str]:
    """File → SHA-256 of what is in it; the database is made anew by each build."""
    return {
        path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(release.rglob("*"))
        if path.is_file() and ".duckdb" not in path.name
    }
