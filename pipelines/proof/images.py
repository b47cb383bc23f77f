"""Images of questions: the table against the questions, and files at hand against its hashes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.images import images_table
from routeyard.pipelines.io.files import sha256
from routeyard.pipelines.io.image_files import MOST_BYTES
from routeyard.pipelines.proof.claims import Results, believed, contradiction, proved
from routeyard.pipelines.proof.evidence import Evidence
from routeyard.schemas.images import MARK


def images_of_questions(evidence: Evidence) -> Results:
    """Images whose row is not what their question says, or whose file has another hash."""
    if not evidence.has("queries") or not evidence.built:
        return
    queries = evidence.table("queries", ["query_id", "prompt", "metadata"])
    expected = images_table(queries)
    rows = evidence.whole("images").to_pylist()
    if not expected.num_rows and not rows:
        return
    if wrong := _unlike(expected.to_pylist(), rows, queries):
        what = "images are not those that the questions name and mark"
        yield contradiction("images", len(wrong), len(rows), what, wrong)
        return
    yield proved("images", f"{len(rows):,} images are those that the questions name and mark")
    files = {row["sha256"]: row["reference"] for row in rows if row["sha256"] is not None}
    if addresses := sum(row["sha256"] is None for row in rows):
        yield believed("images", f"{addresses:,} addresses: what they lead to has no hash")
    if files:
        yield from _files(files, evidence.images)


def _unlike(
    expected: list[dict[str, Any]], rows: list[dict[str, Any]], queries: pa.Table
) -> list[str]:
    """Rows of the table `images` that are not what the questions say, or are not marked there."""
    stated = {(row["query_id"], row["place"]): row for row in rows}
    wrong = [
        f"{row['query_id']}|{row['place']}"
        for row in expected
        if stated.pop((row["query_id"], row["place"]), None) != row
    ]
    wrong += [f"{query}|{place}" for query, place in stated]
    named = pa.array([row["query_id"] for row in rows], pa.string())
    marked = queries.filter(pc.is_in(queries.column("query_id"), named)).to_pylist()
    shown = {row["query_id"]: set(MARK.findall(row["prompt"])) for row in marked}
    wrong += [
        f"{row['query_id']} has no mark of {row['image_id']}"
        for row in rows
        if row["image_id"] not in shown.get(row["query_id"], ())
    ]
    return wrong


def _files(files: Mapping[str, str | None], folder: Path | None) -> Results:
    """Whether a folder holds the files of these hashes (hash → path)."""
    if folder is None:
        yield believed(
            "images", f"{len(files):,} files, which a release does not hold (`--images`)"
        )
        return
    found = _hashes(folder)
    lost = [
        f"{name or digest} is {_state(folder, name)}"
        for digest, name in files.items()
        if digest not in found
    ]
    if lost:
        what = f"images have no file with their SHA-256 in {folder}"
        yield contradiction("images", len(lost), len(files), what, lost)
    else:
        yield proved("images", f"{len(files):,} files have the stated SHA-256")


def _hashes(folder: Path) -> set[str]:
    """SHA-256 of every file in a folder that may be an image."""
    return {
        sha256(one)
        for one in folder.rglob("*")
        if one.is_file() and one.stat().st_size <= MOST_BYTES
    }


def _state(folder: Path, name: str | None) -> str:
    safe = name is not None and ".." not in Path(name).parts and "\0" not in name
    return "another file" if safe and (folder / str(name)).is_file() else "missing"
