"""A stranger's results, whatever their layout, as the normal form of `schemas/release.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.usage import APART, usage_of
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.reading import (
    ImportedAnswer,
    ImportResult,
    named_errors,
    newest_first,
)
from routeyard.pipelines.ingest.results.arms import (
    Assigned,
    as_map,
    is_score,
    quoted,
    unmelted,
    why_aggregate,
    why_pairs,
)
from routeyard.pipelines.ingest.results.beside import (
    StatedFigure,
    call_notes,
    calls_of,
    figure_notes,
    figures_of,
    path_notes,
    stated_notes,
)
from routeyard.pipelines.ingest.results.keys import assign, keyed, words_of_scores
from routeyard.pipelines.ingest.results.record_sets import (
    DOCUMENT,
    TOTAL,
    AnswerSet,
    Group,
    documents,
    files_of,
    groups_of,
    merged,
)
from routeyard.pipelines.ingest.results.values import (
    ASKED,
    FAMILY,
    ROLES,
    Column,
    ReadingNote,
    ScoreScale,
    amount,
    cached_notes,
    factor,
    is_right_or_wrong,
    is_weak,
    numbers,
    plain,
    refusal,
    scale_of,
    snake_case,
    texts,
    told,
    unknown_words,
    vocabulary,
)
from routeyard.schemas.contracts import recording

# Logs of known harnesses, recognised by what they hold and read by their importers.

#: Bytes of a file's start that are looked at.
_START = 1 << 16
#: Columns of the normal form that are a field of each answer → the field.
_OF_ANSWER = {"arm": "model", "question": "query"} | {
    name: name
    for name in (
        "sample", "score", "error", "cost_usd", "prompt_tokens", "completion_tokens", "latency_s",
        "served_model", "text",
    )
}  # fmt: skip


def harness_of(paths: Sequence[Path]) -> tuple[str, list[Path]] | None:
    """The harness that wrote these files, and its files among them; None where no known one did."""
    runs = [path for path in paths if path.name == "per_instance_stats.json"]
    if runs:
        return "helm", runs
    samples = [path for path in paths if path.suffix == ".jsonl" and _holds(
        path, b'"doc_id"', b'"arguments"', b'"resps"', b'"filtered_resps"')]  # fmt: skip
    if samples:
        return "lm_eval", samples
    logs = [path for path in paths if path.suffix == ".eval" or (path.suffix == ".json" and _holds(
        path, b'"eval"', b'"run_id"', b'"task_id"', b'"dataset"'))]  # fmt: skip
    return ("inspect", logs) if logs else None


def _holds(path: Path, *keys: bytes) -> bool:
    with path.open("rb") as stream:
        start = stream.read(_START)
        if path.suffix == ".jsonl":  # a first line may be long
            start += stream.readline(1 << 20)
    return all(key in start for key in keys)


def read_harness(name: str, paths: Sequence[Path], path: Path, files: int) -> Results:
    """Results of a known harness's logs, and what its importer left out, chose and doubts.

    Args:
        files: Number of files at the path, logs and others.

    Raises:
        SourceError, Unsafe: as the importer does; the logs hold no answer.
    """
    importer = IMPORTERS.get(name)
    ordered = newest_first(paths, importer.newest_first) if importer.newest_first else list(paths)
    result = ImportResult(path)
    answers = list(importer.read(ordered, result))
    notes = [told("reason", n, reason=reason) for reason, n in result.reasons().items()]
    if not answers:
        left_out = "; ".join(note.says for note in notes)
        left_out = f" (left out: {left_out})" if left_out else ""
        raise refusal("no_answer_in_logs", path, left_out=left_out)
    notes += [ReadingNote("choice", choice) for choice in result.choices]
    notes += [ReadingNote("status", doubt) for doubt in result.doubts]
    read = [answer for answer in answers if answer.cache_read_tokens]
    notes += cached_notes(
        sum(item.cache_read_tokens or 0 for item in read),
        sum(item.prompt_tokens or 0 for item in read),
        len(read),
    )
    if files > len(paths):
        notes.append(told("no_logs", n=files - len(paths), harness=name))
    notes += path_notes(paths, path)
    columns = _columns_of(answers, result)
    return Results(recording(columns), {"layout": name}, tuple(notes), layout=name)


def _columns_of(answers: Sequence[ImportedAnswer], result: ImportResult) -> dict[str, list[object]]:
    """Columns of the normal form of a harness's answers."""
    asked = [result.questions[answer.query] for answer in answers]
    columns: dict[str, list[object]] = {
        name: [getattr(answer, field) for answer in answers] for name, field in _OF_ANSWER.items()
    }
    return columns | {
        "suite": [item.task for item in asked],
        "status": [answer.status or answer.finish_reason for answer in answers],
        "prompt": [item.question if item.question != item.id else None for item in asked],
        "reference": ["\n".join(item.references) or None for item in asked],
        "split": [item.split for item in asked],
        "at": [f"{answer.query}, {answer.model}" for answer in answers],
    }


