"""Rule scorers over stored responses: queries + responses → verdicts.

Every response that exists is read by its query's rule scorer. A stored score is
filed next to it as a verdict of `given`, so that a regrade and the label the
source shipped can be compared.
"""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import Unsafe
from routeyard.pipelines.common.machine import collect_rarely
from routeyard.pipelines.label.policies import answer
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import (
    FAMILIES,
    ScoreResult,
    ScoringInput,
)
from routeyard.schemas import VERDICTS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.statuses import ANSWERLESS, GIVEN, NO_RULE

# Shards of responses read by worker processes, in order, with flat memory.
#
# A few shards are in flight at a time. A scorer that raises costs one row. A scorer that takes its
# whole process down (a crash in native code, the kernel's memory killer) costs one row too: the
# shard is halved in fresh processes until the crashing row is isolated.

#: What a worker needs of a query.
QUESTION = ["question", "references", "choices", "metadata", "scorer"]


class Shard(NamedTuple):
    """Some responses and the questions they answer, as tables: those cost least to hand over.

    Attributes:
        questions: Columns of `QUESTION`.
        rows: `question` (row of `questions`), `text`, `graded_against`, `status`; others are kept.
    """

    questions: pa.Table
    rows: pa.Table


#: outcome, score, extracted, span start, span end, conflict, reason
Read = tuple[str, float | None, str | None, int | None, int | None, bool, str]


def read_all(
    shards: Iterable[Shard], *, jobs: int = 1, options: Mapping[str, object] | None = None
) -> Iterator[tuple[Shard, list[Read]]]:
    """Every shard with its readings, in the order given."""
    options = dict(options or {})
    if jobs <= 1:
        for shard in shards:
            yield shard, read_shard(shard, options)
        return
    waiting: deque[tuple[Shard, Future[list[Read]]]] = deque()
    source = iter(shards)
    pool = _pool(jobs)
    try:
        while True:
            while len(waiting) < 2 * jobs and (more := next(source, None)) is not None:
                waiting.append((more, pool.submit(read_shard, more, options)))
            if not waiting:
                return
            shard, future = waiting.popleft()
            try:
                yield shard, future.result()
            except BrokenProcessPool:
                # Every shard in flight is lost with the pool; only one is to blame.
                pool.shutdown(wait=False, cancel_futures=True)
                yield shard, _read_apart(shard, options)
                pool = _pool(jobs)
                waiting = deque(
                    (later, pool.submit(read_shard, later, options)) for later, _ in waiting
                )
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def read_shard(shard: Shard, options: Mapping[str, object]) -> list[Read]:
    """What each row's scorer says; exceptions become `error` readings."""
    read: list[Read] = []
    rows = shard.rows.select(["question", "text", "graded_against", "status"])
    places = rows.column("question").unique()
    questions = dict(zip(places.to_pylist(), shard.questions.take(places).to_pylist(), strict=True))
    scorer_of = cache(SCORERS.get)
    asked = cache(lambda at: _asked(questions[at], None, options))
    for number, text, graded, status in zip(*rows.to_pydict().values(), strict=True):
        if text is None:
            read.append(("abstain", None, None, None, None, False, "the response has no text"))
            continue
        try:
            about = asked(number) if graded is None else _asked(questions[number], graded, options)
            if status == "truncated":
                about = replace(about, truncated=True)
            read.append(_plain(scorer_of(questions[number]["scorer"]).score(about, text)))
        except (Unsafe, MemoryError):
            raise  # a refusal to run is the person's to settle, and lack of memory too: no row's
        except Exception as error:  # any other failure is one row's
            read.append(_failed(f"{type(error).__name__}: {error}"[:500]))
    return read


def _fit(references: list[str], choices: tuple[str, ...]) -> bool:
    """Whether some reference is an option, by letter or by content."""
    letters = {chr(ord("A") + i) for i in range(len(choices))}
    return any(text.strip().upper() in letters or text in choices for text in references)


def _asked(
    question: Mapping[str, Any], graded: list[str] | None, options: Mapping[str, object]
) -> ScoringInput:
    choices, metadata = tuple(question["choices"]), question["metadata"] or "{}"
    if graded is not None and not _fit(graded, choices):
        choices = ()  # the run was asked another revision: its letters are all there is to go by
    return ScoringInput(
        question=question["question"],
        references=tuple(question["references"] if graded is None else graded),
        choices=choices,
        metadata=json.loads(metadata) if metadata != "{}" else {},
        options=options,
    )


def _plain(reading: ScoreResult) -> Read:
    decided = reading.outcome in ("correct", "incorrect")
    if decided and (reading.score is None or not 0 <= reading.score <= 1):
        return _failed(f"the scorer said {reading.outcome} with score {reading.score}")
    if reading.outcome == "error":
        return _failed(reading.reason)
    start, end = reading.span if reading.span is not None else (None, None)
    return (
        reading.outcome,
        float(reading.score) if decided and reading.score is not None else None,
        reading.extracted,
        start,
        end,
        reading.conflict,
        reading.reason,
    )


def _failed(reason: str) -> Read:
    return ("error", None, None, None, None, False, reason)


