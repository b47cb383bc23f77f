"""Which column of a group of records is the arm, the question, the score and so on."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.arms import Assigned, find_arm
from routeyard.pipelines.ingest.results.ids import distinct, misnumbered, shared_id
from routeyard.pipelines.ingest.results.roles import (
    ENDING,
    Candidate,
    candidates,
    constant,
    is_judges,
    is_of_error,
    is_weak,
    looks_like_money,
    rank_of,
)
from routeyard.pipelines.ingest.results.scores import (
    CLEAR,
    find_score,
    no_status_as_score,
    taken,
)
from routeyard.pipelines.ingest.results.values import (
    FOREIGN,
    RATE,
    is_right_or_wrong,
    numbers,
    snake_case,
    some,
    texts,
)

#: Roles of values that a row has of itself: values around a set are not taken for them.
_OF_ROWS = (
    "cost", "prompt_tokens", "completion_tokens", "latency", "error", "status", "served_model",
    "attempt",
)  # fmt: skip


def assign(table: pa.Table, around: set[str], given: Mapping[str, str]) -> Assigned:
    """Roles of a group's columns; a role that no column fits is left out."""
    done = Assigned(
        table, {role: name for role, name in given.items() if name in table.column_names}
    )
    find_arm(done, around)
    find_score(done, around)
    _question(done, around)
    if "question" not in given:
        misnumbered(done)
    _no_reference(done, given)
    _texts_of(done, around)
    no_status_as_score(done)
    _error_objects(done, around)
    for role in _OF_ROWS:
        if role not in done.roles:
            found = candidates(done.table, role, taken(done) | frozenset(around))
            if found:
                best = next(
                    (c for c in found if not constant(done.table.column(c.column))), found[0]
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
    found = candidates(done.table, "split", frozenset(done.roles.values()))
    if found and "split" not in done.roles:
        done.roles["split"] = found[0].column
    return done


def _error_objects(done: Assigned, around: set[str]) -> None:
    """Take the parts of errors' objects for the error, as one text."""
    table = done.table
    free = [n for n in table.column_names if n not in taken(done) | around and n[:1] != "("]
    parts = [n for n in free if is_of_error(n)]
    if "error" in done.roles or not parts:
        return
    # Some rows may hold a text where others have an object.
    plainly = [c.column for c in candidates(table, "error", taken(done) | around)][:1]
    columns = [texts(table.column(name)).combine_chunks().fill_null("")
               for name in dict.fromkeys([*plainly, *parts])]  # fmt: skip
    said = pc.utf8_trim_whitespace(pc.binary_join_element_wise(*columns, " "))
    text = pc.if_else(pc.equal(said, ""), pa.scalar(None, pa.string()), said)
    done.table = table.append_column("(error)", text)
    done.roles["error"] = "(error)"
    done.used |= {*plainly, *parts}


def _no_reference(done: Assigned, given: Mapping[str, str]) -> None:
    """Take another score than one that says the same of every model's answer to a question."""
    name = done.roles.get("score")
    if name is None or "score" in given or not _is_reference(done, name):
        return
    done.others = [one for one in done.others if not _is_reference(done, one)]
    says = f"{name!r} says the same of all models' answers to each question"
    if done.others:
        done.roles["score"] = done.others.pop(0)
        taken_for = f"{done.roles['score']!r} is taken for the score"
        done.note("choice", f"{says}: {taken_for}", "score")
        return
    told = {str(one) for one in some(done.table.column(name))}
    answers = [c.column for c in candidates(done.table, "text", taken(done))]
    if any({str(v) for v in some(done.table.column(c))} <= told for c in answers):
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
        for name in done.table.column_names:
            known = name in around or name.startswith("(") or not some(done.table.column(name), 1)
            if known or name in taken(done):
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
    found = [
        c.column for c in candidates(table, "question", used) if not c.column.startswith("(path")
    ]
    fits = [name for name in found if _identifies(done, name)]
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
    if found := [c for c in candidates(table, "question", outer) if _of_list(done, c, around)]:
        done.roles["question"] = found[0].column
        return
    asked = [c.column for c in candidates(table, "prompt", used) if _identifies(done, c.column)]
    if asked:
        done.roles["question"] = done.roles["prompt"] = asked[0]
    elif (part := _path_of_questions(done)) is not None:
        done.roles["question"] = part
        done.note("choice", "the question is named only in the path of the file", "question")


def _of_list(done: Assigned, one: Candidate, around: set[str]) -> bool:
    """Whether a column around lists of answers is the id of the question that each list is of."""
    column = done.table.column(one.column)
    pairs = [n for n in (done.roles.get("arm"), one.column) if n is not None]
    rows = done.table.select(pairs).group_by(pairs).aggregate([]).num_rows
    return one.column in around and one.rank < ENDING and not constant(column) and (
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
    own = [n for n in table.column_names if n != arm and n not in around and not n.startswith("(")]
    asked = _of_one_parent([n for n in own if is_right_or_wrong(table.column(n))])
    if len(asked) < 5 or 2 * len(asked) < len(own):
        return False
    kept = table.select([n for n in table.column_names if n not in asked])
    parts = []
    for name in asked:
        values = pa.array(numbers(table.column(name)), from_pandas=True)
        part = kept.append_column("(question)", pa.array([name] * table.num_rows, pa.string()))
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
        found = candidates(done.table, role, free)
        if found := _fitting(done, role, [c for c in found if not c.column.startswith("(path")]):
            done.roles[role] = found[0].column


def _fitting(done: Assigned, role: str, found: list[Candidate]) -> list[Candidate]:
    """Of columns of texts those that differ by answer, or for a question's own do not."""
    if role == "text":
        of_answers = [c for c in found if not _of_question(done, c.column)]
        # All arms may say the same; beside a reference of its own such a column holds answers.
        named = {c.column for c in found}
        other = any(c.column not in named for c in candidates(done.table, "reference"))
        alone = done.unique("arm") < 2 or other
        return of_answers or ([c for c in found if not is_weak(c.column)] if alone else [])
    whole = role == "prompt" and done.per_question
    return [c for c in found if whole or _of_question(done, c.column, otherwise=True)]


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
