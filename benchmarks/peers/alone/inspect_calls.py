"""inspect_ai on a loopback server: URL CALLS CONCURRENCY → JSON; its log is part of the work."""

from __future__ import annotations

import json
import sys
import tempfile
import time

PROMPT = "Question {i}: a train leaves at {i} o'clock with 42 people in it. " * 4


def main(url: str, calls: int, concurrency: int) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import get_model
    from inspect_ai.solver import generate

    samples = [Sample(input=PROMPT.format(i=i)) for i in range(calls)]
    model = get_model("openai/m0", base_url=url, api_key="none", responses_api=False)
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        logs = eval(
            Task(dataset=MemoryDataset(samples), solver=generate()),
            model=model,
            max_connections=concurrency,
            max_samples=concurrency,
            max_tokens=256,
            display="none",
            log_dir=folder,
        )
        taken, used = time.perf_counter() - wall, time.process_time() - cpu
    assert logs[0].status == "success", logs[0].error
    print(json.dumps({"calls_per_s": calls / taken, "cpu_ms": used / calls * 1e3}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
