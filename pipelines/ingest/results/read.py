"""Reads anybody's results: a file, a folder or an archive becomes one row per answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import RouteyardError, SourceError
from routeyard.pipelines.ingest.results.aggregates import why_aggregate, why_pairs
from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.assign import assign
from routeyard.pipelines.ingest.results.beside.calls import ApiCalls, call_notes, calls_of
from routeyard.pipelines.ingest.results.beside.figures import figure_notes
from routeyard.pipelines.ingest.results.beside.paths import path_notes
from routeyard.pipelines.ingest.results.beside.stated import StatedFigure, figures_of, stated_notes
from routeyard.pipelines.ingest.results.documents import documents, files_of
from routeyard.pipelines.ingest.results.groups import Group, groups_of
from routeyard.pipelines.ingest.results.id_lists import TOTAL
from routeyard.pipelines.ingest.results.known import harness_of, read_harness
from routeyard.pipelines.ingest.results.melted import unmelted
from routeyard.pipelines.ingest.results.merge import AnswerSet, merged
from routeyard.pipelines.ingest.results.normal import arms, normal, with_missing, with_unlisted
from routeyard.pipelines.ingest.results.record_sets import DOCUMENT
from routeyard.pipelines.ingest.results.roles import is_weak
from routeyard.pipelines.ingest.results.values import ASKED, ReadingNote, texts
from routeyard.pipelines.io.untrusted import too_large


class AggregatesOnly(SourceError):
    """The files hold figures of many questions each, and no answer to a question.

    Attributes:
        notes: What is odd in the figures.
    """

    notes: tuple[ReadingNote, ...] = ()


@dataclass(slots=True)
class _Beside:
    """What is beside the answers: groups without any, API calls and figures of whole arms."""

    refused: list[_Refused] = field(default_factory=list)
    calls: list[ApiCalls] = field(default_factory=list)
    figures: set[StatedFigure] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Results:
    """Results in their normal form, and what a person has to know of how they were read.

    Attributes:
        table: One row per answer: `schemas.recording.RECORDING`; suite, question, arm and sample
            are unique together.
        columns: Column of the normal form → what it was read from.
        notes: Choices, questions to a person, values that make no sense, and what was left out.
        other_scores: Name of a further score → its values, one per row of `table`.
        layout: How the files were recognised.
    """

    table: pa.Table
    columns: dict[str, str]
    notes: tuple[ReadingNote, ...]
    other_scores: dict[str, pa.Array] = field(default_factory=dict)
    layout: str = "table"

    @property
    def questions(self) -> list[str]:
        """What a person has to confirm."""
        return [note.says for note in self.notes if note.kind in ASKED]


def read_results(path: Path, given: Mapping[str, str] | None = None) -> Results:
    """A stranger's file, folder or archive of results as the normal form, by its structure alone.

    Read are JSON, JSON lines, CSV, TSV, Parquet, YAML and zip files: a row per answer, a column per
    model, maps of model and question, lists of ids per outcome, one file per answer; model and
    suite from a column, a key or the path; and the logs of Inspect, lm-evaluation-harness and HELM.

    Args:
        path: File or folder, as it is.
        given: `arm`, `question`, `suite`, `sample`, `score`, `text`, `prompt`, `reference`, `cost`,
            `prompt_tokens`, `completion_tokens`, `latency`, `status`, `error`, `split` → column,
            where a person knows better.

    Raises:
        AggregatesOnly: the files hold figures of many questions each.
        SourceError, Unsafe: nothing can be read, or a file is damaged or too large.
    """
    try:
        return _results(path, given or {})
    except RouteyardError:
        raise
    except MemoryError as error:
        raise too_large(path, "needs more memory than there is") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError,
            NotImplementedError) as error:  # fmt: skip
        raise SourceError(
            f"the results hold a value that cannot be read: {type(error).__name__}: "
            f"{str(error)[:300]!r}",
            where=str(path),
            next_step="name one file after the other to find it",
        ) from error


def _results(path: Path, given: Mapping[str, str]) -> Results:
    paths, others = files_of(path)
    harness = harness_of(paths) if not given else None
    if harness is not None:
        return _of_harness(*harness, path, len(paths))
    sets: list[AnswerSet] = []
    beside = _Beside()
    for group in groups_of(documents(paths, path)):
        _read(group, given, sets, beside)
    if not sets:
        raise _refusal(beside.refused, path)
    left = f"{len(others)} file{'s' if len(others) != 1 else ''} of other kinds: not read"
    notes = [ReadingNote("left_out", left)] if others else []
    notes += [*_unread_rows(beside.refused), *path_notes(paths, path)]
    table, columns, more, scores = merged(_not_twice(sets))
    told = call_notes(beside.calls, arms(table))
    stated = list(stated_notes(beside.figures, table))
    _refuse_one_kind(table, stated, path)
    found = (*notes, *more, *told, *stated)
    return Results(table, columns, found, scores)


def _refuse_one_kind(table: pa.Table, stated: Sequence[ReadingNote], path: Path) -> None:
    """Refuse rows that are all wrong, or all right, where the files state other accuracies."""
    scores = pc.unique(table.column("score").drop_null()).to_pylist()
    off = next((note for note in stated if "accuracy" in note.says), None)
    if off is not None and len(scores) == 1 and scores[0] in (0, 1):
        kind = "right" if scores[0] else "wrong"
        raise SourceError(
            f"the rows list only {kind} answers: {off.says}",
            where=str(path),
            next_step="add the results of the other questions",
        )


def _of_harness(name: str, logs: list[Path], path: Path, files: int) -> Results:
    """Results of a known harness's logs."""
    table, notes, result = read_harness(name, logs, path)
    if table.num_rows == 0:
        left_out = "; ".join(f"{why}: {n:,}" for why, n in result.reasons().items())
        raise SourceError(
            "the logs hold no answer" + (f" (left out: {left_out})" if left_out else ""),
            where=str(path),
            next_step="name a folder with logs that hold samples",
        )
    if files > len(logs):
        says = f"{files - len(logs)} files that are no logs of samples of {name}"
        notes.append(ReadingNote("left_out", says))
    notes += path_notes(logs, path)
    return Results(table, {"layout": name}, tuple(notes), layout=name)


