"""Questions: ids are hashes of what is asked, and prompts, scorers and domains the recipe's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import RouteyardError
from routeyard.pipelines.ingest.queries import query_id, uniform_prompt
from routeyard.pipelines.proof.claims import Results, consistent, contradiction, not_run, proved
from routeyard.pipelines.proof.evidence import SAMPLE, Evidence
from routeyard.pipelines.scorers import SCORERS

#: Questions that say exactly the same, at most: the id of the last of them counts the others.
_REPEATS = 64


def ids_of_questions(evidence: Evidence) -> Results:
    """Questions whose id is not the hash of question, options and references."""
    if not evidence.built:
        return
    queries = evidence.table("queries", ["query_id", "question", "choices", "references"])
    there = pc.invert(pc.is_in(queries.column("query_id"), value_set=evidence.withheld))
    queries = queries.filter(there)
    wrong, seen = [], Counter[str]()
    for row in queries.to_pylist():
        content = (row["question"], row["choices"] or [], row["references"] or [])
        first = query_id(*content, 0)
        seen[first] += 1
        if row["query_id"] == first:
            continue
        if all(row["query_id"] != query_id(*content, n) for n in range(1, _REPEATS)):
            wrong.append(f"{row['query_id']}, expected {first}")
    if wrong:
        what = "ids are not the hash of their question, options and references"
        yield contradiction("queries", len(wrong), queries.num_rows, what, wrong)
    elif queries.num_rows:
        says = f"{queries.num_rows:,} ids are the hashes of question, options and references"
        yield proved("queries", says, *([] if len(evidence.withheld) else ["query_id"]))
    if len(evidence.withheld):
        yield not_run("queries", f"ids of {len(evidence.withheld):,} questions", "no text is there")


def questions_of_sources(evidence: Evidence) -> Results:
    """Questions whose prompt, scorer, domain or task is not what their source says of all."""
    if not evidence.built:
        return
    columns = ["query_id", "source", "question", "choices", "prompt", "scorer", "domain", "task"]
    queries = evidence.table("queries", columns)
    expected = {name: _of_all(evidence, name) for name in evidence.sources}
    hidden = pc.is_in(queries.column("query_id"), value_set=evidence.withheld)
    wrong, prompts = [], 0
    same = dict.fromkeys(("scorer", "domain", "task", "prompt"), 0)
    for name in expected:
        own = pc.equal(queries.column("source"), name)
        instruction = expected[name].get("instruction")
        for column in ("scorer", "domain", "task"):
            if column in expected[name]:
                rows = queries.filter(own).select(["query_id", column])
                same[column] += rows.num_rows
                wrong += _differ(rows, column, pa.scalar(expected[name][column]))
        if instruction is not None:
            rows = queries.filter(pc.and_(own, pc.invert(hidden)))
            same["prompt"] += rows.num_rows
            if not evidence.full and rows.num_rows > SAMPLE:
                drawn = np.random.Generator(np.random.PCG64(evidence.seed))
                rows = rows.take(pa.array(np.sort(drawn.choice(rows.num_rows, SAMPLE, False))))
            texts = (rows.column(column).to_pylist() for column in ("question", "choices"))
            fresh = [uniform_prompt(q, c or [], instruction) for q, c in zip(*texts, strict=True)]
            wrong += _differ(rows, "prompt", pa.array(fresh, pa.string()))
            prompts += rows.num_rows
    if wrong:
        what = "columns differ from what the recipe says of their source"
        yield contradiction("queries", len(wrong), queries.num_rows, what, wrong)
        return
    for column in ("scorer", "domain", "task"):
        if same[column]:
            says = f"{column} of {same[column]:,} questions: what the recipe states of their source"
            yield consistent("queries", says)
    of = queries.num_rows
    if prompts:
        says = f"{prompts:,} prompts are made of question, options and instruction"
        yield proved("queries", says, *(["prompt"] if same["prompt"] == of else []))
    for column, count in same.items():
        if count < of:
            why = "the recipe states none for all of their source, or this code cannot read it"
            yield not_run("queries", f"{column} of {of - count:,} questions", why)


def _differ(rows: pa.Table, column: str, expected: Any) -> list[str]:
    """One sentence for each row of a column with another value than expected."""
    other = pc.fill_null(pc.not_equal(rows.column(column), expected), True)
    bad = rows.filter(other).select(["query_id", column]).to_pylist()
    right = expected.filter(other.combine_chunks()) if isinstance(expected, pa.Array) else expected
    wanted = right.to_pylist() if isinstance(expected, pa.Array) else [right.as_py()] * len(bad)
    return [
        f"{row['query_id']} has {column} {row[column]!r:.200}, expected {value!r:.200}"
        for row, value in zip(bad, wanted, strict=True)
    ]


def _of_all(evidence: Evidence, name: str) -> Mapping[str, str]:
    """Column → value that a source states for all of its questions, and its instruction."""
    source = evidence.sources[name]
    fields = source.fields
    if fields is None or source.scorer is None:
        return {}
    stated = {}
    if not fields.scorer:
        stated["scorer"] = source.scorer
    if not fields.domain:
        stated["domain"] = source.domain
    if not fields.task:
        stated["task"] = source.task or source.name
    if not fields.prompt and evidence.same_code and not fields.scorer:
        try:
            given = source.instruction
            stated["instruction"] = (
                SCORERS.get(source.scorer).instruction if given is None else given
            )
        except RouteyardError:
            pass  # a scorer of another package, or none
    return stated
