"""Reads a stranger's workbook in the limited process, where openpyxl is installed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

#: Rows of a sheet that are handed over together.
_TOGETHER = 2_000


def sheets(path: str) -> Iterator[list[Any]]:
    """[name of a sheet, some of its rows], sheet by sheet in the order of the workbook.

    A cell holds what its formula gave when it was saved; dates are texts.
    """
    from openpyxl import load_workbook

    for sheet in load_workbook(path, read_only=True, data_only=True).worksheets:
        rows = sheet.iter_rows(values_only=True)
        while some := list(islice(rows, _TOGETHER)):
            yield [sheet.title, [[_plain(value) for value in row] for row in some]]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)
