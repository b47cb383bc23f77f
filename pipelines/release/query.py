"""SQL over a release: read-only, within limits of time and memory."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.errors import BadInput, RouteyardError, Unsafe
from pipelines.release.connection import connect


class QueryError(BadInput):
    """SQL that DuckDB does not accept."""


class QueryLimit(RouteyardError):
    """A query ran into its limit of time or memory."""


def query_release(
    release: Path, sql: str, *, timeout_s: float = 60.0, memory_limit: str = "4GB"
) -> pa.Table:
    """Answer of one SQL statement as an Arrow table.

    Raises:
        QueryError: the SQL is wrong.
        Unsafe: it would write, or read a file outside the release.
        QueryLimit: time or memory ran out.
    """
    with connect(release, memory_limit=memory_limit) as connection:
        return answer(connection, sql, timeout_s=timeout_s)


def answer(connection: Any, sql: str, *, timeout_s: float) -> pa.Table:
    """Run one statement on a connection from `connect`."""
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
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        connection.interrupt()

    timer = threading.Timer(timeout_s, stop)
    timer.daemon = True
    timer.start()
    try:
        # PIVOT is several statements in one, so the text is run, not the parsed statement.
        relation = connection.sql(sql)
        table: pa.Table = relation.to_arrow_table() if relation is not None else pa.table({})
        return table
    except duckdb.InterruptException as error:
        if not expired.is_set():
            raise
        raise QueryLimit(
            f"the query took longer than {timeout_s:g} s",
            next_step="narrow it with WHERE, or raise --timeout",
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise QueryLimit(
            "the query needs more memory than it may use",
            next_step="narrow it, or raise --memory",
        ) from error
    except duckdb.PermissionException as error:
        raise Unsafe(
            "the query reads or writes outside the release",
            where=str(error).splitlines()[0],
            next_step="only the tables of the release can be read",
        ) from error
    except duckdb.Error as error:
        raise _wrong(error, connection) from error
    finally:
        timer.cancel()


def _wrong(error: Exception, connection: Any) -> QueryError:
    tables = ", ".join(row[0] for row in connection.execute("SHOW TABLES").fetchall())
    return QueryError(
        f"the query is not valid: {error}",
        next_step=f"tables: {tables}; `DESCRIBE labels` lists the columns of one",
    )
