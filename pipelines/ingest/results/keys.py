"""The key of each answer: suite, question, arm and sample, such that no two answers share one."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.results.arms import Assigned, find_arm, impose
from routeyard.pipelines.ingest.results.values import (
    ABSENT,
    ENDING,
    FOREIGN,
    RATE,
    WORDS,
    Candidate,
    amount,
    candidates,
    constant,
    is_judges,
    is_negated,
    is_of_error,
    is_right_or_wrong,
    is_weak,
    looks_like_money,
    numbers,
    pattern,
    plain,
    rank_of,
    scale_of,
    snake_case,
    some,
    texts,
    vocabulary,
)
from routeyard.schemas.statuses import ANSWERLESS, FAILED, says_failed, status_of

# Ids of questions: the column that names what all models were asked, spelled in one way.

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
        of_one = all(distinct([own, item]) <= 1.02 * ids for item in asked if not constant(item))
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
    for item in candidates(table, "prompt", frozenset({name})):
        if item.column.startswith("(path"):
            continue
        text = texts(table.column(item.column))
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
        done.roles["question"] = done.roles["prompt"] = item.column
        done.note(
            "question",
            f"models have other texts in {item.column!r} under the same {name!r}, and the same "
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
_RUN = pattern("run")


def are_runs(column: pa.ChunkedArray) -> bool:
    """Whether parts of paths are alike but for the date or the number of a run."""
    seen = {str(value) for value in some(column, 500)}
    runs = {_RUN.sub("#", item) for item in seen}
    return len(seen) >= 2 and all(_RUN.search(item) for item in seen) and (
        2 * len({re.sub(r"\d+", "", run) for run in runs}) <= len(seen)
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
    return len(np.unique(np.bincount(_group_codes(key)))) == 1


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
        again = sum(item > 0 for item in counted.to_pylist())
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
    return bool(seen) and all(_ATTEMPT.fullmatch(str(item)) for item in seen)


def _attempt_numbers(table: pa.Table, name: str) -> np.ndarray | None:
    """(rows,) numbers of attempts; -1 where none is stated."""
    column = table.column(name)
    if name.startswith("(path"):
        column = pc.replace_substring_regex(texts(column), r"^.*?(\d+)$", r"\1")
    result = numbers(column)
    return None if result is None else np.nan_to_num(result, nan=-1.0)


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
        values = pc.not_equal(said, "").to_numpy()
    elif "score" in done.roles:
        values = table.column(done.roles["score"]).is_valid().to_numpy()
    else:
        return np.ones(n, bool)
    if "status" in done.roles:
        words = texts(table.column(done.roles["status"])).to_pylist()
        ended = {word: status_of(word) in (None, "ok", "truncated") for word in set(words)}
        values = values & np.array([ended[word] for word in words], bool)
    if "error" in done.roles:
        error = texts(table.column(done.roles["error"])).fill_null("")
        values = values & pc.equal(error, "").to_numpy()
    return np.asarray(values)


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
    import pandas as pd

    own, roles = done.roles["question"], done.roles
    name = next((roles[r] for r in ("prompt", "reference") if r in roles and roles[r] != own), None)
    if name is None or own.startswith("("):
        return False
    table = done.table
    said = pc.utf8_lower(texts(table.column(name)).fill_null(""))
    said = pc.utf8_trim_whitespace(pc.replace_substring_regex(said, r"\s+", " "))
    rows = pd.DataFrame(
        {
            "asked": _group_codes([suite, question]),
            "arm": _group_codes([arm]),
            "text": pd.factorize(np.asarray(said.to_pylist(), object), sort=True)[0],
        }
    )
    there = pc.not_equal(said, "").to_numpy()
    pairs = rows[there].drop_duplicates()
    twice = pairs.asked[pairs.duplicated(["asked", "arm"])]
    if not len(twice):
        return False
    several = rows.asked.isin(twice).to_numpy()
    inside = pairs[pairs.asked.isin(twice)]
    shared = len(inside) > 1.2 * len(inside[["asked", "text"]].drop_duplicates())
    if not shared and inside.arm.nunique() > 1:
        if sampled:
            return False
        raise SourceError(
            f"{inside.asked.nunique():,} ids of {own!r} have rows of one model with different "
            f"texts in {name!r}, and no two models share a text",
            where=str(table.column("(at)")[int(np.flatnonzero(several)[0])].as_py()),
            next_step="give each question an id, or number samples in a column `sample`",
        )
    named = rows[several & there]
    numbers_of = named.groupby("asked").text.rank("dense").astype(int)
    ids = question.to_pylist()
    for row, number in numbers_of.items():
        ids[row] += f" (text {number})"
    done.note(
        "question",
        f"{named.asked.nunique():,} ids of {own!r} have several texts in {name!r}: each text is a "
        f"separate question, such as {ids[named.index[0]]!r}",
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
    fixed = next((name for name in named if constant(table.column(name))), None)
    if fixed is None:
        return _same(table, "")
    done.roles["suite"] = fixed
    return texts(table.column(fixed)).fill_null("")


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
    values, of_arms = distinct([column]), distinct([column, arm])
    # Several arms have one value, or there is one arm.
    shared = distinct([arm]) == 1 or of_arms > values
    return shared and distinct([column, question]) > max(1, of_arms)


def _telling(
    table: pa.Table, role: str, key: list[pa.ChunkedArray], used: set[str | None]
) -> str | None:
    """The column of a role that tells most rows of one key apart; None where none does."""
    have = distinct(key)
    best, most = None, have
    for candidate in candidates(table, role, frozenset(x for x in used if x)):
        if candidate.column.startswith("(path"):
            continue
        result = distinct([*key, texts(table.column(candidate.column)).fill_null("")])
        if result > 1.02 * most:
            best, most = candidate.column, result
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
    for candidate in candidates(table, "part", frozenset(x for x in used if x)):
        values = texts(table.column(candidate.column)).fill_null("")
        if not constant(values) and distinct([*key, values]) > 1.02 * distinct(key):
            return candidate.column
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
    result, values = numbers(column), texts(column).fill_null("")

    def order(value: str) -> tuple[float, str]:
        try:
            return (-1.0 if result is None else float(value), value)
        except ValueError:
            return (-1.0, value)

    listed = pa.array(sorted(pc.unique(values).to_pylist(), key=order), pa.string())
    return pc.index_in(values, value_set=listed)


def _counted(key: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """How many rows before each have its key."""
    import pandas as pd

    codes = pd.Series(_group_codes(key))
    return pa.chunked_array([pa.array(codes.groupby(codes).cumcount(), pa.int32())])


# Which column of a group of records is the score: named, negated, or the words of a status.


def taken(done: Assigned) -> frozenset[str]:
    """Columns that have a role already."""
    return frozenset({*done.roles.values(), *done.others, "(at)"})


def find_score(done: Assigned, around: set[str]) -> None:
    """Give the score a column; one that says what is wrong, or a status, where no other fits."""
    if "score" in done.roles:
        return
    table = done.table
    results = [c for c in candidates(table, "score", taken(done) | frozenset(around))
             if not c.column.startswith("(path")]  # fmt: skip
    if not results:
        if not (_scores_counted(done) or _negated(done, around) or _of_status(done, around)):
            _unread(done, around)
        return

    def order(candidate: Candidate) -> tuple[bool, bool, bool, float, str]:
        column = table.column(candidate.column)
        values = numbers(column)
        scale = None if values is None else scale_of(values, candidate.column)
        unsure = scale is None or not scale.sure
        seldom = 2 * column.null_count > len(column)
        return (seldom, constant(column), unsure, candidate.rank, candidate.column)

    _several_metrics(done)
    ranked = sorted(results, key=order)
    best = ranked[0]
    done.roles["score"] = best.column
    done.others = [c.column for c in ranked[1:]]
    _of_total(done, best.column)
    _scores_attempts(done, best.column)
    flags = [c for c in ranked[1:] if c.rank < 20 and constant(table.column(c.column))]
    for flag in flags:
        value = some(table.column(flag.column), 1)
        done.note(
            "choice",
            f"{flag.column!r} is {value[0] if value else None} in every row and is not taken for "
            f"the score, {best.column!r} is",
            "score",
        )
    if constant(table.column(best.column)) and table.num_rows >= 20:
        done.note(
            "question",
            f"{best.column!r} says the same in all {table.num_rows:,} rows: does it say that the "
            "answer is right, or only that there is one?",
            "score",
        )


def _of_total(done: Assigned, name: str) -> None:
    """Divide a number of points or tests by the most that there can be, where a column says it."""
    values, table = numbers(done.table.column(name)), done.table
    before, _, leaf = name.rpartition(".")
    stems = plain(leaf), plain(leaf.rstrip("s"))
    called = {word.format(stem) for word in vocabulary("most") for stem in stems}
    for most in (n for n in table.column_names if n != name and n.rpartition(".")[0] == before):
        whole = numbers(table.column(most)) if plain(most.rpartition(".")[2]) in called else None
        if whole is None or values is None or np.nanmax(whole, initial=0) <= 1:
            continue
        if not np.all((whole > 0) & ((values <= whole) | np.isnan(values))):
            continue
        done.derive("score", pa.array(values / whole, from_pandas=True), (name, most))
        done.note("choice", f"{name!r} is divided by {most!r}", "score")
        return


def _scores_counted(done: Assigned) -> bool:
    """Take `c` right ones of `n` samples for the score, as pass@k is computed; false without."""
    columns = [numbers(done.table.column(x)) for x in ("c", "n") if x in done.table.column_names]
    right, whole = columns if len(columns) == 2 else (None, None)
    if right is None or whole is None or not np.all((right <= whole) & (right >= 0) & (whole >= 1)):
        return False
    done.derive("score", pa.array(right / whole), ("c", "n"))
    done.note("choice", "'c' right ones of 'n' samples are taken for the score", "score")
    return True


def _scores_attempts(done: Assigned, best: str) -> None:
    """Ask where columns that differ in a number alone are further attempts at the same question."""
    form = re.sub(r"\d+", "#", best)
    own = [n for n in done.others if n != best and re.sub(r"\d+", "#", n) == form]
    if form == best or not own:
        return
    every = [values for n in (best, *own) if (values := numbers(done.table.column(n))) is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a row without any
        any_of, first = np.nanmax(np.stack(every), axis=0), every[0]
    done.note(
        "question",
        f"{best!r} is taken for the score ({np.nanmean(first):.1%} in the mean) and "
        f"{', '.join(own[:3])} are further ones of the same answer: the best of them is "
        f"{np.nanmean(any_of):.1%}",
        "score",
    )


def _several_metrics(done: Assigned) -> None:
    """Note a column that names several metrics of the scores beside it."""
    for name in done.table.column_names:
        if plain(name.rpartition(".")[2]) not in vocabulary("metrics") or name.startswith("("):
            continue
        seen = sorted({str(value) for value in some(done.table.column(name), 2000)})
        if 1 < len(seen) <= 50 and all(len(item) <= 40 for item in seen):
            shown = ", ".join(seen[:3]) + (f" and {len(seen) - 3} more" if len(seen) > 3 else "")
            done.note(
                "choice",
                f"{name!r} names {len(seen)} metrics ({shown}): scores of several kinds are in "
                "one column, and a mean over suites mixes them",
                "score",
            )


def _negated(done: Assigned, around: set[str]) -> bool:
    """Take 1 minus a column of 0 and 1 that says that an answer is wrong; false without one."""
    free = [n for n in done.table.column_names if n not in taken(done) | around]
    name = next((n for n in free if is_negated(n.rpartition(".")[2])
                 and is_right_or_wrong(done.table.column(n))), None)  # fmt: skip
    if name is None:
        return False
    values = numbers(done.table.column(name))
    done.derive("score", pa.array(1 - values, from_pandas=True), (name,))  # type: ignore[operator]
    done.note("choice", f"{name!r} says that an answer is wrong: the score is 1 minus it", "score")
    return True


def _of_status(done: Assigned, around: set[str]) -> bool:
    """Take a status that says of nearly every row whether it succeeded; false without one."""
    for item in candidates(done.table, "status", taken(done) | frozenset(around)):
        values = numbers(done.table.column(item.column))
        if values is None or not {0.0, 1.0} <= {*values[~np.isnan(values)]} <= {0.0, 0.5, 1.0}:
            continue
        done.derive("score", pa.array(values, from_pandas=True))
        done.of_status = item.column
        done.note("question", f"{item.column!r} is taken for the score: its words are right or "
                  "wrong", "score")  # fmt: skip
        return True
    return False


def no_status_as_score(done: Assigned) -> None:
    """Take a status that says how calls ended for no score, once texts and references are known.

    `failed` beside answers that references can grade, or beside no answer alone, is no score of 0.
    """
    name = done.of_status
    if name is None:
        _no_call_as_score(done)
    if name is None or done.roles.get("score") != "(score)" or "text" not in done.roles:
        return
    words = pc.unique(done.table.column(name).drop_null()).to_pylist()
    if not all(status_of(word) for word in words) or not {
        *map(str.lower, map(str.strip, map(str, words)))
    } & {*FAILED}:
        return
    text = pc.utf8_trim_whitespace(texts(done.table.column(done.roles["text"])))
    blank = pc.equal(pc.fill_null(text, ""), "")
    wrong = pc.equal(done.table.column("(score)"), 0)
    unanswered = pc.all(pc.equal(pc.and_(wrong, blank), wrong)).as_py()
    if "reference" not in done.roles and not unanswered:
        return
    del done.roles["score"]
    done.notes = [n for n in done.notes if n.about != "score" or repr(name) not in n.says]
    done.note(
        "choice",
        f"{name!r} says how answers ended and is no score: "
        + ("the answers are graded by their references" if "reference" in done.roles
           else "no answer is beside those that failed"),
        "score",
    )  # fmt: skip


def _no_call_as_score(done: Assigned) -> None:
    """Take `success: false` for how a call ended where references grade, and no answer is wrong.

    A score says of some answer that is there that it is wrong; this is 0 beside none.
    """
    score = done.roles.get("score", "")
    own = [n for n in ({*done.used} if score == "(score)" else {score})
           if plain(n.rpartition(".")[2]) in vocabulary("of_calls")]  # fmt: skip
    if len(own) != 1 or not {"text", "reference"} <= {*done.roles}:
        return
    name, table = own[0], done.table
    if done.others or not is_right_or_wrong(table.column(score)):
        return
    text = pc.utf8_trim_whitespace(texts(table.column(done.roles["text"]))).fill_null("")
    wrong = pa.chunked_array([pa.array(numbers(table.column(score)) == 0)])
    failed = pc.unique(text.filter(wrong)).to_pylist()
    if not failed or not all(not item or says_failed(item) for item in failed):
        return
    said = [c.column for c in candidates(table, "status", taken(done))][:1]
    other = texts(table.column(said[0])) if said else pa.scalar(None, pa.string())
    done.derive("status", pc.if_else(wrong, "failed", other), (name, *said))
    del done.roles["score"]
    done.notes = [note for note in done.notes if note.about != "score"]
    done.note(
        "choice",
        f"{name!r} says how calls ended and is no score: the answers are graded by their "
        f"references, and the {pc.sum(wrong).as_py():,} that failed are missing",
        "score",
    )


#: Ranks of names that are those of scores, and hardly of anything else; most grades of a scale.
CLEAR, _GRADES = 20.0, 12


def _unread(done: Assigned, around: set[str]) -> None:
    """Note columns that are called scores and hold what no scale of scores has."""
    for name in done.table.column_names:
        rank = rank_of(name, "score")
        if rank is None or rank >= 2 * CLEAR or name in taken(done) | around:
            continue
        seen = sorted({str(value)[:40] for value in some(done.table.column(name), 2000)})
        grades = len(seen) <= _GRADES and all(len(item) <= 20 for item in seen)
        if (is_weak(name, "score") or rank >= CLEAR) and not grades:
            continue
        if any(item.strip() for item in seen):
            shown = ", ".join(seen[:3]) + (f" and {len(seen) - 3} more" if len(seen) > 3 else "")
            value = f"_row[{name!r}]"
            mean = f"1 if {value} in [{seen[0]!r}] else 0"
            if all(item[:1] == "[" for item in seen):
                mean = f"({value} | from_json | sum) / ({value} | from_json | length)"
            done.note(
                "unread",
                f"{name!r} is called a score and holds what no scale of scores has ({shown}): "
                f'it was not read; say what it means, such as --map "score={{{{ {mean} }}}}"',
                "score", done.table.num_rows,
            )  # fmt: skip


def _says_none(word: str, short: str) -> bool:
    """Whether a word of a score says that the score is missing."""
    return short in ABSENT or (short not in WORDS and status_of(word) in ANSWERLESS)


def words_of_scores(done: Assigned) -> dict[str, pa.ChunkedArray]:
    """The words of a score that are neither right nor wrong, as a status, and a note of them."""
    name = done.roles["score"]
    column = done.table.column(name)
    if not pa.types.is_string(column.type):
        return {}
    coded = column.combine_chunks().dictionary_encode()
    listed = coded.dictionary.to_pylist()
    short = [plain(word or "") for word in listed]
    if compared := {*short} & {*vocabulary("compared")}:
        said = ", ".join(sorted(compared))
        note = f"{name!r} says who won ({said}), not whether an answer is right: is it the score?"
        done.note("question", note, "score")
    abstained, nothing = vocabulary("abstained"), vocabulary("nothing")
    statuses = [word if k in abstained or (k not in nothing and _says_none(word, k)) else None
                for word, k in zip(listed, short, strict=True)]  # fmt: skip
    status = pa.array(statuses, pa.string()).take(coded.indices)
    for word in filter(None, statuses):
        rows = int(pc.sum(pc.equal(status, word)).as_py() or 0)
        counted = "wrong" if plain(word) in abstained else "missing, and not wrong"
        done.note("question", f"{rows:,} answers with {name!r} {word!r} count as {counted}",
                  "score", rows)  # fmt: skip
    return {"status": pa.chunked_array([status])} if any(statuses) else {}


# Which column of a group of records is the arm, the question, the score and so on.

#: Roles of values that a row has of itself: values around a set are not taken for them.
_OF_ROWS = (
    "cost", "prompt_tokens", "completion_tokens", "latency", "error", "status", "served_model",
    "attempt",
)  # fmt: skip


def assign(table: pa.Table, around: set[str], mapping: Mapping[str, str]) -> Assigned:
    """Roles of a group's columns; a role that no column fits is left out.

    Args:
        mapping: Role → column, where a person names it.

    Raises:
        SourceError: the table lacks a column of the mapping.
    """
    done = Assigned(table, {})
    if (missing := impose(done, mapping)) is not None:
        raise SourceError(f"there is no column {missing!r}", where="--map")
    if "arm" not in done.roles:
        find_arm(done, around)
    find_score(done, around)
    _question(done, around)
    misnumbered(done)
    _no_reference(done)
    _texts_of(done, around)
    no_status_as_score(done)
    _error_objects(done, around)
    for role in _OF_ROWS:
        if role not in done.roles:
            result = candidates(done.table, role, taken(done) | frozenset(around))
            if result:
                best = next(
                    (c for c in result if not constant(done.table.column(c.column))), result[0]
                )
                done.roles[role] = best.column
    if "stricter" in table.column_names and (
        stricter := [v for v in some(table.column("stricter")) if v]
    ):
        done.note(
            "question",
            f"is an id a success by the list {some(table.column('success_list'), 1)[0]!r}, or "
            f"only by {stricter[0]}, which is part of it? The first is taken",
            "score",
        )
    _unread_usage(done, around)
    result = candidates(done.table, "split", frozenset(done.roles.values()))
    if result and "split" not in done.roles:
        done.roles["split"] = result[0].column
    return done


def _error_objects(done: Assigned, around: set[str]) -> None:
    """Take the parts of errors' objects for the error, as one text."""
    table = done.table
    parts = [n for n in done.free(around) if is_of_error(n)]
    if "error" in done.roles or not parts:
        return
    # Some rows may hold a text where others have an object.
    plainly = [c.column for c in candidates(table, "error", taken(done) | around)][:1]
    columns = [texts(table.column(name)).combine_chunks().fill_null("")
               for name in dict.fromkeys([*plainly, *parts])]  # fmt: skip
    said = pc.utf8_trim_whitespace(pc.binary_join_element_wise(*columns, " "))
    text = pc.if_else(pc.equal(said, ""), pa.scalar(None, pa.string()), said)
    done.derive("error", text, (*plainly, *parts))


