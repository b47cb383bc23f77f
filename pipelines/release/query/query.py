"""SQL over a release: read-only, within limits of time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.errors import Unsafe
from pipelines.release.query.process import QueryError, QueryLimit, SqlProcess, too_much

__all__ = ["QueryError", "QueryLimit", "checked", "query_release", "told", "too_much"]


def query_release(
    release: Path, sql: str, *, timeout_s: float = 60.0, memory_limit: str = "4GB"
) -> pa.Table:
    """Answer of one SQL statement as an Arrow table.

    It is found in a process of its own, whose address space is limited and which is
    ended when the time is up; neither a single expression nor a large answer passes.

    Raises:
        QueryError: the SQL is wrong.
        Unsafe: it would write, or read a file outside the release.
        QueryLimit: time or memory ran out.
        SourceError: there is no release, or it is damaged.
    """
    with closing(SqlProcess(release, memory_limit=memory_limit)) as process:
        return process.table(sql, timeout_s=timeout_s)


def checked(connection: Any, sql: str) -> None:
    """Refuse anything but one statement that reads.

    Raises:
        QueryError: the SQL is wrong, or several statements.
        Unsafe: it would write or change settings.
    """
    import duckdb

    readable = {
        duckdb.StatementType.SELECT,
        duckdb.StatementType.EXPLAIN,
        duckdb.StatementType.PRAGMA,
        duckdb.StatementType.MULTI,
    }
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise _wrong(error, connection) from error
    if len(statements) != 1:
        raise QueryError(
            f"{len(statements)} statements were given, one is expected",
            next_step="run them one by one",
        )
    if statements[0].type not in readable:
        raise Unsafe(
            f"a release is read-only: {statements[0].type.name} is refused",
            next_step="ask with SELECT; write the answer elsewhere with --format or --out",
        )


@contextmanager
def told(connection: Any) -> Iterator[None]:
    """DuckDB's errors as ours, which say what to do next."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise too_much() from error
    except duckdb.PermissionException as error:
        raise Unsafe(
            "the query reads or writes outside the release",
            where=str(error).splitlines()[0],
            next_step="only the tables of the release can be read",
        ) from error
    except duckdb.Error as error:
        raise _wrong(error, connection) from error


def _wrong(error: Exception, connection: Any) -> QueryError:
    tables = ", ".join(row[0] for row in connection.execute("SHOW TABLES").fetchall())
    return QueryError(
        f"the query is not valid: {error}",
        next_step=f"tables: {tables}; `DESCRIBE labels` lists the columns of one",
    )
