"""The key of each answer: suite, question, arm and sample, such that no two answers share one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.results.arms import (
    Assigned,
    codes_of,
    combined,
    find_arm,
    impose,
    unpivot,
)
from routeyard.pipelines.ingest.results.values import (
    ENDING,
    WORDS,
    Candidate,
    amount,
    candidates,
    is_judges,
    is_negated,
    is_of_error,
    is_right_or_wrong,
    is_weak,
    looks_like_money,
    numbers,
    other_money,
    pattern,
    plain,
    rank_of,
    refusal,
    scale_of,
    some,
    texts,
    vocabulary,
)
from routeyard.schemas.statuses import ANSWERLESS, FAILED, says_failed, status_of

# Ids of questions: the column that names what all models were asked, spelled in one way.

#: Fewest questions.
_FEWEST = 5


def misnumbered(done: Assigned) -> None:
    """Take the question's text for its id, where models have the same texts under other ids."""
    name, arm = done.roles.get("question"), done.roles.get("arm", "")
    if name is None or done.unique("arm") < 2 or done.per_question:
        return
    suites = [s for s in (*done.named("suite"), *done.below("(path")) if done.values(s) > 1]
    for text in done.named("prompt", {name}):
        if done.table.column(text).null_count or done.values(text) < _FEWEST:
            continue
        asked, pairs = done.distinct(text), done.distinct(name, text)
        # A text that other models have, under several ids; ids of several suites may be alike.
        if done.distinct(text, arm) < 1.5 * asked:
            continue
        if pairs < 1.2 * max(asked, done.distinct(name)) or any(
            done.distinct(s, name) >= pairs and done.distinct(s, arm) > done.unique("arm")
            for s in suites
        ):
            continue
        done.roles["question"] = done.roles["prompt"] = text
        done.note("misnumbered", text=text, name=name)
        return


def spelled_alike(question: pa.ChunkedArray, arm: np.ndarray) -> pa.ChunkedArray:
    """Ids without spaces around them; whole numbers as `7`, where models write `7.0` or `007`."""
    question = pc.utf8_trim_whitespace(question)
    whole = pc.match_substring_regex(question.drop_null(), r"^\d+(?:\.0+)?$")
    if not pc.all(whole).as_py():
        return question
    short = pc.replace_substring_regex(question, r"^0*(\d+)(?:\.0+)?$", r"\1")
    new, old = codes_of(short), codes_of(question)
    fewer = 1.2 * _count(new) <= _count(old)
    return short if fewer and _count(new, arm) == _count(old, arm) else question


def _count(*codes: np.ndarray) -> int:
    """Number of different combinations of codes."""
    return int(combined(codes).max(initial=-1)) + 1


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


# The key of each row, and what tells rows of one arm and question apart.

#: A folder that names an attempt.
_ATTEMPT = re.compile(r"(?:attempt|retry|try)[-_ ]?\d+", re.IGNORECASE)
#: A name that may say how many there were, not which one.
_COUNT = re.compile(r"(?:attempts|tries|count)$")
#: Values of a column of labels, at most.
_LABELS = 20


def keyed(done: Assigned) -> dict[str, pa.ChunkedArray]:
    """`arm`, `question`, `suite` and `sample` of each row, unique together.

    Rows of one arm and question are told apart by the suite, then by a column that numbers
    samples, then by settings, which become part of the arm, and at last by their order.
    """
    n = done.table.num_rows
    arm = done.text(done.roles["arm"]) if "arm" in done.roles else _same("unnamed", n)
    key = {"arm": pc.utf8_trim_whitespace(arm)}
    question = spelled_alike(done.text(done.roles["question"]), codes_of(key["arm"]))
    key |= {"suite": _suite(done, key["arm"], question), "question": question}
    codes = {name: codes_of(column) for name, column in key.items()}
    sample = np.zeros(n, np.int32)
    if _count(*codes.values()) == n:
        return {**key, "sample": pa.chunked_array([sample])}
    used = {done.roles.get(role) for role in ("arm", "question", "score", "suite")}
    attempt = _attempts(done, codes, used)
    sampled = _telling(done, "sample", codes, {*used, attempt}) or _runs(done, codes)
    if attempt and _last_alone(done, attempt, codes, sampled):
        return keyed(done)
    if _texts_apart(done, question, codes, sampled):
        return keyed(done)
    if sampled := sampled or attempt:
        done.used.add(sampled)
        if _is_finer_id(done, sampled, codes):
            done.note("finer_id", name=sampled)
            _extended(key, codes, "question", done.table.column(sampled), "#")
        else:
            done.note("sampled", name=sampled)
            done.roles["sample"] = sampled
            sample = _in_order(done, sampled)
            codes["sample"] = sample.astype(np.int64)
    _settings(done, key, codes, {*used, sampled})
    if repeated := n - _count(*codes.values()):
        even = _as_often(codes)
        more = "" if even else f"; other questions have fewer rows{_differ(done, codes)}"
        done.note("samples" if even else "repeated", repeated, more=more)
        sample = _before(combined([codes[name] for name in ("arm", "suite", "question")]))
    return {**key, "sample": pa.chunked_array([sample.astype(np.int32)])}


