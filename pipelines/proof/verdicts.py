"""Verdicts of rules against texts and references: the scorers read the answers once more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.errors import RouteyardError
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.pipelines.proof.claims import Results, believed, contradiction, not_run, proved
from routeyard.pipelines.proof.evidence import Evidence
from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import FAMILIES, NO_RULE

_KEY = ("query_id", "model_id", "sample")
_READ = ("outcome", "score", "extracted", "span_start", "span_end", "conflict")
#: Scorers that run programs of a stranger, in the jail: only when everything is asked for.
_PROGRAMS = frozenset({"code"})
#: Scorers that need weights or data which this machine may lack.
_WEIGHTS = frozenset({"bartscore", "meteor"})


def verdicts_of_texts(evidence: Evidence) -> Results:
    """Contradictions between verdicts and what today's scorers read in the same texts."""
    if not evidence.rows("verdicts"):
        return
    filed = evidence.table("verdicts", ["scorer", "scorer_version"])
    yield from _by_others(filed)
    sample = evidence.sampled.table if evidence.sampled is not None else None
    if sample is None:
        return
    queries = evidence.table("queries", list(_QUESTION))
    questions, sample, unread = _readable(evidence, queries, sample)
    yield from unread
    if not sample.num_rows:
        return
    try:
        expected = file_verdicts(questions, sample)
    except RouteyardError as error:
        yield not_run("verdicts", "verdicts against texts", f"scorers cannot run: {error.what}")
        return
    yield from _compared(evidence, sample, expected)


_QUESTION = ("query_id", "question", "prompt", "choices", "references", "scorer", "metadata",
             "source", "source_id", "task", "domain")  # fmt: skip


def _by_others(filed: pa.Table) -> Results:
    """What no computation here can repeat: judges, people, scorers of other versions."""
    counts, others = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in (
        filed.group_by(["scorer", "scorer_version"]).aggregate([([], "count_all")]).to_pylist()
    ):
        name, version = row["scorer"], row["scorer_version"]
        if name.startswith(FAMILIES):
            counts[name, "of a model or a person"] += row["count_all"]
        elif name not in SCORERS.targets:
            counts[name, "which is not installed here"] += row["count_all"]
        elif version != SCORERS.get(name).version:
            today = SCORERS.get(name).version
            says = f"they are by version {version}; this code has version {today}"
            others[name, says] += row["count_all"]
    for (name, why), count in sorted(counts.items()):
        yield believed("verdicts", f"{count:,} verdicts of {name!r}, {why}")
    for (name, why), count in sorted(others.items()):
        yield not_run("verdicts", f"{count:,} verdicts of {name!r} against texts", why)


def _readable(
    evidence: Evidence, queries: pa.Table, sample: pa.Table
) -> tuple[pa.Table, pa.Table, list[Any]]:
    """Questions and answers whose text is there and whose scorer may run here."""
    told: list[Any] = []
    hidden = pc.is_in(queries.column("query_id"), value_set=evidence.withheld)
    count = pc.sum(hidden).as_py() or 0
    if count:
        check = f"verdicts on {count:,} questions against texts"
        told.append(not_run("verdicts", check, "their text is withheld"))
    queries = queries.filter(pc.invert(hidden))
    named = set(pc.unique(queries.column("scorer")).to_pylist())
    left = {name for name in named if name in _PROGRAMS and not evidence.full}
    left |= named & _WEIGHTS
    left |= {n for n in named if n != NO_RULE and n not in SCORERS.targets}
    for one in sorted(left):
        why = (
            "`--full` runs the programs"
            if one in _PROGRAMS
            else "they need weights or data"
            if one in _WEIGHTS
            else "that scorer is not installed here"
        )
        told.append(not_run("verdicts", f"verdicts of {one!r} against texts", why))
    queries = queries.filter(
        pc.invert(pc.is_in(queries.column("scorer"), pa.array(left, pa.string())))
    )
    known = pc.is_in(
        sample.column("query_id"), value_set=queries.column("query_id").combine_chunks()
    )
    real = pc.is_in(sample.column("model_id"), value_set=evidence.real)
    return queries, sample.filter(pc.and_(known, real)), told


