"""SQL over a release: read-only, in a process with limits."""

from __future__ import annotations

import csv
import io
import json
import re
import resource
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import SourceError, Unsafe
from routeyard.pipelines.common.isolation import (
    FunctionFailed,
    LimitExceeded,
    Limits,
    ProcessEnded,
    Worker,
)
from routeyard.pipelines.common.sql import lock, quoted
from routeyard.pipelines.common.staging import replacing
from routeyard.pipelines.release.checks import named_files, named_tables
from routeyard.pipelines.release.database import MACROS, VIEWS, comment, define_macros
from routeyard.pipelines.release.derived_tables import SUMMARIES, WIDE, numbered
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.pipelines.release.storage import sealed
from routeyard.schemas import CONTRACTS
from routeyard.schemas.contracts import statements
from routeyard.schemas.errors import BadInput, RouteyardError, UnknownName, did_you_mean
from routeyard.schemas.text import SHOWN, html_card, literal, markdown, one_line, spreadsheet

if TYPE_CHECKING:
    import pandas as pd
    import polars

# Errors of SQL over a release.


class QueryError(BadInput):
    """SQL that DuckDB does not accept."""


class QueryLimit(RouteyardError):
    """A query ran into its limit of time or memory."""


def too_much() -> QueryLimit:
    """The error of a query that needs more memory than it may use."""
    return QueryLimit(
        "the query needs more memory than it may use", next_step="narrow it, or raise --memory"
    )


# Values of DuckDB that would leave it as others: refused, with the cast that is exact.

#: DuckDB's types that reach Arrow as something else: a zone or digits lost, or its own bytes.
INEXACT = frozenset(
    {"interval", "time with time zone", "time_ns", "uhugeint", "bit", "bignum", "variant"}
)
#: In the unit of the column: where a day ends, and the value of infinity.
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_ENDLESS = 2**63 - 1
_LARGEST, _SMALLEST = Decimal(10**38 - 1), Decimal(1 - 10**38)


def check_types(names: list[str], types: list[Any]) -> None:
    """Refuse columns of a type that no value survives.

    Raises:
        QueryError: the column, and how to ask for its text.
    """
    for name, kind in zip(names, types, strict=True):
        if result := next((item for item in _kinds(kind) if item in INEXACT), None):
            raise _inexact(name, f"is of type {result.upper()}")


