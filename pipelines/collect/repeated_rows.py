"""Answers that recordings hold more than once: all are counted, and none is merged silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from routeyard.pipelines.errors import RecordedError

#: (query_id, model_id, sample)
Key = tuple[str, str, int]
#: Places that a note or an error shows.
_SHOWN = 3
_KEPT = {
    "first": "the first of each counts",
    "last": "the last of each counts",
    "missing": "those pairs have no answer",
}


@dataclass(slots=True)
class RepeatedRows:
    """What was seen over all files of a recipe, and which rows give way to others.

    Attributes:
        seen: Key → (place, hash of what the row says, number of the row among those taken).
        dropped: Numbers of taken rows that a later one replaced or contradicted.
        same: Recording → rows that repeat an earlier one word for word.
        other: Recording → rows that say something else about a pair that has an answer.
    """

    seen: dict[Key, tuple[str, int, int]] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    same: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    _contradicted: set[Key] = field(default_factory=set)
    _shown: dict[str, list[str]] = field(default_factory=dict)
    _policy: dict[str, str] = field(default_factory=dict)
    #: Number of a taken row → counts of its file.
    _taken: list[dict[str, int]] = field(default_factory=list)

    def take(
        self,
        key: Key,
        said: Mapping[str, Any],
        place: str,
        recording: str,
        policy: str,
        counts: dict[str, int],
    ) -> bool:
        """Whether the row makes a response; counted as `responses`, or as `repeated`.

        Args:
            recording: Path of the entry, as the recipe says it.
            policy: Its `duplicates`.
            counts: Of the row's file. A later row of another file may change them.
        """
        # What it took to answer may differ between two records of one answer.
        says = hash((said.get("text"), repr(said.get("score")), repr(said.get("finish_reason"))))
        if key not in self.seen:
            self._take(key, place, says, counts)
            return True
        before, said_before, number = self.seen[key]
        self._policy[recording] = policy
        counted = self.same if says == said_before else self.other
        counted[recording] += 1
        shown = self._shown.setdefault(recording, [])
        if len(shown) < _SHOWN:
            shown.append(f"{place} and {before} (id {said['query']!r}, model {key[1]!r})")
        if says != said_before and policy not in ("error", "first"):
            self._drop(number)
            if policy != "missing" and key not in self._contradicted:
                self._take(key, place, says, counts)
                return True
            self._contradicted.add(key)
        counts["repeated"] += 1
        return False

    def _take(self, key: Key, place: str, says: int, counts: dict[str, int]) -> None:
        self.seen[key] = (place, says, len(self._taken))
        self._taken.append(counts)
        counts["responses"] += 1

    def _drop(self, number: int) -> None:
        if number not in self.dropped:
            self.dropped.add(number)
            counts = self._taken[number]
            counts["responses"] -= 1
            counts["repeated"] += 1

    def check(self) -> list[str]:
        """What to report about them, once all files were read.

        Raises:
            RecordedError: a recording whose `duplicates` is `error` has some.
        """
        for recording, policy in self._policy.items():
            if policy == "error":
                raise self._error(recording)
        return [self._note(recording, policy) for recording, policy in self._policy.items()]

    def _error(self, recording: str) -> RecordedError:
        same, other = self.same[recording], self.other[recording]
        steps = []
        if same:
            steps.append("rows that repeat another can be taken out of the file")
        if other:
            steps.append("several answers to one question are samples: map 'fields.sample'")
        return RecordedError(
            f"{same + other:,} rows answer what another row has answered: {same:,} repeat it word "
            f"for word, {other:,} say something else",
            where=f"{recording}: {'; '.join(self._shown[recording])}",
            next_step="; ".join(steps) + "; or say with 'duplicates' which one counts: 'first' or "
            "'last', or 'missing', which leaves pairs with different answers without one",
        )

    def _note(self, recording: str, policy: str) -> str:
        same, other = self.same[recording], self.other[recording]
        told = f"{recording}: "
        if same:
            told += f"{same:,} rows repeat another word for word and count once"
        if other:
            told += f"{'; ' if same else ''}{other:,} rows say something else about a pair that "
            told += f"has an answer: {_KEPT[policy]}"
        return f"{told} ({'; '.join(self._shown[recording])})"