# A group of records with known roles as the normal form.

#: Texts that are taken as they are.
_TEXTS = ("text", "prompt", "reference", "status", "error", "served_model", "split")
_NUMBERS = {"cost": "cost_usd", "prompt_tokens": "prompt_tokens",
            "completion_tokens": "completion_tokens", "latency": "latency_s"}  # fmt: skip
_SHOWN = 3
#: Seconds that no answer takes, and seconds from which a number may be of milliseconds.
_EPOCH, _LONG = 1e8, 600.0


def _named_rows(done: Assigned) -> None:
    """Leave out rows that name no model or no question, and note how many."""
    keep = np.ones(done.table.num_rows, bool)
    for role in ("arm", "question"):
        if role in done.roles:
            names = pc.utf8_trim_whitespace(pc.fill_null(done.text(done.roles[role]), ""))
            there = pc.not_equal(names, "").to_numpy()
            if missing := int(np.sum(~there)):
                done.note("unnamed_rows", missing, role)
            keep &= there
    if not keep.all():
        done.replace(done.table.filter(pa.array(keep)))


def _without_summaries(done: Assigned) -> None:
    """Leave out rows that are the mean, the sum or the number of an arm's others, and note them.

    Asked is of rows that only have the name of one, such as `Average`, and of those that are all
    0 or 1, as the verdicts of a question may be. Where all other scores lie in 0 to 1, rows that
    lie beyond are no scores, whatever they are.
    """
    if "score" not in done.roles or (values := done.numbers(done.roles["score"])) is None:
        return
    question = done.text(done.roles["question"])
    asked = pc.unique(question).to_pylist()
    names = [name for name in asked if plain(name) in vocabulary("summaries")]
    beyond = _beyond(question, values)
    if len(names) == len(asked) or not (names or beyond):
        return
    named = pc.is_in(question, pa.array([*names, *beyond])).to_numpy()
    computed = _computed(done, values, named, len(asked) - len({*names, *beyond}))
    summed = all(computed) and not np.isin(values[named], (0, 1)).all()
    some = ", ".join(map(repr, [*dict.fromkeys([*names, *beyond])][:_SHOWN]))
    if summed or names:
        done.note("summary_rows" if summed else "maybe_summaries", len(computed), some=some)
    if not summed:
        named = pc.is_in(question, pa.array(beyond, pa.string())).to_numpy()
        if beyond:
            done.note("no_scores", int(named.sum()), some=", ".join(map(repr, beyond)))
    done.replace(done.table.filter(pa.array(~named)))


