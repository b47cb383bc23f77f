"""Cases of a parametrized test of which the suite runs a sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(names: Iterable[str], every: int) -> list[Any]:
    """All of them: one in `every` is run with the suite, the others with `-m slow`."""
    slow = [pytest.mark.slow]
    return [pytest.param(one, marks=slow if n % every else []) for n, one in enumerate(names)]