def check_values(batch: pa.RecordBatch) -> None:
    """Refuse the few values that a type holds in DuckDB and not in Arrow or Python.

    Raises:
        QueryError: the column, and how to ask for its text.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for leaf in _leaves(column):
            if lost := _lost(leaf):
                raise _inexact(name, f"holds {lost}")


def _lost(leaf: pa.Array) -> str | None:
    kind = leaf.type
    if pa.types.is_time(kind):
        raw = leaf.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
        return "the time 24:00:00" if _any(pc.greater_equal(raw, _DAY[kind.unit])) else None
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        endless = pc.greater_equal(pc.abs(leaf.cast(pa.int64())), _ENDLESS)
        return "an infinite time" if _any(endless) else None
    if pa.types.is_decimal128(kind) and kind.scale == 0 and kind.precision == 38:
        over = pc.greater(leaf, pa.scalar(_LARGEST, kind))
        beyond = pc.or_(over, pc.less(leaf, pa.scalar(_SMALLEST, kind)))
        return "a number of 39 digits" if _any(beyond) else None
    return None


def _any(values: pa.Array) -> bool:
    return bool(pc.any(values, skip_nulls=True).as_py())


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    kind = column.type
    if pa.types.is_map(kind):
        yield from _leaves(column.keys)
        yield from _leaves(column.items)
    elif (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        yield from _leaves(column.flatten())
    elif pa.types.is_struct(kind):
        for part in column.flatten():
            yield from _leaves(part)
    elif pa.types.is_union(kind):
        for number in range(kind.num_fields):
            yield from _leaves(column.field(number))
    else:
        yield column


def _kinds(kind: Any) -> Iterator[str]:
    """Names of a DuckDB type and of the types within it, in small letters."""
    yield kind.id
    if kind.id in ("list", "array", "struct", "map", "union"):
        for _, part in kind.children:
            if hasattr(part, "id"):  # an array's size is not
                yield from _kinds(part)


def _inexact(name: str, why: str) -> QueryError:
    return QueryError(
        f"the column {name!r} {why}, which would become another value on its way out",
        where="the answer of the query",
        next_step=f'ask for CAST("{name}" AS VARCHAR)',
    )


# How probably labelled answers are right: the measured rates that a release's manifest carries.


def _label_rates(connection: Any, figures: Mapping[str, Any]) -> None:
    """Tables `label_kinds` and `label_rates`; without rows for a release without measured rates.

    Raises:
        SourceError: the manifest holds something else there.
    """
    import duckdb

    figure = figures.get("label_errors") or {}
    kinds = figure.get("kinds") or [] if isinstance(figure, Mapping) else None
    try:
        if not isinstance(kinds, list) or not all(isinstance(kind, Mapping) for kind in kinds):
            raise TypeError(f"it holds {str(kinds)[:60]}")
        sql = statements(Path(__file__).with_name("rates.sql"))
        params = {"kinds": json.dumps(kinds)}
        connection.execute(f"CREATE TABLE label_kinds AS {sql['label_kinds']}", params)
        connection.execute(f"CREATE VIEW label_rates AS {sql['label_rates']}")
    except (TypeError, duckdb.Error) as error:
        raise SourceError(
            f"`figures.label_errors.kinds` of the manifest is no list of kinds: {error}",
            where="manifest.json",
            next_step="build the release again",
        ) from error


# A DuckDB connection that can read the sealed Parquet of one release and do nothing else.


def connect(release: Path, *, memory_limit: str = "4GB", for_people: bool = True) -> Any:
    """Read-only connection with every table of the release by name.

    All of them are views over the Parquet files that the manifest seals. The
    `.duckdb` file is for people without this code: it is never opened here, so
    what a stranger wrote into it answers nothing. Files outside the release,
    extensions and further settings are locked.

    Args:
        for_people: Whether columns are described and the macros are there; on a small release
            that takes longer than most queries.

    Raises:
        SourceError: the release lacks a file, or one is damaged or not inside it.
    """
    import duckdb

    release = release.resolve()
    manifest = read_manifest(release)
    wanted = {
        f"data/{name}.parquet": entry.file
        for name, entry in manifest.tables.items()
        if name in CONTRACTS and (release / entry.file).exists()  # add-ons may not be fetched
    }
    further = (WIDE, *map(numbered, SUMMARIES))
    wanted |= {file: file for file in further if file in manifest.files}
    paths = {
        name: str(sealed(release, file, manifest.files.get(file))) for name, file in wanted.items()
    }
    try:
        connection = duckdb.connect()
        for sql in named_files({name: literal(path) for name, path in paths.items()}):
            connection.execute(sql)
        connection.execute(f"CREATE VIEW accuracy AS {VIEWS['accuracy']}")
        if for_people:
            for name in named_tables(paths).keys() & CONTRACTS.keys():
                comment(connection, name, "VIEW")
            define_macros(connection)
        _label_rates(connection, manifest.figures)
        allowed = ", ".join(map(quoted, paths.values()))
        lock(connection, memory_limit, f"allowed_paths = [{allowed}]")
    except duckdb.Error as error:
        raise SourceError(
            f"the release cannot be opened: {str(error).splitlines()[0]}",
            where=str(release),
            next_step=f"find what is wrong with `routeyard verify {release}`",
        ) from error
    return connection


# Answers SQL over one release; these functions run in the limited process.

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


# An answer as text or file: table, CSV, JSON, Markdown, Parquet.

_ENDINGS = {".csv": "csv", ".json": "json", ".md": "markdown"}
#: Signs of one cell that a person is shown.
_WIDEST = 80


def to_text(answer: pa.Table, format: str) -> str:
    """The answer as `table`, `csv`, `json` or `markdown`; ends in a newline.

    Null is an empty field in CSV, `null` in JSON and `–` for people. A text that a
    spreadsheet would run as a formula has an apostrophe before it in CSV.
    """
    if format == "table":
        return _answers_table(answer)
    return "".join(_PIECES[format](answer.schema, answer.to_batches()))


def ending(path: Path) -> str:
    """The ending of a file that an answer can be written to.

    Raises:
        UnknownName: it is not one of `.csv`, `.json`, `.md`, `.parquet`.
    """
    known = [*_ENDINGS, ".parquet"]
    if path.suffix not in known:
        raise UnknownName(
            f"no format is known by the ending {path.suffix!r}",
            where=str(path),
            next_step=did_you_mean(path.suffix, known),
        )
    return path.suffix


def write_answer(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> int:
    """Write rows as they come, as the ending of `path` says; returns how many.

    The file appears when it is whole; what was there stays when the query fails.

    Raises:
        UnknownName: the ending is not known.
    """
    kind, rows = ending(path), 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    with replacing(path) as part:
        if kind == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(part, schema, compression="zstd") as writer:
                for batch in counted():
                    writer.write_batch(batch)
        else:
            with part.open("w", encoding="utf-8", newline="\n") as stream:
                stream.writelines(_PIECES[_ENDINGS[kind]](schema, counted()))
    return rows


def _csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(spreadsheet, schema.names))
    for batch in batches:
        for row in _answers_rows(batch):
            writer.writerow(["" if value is None else spreadsheet(_plain(value)) for value in row])
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def _json(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    names = schema.names
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(
            f"two columns of the answer are called {twice[0]!r}, and an object holds one",
            next_step="name them apart with AS",
        )
    before = "[\n"
    for batch in batches:
        for row in _answers_rows(batch):
            text = json.dumps(
                dict(zip(names, row, strict=True)), ensure_ascii=False, indent=2, default=str
            )
            yield before + textwrap.indent(text, "  ")
            before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _markdown(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    numeric = [_is_number(field.type) for field in schema]
    yield "| " + " | ".join(map(_cell, schema.names)) + " |\n"
    yield "| " + " | ".join("---:" if n else "---" for n in numeric) + " |\n"
    for batch in batches:
        for row in _answers_rows(batch):
            yield "| " + " | ".join(_cell(_answers_short(v)) for v in row) + " |\n"


def _answers_table(answer: pa.Table) -> str:
    rows = [
        [one_line(_answers_short(value), _WIDEST) for value in row] for row in _answers_rows(answer)
    ]
    names = [one_line(name, _WIDEST) for name in answer.column_names]
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
    numeric = [_is_number(field.type) for field in answer.schema]

    def line(cells: list[str]) -> str:
        padded = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(names), rule, *map(line, rows), f"({answer.num_rows:,} rows)"]) + "\n"


def _answers_rows(answer: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    named = zip(answer.schema.names, answer.columns, strict=True)
    columns = [_values(name, column) for name, column in named]
    return list(zip(*columns, strict=True)) if columns else []


def _values(name: str, column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Python's values of a column.

    Raises:
        BadInput: one is outside what Python can hold, such as a date after the year 9999.
    """
    try:
        values: list[Any] = column.to_pylist()
        if pa.types.is_decimal(column.type) and column.type.scale == 0:
            return [value if value is None else int(value) for value in values]  # a HUGEINT
    except (OverflowError, ValueError) as error:
        raise BadInput(
            f"the column {name!r} holds a value that cannot be shown: {error}",
            where="the answer of the query",
            next_step=f"ask for CAST({name} AS VARCHAR), or --out FILE.parquet",
        ) from error
    return values


