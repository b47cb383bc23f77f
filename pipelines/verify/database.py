"""A release against itself: manifest, files, tables, database, card, signature."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import read_text, sha256
from routeyard.pipelines.common.sql import MEMORY, lock, quoted, runner
from routeyard.pipelines.common.untrusted import RELEASED, physical_memory, reading
from routeyard.pipelines.release.checks import (
    FILE,
    checks_file,
    release_checks,
    stated_text,
)
from routeyard.pipelines.release.database import (
    after,
    checksum_of,
    write_database,
)
from routeyard.pipelines.release.derived_tables import columns_of, derive
from routeyard.pipelines.release.manifest import (
    MANIFEST,
    Contents,
    Finding,
    check_mark,
    first_line,
    read_manifest,
)
from routeyard.pipelines.release.storage import check_signature
from routeyard.pipelines.release.tables import IN_DATABASE, LARGE, ordered
from routeyard.pipelines.verify.evidence import Evidence, differing, rows
from routeyard.pipelines.verify.files import check_files, check_seal, texts
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.contracts import statements
from routeyard.schemas.errors import ContractError, RecipeError
from routeyard.schemas.release import FOLDER, Manifest, TableEntry, digest_of

# Reads a table of a release again: contract, order and fingerprint, a part at a time.


def reread(
    release: Path, name: str, entry: TableEntry, watch: Callable[[pa.Table], object] = len
) -> tuple[list[Finding], pa.Table | StoredTable | None]:
    """What is wrong with one table, and the table: large ones stay on disk.

    None in its place means that it cannot be read or breaks its contract.

    Args:
        watch: Is given each part as it is read.
    """
    contract = CONTRACTS[name]
    contents = Contents(contract.schema)
    rows, last, sound = 0, None, True
    held: list[pa.Table] = []
    try:
        for raw in _parts(release / entry.file):
            if lacks := [item for item in contract.column_names if item not in raw.column_names]:
                says = f"table {name!r} lacks column(s) {', '.join(lacks)}"
                return [Finding("contract", entry.file, says)], None
            part = contract.check(raw, where=entry.file, keyed=False)
            sorted_part, unique = ordered(contract, part)
            if not unique:
                contract.check(part, where=entry.file)  # says which keys are repeated
            sound = sound and sorted_part is part
            if sound:
                last = after(contract, part, last)
            contents.update(part)
            rows += part.num_rows
            watch(part)
            if name not in LARGE:
                held.append(part)
    except (OSError, ValueError, pa.ArrowException) as error:
        says = f"cannot be read: {first_line(error)}"
        return [Finding("parquet", entry.file, says)], None
    except ContractError as error:
        return [Finding("contract", entry.file, error.what)], None
    findings = []
    if rows != entry.rows:
        says = f"has {rows:,} rows, the manifest says {entry.rows:,}"
        findings.append(Finding("rows", entry.file, says))
    if not sound:
        findings.append(Finding("order", entry.file, "its rows are not in the release's order"))
    if contents.full != entry.content:
        findings.append(Finding("content", entry.file, "says something else than its fingerprint"))
    elif contents.without_times != entry.content_without_times:
        findings.append(
            Finding("content", entry.file, "its fingerprint without times does not match")
        )
    if name in LARGE:
        return findings, StoredTable(release / entry.file)
    return findings, pa.concat_tables(held) if held else contract.empty()


def _parts(path: Path) -> Iterator[pa.Table]:
    table = StoredTable(path)
    yield table.schema.empty_table()
    yield from map(pa.Table.from_batches, ([batch] for batch in table.batches()))


def check_tables(evidence: Evidence) -> Iterator[Finding]:
    """Findings in the tables; `tables` of the evidence gets those that hold their contracts."""
    for name, entry in evidence.manifest.tables.items():
        if entry.file not in evidence.readable:
            continue
        if name not in CONTRACTS:
            yield Finding("contract", entry.file, f"there is no contract {name!r}")
            continue
        watch = evidence.sampled.add if name == "responses" else len
        findings, table = reread(evidence.release, name, entry, watch)
        yield from findings
        if table is not None:
            evidence.tables[name] = table


def check_references(evidence: Evidence) -> Iterator[Finding]:
    """Rows whose parent is not there."""
    with runner(tables=evidence.tables) as run:
        for check in release_checks(evidence.tables, "references"):
            bad, examples = check.broken(run)
            if bad:
                child, parent = check.needs
                lost = f": not in {parent}, expected a row of {parent}"
                some = "; ".join(example.removesuffix(lost) for example in examples)
                says = f"{bad} {'/'.join(check.key)} not in {parent}: {some}"
                yield Finding("reference", child, says)


def check_own_checks(evidence: Evidence) -> Iterator[Finding]:
    """A finding where `checks.sql` is not what this version of the code writes."""
    if not evidence.same_code or FILE not in evidence.readable:
        return
    if (evidence.release / FILE).read_bytes() != checks_file(evidence.manifest.files).encode():
        yield Finding("checks", FILE, "is not the text of the checks that a release carries")


# Outcomes, wide matrix and summaries of a release, made once more and compared.


def check_derived(evidence: Evidence, fresh: Path) -> Iterator[Finding]:
    """Findings in files that say once more what labels and responses say.

    Args:
        fresh: Folder with the same files, made again.
    """
    import duckdb

    sealed = evidence.manifest.files
    made = {path.relative_to(fresh).as_posix() for path in fresh.rglob("*.parquet")}
    split = {name for name in sealed if name.startswith(f"{FOLDER}/")}
    for name in sorted(split - made):
        yield Finding("file", name, "is a split that the release does not have")
    for name in sorted(made):
        if name not in sealed:
            yield Finding("file", name, "is missing")
        elif name in evidence.readable and sha256(fresh / name) != sealed[name].sha256:
            # Another library writes other bytes of the same values.
            one, right = StoredTable(evidence.release / name), StoredTable(fresh / name)
            try:
                equal = one.column_names == right.column_names
                bad, examples = rows(one, right) if equal else (1, ["its columns"])
            except (OSError, ValueError, pa.ArrowException, duckdb.Error) as error:
                yield Finding("parquet", name, f"cannot be read: {first_line(error)}")
                continue
            if bad:
                says = f"says something else than labels and responses, e.g. {examples[0]}"
                yield Finding("content", name, says)


# The `.duckdb` file: every object in it, none of them run, and the rows of its tables.

_OBJECTS = statements(Path(__file__).with_name("objects.sql"))["objects"]


def check_database(evidence: Evidence, fresh: Path | None = None) -> Iterator[Finding]:
    """Findings in the database: it is written again and compared, and nothing in it is run.

    Args:
        fresh: Folder with the summaries, made again; without it no rows are compared.
    """
    manifest, tables = evidence.manifest, evidence.tables
    name = manifest.database.file
    path = evidence.release / name
    if path.is_symlink() or not path.is_file():
        if not path.is_symlink():
            yield Finding("file", name, "is missing")
        return
    yield from _checksum(path)
    for table in manifest.database.tables:
        if table not in manifest.tables:
            yield Finding("database", name, f"the manifest lists a table {table!r} of no file")
    card = evidence.card or ""
    whole = fresh is not None and {*IN_DATABASE} <= tables.keys()
    given = {
        table: tables[table]
        if whole or (table == "models" and table in tables)
        else contract.empty()
        for table, contract in ((table, CONTRACTS[table]) for table in IN_DATABASE)
    }
    left_out = {*(() if card else ("card",)), *(() if "models" in tables else ("matrix",))}
    try:
        with tempfile.TemporaryDirectory(prefix="routeyard-verify-") as folder:
            if not whole or fresh is None:
                fresh = Path(folder)
                derive(given, fresh)
            right = Path(folder, "right.duckdb")
            write_database(given, right, fresh, stated_text(manifest), card)
            with reading(path, RELEASED) as (worker, _, limits):
                limits = replace(limits, memory=physical_memory())
                arguments = (str(path.absolute()), str(right), whole, evidence.same_code)
                faults = worker.call(compare, *arguments, sorted(left_out), limits=limits)
    except (SourceError, OSError) as error:
        faults = [first_line(error)]
    for says in faults:
        yield Finding("database", name, says)


def _checksum(path: Path) -> Iterator[Finding]:
    checksum = checksum_of(path)
    if checksum.is_symlink() or not checksum.is_file() or checksum.stat().st_size > 4096:
        yield Finding("file", checksum.name, "is missing, or no checksum")
        return
    words = checksum.read_bytes().decode("utf-8", "replace").split()
    if words != [sha256(path), path.name]:
        yield Finding("file", path.name, f"has another SHA-256 than {checksum.name} says")


def compare(path: str, right: str, rows: bool, same_code: bool, left_out: list[str]) -> list[str]:
    """What a database holds that it should not, or lacks; called in the limited process.

    Args:
        right: The same database, written again.
        rows: Compare the rows of all tables, not only of those that keep what a release states.
        same_code: The same version of the code describes columns in the same words.
        left_out: Objects that cannot be compared.
    """
    import duckdb

    try:
        with duckdb.connect() as connection:
            for name, file in (("found", path), ("expected", right)):
                connection.execute(f"ATTACH {quoted(file)} AS {name} (READ_ONLY)")
            lock(connection, MEMORY)
            # A stranger's definitions are read, never evaluated.
            params = {"described": same_code, "left_out": left_out}
            differ = connection.execute(_OBJECTS, params).fetchall()
            return [says for (says,) in differ] or [*_other_rows(connection, rows, left_out)]
    except MemoryError:
        raise
    except Exception as error:  # DuckDB raises anything over a damaged file
        return [f"cannot be read: {first_line(error)}"]


def _other_rows(connection: Any, whole: bool, left_out: list[str]) -> Iterator[str]:
    """Tables of a database with a release's own definitions that hold other rows."""
    listed = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'expected'"
    for schema, name in connection.sql(f"{listed} ORDER BY ALL").fetchall():
        if name in left_out or not (whole or schema == "stated"):
            continue
        one, right = (f'{database}."{schema}"."{name}"' for database in ("found", "expected"))
        counts = f"SELECT (SELECT count(*) FROM {one}), (SELECT count(*) FROM {right})"
        ((there, of),) = connection.sql(counts).fetchall()
        if there != of:  # rows without end would take time without end
            yield f"its table {schema}.{name} has {there:,} rows, expected {of:,}"
        elif (found := differing(connection, one, right))[0]:
            says = "of the release" if schema != "stated" else "of manifest and card"
            yield f"its table {schema}.{name} is not that {says}: {found[1][0]:.300}"


