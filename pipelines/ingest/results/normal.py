"""A group of records with known roles as the normal form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.keys import keyed
from routeyard.pipelines.ingest.results.scores import words_of_scores
from routeyard.pipelines.ingest.results.values import (
    CACHED,
    ReadingNote,
    ScoreScale,
    amount,
    cached_notes,
    factor,
    numbers,
    plain,
    scale_of,
    snake_case,
    texts,
    unknown_words,
)
from routeyard.pipelines.usage import APART, usage_of
from routeyard.schemas.recording import recording

#: Texts that are taken as they are: role → column of the normal form.
_TEXTS = {"text": "text", "prompt": "prompt", "reference": "reference", "status": "status",
          "error": "error", "served_model": "served_model", "split": "split"}  # fmt: skip
_NUMBERS = {"cost": "cost_usd", "prompt_tokens": "prompt_tokens",
            "completion_tokens": "completion_tokens", "latency": "latency_s"}  # fmt: skip
_SHOWN = 3
#: Seconds that no answer takes, and seconds from which a number may be of milliseconds.
_EPOCH, _LONG = 1e8, 600.0


def named_rows(done: Assigned) -> None:
    """Leave out rows that name no model or no question, and note how many."""
    keep = None
    for role in ("arm", "question"):
        if role in done.roles:
            there = done.table.column(done.roles[role]).is_valid()
            if (missing := there.length() - pc.sum(there).as_py()) > 0:
                done.note("left_out", f"{missing:,} rows name no {role}", role, missing)
                keep = there if keep is None else pc.and_(keep, there)
    if keep is not None:
        done.table = done.table.filter(keep)


def with_missing(table: pa.Table, totals: dict[str, int]) -> tuple[pa.Table, list[ReadingNote]]:
    """The table with a row for each question that an arm's lists of ids do not name.

    Args:
        totals: Arm → number of questions that its file counts, of which it lists only some: the
            others count as wrong there. They are named where the lists of all arms name as many.
    """
    notes, rows = [], []
    keys = table.select(["arm", "question", "suite"]).to_pylist()
    every = {row["question"]: row["suite"] for row in keys}
    for arm in sorted(totals):
        have = {row["question"] for row in keys if row["arm"] == arm}
        missing = totals[arm] - len(have)
        if missing <= 0:
            continue
        absent = sorted(every.keys() - have) if len(every) == totals[arm] else []
        says = f"{arm} lists {len(have):,} of the {totals[arm]:,} questions that it counts"
        if absent:
            says += "; the others count as wrong, with the status `unanswered`"
            rows += [
                {"arm": arm, "question": q, "suite": every[q], "sample": 0, "score": 0.0,
                 "status": "unanswered", "at": f"{arm}: in no list"}
                for q in absent
            ]  # fmt: skip
        else:
            says += " and the others are not named: its share of successes is of those listed"
        notes.append(ReadingNote("status", says, missing, (), arm))
    if rows:
        table = pa.concat_tables([table, pa.Table.from_pylist(rows, schema=table.schema)])
    return table, notes


def with_unlisted(table: pa.Table) -> tuple[pa.Table, list[ReadingNote]]:
    """The table of lists of successes with a row of score 0 for each question that others solved.

    Questions that no arm solved are in no list, so that all accuracies are too high.
    """
    keys = table.select(["arm", "question", "suite"]).to_pylist()
    every = {row["question"]: row["suite"] for row in keys}
    have = {(row["arm"], row["question"]) for row in keys}
    rows = [
        {"arm": arm, "question": q, "suite": every[q], "sample": 0, "score": 0.0,
         "at": f"{arm}: in no list"}
        for arm in arms(table) for q in sorted(every) if (arm, q) not in have
    ]  # fmt: skip
    says = (
        f"the lists name who succeeded, and not which questions there were: of the {len(every):,} "
        "that any arm solved or reports, those in no list of an arm count as wrong; questions that "
        "nobody solved are missing, and every accuracy is too high"
    )
    table = pa.concat_tables([table, pa.Table.from_pylist(rows, schema=table.schema)])
    return table, [ReadingNote("status", says, len(rows), (), "score")]


def normal(done: Assigned, around: set[str]) -> tuple[pa.Table, dict[str, pa.Array]]:
    """The normal form of a group, and its further scores by name.

    Scores of percent, points and words become 1 for right and 0 for wrong; one outside stays as it
    is and is noted. Costs become USD and times seconds where a name states another unit.
    """
    named_rows(done)
    columns: dict[str, pa.Array | pa.ChunkedArray] = dict(keyed(done, around))
    table = done.table
    columns["at"] = table.column("(at)")
    if "score" in done.roles and "status" not in done.roles:
        columns |= words_of_scores(done)
    for role, name in _TEXTS.items():
        if role in done.roles:
            columns[name] = texts(table.column(done.roles[role]))
    for role, name in _NUMBERS.items():
        if role in done.roles:
            source = done.roles[role]
            values = numbers(table.column(source), amount)
            if values is None:
                continue
            if role == "prompt_tokens":
                values = _with_cached(done, source, values)
            if role == "latency" and _is_time_of_day(done, source, values):
                continue
            by = factor(source, role)
            if by != 1:
                done.note("choice", f"{source!r} is multiplied by {by:g}", name)
            columns[name] = pa.array(values * by, from_pandas=True)
    others: dict[str, pa.Array] = {}
    if "score" in done.roles:
        groups = [columns["arm"], columns["suite"]]
        score = scored(done, done.roles["score"], groups, aloud=True)
        if score is None:
            del done.roles["score"]
        else:
            columns["score"] = score
        for name in done.others:
            if (more := scored(done, name, groups, aloud=False)) is not None:
                others[name] = more
    found = recording(columns)
    done.notes += unread_columns(done, around)
    if "status" not in done.roles and "error" not in done.roles:
        _unread_status(done, around, found)
    for word, rows in unknown_words(found).items():
        done.note(
            "question",
            f"{rows:,} empty answers end as {word!r}, which is no known status: are they missing? "
            f"Write `statuses: {{{word}: error}}` (or ok, refused, …) beside their `fields`",
            "status", rows,
        )  # fmt: skip
    for word, rows in unknown_words(found, wrong=True).items():
        done.note(
            "question",
            f"{rows:,} empty answers of score 0 end as {word!r}, which is no known status: are "
            "they missing? They count as wrong, as their source counts them",
            "status", rows,
        )  # fmt: skip
    return found, others


#: Different words of a column of statuses, at most.
_WORDS_OF_STATUS = 40
#: Columns that were not read which a note names, and those under one key that it names as one.
_NAMED, _TOGETHER = 30, 3


def _unread_status(done: Assigned, around: set[str], found: pa.Table) -> None:
    """Ask of a column that nobody read and that tells all empty answers from the others."""
    text = pc.utf8_trim_whitespace(found.column("text"))
    blank = pc.equal(pc.fill_null(text, ""), "").combine_chunks()
    number = pc.sum(blank).as_py() or 0
    if not 0 < number < len(blank):
        return
    read = {*done.roles.values(), *done.others, *done.used, *around}
    for name in (n for n in done.table.column_names if n not in read and n[:1] != "("):
        words = texts(done.table.column(name)).combine_chunks()
        beside = words.filter(blank)
        seen = pc.unique(beside).to_pylist()
        others = pc.unique(words.filter(pc.invert(blank))).to_pylist()
        short = all(one and len(one) <= 80 for one in seen)
        few = len(seen) + len(others) <= min(_WORDS_OF_STATUS, len(blank) // 2)
        if short and few and not {*seen} & {*others}:
            done.note(
                "question",
                f"{name!r} says {', '.join(map(repr, sorted(seen)[:3]))} of the {number:,} empty "
                "answers, and of no other: does it say that they are missing? It was not read: "
                "call it status",
                "status", number,
            )  # fmt: skip


def unread_columns(done: Assigned, around: set[str]) -> list[ReadingNote]:
    """A note that names the columns that hold something and of which nothing was read."""
    read = {*done.roles.values(), *done.others, *done.used, *around, done.of_status}
    free = [n for n in done.table.column_names if n not in read and not n.startswith("(")]
    told = " ".join(note.says for note in done.notes if note.about != "arm")
    free = [n for n in free if done.table.column(n).null_count < done.table.num_rows
            and repr(n) not in told]  # fmt: skip
    inside = Counter(name.rpartition(".")[0] for name in free)
    names = list(dict.fromkeys(
        f"{key}.*" if (key := name.rpartition(".")[0]) and inside[key] >= _TOGETHER else name
        for name in free
    ))  # fmt: skip
    if not names:
        return []
    shown = ", ".join(map(repr, names[:_NAMED]))
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return [ReadingNote("columns", f"columns that were not read: {shown}{more}")]


def _with_cached(done: Assigned, name: str, values: np.ndarray) -> np.ndarray:
    """Prompt tokens with those of the cache, where the counts beside them leave these out.

    What was read from the cache is noted.
    """
    before, dot, own = name.rpartition(".")
    inside = {n: n.removeprefix(before + dot) for n in done.table.column_names
              if n.startswith(before + dot) and not n.startswith("(")}  # fmt: skip
    done.used |= {
        n for n, k in inside.items() if k in APART or plain(k.rpartition(".")[2]) in CACHED
    }
    whole = _whole_prompts(done, {n: k for n, k in inside.items() if k in APART or k == own})
    if whole is None:
        whole = values
    elif np.nansum(np.abs(whole - np.nan_to_num(values))) > 0:
        says = f"{name!r} leaves out what the cache had, which is added to it"
        done.note("choice", says, "prompt_tokens")
    read = next((n for n in inside if plain(n.rpartition(".")[2]) in CACHED), None)
    cached = None if read is None else numbers(done.table.column(read), amount)
    if cached is not None:
        done.notes += cached_notes(np.nansum(cached), np.nansum(whole), int(np.sum(cached > 0)))
    return whole


def _whole_prompts(done: Assigned, keys: dict[str, str]) -> np.ndarray | None:
    """(rows,) prompt tokens of usage records of these columns; None of one column, or of words."""
    counts = [numbers(done.table.column(n), amount) for n in keys]
    columns = [one.tolist() for one in counts if one is not None]
    if len(columns) < max(2, len(counts)):
        return None
    said = ({k: v for k, v in zip(keys.values(), row, strict=True) if v == v}
            for row in zip(*columns, strict=True))  # fmt: skip
    return np.array([usage_of(one).prompt for one in said], float)  # None is NaN


def _is_time_of_day(done: Assigned, name: str, values: np.ndarray) -> bool:
    """Whether numbers are times since 1970; asks where seconds may be milliseconds."""
    there = values[~np.isnan(values)]
    middle = float(np.median(there)) if len(there) else 0.0
    if middle > _EPOCH:
        done.note("left_out", f"{name!r} holds times of day, not how long an answer took")
        return True
    if middle >= _LONG and factor(name, "latency") == 1 and not _says_seconds(name):
        done.note(
            "question",
            f"{name!r} has a median of {middle:,.0f}: seconds, or milliseconds? It is taken for "
            "seconds",
            "latency",
        )
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
    values = numbers(done.table.column(name))
    if values is None:
        return None
    label = done.roles.get("score", name) if name.startswith("(") else name
    scale = scale_of(values, label) or ScoreScale(0, 1, "")
    if scale.absent is not None:
        values = np.where(values == scale.absent, np.nan, values)
    found = (values - scale.low) / (scale.high - scale.low)
    if scale.low == 0 and scale.high > 1:
        for which in groups:
            for group, rows in _as_shares(values, scale.high, which):
                found[rows] = values[rows]
                if aloud:
                    done.note(
                        "question",
                        f"scores of {group!r} lie in 0 to 1 and those of others in 0 to "
                        f"{scale.high:g}: they are read as shares",
                        "score", len(rows),
                    )  # fmt: skip
    if aloud:
        if scale.words:
            done.note(
                "choice" if scale.sure else "question",
                f"{label.strip('()')!r} is read as {scale.words}",
                "score",
            )
        outside = np.flatnonzero((found < 0) | (found > 1))
        if len(outside):
            at = done.table.column("(at)").take(pa.array(outside[:_SHOWN])).to_pylist()
            done.notes.append(
                ReadingNote(
                    "value",
                    f"{len(outside):,} scores are not in [0, 1] "
                    f"({', '.join(f'{values[i]:g}' for i in outside[:_SHOWN])})",
                    len(outside), tuple(at), "score",
                )
            )  # fmt: skip
    return pa.array(found, from_pandas=True)


#: Scores of a group from which its own scale is known, and share of them that are above 0.
_OWN_SCALE, _ABOVE = 10, 0.1


def _as_shares(
    values: np.ndarray, high: float, groups: pa.ChunkedArray
) -> Iterator[tuple[str, np.ndarray]]:
    """Groups whose scores all lie in [0, 1], many above 0, where others reach far beyond."""
    coded = groups.combine_chunks().dictionary_encode()
    code = np.asarray(coded.indices.fill_null(-1))
    names = coded.dictionary.to_pylist()
    own = [np.flatnonzero((code == k) & ~np.isnan(values)) for k in range(len(names))]
    if len(names) < 2 or not any(len(rows) and values[rows].max() > high / 5 for rows in own):
        return
    for name, rows in zip(names, own, strict=True):
        inside = len(rows) >= _OWN_SCALE and 0 <= values[rows].min() <= values[rows].max() <= 1
        if inside and np.mean(values[rows] > 0) >= _ABOVE:
            yield name, rows


def arms(table: pa.Table) -> list[str]:
    """Names of the arms, in order."""
    return sorted(pc.unique(table.column("arm").drop_null()).to_pylist())