def _no_reference(done: Assigned) -> None:
    """Take another score than one that says the same of every model's answer to a question."""
    name = done.roles.get("score")
    if name is None or not _is_reference(done, name):
        return
    done.others = [other for other in done.others if not _is_reference(done, other)]
    says = f"{name!r} says the same of all models' answers to each question"
    if done.others:
        done.roles["score"] = done.others.pop(0)
        taken_for = f"{done.roles['score']!r} is taken for the score"
        done.note("choice", f"{says}: {taken_for}", "score")
        return
    scores = {str(item) for item in some(done.table.column(name))}
    answers = [c.column for c in candidates(done.table, "text", taken(done))]
    if any({str(v) for v in some(done.table.column(c))} <= scores for c in answers):
        del done.roles["score"]
        done.roles.setdefault("reference", name)
        done.note("choice", f"{says}: it is the reference of the answers, and no score", "score")
    else:
        done.note("question", f"{says}: is it the score, or the right answer?", "score")


def _is_reference(done: Assigned, name: str) -> bool:
    """Whether each question of ten and more has one value of several in all models' rows."""
    if done.unique("question") < 10 or done.unique("arm") < 2:
        return False
    return not constant(done.table.column(name)) and _of_question(done, name)


def _unread_usage(done: Assigned, around: set[str]) -> None:
    """Note columns that are called costs, tokens or times and were not read."""
    for role in ("cost", "prompt_tokens", "completion_tokens", "latency"):
        if role in done.roles:
            continue
        for name in done.free(around):
            if not some(done.table.column(name), 1):
                continue
            if (reason := _why_unread(name, role)) is not None:
                says = f"{name!r} {reason}: it was not read"
                done.note("left_out", says, role, done.table.num_rows)
            elif role == "cost" and looks_like_money(name) and not is_judges(name):
                says = f"{name!r} looks like a cost and was not read: call it cost_usd "
                done.note("unpriced", says + "or MODEL_cost_usd", role, done.table.num_rows)


