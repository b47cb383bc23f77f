"""Server-sent events of a completion, put together into the object they describe."""

from __future__ import annotations

import json
import math
from typing import Any

from routeyard.pipelines.calls.reply import CallFault


class Assembled:
    """Collects `data:` lines; `reply` reads the whole like an unstreamed body.

    Attributes:
        ended: `[DONE]` came; nothing after it is read.
    """

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._events = 0
        self.ended = False

    def add(self, line: str) -> bool:
        """Take one line; true when it carried text."""
        if not line.startswith("data:"):
            return False
        data = line[5:].strip()
        if data == "[DONE]":
            self.ended = True
        if self.ended:  # what follows belongs to no answer
            return False
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CallFault("invalid_json", f"an event is no JSON: {error}", status=200) from None
        if not isinstance(event, dict):
            raise CallFault("invalid_json", "an event is JSON but no object", status=200)
        self._events += 1
        if event.get("error"):
            self._head["error"] = event["error"]
        for name in ("model", "provider", "system_fingerprint"):
            if event.get(name) is not None:
                self._head[name] = event[name]
        if event.get("usage") is not None:
            self._head["usage"] = _largest(self._head.get("usage"), event["usage"])
        choices = event.get("choices")
        spoke = False
        for choice in choices if isinstance(choices, list) else []:
            spoke = self._take(choice) or spoke
        return spoke

    def _take(self, choice: Any) -> bool:
        if not isinstance(choice, dict):
            return False
        index = choice.get("index")
        index = index if isinstance(index, int) else 0
        kept = self._choices.setdefault(
            index, {"index": index, "parts": {"content": [], "refusal": []}, "logprobs": []}
        )
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        spoke = False
        for name, parts in kept["parts"].items():
            piece = delta.get(name)
            if isinstance(piece, str):
                parts.append(piece)
                spoke = spoke or bool(piece)
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list):
            kept["logprobs"] += logprobs["content"]
        if choice.get("finish_reason") is not None:
            kept["finish_reason"] = choice["finish_reason"]
        return spoke

    def completion(self) -> dict[str, Any]:
        """The completion's object, as an unstreamed body would hold it.

        Raises:
            CallFault: nothing came, or the stream broke off before its end.
        """
        if not self._events:
            raise CallFault("empty_body", "the stream ended without an event", status=200)
        unfinished = any("finish_reason" not in kept for kept in self._choices.values())
        if not self.ended and unfinished and "error" not in self._head:
            # Half an answer is not an answer, and not a truncated one either.
            raise CallFault("broken_stream", "the stream broke off before its end", status=200)
        choices = [
            {
                "index": kept["index"],
                "message": {
                    name: "".join(parts) if parts else None for name, parts in kept["parts"].items()
                },
                "finish_reason": kept.get("finish_reason"),
                "logprobs": {"content": kept["logprobs"]},
            }
            for kept in self._choices.values()
        ]
        return {**self._head, "choices": choices}


def _largest(before: Any, now: Any, depth: int = 2) -> Any:
    """The larger of each count in two usage events: counts of a stream only grow."""
    if isinstance(before, dict) and isinstance(now, dict) and depth:
        return {name: _largest(before.get(name), now.get(name), depth - 1) for name in before | now}
    if isinstance(before, dict) or isinstance(now, dict):
        return now if isinstance(now, dict) else before
    counts = [one for one in (now, before) if not isinstance(one, bool) and _is_number(one)]
    return max(counts, key=float, default=before if now is None else now)


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False
