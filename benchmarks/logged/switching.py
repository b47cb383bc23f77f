"""Cached tokens of a switching policy: what replay predicts, and what a real server then did.

Conversations are held with one quantisation of the small model behind its server and logged. Replay
predicts, from that log alone, the tokens that each policy reads from the caches; then the same
prompts are really sent to the models that the policy names, on a fresh server, and the server says
what it still held.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.common.usage import usage_of

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
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--server", required=True, help="llama.cpp's llama-server")
    parser.add_argument(
        "--models", type=Path, required=True, help="folder with the demo's quantised files"
    )


def run(arguments: Namespace) -> dict[str, Any]:
    """Policy → cached tokens predicted and reported, and their relative difference.

    `same prompts` sends the logged prompts to the arms of the policy; `live` holds the same
    conversations anew, where each arm goes on from its own answers and the other's.
    """
    from routeyard.extensions.traffic.replay import policy_arms, replay, trajectories_of
    from routeyard.pipelines.common.trajectories import ArmPrice
    from routeyard.pipelines.ingest.logs import read_log

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        size = arguments.conversations, arguments.turns
        with _serving(arguments) as urls:
            asked = _hold(urls, log, *size)
        recorded = read_log(log).steps
        steps = trajectories_of(recorded)
        names = (LARGE, SMALL)
        prices = {name: ArmPrice(1.0, 1.0, 0.1, None, "llama_cpp") for name in names}
        found = {}
        for text in POLICIES:
            arms = policy_arms(text, steps, names, recorded)
            predicted = replay(steps, arms, prices, names)
            chosen = np.empty(len(steps), np.int64)
            chosen[steps.order] = arms
            rows = recorded.select(["query_id", "step"]).to_pylist()
            by_step = {
                (row["query_id"], row["step"]): names[k]
                for row, k in zip(rows, chosen, strict=True)
            }
            with _serving(arguments) as urls:
                same = sum(_cached(_ask(urls, by_step[at], asked[at])) for at in sorted(asked))
            with _serving(arguments) as urls:
                live = _hold(urls, Path(folder) / "live.jsonl", *size, by_step)
            least = int(predicted.read_least.sum())
            found[text] = {
                "predicted": least, "at most": int(predicted.read_most.sum()),
                "same prompts": same, "live": live["cached"],
                "differs": round(abs(least - same) / max(same, 1), 4),
                "differs live": round(abs(least - live["cached"]) / max(live["cached"], 1), 4),
            }  # fmt: skip
        return found


@contextmanager
def _serving(arguments: Namespace) -> Iterator[dict[str, str]]:
    """Model → address of a fresh server; llama.cpp's own serves one model a process."""
    import socket

    files = {LARGE: arguments.models / f"{LARGE}.gguf", SMALL: arguments.models / "model.gguf"}
    processes, urls = [], {}
    try:
        for name, file in files.items():
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            command = [arguments.server, "-m", str(file), "--alias", name, "--port", str(port),
                       "-np", "1", "-t", "1", "-c", "2048", "--cache-ram", "0"]  # fmt: skip
            processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL,
                                              stdout=subprocess.DEVNULL))  # fmt: skip
            urls[name] = f"http://127.0.0.1:{port}/v1"
        for name in files:
            _wait(urls[name].removesuffix("/v1") + "/health")
        yield urls
    finally:
        for one in processes:
            one.terminate()
            one.wait()


def _wait(url: str) -> None:
    import urllib.error
    import urllib.request

    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit(f"no server answers at {url}")


def _hold(
    urls: Mapping[str, str], log: Path, conversations: int, turns: int,
    arms: Mapping[tuple[str, int], str] | None = None,
) -> dict[Any, Any]:  # fmt: skip
    """Conversations with one model, or with the arms of a policy, logged: (session, step) → prompt.

    Of a policy: `cached`, all tokens that the servers did not evaluate.
    """
    prompts: dict[Any, Any] = {}
    cached = 0
    with log.open("w", encoding="utf-8") as out:
        for k in range(conversations):
            topic, session = _TOPICS[k % 10], f"s{k}"
            messages = [{"role": "system", "content": f"You talk about {topic}. " * 8}]
            for turn in range(turns):
                asked = f"Question {turn + 1}: tell me one more thing about {topic}."
                messages.append({"role": "user", "content": asked})
                reply = _ask(urls, arms[session, turn] if arms else LARGE, messages)
                out.write(json.dumps(_record(session, messages, reply)) + "\n")
                prompts[session, turn] = list(messages)
                cached += _cached(reply)
                messages.append(reply["choices"][0]["message"])
    return {"cached": cached} if arms else prompts


def _record(session: str, messages: Sequence[Any], reply: Any) -> dict[str, Any]:
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{time.time_ns() % 10**9:09}Z"
    request = {"model": reply["model"], "messages": messages}
    return {"session_id": session, "timestamp": when, "request": request, "response": reply}


def _cached(reply: Any) -> int:
    """Tokens of the prompt that a server did not evaluate, as it reports them."""
    return usage_of(reply["usage"], reply.get("timings")).read or 0


def _ask(urls: Mapping[str, str], model: str, messages: Sequence[Any]) -> Any:
    import urllib.request

    body = {"model": model, "messages": messages, "max_tokens": 24, "temperature": 0}
    request = urllib.request.Request(
        f"{urls[model]}/chat/completions", json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )  # fmt: skip
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.loads(reply.read())
