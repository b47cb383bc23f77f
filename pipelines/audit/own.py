"""Checks that users write: `.sql` files in a folder, run in a process with limits.

Each is a head of lines `-- WORD: value` (`says`, `severity`, `needs`, `mends`, `key`) and one
SELECT over `answers` that returns the `row` of each answer that breaks it, and whom it is `about`
if it likes. `answers` has the columns of `RECORDING` and `row`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from routeyard.pipelines.audit.answers import Answers, AuditCheck, Found, Mends, Severity
from routeyard.pipelines.common.isolation import (
    FunctionFailed,
    LimitExceeded,
    Limits,
    ProcessEnded,
    Worker,
)
from routeyard.pipelines.common.sql import head_of, lock
from routeyard.schemas.contracts import RECORDING
from routeyard.schemas.errors import BadInput

#: What one check may take. It writes no file.
LIMITS = Limits(memory=2 << 30, wall_s=120.0, cpu_s=60.0)
_HEAD = ("says", "severity", "needs", "mends", "key")


def _prepare() -> None:
    import duckdb  # noqa: F401


def _rows(file: str, sql: str) -> list[list[Any]]:
    """(about, row) of what a check selects, in the limited process: without files and network."""
    import duckdb

    with pa.memory_map(file) as source:
        table = pa.ipc.open_file(source).read_all()
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.register("answers", table)
            lock(connection, "1GB")
            statement, *more = connection.extract_statements(sql)
            if more or statement.type != duckdb.StatementType.SELECT:
                raise ValueError("expected one SELECT")
            result = connection.sql(statement.query)
            about = "about" if "about" in result.columns else "'answers'"
            if "row" not in result.columns:
                raise ValueError("expected a column 'row'; found " + ", ".join(result.columns))
            rows = result.select(f"{about}::VARCHAR AS about, row::BIGINT AS row").distinct()
            return [list(row) for row in rows.order("ALL").fetchall()]


_WORKER = Worker(LIMITS, _prepare)


def checks_in(folder: Path) -> list[AuditCheck]:
    """The checks of a folder, by name.

    Raises:
        BadInput: the folder has no check, or a head says something else.
    """
    from routeyard.pipelines.audit.checks import CHECKS

    paths = sorted(folder.glob("*.sql"))
    if not paths:
        what = "there is no check (*.sql)" if folder.is_dir() else "there is no such folder"
        raise BadInput(what, where=str(folder), next_step="name a folder of checks")
    if taken := {check.kind for check in CHECKS} & {path.stem for path in paths}:
        where, names = str(folder), ", ".join(sorted(taken))
        raise BadInput(f"built-in checks are called {names}", where=where, next_step="rename them")
    return [_check(path) for path in paths]


def _check(path: Path) -> AuditCheck:
    sql = path.read_text(encoding="utf-8", errors="replace")
    try:
        head = head_of(sql, _HEAD, path.name)
    except ValueError as error:
        raise BadInput(str(error), where=str(path), next_step="write them in this order") from None
    if other := {*re.findall(r"\{(.*?)\}", head["says"])} - {"n", "of"}:
        says = f"says: expected {{n}} (rows) and {{of}} (answers); found {{{min(other)}}}"
        raise BadInput(says, where=str(path))
    columns = (*RECORDING.names, "nothing")
    known = {"severity": get_args(Severity), "mends": get_args(Mends), "needs": columns}
    for word, values in known.items():
        if unknown := next((w for w in re.findall(r"\w+", head[word]) if w not in values), None):
            says = f"{word}: expected one of {', '.join(values)}; found {unknown!r}"
            raise BadInput(says, where=str(path), next_step=f"mend line {word!r} of its head")
    return AuditCheck.of_sql(path.stem, sql, head, partial(_found, path, sql, head["says"]))


def _stored(answers: Answers) -> Path:
    """A file with the answers and their numbers, for all checks; it goes with the answers."""
    folder = tempfile.mkdtemp(prefix="routeyard-check-")
    weakref.finalize(answers, shutil.rmtree, folder, ignore_errors=True)
    table = answers.table.append_column("row", pa.array(np.arange(len(answers))))
    file = Path(folder, "answers.arrow")
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    return file


def _found(path: Path, sql: str, says: str, answers: Answers) -> Iterator[Found]:
    """What a check selects, by whom it is about; `{n}` and `{of}` in its sentence are counts."""
    file: Path = answers.cached("stored", _stored)
    # The file is mapped into memory.
    limits = replace(_WORKER.limits, memory=_WORKER.limits.memory + file.stat().st_size)
    try:
        selected: Sequence[Any] = _WORKER.call(_rows, str(file), sql, limits=limits)
    except (FunctionFailed, LimitExceeded, ProcessEnded) as error:
        said = str(error).splitlines()[0]
        columns = ", ".join(answers.table.column_names)
        raise BadInput(
            f"the check cannot be run: {said}", where=str(path),
            next_step="it is one SELECT over `answers` that gives `row`, without files and network"
            + (f"; `answers` has the columns row, {columns}" if "column" in said else ""),
        ) from None  # fmt: skip
    for about, group in groupby(selected, key=itemgetter(0)):
        rows = [row for _, row in group]
        if wrong := [row for row in rows if row is None or not 0 <= row < len(answers)]:
            found = "no row (NULL)" if None in wrong else f"row {wrong[0]:,}"
            raise BadInput(
                f"the check gives rows that `answers` does not have: {found}",
                where=str(path),
                next_step="select `row` of `answers` as it is; an aggregate or an outer join that "
                "may have none takes `WHERE row IS NOT NULL`",
            )
        places = np.array(rows, dtype=np.int64)
        sentence = says.replace("{n}", f"{len(places):,}").replace("{of}", f"{len(answers):,}")
        yield Found(str(about), sentence, places)