# The card: every figure in it, computed again from the tables.

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
#: What a certificate can say.
_VERDICTS = ("not routable", "headroom not reached", "headroom only", "routable")


def check_card(evidence: Evidence) -> Iterator[Finding]:
    """Findings in `README.md`.

    It must be, word for word, what the tables give. Where the release names another
    version of this code, whose template may have used other words, or an add-on was not
    fetched, each line that differs is compared with the one in its place (`compare_lines`);
    `unchecked` of the evidence gets the lines that have nothing to be compared with.
    """
    manifest, tables, card = evidence.manifest, evidence.tables, evidence.card
    expected = {n for n, e in manifest.tables.items() if e.kind == "core"}
    if "README.md" not in evidence.readable or not expected <= tables.keys():
        return
    if card is None:
        yield Finding("card", "README.md", "cannot be read: it is no text in UTF-8")
        return
    waivers = [waiver.model_dump() for waiver in manifest.waivers]
    parts = [manifest.name, manifest.version, manifest.content, manifest.recipe, waivers, card]
    if digest_of(parts) != manifest.fingerprint:
        yield Finding("fingerprint", MANIFEST, "is not that of this recipe, card and content")
    missing = [name for name in manifest.tables if name not in tables and name in CONTRACTS]
    whole = {**tables, **{name: CONTRACTS[name].empty() for name in missing}}
    try:
        fresh = evidence.render_card(whole, card_facts(manifest))
    except Exception as error:  # facts of a stranger's manifest can be of any form
        why = f"cannot be computed again: {type(error).__name__}: {first_line(error)}"
        yield Finding("card", "README.md", why)
        return
    if card == fresh:
        return
    if evidence.same_code and not missing:
        yield Finding("card", "README.md", _first_difference(card, fresh))
        return
    rows = [f"{entry.rows:,}" for entry in manifest.tables.values()]
    models = columns_of(whole["models"], ["model_id"]).column("model_id").to_pylist()
    false, unknown = compare_lines(card.splitlines(), fresh.splitlines(), rows, models)
    for says in (*false, *_header(card, fresh, manifest)):
        yield Finding("card", "README.md", says)
    evidence.unchecked += unknown


