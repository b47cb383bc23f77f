"""The messages sent to an agent, and how its replies are read: a search, several, or an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeyard.pipelines.calls.reply import TOOL_CALLS
from routeyard.pipelines.ledger.attempt import Attempt
from routeyard.schemas.recipe.agent import Agent

#: The tool, as the chat completions API declares it.
TOOLS: list[Mapping[str, Any]] = json.loads(Path(__file__).with_name("tools.json").read_text())
_TOLD = (
    "You answer questions with the help of a search in a small encyclopedia. Search for one thing "
    "at a time; facts often stand in different passages. You may search {searches} at most."
)
_BY_TOOL = " When you know the answer, give it without calling the tool."
_BY_TEXT = (
    ' To search, reply with the one line "Search: " and the words to look for, and nothing else. '
    "When you know the answer, reply with it."
)
_LAST = "Answer now, as well as you can, without another search."
_LINE = re.compile(r"^\W{0,3}search\W{0,3}:\W{0,2}(?P<query>[^\n]{1,500})", re.I | re.M)


@dataclass(frozen=True)
class AgentReply:
    """What a reply means: `queries` to search for, or else `text` as the answer."""

    text: str | None
    queries: tuple[str, ...] = ()
    #: What was asked of the tool and cannot be done, at the same places as in `queries`.
    faults: tuple[str | None, ...] = ()


def system(agent: Agent, own: str | None) -> str:
    """The system message: the recipe's own first."""
    searches = agent.steps - 1
    told = _TOLD.format(searches="once" if searches == 1 else f"{searches} times")
    told += _BY_TOOL if agent.calls == "tools" else _BY_TEXT
    return f"{own}\n\n{told}" if own else told


def read(attempt: Attempt, agent: Agent) -> AgentReply:
    """A reply, read as untrusted: what is no search is an answer."""
    if agent.calls == "text":
        found = _LINE.search(attempt.text or "")
        query = (found["query"].strip(),) if found else ()
        return AgentReply(attempt.text, query, (None,) * len(query))
    if attempt.finish_reason != TOOL_CALLS:
        return AgentReply(attempt.text)
    try:
        said = json.loads(attempt.text or "")
        calls = [_call(one["name"], one["arguments"]) for one in said["tool_calls"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        # A server that calls its plain text a call of tools.
        return AgentReply(attempt.text)
    queries, faults = zip(*calls, strict=True) if calls else ((), ())
    return AgentReply(said.get("content"), queries, faults)


def _call(name: Any, arguments: Any) -> tuple[str, str | None]:
    if name != "search":
        return "", f"There is no tool {str(name)[:40]!r}. The only tool is 'search'."
    try:
        query = json.loads(arguments)["query"]
    except (ValueError, KeyError, TypeError, RecursionError):
        query = None
    if not isinstance(query, str) or not query.strip():
        return "", "The call was not understood: 'search' takes one argument, the text 'query'."
    return query.strip(), None


def after(
    said: AgentReply, found: tuple[str, ...], step: int, agent: Agent, *, last: bool
) -> list[Mapping[str, Any]]:
    """The messages that follow a search: the agent's reply, and what the search found.

    Ids of calls are ours: a server's own would make the same step another request each time.

    Args:
        last: The next step is the last one, which can only answer.
    """
    messages: list[Mapping[str, Any]]
    if agent.calls == "text":
        shown = f"Found:\n\n{found[0]}" + (f"\n\n{_LAST}" if last else "")
        return [
            {"role": "assistant", "content": said.text or ""},
            {"role": "user", "content": shown},
        ]
    ids = [f"call_{step}_{k}" for k in range(len(said.queries))]
    calls = [
        {
            "id": name,
            "type": "function",
            "function": {"name": "search", "arguments": json.dumps({"query": query})},
        }
        for name, query in zip(ids, said.queries, strict=True)
    ]
    messages = [{"role": "assistant", "content": said.text or "", "tool_calls": calls}]
    messages += [
        {"role": "tool", "tool_call_id": name, "content": text}
        for name, text in zip(ids, found, strict=True)
    ]
    return messages + ([{"role": "user", "content": _LAST}] if last else [])