def _extended(
    key: dict[str, pa.ChunkedArray], codes: dict[str, np.ndarray], name: str,
    column: pa.ChunkedArray, sign: str,
) -> None:  # fmt: skip
    """Make the values of a column part of each row's question or arm."""
    longer = pc.binary_join_element_wise(key[name], texts(column), sign)
    key[name] = pc.coalesce(longer, key[name])
    codes[name] = codes_of(key[name])


def _same(value: str, rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([value] * rows, pa.string())])


def _before(codes: np.ndarray) -> np.ndarray:
    """(rows,) how many rows before each have its code."""
    import pandas as pd

    return pd.Series(codes).groupby(codes).cumcount().to_numpy(np.int32)


def _as_often(codes: Mapping[str, np.ndarray]) -> bool:
    """Whether every key has equally many rows, as samples have and copied rows have not."""
    return len(np.unique(np.bincount(combined([*codes.values()])))) == 1


def _is_finer_id(done: Assigned, name: str, codes: Mapping[str, np.ndarray]) -> bool:
    """Whether a column's values are ids of finer questions, which several arms answer.

    The number of a sample recurs under every question; the id of a part of one does not.
    """
    there = done.table.column(name).is_valid().to_numpy()
    values, asked, arm = (c[there] for c in (done.codes(name), codes["question"], codes["arm"]))
    ids = _count(values)
    if _count(values, asked) != ids or ids <= _count(asked):
        return False
    return _count(values, arm) > 1.5 * ids


def _telling(
    done: Assigned, role: str, codes: Mapping[str, np.ndarray], used: Iterable[str | None]
) -> str | None:
    """The column of a role that tells most rows of one key apart; None where none does."""
    best, most = None, _count(*codes.values())
    for name in done.named(role, {item for item in used if item}):
        if (result := done.distinct(*codes.values(), name)) > 1.02 * most:
            best, most = name, result
    return best


def _attempts(
    done: Assigned, codes: Mapping[str, np.ndarray], used: Iterable[str | None]
) -> str | None:
    """The column, or part of the path, that numbers attempts and tells rows of one key apart."""
    paths = [
        name for name in done.below("(path") if name not in {*used}
        and (seen := some(done.table.column(name), 500))
        and all(_ATTEMPT.fullmatch(str(item)) for item in seen)
    ]  # fmt: skip
    named = done.named("attempt", {item for item in used if item})
    have = _count(*codes.values())
    fits = (name for name in [*paths, *named] if done.distinct(*codes.values(), name) > have)
    return next(fits, None)


def _last_alone(
    done: Assigned, attempt: str, codes: Mapping[str, np.ndarray], sampled: str | None
) -> bool:
    """Keep the last attempt at each answer, with what all of them took; whether that was so.

    Where every answer has equally many attempts, or the column counts them, and the earlier ones
    answer as well, they are samples under another name.
    """
    table, column = done.table, done.table.column(attempt)
    if attempt.startswith("(path"):
        column = pc.replace_substring_regex(texts(column), r"^.*?(\d+)$", r"\1")
    stated = numbers(column)
    if stated is None:
        return False
    number = np.nan_to_num(stated, nan=-1.0)
    within = {**codes, **({"sample": done.codes(sampled)} if sampled else {})}
    group = combined([*within.values()])
    last = np.full(group.max(initial=-1) + 1, -np.inf)
    np.maximum.at(last, group, number)
    earlier = number < last[group]
    answered = int(np.sum(earlier & _answered(done)))
    counted = _COUNT.search(plain(attempt)) is not None
    if ((_as_often(within) or counted) and answered > 0.5 * earlier.sum()) or not earlier.any():
        return False
    for role in ("cost", "prompt_tokens", "completion_tokens", "latency"):
        name = done.roles.get(role, "")
        values = numbers(table.column(name), amount) if name else None
        if values is None:
            continue
        if role == "cost" and (unknown := int(np.isnan(values[earlier]).sum())):
            done.note("unpriced_attempts", unknown)
        took = np.bincount(group[earlier], np.nan_to_num(values[earlier]), len(last))
        whole = pa.array(values + took[group], from_pandas=True)
        table = table.set_column(table.column_names.index(name), name, whole)
    note = "attempts_answered" if answered else "attempts"
    done.note(note, int(earlier.sum()), attempt=attempt, answered=answered)
    done.replace(table.filter(pa.array(~earlier)).drop_columns([attempt]))
    done.roles = {role: name for role, name in done.roles.items() if name != attempt}
    return True


