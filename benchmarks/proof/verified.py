"""What `verify` takes over a planted honest release of N labels, answers and verdicts.

`python -m benchmarks verified --labels 3000000 --json` writes a release as a build of recorded
answers would: questions with the ids of their content, 27 models whose answers state a number,
verdicts as the scorer files them, labels by the policy, tokens and prices, a split, the metering
audit and a certificate. Then it verifies the release in a separate process and prints CPU
seconds, those of processes it started included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.proof.honest import cpu_s
from benchmarks.release import _table

TASKS, PRICE_IN, PRICE_OUT = 20, 2.0, 6.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", type=int, default=3_000_000)
    parser.add_argument("--models", type=int, default=27)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")


def run(given: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="verified-", dir=given.folder) as folder:
        before = cpu_s()
        release = planted(Path(folder), given.labels // given.models, given.models)
        written = round(cpu_s() - before, 1)
        words = [sys.executable, "-m", "benchmarks.proof.verified", str(release)]
        found = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    return {
        "labels": given.labels,
        "written_cpu_s": written,
        **found,
        "exit": bool(found["findings"]),
    }


def planted(folder: Path, questions: int, models: int) -> Path:
    """The release: written twice, since audit and certificate are about what was written first."""
    from routeyard.datacards.card import render
    from routeyard.datacards.files import render as render_files
    from routeyard.pipelines.audit.metering import audit
    from routeyard.pipelines.common.matrix import core_of
    from routeyard.pipelines.evaluate.certificate import certify
    from routeyard.pipelines.release.build import write_release
    from routeyard.schemas import StoredTable
    from routeyard.schemas.recipe import Recipe

    recipe = Recipe.model_validate(_recipe(models))
    tables = _tables(questions, recipe)
    told = recipe.model_dump(mode="json")
    rows = questions * models
    source: dict[str, Any] = {"source": "bench", "files": [], "license": "NOASSERTION", "url": None}
    sources = [{**source, "redistribute_text": True, "queries": questions}]
    figures: dict[str, Any] = {
        "ingest": {"queries": questions, "removed": 0, "sources": sources, "notes": []},
        "pool": {"models": models},
        "collect": {"responses": rows},
        "label": {"labels": rows, "verdicts": rows, "undecided": 0},
        "curate": {"rules": []},
    }
    first = write_release(tables, recipe=told, root=folder / "first", render_card=render).path
    stored = {path.stem: StoredTable(path) for path in (first / "data").glob("*.parquet")}
    small = {name: stored[name].read() for name in ("models", "splits")}
    core = core_of({**small, **{name: stored[name] for name in ("queries", "outcomes")}})
    certificate = certify(core, resamples=1000, routers=()).to_json()
    found = audit(
        stored["responses"].read(), stored["models"].read(), recipe.collect.metering,
        queries=stored["queries"].read(["query_id", "prompt"]),
    )  # fmt: skip
    figures["audit"] = {"findings": [json.loads(json.dumps(vars_of(one))) for one in found]}
    figures["certify"] = {"certificate": certificate, "verdict": certificate["verdict"]}
    made = write_release(
        tables, recipe=told, root=folder, render_card=render, render_files=render_files,
        figures=figures, sources=sources, waivers=told["release"]["waivers"],
    )  # fmt: skip
    return made.path


def vars_of(finding: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(finding)


def _recipe(models: int) -> dict[str, Any]:
    return {
        "name": "bench",
        "version": "1.0.0",
        "sources": [
            {
                "name": "bench", "path": "questions.parquet", "scorer": "numeric", "domain": "math",
                "fields": {"question": "question", "references": "answer", "task": "task"},
            }
        ],
        "pool": {
            "models": [
                {
                    "model_id": f"model-{m:03d}", "price_in": PRICE_IN, "price_out": PRICE_OUT,
                    "price_date": "2026-01-01",
                }
                for m in range(models)
            ]
        },
        "collect": {
            "provider": "recorded",
            "recorded": [
                {"path": "answers.parquet", "fields": {"query": "q", "model": "m", "text": "text"}}
            ],
        },
        "release": {
            "title": "Planted", "description": "Planted answers.", "license": "CC0-1.0",
            "waivers": [{"gate": "metering", "reason": "The answers are planted."}],
        },
    }  # fmt: skip


def _tables(questions: int, recipe: Any) -> dict[str, Any]:
    from routeyard.pipelines.common.pool import models_table
    from routeyard.pipelines.curate.split import split
    from routeyard.pipelines.ingest.queries import query_id, uniform_prompt
    from routeyard.pipelines.label.scorers import SCORERS
    from routeyard.pipelines.release.database import Streamed
    from routeyard.schemas import QUERIES

    asks = [f"Question number {i}: what is the answer?" for i in range(questions)]
    order = sorted((query_id(ask, [], ["1"], 0), i) for i, ask in enumerate(asks))
    ids = pa.array([name for name, _ in order])
    instruction = SCORERS.get("numeric").instruction
    columns = {
        "query_id": ids,
        "source_id": pa.array([str(i) for _, i in order]),
        "question": pa.array([asks[i] for _, i in order]),
        "prompt": pa.array([uniform_prompt(asks[i], [], instruction) for _, i in order]),
        "task": pa.array([f"task{i % TASKS}" for _, i in order]),
        "source": "bench", "domain": "math", "scorer": "numeric", "metadata": "{}",
        "choices": [], "references": ["1"],
    }  # fmt: skip
    queries = _table(QUERIES, columns, questions)
    hard = 0.5 + np.random.default_rng(0).random(questions)
    skills = np.linspace(0.3, 0.9, len(recipe.pool.models))
    read = _read(queries.slice(0, 1))

    def parts(make: Callable[..., pa.Table]) -> Any:
        names = [one.model_id for one in recipe.pool.models]
        return Streamed(
            lambda: (make(ids, name, m, skills[m] * hard) for m, name in enumerate(names))
        )

    return {
        "queries": queries,
        "models": models_table(recipe.pool),
        "responses": parts(_responses),
        "verdicts": parts(partial(_verdicts, read=read)),
        "labels": parts(_labels),
        "splits": split(queries, None, **recipe.split.model_dump()),
    }


def _right(number: int, chance: Any) -> Any:
    return np.random.default_rng((1, number)).random(len(chance)) < chance


def _text(right: Any) -> pa.Array:
    return pa.array(np.where(right, "The answer is 1.", "The answer is 2."))


def _read(queries: pa.Table) -> Mapping[bool, Mapping[str, Any]]:
    """Columns of the verdict on a right and on a wrong answer, as the scorer files them."""
    from routeyard.pipelines.label.rules import file_verdicts

    ids = queries.column("query_id").combine_chunks()
    return {
        right: file_verdicts(
            queries, _responses(ids, "m", 0, np.full(1, 2.0 if right else -1.0))
        ).to_pylist()[0]
        for right in (True, False)
    }


def _responses(ids: pa.Array, name: str, number: int, chance: Any) -> pa.Table:
    from routeyard.schemas import RESPONSES

    random, size = np.random.default_rng((2, number)), len(ids)
    prompt, completion = random.integers(30, 40, size), random.integers(5, 9, size)
    columns = {
        "query_id": ids, "model_id": name, "sample": 0, "status": "ok", "attempts": 1,
        "text": _text(_right(number, chance)),
        "prompt_tokens": prompt, "completion_tokens": completion,
        "cost_usd": (prompt * PRICE_IN + completion * PRICE_OUT) / 1e6,
        "cost_source": "price_table", "latency_s": 1 + random.random(size),
    }  # fmt: skip
    return _table(RESPONSES, columns, size)


def _verdicts(ids: pa.Array, name: str, number: int, chance: Any, *, read: Any) -> pa.Table:
    from routeyard.schemas import VERDICTS

    right = pa.array(_right(number, chance))
    columns: dict[str, Any] = {"query_id": ids, "model_id": name, "sample": 0}
    for column in VERDICTS.columns:
        if column.name not in columns:
            yes, no = (pa.scalar(read[k][column.name], type=column.type) for k in (True, False))
            columns[column.name] = yes if yes.equals(no) else pc.if_else(right, yes, no)
    return _table(VERDICTS, columns, len(ids))


def _labels(ids: pa.Array, name: str, number: int, chance: Any) -> pa.Table:
    from routeyard.schemas import LABELS

    right = _right(number, chance)
    columns = {
        "query_id": ids, "model_id": name, "score": right.astype(float), "correct": right,
        "decided_by": "numeric", "contested": False, "n_samples": 1,
    }  # fmt: skip
    return _table(LABELS, columns, len(ids))


def main() -> None:
    """Verify one release; its figures as JSON."""
    from routeyard.flows.publish import check_release

    found = check_release(sys.argv[1])
    lists = {kind: getattr(found, kind) for kind in ("proved", "consistent", "believed")}
    told = {"rows": found.rows, **lists, "findings": list(map(str, found.findings))}
    print(json.dumps({"verify_cpu_s": round(cpu_s(), 1), **told}))


if __name__ == "__main__":
    main()