def _why_unread(name: str, role: str) -> str | None:
    """Why a column of such a name was not read; None where it is called otherwise."""
    snake = snake_case(name)
    if role == "cost" and looks_like_money(name):
        if FOREIGN.search(snake):
            return "is not in US dollars"
        if RATE.search(snake):
            return "is a price, not what an answer cost"
    rank = rank_of(name, role)
    return None if rank is None or rank >= CLEAR else "holds texts that are no amounts"


def _question(done: Assigned, around: set[str]) -> None:
    if "question" in done.roles:
        return
    table, arm = done.table, done.roles.get("arm")
    used = taken(done) | frozenset(around)
    keys = [n for n in table.column_names if n.startswith("(key") and n != arm and n not in used]
    if keys:
        key = max(keys, key=lambda n: len(pc.unique(table.column(n))))
        # Of a table below each key the rows are the questions, and the key their suite.
        pairs = done.per_question and distinct([texts(table.column(n)) for n in (str(arm), key)])
        rows = done.per_question and pairs < table.num_rows
        done.roles["question"] = "(row)" if rows else key
        return
    results = [
        c.column for c in candidates(table, "question", used) if not c.column.startswith("(path")
    ]
    fits = [name for name in results if _identifies(done, name)]
    if fits:
        done.roles["question"] = shared_id(done, fits)
        return
    if done.per_question:
        done.roles["question"] = "(row)"
        return
    if arm is not None and _transposed(done, arm, around):
        return
    _unnamed_question(done, used, around)


