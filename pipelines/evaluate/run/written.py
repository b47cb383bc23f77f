"""The files of an evaluation, read back: anybody's, so each value is what its column says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from annotated_types import Len
from pydantic import BaseModel, ConfigDict, ValidationError

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.untrusted import bounded, short_text
from routeyard.schemas.contracts import RESULTS
from routeyard.schemas.errors import BadInput

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


# Results of many evaluations, read from their folders into one table.


def read_leaderboard(results: Iterable[Path]) -> tuple[pa.Table, list[str]]:
    """One row per result and router, best accuracy first; and the releases they are of.

    Args:
        results: `metrics.parquet` files, or folders that hold one.

    Raises:
        BadInput: there is no such file, or it is not an evaluation's table of metrics.
    """
    found, releases = {}, {}
    for path in results:
        file = path / "metrics.parquet" if path.is_dir() else path
        if not file.is_file():
            raise BadInput(
                "there is no metrics.parquet",
                where=str(path),
                next_step="name a folder that `routeyard evaluate … --out FOLDER` wrote",
            )
        table = metrics_table(file)
        if table is None:
            raise BadInput("this is no metrics table of an evaluation", where=str(file))
        name = file.parent.name or str(file)
        found[name] = table
        if release := _release(file.parent):
            releases[name] = release
    return leaderboard(found, releases=releases), sorted(set(releases.values()))


def _release(folder: Path) -> str | None:
    """Release and split scheme of an evaluation; None where the folder does not record them."""
    about = told(folder)
    try:
        of = about["release"]
        return f"{of['name']} {of['version']} ({about['facts']['scheme']})"
    except (KeyError, TypeError):
        return None


def leaderboard(
    results: Mapping[str, pa.Table],
    *,
    releases: Mapping[str, str] | None = None,
    split: str = "test",
) -> pa.Table:
    """One row per (result file, router) with the metrics as columns, best accuracy first.

    Where labels of the chosen models are missing, their place is that of `accuracy_floor`, which
    counts them as wrong. `questions` says over how many of the test questions the accuracy is,
    such as `117 of 120`; null in results of versions that did not store it.

    Args:
        results: name of a result → its metrics table.
        releases: name of a result → release and scheme that it is of, where that is known.
    """
    of = releases or {}
    tested = {
        result: table.filter(pc.equal(table.column("split"), split)).to_pylist()
        for result, table in sorted(results.items())
    }
    names = {row["metric"] for part in tested.values() for row in part}
    names -= {"result", "release", "router", "questions"}  # which say what a row is of
    rows: list[dict[str, object]] = []
    for result, part in tested.items():
        asked = max((row.get("n") or 0 for row in part), default=0)
        for router in sorted({row["router"] for row in part}):
            values = {row["metric"]: row for row in part if row["router"] == router}
            line = {"result": result, "release": of.get(result), "router": router}
            line |= {name: values.get(name, {}).get("value") for name in sorted(names)}
            if "accuracy" in values:
                n = values["accuracy"].get("n")
                line["questions"] = f"{n:,} of {asked:,}" if n is not None else None
                line["accuracy_low"] = values["accuracy"]["low"]
                line["accuracy_high"] = values["accuracy"]["high"]
            rows.append(line)
    rows.sort(key=_place)
    return (
        pa.Table.from_pylist(rows)
        if rows
        else pa.table({"result": [], "release": [], "router": []})
    )


def _place(row: dict[str, object]) -> tuple[float, str, str]:
    floor = row.get("accuracy_floor")
    accuracy = row.get("accuracy") if floor is None else floor
    return (
        -accuracy if isinstance(accuracy, float) else 1.0,
        str(row["result"]),
        str(row["router"]),
    )
