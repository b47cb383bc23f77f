"""The result of a command, printed as lines for people or, with `--json`, as one document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routeyard.flows.console.json_values import plain

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from routeyard.schemas.errors import RouteyardError


@dataclass(frozen=True)
class Output:
    """The result of a command.

    Attributes:
        data: What `--json` prints.
        lines: What a person reads instead: lines, or a function that prints.
        exit_code: Exit code of the command once that is printed.
        error: What the command fails with once that is printed.
    """

    data: Any
    lines: str | Iterable[str] | Callable[[], None] = ()
    exit_code: int = 0
    error: RouteyardError | None = None


def print_output(output: Output, as_json: bool) -> None:
    """Print a command's result: as one JSON document when `as_json`, else its lines.

    Raises:
        RouteyardError: the output's own error.
    """
    if as_json:
        print(json.dumps(plain(output.data), ensure_ascii=False, allow_nan=False))
    elif callable(output.lines):
        output.lines()
    else:
        for line in [output.lines] if isinstance(output.lines, str) else output.lines:
            print(line, flush=True)
    if output.error is not None:
        raise output.error


def write_csv(table: pa.Table, path: Path) -> None:
    """Write a table as CSV whose cells no spreadsheet program takes for a formula."""
    import csv

    from routeyard.schemas.untrusted_text import spreadsheet

    def cell(value: object) -> object:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 0, not 0.0
        return spreadsheet(" | ".join(map(str, value)) if isinstance(value, list) else value)

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(cell, table.column_names))
        columns = [column.to_pylist() for column in table.columns]
        writer.writerows(map(cell, row) for row in zip(*columns, strict=True))