def _unnamed_question(done: Assigned, used: frozenset[str], around: set[str]) -> None:
    """Take the value around lists of answers, a text or a part of the path for the question."""
    table, outer = done.table, frozenset(done.roles.values())
    if results := [c for c in candidates(table, "question", outer) if _of_list(done, c, around)]:
        done.roles["question"] = results[0].column
        return
    asked = [c.column for c in candidates(table, "prompt", used) if _identifies(done, c.column)]
    if asked:
        done.roles["question"] = done.roles["prompt"] = asked[0]
    elif (part := _path_of_questions(done)) is not None:
        done.roles["question"] = part
        done.note("choice", "the question is named only in the path of the file", "question")


def _of_list(done: Assigned, candidate: Candidate, around: set[str]) -> bool:
    """Whether a column around lists of answers is the id of the question that each list is of."""
    column = done.table.column(candidate.column)
    pairs = [n for n in (done.roles.get("arm"), candidate.column) if n is not None]
    rows = done.table.select(pairs).group_by(pairs).aggregate([]).num_rows
    return candidate.column in around and candidate.rank < ENDING and not constant(column) and (
        rows == done.table.num_rows
    )  # fmt: skip


def _path_of_questions(done: Assigned) -> str | None:
    """The part of the files' paths that tells an arm's rows apart, and that other arms have too."""
    table, arm = done.table, done.roles.get("arm")
    if arm is None or "score" not in done.roles:
        return None
    for name in (n for n in table.column_names if n.startswith("(path") and n != arm):
        pairs = table.select([arm, name]).group_by([arm, name]).aggregate([]).num_rows
        parts = len(pc.unique(table.column(name)))
        if pairs == table.num_rows > parts >= 2 and pairs > 1.5 * parts:
            return str(name)
    return None


