"""Eighty corruptions of a release: each is a named finding, never a traceback."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.common.errors import RouteyardError
from routeyard.pipelines.release.query import query_release
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas.release import Manifest
from tests.io.test_parquet_statistics import in_footer, swapped
from tests.support import small_release as small
from tests.support.sound_release import verify_release

ROOT = Path(__file__).parents[2]

Corrupt = Callable[[Path], Any]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.written_once(tmp_path_factory, {}).path


def manifest(change: Callable[[dict], Any], *, reseal: bool = True) -> Corrupt:
    """A careful forger computes the digest again."""

    def corrupt(release: Path) -> None:
        path = release / "manifest.json"
        found = json.loads(path.read_text())
        change(found)
        if reseal:
            try:
                path.write_text(Manifest.model_validate(found).sealed().to_json())
                return
            except ValueError:
                pass
        path.write_text(json.dumps(found))

    return corrupt


def register(release: Path, name: str) -> None:
    path = release / name
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    entry = {"sha256": digest, "size": path.stat().st_size}
    manifest(lambda m: m["files"].update({name: entry}))(release)


def written(name: str, data: bytes | str, *, sealed: bool = True) -> Corrupt:
    """A file of the release says something else, and the manifest agrees."""

    def corrupt(release: Path) -> None:
        path = release / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        if sealed:
            register(release, name)

    return corrupt


def edited(name: str, old: str, new: str, *, sealed: bool = True) -> Corrupt:
    def corrupt(release: Path) -> None:
        text = (release / name).read_text()
        assert old in text
        written(name, text.replace(old, new, 1), sealed=sealed)(release)

    return corrupt


def database(*statements: str, sealed: bool = True) -> Corrupt:
    """A stranger's database, with the checksum that goes with it."""

    def corrupt(release: Path) -> None:
        path = release / "tiny.duckdb"
        with duckdb.connect(str(path)) as connection:
            for statement in statements:
                connection.execute(statement)
        if sealed:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            (release / "tiny.duckdb.sha256").write_text(f"{digest}  tiny.duckdb\n")

    return corrupt


def table(name: str, change: Callable[[pa.Table], pa.Table]) -> Corrupt:
    def corrupt(release: Path) -> None:
        path = release / f"data/{name}.parquet"
        pq.write_table(change(pq.read_table(path)), path)
        register(release, f"data/{name}.parquet")

    return corrupt


def replaced(name: str, make: Callable[[Path], Any]) -> Corrupt:
    def corrupt(release: Path) -> None:
        (release / name).unlink()
        make(release / name)

    return corrupt


def moved_out(release: Path) -> None:
    (release.parent / "outside.parquet").write_bytes((release / "data/labels.parquet").read_bytes())


def _plot(release: Path) -> str:
    return sorted(release.glob("plots/*.svg"))[0].relative_to(release).as_posix()


def plot(inside: str) -> Corrupt:
    def corrupt(release: Path) -> None:
        text = (release / _plot(release)).read_text().replace("</svg>", inside + "</svg>")
        written(_plot(release), text)(release)

    return corrupt


def named(file: str) -> Corrupt:
    """The labels lie somewhere else than inside the release."""

    def corrupt(release: Path) -> None:
        moved_out(release)

        def change(found: dict) -> None:
            entry = found["files"].pop("data/labels.parquet")
            found["tables"]["labels"]["file"] = file.format(out=release.parent)
            found["files"][file.format(out=release.parent)] = entry

        manifest(change)(release)

    return corrupt


def unfolding(release: Path) -> None:
    """One id of a megabyte in a table's dictionary, and a thousand rows that point to it."""
    positions = pa.array([0] * 1_000, pa.int32())
    ids = pa.DictionaryArray.from_arrays(positions, pa.array(["q" * 1_000_000]))
    path = release / "data/labels.parquet"
    pq.write_table(pa.table({"query_id": ids}), path, compression="zstd", store_schema=False)
    register(release, "data/labels.parquet")


