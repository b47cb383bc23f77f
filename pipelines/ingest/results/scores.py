"""Which column of a group of records is the score: named, negated, or the words of a status."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.roles import (
    candidates,
    constant,
    is_negated,
    is_weak,
    rank_of,
)
from routeyard.pipelines.ingest.results.values import (
    ABSENT,
    ABSTAINED,
    COMPARED,
    WORDS,
    is_right_or_wrong,
    numbers,
    plain,
    scale_of,
    some,
    texts,
)
from routeyard.schemas.statuses import ANSWERLESS, FAILED, says_failed, status_of

#: Names of columns that say which metric a score is of.
_METRICS = ("metric", "metricname", "scorer", "grader", "evaluator", "scoretype", "metrictype")


def taken(done: Assigned) -> frozenset[str]:
    """Columns that have a role already."""
    return frozenset({*done.roles.values(), *done.others, "(at)"})


def find_score(done: Assigned, around: set[str]) -> None:
    """Give the score a column; one that says what is wrong, or a status, where no other fits."""
    if "score" in done.roles:
        return
    table = done.table
    found = [c for c in candidates(table, "score", taken(done) | frozenset(around))
             if not c.column.startswith("(path")]  # fmt: skip
    if not found:
        if not (_counted(done) or _negated(done, around) or _of_status(done, around)):
            _unread(done, around)
        return

    def order(one: object) -> tuple[bool, bool, bool, float, str]:
        column = table.column(one.column)  # type: ignore[attr-defined]
        values = numbers(column)
        scale = None if values is None else scale_of(values, one.column)  # type: ignore[attr-defined]
        unsure = scale is None or not scale.sure
        seldom = 2 * column.null_count > len(column)
        return (seldom, constant(column), unsure, one.rank, one.column)  # type: ignore[attr-defined]

    _several_metrics(done)
    ranked = sorted(found, key=order)
    best = ranked[0]
    done.roles["score"] = best.column
    done.others = [c.column for c in ranked[1:]]
    _of_total(done, best.column)
    _attempts(done, best.column)
    flags = [c for c in ranked[1:] if c.rank < 20 and constant(table.column(c.column))]
    for one in flags:
        value = some(table.column(one.column), 1)
        done.note(
            "choice",
            f"{one.column!r} is {value[0] if value else None} in every row and is not taken for "
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


#: Columns of the most that a number of points, tests or right samples can be.
_MOST = ("max{}", "{}max", "total{}", "{}total", "possible{}", "{}possible", "{}outof", "max",
         "outof", "maxscore", "maxpoints", "totalpoints", "totaltests", "numtests")  # fmt: skip


def _of_total(done: Assigned, name: str) -> None:
    """Divide a number of points or tests by the most that there can be, where a column says it."""
    values, table = numbers(done.table.column(name)), done.table
    before, _, leaf = name.rpartition(".")
    stems = plain(leaf), plain(leaf.rstrip("s"))
    called = {one.format(stem) for one in _MOST for stem in stems}
    for most in (n for n in table.column_names if n != name and n.rpartition(".")[0] == before):
        whole = numbers(table.column(most)) if plain(most.rpartition(".")[2]) in called else None
        if whole is None or values is None or np.nanmax(whole, initial=0) <= 1:
            continue
        if not np.all((whole > 0) & ((values <= whole) | np.isnan(values))):
            continue
        share = pa.array(values / whole, from_pandas=True)
        done.table = table.append_column("(score)", share)
        done.roles["score"] = "(score)"
        done.used |= {name, most}
        done.note("choice", f"{name!r} is divided by {most!r}", "score")
        return


def _counted(done: Assigned) -> bool:
    """Take `c` right ones of `n` samples for the score, as pass@k is computed; false without."""
    columns = [numbers(done.table.column(x)) for x in ("c", "n") if x in done.table.column_names]
    right, whole = columns if len(columns) == 2 else (None, None)
    if right is None or whole is None or not np.all((right <= whole) & (right >= 0) & (whole >= 1)):
        return False
    done.table = done.table.append_column("(score)", pa.array(right / whole))
    done.roles["score"] = "(score)"
    done.used |= {"c", "n"}
    done.note("choice", "'c' right ones of 'n' samples are taken for the score", "score")
    return True


def _attempts(done: Assigned, best: str) -> None:
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
        if plain(name.rpartition(".")[2]) not in _METRICS or name.startswith("("):
            continue
        seen = sorted({str(value) for value in some(done.table.column(name), 2000)})
        if 1 < len(seen) <= 50 and all(len(one) <= 40 for one in seen):
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
    done.table = done.table.append_column("(score)", pa.array(1 - values, from_pandas=True))  # type: ignore[operator]
    done.roles["score"] = "(score)"
    done.used.add(name)
    done.note("choice", f"{name!r} says that an answer is wrong: the score is 1 minus it", "score")
    return True


def _of_status(done: Assigned, around: set[str]) -> bool:
    """Take a status that says of nearly every row whether it succeeded; false without one."""
    for one in candidates(done.table, "status", taken(done) | frozenset(around)):
        values = numbers(done.table.column(one.column))
        if values is None or not {0.0, 1.0} <= {*values[~np.isnan(values)]} <= {0.0, 0.5, 1.0}:
            continue
        done.table = done.table.append_column("(score)", pa.array(values, from_pandas=True))
        done.roles["score"] = "(score)"
        done.of_status = one.column
        done.note("question", f"{one.column!r} is taken for the score: its words are right or "
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
    done.notes = [one for one in done.notes if one.about != "score" or repr(name) not in one.says]
    done.note(
        "choice",
        f"{name!r} says how answers ended and is no score: "
        + ("the answers are graded by their references" if "reference" in done.roles
           else "no answer is beside those that failed"),
        "score",
    )  # fmt: skip


#: Names of columns of 0 and 1 that say of a call as well as of an answer that it succeeded.
_OF_CALLS = ("success", "succeeded", "successful", "issuccess", "issuccessful", "ok", "isok",
             "valid", "isvalid", "failed", "isfailed", "isfailure", "unsuccessful")  # fmt: skip


def _no_call_as_score(done: Assigned) -> None:
    """Take `success: false` for how a call ended where references grade, and no answer is wrong.

    A score says of some answer that is there that it is wrong; this is 0 beside none.
    """
    score = done.roles.get("score", "")
    own = [n for n in ({*done.used} if score == "(score)" else {score})
           if plain(n.rpartition(".")[2]) in _OF_CALLS]  # fmt: skip
    if len(own) != 1 or not {"text", "reference"} <= {*done.roles}:
        return
    name, table = own[0], done.table
    if done.others or not is_right_or_wrong(table.column(score)):
        return
    text = pc.utf8_trim_whitespace(texts(table.column(done.roles["text"]))).fill_null("")
    wrong = pa.chunked_array([pa.array(numbers(table.column(score)) == 0)])
    beside = pc.unique(text.filter(wrong)).to_pylist()
    if not beside or not all(not one or says_failed(one) for one in beside):
        return
    said = [c.column for c in candidates(table, "status", taken(done))][:1]
    other = texts(table.column(said[0])) if said else pa.scalar(None, pa.string())
    done.table = table.append_column("(status)", pc.if_else(wrong, "failed", other))
    done.used |= {name, *said}
    done.roles["status"] = "(status)"
    del done.roles["score"]
    done.notes = [one for one in done.notes if one.about != "score"]
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
        grades = len(seen) <= _GRADES and all(len(one) <= 20 for one in seen)
        if (is_weak(name, "score") or rank >= CLEAR) and not grades:
            continue
        if any(one.strip() for one in seen):
            shown = ", ".join(seen[:3]) + (f" and {len(seen) - 3} more" if len(seen) > 3 else "")
            done.note(
                "unread",
                f"{name!r} is called a score and holds what no scale of scores has ({shown}): "
                "it was not read",
                "score", done.table.num_rows,
            )  # fmt: skip


#: Words of a score that say nothing.
_NOTHING = ("nan", "none", "null", "na", "nil", "", "missing", "unknown")


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
    words = coded.dictionary.to_pylist()
    short = [plain(word or "") for word in words]
    if compared := {*short} & {*COMPARED}:
        said = ", ".join(sorted(compared))
        note = f"{name!r} says who won ({said}), not whether an answer is right: is it the score?"
        done.note("question", note, "score")
    kept = [word if k in ABSTAINED or (k not in _NOTHING and _says_none(word, k)) else None
            for word, k in zip(words, short, strict=True)]  # fmt: skip
    status = pa.array(kept, pa.string()).take(coded.indices)
    for word in filter(None, kept):
        rows = int(pc.sum(pc.equal(status, word)).as_py() or 0)
        counted = "wrong" if plain(word) in ABSTAINED else "missing, and not wrong"
        done.note("question", f"{rows:,} answers with {name!r} {word!r} count as {counted}",
                  "score", rows)  # fmt: skip
    return {"status": pa.chunked_array([status])} if any(kept) else {}