def _plain(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if _nested(value) else value


def _nested(value: Any) -> bool:
    return isinstance(value, list | dict)


def _answers_short(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(_plain(value))


def _cell(text: str) -> str:
    return markdown(one_line(text, _WIDEST))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


_PIECES: dict[str, Callable[[pa.Schema, Iterable[pa.RecordBatch]], Iterator[str]]] = {
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
}


# The things people ask a release first: its macros, those that need no argument under one name.

SAVED = {name: macro for name, macro in MACROS.items() if ":=" in macro.takes or not macro.takes}


def saved(name: str) -> str:
    """SQL of a saved query: `leaderboard`, or one with arguments, `hardest(5)`.

    Raises:
        UnknownName: no saved query has that name.
    """
    called, bracket, _ = name.partition("(")
    if called not in MACROS:
        known = did_you_mean(called, MACROS)
        raise UnknownName(f"there is no saved query {called!r}", next_step=known)
    return f"FROM {name if bracket else name + '()'}"


# One table of an open release: how many rows it has, and its content in the form one wants.

#: Columns that become categories of a data frame.
_IDS = frozenset({"query_id", "model_id", "scorer", "decided_by", "split"})


@dataclass(frozen=True, repr=False)
class ReleaseTable:
    """A table that is read when it is asked for. It also has the methods of its DuckDB relation:
    `.filter("correct")`, `.aggregate(…)`, `.df()`.

    Attributes:
        name: Its name in the release.
        relation: DuckDB relation over its sealed Parquet file.
        arrow_table: Reads it in contract form.
    """

    name: str
    relation: Any
    arrow_table: Any

    def to_arrow(self) -> pa.Table:
        """The table in contract form, in the release's order."""
        table: pa.Table = self.arrow_table()
        return table

    def to_pandas(self) -> pd.DataFrame:
        """The table as a data frame; ids are categories, null stays null."""
        columns = self.to_arrow()
        ids = sorted(_IDS & set(columns.column_names))
        frame: pd.DataFrame = columns.to_pandas(categories=ids)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars data frame.

        Raises:
            BadInput: polars is not installed.
        """
        try:
            import polars
        except ModuleNotFoundError as error:
            raise BadInput(
                "polars is not installed",
                where=f"the table {self.name!r}",
                next_step="`pip install polars`, or use to_pandas() or to_arrow()",
            ) from error
        frame: polars.DataFrame = polars.from_arrow(self.to_arrow())
        return frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.relation.columns)

    def __len__(self) -> int:
        return int(self.relation.count("*").fetchall()[0][0])

    def __repr__(self) -> str:
        return f"{self.name}: {len(self):,} rows; {', '.join(self.columns)}"

    def _repr_html_(self) -> str:
        rows = self.relation.limit(SHOWN).to_arrow_table().to_pylist()
        short = [{name: _table_view_short(value) for name, value in row.items()} for row in rows]
        return html_card(self.name, {"rows": len(self)}, short)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.relation, name)


def _table_view_short(value: Any) -> Any:
    """A cell of a table in a notebook: long texts and lists are cut."""
    text = str(value)
    return value if len(text) <= 60 else f"{text[:59]}…"


# SQL over a release: read-only, answered in a process with limits of time and memory.

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
#: What Arrow and DuckDB need beside the memory of a query, in bytes.
_OVERHEAD = 512 << 20
#: The longest time-out, in seconds: a year.
_LONGEST = 366 * 86400.0


def query_release(
    release: Path, sql: str, *, timeout_s: float = 60.0, memory_limit: str = "4GB"
) -> pa.Table:
    """Answer of one SQL statement as an Arrow table.

    It is found in a separate process, whose address space is limited and which is
    ended when the time is up; neither a single expression nor a large answer passes.

    Raises:
        QueryError: the SQL is wrong.
        Unsafe: it would write, or read a file outside the release.
        QueryLimit: time or memory ran out.
        SourceError: there is no release, or it is damaged.
    """
    with closing(SqlProcess(release, memory_limit=memory_limit)) as process:
        return process.table(sql, timeout_s=timeout_s)


def in_bytes(memory: str) -> int:
    """`4GB`, `500 MB`, `2GiB` in bytes.

    Raises:
        BadInput: it is no amount of memory.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", memory, re.IGNORECASE)
    if match is None or not float(match[1]):
        raise BadInput(f"{memory!r} is no amount of memory", next_step="write it like 4GB or 500MB")
    unit = match[2].upper()
    scale = 1024 ** "_KMGT".index(unit) if match[3] and unit else _UNITS[unit]
    return int(float(match[1]) * scale)


class SqlProcess:
    """SQL over one release, answered in a limited process.

    A time-out ends the process, and the next query starts another: an expression that
    looks at no clock is stopped as well. Memory is limited there by the address space,
    here by the bytes of the answer.
    """

    def __init__(self, release: Path, *, memory_limit: str = "4GB") -> None:
        self._memory, self._most = memory_limit, in_bytes(memory_limit)
        limits = Limits(self._most + _OVERHEAD, _LONGEST, answer=self._most)
        self._worker = Worker(limits, open_release, str(release.resolve()), memory_limit)
        #: `cpu_s` and `peak_mb` of the process up to its last answer.
        self.spent: dict[str, float] = {}

    def table(self, sql: str, *, timeout_s: float) -> pa.Table:
        """The whole answer; `QueryLimit` when it is larger than the memory limit."""
        schema, batches = self.stream(sql, timeout_s=timeout_s)
        held, parts = 0, []
        for batch in batches:
            held += batch.nbytes
            parts.append(batch)
            if held > self._most:
                self.close()
                raise QueryLimit(
                    f"the answer is larger than {self._memory}",
                    next_step="narrow it, raise --memory, or write it to a file with --out",
                )
        return pa.Table.from_batches(parts, schema=schema)

    def stream(self, sql: str, *, timeout_s: float) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Columns of the answer, and its rows in pieces as they are found.

        The time runs while the query works, not while the reader does.

        Raises:
            QueryError: the SQL is wrong.
            Unsafe: it would write, or read a file outside the release.
            QueryLimit: time or memory ran out.
        """
        if not 0 < timeout_s <= _LONGEST:
            raise BadInput(
                f"{timeout_s:g} s is no time-out",
                next_step=f"give more than 0 and at most {_LONGEST:g}",
            )
        pieces = self._pieces(sql, timeout_s)
        return next(pieces), pieces

    def close(self) -> None:
        """End the process; a later query starts another."""
        self._worker.close()

    def _pieces(self, sql: str, timeout_s: float) -> Iterator[Any]:
        limits = Limits(self._most + _OVERHEAD, timeout_s, answer=self._most)
        with (
            _our_limits(timeout_s),
            closing(self._worker.stream(answer, sql, limits=limits)) as stream,
        ):
            for piece in stream:
                if isinstance(piece, dict):
                    self.spent = piece
                else:
                    yield piece


@contextmanager
def _our_limits(timeout_s: float) -> Iterator[None]:
    """The limited process's errors as those of a query."""
    try:
        yield
    except LimitExceeded as error:
        if error.limit == "memory":
            raise too_much() from error
        raise QueryLimit(
            f"the query took longer than {timeout_s:g} s",
            next_step="narrow it with WHERE, or raise --timeout",
        ) from error
    except ProcessEnded as error:  # memory that nobody could refuse politely ends it
        raise QueryLimit(
            "the process that answers queries ended, most likely for want of memory",
            next_step="narrow the query, or raise --memory",
        ) from error
    except FunctionFailed as error:
        raise SourceError(str(error), next_step="narrow the query") from error
