"""Cases of a parametrized test of which the suite runs a sample."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pytest


def some(names: Iterable[str], every: int) -> list[Any]:
    """All of them: one in `every` is run with the suite, the others with `-m slow`."""
    slow = [pytest.mark.slow]
    return [pytest.param(one, marks=slow if n % every else []) for n, one in enumerate(names)]


def together(
    cases: Mapping[str, Any],
    groups: int,
    shown_by: Callable[[Any], object],
    apart: Sequence[Iterable[str]] = (),
    alone: Collection[str] = (),
) -> list[Any]:
    """Groups of cases for one input each, and with `-m slow` each case with an input of its own.

    No two of a group are shown by the same thing, so that none is found in place of another.

    Args:
        apart: Further groups, of cases that the others would hide.
        alone: Cases that are in no group.
    """
    made: list[dict[object, str]] = [{} for _ in range(groups)]
    for name in cases:
        if name not in alone:
            free = [one for one in made if shown_by(cases[name]) not in one]
            min(free, key=len)[shown_by(cases[name])] = name
    # What is put apart leaves the others where they are.
    named = {name for one in apart for name in one}
    assert all(len({shown_by(cases[name]) for name in one}) == len([*one]) for one in apart)
    dealt = [[name for name in one.values() if name not in named] for one in made]
    found = [pytest.param([*one], id=f"group {n}") for n, one in enumerate([*apart, *dealt], 1)]
    return found + [pytest.param([name], id=name, marks=pytest.mark.slow) for name in cases]
