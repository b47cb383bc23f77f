"""Which column of a group of records is the arm, the question, the score and so on."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.arms import Assigned, find_arm
from routeyard.pipelines.ingest.results.roles import candidates, constant, is_weak, rank_of
from routeyard.pipelines.ingest.results.values import numbers, scale_of, some, texts

#: Roles of values that a row has of itself: what stands around a set is not taken for them.
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
    _score(done, around)
    _question(done, around)
    _texts_of(done, around)
    for role in _OF_ROWS:
        if role not in done.roles:
            found = candidates(done.table, role, _taken(done) | frozenset(around))
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
    found = candidates(done.table, "split", frozenset(done.roles.values()))
    if found and "split" not in done.roles:
        done.roles["split"] = found[0].column
    return done


def _taken(done: Assigned) -> frozenset[str]:
    return frozenset({*done.roles.values(), *done.others, "(at)"})


def _score(done: Assigned, around: set[str]) -> None:
    if "score" in done.roles:
        return
    table = done.table
    found = [c for c in candidates(table, "score", _taken(done) | frozenset(around))
             if not c.column.startswith("(path")]  # fmt: skip
    if not found:
        _unread(done, around)
        return

    def order(one: object) -> tuple[bool, bool, bool, float, str]:
        column = table.column(one.column)  # type: ignore[attr-defined]
        values = numbers(column)
        scale = None if values is None else scale_of(values, one.column)  # type: ignore[attr-defined]
        unsure = scale is None or not scale.sure
        seldom = 2 * column.null_count > len(column)
        return (seldom, constant(column), unsure, one.rank, one.column)  # type: ignore[attr-defined]

    ranked = sorted(found, key=order)
    best = ranked[0]
    done.roles["score"] = best.column
    done.others = [c.column for c in ranked[1:]]
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


#: Ranks of names that are those of scores, and hardly of anything else.
_CLEAR = 20.0


def _unread(done: Assigned, around: set[str]) -> None:
    """Note columns that are called scores and hold what no scale of scores has."""
    for name in done.table.column_names:
        rank = rank_of(name, "score")
        if rank is None or rank >= _CLEAR or is_weak(name) or name in _taken(done) | around:
            continue
        if seen := sorted({str(value)[:40] for value in some(done.table.column(name), 2000)}):
            shown = ", ".join(seen[:3]) + (f" and {len(seen) - 3} more" if len(seen) > 3 else "")
            done.note(
                "unread",
                f"{name!r} is called a score and holds what no scale of scores has ({shown}): "
                "it was not read",
                "score", done.table.num_rows,
            )  # fmt: skip


def _question(done: Assigned, around: set[str]) -> None:
    if "question" in done.roles:
        return
    table, arm = done.table, done.roles.get("arm")
    taken = _taken(done) | frozenset(around)
    keys = [n for n in table.column_names if n.startswith("(key") and n != arm and n not in taken]
    if keys:
        done.roles["question"] = max(keys, key=lambda n: len(pc.unique(table.column(n))))
        return
    found = [
        c.column for c in candidates(table, "question", taken) if not c.column.startswith("(path")
    ]
    fits = [name for name in found if _identifies(done, name)]
    if fits:
        done.roles["question"] = fits[0]
        return
    if done.per_question:
        done.roles["question"] = "(row)"
        return
    if arm is not None and _transposed(done, arm, around):
        return
    asked = [c.column for c in candidates(table, "prompt", taken) if _identifies(done, c.column)]
    if asked:
        done.roles["question"] = done.roles["prompt"] = asked[0]


def _transposed(done: Assigned, arm: str, around: set[str]) -> bool:
    """Turn a table with a row per model and a column of 0 and 1 per question; false for another."""
    table = done.table
    if len(pc.unique(table.column(arm))) < table.num_rows or table.num_rows < 2:
        return False
    own = [n for n in table.column_names if n != arm and n not in around and not n.startswith("(")]
    asked = _of_one_parent([n for n in own if _is_right_or_wrong(table.column(n))])
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


def _is_right_or_wrong(column: pa.ChunkedArray) -> bool:
    values = numbers(column)
    return values is not None and not {*values[values == values]} - {0.0, 1.0}


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
    table = done.table
    for role in ("text", "prompt", "reference"):
        if role in done.roles:
            continue
        free = _taken(done) | frozenset(around)
        if role == "prompt":
            free = free - {done.roles.get("question", "")}
        found = [c for c in candidates(table, role, free) if not c.column.startswith("(path")]
        if role == "text":
            found = [c for c in found if not _of_question(done, c.column)] or (
                [c for c in found if not is_weak(c.column)] if done.unique("arm") < 2 else []
            )
        elif role == "prompt":
            found = [
                c
                for c in found
                if done.per_question or _of_question(done, c.column, otherwise=True)
            ]
        if found:
            done.roles[role] = found[0].column


def _of_question(done: Assigned, name: str, *, otherwise: bool = False) -> bool:
    """Whether a column says the same for all answers to a question, so that it is no answer.

    Args:
        otherwise: What is said where no question has two answers.
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
