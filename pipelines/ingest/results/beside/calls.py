"""Logs of API calls beside results: what they cost, whom they asked, and what nobody can assign.

A call belongs to no question, so that its tokens and its cost are no answer's; what is wrong with
them is reported all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.roles import candidates, rank_of
from routeyard.pipelines.ingest.results.values import (
    CACHED,
    ReadingNote,
    factor,
    numbers,
    plain,
    texts,
)
from routeyard.pipelines.model_names import same_model

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ApiCalls:
    """Calls of one kind.

    Attributes:
        asked, served: (n,) model that was asked for, and that answered; None where not said.
        cost, prompt, completion, cached: (n,) USD and tokens, NaN where not said.
    """

    asked: list[str | None]
    served: list[str | None]
    cost: np.ndarray
    prompt: np.ndarray
    completion: np.ndarray
    cached: np.ndarray


def calls_of(done: Assigned) -> ApiCalls | None:
    """The group's records as API calls; None where they have a question, or no tokens."""
    roles, table = done.roles, done.table
    if "question" in roles or "score" in roles or "completion_tokens" not in roles:
        return None
    named = [c.column for c in candidates(table, "arm")]
    asked = next((name for name in named if "response" not in name.lower()), roles.get("arm"))
    if asked is None:
        return None
    served = roles.get("served_model") or next(
        (name for name in table.column_names if rank_of(name, "served_model") is not None), None
    )
    cached = next((n for n in table.column_names if plain(n.rpartition(".")[2]) in CACHED), None)
    return ApiCalls(
        texts(table.column(asked)).to_pylist(),
        [None] * table.num_rows if served is None else texts(table.column(served)).to_pylist(),
        _floats(table, roles.get("cost"), "cost"),
        _floats(table, roles.get("prompt_tokens"), "prompt_tokens"),
        _floats(table, roles["completion_tokens"], "completion_tokens"),
        _floats(table, cached, "prompt_tokens"),
    )


def _floats(table: pa.Table, name: str | None, field: str) -> np.ndarray:
    values = None if name is None else numbers(table.column(name))
    if values is None or name is None:
        return np.full(table.num_rows, np.nan)
    return values * factor(name, field)


def call_notes(groups: Sequence[ApiCalls], arms: Iterable[str]) -> Iterator[ReadingNote]:
    """What a person has to know of calls beside the answers of some arms."""
    known = sorted(arms)
    for one in groups:
        n = len(one.asked)
        says = (
            f"{n:,} API calls name no question ({np.nansum(one.prompt):,.0f} prompt and "
            f"{np.nansum(one.completion):,.0f} completion tokens{_dollars(one.cost)}): no answer's "
            "cost is known from them"
        )
        yield ReadingNote("calls", says, n, (), "API calls")
        yield from _unpriced(one)
        yield from _of_others(one, known)
        yield from _served(one)
        if (cached := np.nansum(one.cached)) > 0:
            says = (
                f"{cached:,.0f} of {np.nansum(one.prompt):,.0f} prompt tokens of API calls were "
                "cached: at the price of a prompt token they are counted too dear"
            )
            yield ReadingNote("choice", says, 0, (), "API calls")


def _dollars(cost: np.ndarray) -> str:
    return "" if np.isnan(cost).all() else f", ${np.nansum(cost):,.6g}"


def _unpriced(one: ApiCalls) -> Iterator[ReadingNote]:
    """Calls with tokens and without a cost, by model."""
    used = np.nan_to_num(one.prompt) + np.nan_to_num(one.completion) > 0
    for words, bad in (
        ("state no cost, which is unknown and not free", np.isnan(one.cost) & used),
        ("state a cost of 0, which is unknown and not free", (one.cost == 0) & used),
    ):
        if not bad.any() or (np.isnan(one.cost).all() and "no cost" not in words):
            continue
        counted = Counter(name or "no model" for name, b in zip(one.asked, bad, strict=True) if b)
        whom = ", ".join(f"{k:,} of {name}" for name, k in counted.most_common(_SHOWN))
        says = f"{int(bad.sum()):,} of {len(bad):,} API calls ({whom}) {words}"
        yield ReadingNote("unpriced", says, int(bad.sum()), (), "API calls")


def _of_others(one: ApiCalls, arms: Sequence[str]) -> Iterator[ReadingNote]:
    """Calls of models that are no arm: a simulated user, a judge, a part of a system."""
    counted = Counter(
        name for name in one.asked if name and not any(same_model(name, arm) for arm in arms)
    )
    for name, k in counted.most_common(_SHOWN):
        if arms:
            says = (
                f"{k:,} of {len(one.asked):,} API calls asked {name!r}, which is no arm here (a "
                "simulated user, a judge or a helper?): their tokens and costs are no arm's own"
            )
            yield ReadingNote("other_calls", says, k, (), name)


def _served(one: ApiCalls) -> Iterator[ReadingNote]:
    """Calls that another model answered than was asked for."""
    counted = Counter(
        (asked, served)
        for asked, served in zip(one.asked, one.served, strict=True)
        if asked and served and not same_model(asked, served)
    )
    for (asked, served), k in counted.most_common(_SHOWN):
        says = f"{k:,} API calls that asked {asked!r} were answered by {served!r}"
        yield ReadingNote("served", says, k, (), asked)
