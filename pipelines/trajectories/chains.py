"""Which call goes on from which: by the messages that their prompts share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any


class Chains:
    """Prompts seen so far, by the hash of their messages."""

    def __init__(self) -> None:
        self._root: dict[str, str] = {}

    def add(self, messages: Sequence[Any]) -> tuple[str, str | None, str]:
        """(hash of the prompt, hash of the longest earlier prompt it extends, first of its chain).

        Earlier means: given to `add` before. Calls are to come in order of time.
        """
        hashes = prefix_hashes(messages)
        whole = hashes[-1]
        parent = next((one for one in reversed(hashes[:-1]) if one in self._root), None)
        root = self._root.get(whole) or (whole if parent is None else self._root[parent])
        self._root.setdefault(whole, root)
        return whole, parent, root


def prefix_hashes(messages: Sequence[Any]) -> list[str]:
    """Hash of the first one, two, … messages: 32 hex digits each."""
    digest, found = hashlib.sha256(), []
    for message in messages:
        digest.update(json.dumps(message, sort_keys=True, ensure_ascii=False).encode())
        digest.update(b"\x00")
        found.append(digest.copy().hexdigest()[:32])
    return found
