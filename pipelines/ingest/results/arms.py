"""Which column, key or part of the path names the arm; columns of models become rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.roles import FAMILY, candidates, constant, is_judges
from routeyard.pipelines.ingest.results.values import ReadingNote, plain, some, texts
from routeyard.pipelines.ingest.results.wide import FIELDS, model_columns, unpivot

#: Names of a column that has none: the index of a data frame.
_BLANK = ("unnamed", "unnamed0", "indexlevel0", "rownames", "index")


@dataclass(slots=True)
class Assigned:
    """A group's table, and role → column.

    Attributes:
        others: Further columns of scores.
        keys: Names of columns that are keys of maps.
        per_question: Rows are questions, and models were columns.
        used: Columns that were read and have no role.
        of_status: Column of a status whose words were taken for the score.
    """

    table: pa.Table
    roles: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    notes: list[ReadingNote] = field(default_factory=list)
    per_question: bool = False
    of_status: str | None = None
    used: set[str] = field(default_factory=set)

    def unique(self, role: str) -> int:
        """Number of different values of a role's column; 0 where none has it."""
        name = self.roles.get(role)
        return 0 if name is None else len(pc.unique(self.table.column(name).drop_null()))

    def note(self, kind: str, says: str, about: str = "", rows: int = 0) -> None:
        """Add what a person should know."""
        self.notes.append(ReadingNote(kind, says, rows, (), about))  # type: ignore[arg-type]


def _family(table: pa.Table, name: str) -> float:
    """Share of a column's different values that look like names of models."""
    seen = {str(v) for v in some(table.column(name), 2000)}
    return sum(bool(FAMILY.search(v)) for v in seen) / max(1, len(seen))


def find_arm(done: Assigned, around: set[str]) -> None:
    """Give the arm a column; without one that names models, a table with columns of models rows."""
    if "arm" in done.roles:
        return
    table = done.table
    named, sure = _named(table)
    if (name := named if sure else _key_of_models(table)) is not None:
        done.roles["arm"] = name
        return
    own = [n for n in table.column_names if n not in around and not n.startswith("(")]
    if named is None and (name := _by_values(table, around, blank=True)) is not None:
        done.roles["arm"] = name
        return
    models, known = model_columns(table.select(own))
    if models and known:
        _unpivoted(done, models, sure=True)
    elif (found := _path_of_models(table)) is not None:
        _from_path(done, *found, "the model is named only in the path of the file")
    elif models and not candidates(table, "score", frozenset(around)):
        _unpivoted(done, models, sure=False)
    elif named is not None:
        done.roles["arm"] = named
    elif (name := _by_values(table, around)) is not None:
        done.roles["arm"] = name
        done.note("question", f"{name!r} is taken for the model by its values", "arm")
    elif (part := _any_path(table)) is not None:
        why = "no column names the model; the name of the file or folder is taken"
        _from_path(done, part, "question", why)


def _key_of_models(table: pa.Table) -> str | None:
    """The first key of a map whose values look like names of models."""
    keys = (name for name in table.column_names if name.startswith("(key"))
    return next((name for name in keys if _family(table, name) >= 0.5), None)


def _by_values(table: pa.Table, around: set[str], *, blank: bool = False) -> str | None:
    """The first column of short texts of which most look like models, that no judge is named in.

    Args:
        blank: Only a column without a name, as data frames write their index.
    """
    for name in table.column_names:
        column = table.column(name)
        if name.startswith("(") or name in around or is_judges(name) or constant(column):
            continue
        if blank and plain(name) not in _BLANK:
            continue
        short = pa.types.is_string(column.type) and all(len(v) <= 80 for v in some(column, 300))
        if short and _family(table, name) >= 0.5:
            return str(name)
    return None


def _paths(table: pa.Table) -> tuple[list[str], list[str]]:
    """Parts of the path, and those of them that vary."""
    paths = [name for name in table.column_names if name.startswith("(path")]
    return paths, [name for name in paths if not constant(table.column(name))]


def _path_of_models(table: pa.Table) -> tuple[str, Literal["choice", "question"]] | None:
    """The part of the path that looks like names of models, and whether a person has to look."""
    paths, varied = _paths(table)
    like = (name for name in varied or paths if _family(table, name) >= 0.5)
    name = next(like, None)
    return None if name is None else (name, "choice" if varied else "question")


def _any_path(table: pa.Table) -> str | None:
    """The part of the path that names the model where nothing else does."""
    paths, varied = _paths(table)
    crossing = [name for name in varied if _crosses(table, name)]
    return next(iter(crossing or varied or paths), None)


def _named(table: pa.Table) -> tuple[str | None, bool]:
    """The column that is named best for an arm, and whether it surely holds names of models.

    `(model)` of a wide table comes first, then names, then keys and paths that look like models.
    """
    named = [c for c in candidates(table, "arm") if not _is_count(table, c.column)]
    likes = {c.column: _family(table, c.column) for c in named}
    best = min(
        named, key=lambda c: (c.rank + (0 if likes[c.column] else 12), c.column), default=None
    )
    if best is None:
        return None, False
    return best.column, best.rank < 12 or likes[best.column] > 0


def _from_path(done: Assigned, name: str, kind: str, why: str) -> None:
    """Take a part of the files' paths for the arm, and say so."""
    done.roles["arm"] = name
    names = sorted({str(v) for v in some(done.table.column(name), 50)})
    done.note(kind, f"{why} ({', '.join(names[:3])})", "arm")


def _is_count(table: pa.Table, name: str) -> bool:
    return not pa.types.is_string(table.column(name).type)


def _crosses(table: pa.Table, name: str) -> bool:
    """Whether rows of one value of a path have the ids that rows of another have."""
    ids = candidates(table, "question")
    if not ids:
        return False
    pairs = pa.table({"a": table.column(name), "b": texts(table.column(ids[0].column))})
    unique = pairs.group_by(["a", "b"]).aggregate([]).num_rows
    return bool(unique > 1.5 * len(pc.unique(pairs.column("b"))))


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
    done.roles |= {role: f"({role})" for role in FIELDS if f"({role})" in done.table.column_names}
