"""Rule scorers over stored responses: queries + responses → verdicts.

Every response that exists is read by its query's rule scorer. A stored score is
filed next to it as a verdict of `given`, so that a regrade and the label the
source shipped can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.label.scoring_processes import Shard, ShardQuestion, ShardRow, read_all
from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import FAMILIES, GIVEN, NO_RULE
from routeyard.schemas import VERDICTS
from routeyard.schemas.statuses import ANSWERLESS


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
    asked = _Questions(queries)
    batches = [VERDICTS.schema.empty_table()]
    filed_by = versions(queries.column("scorer"))
    shards = asked.shards(responses, shard_rows)
    for shard, read in read_all(shards, jobs=jobs, options=dict(options or {})):
        batches.append(_table(shard, read, filed_by))
    ruled = pa.concat_tables(batches)
    given = _given(responses)
    return VERDICTS.check(pa.concat_tables([ruled, given]) if given.num_rows else ruled)


def versions(scorer: pa.ChunkedArray) -> dict[str, str]:
    """Name → version of the rule scorers in a `scorer` column: what verdicts depend on.

    A scorer that another package registers has no code in this package; its version
    is all that tells of a change.
    """
    return {name: str(SCORERS.get(name).version) for name in _rule_scorers(scorer)}


def _rule_scorers(scorer: pa.Array | pa.ChunkedArray) -> list[str]:
    named = pc.unique(scorer).to_pylist()
    return sorted(
        name for name in named if name not in (NO_RULE, GIVEN) and not name.startswith(FAMILIES)
    )


class _Questions:
    """The queries as plain values, found by id."""

    def __init__(self, queries: pa.Table):
        columns = ("question", "references", "choices", "metadata", "scorer")
        self.ids = queries.column("query_id").combine_chunks()
        self.columns = {name: queries.column(name).combine_chunks() for name in columns}
        self.rule_scorers = _rule_scorers(self.columns["scorer"])

    def shards(self, responses: pa.Table, shard_rows: int) -> Iterator[Shard]:
        """Slices of `responses` that have something to read, with their questions."""
        for start in range(0, responses.num_rows, shard_rows):
            part = responses.slice(start, shard_rows)
            where = pc.index_in(part.column("query_id"), value_set=self.ids)
            if where.null_count:
                lost = part.filter(pc.is_null(where)).column("query_id")[0].as_py()
                raise BadInput(
                    f"a response answers query {lost!r}, which is not among the queries",
                    next_step="label responses together with the queries they were asked",
                )
            unique = pc.unique(where)
            local = pc.index_in(where, value_set=unique).to_pylist()
            wanted = {
                name: values.take(unique).to_pylist() for name, values in self.columns.items()
            }
            questions = [ShardQuestion(*values) for values in zip(*wanted.values(), strict=True)]
            columns = (part.column(name).to_pylist() for name in _RESPONSE_COLUMNS)
            rows = [
                ShardRow(at, query_id, model_id, sample, text, graded, status == "truncated")
                for at, query_id, model_id, sample, status, text, given, graded in zip(
                    local, *columns, strict=True
                )
                if status not in ANSWERLESS
                and questions[at].scorer in self.rule_scorers
                # a bare stored score has nothing to read
                and not (text is None and given is not None)
            ]
            if rows:
                yield Shard(questions, rows)


_RESPONSE_COLUMNS = (
    "query_id", "model_id", "sample", "status", "text", "given_score", "graded_against",
)  # fmt: skip


def _table(shard: Shard, read: list[tuple[Any, ...]], versions: Mapping[str, str]) -> pa.Table:
    outcome, score, extracted, start, end, conflict, reason = zip(*read, strict=True)
    scorers = [shard.questions[row.question].scorer for row in shard.rows]
    columns = (
        [row.query_id for row in shard.rows],
        [row.model_id for row in shard.rows],
        [row.sample for row in shard.rows],
        scorers,
        [versions[name] for name in scorers],
        outcome,
        score,
        extracted,
        start,
        end,
        conflict,
        reason,
        [0.0] * len(scorers),
    )
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, VERDICTS.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=VERDICTS.schema)


def _given(responses: pa.Table) -> pa.Table:
    without = pc.is_in(responses.column("status"), value_set=pa.array(ANSWERLESS))
    scored = responses.filter(pc.and_not(pc.is_valid(responses.column("given_score")), without))
    if not scored.num_rows:
        return VERDICTS.empty()
    scorer = SCORERS.get(GIVEN)
    score = scored.column("given_score")
    n = scored.num_rows
    columns: dict[str, Any] = {
        "query_id": scored.column("query_id"),
        "model_id": scored.column("model_id"),
        "sample": scored.column("sample"),
        "scorer": pa.repeat(GIVEN, n),
        "scorer_version": pa.repeat(scorer.version, n),
        "outcome": pc.if_else(pc.greater_equal(score, scorer.threshold), "correct", "incorrect"),
        "score": score,
        "extracted": pc.cast(score, pa.string()),
        "span_start": pa.nulls(n, pa.int64()),
        "span_end": pa.nulls(n, pa.int64()),
        "conflict": pa.repeat(False, n),
        "reason": pa.repeat("score carried by the source", n),
        "cost_usd": pa.repeat(0.0, n),
    }
    return VERDICTS.conform(pa.table(columns))
