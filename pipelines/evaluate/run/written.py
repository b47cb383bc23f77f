"""The files of an evaluation, read back: anybody's, so each value is what its column says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
from annotated_types import Len
from pydantic import BaseModel, ConfigDict, ValidationError

from routeyard.pipelines.errors import BadInput, SourceError
from routeyard.pipelines.io.untrusted import bounded, short_text
from routeyard.schemas.tables import RESULTS

#: Columns that say something in each row.
_FILLED = frozenset(
    {"router", "metric", "split", "model_id", "share", "group", "change", "first", "second", "x"}
)
#: Bytes of `evaluation.json`; it holds some facts and a ranking.
_MOST = 10_000_000


class WrittenFacts(BaseModel):
    """What a page reads of `facts`."""

    model_config = ConfigDict(strict=True)
    n_test: int
    n_train: int
    n_validation: int
    n_models: int
    resamples: int
    coverage: float
    scheme: str
    best_single: str
    clustered_by: str | None = None
    missing: list[str] | None = None
    bands: Annotated[list[float], Len(4, 4)] | None = None
    costs_lacking: dict[str, list[str] | dict[str, Any]] | None = None
    validation: dict[str, float] | None = None
    encoder: str | None = None
    on_encoder: list[str] = []
    own: list[str] = []
    order_undecided: dict[str, list[str | list[str]]] = {}


class WrittenRank(BaseModel):
    """What a page reads of each entry of `ranking`."""

    model_config = ConfigDict(strict=True)
    router: str
    best_place: int
    worst_place: int


class WrittenEvaluation(BaseModel):
    """What a page reads of `evaluation.json`."""

    facts: WrittenFacts | None = None
    ranking: list[WrittenRank] | None = None


def results_table(path: Path, schema: pa.Schema) -> pa.Table:
    """A table of results: the columns of `schema`, with its types.

    Raises:
        BadInput: it is damaged, lacks a column, holds values of another kind, or rows that
            name nothing.
    """
    found = _typed(path, schema)
    if not found.column_names:
        return schema.empty_table()  # as it was written where there was no row
    lacks = [name for name in schema.names if name not in found.column_names]
    if lacks:
        raise _broken(path, f"it has no column {lacks[0]!r}")
    return found


def _typed(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        found = pq.read_table(bounded(path))
        for field in schema:
            if field.name in found.column_names:
                column = found.column(field.name).cast(field.type)
                found = found.set_column(found.column_names.index(field.name), field, column)
    except (pa.ArrowException, KeyError) as error:
        raise _broken(path, str(error)) from error
    for name in schema.names:
        if name in _FILLED & set(found.column_names) and found.column(name).null_count:
            raise _broken(path, f"a row has no {name}")
    return found


def metrics_table(path: Path) -> pa.Table | None:
    """A table of metrics, None when the file is another table.

    Raises:
        BadInput: as `results_table`.
    """
    found = _typed(path, RESULTS["metrics"])
    return found if found.column_names == RESULTS["metrics"].names else None


def told(folder: Path) -> dict[str, Any]:
    """What `evaluation.json` says; nothing where there is no such file.

    Raises:
        BadInput: it cannot be read, is no object, or `facts` and `ranking` are not what
            `evaluate` writes.
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
    try:
        facts = found.get("facts")
        WrittenEvaluation(facts=None if facts == {} else facts, ranking=found.get("ranking"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _broken(path, f"{where}: {first['msg']}") from error
    return {key: value for key, value in found.items() if value is not None}


def _broken(path: Path, why: str) -> BadInput:
    return BadInput(
        f"{path.name} is no table of an evaluation: {(why.splitlines() or ['damaged'])[0][:300]}",
        where=str(path),
        next_step="`routeyard evaluate RELEASE --out FOLDER` writes it",
    )