def _not_twice(sets: list[AnswerSet]) -> list[AnswerSet]:
    """The sets without whole documents as separate records, where sets inside are answers."""
    inner = {name for one in sets if one.group.trail != DOCUMENT for name in one.group.files}
    return [one for one in sets if one.group.trail != DOCUMENT or not inner & {*one.group.files}]


@dataclass(frozen=True, slots=True)
class _Refused:
    """A group that holds no answers, and why."""

    group: Group
    why: str
    aggregate: bool = False
    notes: tuple[ReadingNote, ...] = ()


def _read(group: Group, given: Mapping[str, str], sets: list[AnswerSet], beside: _Beside) -> None:
    """Add a group to the sets of answers, or to those that hold none."""
    table, told = unmelted(group.table())
    if group.trail == DOCUMENT and len(group.parts) < 2:
        return
    around = {name for name in group.around if not name.startswith("(key")}
    if (why := why_pairs(table)) and not given:
        beside.refused.append(_Refused(group, why))
        return
    done = assign(table, around, given)
    done.notes += (*group.notes, *told)
    if why := why_aggregate(done, around):
        beside.figures |= figures_of(done, [n for n in done.table.column_names if n[0] != "("])
        notes = tuple(_odd_figures(group, done.roles.get("arm")))
        beside.refused.append(_Refused(group, why, aggregate=True, notes=notes))
        return
    if why := _lacking(done, group):
        beside.refused.append(_Refused(group, why))
        # A message inside another record belongs to that.
        if len(group.trail) <= 1 and (calls := calls_of(done)) is not None:
            beside.calls.append(calls)
        return
    normal_form, others = normal(done, around)
    beside.figures |= figures_of(done, sorted(around - set(done.roles.values())))
    if group.trail[-1:] == ("(lists of ids)",):
        totals = _totals(done, around)
        if not totals and pc.all(done.table.column("only_successes")).as_py():
            if len(arms(normal_form)) < 2:
                why = "lists name who succeeded, and not which questions there were"
                beside.refused.append(_Refused(group, why))
                return
            normal_form, more = with_unlisted(normal_form)
        else:
            normal_form, more = with_missing(normal_form, totals)
        done.notes += more
        others = {}
    empty = all(normal_form.column(n).null_count == normal_form.num_rows for n in ("score", "text"))
    if empty:
        beside.refused.append(_Refused(group, "no row has a score or an answer"))
        return
    sets.append(AnswerSet(group, done, normal_form, others))