def _transposed(done: Assigned, arm: str, around: set[str]) -> bool:
    """Turn a table with a row per model and a column of 0 and 1 per question; false for another."""
    table = done.table
    if len(pc.unique(table.column(arm))) < table.num_rows or table.num_rows < 2:
        return False
    own = [n for n in table.column_names if n != arm and n not in around and n[:1] != "("]
    asked = _of_one_parent([n for n in own if is_right_or_wrong(table.column(n))])
    if len(asked) < 5 or 2 * len(asked) < len(own):
        return False
    shared = table.select([n for n in table.column_names if n not in asked])
    parts = []
    for name in asked:
        values = pa.array(numbers(table.column(name)), from_pandas=True)
        part = shared.append_column("(question)", pa.array([name] * table.num_rows, pa.string()))
        parts.append(part.append_column("(score)", values))
    done.table = pa.concat_tables(parts)
    done.roles |= {"question": "(question)", "score": "(score)"}
    done.others = []
    done.note(
        "choice", f"the {len(asked):,} columns of 0 and 1 are taken for questions", "question"
    )
    return True


def _of_one_parent(names: list[str]) -> list[str]:
    """The columns of the key that holds most of them; a setting of 0 beside them is no question."""
    parents = [name.partition(".")[0] if "." in name else "" for name in names]
    most = max(parents, key=parents.count, default="")
    return [name for name, parent in zip(names, parents, strict=True) if parent == most]


