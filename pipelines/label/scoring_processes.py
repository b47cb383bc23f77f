"""Shards of responses read by worker processes, in order, with flat memory.

A few shards are in flight at a time. A scorer that raises costs one row. A scorer that takes its
whole process down (a crash in native code, the kernel's memory killer) costs one row too: the
shard is halved in fresh processes until the crashing row is isolated.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import Unsafe
from routeyard.pipelines.memory import collect_rarely
from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import LETTERS, UNMARKED, ScoreResult, ScoringInput

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
    read, unmarked = _at_once(shard)
    rest = [at for at, one in enumerate(read) if one is None]
    rows = shard.rows.select(["question", "text", "graded_against", "status"]).take(rest)
    places = rows.column("question").unique()
    questions = dict(zip(places.to_pylist(), shard.questions.take(places).to_pylist(), strict=True))
    scorer_of = cache(SCORERS.get)
    asked = cache(lambda at: _asked(questions[at], None, options))
    for at, number, text, graded, status in zip(rest, *rows.to_pydict().values(), strict=True):
        if text is None:
            read[at] = ("abstain", None, None, None, None, False, "the response has no text")
            continue
        try:
            about = asked(number) if graded is None else _asked(questions[number], graded, options)
            if status == "truncated" or at in unmarked:
                about = replace(about, truncated=status == "truncated", unmarked=at in unmarked)
            read[at] = _plain(scorer_of(questions[number]["scorer"]).score(about, text))
        except (Unsafe, MemoryError):
            raise  # a refusal to run is the person's to settle, and lack of memory too: no row's
        except Exception as error:  # any other failure is one row's
            read[at] = _failed(f"{type(error).__name__}: {error}"[:500])
    return [one for one in read if one is not None]


def _at_once(shard: Shard) -> tuple[list[Read | None], set[int]]:
    """What is read in the rows whose texts and references are plain letters of their options.

    The second item is the rows whose texts mark nothing.
    """
    read: list[Read | None] = [None] * shard.rows.num_rows
    unmarked = set()
    for name in shard.questions.column("scorer").unique().to_pylist():
        if (at_once := SCORERS.get(name).at_once) is None:
            continue
        rows, letters, choices = _lettered(shard, name)
        found = at_once(shard.rows.column("text").take(rows).to_pylist())
        for row, one, letter, most in zip(rows.to_pylist(), found, letters, choices, strict=True):
            if one is UNMARKED:
                unmarked.add(row)
            elif one is not None and one.letter in LETTERS[:most]:
                right = one.letter == LETTERS[letter]
                said, why = "correct" if right else "incorrect", f"{one.how}: {one.letter}"
                read[row] = (said, float(right), one.letter, one.start, one.end, False, why)
    return read, unmarked


def _lettered(shard: Shard, scorer: str) -> tuple[pa.Array, list[int], list[int]]:
    """Rows of a scorer with a text whose one reference is an option's letter; it; the options."""
    at, texts = shard.rows.column("question"), shard.rows.column("text")
    name, metadata, choices, references = (
        shard.questions.column(one).take(at)
        for one in ("scorer", "metadata", "choices", "references")
    )
    own = shard.rows.column("graded_against").cast(references.type)
    letters = pc.index_in(  # several references are no letter
        pc.binary_join(pc.coalesce(own, references), " "), value_set=pa.array(LETTERS)
    )
    many = pc.list_value_length(choices)
    plain = pc.and_(pc.is_valid(texts), pc.less(letters, many))
    tagged = pc.match_substring(pc.fill_null(metadata, ""), "answer_in")
    plain = pc.and_(plain, pc.and_not(pc.equal(name, scorer), tagged))
    rows = pc.indices_nonzero(plain)
    return rows, letters.take(rows).to_pylist(), many.take(rows).to_pylist()


def _fit(references: list[str], choices: tuple[str, ...]) -> bool:
    """Whether some reference is an option, by letter or by content."""
    letters = {chr(ord("A") + i) for i in range(len(choices))}
    return any(text.strip().upper() in letters or text in choices for text in references)


def _asked(
    question: Mapping[str, Any], graded: list[str] | None, options: Mapping[str, object]
) -> ScoringInput:
    choices = tuple(question["choices"])
    if graded is not None and not _fit(graded, choices):
        choices = ()  # the run was asked another revision: its letters are all there is to go by
    return ScoringInput(
        question=question["question"],
        references=tuple(question["references"] if graded is None else graded),
        choices=choices,
        metadata=json.loads(question["metadata"] or "{}"),
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
    context: Any = get_context("spawn")  # safe in threads, the same everywhere
    return ProcessPoolExecutor(max_workers=jobs, mp_context=context, initializer=collect_rarely)