def _answered(done: Assigned) -> np.ndarray:
    """(rows,) whether a row holds an answer, or a score of one, and does not say that it failed."""
    roles = done.roles
    if not {"text", "score"} & {*roles}:
        return np.ones(done.table.num_rows, bool)
    there = done.table.column(roles.get("score", "(at)")).is_valid().to_numpy()
    values = ~_blank(done) if "text" in roles else there
    if "status" in roles:
        words = done.text(roles["status"]).to_pylist()
        ended = {word: status_of(word) in (None, "ok", "truncated") for word in {*words}}
        values = values & np.array([ended[word] for word in words], bool)
    if "error" in roles:
        values = values & pc.equal(done.text(roles["error"]).fill_null(""), "").to_numpy()
    return np.asarray(values)


def _blank(done: Assigned) -> np.ndarray:
    """(rows,) whether the answer's text is missing or empty."""
    said = pc.utf8_trim_whitespace(done.text(done.roles["text"]).fill_null(""))
    return np.asarray(pc.equal(said, "").to_numpy())


def _texts_apart(
    done: Assigned, question: pa.ChunkedArray, codes: Mapping[str, np.ndarray], sampled: str | None
) -> bool:
    """Make a question of each text under one id, where a model has rows of several; whether it did.

    Texts that no two models share tell no questions apart, as prompts that hold the answer do.

    Raises:
        SourceError: no column numbers such rows as samples either.
    """
    import pandas as pd

    own, roles, table = done.roles["question"], done.roles, done.table
    name = next((roles[r] for r in ("prompt", "reference") if r in roles and roles[r] != own), None)
    if name is None or own.startswith("("):
        return False
    said = pc.utf8_lower(done.text(name).fill_null(""))
    said = pc.utf8_trim_whitespace(pc.replace_substring_regex(said, r"\s+", " "))
    order = pd.factorize(np.asarray(said.to_pylist(), object), sort=True)[0]
    asked = combined([codes["suite"], codes["question"]])
    rows = pd.DataFrame({"asked": asked, "arm": codes["arm"], "text": order})
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
        at, ids = table.column("(at)")[int(np.flatnonzero(several)[0])], inside.asked.nunique()
        raise refusal("texts_of_one_model", at.as_py(), ids=ids, own=own, name=name)
    named = rows[several & there]
    ids = question.to_pylist()
    for row, number in named.groupby("asked").text.rank("dense").astype(int).items():
        ids[row] += f" (text {number})"
    n, such = named.asked.nunique(), ids[named.index[0]]
    done.note("several_texts", int(np.sum(several)), ids=n, own=own, name=name, such=such)
    if lost := int(np.sum(several & ~there)):
        done.note("untold_texts", lost)
    table = table.set_column(table.column_names.index(own), own, pa.array(ids, pa.string()))
    done.replace(table.filter(pa.array(~several | there)))
    return True


def _differ(done: Assigned, codes: Mapping[str, np.ndarray]) -> str:
    """How many answers have rows with different scores, as the end of a sentence."""
    if "score" not in done.roles:
        return ""
    more = done.distinct(*codes.values(), done.roles["score"]) - _count(*codes.values())
    return f", and {more:,} state another score than the row before" if more else ""


