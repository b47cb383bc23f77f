"""Reading a release from Python: DuckDB relation, Arrow, pandas and NumPy in one call each."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.matrix import Matrix, scatter
from routeyard.pipelines.release.derived_tables import WIDE, read_wide
from routeyard.pipelines.release.manifest import read_manifest, yanked
from routeyard.pipelines.release.query import ReleaseTable, SqlProcess, connect
from routeyard.pipelines.release.storage import fetch, is_url, sealed
from routeyard.pipelines.release.tables import read_parquet
from routeyard.schemas import CONTRACTS
from routeyard.schemas.errors import BadInput, UnknownName, did_you_mean
from routeyard.schemas.release import Manifest
from routeyard.schemas.text import html_card

if TYPE_CHECKING:
    import pandas as pd

#: Tables whose rows the short form counts.
_COUNTED = ("queries", "models", "labels", "responses")
#: Measures of `matrix`: the columns of `outcomes` that are numbers.
MEASURES = (
    "score", "correct", "cost_usd", "latency_s",
    "prompt_tokens", "completion_tokens", "reasoning_tokens",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class OpenRelease:
    """One release, read-only. Use as a context manager or call `close`.

    Each table is an attribute: `release.labels.to_pandas()`, `.to_polars()`, `.to_arrow()`.

    with open_release("releases/demo/1.0.0") as release:
        labels = release.labels.to_pandas()
        scores = release.matrix("score")      # queries × models, NaN = no label
    """

    path: Path
    manifest: Manifest
    connection: Any
    #: Answers SQL within its limits; starts with the first question.
    process: SqlProcess
    #: A temporary copy of a release on a URL; removed when it is closed.
    copy: Path | None = None

    def __enter__(self) -> OpenRelease:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()
        self.process.close()
        if self.copy:
            shutil.rmtree(self.copy, ignore_errors=True)

    def __getattr__(self, name: str) -> ReleaseTable:
        """The table of that name."""
        if name.startswith("_") or name in type(self).__dataclass_fields__:
            raise AttributeError(name)
        if name not in self.tables:
            known = did_you_mean(name, self.tables)
            raise AttributeError(f"this release has no table {name!r}; {known}")
        return self._table(name)

    def _table(self, name: str) -> ReleaseTable:
        relation = self.connection.table(name)
        whole = relation.to_arrow_table if name not in self.tables else partial(self.arrow, name)
        return ReleaseTable(name, relation, whole)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.tables, "outcomes"})

    def __repr__(self) -> str:
        rows = {name: entry.rows for name, entry in self.manifest.tables.items()}
        counts = ", ".join(f"{rows[name]:,} {name}" for name in _COUNTED if name in rows)
        return f"Release {self.manifest.name} {self.manifest.version}: {counts} ({self.path})"

    def _repr_html_(self) -> str:
        rows = [
            {"table": name, "rows": self.manifest.tables[name].rows,
             "columns": ", ".join(CONTRACTS[name].column_names)}
            for name in self.tables
        ]  # fmt: skip
        facts = {"folder": self.path, "fingerprint": self.manifest.fingerprint[:12]}
        return html_card(f"{self.manifest.name} {self.manifest.version}", facts, rows)

    @property
    def tables(self) -> list[str]:
        """Names of the tables whose files are here (add-ons may not have been fetched)."""
        return [n for n, e in self.manifest.tables.items() if (self.path / e.file).exists()]

    def sql(self, sql: str, *, timeout_s: float = 60.0) -> pa.Table:
        """Answer of one read-only statement; errors as in `query_release`."""
        return self.process.table(sql, timeout_s=timeout_s)

    def relation(self, table: str) -> Any:
        """A table as a DuckDB relation, evaluated when it is read."""
        return self.connection.table(self._known(table))

    def arrow(self, table: str) -> pa.Table:
        """A table in contract form, in the release's order."""
        name = self._known(table)
        file = self.manifest.tables[name].file
        return read_parquet(CONTRACTS[name], sealed(self.path, file, self.manifest.files.get(file)))

    @property
    def outcomes(self) -> ReleaseTable:
        """One row per query and model with score and cost."""
        return self._table("outcomes")

    def pandas(self, table: str) -> pd.DataFrame:
        """A table as a data frame; ids are categories, null stays null."""
        return self._table(self._known(table)).to_pandas()

    def matrix(self, measure: str = "score") -> Matrix:
        """A measure as (queries × models) float32; NaN where missing.

        Args:
            measure: `score` and `correct` of the label; `cost_usd` (USD), `prompt_tokens`,
                `completion_tokens` and `reasoning_tokens` (counts) as sums over samples,
                `latency_s` (seconds) as their mean; NaN when any sample's is unknown.

        Raises:
            UnknownName: there is no such measure.
        """
        if measure not in MEASURES:
            raise UnknownName(
                f"there is no measure {measure!r}",
                where=str(self.path),
                next_step=f"{did_you_mean(measure, MEASURES)} (measures: {', '.join(MEASURES)})",
            )
        if measure == "score" and WIDE in self.manifest.files and (self.path / WIDE).exists():
            return read_wide(self.path / WIDE)
        queries = self.arrow("queries").column("query_id").to_pylist()
        models = self.arrow("models").column("model_id").to_pylist()
        if measure in ("score", "correct"):
            rows = self.arrow("labels").select(["query_id", "model_id", measure])
        else:
            sql = f"SELECT query_id, model_id, {measure} FROM outcomes"
            rows = self.connection.sql(sql).to_arrow_table()
        return scatter(rows, measure, queries=queries, models=models, dtype=np.float32)

    def labels_wide(self) -> pa.Table:
        """Labels as one row per query and one float column per model; null = no label."""
        return self.matrix("score").to_table()

    def _known(self, table: str) -> str:
        if table not in self.tables:
            raise UnknownName(
                f"the release holds no table {table!r}",
                where=str(self.path),
                next_step=did_you_mean(table, self.tables),
            )
        return table