def _computed(done: Assigned, values: np.ndarray, named: np.ndarray, n: int) -> list[bool]:
    """Whether each named row is a figure of the other rows of its arm, or of its suite.

    Args:
        n: The other questions; a mean may count what is missing as 0.
    """
    keys = {role: np.array(done.text(done.roles[role]).to_pylist())
            for role in ("arm", "suite") if role in done.roles}  # fmt: skip
    beside = ~named & ~np.isnan(values)
    computed = []
    for row in np.flatnonzero(named):
        own = beside & (keys["arm"] == keys["arm"][row] if "arm" in keys else True)
        suite = own & (keys["suite"] == keys["suite"][row] if "suite" in keys else True)
        parts = [values[rows] for rows in (own, suite) if rows.any()]
        figures = [figure for part in parts for figure in (
            part.mean(), 100 * part.mean(), part.sum(), len(part), n, part.sum() / n,
            100 * part.sum() / n)]  # fmt: skip
        computed.append(bool(np.isclose(values[row], figures, rtol=0.006, atol=0.006).any()))
    return computed


#: Questions from which scores of 0 to 1 are known to be all that there are, and most that are not.
_WITHIN, _BEYOND = 10, 2


def _beyond(question: Column, values: np.ndarray) -> list[str]:
    """The few questions whose scores lie beyond 1, where all others' are from 0 to 1."""
    import pandas as pd

    scores = pd.DataFrame({"question": question.to_pylist(), "score": values}).dropna()
    shares = (scores.score > 1.5).groupby(scores.question).mean()
    found = shares[shares > 0.5].index
    others = scores.score[~scores.question.isin(found)]
    few = len(found) <= _BEYOND and len(shares) - len(found) >= _WITHIN
    return sorted(found) if few and others.between(0, 1).all() else []


def _with_absent(done: Assigned, table: pa.Table) -> pa.Table | None:
    """The table of lists of ids with a row of score 0 for each question that an arm's lists lack.

    An arm's file may count questions of which it lists only some: the others count as wrong there,
    and are named where the lists of all arms name as many. Where lists name successes alone,
    questions that no arm solved are in no list, so that all accuracies are too high; None where
    there is one arm.
    """
    totals = _totals(done)
    alone = not totals and pc.all(done.table.column("only_successes")).as_py()
    names = sorted(totals) or arms(table)
    if not totals and not alone:
        return table
    if alone and len(names) < 2:
        return None
    have: dict[str, set[str]] = {arm: set() for arm in names}
    every: dict[str, str] = {}
    for row in table.select(["arm", "question", "suite"]).to_pylist():
        have.setdefault(row["arm"], set()).add(row["question"])
        every[row["question"]] = row["suite"]
    rows: list[dict[str, object]] = []
    for arm in names:
        n, total = len(have[arm]), totals.get(arm, len(every))
        named = total == len(every)
        if totals and total > n:
            note = "listed" if named else "listed_unnamed"
            done.note(note, total - n, arm, arm=arm, n=n, total=total)
        item = {"arm": arm, "sample": 0, "score": 0.0, "at": f"{arm}: in no list",
                "status": "unanswered" if totals else None}  # fmt: skip
        absent = sorted(every.keys() - have[arm]) if named and total > n else ()
        rows += [{**item, "question": asked, "suite": every[asked]} for asked in absent]
    if alone:
        done.note("successes_alone", len(rows), n=len(every))
    return pa.concat_tables([table, pa.Table.from_pylist(rows, schema=table.schema)])


def _totals(done: Assigned) -> dict[str, int]:
    """Arm → number of questions that its file counts; empty where no figure says it."""
    names = [name for name in sorted(done.around) if TOTAL.search(name.rpartition(".")[2])]
    if not names or "arm" not in done.roles:
        return {}
    arms = done.text(done.roles["arm"]).to_pylist()
    totals = zip(arms, done.table.column(names[0]).to_pylist(), strict=True)
    return {arm: int(total) for arm, total in totals if isinstance(total, int | float)}