def hiding(release: Path) -> None:
    """The labels of one model are there, and whoever looks for them finds none."""
    path = release / "data/labels.parquet"
    names = pq.read_table(path).column("model_id").unique().to_pylist()
    in_footer(path, swapped(max(names).encode(), min(names).encode()))
    register(release, "data/labels.parquet")


def indexed(release: Path) -> None:
    path = release / "data/splits.parquet"
    pq.write_table(pq.read_table(path), path, write_page_index=True)
    register(release, "data/splits.parquet")


def for_arrow_alone(release: Path) -> None:
    """A kind of page that there is none of, in what the footer counts; DuckDB reads it all."""
    path = release / "data/queries.parquet"
    one, other = (b"\x19\x1c\x15" + kind + b"\x15\x00\x15\x02" for kind in (b"\x00", b"\x01"))
    in_footer(path, swapped(one, other))
    register(release, "data/queries.parquet")


def other_code(change: Corrupt) -> Corrupt:
    def corrupt(release: Path) -> None:
        change(release)
        manifest(lambda m: m.update(code_version="0.0.1"))(release)

    return corrupt


def cut_short(release: Path) -> None:
    path = release / "data/labels.parquet"
    path.write_bytes(path.read_bytes()[:-200])


def one_byte(release: Path) -> None:
    path = release / "data/responses.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def exchanged(release: Path) -> None:
    one, two = (release / f"data/{name}.parquet" for name in ("labels", "splits"))
    one.rename(release / "x")
    two.rename(one)
    (release / "x").rename(two)


