"""A gateway's log of many steps: seconds and memory of import, audit and replay of ten policies.

The log is written in a provider's own shape of request and response, one call per line, before the
clock starts.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np

ARMS = ("large", "medium", "small")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)


def run(arguments: Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        write_log(path, arguments.steps, arguments.seed)
        return measured(path)


def measured(path: Path) -> dict[str, Any]:
    from routeyard.extensions.traffic.outcome import policy_costs
    from routeyard.extensions.traffic.replay import audit_steps, policy_arms, trajectories_of
    from routeyard.pipelines.common.trajectories import ArmPrice
    from routeyard.pipelines.ingest.logs import read_log

    found: dict[str, Any] = {"log bytes": path.stat().st_size}
    clock = time.process_time()

    def lap(name: str) -> None:
        nonlocal clock
        now = time.process_time()
        found[f"{name} CPU s"] = round(now - clock, 2)
        clock = now

    log = read_log(path)
    lap("import")
    found["findings"] = len(audit_steps(log.steps))
    lap("audit")
    prices = {
        "large": ArmPrice(5, 25, 0.5, 6.25, "anthropic"),
        "medium": ArmPrice(1, 5, 0.1, None, "openai"),
        "small": ArmPrice(0.2, 1, 0.02, None, "deepseek"),
    }
    steps = trajectories_of(log.steps)
    texts = [
        "recorded", *(f"always:{arm}" for arm in ARMS),
        *(f"first:{n}:large:small" for n in (1, 3, 5)), "first:3:large:medium",
        "every:2:large:small", "every:4:large:medium",
    ]  # fmt: skip
    policies = {text: policy_arms(text, steps, ARMS) for text in texts}
    costs = policy_costs(steps, policies, prices, ARMS)
    lap("replay of ten policies")
    found["steps"] = len(steps)
    found["CPU s"] = round(sum(value for name, value in found.items() if name.endswith("CPU s")), 2)
    found["peak GB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
    found["USD"] = {one.policy: one.usd for one in costs}
    return found


def write_log(path: Path, steps: int, seed: int) -> None:
    """Trajectories of about 20 steps whose prompts grow, each served by one or two arms."""
    generator = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8") as out:
        written = trajectory = 0
        while written < steps:
            length = min(int(generator.integers(5, 36)), steps - written)
            prompt = 800 + generator.integers(50, 900, length).cumsum()
            at = 1.76e9 + trajectory * 40 + generator.exponential(45, length).cumsum()
            arms = generator.integers(0, 3, length) if trajectory % 2 else np.full(length, 0)
            last: dict[int, int] = {}
            for step in range(length):
                arm, tokens = int(arms[step]), int(prompt[step])
                usage = {
                    "prompt_tokens": tokens,
                    "completion_tokens": int(60 + 17 * (step % 9)),
                    "prompt_tokens_details": {"cached_tokens": last.get(arm, 0) // 128 * 128},
                }
                last[arm] = tokens
                record = {
                    "id": f"call-{written}", "session_id": f"s{trajectory}",
                    "task": f"t{trajectory // 2}", "timestamp": round(float(at[step]), 3),
                    "latency_ms": 900 + 40 * step,
                    "request": {"model": ARMS[arm], "temperature": 0},
                    "response": {"model": ARMS[arm], "usage": usage},
                    "outcome": trajectory % 3 != 0,
                }  # fmt: skip
                out.write(json.dumps(record) + "\n")
                written += 1
            trajectory += 1
