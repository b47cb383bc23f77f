"""SQL in files: a runner of their statements, and checks, which select the rows that break them.

A `.sql` file holds statements, each after a line `-- name: NAME`. Each check is one statement: a
head of lines `-- WORD: value`, then one SELECT that returns the rows that break it, with the
columns that `key` names and what was `found` and `expected` there.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.schemas import StoredTable
from routeyard.schemas.contracts import register, statements

#: Memory of a runner; what needs more goes to the disk.
MEMORY = "2GB"
#: Rows of a broken check that are shown.
SHOWN = 3


#: Settings after which a connection reaches nothing new and cannot be unlocked.
LOCKED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
}


def lock(connection: Any, memory: str, *settings: str) -> None:
    """Leave a connection for SQL of others: what it holds already, no disk, and no way out."""
    for setting in (
        *settings,
        "temp_directory = ''",
        f"memory_limit = {quoted(memory)}",
        "python_enable_replacements = false",
        *(f"{name} = {value}" for name, value in LOCKED.items()),
    ):
        connection.execute(f"SET {setting}")


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Runner:
    """A DuckDB connection with tables by name, and the statements of a file.

    Rows come in a stated order: a statement that does not end in an ORDER BY is ordered by all of
    its columns. The macro `exact(x)` adds up money and scores without rounding, to 12 decimals.
    Values are bound by name (`$task`), never written into the text.
    """

    connection: Any
    statements: Mapping[str, str]

    def give(self, **tables: pa.Table | StoredTable) -> None:
        """Make further tables known by their names."""
        for name, table in tables.items():
            register(self.connection, name, table)

    def keep(self, *names: str) -> None:
        """Store the rows of statements as tables of the same names, one after the other."""
        for name in names:
            self.connection.execute(f'CREATE TEMP TABLE "{name}" AS {self.statements[name]}')

    def table(self, name: str, **values: Any) -> pa.Table:
        """The rows of a statement."""
        return self._run(name, values).to_arrow_table()

    def batches(self, name: str, **values: Any) -> pa.RecordBatchReader:
        """The rows of a statement in parts, for those that do not fit in memory."""
        return self._run(name, values).to_arrow_reader(1 << 17)

    def _run(self, name: str, values: Mapping[str, Any]) -> Any:
        return self.connection.sql(_ordered(self.statements[name]), params=values or None)


@contextmanager
def runner(
    file: Path | None = None,
    tables: Mapping[str, pa.Table | StoredTable] | None = None,
    *,
    threads: int = 1,
    memory: str = MEMORY,
) -> Iterator[Runner]:
    """A runner of the statements of a file over tables.

    Args:
        threads: With one, the last digit of a sum of floats does not depend on the machine.
    """
    import duckdb

    with (
        tempfile.TemporaryDirectory(prefix="routeyard-sql-") as spill,
        duckdb.connect(config={"threads": threads, "memory_limit": memory}) as connection,
    ):
        connection.execute(f"SET temp_directory = {quoted(spill)}")
        connection.execute("SET enable_progress_bar = false")
        connection.execute("CREATE MACRO exact(x) AS sum(x::DECIMAL(38, 12))::DOUBLE")
        result = Runner(connection, statements(file) if file else {})
        result.give(**(tables or {}))
        yield result


def _ordered(sql: str) -> str:
    """A statement that says in which order its rows come."""
    says = re.search(r"\bORDER BY [^()]*$", sql, re.IGNORECASE)
    return sql if says else f"SELECT * FROM ({sql}\n) ORDER BY ALL"


def head_of(sql: str, words: Sequence[str], name: str) -> dict[str, Any]:
    """Word → value of the lines `-- WORD: value` with which a check begins.

    Raises:
        ValueError: they are not the words that a check states, in their order.
    """
    lines = re.match(r"(?:-- \w+: .+\n)*", sql)
    head = dict(re.findall(r"^-- (\w+): (.+)$", lines[0] if lines else "", re.MULTILINE))
    if tuple(head) != tuple(words):
        raise ValueError(f"{name}: the head of a check has the lines {', '.join(words)}")
    return head


#: Lines of the head of a check, in this order.
_HEAD = ("kind", "says", "severity", "needs", "key")


@dataclass(frozen=True, slots=True)
class Check:
    """A SELECT of the rows that break a rule.

    Attributes:
        name: Name of its file or statement.
        kind: What a check without rows shows: `proved` or `consistent`.
        says: What holds where it returns no row.
        severity: `error`, or `warning` where a reader should only know.
        needs: Tables without which it is not run.
        key: Columns that name a row.
        sql: The SELECT, without its head.
    """

    name: str
    kind: str
    says: str
    severity: str
    needs: tuple[str, ...]
    key: tuple[str, ...]
    sql: str

    @classmethod
    def of(cls, name: str, text: str) -> Check:
        """The check in a text: its head and one SELECT.

        Raises:
            ValueError: its head lacks a word, or has one that is not known.
        """
        head = head_of(text, _HEAD, name)
        lists = {word: tuple(re.split(r",\s*", head[word])) for word in ("needs", "key")}
        sql = text.split("\n", len(_HEAD))[-1]
        return cls(name=name, **{**head, **lists}, sql=sql)

    @property
    def text(self) -> str:
        """Its head and its SELECT, as `of` reads them."""
        values = (self.kind, self.says, self.severity, ", ".join(self.needs), ", ".join(self.key))
        head = "".join(f"-- {word}: {v}\n" for word, v in zip(_HEAD, values, strict=True))
        return head + self.sql

    def broken(self, run: Runner, **values: Any) -> tuple[int, list[str]]:
        """How many rows break it, and a sentence for the first of them: which row, what was
        found and what was expected."""
        params = {name: value for name, value in values.items() if f"${name}" in self.sql}
        sql = f"SELECT *, count(*) OVER () AS broken FROM ({self.sql}\n) ORDER BY ALL LIMIT {SHOWN}"
        rows = run.connection.sql(sql, params=params or None).to_arrow_table().to_pylist()
        shown = [
            f"{'|'.join(str(row[name]) for name in self.key)}: {row['found']}, "
            f"expected {row['expected']}"
            for row in rows
        ]
        return (rows[0]["broken"] if rows else 0), shown
