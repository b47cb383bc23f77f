"""Options that several commands share, and results of commands as lines or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.schemas.errors import RouteyardError

#: Parameter that several commands share → its help, where a command says nothing else of it.
HELPS = {
    "workspace": "Folder of ledger, stage outputs and releases.",
    "recipe": "A recipe file, or the name of one that Routeyard ships.",
    "release": "A release folder.",
    "scale": "Factor for every number of questions: 0.01 takes one in a hundred.",
    "reask": "Retry requests that failed permanently: `error` or `refused` (repeatable).",
    "reask_truncated": "Retry truncated answers with this limit of tokens.",
    "embeddings": "Parquet file with query_id and vector; replaces the release's.",
    "also": "File or folder of descriptors, hidden_states, signals, entropies, preferences or "
    "tuned beside the release; again for more.",
    "encoder": "Encoder for --embed.",
    "cache": "Folder that keeps embeddings and predictions of routers between runs.",
    "scheme": "Split scheme; by default `dense`, else the first by name.",
    "split": "Only queries of this split: train, validation or test.",
    "pair": "small,large: also routing between these two models.",
    "cluster": "Resample whole groups of questions: duplicates or task; else single ones.",
    "measure": "Cost measure: usd, tokens, latency or params; default: first.",
    "device": "auto (a GPU where there is one), cpu, cuda or mps.",
    "results": "Folder with evaluations, zoo tables or studies; again for more.",
    "benchmark": "Name of a built benchmark, or its recipe.",
    "timeout": "Longest time of a query, in seconds.",
    "seed": "Seed of the resamples.",
    "jobs": "Worker processes.",
    "shards": "Parts each model's questions and embedding are cut into.",
    "embed": "Compute embeddings that the release lacks.",
    "resamples": "Bootstrap resamples of every interval.",
    "plan": "Print sizes, tokens and, for calls, USD; then stop.",
    "out": "Folder for the results; never inside a release.",
}
#: Names the workspace, in place of `--workspace`.
WORKSPACE = "ROUTEYARD_WORKSPACE"
#: Defaults of `Workspace` and `Cache`.
YARD = Path("yard")
CACHE = Path("yard/cache/embeddings")


def sealed_off(out: Path | None) -> Path | None:
    """The path a command may write to: any but one in a release, whose seal it would break.

    Raises:
        BadInput: it is a release, or is in one.
    """
    if out is not None:
        from routeyard.pipelines.release.storage import outside_releases

        outside_releases(out)
    return out


def comma_list(text: str) -> list[str]:
    """The names in a text with commas between."""
    return [word.strip() for word in text.split(",") if word.strip()]


def _workspace(**more: Any) -> Any:
    return typer.Option(
        "--workspace", "-w", envvar=WORKSPACE, show_envvar=True, **more
    )  # fmt: skip


Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
#: A workspace that is only read, and one that is written to.
Workspace = Annotated[Path, _workspace()]
WrittenWorkspace = Annotated[Path, _workspace(callback=sealed_off)]
#: A path to write to.
WrittenPath = Annotated[Path, typer.Option(callback=sealed_off)]
OptionalWrittenPath = Annotated[Path | None, typer.Option(callback=sealed_off)]
Jobs = Annotated[int, typer.Option(min=1)]
Shards = Annotated[int, typer.Option(min=1)]
ReaskTruncated = Annotated[int | None, typer.Option(min=1)]
Map = Annotated[str | None, typer.Option("--map", metavar="ROLE=COLUMN,…")]
Models = Annotated[str | None, typer.Option("--models", metavar="A,B,…")]
Embed = Annotated[bool, typer.Option("--embed")]
Resamples = Annotated[int, typer.Option(min=100)]
Plan = Annotated[bool, typer.Option("--plan")]


# Results as values that JSON can hold.


def plain(value: Any) -> Any:
    """A result as JSON holds it: paths and dates as text, tables as rows, no NaN.

    Raises:
        TypeError: the value is of a kind that has no form in JSON.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # JSON has no NaN: what is not known is null, here as in the tables.
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Iterator):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, date):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "to_pylist"):  # an Arrow table or column
        return plain(value.to_pylist())
    if hasattr(value, "item"):  # a NumPy scalar
        return plain(value.item())
    if hasattr(value, "__fspath__") or hasattr(value, "as_tuple"):
        return str(value)  # a path; a decimal keeps its digits
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"a result holds a {type(value).__name__}, which JSON has no form for")


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

    from routeyard.schemas.text import spreadsheet

    def cell(value: object) -> object:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 0, not 0.0
        return spreadsheet(" | ".join(map(str, value)) if isinstance(value, list) else value)

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(cell, table.column_names))
        columns = [column.to_pylist() for column in table.columns]
        writer.writerows(map(cell, row) for row in zip(*columns, strict=True))