def _suite(done: Assigned, arm: pa.ChunkedArray, question: pa.ChunkedArray) -> pa.ChunkedArray:
    """Suite of each row: a column of that name, or a part of the path, where one is needed."""
    if "suite" in done.roles:
        return done.text(done.roles["suite"]).fill_null("")
    held = {column for role, column in done.roles.items() if role != "split"}
    named = [*done.named("suite", held), *(c for c in done.below("(key") if c not in held)]
    paths = [c for c in done.below("(path")
             if c not in held and not are_runs(done.table.column(c))]  # fmt: skip
    name = _varied_suite(done, named, paths, codes_of(arm), codes_of(question))
    if name in paths:
        done.note("suite_in_path")
    if name is None and (prefix := common_start(question)) is not None:
        done.note("suite_in_id")
        return prefix
    name = name or next((item for item in named if done.values(item) <= 1), None)
    if name is None:
        return _same("", done.table.num_rows)
    done.roles["suite"] = name
    return done.text(name).fill_null("")


def _varied_suite(
    done: Assigned, named: list[str], paths: list[str], arm: np.ndarray, question: np.ndarray
) -> str | None:
    """The column, key or part of the path of which each question has one value, or needs one."""
    pairs, ids = _count(arm, question), _count(question)
    for name in [*named, *paths]:
        if (values := done.distinct(name)) <= 1:
            continue
        if name in named and done.distinct(name, question) == ids:
            return name
        # Rows of one arm and question have several, of which several arms have one.
        of_arms = done.distinct(name, arm)
        if (
            pairs < done.table.num_rows
            and done.distinct(name, arm, question) > 1.2 * pairs
            and (of_arms > values or _count(arm) == 1)
            and done.distinct(name, question) > max(1, of_arms)
        ):
            return name
    return None


def _runs(done: Assigned, codes: Mapping[str, np.ndarray]) -> str | None:
    """The part of the path that names runs, where it tells rows of one key apart."""
    for name in done.below("(path"):
        values = done.text(name)
        if name in done.roles.values() or not are_runs(values):
            continue
        if done.distinct(*codes.values(), name) > 1.2 * _count(*codes.values()):
            seen = sorted({str(value) for value in some(values, 500)})
            done.note("runs", n=len(seen), some=", ".join(seen[:2]))
            return name
    return None


def _settings(
    done: Assigned, key: dict[str, pa.ChunkedArray], codes: dict[str, np.ndarray],
    used: set[str | None],
) -> None:  # fmt: skip
    """Make settings that tell rows of one key apart part of the arm, or of the question."""
    taken: list[str] = []
    while _count(*codes.values()) < done.table.num_rows and len(taken) < 4:
        name = _telling(done, "setting", codes, {*used, *taken})
        if name is None and not taken:
            if (asked := _telling(done, "part", codes, used)) is not None:
                done.note("part_of_id", name=asked)
                done.used.add(asked)
                _extended(key, codes, "question", done.table.column(asked), "#")
                continue
            if (name := _unnamed(done, codes, used)) is not None:
                done.note("unnamed_arms", name=name)
        if name is None:
            break
        _extended(key, codes, "arm", done.table.column(name), " · ")
        taken.append(name)
        done.used.add(name)
    if taken:
        done.note("settings", names=", ".join(taken))


def _unnamed(done: Assigned, codes: Mapping[str, np.ndarray], used: set[str | None]) -> str | None:
    """A column of few labels, of any name or of the path, that tells all rows of one key apart."""
    held = {*used, *done.roles.values(), *done.others, "(at)", "(row)"}
    for item in done.table.schema:
        label = pa.types.is_string(item.type) or pa.types.is_integer(item.type)
        few = item.name not in held and label and 1 < done.values(item.name) <= _LABELS
        if few and done.distinct(*codes.values(), item.name) == done.table.num_rows:
            return str(item.name)
    return None


def _in_order(done: Assigned, name: str) -> np.ndarray:
    """(rows,) values of a column as numbers from 0, in the order of the values."""
    result, values = done.numbers(name), done.text(name).fill_null("")

    def order(value: str) -> tuple[float, str]:
        try:
            return (-1.0 if result is None else float(value), value)
        except ValueError:
            return (-1.0, value)

    listed = pa.array(sorted(pc.unique(values).to_pylist(), key=order), pa.string())
    return np.asarray(pc.index_in(values, value_set=listed).to_numpy())


# Which column of a group of records is the score: named, negated, or the words of a status.