def compare_lines(
    card: list[str], fresh: list[str], rows: Iterable[str] = (), models: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """Lines of a card by another version of the code that say what the data do not, and lines that
    have nothing to be compared with.

    Facts of a line are its figures and the names of models and verdicts. A line in the same words
    as one of the fresh card must have its facts, one in other words those of a fresh line whose
    words the card lacks. What is left has nothing to be compared with; its figures must be in the
    fresh card.

    Args:
        rows: Row counts in the manifest, as text: of tables that were not fetched too.
        models: Ids of the models.
    """
    names = sorted({*models, *_VERDICTS}, key=len, reverse=True)
    fact = re.compile("|".join([*map(re.escape, names), _NUMBER]))
    read = [(fact.sub("#", line), fact.findall(line)) for line in card]
    by_words: dict[str, list[list[str]]] = {}
    for line in fresh:
        by_words.setdefault(fact.sub("#", line), []).append(fact.findall(line))
    own = {words for words, _ in read}
    others = [facts for words, lines in by_words.items() if words not in own for facts in lines]
    known = {*fact.findall("\n".join(fresh)), *rows}
    false, unknown = [], []
    for number, (line, (words, facts)) in enumerate(zip(card, read, strict=True), start=1):
        right = by_words.get(words)
        if facts in (right or []) or not line.strip():
            continue
        if right is not None:
            data = "" if _counts_of_rows(facts, right, rows) else ", ".join(right[0]) or "none"
        elif facts in others:
            unknown.append(line)
            continue
        else:
            data = _elsewhere(facts, others, names) or next(
                (f"no {figure}" for figure in facts if figure not in known), ""
            )
            unknown += [] if data else [f"line {number}: {line[:80]}"]
        if data:
            false.append(f"line {number} says {line[:80]!r}, and the data give {data}")
    return false, unknown


def _elsewhere(facts: list[str], others: list[list[str]], names: list[str]) -> str:
    """Facts of a line in other words that has the same figures, and other names."""
    figures = [fact for fact in facts if fact not in names]
    same = (other for other in others if [f for f in other if f not in names] == figures != [])
    return ", ".join(next(same, []))


def _header(card: str, fresh: str, manifest: Manifest) -> Iterator[str]:
    """What the YAML of a card tells a hub: its licence, and which files a dataset is read from."""
    try:
        (header, expected) = (_yaml(text) for text in (card, fresh))
    except RecipeError as error:
        yield f"has a header that cannot be read: {error.what}"
        return
    if header.get("license") != expected.get("license"):
        yield f"has license {header.get('license')!r}, expected {expected.get('license')!r}"
    for key, path in texts(header.get("configs"), "path"):
        if key in ("path", "data_files", "data_dir") and path not in manifest.files:
            yield f"reads its data from {path[:80]!r}, which is no file of this release"


def _yaml(card: str) -> Mapping[str, Any]:
    parts = card.split("---\n", 2)
    content = read_text(parts[1], where="README.md") if len(parts) == 3 and not parts[0] else {}
    return content if isinstance(content, Mapping) else {}


def _counts_of_rows(figures: list[str], right: list[list[str]], rows: Iterable[str]) -> bool:
    """Whether a line differs from a fresh one only by rows of a table that was not fetched."""
    allowed = set(rows)
    return any(
        len(item) == len(figures)
        and all(a == b or (b == "0" and a in allowed) for a, b in zip(figures, item, strict=True))
        for item in right
    )


def _first_difference(card: str, fresh: str) -> str:
    pairs = zip(card.splitlines(), fresh.splitlines(), strict=False)
    for number, (old, new) in enumerate(pairs, start=1):
        if old != new:
            return f"line {number} says {old[:80]!r}, the data say {new[:80]!r}"
    return "differs in length from what the data give"


_FACTS = (
    "name", "version", "recipe", "stages", "sources", "waivers", "figures", "code_version",
    "content", "content_without_times",
)  # fmt: skip


def card_facts(manifest: Manifest) -> dict[str, object]:
    """What `write_release` gave the card's renderer, read back from the manifest."""
    facts = manifest.model_dump(mode="json")
    files = {name: entry for name, entry in facts["files"].items() if name.startswith("data/")}
    further = sorted(manifest.files.keys() - files.keys() - {"README.md"})
    return {**{key: facts[key] for key in _FACTS}, "files": files, "further": further}


def unreadable(release: Path) -> list[Finding]:
    """Why the manifest cannot be read; empty where it can."""
    if (release / MANIFEST).is_symlink():
        return [Finding("path", MANIFEST, "is a symbolic link; a release holds regular files only")]
    try:
        read_manifest(release)
    except SourceError as error:
        return [Finding("manifest", MANIFEST, error.what)]
    return []


def _derived(evidence: Evidence) -> Iterator[Finding]:
    """Findings in the database and in all that follows from labels and responses."""
    always = {"queries", "models", "labels", "splits"}
    needed = (always | {"responses"}) & evidence.manifest.tables.keys()
    if not always <= needed <= evidence.tables.keys():
        yield from check_database(evidence)
        return
    with tempfile.TemporaryDirectory(prefix="routeyard-verify-") as name:
        derive(evidence.tables, Path(name))
        yield from check_derived(evidence, Path(name))
        yield from check_database(evidence, Path(name))


#: Every check in order; a later one reads what the earlier ones found to be sound.
CHECKS: tuple[Callable[[Evidence], Iterable[Finding]], ...] = (
    lambda evidence: check_seal(evidence.manifest),
    check_files,
    check_tables,
    _derived,
    check_references,
    check_own_checks,
    check_card,
    lambda evidence: check_mark(evidence.release),
    lambda evidence: check_signature(evidence.release, evidence.signer) if evidence.signer else (),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    """Everything in which a release contradicts itself, in the order of `CHECKS`.

    Nothing in the release is trusted: names in the manifest may lead outside, files may be links
    or devices, the database may define anything. Each is a finding, never an error, and nothing
    outside the release is opened.
    """
    import duckdb

    for item in CHECKS:
        try:
            yield from item(evidence)
        except duckdb.Error as error:  # Arrow reads files that DuckDB does not
            says = f"a table of it cannot be read by DuckDB: {first_line(error)}"
            yield Finding("parquet", "data", says)
