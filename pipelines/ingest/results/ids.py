"""Ids of questions: the column that names what all models were asked, spelled in one way."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.roles import candidates, constant
from routeyard.pipelines.ingest.results.values import some, texts

#: Fewest questions, and rows of one arm and question that may be samples.
_FEWEST, _SAMPLES = 5, 10


def distinct(columns: list[pa.ChunkedArray]) -> int:
    """Number of different combinations of values of some columns."""
    table = pa.table({str(n): column for n, column in enumerate(columns)})
    return int(table.group_by(table.column_names).aggregate([]).num_rows)


def shared_id(done: Assigned, fits: list[str]) -> str:
    """Of columns that may be the question's id the first, or one that several arms have in common.

    An id that names each answer, as those of runs do, joins no two models.
    """
    table, first = done.table, fits[0]
    if done.unique("arm") < 2 or done.per_question:
        return first
    arm = texts(table.column(done.roles["arm"]))
    if distinct([arm, texts(table.column(first))]) > distinct([texts(table.column(first))]):
        return first
    asked = [texts(table.column(c.column)) for c in candidates(table, "prompt")]
    for name in fits[1:]:
        own = texts(table.column(name))
        ids, pairs = distinct([own]), distinct([own, arm])
        apart = ids >= _FEWEST and pairs >= 1.5 * ids and table.num_rows <= _SAMPLES * pairs
        of_one = all(distinct([own, one]) <= 1.02 * ids for one in asked if not constant(one))
        if apart and of_one and not _counts(own):
            done.note(
                "question",
                f"each {first!r} is of one model alone: {name!r}, which they have in common, is "
                "taken for the question",
                "question",
            )
            return name
    return first


def _counts(values: pa.ChunkedArray) -> bool:
    """Whether values are numbers of rows."""
    return bool(pc.all(pc.match_substring_regex(values.drop_null(), r"^\d+$")).as_py())


def misnumbered(done: Assigned) -> None:
    """Take the question's text for its id, where models have the same texts under other ids."""
    table, name = done.table, done.roles.get("question")
    if name is None or done.unique("arm") < 2 or done.per_question:
        return
    ids, arm = texts(table.column(name)), texts(table.column(done.roles["arm"]))
    for one in candidates(table, "prompt", frozenset({name})):
        if one.column.startswith("(path"):
            continue
        text = texts(table.column(one.column))
        if text.null_count or constant(text):
            continue
        asked, known = distinct([text]), distinct([ids])
        pairs, shared = distinct([ids, text]), distinct([text, arm])
        # A text that other models have, under several ids; ids of several suites may be alike.
        if shared < 1.5 * asked or pairs < 1.2 * max(asked, known) or asked < _FEWEST:
            continue
        suites = [texts(table.column(c.column)) for c in candidates(table, "suite")]
        suites += [texts(table.column(n)) for n in table.column_names if n.startswith("(path")]
        if any(distinct([s, ids]) >= pairs and distinct([s, arm]) > distinct([arm])
               for s in suites if not constant(s)):  # fmt: skip
            continue
        done.roles["question"] = done.roles["prompt"] = one.column
        done.note(
            "question",
            f"models have other texts in {one.column!r} under the same {name!r}, and the same "
            "texts under others: the text is taken for the question",
            "question",
        )
        return


def spelled_alike(question: pa.ChunkedArray, arm: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids without spaces around them; whole numbers as `7`, where models write `7.0` or `007`."""
    question = pc.utf8_trim_whitespace(question)
    whole = pc.match_substring_regex(question.drop_null(), r"^\d+(?:\.0+)?$")
    if not pc.all(whole).as_py():
        return question
    short = pc.replace_substring_regex(question, r"^0*(\d+)(?:\.0+)?$", r"\1")
    fewer = 1.2 * distinct([short]) <= distinct([question])
    return short if fewer and distinct([short, arm]) == distinct([question, arm]) else question


#: Parts of a path that name a run: a date, a time, or the number of a run.
_RUN = re.compile(
    r"(?:19|20)\d\d[-_.]?[01]\d[-_.]?[0-3]\d|(?:run|seed|trial|attempt|epoch|iter(?:ation)?|"
    r"repeat|rep)[-_ ]?\d+", re.IGNORECASE,
)  # fmt: skip


def are_runs(column: pa.ChunkedArray) -> bool:
    """Whether parts of paths are alike but for the date or the number of a run."""
    seen = {str(value) for value in some(column, 500)}
    runs = {_RUN.sub("#", one) for one in seen}
    return len(seen) >= 2 and all(_RUN.search(one) for one in seen) and (
        2 * len({re.sub(r"\d+", "", one) for one in runs}) <= len(seen)
    )  # fmt: skip


def common_start(question: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Starts of ids such as `AIME_112` and `django__django-11532`; None where ids are not so."""
    parts = pc.extract_regex(question, r"^(?P<start>.*[A-Za-z].*?)[_\-/#:. ]+[0-9]+$")
    start = pc.struct_field(parts, "start")
    if start.null_count:
        return None
    pairs = pa.table({"s": start, "q": question}).group_by(["s", "q"]).aggregate([])
    sizes = pairs.group_by("s").aggregate([("q", "count")]).column("q_count").to_numpy()
    return start if 2 <= len(sizes) <= 500 and (sizes >= 2).mean() >= 0.8 else None


def is_finer_id(
    table: pa.Table, name: str, arm: pa.ChunkedArray, question: pa.ChunkedArray
) -> bool:
    """Whether a column's values are ids of finer questions, which several arms answer.

    The number of a sample recurs under every question; the id of a part of one does not.
    """
    there = table.column(name).is_valid()
    values = texts(table.column(name)).filter(there)
    asked = question.filter(there)
    ids = distinct([values])
    if distinct([values, asked]) != ids or ids <= distinct([asked]):
        return False
    return distinct([values, arm.filter(there)]) > 1.5 * ids


def as_often(key: list[pa.ChunkedArray]) -> bool:
    """Whether every key has equally many rows, as samples have and copied rows have not."""
    table = pa.table({str(n): column for n, column in enumerate(key)})
    counts = table.group_by(table.column_names).aggregate([([], "count_all")])["count_all"]
    return len(pc.unique(counts)) == 1