def _read_apart(shard: Shard, options: Mapping[str, object]) -> list[Read]:
    """Read a shard whose pool died, in separate processes."""
    pool = _pool(1)
    try:
        return pool.submit(read_shard, shard, options).result()
    except BrokenProcessPool:
        if shard.rows.num_rows == 1:
            return [_failed("the scorer's process died while reading this response")]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    half = shard.rows.num_rows // 2
    return [
        read
        for rows in (shard.rows.slice(0, half), shard.rows.slice(half))
        for read in _read_apart(Shard(shard.questions, rows), options)
    ]


def _pool(jobs: int) -> ProcessPoolExecutor:
    context: Any = get_context("forkserver")  # safe in threads; imports are done once for all
    context.set_forkserver_preload([__name__])
    return ProcessPoolExecutor(max_workers=jobs, mp_context=context, initializer=_begin)


def _begin() -> None:
    """Begin a worker, which ends with the process that it works for, however that ends."""
    collect_rarely()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
    os._exit(1)


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
            pa.array(item, kind) for item, kind in zip(zip(*read, strict=True), _TYPES, strict=True)
        )
        filed.append(_filed(shard.rows, names, [filed_by[name] for name in names], *said))
    return VERDICTS.check(pa.concat_tables([*filed, _given_scores(responses)]))


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


def _given_scores(responses: pa.Table) -> pa.Table:
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


# Scorers that a recipe names now, put in place of those that stored questions were read with.


class ScorerChange(NamedTuple):
    """A source whose questions are read by another scorer than when they were stored."""

    source: str
    before: str
    after: str
    questions: int

    @property
    def instruction(self) -> str:
        """The key of the source that keeps the instruction of the earlier scorer."""
        known = self.before in SCORERS.names()
        text = SCORERS.get(self.before).instruction if known else ""
        return f"instruction: {json.dumps(text, ensure_ascii=False)}"


def rescored(queries: pa.Table, scorers: Mapping[str, str]) -> tuple[pa.Table, list[ScorerChange]]:
    """Questions with the scorers of `scorers` (source → name), and what that changes.

    Questions of sources that are not in it keep theirs.
    """
    columns = queries.select(["source", "scorer"]).to_pydict()
    names = [scorers.get(*pair) for pair in zip(*columns.values(), strict=True)]
    counted: Counter[tuple[str, str, str]] = Counter(zip(*columns.values(), names, strict=True))
    changed = [ScorerChange(*key, n) for key, n in sorted(counted.items()) if key[1] != key[2]]
    at = queries.schema.get_field_index("scorer")
    return queries.set_column(at, queries.schema.field(at), pa.array(names, pa.string())), changed


def reworded(queries: pa.Table, stored: pa.Table) -> dict[str, int]:
    """Source → questions whose prompt is another one than that under which they were stored."""
    columns = ["query_id", "source", "prompt"]
    result = answer("reworded", queries=queries.select(columns), stored=stored.select(columns))
    return dict(zip(*result.to_pydict().values(), strict=True))


# What a new labelling changes: labels, ranks of models, ranks of tasks.


@dataclass(frozen=True)
class LabelChanges:
    """The difference between two labellings of the same responses.

    Attributes:
        labels: query_id, model_id, task, score and decided_by before and after; one
            row for each label whose score, decision or decider differs.
        models: model_id, accuracy, rank and decided labels before and after; one row per model
            whose rank or accuracy differs. Accuracy is that of the decided labels.
        tasks: the same for tasks, ranked by mean score over models (1 = easiest).
    """

    labels: pa.Table
    models: pa.Table
    tasks: pa.Table

    @property
    def figures(self) -> Mapping[str, int]:
        def moved(table: pa.Table, name: str) -> int:
            sides = (table.column(f"{name}_{side}").to_pylist() for side in ("before", "after"))
            return sum(a != b for a, b in zip(*sides, strict=True))

        return {
            "labels": self.labels.num_rows,
            "flipped": moved(self.labels, "correct"),
            "model_ranks": moved(self.models, "rank"),
            "task_ranks": moved(self.tasks, "rank"),
        }


def keep_others(stored: pa.Table, ruled: pa.Table) -> pa.Table:
    """New rule verdicts, with those of verifiers, judges and people carried over.

    They cost money or time and do not change when a rule does.
    """
    others = pc.match_substring_regex(stored.column("scorer"), f"^({'|'.join(FAMILIES)})")
    carried = stored.filter(others).sort_by([(name, "ascending") for name in VERDICTS.key])
    return VERDICTS.check(pa.concat_tables([ruled, VERDICTS.conform(carried)]))


def changes(queries: pa.Table, before: pa.Table, after: pa.Table) -> LabelChanges:
    """Compare two `labels` tables; pairs that only one of them has count as changed."""
    sides = {"before_labels": before, "after_labels": after}
    sides["queries"] = queries.select(["query_id", "task"])
    models, tasks = (answer("changed_ranks", by=by, **sides) for by in ("model_id", "task"))
    return LabelChanges(answer("changed_labels", **sides), models, tasks)
