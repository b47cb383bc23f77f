"""Which call goes on from which: by the messages that their prompts share."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

#: Roles of messages that ask nothing: calls that share no more than these are of several tasks.
_INSTRUCTIONS = ("system", "developer")
#: Hex digits of a hash.
_DIGITS = 32


class Chains:
    """Trajectories of calls that name no session, given in order of time.

    A call continues the earlier call whose prompt its own prompt extends. The same first prompt
    again is a further trial of the task, not a further step of the first one.

    Attributes:
        unsure: calls that continue one of several equal prompts; the latest is taken.
    """

    def __init__(self) -> None:
        self.unsure = 0
        self._trials: Counter[str] = Counter()
        self._waiting: dict[str, list[tuple[str, int]]] = {}
        self._latest: dict[str, tuple[str, int]] = {}

    def add(self, whole: str, parts: str) -> tuple[str, int]:
        """(hash of the trajectory's first prompt, number of the trial).

        Args:
            whole: Hash of the prompt.
            parts: What `earlier_prompts` gave for it.
        """
        parent = next((one for one in longest_first(parts) if one in self._latest), None)
        if parent is None:
            trial = (whole, self._trials[whole])
            self._trials[whole] += 1
        else:
            waiting = self._waiting[parent]
            self.unsure += len(waiting) > 1
            trial = waiting.pop() if waiting else self._latest[parent]
            self._latest[parent] = trial
        self._waiting.setdefault(whole, []).append(trial)
        self._latest[whole] = trial
        return trial


def longest_first(parts: str) -> Iterator[str]:
    """What `earlier_prompts` gave, the longest prompt first."""
    return (parts[k : k + _DIGITS] for k in range(len(parts) - _DIGITS, -1, -_DIGITS))


def earlier_prompts(messages: Sequence[Any], hashes: Sequence[str]) -> str:
    """Hashes of the shorter prompts that a prompt may extend, one after the other."""
    return "".join(
        part
        for part, last in zip(hashes[:-1], messages, strict=False)
        if not (isinstance(last, dict) and last.get("role") in _INSTRUCTIONS)
    )


def prefix_hashes(messages: Sequence[Any]) -> list[str]:
    """Hash of the first one, two, … messages: 32 hex digits each."""
    digest, found = hashlib.sha256(), []
    for message in messages:
        digest.update(json.dumps(message, sort_keys=True, ensure_ascii=False).encode())
        digest.update(b"\x00")
        found.append(digest.copy().hexdigest()[:_DIGITS])
    return found
