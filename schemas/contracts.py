"""The contract of every table of a release (`contracts.yaml`), and the columns of results."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.schemas.errors import ContractError
from routeyard.schemas.text import literal, own_table

# A contract: what one row of a table means, and the check that it holds.
#
# A contract is a name, Arrow columns (description and unit travel in the field
# metadata, so a Parquet file explains itself), a key and rules written as SQL
# predicates that every row must satisfy.


@dataclass(frozen=True, slots=True)
class RowRule:
    """A named SQL predicate; a row for which it is not true breaks the rule."""

    name: str
    predicate: str


@dataclass(frozen=True, slots=True)
class Column:
    """One column: Arrow type, meaning and unit.

    Attributes:
        values: Every value that is allowed, and what each means; empty where any is.
    """

    name: str
    type: pa.DataType
    description: str
    unit: str | None = None
    nullable: bool = False
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_description(self) -> str:
        """The description with the values that are allowed."""
        if not self.values:
            return self.description
        allowed = ", ".join(f"`{value}` ({means})" for value, means in self.values.items())
        return f"{self.description}: {allowed}" + (", or null" if self.nullable else "")

    def known(self) -> RowRule | None:
        """The rule that it holds no other value."""
        if not self.values:
            return None
        listed = ", ".join(f"'{value}'" for value in self.values)
        null = f"{self.name} IS NULL OR " if self.nullable else ""
        return RowRule(f"{self.name}_known", f"{null}{self.name} IN ({listed})")

    def to_field(self) -> pa.Field:
        metadata = {"description": self.full_description}
        if self.unit:
            metadata["unit"] = self.unit
        return pa.field(self.name, self.type, nullable=self.nullable, metadata=metadata)


_TYPE = re.compile(r"([a-z0-9<>,]+)(\??)(?: \[([^\]]+)\])?: (.*)", re.DOTALL)


def columns(**declared: str | tuple[str, Mapping[str, str]] | Column) -> tuple[Column, ...]:
    """Columns from declarations `type: description` by name.

    `type? [unit]: description` declares one that may be null, with its unit. A pair of a
    declaration and a mapping lists the values that are allowed; a column of another contract is
    taken as it is.

    >>> columns(latency_s="float64? [s]: request sent to last byte")[0].unit
    's'
    """
    return tuple(
        col if isinstance(col, Column) else _column(name, *([col] if isinstance(col, str) else col))
        for name, col in declared.items()
    )


def _column(name: str, declared: str, values: Mapping[str, str] | None = None) -> Column:
    match = _TYPE.fullmatch(declared)
    if match is None:
        raise ValueError(f"column {name!r}: expected 'type? [unit]: description', got {declared!r}")
    kind, null, unit, description = match.groups()
    outer, *inner = re.split("[<,>]", kind.removesuffix(">"))
    make = {"list": pa.list_, "map": pa.map_}.get(outer)
    arrow = make(*map(pa.type_for_alias, inner)) if make else pa.type_for_alias(kind)
    return Column(name, arrow, description, unit, nullable=bool(null), values=values or {})


def rules(**predicates: str) -> tuple[RowRule, ...]:
    """Rules from SQL predicates by name."""
    return tuple(RowRule(name, predicate) for name, predicate in predicates.items())


@dataclass(frozen=True)
class Contract:
    """Columns, key and rules of one table. `check` is the only gate."""

    name: str
    description: str
    columns: Sequence[Column]
    key: Sequence[str]
    rules: Sequence[RowRule] = field(default=())
    #: Counted up when columns change meaning, come or go; a release's manifest names it.
    version: int = 1
    #: Columns that a table made elsewhere may lack; null there.
    optional: Sequence[str] = field(default=())
    #: Table that must have the row of each row → the columns that name it in both.
    parents: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([column.to_field() for column in self.columns])

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def __getitem__(self, column: str) -> Column:
        return next(item for item in self.columns if item.name == column)

    def empty(self) -> pa.Table:
        return self.schema.empty_table()

    def from_rows(self, rows: Iterable[Mapping[str, Any]], *, where: str | None = None) -> pa.Table:
        """Table from dictionaries; a missing key is null, an unknown one an error."""
        rows = list(rows)
        known = set(self.column_names)
        for row in rows:
            if unknown := set(row) - known:
                raise self._broken(f"has no column {sorted(unknown)[0]!r}", where)
        try:
            arrays = [
                pa.array([row.get(c.name) for row in rows], type=c.type) for c in self.columns
            ]
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise self._broken(f"got a value of the wrong type: {error}", where) from error
        return self.check(pa.Table.from_arrays(arrays, schema=self.schema), where=where)

    def conform(self, table: pa.Table, *, where: str | None = None) -> pa.Table:
        """Columns in contract order and type, `optional` ones null where absent; no row is read."""
        missing = [c.name for c in self.columns if c.name not in table.column_names]
        for name in [name for name in missing if name in self.optional]:
            missing.remove(name)
            table = table.append_column(name, pa.nulls(table.num_rows, self[name].type))
        if missing:
            raise self._broken(f"lacks column(s) {', '.join(missing)}", where)
        extra = sorted(set(table.column_names) - set(self.column_names))
        if extra:
            raise self._broken(f"has unknown column(s) {', '.join(extra)}", where)
        arrays = []
        for column in self.columns:
            values = table.column(column.name)
            if values.type != column.type:
                try:
                    values = values.cast(column.type)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                    raise self._broken(
                        f"column {column.name!r} is {values.type}, not {column.type}: {error}",
                        where,
                    ) from error
            arrays.append(values)
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def check(self, table: pa.Table, *, where: str | None = None, keyed: bool = True) -> pa.Table:
        """The table in contract form, or a `ContractError` that names the rule.

        The error counts the rows that break the rule and shows up to three.

        Args:
            keyed: False leaves out that keys are unique, for a caller who sees it otherwise.
        """
        table = self.conform(table, where=where)
        with _engine(os.getpid()).cursor() as connection:
            connection.register("rows", table)
            for column in self.columns:
                nulls = table.column(column.name).null_count
                if nulls and not column.nullable:
                    sample = self._sample(connection, f'"{column.name}" IS NULL')
                    raise self._broken(
                        f"column {column.name!r} may not be null; {nulls} row(s) are: {sample}",
                        where,
                    )
            if keyed:
                self._check_key(connection, where)
            self._check_rules(connection, where)
        return table

    @cached_property
    def checked(self) -> list[RowRule]:
        """Its rules, and that columns with a closed list of values hold no others."""
        known = (column.known() for column in self.columns)
        return [*(rule for rule in known if rule), *self.rules]

    def _check_rules(self, connection: Any, where: str | None) -> None:
        if not self.checked:
            return
        broken = [f"({rule.predicate}) IS NOT TRUE" for rule in self.checked]
        counts = ", ".join(f"count(*) FILTER ({condition})" for condition in broken)
        row = connection.execute(f"SELECT {counts} FROM rows").fetchone()
        for rule, condition, count in zip(self.checked, broken, row, strict=True):
            if count:
                raise self._broken(
                    f"rule {rule.name!r} ({rule.predicate}) is broken by {count} row(s): "
                    f"{self._sample(connection, condition)}",
                    where,
                )

    def _check_key(self, connection: Any, where: str | None) -> None:
        if not self.key:
            return
        key = ", ".join(f'"{name}"' for name in self.key)
        repeated = f"SELECT {key}, count(*) AS n FROM rows GROUP BY ALL HAVING count(*) > 1"
        (count,) = connection.execute(f"SELECT count(*) FROM ({repeated})").fetchone()
        if count:
            shown = connection.execute(f"{repeated} ORDER BY ALL LIMIT 3").fetchall()
            raise self._broken(
                f"key ({', '.join(self.key)}) is repeated for {count} value(s): "
                + "; ".join(str(row) for row in shown),
                where,
            )

    def _sample(self, connection: Any, condition: str) -> str:
        names = ", ".join(f'"{name}"' for name in (self.key or self.column_names[:3]))
        rows = connection.execute(f"SELECT {names} FROM rows WHERE {condition} LIMIT 3").fetchall()
        return "; ".join(str(row) for row in rows)

    def _broken(self, what: str, where: str | None) -> ContractError:
        return ContractError(
            f"table {self.name!r} {what}",
            where=where,
            next_step=f"compare the table with the contract {self.name!r} under schemas/",
        )


@cache
def _engine(process: int) -> Any:
    """One DuckDB per process: to start it costs more than most checks.

    Each cursor is a separate connection, so tables registered by two threads do not collide.
    """
    import duckdb

    # A forked child has no threads of its parent: it must neither use its engine nor close it.
    del process
    return duckdb.connect()


def _declared() -> Iterator[Contract]:
    made: dict[str, Contract] = {}
    for name, item in own_table(Path(__file__).with_name("contracts.yaml")).items():
        for column, entry in item["columns"].items():
            if isinstance(entry, dict):
                other = made.get(entry.get("as_in", ""))
                item["columns"][column] = other[column] if other else (entry["is"], entry["values"])
        item |= {"columns": columns(**item["columns"]), "rules": rules(**item.get("rules", {}))}
        made[name] = Contract(name, **item)
        yield made[name]


#: By name, in the order in which a release lists them.
CONTRACTS = {contract.name: contract for contract in _declared()}
#: Arrow schemas of the tables of results beside a release, by name.
RESULTS = {
    name: pa.schema([column.to_field() for column in columns(**item)])
    for name, item in own_table(Path(__file__).with_name("results.yaml")).items()
}


# The normal form of anybody's results: one row per answer, which readers give and audits take.
#
# `pipelines/ingest` reads a stranger's file into it, `flows/audits` makes it of a release, and
# `pipelines/audit` looks for defects in it. A value that a source does not give is null: never
# wrong, zero or free. Values are as the source has them, also where they make no sense (a
# cost below zero, half a token), so that an audit can name them.

#: Every column is there; one that a source lacks is null throughout.
RECORDING = RESULTS["recording"]


def recording(given: dict[str, pa.Array | pa.ChunkedArray | list[object]]) -> pa.Table:
    """The normal form of some columns, the others null; each is cast to its type.

    Raises:
        pa.ArrowInvalid: a value cannot be cast, or columns differ in length.
    """
    n = max((len(values) for values in given.values()), default=0)
    whole = {
        field.name: pa.nulls(n, field.type) if (values := given.get(field.name)) is None else values
        for field in RECORDING
    }
    return pa.table(whole, schema=RECORDING)


# A table that stays on disk, and SQL over tables: what is asked of one without loading it.


@dataclass(frozen=True)
class StoredTable:
    """A Parquet file in contract form. `schema`, `num_rows` and `column_names` are free."""

    path: Path

    @cached_property
    def schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    @cached_property
    def num_rows(self) -> int:
        return int(pq.read_metadata(self.path).num_rows)

    @property
    def column_names(self) -> list[str]:
        return list(self.schema.names)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The table, or some of its columns, in memory."""
        return pq.read_table(self.path, columns=list(columns) if columns else None)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, or some of their columns, 65,536 at a time."""
        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(1 << 16, columns=list(columns) if columns else None)


@runtime_checkable
class TableStore(Protocol):
    """Tables by name, some of which can be had as their places."""

    def stored(self, name: str) -> StoredTable | None: ...


def register(connection: Any, name: str, table: pa.Table | StoredTable) -> None:
    """Give a DuckDB connection a table by name; one on disk is read when it is asked."""
    if isinstance(table, StoredTable):
        connection.from_parquet(literal(str(table.path))).create_view(name, replace=True)
    else:
        connection.register(name, table)


def statements(path: Path) -> dict[str, str]:
    """Name → SQL of each part of a file; a part begins with a line `-- name: NAME`."""
    parts = re.split(r"^-- name: (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))


# The contract of every table by its name, and the types they are made of.

QUERIES = CONTRACTS["queries"]
MODELS = CONTRACTS["models"]
RESPONSES = CONTRACTS["responses"]
STEPS = CONTRACTS["steps"]
VERDICTS = CONTRACTS["verdicts"]
LABELS = CONTRACTS["labels"]
OUTCOMES = CONTRACTS["outcomes"]
EMBEDDINGS = CONTRACTS["embeddings"]
DUPLICATES = CONTRACTS["duplicates"]
ENTROPIES = CONTRACTS["entropies"]
PREFERENCES = CONTRACTS["preferences"]
DESCRIPTORS = CONTRACTS["descriptors"]
HIDDEN_STATES = CONTRACTS["hidden_states"]
SIGNALS = CONTRACTS["signals"]
SPLITS = CONTRACTS["splits"]
MODEL_SPLITS = CONTRACTS["model_splits"]
REMOVALS = CONTRACTS["removals"]