def _identifies(done: Assigned, name: str) -> bool:
    """Whether a column's values can be those of questions: several, that other arms have too."""
    column = done.table.column(name)
    unique = len(pc.unique(column.drop_null()))
    if unique < 2 and done.table.num_rows > max(1, done.unique("arm")):
        return False
    arms = done.unique("arm")
    if arms < 2 or done.per_question:
        return unique >= 1
    if unique < done.table.num_rows:
        return True
    # Each value once: a number of the row, unless no other arm was asked the same.
    prompts = candidates(done.table, "prompt", frozenset())
    return (
        not any(len(pc.unique(done.table.column(c.column))) < 0.9 * unique for c in prompts)
        and (rank_of(name, "question") or 0) < 20
    )


def _texts_of(done: Assigned, around: set[str]) -> None:
    """The answer, the question's text and the reference; `answer` can be either of two."""
    for role in ("text", "prompt", "reference"):
        if role in done.roles:
            continue
        free = taken(done) | frozenset(around)
        if role != "text" and done.roles.get("question") in around:
            free = taken(done)  # the value around a question's answers is the question's
        if role == "prompt":
            free = free - {done.roles.get("question", "")}
        result = candidates(done.table, role, free)
        if result := _fitting(done, role, [c for c in result if not c.column.startswith("(path")]):
            done.roles[role] = result[0].column