#: Rows in the mean of a file from which those of a group are worth a word.
_FEW = 5


def _unread_rows(refused: Sequence[_Refused]) -> Iterator[ReadingNote]:
    """Rows of files that are beside the answers and were not read, and why."""
    for one in refused:
        group = one.group
        if group.trail in ((), ("(list)",)) and group.rows >= _FEW * len(group.files):
            files = ", ".join(list(dict.fromkeys(group.files))[:2])
            says = f"{group.rows:,} rows of {files} were not read: {one.why}"
            yield ReadingNote("left_out", says, group.rows)


def _lacking(done: Assigned, group: Group) -> str:
    """Why a group's rows are no answers of models; empty where they are."""
    if group.trail == DOCUMENT and done.roles.get("question") == "(row)":
        return "each file is one record with figures of several models"
    lacks = ["question's id"] if "question" not in done.roles else []
    if not {"score", "text"} & done.roles.keys():
        lacks.append("score or the answer")
    unsure = "score" not in done.roles and any(n.about == "arm" for n in done.notes)
    if not lacks and unsure and is_weak(done.roles["text"]):
        lacks.append("model: these are questions with their answers")
    if not lacks:
        return ""
    unread = [f"; {note.says}" for note in done.notes if note.kind == "unread"]
    return f"no column is the {', nor the '.join(lacks)}{''.join(unread)}"


def _odd_figures(group: Group, arm: str | None) -> Iterator[ReadingNote]:
    """What is odd in the figures of each file: files of one layout may be of two benchmarks."""
    for name, part in zip(group.files, group.parts, strict=True):
        for note in figure_notes(part, arm):
            yield replace(note, says=f"{name}: {note.says}")


def _totals(done: Assigned, around: set[str]) -> dict[str, int]:
    """Arm → number of questions that its file counts; empty where no figure says it."""
    names = [name for name in sorted(around) if TOTAL.search(name.rpartition(".")[2])]
    table = done.table
    if not names or "arm" not in done.roles:
        return {}
    arms = texts(table.column(done.roles["arm"])).to_pylist()
    return {
        arm: int(total)
        for arm, total in zip(arms, table.column(names[0]).to_pylist(), strict=True)
        if isinstance(total, int | float)
    }


def _refusal(refused: list[_Refused], path: Path) -> SourceError:
    """Why nothing was read: `AggregatesOnly` where figures of many questions were found."""
    aggregates = [one for one in refused if one.aggregate]
    if aggregates:
        most = max(aggregates, key=lambda one: one.group.rows)
        error = AggregatesOnly(
            f"the figures are aggregates, not answers to questions: {most.why}",
            where=f"{path} ({most.group.files[0]})",
            next_step="a benchmark needs one score per question and model: ask the publisher for "
            "the per-question results",
        )
        error.notes = tuple(dict.fromkeys(note for one in aggregates for note in one.notes))
        return error
    most_rows = max(
        refused, key=lambda one: (len(one.group.trail) <= 1, one.group.rows), default=None
    )
    why, where = "", str(path)
    if most_rows is not None:
        columns = ", ".join(sorted(most_rows.group.columns)[:20])
        why = f": {most_rows.why}"
        where = f"{path} ({most_rows.group.files[0]}; columns {columns})"
    return SourceError(
        f"no answers of models were found{why}",
        where=where,
        next_step="a table needs the model, the question's id and a score or an answer; name "
        "their columns where they have other names",
    )
