"""Which column of a group of records is the arm, the question, the score and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.roles import FAMILY, candidates, constant, is_weak, rank_of
from routeyard.pipelines.ingest.results.values import ReadingNote, numbers, scale_of, some, texts
from routeyard.pipelines.ingest.results.wide import model_columns, unpivot

#: Roles of values that a row has of itself: what stands around a set is not taken for them.
_OF_ROWS = (
    "cost", "prompt_tokens", "completion_tokens", "latency", "error", "status", "served_model",
    "attempt",
)  # fmt: skip


@dataclass(slots=True)
class Assigned:
    """A group's table, and role → column.

    Attributes:
        others: Further columns of scores.
        keys: Names of columns that are keys of maps.
        per_question: Rows are questions, and models were columns.
    """

    table: pa.Table
    roles: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    notes: list[ReadingNote] = field(default_factory=list)
    per_question: bool = False

    def unique(self, role: str) -> int:
        """Number of different values of a role's column; 0 where none has it."""
        name = self.roles.get(role)
        return 0 if name is None else len(pc.unique(self.table.column(name).drop_null()))

    def note(self, kind: str, says: str, about: str = "", rows: int = 0) -> None:
        """Add what a person should know."""
        self.notes.append(ReadingNote(kind, says, rows, (), about))  # type: ignore[arg-type]


def assign(table: pa.Table, around: set[str], given: Mapping[str, str]) -> Assigned:
    """Roles of a group's columns; a role that no column fits is left out."""
    done = Assigned(
        table, {role: name for role, name in given.items() if name in table.column_names}
    )
    _arm(done, around)
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


def _family(table: pa.Table, name: str) -> float:
    """Share of a column's different values that look like names of models."""
    seen = {str(v) for v in some(table.column(name), 2000)}
    return sum(bool(FAMILY.search(v)) for v in seen) / max(1, len(seen))


def _arm(done: Assigned, around: set[str]) -> None:
    if "arm" in done.roles:
        return
    table = done.table
    named = [c for c in candidates(table, "arm") if not _is_count(table, c.column)]
    # `(model)` of a wide table, then names, then keys and paths that look like models.
    best = min(named, key=lambda c: (c.rank + (0 if _family(table, c.column) else 12), c.column),
               default=None)  # fmt: skip
    sure = best is not None and (best.rank < 12 or _family(table, best.column) > 0)
    if best is not None and sure:
        done.roles["arm"] = best.column
        return
    keys = [n for n in table.column_names if n.startswith("(key") and _family(table, n) >= 0.5]
    if keys:
        done.roles["arm"] = keys[0]
        return
    own = [n for n in table.column_names if n not in around and not n.startswith("(")]
    models, known = model_columns(table.select(own))
    if models and known:
        _unpivoted(done, models, sure=True)
        return
    paths = [n for n in table.column_names if n.startswith("(path")]
    varied = [n for n in paths if not constant(table.column(n))]
    like = [n for n in (varied or paths) if _family(table, n) >= 0.5]
    if like:
        done.roles["arm"] = like[0]
        kind = "choice" if varied else "question"
        names = ", ".join(sorted({str(v) for v in some(table.column(like[0]), 50)})[:3])
        done.note(kind, f"the model is named only in the path of the file ({names})", "arm")
    elif models and not _named_score(table, around):
        _unpivoted(done, models, sure=False)
    elif best is not None:
        done.roles["arm"] = best.column
    else:
        fitting = [n for n in varied if _crosses(table, n)] or varied or paths[:1]
        if fitting:
            done.roles["arm"] = fitting[0]
            done.note(
                "question",
                "no column names the model; the name of the file or folder is taken "
                f"({', '.join(sorted({str(v) for v in some(table.column(fitting[0]), 50)})[:3])})",
                "arm",
            )


def _named_score(table: pa.Table, around: set[str]) -> bool:
    """Whether a column is named as a score is."""
    return bool(candidates(table, "score", frozenset(around)))


def _is_count(table: pa.Table, name: str) -> bool:
    return not pa.types.is_string(table.column(name).type)


def _crosses(table: pa.Table, name: str) -> bool:
    """Whether rows of one value of a path have the ids that rows of another have."""
    ids = candidates(table, "question")
    if not ids:
        return False
    pairs = pa.table({"a": table.column(name), "b": texts(table.column(ids[0].column))})
    unique = pairs.group_by(["a", "b"]).aggregate([]).num_rows
    return unique > 1.5 * len(pc.unique(pairs.column("b")))


def _unpivoted(done: Assigned, models: dict[str, dict[str, str]], *, sure: bool) -> None:
    if not sure:
        done.note(
            "question",
            f"the columns {', '.join(list(models)[:5])} are taken for models, one score each",
            "arm",
        )
    done.table = unpivot(done.table, models)
    done.per_question = True
    done.roles["arm"] = "(model)"
    names = {
        "score",
        "text",
        "cost",
        "prompt_tokens",
        "completion_tokens",
        "latency",
        "status",
        "error",
    }
    done.roles |= {role: f"({role})" for role in names if f"({role})" in done.table.column_names}


def _score(done: Assigned, around: set[str]) -> None:
    if "score" in done.roles:
        return
    table = done.table
    found = [c for c in candidates(table, "score", _taken(done) | frozenset(around))
             if not c.column.startswith("(path")]  # fmt: skip
    if not found:
        return

    def order(one: object) -> tuple[bool, bool, float, str]:
        column = table.column(one.column)  # type: ignore[attr-defined]
        values = numbers(column)
        scale = None if values is None else scale_of(values, one.column)  # type: ignore[attr-defined]
        unsure = scale is None or not scale.sure
        return (constant(column), unsure, one.rank, one.column)  # type: ignore[attr-defined]

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
    asked = [c.column for c in candidates(table, "prompt", taken) if _identifies(done, c.column)]
    if asked:
        done.roles["question"] = done.roles["prompt"] = asked[0]


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
