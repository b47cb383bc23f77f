"""What the participants of a leaderboard get: the release without answers to its test questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import BadInput, did_you_mean
from routeyard.pipelines.common.staging import write_json, write_parquet
from routeyard.pipelines.release.exporters.bundle import Exported, Exporter
from routeyard.pipelines.release.reader import OpenRelease
from routeyard.schemas.questions import looked_for_duplicates
from routeyard.schemas.release import usual_scheme

#: File that says of which release and split scheme the folder is.
ABOUT = "participants.json"
#: Tables that say nothing of an answer, and those of which only other questions' rows are given.
_WHOLE, _PARTS = ("models", "embeddings", "hidden_states", "duplicates"), ("labels", "outcomes")


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """Questions, splits, vectors, and labels and costs of train and validation, as Parquet.

    Of a test question the references and the metadata of its source are left out as well. Other
    split schemes are left out, since their train questions may be test questions here.
    """
    if "splits" not in release.tables:
        raise BadInput(
            "the release has no split into train and test questions",
            next_step="give the recipe a `split` section",
        )
    splits = release.arrow("splits")
    schemes = sorted(set(splits.column("scheme").to_pylist()))
    scheme = options.get("scheme") or usual_scheme(schemes)
    if scheme not in schemes:
        raise BadInput(
            f"there is no split scheme {scheme!r}", next_step=did_you_mean(str(scheme), schemes)
        )
    own = splits.filter(pc.equal(splits.column("scheme"), scheme))
    tests = own.filter(pc.equal(own.column("split"), "test")).column("query_id")
    found = {"splits": own, "queries": _blanked(release.arrow("queries"), tests)}
    known = {name for name in _WHOLE if name in release.tables}
    if not looked_for_duplicates(release.manifest.recipe):
        known.discard("duplicates")  # empty because nobody looked
    found |= {name: release.arrow(name) for name in sorted(known)}
    dropped = {}
    for name in _PARTS:
        table = release.arrow(name)
        kept = table.filter(pc.invert(pc.is_in(table.column("query_id"), value_set=_ids(tests))))
        found[name], dropped[f"{name} of test questions"] = kept, table.num_rows - kept.num_rows
    for name, table in found.items():
        write_parquet(folder / "data" / f"{name}.parquet", table)
    manifest = release.manifest
    about = {
        "format": 1, "name": manifest.name, "version": manifest.version,
        "fingerprint": manifest.fingerprint, "scheme": scheme, "test_questions": len(tests),
    }  # fmt: skip
    write_json(folder / ABOUT, about)
    files = (*(f"data/{name}.parquet" for name in found), ABOUT)
    return Exported(files, found["labels"].num_rows, {k: n for k, n in dropped.items() if n})


def _ids(column: pa.ChunkedArray) -> pa.Array:
    return pa.array(column.to_pylist(), pa.string())


def _blanked(queries: pa.Table, tests: pa.ChunkedArray) -> pa.Table:
    """Questions; those of the test split without references and without their source's metadata."""
    hidden = pc.is_in(queries.column("query_id"), value_set=_ids(tests)).to_pylist()
    for name, empty in (("references", []), ("metadata", json.dumps({}))):
        if name in queries.column_names:
            values = queries.column(name).to_pylist()
            shown = [empty if hide else value for hide, value in zip(hidden, values, strict=True)]
            field = queries.schema.field(name)
            place = queries.column_names.index(name)
            queries = queries.set_column(place, field, pa.array(shown, field.type))
    return queries


EXPORTER = Exporter("participants", "Participants of a leaderboard", ("scheme",), write)
