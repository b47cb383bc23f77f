"""Reading a release for evaluation, and writing what was found beside it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flows.show.console import counter, line
from pipelines.errors import BadInput
from pipelines.evaluate.core import Core, from_tables
from pipelines.routers.base import Queries, Router
from pipelines.staging import write_json as write_json
from schemas import CONTRACTS

#: Tables an evaluation reads; the others stay closed.
TABLES = (
    "queries", "models", "labels", "responses", "verdicts", "embeddings", "duplicates", "splits",
    "model_splits", "preferences",
)  # fmt: skip


def read_release(release: Path) -> dict[str, pa.Table]:
    """The tables of a release directory (`data/<table>.parquet`) or of a stage folder.

    Raises:
        BadInput: there is no such release, or it lacks queries, models or labels.
        ContractError: a file breaks its contract.
    """
    folder = release / "data" if (release / "data").is_dir() else release
    found: dict[str, pa.Table] = {}
    for name in TABLES:
        path = folder / f"{name}.parquet"
        parts = [path] if path.is_file() else sorted((folder / name).glob("*.parquet"))
        if parts:
            contract = CONTRACTS[name]
            tables = [contract.conform(pq.read_table(p), where=str(p)) for p in parts]
            found[name] = pa.concat_tables(tables)
    for name in ("queries", "models", "labels"):
        if name not in found:
            raise BadInput(
                f"{release} is no release: it has no table {name!r}",
                where=str(folder / f"{name}.parquet"),
                next_step="name a release directory, such as yard/releases/<name>/<version>",
            )
    return found


def out_folder(release: Path, out: Path) -> Path:
    """The folder to write to, made if need be; never the release or a folder in it."""
    here, there = out.resolve(), release.resolve()
    if here == there or there in here.parents:
        raise BadInput(
            "an evaluation is written beside a release, never into it",
            where=str(out),
            next_step="choose an --out outside the release directory",
        )
    out.mkdir(parents=True, exist_ok=True)
    return out


def with_embeddings(
    tables: dict[str, pa.Table], file: Path | None, embed: bool, cache: Path, encoder: str
) -> dict[str, pa.Table]:
    """The tables with embeddings of all queries: from a file, the release, or computed."""
    if file is not None:
        if not file.is_file():
            raise BadInput("there is no such embeddings file", where=str(file))
        contract = CONTRACTS["embeddings"]
        given = pq.read_table(file)
        missing = [c for c in ("query_id", "vector") if c not in given.column_names]
        if missing:
            raise BadInput(
                f"the embeddings file lacks column {missing[0]!r}",
                where=str(file),
                next_step="columns: query_id, vector and, if there are several encoders, encoder",
            )
        filled = {
            "encoder": pa.array([file.stem] * given.num_rows, pa.string()),
            "seen_chars": pa.nulls(given.num_rows, pa.int64()),
        }
        for name, values in filled.items():
            if name in contract.column_names and name not in given.column_names:
                given = given.append_column(name, values)
        given = given.select(contract.column_names)
        return {**tables, "embeddings": contract.conform(given, where=str(file))}
    if "embeddings" not in tables and embed:
        from pipelines.embed import embed as compute

        with counter("embed", "questions") as advance:
            found = compute(tables["queries"], encoder=encoder, cache=cache, on_progress=advance)
        return {**tables, "embeddings": found}
    return tables


def core_of(tables: dict[str, pa.Table]) -> Core:
    """Evaluation core of a release's tables."""
    names = ("queries", "models", "labels", "responses", "embeddings", "splits", "duplicates",
             "verdicts", "model_splits")  # fmt: skip
    return from_tables(**{name: tables[name] for name in names if name in tables})


def reference(name: str) -> Callable[[int], Router]:
    """Maker of a registered router; a seed is handed on where the router takes one."""
    import inspect

    from pipelines.routers import ROUTERS

    made = ROUTERS.get(name)
    return partial(_make, made, "seed" in inspect.signature(made).parameters)


def _make(made: Callable[..., Router], seeded: bool, seed: int) -> Router:
    return made(seed=seed) if seeded else made()


def from_code(target: str) -> tuple[str, Callable[[int], Router]]:
    """(name, maker) of a router class in someone's own module.

    This runs that module. It is reached only through a flag that names it.

    Raises:
        BadInput: not `module:Class`, not importable, or not a router.
    """
    module, _, attribute = target.partition(":")
    if not module or not attribute:
        raise BadInput(f"{target!r} does not name a class", next_step="write it as module:Class")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        made = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadInput(
            f"router {target!r} cannot be imported: {error}",
            next_step="run from the folder that holds the module, or install it",
        ) from error
    router = made()
    lacks = [name for name in ("fit", "scores") if not callable(getattr(router, name, None))]
    if lacks:
        raise BadInput(
            f"{target!r} is no router: it has no method {lacks[0]!r}",
            next_step="see pipelines/routers/base.py for the two methods a router has",
        )
    return getattr(router, "name", attribute), lambda seed: made()


def from_file(path: Path) -> tuple[str, Callable[[int], Router]]:
    """(name, maker) of a router that is a CSV or Parquet file of predictions."""
    from pipelines.evaluate.predictions import Predictions

    if not path.is_file():
        raise BadInput("there is no such predictions file", where=str(path))
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    else:
        from pyarrow import csv

        try:
            table = csv.read_csv(path)
        except pa.ArrowInvalid as error:
            raise BadInput(f"this is not a CSV table: {error}", where=str(path)) from error
    return path.stem, lambda seed: Predictions(table, path.stem)


def pair_scorers(
    core: Core, tables: dict[str, pa.Table], scheme: str, pair: tuple[str, str]
) -> dict[str, Callable[[Queries], np.ndarray[Any, Any]]]:
    """The pair routers, trained on the release's preferences or, without any, on its labels.

    Battles of test questions are never used.
    """
    from pipelines.routers import PAIR_ROUTERS
    from pipelines.routers.pairs.battles import from_labels, from_preferences

    if core.embeddings is None:
        return {}
    ids, split = np.array(core.query_ids), core.splits[scheme]
    if "preferences" in tables:
        vectors = dict(zip(core.query_ids, core.embeddings, strict=True))
        train = set(ids[split == "train"].tolist())
        held = frozenset(ids[split == "validation"].tolist())
        asked = set(tables["preferences"].column("query_id").to_pylist())
        battles = from_preferences(
            tables["preferences"],
            vectors,
            validation=held,
            leave_out=frozenset(asked - train - held),
        )
        line("pairs", f"trained on {len(battles.outcome)} preference records")
    else:
        battles = from_labels(core.training(scheme), *pair)
        line("pairs", f"no preferences in the release: trained on {len(battles.outcome)} labels")
    found: dict[str, Callable[[Queries], np.ndarray[Any, Any]]] = {}
    for name in PAIR_ROUTERS.names():
        router = PAIR_ROUTERS.get(name)()
        router.fit(battles, *pair)
        found[name] = router.scores
    return found


def write_tables(out: Path, tables: dict[str, pa.Table | None]) -> None:
    """Parquet files, written beside and renamed, zstd."""
    for name, table in tables.items():
        if table is not None:
            unfinished = out / f".{name}.{os.getpid()}"
            pq.write_table(table, unfinished, compression="zstd")
            unfinished.replace(out / f"{name}.parquet")


def parse_pair(text: str | None) -> tuple[str, str] | None:
    """`small,large`."""
    if text is None:
        return None
    names: Sequence[str] = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise BadInput(f"{text!r} is no pair of models", next_step="write it as small,large")
    return names[0], names[1]