def open_release(
    path: str | Path, *, memory_limit: str = "4GB", add_ons: bool = False
) -> OpenRelease:
    """Open a release folder, from any working directory, also a read-only one, or a URL.

    Args:
        path: A folder, or a URL (`s3://bucket/releases/demo/1.0.0`): its files are copied to
            a temporary folder, which goes when the release is closed.
        add_ons: Fetch the large optional tables of a URL too.

    Raises:
        SourceError: there is no release at that place, or it is damaged.
    """
    if not is_url(str(path)):
        return _opened(Path(path).resolve(), memory_limit)
    copy = Path(tempfile.mkdtemp(prefix="routeyard-release-"))
    try:
        fetch(str(path), copy, add_ons=add_ons)
        return _opened(copy, memory_limit, copy)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise


def _opened(folder: Path, memory_limit: str, copy: Path | None = None) -> OpenRelease:
    if note := yanked(folder):
        warnings.warn(f"{folder}: {note.words}", stacklevel=3)
    return OpenRelease(
        folder,
        read_manifest(folder),
        connect(folder, memory_limit=memory_limit),
        SqlProcess(folder, memory_limit=memory_limit),
        copy,
    )


# Rows of a release, selected by split or by what decided them.


def of_split(release: OpenRelease, table: pa.Table, split: str | None) -> pa.Table:
    """Rows of a table whose query is in `split` (train, validation or test); all for None."""
    if split is None:
        return table
    splits = release.arrow("splits")
    wanted = splits.filter(pc.equal(splits["split"], split)).column("query_id")
    return table.filter(pc.is_in(table["query_id"], value_set=wanted.combine_chunks()))


def queries_of(release: OpenRelease, split: str | None = None) -> pa.Table:
    """The queries of a release, or of one of its splits.

    Raises:
        BadInput: the release has none.
    """
    queries = of_split(release, release.arrow("queries"), split)
    if not queries.num_rows:
        raise BadInput(
            f"the release has no queries of split {split!r}" if split else "no queries",
            where=str(release.path),
            next_step="use train, validation or test",
        )
    return queries


def preference_pairs(
    release: OpenRelease, *, basis: str | None = None, split: str | None = None
) -> pa.Table:
    """Preference pairs of a release that were decided by `basis`, of the queries of `split`.

    Raises:
        BadInput: the release has none.
    """
    if "preferences" not in release.tables:
        raise BadInput(
            "the release has no preference pairs",
            where=str(release.path),
            next_step="add the curation rule 'preference' to its recipe and build again",
        )
    pairs = of_split(release, release.arrow("preferences"), split)
    return pairs if basis is None else pairs.filter(pc.equal(pairs["basis"], basis))
