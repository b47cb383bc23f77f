"""The files of an evaluation, read back: anybody's, so each value is what its column says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import BadInput, SourceError
from pipelines.evaluate.rows import METRICS_SCHEMA
from pipelines.files import short_text
from pipelines.parquet.bounds import bounded

#: Columns that name something in each row.
_NAMES = frozenset({"router", "metric", "split"})
#: Bytes of `evaluation.json`; it holds some facts and a ranking.
_MOST = 10_000_000


def results_table(path: Path, schema: pa.Schema) -> pa.Table:
    """A table of results; columns that `schema` knows have its types.

    Raises:
        BadInput: it is damaged, holds values of another kind, or rows that name nothing.
    """
    try:
        found = pq.read_table(bounded(path))
        for field in schema:
            if field.name in found.column_names:
                column = found.column(field.name).cast(field.type)
                found = found.set_column(found.column_names.index(field.name), field, column)
    except (pa.ArrowException, KeyError) as error:
        raise _broken(path, str(error)) from error
    for name in _NAMES & set(found.column_names):
        if found.column(name).null_count:
            raise _broken(path, f"a row has no {name}")
    return found


def metrics_table(path: Path) -> pa.Table | None:
    """A table of metrics, None when the file is another table; older ones have no column `n`.

    Raises:
        BadInput: as `results_table`.
    """
    found = results_table(path, METRICS_SCHEMA)
    known = found.column_names in (METRICS_SCHEMA.names, METRICS_SCHEMA.names[:-1])
    return found if known else None


def told(folder: Path) -> dict[str, Any]:
    """What `evaluation.json` says; nothing for an evaluation of before it was written.

    Raises:
        BadInput: it cannot be read, or is no object.
    """
    path = folder / "evaluation.json"
    try:
        found = json.loads(short_text(path, _MOST))
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no text
        if not isinstance(found, dict):
            raise ValueError("it is no object")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, SourceError) as error:
        raise _broken(path, str(error)) from error
    return found


def _broken(path: Path, why: str) -> BadInput:
    return BadInput(
        f"{path.name} is none of an evaluation: {(why.splitlines() or ['damaged'])[0][:300]}",
        where=str(path),
        next_step="`routeyard evaluate RELEASE --out FOLDER` writes it",
    )
