"""Questions that the audit asks of verdicts and labels, by name; `questions.sql` holds them."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

_PARTS = re.split(r"^-- name: (\w+)\n", Path(__file__).with_suffix(".sql").read_text(), flags=re.M)
_SQL = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))


def question(name: str, by: str = "") -> str:
    """The SQL of that name; the parts `{same}`, `{rules}` and `{graded}` and the column `{by}` in
    it are filled in."""
    parts = {"by": by}
    for part in ("same", "rules", "graded"):
        parts[part] = _SQL[part].strip().format(**parts)
    return _SQL[name].format(**parts)


def query_ids(suspects: pa.Table | None) -> pa.Table:
    """Ids of questions whose reference is in doubt; nobody looked for them: none."""
    known = pa.schema([("query_id", pa.string())]).empty_table()
    return known if suspects is None else suspects.select(["query_id"])


def answer(name: str, *values: object, by: str = "", **tables: pa.Table) -> pa.Table:
    """The answer to a question about tables, which it calls by these names.

    Args:
        values: Of the places (`?`) in the question.
    """
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        for table, rows in tables.items():
            connection.register(table, rows)
        return connection.sql(question(name, by), params=list(values)).to_arrow_table()
