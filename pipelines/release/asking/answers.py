"""An answer as text or file: table, CSV, JSON, Markdown, Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.errors import UnknownName, did_you_mean


def to_text(answer: pa.Table, format: str) -> str:
    """The answer as `table`, `csv`, `json` or `markdown`; ends in a newline.

    Null is an empty field in CSV, `null` in JSON and `–` for people.
    """
    return _FORMATS[format](answer)


def write_answer(answer: pa.Table, path: Path) -> None:
    """Write the answer as the ending of `path` says.

    Raises:
        UnknownName: the ending is none of `.csv`, `.json`, `.md`, `.parquet`.
    """
    endings = {".csv": "csv", ".json": "json", ".md": "markdown"}
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(answer, path, compression="zstd")
    elif path.suffix in endings:
        path.write_text(to_text(answer, endings[path.suffix]), encoding="utf-8", newline="\n")
    else:
        raise UnknownName(
            f"no format is known by the ending {path.suffix!r}",
            where=str(path),
            next_step=did_you_mean(path.suffix, [*endings, ".parquet"]),
        )


def _csv(answer: pa.Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.column_names)
    for row in _rows(answer):
        writer.writerow(["" if value is None else _plain(value) for value in row])
    return out.getvalue()


def _json(answer: pa.Table) -> str:
    rows = answer.to_pylist()
    return json.dumps(rows, ensure_ascii=False, indent=2, default=str) + "\n"


def _markdown(answer: pa.Table) -> str:
    numeric = [_is_number(field.type) for field in answer.schema]
    lines = [
        "| " + " | ".join(map(_cell, answer.column_names)) + " |",
        "| " + " | ".join("---:" if n else "---" for n in numeric) + " |",
    ]
    lines += ["| " + " | ".join(_cell(_short(v)) for v in row) + " |" for row in _rows(answer)]
    return "\n".join(lines) + "\n"


def _table(answer: pa.Table) -> str:
    rows = [[_one_line(_short(value)) for value in row] for row in _rows(answer)]
    names = answer.column_names
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


def _rows(answer: pa.Table) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in answer.columns]
    return list(zip(*columns, strict=True)) if columns else []


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


def _one_line(text: str) -> str:
    """Printable text on one line: answers of models hold line breaks and terminal codes."""
    flat = "".join(sign if sign.isprintable() else " " for sign in text)
    return flat if len(flat) <= 80 else flat[:79] + "…"


def _cell(text: str) -> str:
    return _one_line(text).replace("\\", "\\\\").replace("|", "\\|")


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


_FORMATS: dict[str, Callable[[pa.Table], str]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
}
