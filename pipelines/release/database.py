"""The `.duckdb` file: the small tables of a release by numbers, with views that show ids.

The schema `numbered` holds queries, models, labels and splits under the row numbers that
`outcomes` carries, and the summaries the saved queries start from. In the main schema each
of them is a view with ids, so that nobody needs to know the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.sql import head_of, quoted
from routeyard.pipelines.release.checks import SAME_CODE, release_checks, stated, views_of
from routeyard.pipelines.release.derived_tables import SUMMARIES, numbered
from routeyard.pipelines.release.manifest import Contents
from routeyard.pipelines.release.tables import (
    ADD_ONS,
    IN_DATABASE,
    LARGE,
    GroupWriter,
    cut,
    order_of,
    ordered,
    sorted_ids,
)
from routeyard.schemas import CONTRACTS, Contract, StoredTable
from routeyard.schemas.contracts import statements
from routeyard.schemas.errors import ContractError
from routeyard.schemas.release import TableEntry

# Writing a table of a release: checked, ordered, hashed and written in one pass.


@dataclass(frozen=True)
class Streamed:
    """A table that arrives in parts, each of them in contract form.

    The parts follow each other in the release's order (`tables.ORDER`): for labels and
    responses, one model after the other by id. Rows within a part may be in any order.
    """

    parts: Callable[[], Iterator[pa.Table]]


def write_table(
    contract: Contract,
    table: pa.Table | Streamed,
    folder: Path,
    *,
    change: Callable[[pa.Table], pa.Table] | None = None,
) -> tuple[TableEntry, pa.Table | None]:
    """Write `data/<name>.parquet`; returns its entry, and a small table that was in memory.

    Args:
        change: What is done to each part before it is written.

    Raises:
        ContractError: rows break the contract, a key is repeated, or parts overlap.
    """
    file = f"data/{contract.name}.parquet"
    contents = Contents(contract.schema)
    rows, last = 0, None
    held: list[pa.Table] = []
    ids = sorted_ids(contract)
    with GroupWriter(folder / file, contract.schema, sorted_ids=ids) as writer:
        for item in cut(contract, table) if isinstance(table, pa.Table) else table.parts():
            part = contract.check(change(item) if change else item, where="release", keyed=False)
            part, unique = ordered(contract, part)
            if not unique:
                contract.check(part, where="release")  # says which keys are repeated
            last = after(contract, part, last)
            contents.update(part)
            writer.write(part)
            rows += part.num_rows
            if isinstance(table, pa.Table) and contract.name not in LARGE:
                held.append(part)
    entry = TableEntry(
        file=file,
        rows=rows,
        content=contents.full,
        content_without_times=contents.without_times,
        kind="add_on" if contract.name in ADD_ONS else "core",
        contract=contract.version,
    )
    return entry, pa.concat_tables(held) if held else None


def after(contract: Contract, part: pa.Table, last: Any) -> Any:
    """The last key of a part, whose first one must come after that of the part before."""
    if not part.num_rows:
        return last
    names = order_of(contract)
    ends = [
        tuple(_sortable(part.column(name)[at].as_py()) for name in names)
        for at in (0, part.num_rows - 1)
    ]
    if last is not None and ends[0] <= last:
        raise ContractError(
            f"table {contract.name!r} arrives in parts that overlap: {ends[0]} after {last}",
            where="release",
            next_step=f"give the parts in order of {', '.join(names)}, each key once",
        )
    return ends[1]


def _sortable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


#: Storage version of the file. A reader older than the version that wrote a file cannot open it,
#: and the newest is what few people have: this is the oldest stable one, which all read.
STORAGE = "v1.0.0"
#: Views over tables inside the file; missing labels stay missing (avg and count skip nulls).
VIEWS = statements(Path(__file__).with_name("views.sql"))
#: Tables by number, in the order in which one needs another, from the `incoming` of that name.
_TABLES = {
    name: VIEWS.pop(f"numbered_{name}") for name in ("queries", "models", "splits", "labels")
}


@dataclass(frozen=True, slots=True)
class Macro:
    """A question that people ask of a release, as a macro of its database.

    Attributes:
        takes: Its parameters, as `model := NULL`; empty without any.
        text: Its SELECT; `{columns}` are one for each model.
    """

    name: str
    asks: str
    takes: str
    text: str

    @property
    def sql(self) -> str:
        """The statement that asks it, with its defaults."""
        return f"FROM {self.name}()"


def _macro(name: str, sql: str) -> Macro:
    head = head_of(sql, ("asks", "takes"), name)
    return Macro(name, head["asks"], head["takes"].replace("nothing", ""), sql.split("\n", 2)[2])


#: The macros of every release.
MACROS = {
    name: _macro(name, sql)
    for name, sql in statements(Path(__file__).with_name("macros.sql")).items()
}


def define_macros(connection: Any) -> None:
    """Create the macros, with comments; DuckDB wants the columns of a matrix written out."""
    models = connection.execute("SELECT model_id FROM models ORDER BY ALL").fetchall()
    columns = "".join(
        f',\n    max(l.score) FILTER (l.model_no = {number}) AS "{name}"'
        for number, name in enumerate(model.replace('"', '""') for (model,) in models)
    )
    for macro in MACROS.values():
        text = macro.text.replace("{columns}", columns)
        connection.execute(f"CREATE MACRO {macro.name}({macro.takes}) AS TABLE {text}")
        connection.execute(f"COMMENT ON MACRO TABLE {macro.name} IS {quoted(macro.asks)}")


def write_database(
    tables: Mapping[str, pa.Table | StoredTable],
    path: Path,
    folder: Path,
    manifest: str = "{}",
    card: str = "",
) -> None:
    """Write the small tables and the summaries, with comments, macros and checks.

    Views over Parquet would resolve against the reader's current directory, so
    the file holds all data that it answers from. DuckDB 1.0 and later can read the file.

    Args:
        tables: The tables of `IN_DATABASE` in released order.
        folder: Where the release's summaries are (`derive`).
        manifest: What the release states, as JSON; `stated` keeps it for the checks.
        card: Text of the card.
    """
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE,
        "memory_limit": "2GB",
        "threads": 1,  # to hand a row group over costs more than to press it
    }
    with duckdb.connect(str(path), config=config) as connection:
        connection.execute("CREATE SCHEMA numbered")
        stored = {name: StoredTable(folder / numbered(name)) for name in SUMMARIES}
        for name, sql in {**_TABLES, **dict.fromkeys(stored, "FROM incoming")}.items():
            _create(connection, f"numbered.{name}", {**tables, **stored}[name], sql)
        for name in IN_DATABASE:
            if name not in VIEWS:
                _create(connection, f'"{name}"', tables[name], "FROM incoming")
        connection.begin()  # a hundred definitions, written to the disk once
        for name, sql in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {sql}")
        for name in IN_DATABASE:
            comment(connection, name, "VIEW" if name in VIEWS else "TABLE")
        define_macros(connection)
        checks = views_of(release_checks({*IN_DATABASE, "accuracy", SAME_CODE}))
        for sql in (*stated(quoted(manifest), quoted(card)), *checks):
            connection.execute(sql)
        connection.commit()
        connection.execute("CHECKPOINT")


def _create(connection: Any, name: str, rows: pa.Table | StoredTable, sql: str) -> None:
    if isinstance(rows, StoredTable):
        rows = pa.RecordBatchReader.from_batches(rows.schema, rows.batches())
    connection.register("incoming", rows)
    connection.execute(f"CREATE TABLE {name} AS {sql}")
    connection.unregister("incoming")


def write_checksum(database: Path) -> None:
    """`NAME.duckdb.sha256` beside the file, in the form that `sha256sum -c` reads.

    No two builds write the same `.duckdb`, so its checksum is in a separate
    file, and the manifest keeps the fingerprint of its content.
    """
    line = f"{sha256(database)}  {database.name}\n"
    checksum_of(database).write_text(line, encoding="utf-8", newline="\n")


def checksum_of(database: Path) -> Path:
    """The file with a database's checksum."""
    return database.with_name(database.name + ".sha256")


def comment(connection: Any, name: str, kind: str) -> None:
    """Describe a table, or a view of it, and each of its columns."""
    contract = CONTRACTS[name]
    connection.execute(f'COMMENT ON {kind} "{name}" IS {quoted(contract.description)}')
    there = connection.table(name).columns
    for column in (item for item in contract.columns if item.name in there):
        says = column.full_description + (f" [{column.unit}]" if column.unit else "")
        connection.execute(f'COMMENT ON COLUMN "{name}"."{column.name}" IS {quoted(says)}')
