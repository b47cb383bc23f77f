"""Images of questions: the table against the questions, and files at hand against its hashes."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from routeyard.pipelines.ingest.images import images_table
from routeyard.pipelines.io.files import sha256
from routeyard.pipelines.io.image_files import ENDINGS, MOST_BYTES
from routeyard.pipelines.proof.claims import Results, believed, contradiction, proved
from routeyard.pipelines.proof.evidence import Evidence
from routeyard.schemas.images import MARK


def images_of_questions(evidence: Evidence) -> Results:
    """Images whose row is not what their question says, or whose file has another hash."""
    if not evidence.has("queries") or not evidence.built:
        return
    queries = evidence.table("queries", ["query_id", "prompt", "metadata"])
    expected = images_table(queries)
    if not expected.num_rows and not evidence.rows("images"):
        return
    rows = evidence.whole("images").to_pylist()
    stated = {(row["query_id"], row["place"]): row for row in rows}
    wrong = [
        f"{row['query_id']}|{row['place']}"
        for row in expected.to_pylist()
        if stated.pop((row["query_id"], row["place"]), None) != row
    ]
    wrong += [f"{query}|{place}" for query, place in stated]
    marked = queries.filter(pc.is_in(queries.column("query_id"), expected.column("query_id")))
    prompts = dict(
        zip(*(marked.column(c).to_pylist() for c in ("query_id", "prompt")), strict=True)
    )
    shown = {query: set(MARK.findall(prompt)) for query, prompt in prompts.items()}
    wrong += [
        f"{row['query_id']} has no mark of {row['image_id']}"
        for row in rows
        if row["image_id"] not in shown.get(row["query_id"], ())
    ]
    if wrong:
        what = "images are not those that the questions name and mark"
        yield contradiction("images", len(wrong), len(rows), what, wrong)
        return
    yield proved("images", f"{len(rows):,} images are those that the questions name and mark")
    files = {row["sha256"]: row["reference"] for row in rows if row["sha256"] is not None}
    if addresses := len(rows) - sum(row["sha256"] is not None for row in rows):
        yield believed("images", f"{addresses:,} addresses: what they lead to has no hash")
    if evidence.images is None:
        yield believed(
            "images", f"{len(files):,} files, which a release does not hold (`--images`)"
        )
        return
    found = _hashes(evidence.images)
    lost = [
        f"{name or digest} is {_state(evidence.images, name)}"
        for digest, name in files.items()
        if digest not in found
    ]
    if lost:
        what = f"images have no file with their SHA-256 in {evidence.images}"
        yield contradiction("images", len(lost), len(files), what, lost)
    elif files:
        yield proved("images", f"{len(files):,} files have the stated SHA-256")


def _hashes(folder: Path) -> set[str]:
    """SHA-256 of every image file in a folder."""
    return {
        sha256(one)
        for one in folder.rglob("*")
        if one.suffix.lower() in ENDINGS and one.is_file() and one.stat().st_size <= MOST_BYTES
    }


def _state(folder: Path, name: str | None) -> str:
    safe = name is not None and ".." not in Path(name).parts and "\0" not in name
    return "another file" if safe and (folder / str(name)).is_file() else "missing"
