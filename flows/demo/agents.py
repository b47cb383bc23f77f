"""A simulated agent: what it searches for, and when it answers.

It knows an answer only where a search has shown it. A stronger model more often follows the link
from the first passage to the second, and reads the answer right there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.flows.demo.answers import uniform

#: Searches after which it answers in any case.
_MOST = 3


def act(
    model: str, row: Mapping[str, Any] | None, messages: Sequence[Mapping[str, Any]], seed: int
) -> tuple[str | None, str | None]:
    """(query of a search, null) or (null, answer) for the next step of a conversation."""
    question = row["question"] if row else _asked(messages)
    found = "\n".join(str(m.get("content")) for m in messages if m.get("role") == "tool")
    searches = sum(m.get("role") == "tool" for m in messages)
    if not searches:
        return question, None
    reference = str(row["references"][0]) if row and row["references"] else ""
    skill = 0.35 + 0.6 * uniform(model, "skill")
    if reference and _stands(row, found, reference):
        right = uniform(model, question, seed, "reads") < 0.5 + skill / 2
        return None, reference if right else "something else entirely"
    if searches >= _MOST:
        return None, "I do not know"
    bridge = str(row.get("bridge", "")) if row else ""
    if bridge and bridge in found and uniform(model, question, seed, searches, "link") < skill:
        return bridge, None
    # Lost: it looks for the question's last words, which are in many passages.
    return " ".join(question.split()[-3:]), None


def _stands(row: Mapping[str, Any] | None, found: str, reference: str) -> bool:
    """Whether the passage about the linked person was shown, and the answer in it."""
    bridge = str(row.get("bridge", "")) if row else ""
    shown = [part for part in found.split("\n") if f"] {bridge}: " in part] if bridge else [found]
    return any(reference in part for part in shown)


def _asked(messages: Sequence[Mapping[str, Any]]) -> str:
    users = [str(m.get("content")) for m in messages if m.get("role") == "user"]
    return users[0][:200] if users else ""


def calls(query: str) -> list[dict[str, Any]]:
    """The call of the tool, in the form of the API."""
    arguments = json.dumps({"query": query}, ensure_ascii=False)
    function = {"name": "search", "arguments": arguments}
    return [{"id": "call_0", "type": "function", "function": function}]
