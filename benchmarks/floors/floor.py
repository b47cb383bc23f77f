"""The least that the same work takes: minimal scripts of pandas, DuckDB, numpy and aiohttp.

`python -m benchmarks.floors.floor NAME ARGUMENTS` runs one and prints nothing, or JSON where
it measures itself. They check nothing, keep no history and write one file: what remains of a
build, a check or a page when everything but its core is left out.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def build_mmlu_pro(out: str) -> None:
    """Read answers, take the last option letter, compare, write labels."""
    import pandas as pd

    found = pd.read_parquet(
        Path(os.environ["ROUTEYARD_DATA"]) / "mmlu_pro" / "responses.parquet",
        columns=["question_id", "model", "output", "answer_in_run"],
    )
    read = found.output.astype(str).str.extract(r"answer is \(?([A-J])\)?", flags=re.I)[0]
    found["correct"] = read.str.upper() == found.answer_in_run.astype(str)
    found[["question_id", "model", "correct"]].to_parquet(out)


def build_zeroeval_gsm(out: str) -> None:
    """Read answers, take the last number, compare with the key, write labels."""
    import pandas as pd

    folder = Path(os.environ["ROUTEYARD_DATA"]) / "zeroeval_gsm"
    answers = pd.read_parquet(folder / "responses.parquet")
    questions = pd.read_parquet(folder / "queries.parquet", columns=["query_id", "gold_answer"])
    both = answers.merge(questions, on="query_id")
    number = re.compile(r"-?\d[\d,]*\.?\d*")

    def last(text: str) -> str:
        found = number.findall(text)
        return found[-1].replace(",", "").rstrip(".") if found else ""

    both["correct"] = both.output.astype(str).map(last) == both.gold_answer.astype(str).map(last)
    both[["query_id", "model", "correct"]].to_parquet(out)


def evaluate(release: str, out: str) -> None:
    """Accuracies of every model and of the best on train, with 10,000 paired resamples."""
    import duckdb

    wide = duckdb.execute(
        f"PIVOT (SELECT query_id, model_id, score FROM '{release}/data/labels.parquet') "
        "ON model_id USING first(score) GROUP BY query_id ORDER BY query_id"
    ).df()
    scores = wide.iloc[:, 1:].to_numpy(dtype=float)
    rng = np.random.default_rng(0)
    test = rng.random(len(scores)) < 0.2
    best = int(np.nanargmax(np.nanmean(scores[~test], axis=0)))
    held = np.nan_to_num(scores[test])
    columns = np.column_stack([held, held[:, best], held.max(axis=1)])
    drawn = [
        np.bincount(rng.integers(0, len(held), len(held)), minlength=len(held)) @ columns
        for _ in range(10_000)
    ]
    interval = np.quantile(np.array(drawn) / len(held), [0.025, 0.975], axis=0)
    Path(out).write_text(json.dumps({"mean": columns.mean(axis=0).tolist(),
                                     "interval": interval.tolist()}))  # fmt: skip


def site(release: str, out: str) -> None:
    """Questions with every model's score, as JSON in one page."""
    import duckdb

    rows = duckdb.execute(
        f"SELECT q.query_id, any_value(q.task) AS task, any_value(q.prompt[:200]) AS prompt, "
        f"list(l.score ORDER BY l.model_id) AS scores FROM '{release}/data/queries.parquet' q "
        f"JOIN '{release}/data/labels.parquet' l USING (query_id) GROUP BY 1 ORDER BY 1"
    ).df()
    Path(out).write_text(f"<script>{rows.to_json(orient='split')}</script>")


def verify(release: str, out: str) -> None:
    """SHA-256 of every file, and labels against verdicts by one join."""
    import duckdb

    for path in sorted(Path(release).rglob("*")):
        if path.is_file():
            hashlib.sha256(path.read_bytes()).digest()
    data = f"{release}/data"
    differs = duckdb.execute(
        f"SELECT count(*) FROM '{data}/labels.parquet' l JOIN '{data}/verdicts.parquet' v "
        "USING (query_id, model_id) WHERE l.correct IS DISTINCT FROM (v.outcome = 'correct') "
        "AND v.outcome IN ('correct', 'incorrect')"
    ).fetchall()
    Path(out).write_text(str(differs))


def calls(at_once: int, number: int = 3000) -> None:
    """POST the same bodies by aiohttp and read the replies; prints CPU-ms a call."""
    import aiohttp

    from benchmarks.loopback import serving

    async def ask(url: str) -> None:
        places = asyncio.Semaphore(at_once)
        connector = aiohttp.TCPConnector(limit=at_once)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one(i: int) -> None:
                content = f"Question {i}: a train leaves at {i} o'clock. " * 4
                body = {"model": "m0", "messages": [{"role": "user", "content": content}]}
                async with places, session.post(f"{url}/chat/completions", json=body) as reply:
                    assert (await reply.json())["choices"]

            await asyncio.gather(*(one(i) for i in range(number)))

    with serving(20.0) as url:
        started = time.process_time()
        asyncio.run(ask(url))
        taken = time.process_time() - started
    print(json.dumps({"seconds": round(taken / number * 1e3, 3)}))


def imports_of_prefect() -> None:
    """Seconds that `routeyard status` spends on importing Prefect, without an API."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_API")}
    words = [sys.executable, "-X", "importtime", "-m", "routeyard", "status", "demo"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    taken = re.findall(r"\| +(\d+) \|\s+prefect$", done.stderr, re.M)
    print(json.dumps({"seconds": sum(map(int, taken)) / 1e6}))


def main() -> None:
    name, *given = sys.argv[1:]
    if name.startswith("calls_"):
        calls(int(name.removeprefix("calls_")))
    else:
        globals()[name](*given)


if __name__ == "__main__":
    main()
