"""An answer as text or file: table, CSV, JSON, Markdown, Parquet."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.errors import BadInput, UnknownName, did_you_mean
from routeyard.pipelines.io.staging import replacing
from routeyard.schemas.untrusted_text import markdown, one_line, spreadsheet

_ENDINGS = {".csv": "csv", ".json": "json", ".md": "markdown"}
#: Signs of one cell that a person is shown.
_WIDEST = 80


def to_text(answer: pa.Table, format: str) -> str:
    """The answer as `table`, `csv`, `json` or `markdown`; ends in a newline.

    Null is an empty field in CSV, `null` in JSON and `–` for people. A text that a
    spreadsheet would run as a formula has an apostrophe before it in CSV.
    """
    if format == "table":
        return _table(answer)
    return "".join(_PIECES[format](answer.schema, answer.to_batches()))


def ending(path: Path) -> str:
    """The ending of a file that an answer can be written to.

    Raises:
        UnknownName: it is not one of `.csv`, `.json`, `.md`, `.parquet`.
    """
    known = [*_ENDINGS, ".parquet"]
    if path.suffix not in known:
        raise UnknownName(
            f"no format is known by the ending {path.suffix!r}",
            where=str(path),
            next_step=did_you_mean(path.suffix, known),
        )
    return path.suffix


def write_answer(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> int:
    """Write rows as they come, as the ending of `path` says; returns how many.

    The file appears when it is whole; what was there stays when the query fails.

    Raises:
        UnknownName: the ending is not known.
    """
    kind, rows = ending(path), 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    with replacing(path) as part:
        if kind == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(part, schema, compression="zstd") as writer:
                for batch in counted():
                    writer.write_batch(batch)
        else:
            with part.open("w", encoding="utf-8", newline="\n") as stream:
                stream.writelines(_PIECES[_ENDINGS[kind]](schema, counted()))
    return rows


def _csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(spreadsheet, schema.names))
    for batch in batches:
        for row in _rows(batch):
            writer.writerow(["" if value is None else spreadsheet(_plain(value)) for value in row])
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def _json(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    names = schema.names
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(
            f"two columns of the answer are called {twice[0]!r}, and an object holds one",
            next_step="name them apart with AS",
        )
    before = "[\n"
    for batch in batches:
        for row in _rows(batch):
            text = json.dumps(
                dict(zip(names, row, strict=True)), ensure_ascii=False, indent=2, default=str
            )
            yield before + textwrap.indent(text, "  ")
            before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _markdown(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    numeric = [_is_number(field.type) for field in schema]
    yield "| " + " | ".join(map(_cell, schema.names)) + " |\n"
    yield "| " + " | ".join("---:" if n else "---" for n in numeric) + " |\n"
    for batch in batches:
        for row in _rows(batch):
            yield "| " + " | ".join(_cell(_short(v)) for v in row) + " |\n"


def _table(answer: pa.Table) -> str:
    rows = [[one_line(_short(value), _WIDEST) for value in row] for row in _rows(answer)]
    names = [one_line(name, _WIDEST) for name in answer.column_names]
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
    numeric = [_is_number(field.type) for field in answer.schema]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(names), rule, *map(line, rows), f"({answer.num_rows:,} rows)"]) + "\n"


def _rows(answer: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    named = zip(answer.schema.names, answer.columns, strict=True)
    columns = [_values(name, column) for name, column in named]
    return list(zip(*columns, strict=True)) if columns else []


def _values(name: str, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Python's values of a column.

    Raises:
        BadInput: one is outside what Python can hold, such as a date after the year 9999.
    """
    try:
        found: list[Any] = column.to_pylist()
        if pa.types.is_decimal(column.type) and column.type.scale == 0:
            return [value if value is None else int(value) for value in found]  # a HUGEINT
    except (OverflowError, ValueError) as error:
        raise BadInput(
            f"the column {name!r} holds a value that cannot be shown: {error}",
            where="the answer of the query",
            next_step=f"ask for CAST({name} AS VARCHAR), or --out FILE.parquet",
        ) from error
    return found


def _plain(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if _nested(value) else value


def _nested(value: Any) -> bool:
    return isinstance(value, list | dict)


def _short(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(_plain(value))


def _cell(text: str) -> str:
    return markdown(one_line(text, _WIDEST))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


_PIECES: dict[str, Callable[[pa.Schema, Iterable[pa.RecordBatch]], Iterator[str]]] = {
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
}
