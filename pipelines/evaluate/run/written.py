"""The files of an evaluation, read back: anybody's, so each value is what its column says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import BadInput, SourceError
from pipelines.evaluate.rows import METRICS_SCHEMA
from pipelines.io.untrusted import bounded, short_text

#: Columns that say something in each row.
_FILLED = frozenset(
    {"router", "metric", "split", "model_id", "share", "group", "change", "first", "second", "x"}
)
#: Columns that evaluations of earlier versions do not have.
_LATE = frozenset({"n", "n10", "n01", "hard_share"})
#: What a page reads of `facts` and of each entry of `ranking`, where there are any.
_FACTS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("n_test", "n_train", "n_validation", "n_models", "resamples"), int),
    "coverage": (int, float),
    **dict.fromkeys(("scheme", "best_single"), str),
}
_RANK: dict[str, type | tuple[type, ...]] = {"router": str, "best_place": int, "worst_place": int}
#: Bytes of `evaluation.json`; it holds some facts and a ranking.
_MOST = 10_000_000


def results_table(path: Path, schema: pa.Schema) -> pa.Table:
    """A table of results: the columns of `schema`, but for late ones, with its types.

    Raises:
        BadInput: it is damaged, lacks a column, holds values of another kind, or rows that
            name nothing.
    """
    found = _typed(path, schema)
    if not found.column_names:
        return schema.empty_table()  # as it was written where there was no row
    lacks = [name for name in schema.names if name not in {*found.column_names, *_LATE}]
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
    """A table of metrics, None when the file is another table; older ones have no column `n`.

    Raises:
        BadInput: as `results_table`.
    """
    found = _typed(path, METRICS_SCHEMA)
    known = found.column_names in (METRICS_SCHEMA.names, METRICS_SCHEMA.names[:-1])
    return found if known else None


def told(folder: Path) -> dict[str, Any]:
    """What `evaluation.json` says; nothing for an evaluation of before it was written.

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
    if (why := _odd_facts(found.get("facts"))) or (why := _odd_ranking(found.get("ranking"))):
        raise _broken(path, why)
    return {key: value for key, value in found.items() if value is not None}


def _odd_facts(facts: Any) -> str | None:
    """Why the facts are none; there may be none at all."""
    if not facts and isinstance(facts, dict | None):
        return None
    if why := _odd(facts, _FACTS, "facts"):
        return why
    lacking, missing = facts.get("costs_lacking") or {}, facts.get("missing") or []
    by, bands = facts.get("clustered_by") or "", facts.get("bands") or [0.0] * 4
    if not isinstance(by, str) or not _all(missing, str):
        return "facts.clustered_by or facts.missing is no text"
    if not _all(bands, (int, float)) or len(bands) != 4:
        return "facts.bands are not four numbers"
    if not isinstance(lacking, dict) or not all(
        _all(models, str) for models in lacking.values() if isinstance(models, list)
    ):
        return "facts.costs_lacking names no models"
    return None


def _odd_ranking(ranking: Any) -> str | None:
    if not isinstance(ranking, list | None):
        return "ranking is no list"
    whys = (_odd(rank, _RANK, "ranking") for rank in ranking or [])
    return next(filter(None, whys), None)


def _odd(said: Any, kinds: dict[str, type | tuple[type, ...]], name: str) -> str | None:
    """Which value is none of its kind."""
    if not isinstance(said, dict):
        return f"{name} is no object"
    return next(
        (
            f"{name}.{key} is none"
            for key, kind in kinds.items()
            if not isinstance(said.get(key), kind)
        ),
        None,
    )


def _all(values: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _broken(path: Path, why: str) -> BadInput:
    return BadInput(
        f"{path.name} is none of an evaluation: {(why.splitlines() or ['damaged'])[0][:300]}",
        where=str(path),
        next_step="`routeyard evaluate RELEASE --out FOLDER` writes it",
    )