def normal(done: Assigned) -> pa.Table:
    """The normal form of a group.

    Scores of percent, points and words become 1 for right and 0 for wrong; one outside stays as it
    is and is noted. Costs become USD and times seconds where a name states another unit.
    """
    _named_rows(done)
    _without_summaries(done)
    columns: dict[str, pa.Array | pa.ChunkedArray] = dict(keyed(done))
    columns["at"] = done.table.column("(at)")
    if "score" in done.roles and "status" not in done.roles:
        columns |= words_of_scores(done)
    columns |= {role: done.text(done.roles[role]) for role in _TEXTS if role in done.roles}
    for role, name in _NUMBERS.items():
        if role in done.roles and (values := _amounts(done, role, name)) is not None:
            columns[name] = pa.array(values, from_pandas=True)
    others: dict[str, pa.Array] = {}
    if "score" in done.roles:
        groups = [columns["arm"], columns["suite"]]
        for name in (done.roles["score"], *done.others):
            own = name == done.roles["score"]
            if (score := scored(done, name, groups, aloud=own)) is not None:
                (columns if own else others)["score" if own else name] = score
        if "score" not in columns:
            del done.roles["score"]
    unread = _unread_columns(done)
    if "success_list" not in done.table.column_names:  # columns that we made
        columns |= _maps("further_columns", _rest(done, unread), len(done.table))
        columns |= _maps("further_scores", _verdicts(done, others), len(done.table))
    result = recording(columns)
    done.notes += [*_unread_notes(unread), *_unread_models(done, unread)]
    if "status" not in done.roles and "error" not in done.roles:
        _unread_status(done, result)
    _unknown_status(done, result)
    return result


def _amounts(done: Assigned, role: str, name: str) -> np.ndarray | None:
    """(rows,) costs in USD, seconds or tokens; None where a column holds something else."""
    source = done.roles[role]
    values = numbers(done.table.column(source), amount)
    if values is not None and role == "prompt_tokens":
        values = _with_cached(done, source, values)
    if values is None or (role == "latency" and _is_time_of_day(done, source, values)):
        return None
    if (by := factor(source, role)) != 1:
        done.note("factor", 0, name, name=source, by=by)
    return values * by


def _unknown_status(done: Assigned, table: pa.Table) -> None:
    """Ask what words of a status mean that are beside empty answers and that nobody knows."""
    for wrong in (False, True):
        for word, rows in unknown_words(table, wrong=wrong).items():
            done.note("unknown_status_wrong" if wrong else "unknown_status", rows, word=word)


#: Different words of a column of statuses, at most.
_WORDS_OF_STATUS = 40
#: Columns that were not read which a note names, and those under one key that it names as one.
_NAMED, _TOGETHER = 30, 3