def find_score(done: Assigned) -> None:
    """Give the score a column; one that says what is wrong, or a status, where no other fits."""
    if "score" in done.roles:
        return
    table = done.table
    results = candidates(table, "score", done.taken | done.around)
    if not results:
        if not _made_score(done):
            _unread(done)
        return

    def order(candidate: Candidate) -> tuple[bool, bool, bool, float, str]:
        name = candidate.column
        values = done.numbers(name)
        scale = None if values is None else scale_of(values, name)
        unsure = scale is None or not scale.sure
        seldom = 2 * table.column(name).null_count > table.num_rows
        return (seldom, done.values(name) <= 1, unsure, candidate.rank, name)

    _several_metrics(done)
    ranked = sorted(results, key=order)
    best = ranked[0].column
    done.roles["score"] = best
    done.others = [c.column for c in ranked[1:]]
    _of_total(done, best)
    _scores_attempts(done, best)
    for flag in (c.column for c in ranked[1:] if c.rank < 20 and done.values(c.column) <= 1):
        value = next(iter(some(table.column(flag), 1)), None)
        done.note("flag", flag=flag, value=value, name=best)
    if done.values(best) <= 1 and table.num_rows >= 20:
        done.note("constant", name=best, n=table.num_rows)


def _of_total(done: Assigned, name: str) -> None:
    """Divide a number of points or tests by the most that there can be, where a column says it."""
    values, table = done.numbers(name), done.table
    before, _, leaf = name.rpartition(".")
    stems = plain(leaf), plain(leaf.rstrip("s"))
    called = {word.format(stem) for word in vocabulary("most") for stem in stems}
    for most in (n for n in table.column_names if n != name and n.rpartition(".")[0] == before):
        whole = done.numbers(most) if plain(most.rpartition(".")[2]) in called else None
        if whole is None or values is None or np.nanmax(whole, initial=0) <= 1:
            continue
        if np.all((whole > 0) & ((values <= whole) | np.isnan(values))):
            _scored_by(done, values / whole, "of_total", name, most)
            return


def _scores_attempts(done: Assigned, best: str) -> None:
    """Ask where columns that differ in a number alone are further attempts at the same question."""
    form = re.sub(r"\d+", "#", best)
    own = [n for n in done.others if n != best and re.sub(r"\d+", "#", n) == form]
    if form == best or not own:
        return
    every = [values for n in (best, *own) if (values := done.numbers(n)) is not None]
    mean, most = np.nanmean(every[0]), np.nanmean(np.fmax.reduce(every))
    done.note("score_attempts", name=best, mean=mean, others=", ".join(own[:3]), best=most)


