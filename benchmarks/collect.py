"""Collection with its ledger against a bare default AsyncOpenAI loop without one.

Both ask the same loopback server (20 ms an answer) in turns; a ratio above 1 says
that collection is faster. Memory is the peak of a process that collects 10,000 and 200,000 answers.
`--realistic` asks 5,000 questions, 256 at once, of a server that takes 200 ms, refuses more than
1,000 in a second with `Retry-After` and fails one in 50; the ideal is the longer of what its rate
and what its time allow.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.loopback import serving

_PROMPT = "Question {i}: a train leaves at {i} o'clock with 42 people in it. " * 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=3000, help="calls per round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the median ratio counts")
    parser.add_argument("--concurrency", default="64,256", help="calls at once, commas between")
    parser.add_argument("--realistic", action="store_true", help="only the run with faults")
    parser.add_argument("--delay-ms", type=float, default=20.0, help="time the server takes")
    parser.add_argument(
        "--large",
        type=int,
        default=200_000,
        help="calls of the large memory run; 0 leaves memory out (its keys are null)",
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.realistic:
        return _realistic(arguments.rounds)
    figures: dict[str, Any] = {"calls": arguments.calls, "delay_ms": arguments.delay_ms}
    with serving(arguments.delay_ms) as url:
        for concurrency in map(int, arguments.concurrency.split(",")):
            figures |= _compare(url, arguments.calls, concurrency, arguments.rounds)
    figures |= {"rss_mb_10k": None, "rss_mb_200k": None}
    if arguments.large:
        with serving(0) as url:
            figures["rss_mb_10k"] = _memory(url, 10_000)
            figures["rss_mb_200k"] = _memory(url, arguments.large)
        figures["rss_large_calls"] = arguments.large
        figures["rss_ratio"] = round(figures["rss_mb_200k"] / figures["rss_mb_10k"], 3)
    return figures


def _realistic(
    rounds: int, *, calls: int = 5_000, at_once: int = 256, rate: int = 1_000, every: int = 50
) -> dict[str, Any]:
    """Seconds of a run with rate limits and errors, as a share of the ideal."""
    asked = calls * every / (every - 1)
    ideal = max(asked / rate, asked * 0.2 / at_once)
    runs = []
    for _ in range(rounds):
        with serving(200, rate, every) as url:
            runs.append(_collect(url, calls, at_once))
    seconds = statistics.median(calls / per_second for per_second, _ in runs)
    return {
        "calls": calls,
        "seconds": round(seconds, 2),
        "ideal_seconds": round(ideal, 2),
        "of_ideal": round(ideal / seconds, 3),
        "cpu_ms": round(statistics.median(cpu for _, cpu in runs), 3),
    }


def _compare(url: str, calls: int, concurrency: int, rounds: int) -> dict[str, Any]:
    bare, ours = [], []
    for _ in range(rounds):
        # In turns, so that a busy machine slows all.
        bare.append(_bare(url, calls, concurrency))
        ours.append(_collect(url, calls, concurrency))
    ratios = [o[0] / b[0] for b, o in zip(bare, ours, strict=True)]
    return {
        f"bare_calls_per_s_{concurrency}": round(statistics.median(b[0] for b in bare), 1),
        f"collect_calls_per_s_{concurrency}": round(statistics.median(o[0] for o in ours), 1),
        f"bare_cpu_ms_{concurrency}": round(statistics.median(b[1] for b in bare), 3),
        f"collect_cpu_ms_{concurrency}": round(statistics.median(o[1] for o in ours), 3),
        f"ratio_to_bare_client_{concurrency}": round(statistics.median(ratios), 3),
    }


def _bare(url: str, calls: int, concurrency: int) -> tuple[float, float]:
    """(calls per second, CPU milliseconds per call) of what people write first."""
    import openai

    async def loop() -> None:
        client = openai.AsyncOpenAI(base_url=url, api_key="none")
        places = asyncio.Semaphore(concurrency)

        async def one(i: int) -> str | None:
            async with places:
                done = await client.chat.completions.create(
                    model="m0",
                    messages=[{"role": "user", "content": _PROMPT.format(i=i)}],
                    max_tokens=256,
                    seed=0,
                )
                return done.choices[0].message.content

        texts = await asyncio.gather(*(one(i) for i in range(calls)))
        assert all(texts)
        await client.close()

    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(loop())
    return calls / (time.perf_counter() - wall), (time.process_time() - cpu) / calls * 1e3


def _collect(url: str, calls: int, concurrency: int) -> tuple[float, float]:
    """The same through plan, limits and ledger; done when the last answer is durable."""
    from routeyard.pipelines.collect.collect import collect
    from routeyard.pipelines.collect.sqlite import SqliteLedger

    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteLedger(Path(folder) / "ledger.sqlite") as ledger,
    ):
        wall, cpu = time.perf_counter(), time.process_time()
        collected = collect(_plan(url, calls, 1, concurrency, ledger), ledger)
        result = calls / (time.perf_counter() - wall), (time.process_time() - cpu) / calls * 1e3
        assert collected.complete
        return result


def _plan(url: str, queries: int, models: int, concurrency: int, ledger: Any) -> Any:
    import pyarrow as pa

    from routeyard.pipelines.collect.plan import plan
    from routeyard.schemas.recipe.collect import Collect, RateLimits
    from routeyard.schemas.recipe.pool import Model, Pool, Provider

    table = pa.table(
        {
            "query_id": [f"q{i}" for i in range(queries)],
            "task": ["t"] * queries,
            "prompt": [_PROMPT.format(i=i) for i in range(queries)],
        }
    )
    pool = Pool(
        models=[Model(model_id=f"m{i}") for i in range(models)],
        providers=[Provider(name="loopback", base_url=url)],
    )
    settings = Collect(max_tokens=256, limits=RateLimits(concurrency=concurrency))
    return plan(table, pool, settings, ledger)


def _memory(url: str, calls: int) -> float:
    """Peak resident MB of a process that collects so many answers from ten models."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.collect", url, str(calls)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def _collect_and_weigh(url: str, calls: int) -> None:
    from routeyard.pipelines.collect.collect import collect
    from routeyard.pipelines.collect.sqlite import SqliteLedger

    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteLedger(Path(folder) / "ledger.sqlite") as ledger,
    ):
        collected = collect(_plan(url, calls // 10, 10, 16, ledger), ledger)
        assert collected.complete
    print(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))


if __name__ == "__main__":
    _collect_and_weigh(sys.argv[1], int(sys.argv[2]))
