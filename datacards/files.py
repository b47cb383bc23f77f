"""Further files of a release: Croissant metadata and plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.datacards.croissant import CROISSANT, croissant
from routeyard.datacards.numbers import card_numbers
from routeyard.datacards.plots import plots
from routeyard.schemas import StoredTable


def render(
    tables: Mapping[str, pa.Table | StoredTable], facts: Mapping[str, Any], *, draw: bool = True
) -> dict[str, bytes]:
    """Files by path inside the release; the same tables give the same bytes.

    Args:
        draw: False leaves the plots out.
    """
    numbers = card_numbers(tables)
    drawn = plots(tables, numbers) if draw else {}
    return {CROISSANT: croissant(tables, facts, numbers).encode(), **drawn}
