"""Rule scorers over stored responses: queries + responses → verdicts.

Every response that exists is read by its query's rule scorer. A stored score is
filed next to it as a verdict of `given`, so that a regrade and the label the
source shipped can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.label.scoring_processes import QUESTION, Shard, read_all
from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import FAMILIES, GIVEN, NO_RULE
from routeyard.schemas import VERDICTS
from routeyard.schemas.statuses import ANSWERLESS

#: Types of what is read: the columns from `outcome` to `reason`.
_TYPES = VERDICTS.schema.types[5:12]


def file_verdicts(
    queries: pa.Table,
    responses: pa.Table,
    *,
    jobs: int = 1,
    shard_rows: int = 2000,
    options: Mapping[str, object] | None = None,
) -> pa.Table:
    """One verdict per response that exists, in the order of `responses`.

    * `error`, `timeout` and `unanswered` responses get none, whatever score they carry.
    * `truncated` and `refused` texts are read like any other; a response
      without any text is an `abstain`.
    * references are `graded_against` where the run carries its own.
    * a `given_score` is filed as a second verdict, of scorer `given`.
    * a scorer that raises, dies or answers out of contract files an `error`.

    Args:
        queries: QUERIES contract.
        responses: RESPONSES contract, any number of rows.
        jobs: Worker processes; 1 reads in this process.
        shard_rows: Responses a worker gets at a time.
        options: Run-wide settings a scorer may look at (`Asked.options`), such
            as `run_code_without_isolation`. Never filled from data.

    Returns:
        VERDICTS contract; cost 0, because rules are free.

    Raises:
        UnknownName: a query names a scorer that is not registered.
        BadInput: a response answers a query that is not there.
        Unsafe: `code` must run and the machine offers no isolation.
    """
    filed_by = versions(queries.column("scorer"))
    shards = _shards(queries, responses, list(filed_by), shard_rows)
    filed = []
    for shard, read in read_all(shards, jobs=jobs, options=dict(options or {})):
        names = shard.rows.column("scorer").to_pylist()
        said = (
            pa.array(one, kind) for one, kind in zip(zip(*read, strict=True), _TYPES, strict=True)
        )
        filed.append(_filed(shard.rows, names, [filed_by[name] for name in names], *said))
    return VERDICTS.check(pa.concat_tables([*filed, _given(responses)]))


def versions(scorer: pa.ChunkedArray) -> dict[str, str]:
    """Name → version of the rule scorers in a `scorer` column: what verdicts depend on.

    A scorer that another package registers has no code in this package; its version
    is all that tells of a change.
    """
    named = sorted(set(pc.unique(scorer).to_pylist()) - {NO_RULE, GIVEN})
    return {name: str(SCORERS.get(name).version) for name in named if not name.startswith(FAMILIES)}


def _shards(
    queries: pa.Table, responses: pa.Table, rules: list[str], shard_rows: int
) -> Iterator[Shard]:
    """Slices of `responses` with something to read by one of the rules, and their questions."""
    ids = queries.column("query_id").combine_chunks()
    questions = queries.select(QUESTION).combine_chunks()
    columns = ["query_id", "model_id", "sample", "text", "graded_against", "status"]
    for start in range(0, responses.num_rows, shard_rows):
        part = responses.slice(start, shard_rows)
        where = pc.index_in(part.column("query_id"), value_set=ids)
        if where.null_count:
            lost = part.filter(pc.is_null(where)).column("query_id")[0].as_py()
            raise BadInput(
                f"a response answers query {lost!r}, which is not among the queries",
                next_step="label responses together with the queries they were asked",
            )
        scorer = questions.column("scorer").take(where)
        # a bare stored score has nothing to read
        bare = pc.and_(pc.is_null(part.column("text")), pc.is_valid(part.column("given_score")))
        left_out = pc.or_(bare, pc.is_in(part.column("status"), value_set=pa.array(ANSWERLESS)))
        read = pc.and_not(pc.is_in(scorer, value_set=pa.array(rules, pa.string())), left_out)
        unique = where.filter(read).unique()
        rows = part.select(columns).append_column("scorer", scorer)
        rows = rows.append_column("question", pc.index_in(where, value_set=unique)).filter(read)
        if rows.num_rows:
            yield Shard(questions.take(unique), rows)


def _filed(rows: pa.Table, *columns: Any) -> pa.Table:
    """Verdicts on these rows: the columns from `scorer` on; they cost nothing."""
    keys = rows.select(["query_id", "model_id", "sample"]).columns
    return VERDICTS.conform(
        pa.table([*keys, *columns, np.zeros(rows.num_rows)], names=VERDICTS.column_names)
    )


def _given(responses: pa.Table) -> pa.Table:
    without = pc.is_in(responses.column("status"), value_set=pa.array(ANSWERLESS))
    rows = responses.filter(pc.and_not(pc.is_valid(responses.column("given_score")), without))
    scorer, score, n = SCORERS.get(GIVEN), rows.column("given_score"), rows.num_rows
    return _filed(
        rows,
        pa.repeat(GIVEN, n),
        pa.repeat(scorer.version, n),
        pc.if_else(pc.greater_equal(score, scorer.threshold), "correct", "incorrect"),
        score,
        pc.cast(score, pa.string()),
        pa.nulls(n),
        pa.nulls(n),
        np.zeros(n, bool),
        pa.repeat("score carried by the source", n),
    )
