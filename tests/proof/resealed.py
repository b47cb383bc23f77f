"""An honest release written once more with a lie in it, sealed as `write_release` seals."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.pipelines.release.build import write_release
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.pipelines.verify.evidence import Proof
from routeyard.pipelines.verify.prove import verify
from routeyard.schemas import CONTRACTS

Tables = dict[str, pa.Table]
#: Changes the tables, or the arguments of `write_release`, in place.
Lie = Callable[[Tables, dict[str, Any]], None]


def contents(release: Path) -> tuple[Tables, dict[str, Any]]:
    """Tables and further arguments with which `write_release` makes the release again."""
    manifest = read_manifest(release)
    tables = {
        name: CONTRACTS[name].conform(pq.read_table(release / entry.file), where=name)
        for name, entry in manifest.tables.items()
        if name != "outcomes"
    }
    facts = {
        "recipe": copy.deepcopy(manifest.recipe),
        "figures": copy.deepcopy(manifest.figures),
        "fingerprints": dict(manifest.stages),
        "sources": copy.deepcopy(manifest.sources),
        "waivers": [waiver.model_dump() for waiver in manifest.waivers],
        "render_card": render,
        "render_files": None,
    }
    return tables, facts


def resealed(release: Path, root: Path, lie: Lie | None = None) -> Path:
    """The release with a lie in it."""
    tables, facts = contents(release)
    if lie is not None:
        lie(tables, facts)
    return write_release(tables, root=root, **facts).path


def verified(release: Path, **settings: Any) -> Proof:
    """What `routeyard verify` finds."""
    return verify(release, render_card=render, render_files=render_files, **settings)


def put(table: pa.Table, rows: Any = True, **columns: Any) -> pa.Table:
    """A table with other values in some rows; a function gets the old values of a column."""
    chosen = np.full(table.num_rows, True) if rows is True else np.asarray(rows)
    for name, value in columns.items():
        old = table.column(name).to_pylist()
        new = [
            (value(one) if callable(value) else value) if here else one
            for one, here in zip(old, chosen, strict=True)
        ]
        field = table.schema.field(name)
        table = table.set_column(
            table.schema.get_field_index(name), field, pa.array(new, type=field.type)
        )
    return table


def where(table: pa.Table, column: str, value: Any) -> Any:
    """Rows of a table that have a value."""
    return np.asarray(pc.fill_null(pc.equal(table.column(column), value), False))