def _compared(evidence: Evidence, sample: pa.Table, expected: pa.Table) -> Results:
    """Each expected verdict against the stored one of the same scorer and version."""
    stored = _of(evidence, sample)
    there = {_key(row): row for row in stored}
    others = {key[:4] for key in there}  # a verdict of another version is in its place
    wrong, absent, same, reworded = [], [], Counter[str](), []
    for row in expected.select([*_KEY, "scorer", "scorer_version", *_READ, "reason"]).to_pylist():
        found = there.get(_key(row))
        if found is None:
            if _key(row)[:4] not in others:
                absent.append(f"{_name(row)} has none of {row['scorer']!r}")
            continue
        if any(found[name] != row[name] for name in _READ):
            differ = [name for name in _READ if found[name] != row[name]]
            said = ", ".join(f"{name} {_short(found[name])}" for name in differ)
            good = ", ".join(f"{name} {_short(row[name])}" for name in differ)
            wrong.append(f"{_name(row)} ({row['scorer']}) has {said}, expected {good}")
        else:
            same[row["scorer"]] += 1
            reworded += _reworded(found, row)
    of = expected.num_rows
    if wrong:
        what = "verdicts that were computed again differ from what their scorer reads in the text"
        yield contradiction("verdicts", len(wrong), of, what, wrong)
    if absent:
        yield contradiction("verdicts", len(absent), of, "answers have no verdict", absent)
    yield from _reasons(evidence, reworded, of)
    covers = [*_READ, *([] if reworded or _PROGRAMS & set(same) else ["reason"])]
    yield from _same(evidence, sample.num_rows, same, covers)


def _same(evidence: Evidence, rows: int, same: Counter[str], covers: list[str]) -> Results:
    """Verdicts of each scorer that are what it reads, and of how many answers."""
    how = "all" if evidence.full else f"a sample of {rows:,} answers"
    whole = evidence.full or rows >= evidence.rows("responses")
    for name, count in sorted(same.items()):
        says = f"{count:,} verdicts of {name!r} follow from text and reference ({how}"
        says += ")" if whole else f", seed {evidence.seed})"
        yield proved("verdicts", says, *covers)


def _reasons(evidence: Evidence, reworded: list[str], of: int) -> Results:
    if reworded and evidence.same_code:
        what = "reasons of verdicts differ from what their scorer says"
        yield contradiction("verdicts", len(reworded), of, what, reworded)


def _reworded(found: dict[str, Any], row: dict[str, Any]) -> list[str]:
    """A stored reason that is not the scorer's; what programs print may differ each time."""
    if found["reason"] == row["reason"] or row["scorer"] in _PROGRAMS:
        return []
    said, good = _short(found["reason"]), _short(row["reason"])
    return [f"{_name(row)} ({row['scorer']}) has {said}, expected {good}"]


def _of(evidence: Evidence, sample: pa.Table) -> list[dict[str, Any]]:
    """The stored verdicts on the sampled answers."""
    columns = [*_KEY, "scorer", "scorer_version", *_READ, "reason"]
    verdicts = evidence.tables["verdicts"]
    if isinstance(verdicts, pa.Table):
        return list(_among(verdicts, columns, sample).to_pylist())
    found = []
    with pq.ParquetFile(verdicts.path) as file:
        for group in range(file.num_row_groups):
            part = file.read_row_group(group, columns=columns)
            found += _among(part, columns, sample).to_pylist()
    return found


def _among(verdicts: pa.Table, columns: list[str], sample: pa.Table) -> pa.Table:
    """Verdicts on pairs of question and model that the sample holds."""
    queries = sample.column("query_id").unique()
    models = sample.column("model_id").unique()

    def pairs(table: pa.Table) -> Any:
        query = pc.fill_null(pc.index_in(table.column("query_id"), queries), -1).to_numpy()
        model = pc.fill_null(pc.index_in(table.column("model_id"), models), -1).to_numpy()
        return np.where((query < 0) | (model < 0), -1, query.astype(np.int64) * len(models) + model)

    wanted = np.isin(pairs(verdicts), pairs(sample))
    return verdicts.select(columns).filter(pa.array(wanted))


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["query_id"], row["model_id"], row["sample"], row["scorer"], row["scorer_version"])


def _name(row: dict[str, Any]) -> str:
    return f"{row['query_id']}|{row['model_id']}|{row['sample']}"


def _short(value: Any) -> str:
    return repr(value) if not isinstance(value, str) else repr(value[:60])