def _unread_status(done: Assigned, table: pa.Table) -> None:
    """Ask of a column that nobody read and that tells all empty answers from the others."""
    blank = pc.equal(pc.utf8_trim_whitespace(table.column("text").fill_null("")), "")
    number = pc.sum(blank).as_py() or 0
    if not 0 < number < len(blank):
        return
    for name in done.free():
        words = done.text(name)
        seen = {*pc.unique(words.filter(blank)).to_pylist()}
        others = {*pc.unique(words.filter(pc.invert(blank))).to_pylist()}
        few = len(seen) + len(others) <= min(_WORDS_OF_STATUS, len(blank) // 2)
        if few and not seen & others and all(item and len(item) <= 80 for item in seen):
            shown = ", ".join(map(repr, sorted(seen)[:3]))
            done.note("unread_status", number, name=name, words=shown)


def _unread_columns(done: Assigned) -> list[str]:
    """The columns that hold something and of which nothing was read."""
    told_of = " ".join(note.says for note in done.notes if note.about != "arm")
    return [n for n in done.free() if done.table.column(n).null_count < done.table.num_rows
            and repr(n) not in told_of]  # fmt: skip


#: Characters of a value, different values of a column without numbers, and values in all, that the
#: audit looks at.
_SHORT, _KINDS, _MOST = 80, 50, 1 << 27


def _rest(done: Assigned, unread: Sequence[str]) -> dict[str, Column]:
    """The columns that no role took, those of flags, words and numbers."""
    flags = [n for n in done.others if plain(n.rpartition(".")[2]) in vocabulary("flags")]
    columns: dict[str, Column] = {}
    for name in [*unread, *flags]:
        values = texts(done.table.column(name))
        few = len(pc.unique(values)) <= _KINDS and (pc.max(pc.utf8_length(values)).as_py() or 0)
        if 0 < few <= _SHORT or numbers(done.table.column(name), amount) is not None:
            columns[name] = values
    return columns


def _verdicts(done: Assigned, scores: Mapping[str, pa.Array]) -> dict[str, Column]:
    """The further scores that by their names say what the score says: right or wrong."""
    names = [done.roles.get("score", ""), *scores]
    same = [n for n in names if plain(n.rpartition(".")[2]) in vocabulary("verdicts")]
    return {n: pa.chunked_array([scores[n]]) for n in same[1:]} if names[:1] == same[:1] else {}


def _maps(name: str, columns: Mapping[str, Column], n: int) -> dict[str, pa.Array]:
    """A column of maps, of each row its values in some columns; none where that is too much."""
    names = [*columns][: _MOST // max(n, 1)]
    if not names:
        return {}
    flat = pa.concat_arrays([part for key in names for part in columns[key].chunks])
    places = np.arange(len(names) * n).reshape(len(names), n).T.ravel()
    keys = pa.array(names).take(pa.array(np.tile(np.arange(len(names)), n)))
    offsets = pa.array(np.arange(0, len(places) + 1, len(names)), pa.int32())
    return {name: pa.MapArray.from_arrays(offsets, keys, flat.take(pa.array(places)))}


def _unread_models(done: Assigned, unread: Sequence[str]) -> Iterator[ReadingNote]:
    """Ask of columns of 0 and 1 beside columns of models: they may be other models' scores."""
    for name in unread if done.per_question else ():
        if is_right_or_wrong(done.table.column(name)):
            like = FAMILY.search(name.replace("_", "-")) is not None
            says = f"{name!r} holds 0 and 1 as the models' columns do and was not read"
            then = ": is it a model? `--models a,b,c` names all columns of models"
            yield ReadingNote("unread" if like else "question", says + then, about="arm")


def _unread_notes(free: Sequence[str]) -> list[ReadingNote]:
    """A note that names the columns of which nothing was read."""
    inside = Counter(name.rpartition(".")[0] for name in free)
    names = list(dict.fromkeys(
        f"{key}.*" if (key := name.rpartition(".")[0]) and inside[key] >= _TOGETHER else name
        for name in free
    ))  # fmt: skip
    if not names:
        return []
    shown = ", ".join(map(repr, names[:_NAMED]))
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return [told("not_read", some=shown + more)]


def _with_cached(done: Assigned, name: str, values: np.ndarray) -> np.ndarray:
    """Prompt tokens with those of the cache, where the counts beside them leave these out.

    What was read from the cache is noted.
    """
    before, dot, own = name.rpartition(".")
    inside = {n: n.removeprefix(before + dot) for n in done.table.column_names
              if n.startswith(before + dot) and not n.startswith("(")}  # fmt: skip
    done.used |= {
        n
        for n, k in inside.items()
        if k in APART or plain(k.rpartition(".")[2]) in vocabulary("cached")
    }
    whole = _whole_prompts(done, {n: k for n, k in inside.items() if k in APART or k == own})
    if whole is None:
        whole = values
    elif np.nansum(np.abs(whole - np.nan_to_num(values))) > 0:
        done.note("without_cached", name=name)
    read = next((n for n in inside if plain(n.rpartition(".")[2]) in vocabulary("cached")), None)
    cached = None if read is None else numbers(done.table.column(read), amount)
    if cached is not None:
        done.notes += cached_notes(np.nansum(cached), np.nansum(whole), int(np.sum(cached > 0)))
    return whole


def _whole_prompts(done: Assigned, keys: dict[str, str]) -> np.ndarray | None:
    """(rows,) prompt tokens of usage records of these columns; None of one column, or of words."""
    counts = [numbers(done.table.column(n), amount) for n in keys]
    columns = [count.tolist() for count in counts if count is not None]
    if len(columns) < max(2, len(counts)):
        return None
    said = ({k: v for k, v in zip(keys.values(), row, strict=True) if v == v}
            for row in zip(*columns, strict=True))  # fmt: skip
    return np.array([usage_of(item).prompt for item in said], float)  # None is NaN


def _is_time_of_day(done: Assigned, name: str, values: np.ndarray) -> bool:
    """Whether numbers are times since 1970; asks where seconds may be milliseconds."""
    there = values[~np.isnan(values)]
    middle = float(np.median(there)) if len(there) else 0.0
    if middle > _EPOCH:
        done.note("times_of_day", name=name)
        return True
    if middle >= _LONG and factor(name, "latency") == 1 and not _says_seconds(name):
        done.note("milliseconds", name=name, middle=middle)
    return False


def _says_seconds(name: str) -> bool:
    return snake_case(name).endswith(("seconds", "_s", "_sec", "_secs"))


def scored(
    done: Assigned, name: str, groups: Sequence[pa.ChunkedArray] = (), *, aloud: bool
) -> pa.Array | None:
    """A column of scores in [0, 1], null where missing.

    Args:
        groups: Arm and suite of each row: one of them may have another scale than the others.
        aloud: Note the scale, and rows outside it.
    """
    values = done.numbers(name)
    if values is None:
        return None
    label = done.roles.get("score", name) if name.startswith("(") else name
    scale = scale_of(values, label) or ScoreScale(0, 1, "")
    if scale.absent is not None:
        values = np.where(values == scale.absent, np.nan, values)
    result = (values - scale.low) / (scale.high - scale.low)
    groups = groups if scale.high > 1 else ()
    of_shares = [pair for which in groups for pair in _as_shares(values, scale, which)]
    for _, rows in of_shares:
        result[rows] = values[rows]
    if not aloud:
        return pa.array(result, from_pandas=True)
    for group, rows in of_shares:
        done.note("shares", len(rows), group=group, high=scale.high)
    if scale.words:
        note = "scale" if scale.sure else "unsure_scale"
        done.note(note, name=label.strip("()"), words=scale.words)
    if len(outside := np.flatnonzero((result < 0) | (result > 1))):
        at = done.table.column("(at)").take(pa.array(outside[:_SHOWN])).to_pylist()
        shown = ", ".join(f"{values[i]:g}" for i in outside[:_SHOWN])
        done.notes.append(told("outside", len(outside), "", tuple(at), some=shown))
    return pa.array(result, from_pandas=True)


#: Scores of a group from which its own scale is known, and share of them that are above 0.
_OWN_SCALE, _ABOVE = 10, 0.1


def _as_shares(
    values: np.ndarray, scale: ScoreScale, groups: pa.ChunkedArray
) -> Iterator[tuple[str, np.ndarray]]:
    """Groups whose scores all lie in [0, 1], many above 0, where others reach far beyond."""
    import pandas as pd

    scores = pd.DataFrame({"group": groups.to_pandas(), "score": values}).dropna()
    own = dict(iter(scores.groupby("group").score))
    if scale.low != 0 or len(own) < 2 or not scores.score.max() > max(1, scale.high / 5):
        return
    for name, mine in own.items():
        inside = len(mine) >= _OWN_SCALE and mine.between(0, 1).all()
        if inside and (mine > 0).mean() >= _ABOVE:
            yield str(name), mine.index.to_numpy()


def arms(table: pa.Table) -> list[str]:
    """Names of the arms, in order."""
    return sorted(pc.unique(table.column("arm").drop_null()).to_pylist())


# Reads anybody's results: a file, a folder or an archive becomes one row per answer.


class AggregatesOnly(SourceError):
    """The files hold figures of many questions each, and no answer to a question.

    Attributes:
        notes: What is odd in the figures.
    """

    notes: tuple[ReadingNote, ...] = ()


@dataclass(slots=True)
class _Found:
    """Groups of answers and, beside them, groups without any, API calls and stated figures."""

    sets: list[AnswerSet] = field(default_factory=list)
    refused: list[_Refused] = field(default_factory=list)
    calls: list[pa.Table] = field(default_factory=list)
    figures: set[StatedFigure] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Results:
    """Results in their normal form, and what a person has to know of how they were read.

    Attributes:
        table: One row per answer: `schemas.release.RECORDING`; suite, question, arm and sample
            are unique together.
        columns: Column of the normal form → what it was read from.
        notes: Choices, questions to a person, values that make no sense, and what was left out.
        layout: How the files were recognised.
    """

    table: pa.Table
    columns: dict[str, str]
    notes: tuple[ReadingNote, ...]
    layout: str = "table"

    @property
    def questions(self) -> list[str]:
        """What a person has to confirm."""
        return [note.says for note in self.notes if note.kind in ASKED]


def read_results(path: Path, mapping: Mapping[str, str] = MappingProxyType({})) -> Results:
    """A stranger's file, folder or archive of results as the normal form, by its structure alone.

    Read are JSON, JSON lines, CSV, TSV, Parquet, YAML and zip files: a row per answer, a column per
    model, maps of model and question, lists of ids per outcome, one file per answer; model and
    suite from a column, a key or the path; and the logs of Inspect, lm-evaluation-harness and HELM.

    Args:
        path: File or folder, as it is.
        mapping: Role → column, of `parse_map`, where a person says what is what; the rest is
            guessed.

    Raises:
        AggregatesOnly: the files hold figures of many questions each.
        SourceError, Unsafe: nothing can be read, or a file is damaged or too large.
    """
    with named_errors(
        path, "the results hold a value that cannot be read",
        "name one file after the other to find it",
    ):  # fmt: skip
        return _results(path, mapping)


def _results(path: Path, mapping: Mapping[str, str]) -> Results:
    paths, others = files_of(path)
    harness = harness_of(paths)
    if harness is not None and not mapping:
        return read_harness(*harness, path, len(paths))
    found = _Found()
    for group in groups_of(documents(paths, path)):
        _read(group, found, mapping)
    if not found.sets:
        raise _refusal(found.refused, path)
    s = "s" if len(others) != 1 else ""
    notes = [told("other_files", n=len(others), s=s)] if others else []
    notes += [*_unread_rows(found.refused), *path_notes(paths, path)]
    # Whole documents are no separate records where sets inside are answers.
    inner = {n for s in found.sets if s.group.trail != DOCUMENT for n in s.group.files}
    table, columns, more = merged(
        [s for s in found.sets if s.group.trail != DOCUMENT or not inner & {*s.group.files}]
    )
    if options := as_map({**columns, **mapping}):
        notes.insert(0, told("read_as", options=options))
    stated = list(stated_notes(found.figures, table))
    _refuse_one_kind(table, stated, path)
    calls = call_notes(found.calls, arms(table))
    return Results(table, columns, (*notes, *more, *calls, *stated))


def _refuse_one_kind(table: pa.Table, stated: Sequence[ReadingNote], path: Path) -> None:
    """Refuse rows that are all wrong, or all right, where the files state other accuracies."""
    scores = pc.unique(table.column("score").drop_null()).to_pylist()
    off = next((note for note in stated if "accuracy" in note.says), None)
    if off is not None and len(scores) == 1 and scores[0] in (0, 1):
        kind = "right" if scores[0] else "wrong"
        raise refusal("one_kind", path, kind=kind, says=off.says)


@dataclass(frozen=True, slots=True)
class _Refused:
    """A group that holds no answers, and why."""

    group: Group
    why: str
    aggregate: bool = False
    notes: tuple[ReadingNote, ...] = ()


def _read(group: Group, found: _Found, mapping: Mapping[str, str]) -> None:
    """Add a group to the sets of answers, or to those that hold none."""
    if group.trail == DOCUMENT and len(group.parts) < 2:
        return
    table, melt_notes = unmelted(group.table())
    around = {name for name in group.around if not name.startswith("(key")}
    # What a person names is taken at their word.
    why, aggregate = "" if mapping else why_pairs(table), False
    notes: tuple[ReadingNote, ...] = ()
    try:
        done = Assigned(table) if why else assign(table, around, mapping)
    except SourceError as error:
        done, why = Assigned(table), error.what
    done.notes += (*group.notes, *melt_notes)
    if not why and not mapping and (why := why_aggregate(done)):
        found.figures |= figures_of(done, [n for n in done.table.column_names if n[0] != "("])
        aggregate, notes = True, tuple(_odd_figures(group, done.roles.get("arm")))
    elif not why and (why := _lacking(done, group)):
        # A message inside another record belongs to that.
        if len(group.trail) <= 1 and (calls := calls_of(done)) is not None:
            found.calls.append(calls)
    elif not why:
        why = _add_set(group, done, found, around)
    if why:
        found.refused.append(_Refused(group, why, aggregate, notes))


def _add_set(group: Group, done: Assigned, found: _Found, around: set[str]) -> str:
    """Add the normal form of a group to the sets of answers; why not, where it holds none."""
    normal_form = normal(done)
    found.figures |= figures_of(done, sorted(around - {*done.roles.values()}))
    if group.trail[-1:] == ("(lists of ids)",):
        normal_form = _with_absent(done, normal_form)
    if normal_form is None:
        return "lists name who succeeded, and not which questions there were"
    if all(normal_form.column(n).null_count == len(normal_form) for n in ("score", "text")):
        return "no row has a score or an answer"
    found.sets.append(AnswerSet(group, done, normal_form))
    return ""


#: Rows in the mean of a file from which those of a group are worth a word.
_FEW = 5


def _unread_rows(refused: Sequence[_Refused]) -> Iterator[ReadingNote]:
    """Rows of files that are beside the answers and were not read, and why."""
    for item in refused:
        group = item.group
        if group.trail in ((), ("(list)",)) and group.rows >= _FEW * len(group.files):
            files = ", ".join(list(dict.fromkeys(group.files))[:2])
            yield told("unread_rows", group.rows, files=files, why=item.why)


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


def _refusal(refused: list[_Refused], path: Path) -> SourceError:
    """Why nothing was read: `AggregatesOnly` where figures of many questions were found."""
    aggregates = [item for item in refused if item.aggregate]
    if aggregates:
        most = max(aggregates, key=lambda item: item.group.rows)
        said = refusal("aggregates", f"{path} ({most.group.files[0]})", why=most.why)
        error = AggregatesOnly(said.what, where=said.where, next_step=said.next_step)
        error.notes = tuple(dict.fromkeys(note for entry in aggregates for note in entry.notes))
        return error
    most_rows = max(
        refused, key=lambda entry: (len(entry.group.trail) <= 1, entry.group.rows), default=None
    )
    why, where, wide = "", str(path), ""
    if most_rows is not None:
        table = most_rows.group.table()
        scores = [n for n in table.column_names if n[0] != "(" and is_score(table, n)]
        line = quoted(",".join(scores))
        wide = f"; or, of a column for each model: --models {line}" if len(scores) > 1 else ""
        columns = ", ".join(sorted(most_rows.group.columns)[:20])
        why = f": {most_rows.why}"
        where = f"{path} ({most_rows.group.files[0]}; columns {columns})"
    return refusal("no_answers_found", where, why=why, wide=wide)


__all__ = ["ROLES", "AggregatesOnly", "ReadingNote", "Results", "as_map", "read_results"]
