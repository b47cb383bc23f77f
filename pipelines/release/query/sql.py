"""Answers SQL over one release; these functions run in the limited process (`process.py`)."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import Unsafe
from routeyard.pipelines.release.query.connection import connect
from routeyard.pipelines.release.query.errors import QueryError, too_much
from routeyard.pipelines.release.query.exact import check_types, check_values

#: Rows of a batch that is handed over.
_ROWS = 10_000
_connections: list[Any] = []


def open_release(release: str, memory_limit: str) -> None:
    """Connect to a release, whose queries `answer` is asked for then.

    Raises:
        SourceError: as `connect` does.
    """
    _connections[:] = [connect(Path(release), memory_limit=memory_limit)]


def answer(sql: str) -> Iterator[Any]:
    """The schema of an answer, its batches, and what the process took so far.

    Raises:
        QueryError: the SQL is wrong.
        Unsafe: it would write, or read a file outside the release.
        QueryLimit: memory ran out.
    """
    import pyarrow as pa

    (connection,) = _connections
    _check(connection, sql)
    with _our_errors(connection):
        # PIVOT is several statements in one, so the text is run, not the parsed statement.
        relation = connection.sql(sql)
        if relation is None:
            yield pa.schema([])
        else:
            check_types(relation.columns, relation.types)
            reader = relation.to_arrow_reader(_ROWS)
            yield reader.schema
            for batch in reader:
                check_values(batch)
                yield batch
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield {"cpu_s": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}


def _check(connection: Any, sql: str) -> None:
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
def _our_errors(connection: Any) -> Iterator[None]:
    """DuckDB's errors as ours, which say what to do next."""
    import duckdb

    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError) as error:
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
    import duckdb

    if isinstance(error, (duckdb.OperationalError, duckdb.InternalError)) or (
        type(error) is duckdb.Error
    ):
        return QueryError(
            f"the data cannot be read: {error}",
            next_step="`routeyard verify RELEASE` says which files are damaged; fetch them again",
        )
    return QueryError(
        f"the query is not valid: {error}",
        next_step=f"tables: {tables}; `DESCRIBE labels` lists the columns of one"
        # A damaged page of a file is an invalid input as well.
        + (
            "; or a file is damaged: `routeyard verify RELEASE` says which"
            if isinstance(error, duckdb.InvalidInputException)
            else ""
        ),
    )
