"""One table of an open release: how many rows it has, and its content in the form one wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from routeyard.pipelines.errors import BadInput
from routeyard.schemas.notebook import SHOWN, html_card

if TYPE_CHECKING:
    import pandas as pd
    import polars

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
        short = [{name: _short(value) for name, value in row.items()} for row in rows]
        return html_card(self.name, {"rows": len(self)}, short)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.relation, name)


def _short(value: Any) -> Any:
    """A cell of a table in a notebook: long texts and lists are cut."""
    text = str(value)
    return value if len(text) <= 60 else f"{text[:59]}…"