def _shown(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _several_metrics(done: Assigned) -> None:
    """Note a column that names several metrics of the scores beside it."""
    for name in done.table.column_names:
        if plain(name.rpartition(".")[2]) not in vocabulary("metrics") or name.startswith("("):
            continue
        seen = sorted({str(value) for value in some(done.table.column(name), 2000)})
        if 1 < len(seen) <= 50 and all(len(item) <= 40 for item in seen):
            done.note("metrics", name=name, n=len(seen), some=_shown(seen))


def _made_score(done: Assigned) -> bool:
    """Make the score of columns that are called otherwise; false where none can be.

    1 minus a column that says that an answer is wrong, a status that says of nearly every row
    whether it succeeded, or `c` right ones of `n` samples, as pass@k is computed.
    """
    for name in (n for n in done.free() if is_negated(n.rpartition(".")[2])):
        if is_right_or_wrong(done.table.column(name)):
            wrong = np.asarray(done.numbers(name))
            return _scored_by(done, 1 - wrong, "negated", name)
    for name in done.fitting("status"):
        values = done.numbers(name)
        if values is not None and {0.0, 1.0} <= {*values[~np.isnan(values)]} <= {0.0, 0.5, 1.0}:
            done.of_status = name
            return _scored_by(done, values, "of_status", name)
    right, whole = (done.numbers(n) if n in done.table.column_names else None for n in "cn")
    if right is None or whole is None or not np.all((right >= 0) & (right <= whole) & (whole >= 1)):
        return False
    return _scored_by(done, right / whole, "of_total", "c", "n")


def _scored_by(done: Assigned, values: np.ndarray, note: str, *used: str) -> bool:
    """Take values that are made of columns for the score, and note it."""
    done.derive("score", pa.array(values, from_pandas=True), used)
    done.note(note, name=used[0], most=used[-1])
    return True


def no_status_as_score(done: Assigned) -> None:
    """Take what says how calls ended for no score, once texts and references are known.

    `failed` beside answers that references can grade, or beside no answer alone, is no score of 0;
    nor is `success: false` where references grade and no answer is wrong: a score says of some
    answer that is there that it is wrong.
    """
    score, table, graded = done.roles.get("score", ""), done.table, "reference" in done.roles
    flags = [n for n in ({*done.used} if score == "(score)" else {score})
             if plain(n.rpartition(".")[2]) in vocabulary("of_calls")]  # fmt: skip
    name = done.of_status or (flags[0] if len(flags) == 1 and graded else None)
    if name is None or not {"text", "score"} <= {*done.roles} or done.others:
        return
    blank, wrong = _blank(done), done.numbers(score) == 0
    if done.of_status is not None:
        if not _are_statuses(table.column(name)) or (not graded and not np.all(blank[wrong])):
            return
    else:
        if not _all_failed(done, pa.array(wrong)) or not is_right_or_wrong(table.column(score)):
            return
        stated = done.fitting("status")[:1]
        other = done.text(stated[0]) if stated else pa.scalar(None, pa.string())
        status = pc.if_else(pa.array(wrong), "failed", other)
        done.derive("status", status, (name, *stated))
    del done.roles["score"]
    done.notes = [note for note in done.notes if note.about != "score"]
    done.note("calls_graded" if graded else "calls", name=name, n=int(np.sum(wrong)))


def _are_statuses(column: pa.ChunkedArray) -> bool:
    """Whether all words of a column say how a call ended, and one that it failed."""
    words = [str(w).strip().lower() for w in pc.unique(column.drop_null()).to_pylist()]
    return bool({*words} & {*FAILED}) and all(status_of(word) for word in words)


def _all_failed(done: Assigned, wrong: pa.Array) -> bool:
    """Whether there are wrong answers, and each is empty or says that its call failed."""
    failed = pc.unique(done.text(done.roles["text"]).filter(wrong)).to_pylist()
    said = all(not (item or "").strip() or says_failed(item.strip()) for item in failed)
    return bool(failed) and said


#: Ranks of names that are those of scores, and hardly of anything else; most grades of a scale.
CLEAR, _GRADES = 20.0, 12


def _unread(done: Assigned) -> None:
    """Note columns that are called scores and hold what no scale of scores has."""
    for name in done.table.column_names:
        rank = rank_of(name, "score")
        if rank is None or rank >= 2 * CLEAR or name in done.taken | done.around:
            continue
        seen = sorted({str(value)[:40] for value in some(done.table.column(name), 2000)})
        grades = len(seen) <= _GRADES and all(len(item) <= 20 for item in seen)
        if (is_weak(name, "score") or rank >= CLEAR) and not grades:
            continue
        if any(item.strip() for item in seen):
            value = f"_row[{name!r}]"
            mean = f"1 if {value} in [{seen[0]!r}] else 0"
            if all(item[:1] == "[" for item in seen):
                mean = f"({value} | from_json | sum) / ({value} | from_json | length)"
            n = done.table.num_rows
            done.note("unread_score", n, name=name, some=_shown(seen), mean=mean)


def words_of_scores(done: Assigned) -> dict[str, pa.ChunkedArray]:
    """The words of a score that are neither right nor wrong, as a status, and a note of them."""
    name = done.roles["score"]
    column = done.table.column(name)
    if not pa.types.is_string(column.type):
        return {}
    coded = column.combine_chunks().dictionary_encode()
    short = {word: plain(word or "") for word in coded.dictionary.to_pylist()}
    if compared := {*short.values()} & {*vocabulary("compared")}:
        done.note("compared", name=name, words=", ".join(sorted(compared)))
    abstained, nothing = vocabulary("abstained"), vocabulary("nothing")
    statuses: list[str | None] = []
    for word, said in short.items():
        none = said in vocabulary("absent") or (said not in WORDS and status_of(word) in ANSWERLESS)
        statuses.append(word if said in abstained or (none and said not in nothing) else None)
    status = pa.array(statuses, pa.string()).take(coded.indices)
    for word in filter(None, statuses):
        rows = int(pc.sum(pc.equal(status, word)).as_py() or 0)
        counted = "wrong" if short[word] in abstained else "missing, and not wrong"
        done.note("words", rows, name=name, word=word, counted=counted)
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
    done = Assigned(table, frozenset(around))
    if (missing := impose(done, mapping)) is not None:
        raise SourceError(f"there is no column {missing!r}", where="--map")
    if "arm" not in done.roles:
        find_arm(done)
    find_score(done)
    if "question" not in done.roles:
        _question(done)
        misnumbered(done)
    _no_reference(done)
    _texts_of(done)
    no_status_as_score(done)
    _error_objects(done)
    for role in _OF_ROWS:
        if role not in done.roles and (named := done.fitting(role)):
            done.roles[role] = next((n for n in named if done.values(n) > 1), named[0])
    stricter = some(table.column("stricter")) if "stricter" in table.column_names else ()
    if first := next(filter(None, stricter), None):
        done.note("stricter", name=some(table.column("success_list"), 1)[0], stricter=first)
    _unread_usage(done)
    splits = done.named("split", done.roles.values())
    if splits and "split" not in done.roles:
        done.roles["split"] = splits[0]
    return done


def _error_objects(done: Assigned) -> None:
    """Take the parts of errors' objects for the error, as one text."""
    parts = [n for n in done.free() if is_of_error(n)]
    if "error" in done.roles or not parts:
        return
    # Some rows may hold a text where others have an object.
    names = [*dict.fromkeys([*done.fitting("error")[:1], *parts])]
    columns = [done.text(name).combine_chunks().fill_null("") for name in names]
    said = pc.utf8_trim_whitespace(pc.binary_join_element_wise(*columns, " "))
    text = pc.if_else(pc.equal(said, ""), pa.scalar(None, pa.string()), said)
    done.derive("error", text, names)


def _no_reference(done: Assigned) -> None:
    """Take another score than one that says the same of every model's answer to a question."""
    name = done.roles.get("score")
    if name is None or not _is_reference(done, name):
        return
    done.others = [other for other in done.others if not _is_reference(done, other)]
    if done.others:
        done.roles["score"] = done.others.pop(0)
        done.note("other_score", name=name, other=done.roles["score"])
        return
    scores = {str(item) for item in some(done.table.column(name))}
    answers = done.named("text", done.taken)
    if any({str(v) for v in some(done.table.column(c))} <= scores for c in answers):
        del done.roles["score"]
        done.roles.setdefault("reference", name)
        done.note("no_score", name=name)
    else:
        done.note("reference", name=name)


def _is_reference(done: Assigned, name: str) -> bool:
    """Whether each question of ten and more has one value of several in all models' rows."""
    if done.unique("question") < 10 or done.unique("arm") < 2:
        return False
    return done.values(name) > 1 and _of_question(done, name)


def _unread_usage(done: Assigned) -> None:
    """Note columns that are called costs, tokens or times and were not read."""
    for role in ("cost", "prompt_tokens", "completion_tokens", "latency"):
        if role in done.roles:
            continue
        for name in (n for n in done.free() if some(done.table.column(n), 1)):
            rank = rank_of(name, role)
            money = role == "cost" and looks_like_money(name)
            if money and (kind := other_money(name)):
                why = kind
            elif rank is not None and rank < CLEAR:
                why = "no_amounts"
            elif money and not is_judges(name):
                why = "looks_like_cost"
            else:
                continue
            done.note(why, done.table.num_rows, role, name=name)


def _question(done: Assigned) -> None:
    """Give the question a key, a column, or where columns were models the row."""
    arm, used = done.roles.get("arm"), done.taken | done.around
    if keys := [n for n in done.below("(key") if n != arm and n not in used]:
        key = max(keys, key=done.values)
        # Of a table below each key the rows are the questions, and the key their suite.
        rows = done.per_question and done.distinct(str(arm), key) < done.table.num_rows
        done.roles["question"] = "(row)" if rows else key
    elif fits := [name for name in done.fitting("question") if _identifies(done, name)]:
        done.roles["question"] = fits[0]
    elif done.per_question:
        done.roles["question"] = "(row)"
    elif arm is None or not _transposed(done, arm):
        _unnamed_question(done)


def _unnamed_question(done: Assigned) -> None:
    """Take the value around lists of answers, a text or a part of the path for the question."""
    arm, n = done.roles.get("arm"), done.table.num_rows
    pairs = [arm] if arm is not None else []
    for item in candidates(done.table, "question", frozenset(done.roles.values())):
        name = item.column
        of_list = name in done.around and item.rank < ENDING and done.values(name) > 1
        if of_list and done.distinct(*pairs, name) == n:
            done.roles["question"] = name
            return
    if asked := [name for name in done.fitting("prompt") if _identifies(done, name)]:
        done.roles["question"] = done.roles["prompt"] = asked[0]
        return
    for name in done.below("(path") if arm is not None and "score" in done.roles else ():
        # It tells an arm's rows apart, and other arms have it too.
        parts = done.values(name)
        if name != arm and done.distinct(*pairs, name) == n > parts >= 2 and n > 1.5 * parts:
            done.roles["question"] = name
            done.note("question_in_path")
            return


def _transposed(done: Assigned, arm: str) -> bool:
    """Turn a table with a row per model and a column of 0 and 1 per question; false for another."""
    table = done.table
    if done.values(arm) < table.num_rows or table.num_rows < 2:
        return False
    own = [n for n in table.column_names if n != arm and n not in done.around and n[:1] != "("]
    asked = [n for n in own if is_right_or_wrong(table.column(n))]
    # Of the key that holds most of them; a setting of 0 beside them is no question.
    parents = [name.partition(".")[0] if "." in name else "" for name in asked]
    most = max(parents, key=parents.count, default="")
    asked = [name for name, parent in zip(asked, parents, strict=True) if parent == most]
    if len(asked) < 5 or 2 * len(asked) < len(own):
        return False
    made = unpivot(table, {name: {"score": name} for name in asked})
    names = ["(question)" if name == "(model)" else name for name in made.column_names]
    done.replace(made.rename_columns(names))
    done.roles |= {"question": "(question)", "score": "(score)"}
    done.others = []
    done.note("transposed", n=len(asked))
    return True


def _identifies(done: Assigned, name: str) -> bool:
    """Whether a column's values can be those of questions: several, that other arms have too."""
    values, arms, n = done.values(name), done.unique("arm"), done.table.num_rows
    if values < 2 and n > max(1, arms):
        return False
    if arms < 2 or done.per_question:
        return values >= 1
    # Each value once: a number of the row, unless no other arm was asked the same.
    repeated = any(done.values(prompt) < 0.9 * values for prompt in done.named("prompt"))
    return values < n or (not repeated and (rank_of(name, "question") or 0) < 20)


def _texts_of(done: Assigned) -> None:
    """The answer, the question's text and the reference; `answer` can be either of two."""
    for role in (role for role in ("text", "prompt", "reference") if role not in done.roles):
        held = done.taken | done.around
        if role != "text" and done.roles.get("question") in done.around:
            held = done.taken  # the value around a question's answers is the question's
        if role == "prompt":
            held = held - {done.roles.get("question", "")}
        if fits := _fitting(done, role, done.named(role, held)):
            done.roles[role] = fits[0]


def _fitting(done: Assigned, role: str, names: list[str]) -> list[str]:
    """Of columns of texts those that differ by answer, or for a question's own do not."""
    if role != "text":
        whole = role == "prompt" and done.per_question
        return [n for n in names if whole or _of_question(done, n, otherwise=True)]
    of_answers = [n for n in names if not _of_question(done, n)]
    # All arms may say the same; beside a reference of its own such a column holds answers.
    alone = done.unique("arm") < 2 or {*done.named("reference")} - {*names}
    return of_answers or ([n for n in names if not is_weak(n)] if alone else [])


#: Questions, evenly from all, whose answers are compared.
_LOOKED_AT = 4000


def _of_question(done: Assigned, name: str, *, otherwise: bool = False) -> bool:
    """Whether a column says the same for all answers to a question, so that it is no answer.

    Args:
        otherwise: The message where no question has two answers.
    """
    if "question" not in done.roles or done.unique("arm") < 2:
        return otherwise
    column, asked = done.text(name), done.codes(done.roles["question"])
    some_of = asked % (asked.max(initial=0) // _LOOKED_AT + 1) == 0
    there = column.is_valid().to_numpy() & some_of
    asked, values = asked[there], codes_of(column.filter(pa.array(there)))
    rows, questions, pairs = len(asked), len(np.unique(asked)), _count(asked, values)
    if rows < 1.5 * questions:
        return otherwise
    # Ids of several suites may be alike: of one id there may be a few texts, not one per answer.
    return pairs <= 1.02 * questions or (otherwise and 2 * pairs <= rows)
