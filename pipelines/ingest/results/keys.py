"""The key of each answer: suite, question, arm and sample, such that no two answers share one."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.ids import (
    are_runs,
    as_often,
    common_start,
    distinct,
    is_finer_id,
    spelled_alike,
)
from routeyard.pipelines.ingest.results.roles import candidates, constant, rank_of
from routeyard.pipelines.ingest.results.values import amount, numbers, plain, some, texts
from routeyard.schemas.statuses import status_of

#: A folder that names an attempt.
_ATTEMPT = re.compile(r"(?:attempt|retry|try)[-_ ]?\d+", re.IGNORECASE)
#: A name that may say how many there were, not which one.
_COUNT = re.compile(r"(?:attempts|tries|count)$")


def keyed(done: Assigned, around: set[str]) -> dict[str, pa.ChunkedArray]:
    """`arm`, `question`, `suite` and `sample` of each row, unique together.

    Rows of one arm and question are told apart by the suite, then by a column that numbers
    samples, then by settings, which become part of the arm, and at last by their order.
    """
    table = done.table
    arm = texts(table.column(done.roles["arm"])) if "arm" in done.roles else _same(table, "unnamed")
    arm = pc.utf8_trim_whitespace(arm)
    question = spelled_alike(texts(table.column(done.roles["question"])), arm)
    n = table.num_rows
    suite = _suite(done, arm, question)
    key = [arm, suite, question]
    sample = pa.chunked_array([pa.array([0] * n, pa.int32())])
    if distinct(key) == n:
        return {"arm": arm, "suite": suite, "question": question, "sample": sample}
    used = {done.roles.get(role) for role in ("arm", "question", "score", "suite")}
    attempt = _attempts(done, key, used)
    sampled = _telling(table, "sample", key, used | {attempt}) or _runs(done, key)
    if attempt and _last_alone(done, attempt, key, sampled):
        return keyed(done, around)
    if _texts_apart(done, arm, suite, question, sampled):
        return keyed(done, around)
    sampled = sampled or attempt
    if sampled and is_finer_id(table, sampled, arm, question):
        values = texts(table.column(sampled))
        done.note(
            "choice", f"each {sampled!r} belongs to one question: it is part of its id", "question"
        )
        finer = pc.binary_join_element_wise(question, values, "#")
        question = pc.coalesce(finer, question)
        key = [arm, suite, question]
        used |= {sampled}
    elif sampled:
        values = _codes(table.column(sampled))
        done.note("choice", f"{sampled!r} tells repeated answers apart: they are samples", "sample")
        done.roles["sample"] = sampled
        sample, key = values, [*key, values]
    done.used |= {sampled} - {None}  # type: ignore[arg-type]
    arm, key = _settings(done, arm, key, used | {sampled})
    question = key[2]
    if distinct(key) < n:
        counted = _counted(key)
        again = sum(one > 0 for one in counted.to_pylist())
        done.note(
            "question" if as_often(key) else "repeated",
            f"{again:,} rows answer a question again and no column says why: they are taken for "
            "further samples, in the order of the file"
            + ("" if as_often(key) else f"; other questions have fewer rows{_differ(done, key)}"),
            "sample", again,
        )  # fmt: skip
        sample = _counted([arm, suite, question])
    return {"arm": arm, "suite": suite, "question": question, "sample": sample}


def _attempts(done: Assigned, key: list[pa.ChunkedArray], used: set[str | None]) -> str | None:
    """The column, or part of the path, that numbers attempts and tells rows of one key apart."""
    table = done.table
    own = (name for name in table.column_names if name not in used)
    fits = [
        (rank_of(name, "attempt") or 0.0, name)
        for name in own
        if rank_of(name, "attempt") is not None or _is_attempt_path(table, name)
    ]
    for _, name in sorted(fits):
        values = texts(table.column(name)).fill_null("")
        if _attempt_numbers(table, name) is not None and distinct([*key, values]) > distinct(key):
            return str(name)
    return None


def _is_attempt_path(table: pa.Table, name: str) -> bool:
    seen = some(table.column(name), 500) if name.startswith("(path") else []
    return bool(seen) and all(_ATTEMPT.fullmatch(str(one)) for one in seen)


def _attempt_numbers(table: pa.Table, name: str) -> np.ndarray | None:
    """(rows,) numbers of attempts; -1 where none is stated."""
    column = table.column(name)
    if name.startswith("(path"):
        column = pc.replace_substring_regex(texts(column), r"^.*?(\d+)$", r"\1")
    found = numbers(column)
    return None if found is None else np.nan_to_num(found, nan=-1.0)


def _last_alone(
    done: Assigned, attempt: str, key: list[pa.ChunkedArray], sampled: str | None
) -> bool:
    """Keep the last attempt at each answer, with what all of them took; whether that was so.

    Where every answer has equally many attempts, or the column counts them, and the earlier ones
    answer as well, they are samples under another name.
    """
    table = done.table
    number = _attempt_numbers(table, attempt)
    within = [*key, *([texts(table.column(sampled)).fill_null("")] if sampled else [])]
    group = _group_codes(within)
    if number is None:
        return False
    last = np.full(group.max(initial=-1) + 1, -np.inf)
    np.maximum.at(last, group, number)
    earlier = number < last[group]
    if not earlier.any():
        return False
    answered = int(np.sum(earlier & _answered(done)))
    counted = _COUNT.search(plain(attempt)) is not None
    if (as_often(within) or counted) and answered > 0.5 * earlier.sum():
        return False
    for role in ("cost", "prompt_tokens", "completion_tokens", "latency"):
        values = numbers(table.column(done.roles[role]), amount) if role in done.roles else None
        if values is None:
            continue
        if role == "cost" and (unknown := int(np.isnan(values[earlier]).sum())):
            done.note(
                "unpriced",
                f"{unknown:,} earlier attempts state no cost: what they cost is not counted",
                "attempt", unknown,
            )  # fmt: skip
        took = np.bincount(group[earlier], np.nan_to_num(values[earlier]), len(last))
        at = table.column_names.index(done.roles[role])
        whole = pa.array(values + took[group], from_pandas=True)
        table = table.set_column(at, done.roles[role], whole)
    done.note(
        "question" if answered else "choice",
        f"{int(earlier.sum()):,} earlier attempts ({attempt!r}) are no further answers: the last "
        "one counts, with what all attempts took"
        + (f"; {answered:,} of them hold an answer: are they samples?" if answered else ""),
        "attempt", int(earlier.sum()),
    )  # fmt: skip
    done.table = table.filter(pa.array(~earlier)).drop_columns([attempt])
    done.roles = {role: name for role, name in done.roles.items() if name != attempt}
    return True


def _answered(done: Assigned) -> np.ndarray:
    """(rows,) whether a row holds an answer, or a score of one, and does not say that it failed."""
    table, n = done.table, done.table.num_rows
    if "text" in done.roles:
        said = pc.utf8_trim_whitespace(texts(table.column(done.roles["text"])).fill_null(""))
        found = pc.not_equal(said, "").to_numpy()
    elif "score" in done.roles:
        found = table.column(done.roles["score"]).is_valid().to_numpy()
    else:
        return np.ones(n, bool)
    if "status" in done.roles:
        words = texts(table.column(done.roles["status"])).to_pylist()
        ended = {word: status_of(word) in (None, "ok", "truncated") for word in set(words)}
        found = found & np.array([ended[word] for word in words], bool)
    if "error" in done.roles:
        error = texts(table.column(done.roles["error"])).fill_null("")
        found = found & pc.equal(error, "").to_numpy()
    return np.asarray(found)


def _group_codes(key: list[pa.ChunkedArray]) -> np.ndarray:
    """(rows,) number of each combination of values."""
    code = np.zeros(len(key[0]), np.int64)
    for column in key:
        values = column.dictionary_encode().combine_chunks()
        own = values.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        code = np.unique(code * (own.max(initial=0) + 1) + own, return_inverse=True)[1]
    return code


def _texts_apart(
    done: Assigned, arm: pa.ChunkedArray, suite: pa.ChunkedArray, question: pa.ChunkedArray,
    sampled: str | None,
) -> bool:  # fmt: skip
    """Make a question of each text under one id, where a model has rows of several; whether it did.

    Texts that no two models share tell no questions apart, as prompts that hold the answer do.

    Raises:
        SourceError: no column numbers such rows as samples either.
    """
    own, roles = done.roles["question"], done.roles
    name = next((roles[r] for r in ("prompt", "reference") if r in roles and roles[r] != own), None)
    if name is None or own.startswith("("):
        return False
    table = done.table
    said = pc.replace_substring_regex(
        pc.utf8_lower(texts(table.column(name)).fill_null("")), r"\s+", " "
    )
    said = pc.utf8_trim_whitespace(said)
    there = pc.not_equal(said, "").to_numpy()
    asked, arms = _group_codes([suite, question]), _group_codes([arm])
    text = _group_codes([said])
    pairs = np.unique(np.stack([arms, asked, text])[:, there], axis=1)
    _, count = np.unique(pairs[:2], axis=1, return_counts=True)
    if not len(count) or count.max() < 2:
        return False
    several = np.isin(asked, np.unique(pairs[:2], axis=1)[1, count > 1])
    inside = pairs[:, np.isin(pairs[1], asked[several])]
    shared = inside.shape[1] > 1.2 * np.unique(inside[1:], axis=1).shape[1]
    if not shared and len(np.unique(inside[0])) > 1:
        if sampled:
            return False
        raise SourceError(
            f"{len(np.unique(inside[1])):,} ids of {own!r} have rows of one model with different "
            f"texts in {name!r}, and no two models share a text",
            where=str(table.column("(at)")[int(np.flatnonzero(several)[0])].as_py()),
            next_step="give each question an id, or number samples in a column `sample`",
        )
    ids, words = question.to_pylist(), said.to_pylist()
    listed: dict[int, dict[str, int]] = {}
    for row in np.flatnonzero(several & there):
        listed.setdefault(int(asked[row]), {})[words[row]] = 0
    for one in listed.values():
        one.update({word: n for n, word in enumerate(sorted(one), 1)})
    for row in np.flatnonzero(several & there):
        ids[row] += f" (text {listed[int(asked[row])][words[row]]})"
    done.note(
        "question",
        f"{len(listed):,} ids of {own!r} have several texts in {name!r}: each text is a "
        f"separate question, such as {ids[int(np.flatnonzero(several & there)[0])]!r}",
        "question", int(np.sum(several)),
    )  # fmt: skip
    if lost := int(np.sum(several & ~there)):
        done.note("left_out", f"{lost:,} rows do not say which of the texts of their id", "", lost)
    place = table.column_names.index(own)
    table = table.set_column(place, own, pa.array(ids, pa.string()))
    done.table = table.filter(pa.array(~several | there))
    return True


def _differ(done: Assigned, key: list[pa.ChunkedArray]) -> str:
    """How many answers have rows with different scores, as the end of a sentence."""
    if "score" not in done.roles:
        return ""
    scores = texts(done.table.column(done.roles["score"]))
    more = distinct([*key, scores]) - distinct(key)
    return f", and {more:,} state another score than the row before" if more else ""


def _same(table: pa.Table, value: str) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([value] * table.num_rows, pa.string())])


def _suite(done: Assigned, arm: pa.ChunkedArray, question: pa.ChunkedArray) -> pa.ChunkedArray:
    """Suite of each row: a column of that name, or a part of the path, where one is needed."""
    table = done.table
    if "suite" in done.roles:
        return texts(table.column(done.roles["suite"])).fill_null("")
    without = frozenset(column for role, column in done.roles.items() if role not in ("split",))
    named = [c.column for c in candidates(table, "suite", without)]
    free = [c for c in table.column_names if c not in without]
    named += [c for c in free if c.startswith("(key")]
    paths = [c for c in free if c.startswith("(path") and not are_runs(table.column(c))]
    if (name := _varied_suite(table, named, paths, arm, question)) is not None:
        done.roles["suite"] = name
        if name in paths:
            done.note("choice", "the suite is named only in the path of the file", "suite")
        return texts(table.column(name)).fill_null("")
    if (prefix := common_start(question)) is not None:
        done.note("choice", "the suite is the start of the question's id", "suite")
        return prefix
    fixed = [name for name in named if constant(table.column(name))]
    if not fixed:
        return _same(table, "")
    done.roles["suite"] = fixed[0]
    return texts(table.column(fixed[0])).fill_null("")


def _varied_suite(
    table: pa.Table, named: list[str], paths: list[str], arm: pa.ChunkedArray,
    question: pa.ChunkedArray,
) -> str | None:  # fmt: skip
    """The column, key or part of the path of which each question has one value, or needs one."""
    pairs, ids = distinct([arm, question]), distinct([question])
    for name in [*named, *paths]:
        column = texts(table.column(name)).fill_null("")
        if constant(column):
            continue
        if distinct([column, question]) == ids and name in named:
            return name
        if pairs < table.num_rows and _tells_apart(column, arm, question, pairs):
            return name
    return None


def _runs(done: Assigned, key: list[pa.ChunkedArray]) -> str | None:
    """The part of the path that names runs, where it tells rows of one key apart."""
    table = done.table
    for name in (n for n in table.column_names if n.startswith("(path")):
        values = texts(table.column(name))
        if name in done.roles.values() or not are_runs(values):
            continue
        if distinct([*key, values]) > 1.2 * distinct(key):
            seen = sorted({str(value) for value in some(values, 500)})
            done.note(
                "question",
                f"files of {len(seen)} runs answer the same questions ({', '.join(seen[:2])}): "
                "they are taken for samples; take older or unfinished runs out of the folder",
                "sample",
            )
            return str(name)
    return None


def _tells_apart(
    column: pa.ChunkedArray, arm: pa.ChunkedArray, question: pa.ChunkedArray, pairs: int
) -> bool:
    """Whether a column tells answers of one arm and question apart as suites do."""
    if distinct([column, arm, question]) <= 1.2 * pairs:
        return False
    spread = distinct([column, question]) / max(1, distinct([column, arm]))
    return spread > 1 and _shared(column, arm)


def _shared(column: pa.ChunkedArray, arm: pa.ChunkedArray) -> bool:
    """Whether several arms have one value, or there is one arm."""
    return distinct([arm]) == 1 or distinct([column, arm]) > distinct([column])


def _telling(
    table: pa.Table, role: str, key: list[pa.ChunkedArray], used: set[str | None]
) -> str | None:
    """The column of a role that tells most rows of one key apart; None where none does."""
    have = distinct(key)
    best, most = None, have
    for one in candidates(table, role, frozenset(x for x in used if x)):
        if one.column.startswith("(path"):
            continue
        found = distinct([*key, texts(table.column(one.column)).fill_null("")])
        if found > 1.02 * most:
            best, most = one.column, found
    return best


def _settings(
    done: Assigned, arm: pa.ChunkedArray, key: list[pa.ChunkedArray], used: set[str | None]
) -> tuple[pa.ChunkedArray, list[pa.ChunkedArray]]:
    """The arms with the settings that tell rows of one key apart."""
    table, n = done.table, done.table.num_rows
    taken: list[str] = []
    while distinct(key) < n and len(taken) < 4:
        name = _telling(table, "setting", key, {*used, *taken})
        if name is None and not taken and (asked := _other_question(done, key, used)) is not None:
            values = texts(table.column(asked)).fill_null("")
            done.used.add(asked)
            question = pc.binary_join_element_wise(key[2], values, "#")
            done.note(
                "choice", f"{asked!r} is part of the question's id, and not of the arm", "question"
            )
            key[2] = question
            continue
        if name is None and not taken:
            name = _unnamed(table, key, {*used, *taken, *done.roles.values(), *done.others})
            if name is not None:
                done.note(
                    "question",
                    f"{name!r} alone tells answers of one model apart: its values are taken for "
                    "arms",
                    "arm",
                )
        if name is None:
            break
        values = texts(table.column(name)).fill_null("")
        arm = pc.binary_join_element_wise(arm, values, " · ")
        taken.append(name)
        done.used.add(name)
        key = [arm, *key[1:], values]
    if taken:
        done.note(
            "choice", f"an arm is a model with {', '.join(taken)}: not another question", "arm"
        )
    return arm, key


def _other_question(
    done: Assigned, key: list[pa.ChunkedArray], used: set[str | None]
) -> str | None:
    """A column that numbers parts of questions, or with which each question has one text."""
    table = done.table
    for one in candidates(table, "part", frozenset(x for x in used if x)):
        values = texts(table.column(one.column)).fill_null("")
        if not constant(values) and distinct([*key, values]) > 1.02 * distinct(key):
            return one.column
    if "prompt" not in done.roles or done.roles["prompt"] == done.roles["question"]:
        return None
    prompt, plain = texts(table.column(done.roles["prompt"])), key[1:3]
    apart = distinct([*plain, prompt])
    if apart < 1.5 * distinct(plain):
        return None
    for name in table.column_names:
        column = table.column(name)
        if name in used or name.startswith("(") or name in done.roles.values() or constant(column):
            continue
        if len({str(v) for v in some(column, 500)}) > 20:
            continue
        values = texts(column).fill_null("")
        if distinct([*plain, values]) == apart == distinct([*plain, values, prompt]):
            return str(name)
    return None


def _unnamed(table: pa.Table, key: list[pa.ChunkedArray], used: set[str | None]) -> str | None:
    """A column of few labels, of any name or of the path, that tells all rows of one key apart."""
    for name in table.column_names:
        if name in used or name == "(at)" or name.startswith("(row"):
            continue
        column = table.column(name)
        if constant(column) or not (
            pa.types.is_string(column.type) or pa.types.is_integer(column.type)
        ):
            continue
        if len({str(v) for v in some(column, 500)}) > 20:
            continue
        if distinct([*key, texts(column).fill_null("")]) == table.num_rows:
            return str(name)
    return None


def _codes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as numbers from 0, in the order of the values."""
    found = numbers(column)
    plain = texts(column).fill_null("")
    coded = plain.dictionary_encode().combine_chunks()
    names = coded.dictionary.to_pylist()
    if found is not None:
        order = sorted(names, key=lambda v: (float(v) if _number(v) else -1.0, v))
    else:
        order = sorted(names)
    place = {name: n for n, name in enumerate(order)}
    table = pa.array([place[name] for name in names], pa.int32())
    return pa.chunked_array([table.take(coded.indices)])


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _counted(key: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """How many rows before each have its key."""
    table = pa.table({str(n): c for n, c in enumerate(key)})
    table = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    order = table.sort_by([(str(n), "ascending") for n in range(len(key))] + [("row", "ascending")])
    rows = order.column("row").to_numpy()
    new = np.zeros(len(rows), bool)
    if len(rows):
        new[0] = True
    for n in range(len(key)):
        codes = order.column(str(n)).dictionary_encode().combine_chunks()
        values = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        new[1:] |= values[1:] != values[:-1]
    starts = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
    found = np.zeros(len(rows), np.int32)
    found[rows] = np.arange(len(rows)) - starts
    return pa.chunked_array([pa.array(found, pa.int32())])
