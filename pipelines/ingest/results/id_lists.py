"""Lists of ids per outcome (`resolved`, `error_ids`, …) as one record per id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Name of a list → what it says of its ids; the first pattern that fits counts.
_KINDS = (
    ("failed", re.compile(r"unresolved|unsolved|incorrect|not_|(?:^|_)(?:fail|wrong|regress)")),
    ("error", re.compile(r"error|exception|crash|infra|invalid")),
    ("timeout", re.compile(r"time_?out|timed_out|unstopped")),
    ("empty", re.compile(r"empty")),
    ("unanswered", re.compile(r"incomplete|missing|skipped|not_?submitted|pending|no_generation")),
    ("ran", re.compile(r"submitted|completed|all|total|attempted|applied|generated|with_logs")),
)
_SUCCESS = re.compile(r"resolved|solved|passed|pass|success|succeeded|correct|right|accepted|won")
#: Names of figures that count all questions.
TOTAL = re.compile(r"^total(?:_(?:instances|tasks|questions|samples|problems))?$")
#: Names of figures that state the share of successes.
_STATED = re.compile(r"score|accuracy|acc|(?:resolved?|pass|success|solve)_?(?:rate|pct|percent)")


def id_lists(value: Mapping[str, Any]) -> dict[str, list[str]]:
    """The lists of ids in an object; empty unless one of them says who succeeded."""
    lists = {
        key: one
        for key, one in value.items()
        if isinstance(one, list) and all(isinstance(x, str | int) for x in one)
    }
    names = [key for key in lists if _kind(key) == "success"]
    full = [key for key, one in lists.items() if one]
    if not names or len(lists) < 2 or not full:
        return {}
    return {key: [str(x) for x in one] for key, one in lists.items()}


def _kind(name: str) -> str:
    plain = name.lower()
    for kind, pattern in _KINDS:
        if pattern.search(plain):
            return kind
    return "success" if _SUCCESS.search(plain) else "other"


def outcomes(
    value: Mapping[str, Any], lists: Mapping[str, list[str]], around: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One record per id: the list that says most of it, and whether it succeeded by each of them.

    Ids are successes by the list that gives the share of successes that the file states; where it
    states none, by the shortest list that is named so.
    """
    positive = {n: set(ids) for n, ids in lists.items() if _kind(n) in ("success", "other")}
    chosen = success_list(
        positive, {**around, **value}, len({x for ids in lists.values() for x in ids})
    )
    said: dict[str, str] = {}
    status: dict[str, str] = {}
    all_named = any(_kind(name) in ("failed", "ran") for name in lists)
    order = [*lists]
    for name in sorted(order, key=lambda n: _RANK[_kind(n)]):
        for one in lists[name]:
            said[one] = name
            if _kind(name) not in ("ran", "success", "other"):
                status[one] = name.removesuffix("_ids").removesuffix("_instances")
    return [
        {
            "instance_id": one,
            "succeeded": one in positive.get(chosen, ()),
            "outcome": status.get(one),
            "listed_in": name,
            "only_successes": not all_named,
            "success_list": chosen,
            "stricter": ", ".join(
                n for n, ids in positive.items() if ids and ids < positive.get(chosen, set())
            ),
            **{f"in_list.{n}": one in ids for n, ids in positive.items() if n != chosen and ids},
        }
        for one, name in said.items()
    ]


#: Lists that say more of an id overrule those that say less.
_RANK = {name: n for n, name in enumerate(
    ("ran", "other", "success", "failed", "unanswered", "empty", "timeout", "error")
)}  # fmt: skip


def success_list(positive: Mapping[str, set[str]], about: Mapping[str, Any], listed: int) -> str:
    """Name of the list that counts as success."""
    named = [name for name in positive if _kind(name) == "success"]
    stated = _stated(about)
    total = next((v for k, v in _numbers(about) if TOTAL.search(k)), listed)
    if stated is not None and total:
        exact = [n for n, ids in positive.items() if abs(100 * len(ids) / total - stated) < 0.006]
        exact = [n for n in exact if positive[n]] or exact
        if exact:
            return min(exact, key=lambda n: (_kind(n) != "success", n))
    return min(named, key=lambda n: (not positive[n], len(positive[n]), n))


def _numbers(value: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [
        (str(k).lower().rpartition(".")[2], float(v))
        for k, v in value.items()
        if isinstance(v, int | float) and not isinstance(v, bool)
    ]


def _stated(about: Mapping[str, Any]) -> float | None:
    """The share of successes in percent that a file states; None where it states none."""
    for name, number in _numbers(about):
        if _STATED.fullmatch(name) and 0 <= number <= 100:
            return number * 100 if number <= 1 and not float(number).is_integer() else number
    return None