SECRET = "read_text('/etc/hostname')"
_LABELS = (
    "SELECT query_id, model_id, score, correct, decided_by, contested, n_samples::INT n_samples"
)
CORRUPTIONS: dict[str, tuple[str, Corrupt]] = {
    # the database
    "a row changed": (
        "database",
        database("UPDATE numbered.labels SET score = 1.0, correct = true"),
    ),
    "a row gone": ("database", database("DELETE FROM numbered.labels WHERE query_no = 0")),
    "a table added": ("database", database("CREATE TABLE extra AS SELECT 1 AS a")),
    "a table gone": ("database", database("DROP VIEW splits")),
    "a table for a view over a secret": (
        "database",
        database(
            "DROP VIEW accuracy",
            "DROP VIEW labels",
            f"CREATE VIEW labels AS SELECT content AS query_id FROM {SECRET}",
        ),
    ),
    "a table for a view over itself": (
        "database",
        database(
            "ALTER TABLE labels RENAME TO hidden", f"CREATE VIEW labels AS {_LABELS} FROM hidden"
        ),
    ),
    "a view of the release changed": (
        "database",
        database("CREATE OR REPLACE VIEW accuracy AS SELECT 'm9' AS model_id, 1.0 AS accuracy"),
    ),
    "a view added": ("database", database("CREATE VIEW best AS SELECT 'm2' AS model_id")),
    "a view over a secret": (
        "database",
        database(f"CREATE VIEW leaderboard AS SELECT * FROM {SECRET}"),
    ),
    "a macro": ("database", database("CREATE MACRO avg(x) AS 1.0")),
    "a macro of rows": ("database", database("CREATE MACRO top(n) AS TABLE SELECT 'm2'")),
    "a comment on a table": ("database", database("COMMENT ON TABLE labels IS 'run rm -rf'")),
    "a comment on a column": ("database", database("COMMENT ON COLUMN labels.score IS 'of m2'")),
    "a comment on a view": ("database", database("COMMENT ON VIEW accuracy IS 'm2 wins'")),
    "a type": ("database", database("CREATE TYPE grade AS ENUM ('a', 'b')")),
    "a sequence": ("database", database("CREATE SEQUENCE counter")),
    "an index": ("database", database("CREATE INDEX quick ON numbered.labels (model_no)")),
    "a schema": (
        "database",
        database("CREATE SCHEMA other", "CREATE TABLE other.labels AS SELECT 1"),
    ),
    "a default that computes": (
        "database",
        database("DROP VIEW accuracy", "ALTER TABLE numbered.labels ALTER score SET DEFAULT 1.0"),
    ),
    "a column added": (
        "database",
        database("DROP VIEW accuracy", "ALTER TABLE numbered.labels ADD COLUMN rank INTEGER"),
    ),
    "a column renamed": (
        "database",
        database("ALTER TABLE numbered.labels RENAME COLUMN contested TO disputed"),
    ),
    "another checksum of the database": (
        "file",
        database("CHECKPOINT", "CREATE TABLE x(a INT)", sealed=False),
    ),
    "no checksum of the database": ("file", lambda r: (r / "tiny.duckdb.sha256").unlink()),
    "no database": ("file", lambda r: (r / "tiny.duckdb").unlink()),
    "a database of noise": ("database", written("tiny.duckdb", b"DUCK" * 4096, sealed=False)),
    "a database cut in half": (
        "file",
        lambda r: os.truncate(r / "tiny.duckdb", (r / "tiny.duckdb").stat().st_size // 2),
    ),
    # names and kinds of files
    "a path that is absolute": ("path", named("{out}/outside.parquet")),
    "a path to the parent": ("path", named("../outside.parquet")),
    "a path through the parent": ("path", named("data/../../outside.parquet")),
    "a path not in its shortest form": ("path", named("data/./labels.parquet")),
    "a path of another system": ("path", named("data\\labels.parquet")),
    "a symbolic link out": (
        "path",
        lambda r: (
            moved_out(r),
            replaced("data/labels.parquet", lambda p: p.symlink_to(r.parent / "outside.parquet"))(
                r
            ),
        ),
    ),
    "a symbolic link to a secret": (
        "path",
        replaced("README.md", lambda p: p.symlink_to("/etc/hostname")),
    ),
    "a folder that is a link": (
        "path",
        lambda r: (
            shutil.move(r / "data", r.parent / "d"),
            (r / "data").symlink_to(r.parent / "d"),
        ),
    ),
    "the manifest is a link": (
        "path",
        lambda r: (
            shutil.move(r / "manifest.json", r.parent / "m"),
            (r / "manifest.json").symlink_to(r.parent / "m"),
        ),
    ),
    "a pipe that never answers": ("path", replaced("data/labels.parquet", os.mkfifo)),
    "a pipe for the database": ("path", replaced("tiny.duckdb", os.mkfifo)),
    "a link to a device": (
        "path",
        replaced("data/models.parquet", lambda p: p.symlink_to("/dev/zero")),
    ),
    "a link for the database": (
        "path",
        lambda r: (
            shutil.move(r / "tiny.duckdb", r.parent / "db"),
            (r / "tiny.duckdb").symlink_to(r.parent / "db"),
        ),
    ),
    "an extra file": ("file", written("data/extra.parquet", b"x", sealed=False)),
    "an extra hidden file": ("file", written(".hidden", b"x", sealed=False)),
    "an extra folder": ("file", lambda r: (r / "more").mkdir()),
    "folders without end": (
        "path",
        lambda r: subprocess.run(
            ["sh", "-c", "for n in $(seq 1500); do mkdir d && cd d || exit 1; done"],
            cwd=r,
            check=True,
        ),
    ),
    "a name of folders without end": (
        "path",
        manifest(lambda m: m["files"].update({"d/" * 50_000: m["files"]["README.md"]})),
    ),
    "a table that unfolds to gigabytes": ("parquet", unfolding),
    "rows without end in the database": (
        "database",
        database("INSERT INTO numbered.labels SELECT l.* FROM numbered.labels l, range(500)"),
    ),
    "a program": ("active content", written("run.js", "alert(1)")),
    "two names that differ in case": ("path", written("readme.MD", b"x")),
    # the manifest
    "an unknown key": ("manifest", manifest(lambda m: m.update(trusted=True))),
    "an unknown key deep inside": (
        "manifest",
        manifest(lambda m: m["tables"]["labels"].update(sql="SELECT 1")),
    ),
    "a format of the future": ("manifest", manifest(lambda m: m.update(format=99))),
    "another name": ("manifest", manifest(lambda m: m.update(name="other"))),
    "a digest that is not its own": (
        "manifest",
        manifest(lambda m: m.update(version="9.9.9"), reseal=False),
    ),
    "a key that occurs twice": (
        "manifest",
        lambda r: (r / "manifest.json").write_text(
            (r / "manifest.json").read_text().replace("{", '{"name": "tiny",', 1)
        ),
    ),
    "nested fifty thousand deep": (
        "manifest",
        written("manifest.json", "[" * 50_000, sealed=False),
    ),
    "a number without end": (
        "manifest",
        lambda r: (r / "manifest.json").write_text(
            (r / "manifest.json")
            .read_text()
            .replace('"figures": {', '"figures": {"a": 1e999,', 1)
            .replace('"figures": {"a": 1e999,}', '"figures": {"a": 1e999}')
        ),
    ),
    "half a sign": (
        "manifest",
        lambda r: (r / "manifest.json").write_text(
            (r / "manifest.json").read_text().replace('"tiny"', '"ti\\ud800ny"')
        ),
    ),
    "a manifest of noise": ("manifest", written("manifest.json", bytes(range(256)), sealed=False)),
    "a table under another name": (
        "contract",
        manifest(lambda m: m["tables"].update(other=m["tables"]["labels"])),
    ),
    # tables
    "scores lowered": (
        "content",
        table(
            "labels",
            lambda t: t.set_column(
                2,
                t.schema.field("score"),
                pa.array([0.0] * t.num_rows, t.schema.field("score").type),
            ),
        ),
    ),
    "a parent gone": ("reference", table("queries", lambda t: t.slice(1))),
    "rows repeated": ("contract", table("splits", lambda t: pa.concat_tables([t, t]))),
    "rows in another order": (
        "order",
        table("labels", lambda t: t.take(list(range(t.num_rows))[::-1])),
    ),
    "a column gone": ("contract", table("labels", lambda t: t.drop_columns(["score"]))),
    "a Parquet of noise": ("parquet", written("data/labels.parquet", b"PAR1" * 100)),
    "an empty Parquet": ("parquet", written("data/labels.parquet", b"")),
    "a Parquet cut short": ("parquet", cut_short),
    "one byte changed": ("file", one_byte),
    "two files exchanged": ("contract", exchanged),
    "a file missing": ("file", lambda r: (r / "data/models.parquet").unlink()),
    # the card and what a viewer would run
    "a figure of the card": ("card", edited("README.md", "| queries | 6 |", "| queries | 60 |")),
    "a figure of the card, by other code": (
        "card",
        other_code(edited("README.md", "| queries | 6 |", "| queries | 4711 |")),
    ),
    "a card that is no text": ("card", written("README.md", b"\xff\xfe")),
    "a script in a plot": ("active content", plot("<script>alert(1)</script>")),
    "a handler in a plot": ("active content", plot('<g onload="alert(1)"/>')),
    "a page in a plot": ("active content", plot("<foreignObject><b/></foreignObject>")),
    "a link in a plot": ("active content", plot('<a href="javascript:alert(1)"/>')),
    "a picture from elsewhere": (
        "active content",
        plot('<image href="https://example.org/x.png"/>'),
    ),
    "a style from elsewhere": (
        "active content",
        plot("<style>@import 'https://example.org'</style>"),
    ),
    "a style that fetches": (
        "active content",
        plot('<rect style="fill: url(https://example.org/x)"/>'),
    ),
    "entities in a plot": (
        "active content",
        lambda r: written(_plot(r), '<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg>&a;</svg>')(r),
    ),
    "a plot that is none": ("active content", lambda r: written(_plot(r), "<html>")(r)),
    "a foreign file in the metadata": (
        "active content",
        edited("croissant.json", "data/labels.parquet", "https://example.org/x"),
    ),
    "a foreign vocabulary": (
        "active content",
        edited("croissant.json", "https://schema.org/", "https://example.org/"),
    ),
    "a script in the metadata": (
        "active content",
        edited("croissant.json", '"description": "', '"description": "<script>'),
    ),
    "metadata that are none": ("active content", written("croissant.json", "[" * 50_000)),
    "statistics that hide rows": ("statistics", hiding),
    "an index of pages": ("statistics", indexed),
    "a table that Arrow reads and DuckDB does not": ("parquet", for_arrow_alone),
}

#: Corruption → what is found, neither more nor less: check and place of each finding.
FOUND = {
    name: sorted(found)
    for line in Path(__file__).with_name("findings_of_corruptions.txt").read_text().splitlines()
    if not line.startswith("#")
    for name, *found in [line.split(" ¦ ")]
}

#: Every one of them in the full suite; in every run, one of each kind of finding and these.
FULL = bool(os.environ.get("ROUTEYARD_FAULTS"))
OFTEN = {
    "a macro of rows", "a path to the parent", "a table for a view over a secret",
    "nested fifty thousand deep", "rows repeated", "a Parquet cut short", "one byte changed",
    "two files exchanged", "a file missing",
}  # fmt: skip
FIRST = {check: name for name, (check, _) in reversed(CORRUPTIONS.items())}
TRIED = [name for name in CORRUPTIONS if FULL or name in {*OFTEN, *FIRST.values()}]


def test_there_are_sixty_and_the_untouched_release_holds(pristine):
    assert len(CORRUPTIONS) >= 80
    assert list(FOUND) == list(CORRUPTIONS)
    assert verify_release(pristine, render_card=render) == []


@pytest.mark.parametrize("name", TRIED)
def test_a_corruption_is_a_named_finding(pristine, tmp_path, row, name):
    check, corrupt = CORRUPTIONS[name]
    release = tmp_path / "1.0.0"
    shutil.copytree(pristine, release)
    corrupt(release)
    found = row("corruptions of a release")
    found.tried += 1
    try:
        findings = verify_release(release, render_card=render)
    finally:
        subprocess.run(["rm", "-rf", release], check=True)  # Python's own way has an end
    assert any(finding.check == check for finding in findings), findings
    places = {f"{one.check}: {one.where}".replace(str(tmp_path), "OUT") for one in findings}
    assert sorted(places) == FOUND[name]
    assert all(finding.says for finding in findings)
    assert not any(_secret() in str(finding) for finding in findings)
    found.held += 1


def _secret() -> str:
    return Path("/etc/hostname").read_text().strip() or "no secret here"


@pytest.mark.parametrize("name", [n for n in TRIED if CORRUPTIONS[n][0] == "database"])
def test_answers_come_from_the_sealed_tables_whatever_the_database_says(pristine, tmp_path, name):
    release = tmp_path / "1.0.0"
    shutil.copytree(pristine, release)
    CORRUPTIONS[name][1](release)
    sql = "SELECT model_id, task, accuracy FROM accuracy ORDER BY ALL"
    with open_release(pristine) as right, open_release(release) as given:
        assert given.connection.sql(sql).fetchall() == right.connection.sql(sql).fetchall()
        assert given.arrow("labels") == right.arrow("labels")


@pytest.mark.parametrize(
    "name", [n for n in TRIED if CORRUPTIONS[n][0] == "path" and "a path" in n]
)
def test_a_query_never_leaves_the_release(pristine, tmp_path, name):
    release = tmp_path / "1.0.0"
    shutil.copytree(pristine, release)
    CORRUPTIONS[name][1](release)
    with pytest.raises(RouteyardError):
        query_release(release, "SELECT count(*) FROM labels")
