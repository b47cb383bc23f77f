"""An honest release holds wherever it is; a careful forger is found all the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.release import make
from routeyard.datacards.card import render
from routeyard.pipelines.release.build import write_release
from routeyard.pipelines.release.manifest import Finding, yank
from tests.faults.test_releases import manifest, table
from tests.support.sound_release import verify_release


def _findings(release: Path) -> list[Finding]:
    return verify_release(release, render_card=render)


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
    recipe = {"name": "made", "version": "1.0.0"}
    tables = make(300, 3)
    ours = write_release(tables, recipe=recipe, root=tmp_path / "ours", render_card=render).path
    names = sorted(p.relative_to(ours).as_posix() for p in ours.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(here).as_posix() for p in here.rglob("*") if p.is_file())
    differ = [n for n in names if (ours / n).read_bytes() != (here / n).read_bytes()]
    assert set(differ) <= {"made.duckdb", "made.duckdb.sha256"}


def test_a_forged_manifest_still_has_other_content(release):
    # Scores and correctness are turned together, so every contract holds.
    def change(rows: pa.Table) -> pa.Table:
        for name, value in (("score", 1.0), ("correct", True)):
            at = rows.schema.get_field_index(name)
            values = pa.array([value] * rows.num_rows)
            rows = rows.set_column(at, rows.schema.field(name), values)
        return rows

    table("labels", change)(release)
    assert "content" in {finding.check for finding in _findings(release)}
    # Cards are about outcomes, which are made from labels: here both are forged.
    table("outcomes", change)(release)
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
    manifest(lambda told: told.update(code_version="0.0.1"))(release)
    assert _findings(release) == []
