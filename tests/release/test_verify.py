"""Each corruption of a release is found and named."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.release.manifest import yank
from routeyard.pipelines.verify.database import Finding, verify_release


def _findings(release: Path) -> list[Finding]:
    return verify_release(release, render_card=render)


def _edit_manifest(release: Path, change: Callable[[dict], None], *, reseal: bool = False) -> None:
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    if reseal:
        from routeyard.schemas.release import Manifest

        path.write_text(Manifest.model_validate(manifest).sealed().to_json())
    else:
        path.write_text(json.dumps(manifest))


def _rewrite(release: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Rewrite a table and its checksum: a careful forger, whom only the content gives away."""
    import hashlib

    path = release / "data" / f"{table}.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def register(manifest: dict) -> None:
        entry = {"sha256": digest, "size": path.stat().st_size}
        manifest["files"][f"data/{table}.parquet"] = entry

    _edit_manifest(release, register, reseal=True)


def _truncate(release: Path) -> None:
    path = release / "data/labels.parquet"
    path.write_bytes(path.read_bytes()[:-200])


def _flip_byte(release: Path) -> None:
    path = release / "data/responses.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def _swap(release: Path) -> None:
    one, two = release / "data/labels.parquet", release / "data/splits.parquet"
    one.rename(release / "x")
    two.rename(one)
    (release / "x").rename(two)


def _lower(release: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        scores = pa.array([0.0] * table.num_rows)
        return table.set_column(2, table.schema.field("score"), scores)

    _rewrite(release, "labels", change)


def _orphan(release: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.slice(1)

    _rewrite(release, "queries", change)


def _repeat(release: Path) -> None:
    _rewrite(release, "splits", lambda table: pa.concat_tables([table, table]))


def _database(release: Path) -> None:
    with duckdb.connect(str(release / "tiny.duckdb")) as connection:
        connection.execute("UPDATE numbered.labels SET score = 1.0, correct = true")


def _card(release: Path) -> None:
    path = release / "README.md"
    path.write_text(path.read_text().replace("| queries | 6 |", "| queries | 60 |"))


CORRUPTIONS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "truncated parquet": (_truncate, "parquet", "labels"),
    "one byte flipped": (_flip_byte, "file", "responses"),
    "two files swapped": (_swap, "contract", "labels"),
    "file missing": (lambda r: (r / "data/models.parquet").unlink(), "file", "models"),
    "file added": (lambda r: (r / "data/extra.parquet").write_bytes(b"x"), "file", "extra"),
    "manifest edited": (
        lambda r: _edit_manifest(r, lambda m: m["tables"]["labels"].update(rows=18)),
        "manifest",
        "manifest.json",
    ),
    "manifest not JSON": (
        lambda r: (r / "manifest.json").write_text("{"),
        "manifest",
        "manifest.json",
    ),
    "labels rewritten, checksum too": (_lower, "content", "labels"),
    "rows of a parent gone": (_orphan, "reference", "labels"),
    "rows repeated": (_repeat, "contract", "splits"),
    "database changed": (_database, "database", "tiny.duckdb"),
    "card number changed": (_card, "card", "README.md"),
}


def test_an_untouched_release_holds_also_elsewhere(release, tmp_path):
    assert _findings(release) == []
    moved = tmp_path / "another machine" / "x"
    shutil.copytree(release, moved)
    assert _findings(moved) == []


_BUILD = """
import sys
from pathlib import Path
from benchmarks.release import make
from routeyard.datacards.card import render
from routeyard.pipelines.release.build import write_release

recipe = {"name": "made", "version": "1.0.0"}
write_release(make(300, 3), recipe=recipe, root=Path(sys.argv[1]), render_card=render)
"""


def test_built_on_another_machine_it_is_the_same_and_holds_here(tmp_path, monkeypatch):
    """Other time zone, language, hash seed, home, rights and folder; then the origin is gone."""
    there, home = tmp_path / "there" / "releases", tmp_path / "someone"
    home.mkdir()
    foreign = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "HOME": str(home),
        "TZ": "Pacific/Chatham",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "4711",
    }
    command = [sys.executable, "-c", _BUILD, str(there)]
    subprocess.run(command, cwd=home, env=foreign, umask=0o077, check=True)
    here = tmp_path / "another machine" / "ünïcode"
    shutil.copytree(there / "made/1.0.0", here)
    shutil.rmtree(there)
    monkeypatch.chdir(tmp_path)
    assert _findings(here) == []
    from benchmarks.release import make
    from routeyard.pipelines.release.build import write_release

    recipe = {"name": "made", "version": "1.0.0"}
    tables = make(300, 3)
    ours = write_release(tables, recipe=recipe, root=tmp_path / "ours", render_card=render).path
    names = sorted(p.relative_to(ours).as_posix() for p in ours.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file())
    differ = [n for n in names if (ours / n).read_bytes() != (here / n).read_bytes()]
    assert set(differ) <= {"made.duckdb", "made.duckdb.sha256"}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corruption_is_found_and_named(release, name):
    corrupt, check, where = CORRUPTIONS[name]
    corrupt(release)
    found = _findings(release)
    assert any(f.check == check and where in f.where for f in found), found


def test_a_forged_manifest_still_has_other_content(release):
    # Scores and correctness are turned together, so every contract holds.
    def change(table: pa.Table) -> pa.Table:
        for name, value in (("score", 1.0), ("correct", True)):
            at = table.schema.get_field_index(name)
            values = pa.array([value] * table.num_rows)
            table = table.set_column(at, table.schema.field(name), values)
        return table

    _rewrite(release, "labels", change)
    assert "content" in {finding.check for finding in _findings(release)}
    # Cards are about outcomes, which are made from labels: here both are forged.
    _rewrite(release, "outcomes", change)
    assert {"content", "card"} <= {finding.check for finding in _findings(release)}


def test_a_yanked_release_still_holds(release):
    yank(release, reason="one source was withdrawn", use_instead="1.1.0")
    assert _findings(release) == []


def test_a_release_of_another_version_may_describe_its_columns_in_other_words(release):
    # Words of a description are changed now and then; releases that were published hold on.
    (database,) = release.glob("*.duckdb")
    with duckdb.connect(str(database)) as connection:
        connection.execute("COMMENT ON COLUMN labels.score IS 'as it was called then'")
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    database.with_name(f"{database.name}.sha256").write_text(f"{digest}  {database.name}\n")
    _edit_manifest(release, lambda told: told.update(code_version="0.0.1"), reseal=True)
    assert _findings(release) == []
