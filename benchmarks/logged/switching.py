"""Cached tokens of a switching policy: what replay predicts, and what a real server then did.

Conversations are held with one quantisation of the small model behind its server and logged. Replay
predicts, from that log alone, the tokens that each policy reads from the caches; then the same
prompts are really sent to the models that the policy names, on a fresh server, and the server says
what it still held.
"""

from __future__ import annotations

import json
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

LARGE, SMALL = "smollm2-135m-q8_0", "smollm2-135m-q4_1"
POLICIES = (
    f"always:{LARGE}", f"every:2:{LARGE}:{SMALL}", f"first:2:{LARGE}:{SMALL}",
    f"first:4:{LARGE}:{SMALL}",
)  # fmt: skip
_TOPICS = (
    "rivers", "bread", "the moon", "trains", "chess", "bees", "glass", "winter", "maps", "violins",
)  # fmt: skip


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--conversations", type=int, default=6)
    parser.add_argument("--turns", type=int, default=6)


def run(arguments: Namespace) -> dict[str, Any]:
    """Policy → cached tokens predicted and reported, and their relative difference."""
    from routeyard.flows.demo.server import running
    from routeyard.pipelines.ingest.logs.read import read_log
    from routeyard.pipelines.trajectories.arrays import trajectories_of
    from routeyard.pipelines.trajectories.caches import ArmPrice
    from routeyard.pipelines.trajectories.policies import policy_arms
    from routeyard.pipelines.trajectories.replay import replay

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with running("real", folder=folder) as url:
            _hold(url, log, arguments.conversations, arguments.turns)
        recorded = read_log(log).steps
        steps = trajectories_of(recorded)
        names = (LARGE, SMALL)
        prices = {name: ArmPrice(1.0, 1.0, 0.1, None, "routeyard_real") for name in names}
        found = {}
        for text in POLICIES:
            arms = policy_arms(text, steps, names, recorded)
            predicted = replay(steps, arms, prices, names)
            chosen = np.empty(len(steps), np.int64)
            chosen[steps.order] = arms
            with running("real", folder=folder) as url:
                did = _sent(url, log, recorded, [names[k] for k in chosen])
            least = int(predicted.read_least.sum())
            found[text] = {
                "predicted": least,
                "at most": int(predicted.read_most.sum()),
                "server": did,
                "differs": round(abs(least - did) / max(did, 1), 4),
            }
        return found


def _hold(url: str, log: Path, conversations: int, turns: int) -> None:
    """Conversations with one model, logged with messages and usage."""
    with log.open("w", encoding="utf-8") as out:
        for k in range(conversations):
            messages = [{"role": "system", "content": f"You talk about {_TOPICS[k % 10]}. " * 8}]
            for turn in range(turns):
                asked = f"Question {turn + 1}: tell me one more thing about {_TOPICS[k % 10]}."
                messages.append({"role": "user", "content": asked})
                reply = _ask(url, LARGE, messages)
                out.write(json.dumps(_record(k, messages, reply)) + "\n")
                messages.append(reply["choices"][0]["message"])


def _record(session: int, messages: Sequence[Any], reply: Any) -> dict[str, Any]:
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{time.time_ns() % 10**9:09}Z"
    request = {"model": reply["model"], "messages": messages}
    return {"session_id": f"s{session}", "timestamp": when, "request": request, "response": reply}


def _sent(url: str, log: Path, recorded: Any, arms: Sequence[str]) -> int:
    """Tokens that the server did not evaluate when the logged prompts went to these arms."""
    prompts: dict[tuple[str, int], Any] = {}
    counts: dict[str, int] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        step = counts.get(row["session_id"], 0)
        counts[row["session_id"]] = step + 1
        prompts[row["session_id"], step] = row["request"]["messages"]
    total = 0
    for row, arm in zip(recorded.select(["query_id", "step"]).to_pylist(), arms, strict=True):
        reply = _ask(url, arm, prompts[row["query_id"], row["step"]])
        total += int(reply["usage"]["prompt_tokens_details"]["cached_tokens"])
    return total


def _ask(url: str, model: str, messages: Sequence[Any]) -> Any:
    import urllib.request

    body = {"model": model, "messages": messages, "max_tokens": 24, "temperature": 0}
    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.loads(reply.read())
