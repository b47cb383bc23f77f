"""Preference records in and out of the field's files: CSV, JSONL and Parquet.

The form is that of the arena preference data and of the routers trained on it:
`id, model_a, model_b, prompt, response_a, response_b, winner_model_a,
winner_model_b, winner_tie`, where prompt and responses are JSON lists with one
text per turn.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.files import format_of, rows
from routeyard.pipelines.io.staging import replacing
from routeyard.schemas import PREFERENCES
from routeyard.schemas.untrusted_text import guarded, unguarded

TEXTS = ("prompt", "response_a", "response_b")
WINNERS = ("winner_model_a", "winner_model_b", "winner_tie")
COLUMNS = ("id", "model_a", "model_b", *TEXTS, *WINNERS)
#: What else our own files say; other programs may leave these columns unread.
MORE = ("query_id", "se_a", "se_b", "delta", "basis", "estimator", "backend")

_SCHEMA = pa.schema(
    [(name, pa.int64() if name in WINNERS else pa.string()) for name in COLUMNS]
    + [(name, pa.float64() if name in ("se_a", "se_b", "delta") else pa.string()) for name in MORE]
)


def import_preferences(path: Path) -> pa.Table:
    """`preferences` rows of a file in the field's form.

    A text that is not a JSON list is one turn. Where the file carries no
    `query_id`, it is made from the prompt, so that records on one prompt share
    it; where it carries no `basis`, the basis is `imported`.

    Raises:
        SourceError: a column is missing, a winner is not 0 or 1, or the turns of
            prompt and responses differ; says in which record.
        ContractError: ids are repeated or not exactly one side wins.
    """
    where = str(path)
    records = []
    for number, row in enumerate(rows(path), start=1):
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise SourceError(
                f"column {missing[0]!r} is missing",
                where=where,
                next_step=f"the form has the columns {', '.join(COLUMNS)}",
            )
        if format_of(path, None) == "csv":  # texts are lists in JSON, which no spreadsheet runs
            row = {k: unguarded(v) if isinstance(v, str) and k not in TEXTS else v
                   for k, v in row.items()}  # fmt: skip
        records.append(_record(row, f"{where}, record {number}"))
    return PREFERENCES.from_rows(records, where=where)


def export_preferences(preferences: pa.Table, path: Path, *, entropies: bool = True) -> Path:
    """Write `preferences` in the field's form, in the order of the table.

    Args:
        entropies: Also write our own columns (`MORE`); without them the file has
            exactly the nine of the form.

    The file is written beside its place and renamed: it is whole or not there.
    """
    kind = format_of(path, None)
    names = COLUMNS + MORE if entropies else COLUMNS
    records = (_exported(row, names) for row in PREFERENCES.conform(preferences).to_pylist())
    with replacing(path) as part:
        _write(records, part, kind, names)
    return path


def _write(
    records: Iterator[dict[str, Any]], path: Path, kind: str, names: tuple[str, ...]
) -> None:
    if kind == "parquet":
        schema = pa.schema([_SCHEMA.field(name) for name in names])
        pq.write_table(pa.Table.from_pylist(list(records), schema=schema), path, compression="zstd")
        return
    with path.open("w", encoding="utf-8", newline="") as stream:
        if kind == "csv":
            writer = csv.DictWriter(stream, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: guarded(one) for name, one in row.items()} for row in records)
        else:
            stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in records)


def _exported(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    record = {name: row[name] for name in names}
    if row["n_turns"] == 1:
        for name in TEXTS:
            record[name] = json.dumps([row[name]], ensure_ascii=False)
    return record


def _record(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    turns = {name: _turns(row[name]) for name in TEXTS}
    lengths = {len(texts) for texts in turns.values()}
    if len(lengths) != 1 or not lengths.pop():
        raise SourceError(
            "prompt and responses have different numbers of turns: "
            + ", ".join(f"{name} {len(texts)}" for name, texts in turns.items()),
            where=where,
            next_step="each is a JSON list with one text per turn",
        )
    n_turns = len(turns["prompt"])
    record: dict[str, Any] = {"n_turns": n_turns}
    for name, texts in turns.items():
        record[name] = texts[0] if n_turns == 1 else json.dumps(texts, ensure_ascii=False)
    if record["prompt"] is None:
        raise SourceError("the prompt is empty", where=where, next_step="leave the record out")
    for name in ("id", "model_a", "model_b"):
        record[name] = str(row[name])
    for name in WINNERS:
        record[name] = _flag(row[name], name, where)
    for name in ("se_a", "se_b", "delta"):
        value = row.get(name)
        record[name] = None if value in (None, "") else float(value)
    for name in ("estimator", "backend"):
        record[name] = row.get(name) or None
    record["basis"] = row.get("basis") or "imported"
    digest = hashlib.sha256(record["prompt"].encode("utf-8")).hexdigest()
    record["query_id"] = row.get("query_id") or "q" + digest[:20]
    return record


def _turns(text: object) -> list[str | None]:
    """Texts of a JSON list of texts and nulls; anything else is one turn."""
    if isinstance(text, list):
        found: object = text
    else:
        try:
            found = json.loads(str(text))
        except (ValueError, RecursionError):
            found = None
    if isinstance(found, list) and all(turn is None or isinstance(turn, str) for turn in found):
        return [None if turn is None else _encodable(turn) for turn in found]
    return [None if text is None else _encodable(str(text))]


def _encodable(text: str) -> str:
    # The public data escape halves of emoji (`\ud83d`), which no file can hold as UTF-8.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _flag(value: object, name: str, where: str) -> int:
    known = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
    flag = known.get(str(value).strip().casefold())
    if flag is None:
        raise SourceError(
            f"{name} is {value!r}", where=where, next_step="winners are 0 or 1, one of three is 1"
        )
    return flag