def _fitting(done: Assigned, role: str, columns: list[Candidate]) -> list[Candidate]:
    """Of columns of texts those that differ by answer, or for a question's own do not."""
    if role == "text":
        of_answers = [c for c in columns if not _of_question(done, c.column)]
        # All arms may say the same; beside a reference of its own such a column holds answers.
        named = {c.column for c in columns}
        other = any(c.column not in named for c in candidates(done.table, "reference"))
        alone = done.unique("arm") < 2 or other
        return of_answers or ([c for c in columns if not is_weak(c.column)] if alone else [])
    whole = role == "prompt" and done.per_question
    return [c for c in columns if whole or _of_question(done, c.column, otherwise=True)]


def _of_question(done: Assigned, name: str, *, otherwise: bool = False) -> bool:
    """Whether a column says the same for all answers to a question, so that it is no answer.

    Args:
        otherwise: The message where no question has two answers.
    """
    if "question" not in done.roles or done.unique("arm") < 2:
        return otherwise
    pairs = pa.table(
        {
            "q": texts(done.table.column(done.roles["question"])),
            "v": texts(done.table.column(name)),
        }
    )
    pairs = pairs.filter(pairs.column("v").is_valid())
    unique = pairs.group_by(["q", "v"]).aggregate([]).num_rows
    questions = len(pc.unique(pairs.column("q")))
    if pairs.num_rows < 1.5 * questions:
        return otherwise
    # Ids of several suites may be alike: of one id there may be a few texts, not one per answer.
    return unique <= 1.02 * questions or (otherwise and 2 * unique <= pairs.num_rows)
