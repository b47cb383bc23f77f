"""Labels against verdicts: the recipe's policy decides once more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.label.error_rates import label_errors
from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import FAMILIES
from routeyard.pipelines.verify.evidence import (
    Evidence,
    Results,
    believed,
    contradiction,
    not_run,
    proved,
    values,
)
from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.statuses import NO_RULE

# Verdicts of rules against texts and references: the scorers read the answers once more.

_VERDICTS_KEY = ("query_id", "model_id", "sample")
_READ = ("outcome", "score", "extracted", "span_start", "span_end", "conflict")
#: Scorers that run programs of a stranger, in the jail: only when everything is asked for.
_PROGRAMS = frozenset({"code"})
#: Scorers that need weights or data which this machine may lack.
_WEIGHTS = frozenset({"bartscore", "meteor"})


def verdicts_of_texts(evidence: Evidence) -> Results:
    """Contradictions between verdicts and what today's scorers read in the same texts."""
    if not evidence.rows("verdicts"):
        return
    filed = evidence.table("verdicts", ["scorer", "scorer_version"])
    yield from _by_others(filed)
    sample = evidence.sampled.table if evidence.sampled is not None else None
    if sample is None:
        return
    queries = evidence.table("queries", list(_QUESTION))
    questions, sample, unread = _readable(evidence, queries, sample)
    yield from unread
    if not sample.num_rows:
        return
    try:
        expected = file_verdicts(questions, sample)
    except RouteyardError as error:
        yield not_run("verdicts", "verdicts against texts", f"scorers cannot run: {error.what}")
        return
    yield from _compared(evidence, sample, expected)


_QUESTION = ("query_id", "question", "prompt", "choices", "references", "scorer", "metadata",
             "source", "source_id", "task", "domain")  # fmt: skip


def _by_others(filed: pa.Table) -> Results:
    """What no computation here can repeat: judges, people, scorers of other versions."""
    counts, others = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in (
        filed.group_by(["scorer", "scorer_version"]).aggregate([([], "count_all")]).to_pylist()
    ):
        name, version = row["scorer"], row["scorer_version"]
        if name.startswith(FAMILIES):
            counts[name, "of a model or a person"] += row["count_all"]
        elif name not in SCORERS.targets:
            counts[name, "which is not installed here"] += row["count_all"]
        elif version != SCORERS.get(name).version:
            today = SCORERS.get(name).version
            says = f"they are by version {version}; this code has version {today}"
            others[name, says] += row["count_all"]
    for (name, why), count in sorted(counts.items()):
        yield believed("verdicts", f"{count:,} verdicts of {name!r}, {why}")
    for (name, why), count in sorted(others.items()):
        yield not_run("verdicts", f"{count:,} verdicts of {name!r} against texts", why)


def _readable(
    evidence: Evidence, queries: pa.Table, sample: pa.Table
) -> tuple[pa.Table, pa.Table, list[Any]]:
    """Questions and answers whose text is there and whose scorer may run here."""
    told: list[Any] = []
    hidden = pc.is_in(queries.column("query_id"), value_set=evidence.withheld)
    count = pc.sum(hidden).as_py() or 0
    if count:
        check = f"verdicts on {count:,} questions against texts"
        told.append(not_run("verdicts", check, "their text is withheld"))
    queries = queries.filter(pc.invert(hidden))
    named = set(pc.unique(queries.column("scorer")).to_pylist())
    left = {name for name in named if name in _PROGRAMS and not evidence.full}
    left |= named & _WEIGHTS
    left |= {n for n in named if n != NO_RULE and n not in SCORERS.targets}
    for one in sorted(left):
        why = (
            "`--full` runs the programs"
            if one in _PROGRAMS
            else "they need weights or data"
            if one in _WEIGHTS
            else "that scorer is not installed here"
        )
        told.append(not_run("verdicts", f"verdicts of {one!r} against texts", why))
    queries = queries.filter(
        pc.invert(pc.is_in(queries.column("scorer"), pa.array(left, pa.string())))
    )
    known = pc.is_in(
        sample.column("query_id"), value_set=queries.column("query_id").combine_chunks()
    )
    real = pc.is_in(sample.column("model_id"), value_set=evidence.real)
    return queries, sample.filter(pc.and_(known, real)), told


def _compared(evidence: Evidence, sample: pa.Table, expected: pa.Table) -> Results:
    """Each expected verdict against the stored one of the same scorer and version."""
    stored = _of(evidence, sample)
    there = {_key(row): row for row in stored}
    others = {key[:4] for key in there}  # a verdict of another version is in its place
    wrong, absent, same, reworded = [], [], Counter[str](), []
    for row in expected.select(
        [*_VERDICTS_KEY, "scorer", "scorer_version", *_READ, "reason"]
    ).to_pylist():
        found = there.get(_key(row))
        if found is None:
            if _key(row)[:4] not in others:
                absent.append(f"{_verdicts_name(row)} has none of {row['scorer']!r}")
            continue
        if any(found[name] != row[name] for name in _READ):
            differ = [name for name in _READ if found[name] != row[name]]
            said = ", ".join(f"{name} {_short(found[name])}" for name in differ)
            good = ", ".join(f"{name} {_short(row[name])}" for name in differ)
            wrong.append(f"{_verdicts_name(row)} ({row['scorer']}) has {said}, expected {good}")
        else:
            same[row["scorer"]] += 1
            reworded += _reworded(found, row)
    of = expected.num_rows
    if wrong:
        what = "verdicts that were computed again differ from what their scorer reads in the text"
        yield contradiction("verdicts", len(wrong), of, what, wrong)
    if absent:
        yield contradiction("verdicts", len(absent), of, "answers have no verdict", absent)
    yield from _reasons(evidence, reworded, of)
    covers = [*_READ, *([] if reworded or _PROGRAMS & set(same) else ["reason"])]
    yield from _same(evidence, sample.num_rows, same, covers)


def _same(evidence: Evidence, rows: int, same: Counter[str], covers: list[str]) -> Results:
    """Verdicts of each scorer that are what it reads, and of how many answers."""
    how = "all" if evidence.full else f"a sample of {rows:,} answers"
    whole = evidence.full or rows >= evidence.rows("responses")
    for name, count in sorted(same.items()):
        says = f"{count:,} verdicts of {name!r} follow from text and reference ({how}"
        says += ")" if whole else f", seed {evidence.seed})"
        yield proved("verdicts", says, *covers)


def _reasons(evidence: Evidence, reworded: list[str], of: int) -> Results:
    if reworded and evidence.same_code:
        what = "reasons of verdicts differ from what their scorer says"
        yield contradiction("verdicts", len(reworded), of, what, reworded)


def _reworded(found: dict[str, Any], row: dict[str, Any]) -> list[str]:
    """A stored reason that is not the scorer's; what programs print may differ each time."""
    if found["reason"] == row["reason"] or row["scorer"] in _PROGRAMS:
        return []
    said, good = _short(found["reason"]), _short(row["reason"])
    return [f"{_verdicts_name(row)} ({row['scorer']}) has {said}, expected {good}"]


def _of(evidence: Evidence, sample: pa.Table) -> list[dict[str, Any]]:
    """The stored verdicts on the sampled answers."""
    columns = [*_VERDICTS_KEY, "scorer", "scorer_version", *_READ, "reason"]
    verdicts = evidence.tables["verdicts"]
    if isinstance(verdicts, pa.Table):
        return list(_among(verdicts, columns, sample).to_pylist())
    found = []
    with pq.ParquetFile(verdicts.path) as file:
        for group in range(file.num_row_groups):
            part = file.read_row_group(group, columns=columns)
            found += _among(part, columns, sample).to_pylist()
    return found


def _among(verdicts: pa.Table, columns: list[str], sample: pa.Table) -> pa.Table:
    """Verdicts on pairs of question and model that the sample holds."""
    queries = sample.column("query_id").unique()
    models = sample.column("model_id").unique()

    def pairs(table: pa.Table) -> Any:
        query = pc.fill_null(pc.index_in(table.column("query_id"), queries), -1).to_numpy()
        model = pc.fill_null(pc.index_in(table.column("model_id"), models), -1).to_numpy()
        return np.where((query < 0) | (model < 0), -1, query.astype(np.int64) * len(models) + model)

    wanted = np.isin(pairs(verdicts), pairs(sample))
    return verdicts.select(columns).filter(pa.array(wanted))


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["query_id"], row["model_id"], row["sample"], row["scorer"], row["scorer_version"])


def _verdicts_name(row: dict[str, Any]) -> str:
    return f"{row['query_id']}|{row['model_id']}|{row['sample']}"


def _short(value: Any) -> str:
    return repr(value) if not isinstance(value, str) else repr(value[:60])


_LABELS_KEY = ("query_id", "model_id")
_DECIDED = ("score", "correct", "decided_by", "contested", "n_samples")
#: Scores are means of floats: so far apart two of them may be.
_CLOSE = 1e-9
#: `decided_by` of an injected model.
INJECTED = "pseudo_specialist"


def labels_of_verdicts(evidence: Evidence) -> Results:
    """Contradictions between labels and what the policy makes of the verdicts."""
    if not evidence.has("queries", "labels"):
        return
    labels = evidence.table("labels", [*_LABELS_KEY, *_DECIDED])
    policy = evidence.label
    if policy is None:
        check = "labels against verdicts by the recipe's policy"
        yield not_run("labels", check, evidence.unread("label"))
        return
    if not evidence.has("responses", "verdicts") or (
        not evidence.built and not evidence.rows("verdicts")
    ):
        if evidence.built and labels.num_rows:
            yield contradiction("labels", labels.num_rows, labels.num_rows, "labels have no "
                                "response and no verdict to follow from", [])  # fmt: skip
            return
        if labels.num_rows:
            why = f"{labels.num_rows:,} labels come without verdicts"
            yield not_run("labels", "labels against verdicts by the recipe's policy", why)
        return
    real = pc.is_in(labels.column("model_id"), value_set=evidence.real)
    yield from _injected(evidence, labels.filter(pc.invert(real)))
    stored = labels.filter(real)
    expected = _decided(evidence, policy)
    if found := _missing(stored, expected, complete=evidence.built):
        yield from found
        return
    if expected.num_rows > stored.num_rows:
        expected = expected.join(
            stored.select(_LABELS_KEY), list(_LABELS_KEY), join_type="left semi"
        )
        expected = expected.sort_by([("model_id", "ascending"), ("query_id", "ascending")])
    bad, examples = _different(stored, _as_earlier(stored, expected))
    if bad:
        what = "labels differ from what the recipe's policy makes of their verdicts"
        yield contradiction("labels", bad, stored.num_rows, what, examples)
    elif stored.num_rows:
        says = f"{stored.num_rows:,} labels follow from the verdicts by the recipe's policy"
        covers = _DECIDED if stored.num_rows == labels.num_rows else ()
        yield proved("labels", says, *covers)


def _as_earlier(stored: pa.Table, expected: pa.Table) -> pa.Table:
    """What the policy makes; where all labels of exactly half right samples are stored as right,
    they are: so the first releases were made."""
    several = pc.greater(expected.column("n_samples"), 1)
    wrong = pc.invert(pc.fill_null(expected.column("correct"), True))
    halves = pc.and_(pc.and_(pc.equal(expected.column("score"), 0.5), several), wrong)
    halves = pc.fill_null(halves, False)
    told = stored.column("correct").filter(halves)
    if not len(told) or not pc.all(pc.fill_null(told, False)).as_py():
        return expected
    at = expected.schema.get_field_index("correct")
    return expected.set_column(at, "correct", pc.or_(expected.column("correct"), halves))


def _decided(evidence: Evidence, policy: Any) -> pa.Table:
    responses = evidence.table("responses", [*_LABELS_KEY, "sample", "status"])
    responses = responses.filter(pc.is_in(responses.column("model_id"), value_set=evidence.real))
    columns = ["scorer", "scorer_version", "outcome", "score", "conflict"]
    labels = decide(
        evidence.table("queries", ["query_id", "task", "scorer"]),
        responses,
        evidence.table("verdicts", [*_LABELS_KEY, "sample", *columns]),
        policy=policy,
    )
    return labels.sort_by([("model_id", "ascending"), ("query_id", "ascending")])


def _injected(evidence: Evidence, labels: pa.Table) -> Results:
    """Labels of injected models have no verdicts: `rules_again` makes them again."""
    own = pc.equal(labels.column("decided_by"), INJECTED)
    bad = labels.filter(pc.invert(pc.fill_null(own, False)))
    if bad.num_rows:
        examples = [
            f"{_labels_name(row)} is decided by {row['decided_by']!r}" for row in _first(bad)
        ]
        what = f"labels of injected models are not decided by {INJECTED!r}"
        yield contradiction("labels", bad.num_rows, labels.num_rows, what, examples)
    elif labels.num_rows and "pseudo_specialists" not in evidence.applied:
        yield believed("labels", f"{labels.num_rows:,} labels of injected models, drawn by a rule")


def _missing(stored: pa.Table, expected: pa.Table, *, complete: bool) -> list[Any]:
    """Pairs that only one of the two has.

    Args:
        complete: A build made the labels: every pair with a response has one.
    """
    if stored.select(_LABELS_KEY).equals(expected.select(_LABELS_KEY)):
        return []
    found = []
    for one, other, what in (
        (stored, expected, "labels are of pairs without a response"),
        (expected, stored, "pairs have a response and no label"),
    )[: 2 if complete else 1]:
        alone = one.select(_LABELS_KEY).join(
            other.select(_LABELS_KEY), list(_LABELS_KEY), join_type="left anti"
        )
        if alone.num_rows:
            examples = [_labels_name(row) for row in _first(alone)]
            found.append(contradiction("labels", alone.num_rows, one.num_rows, what, examples))
    return found


def _different(stored: pa.Table, expected: pa.Table) -> tuple[int, list[str]]:
    differ = None
    for name in _DECIDED:
        a, b = stored.column(name), expected.column(name)
        if pa.types.is_floating(a.type):
            same = pc.less_equal(pc.abs(pc.subtract(a, b)), _CLOSE)
        else:
            same = pc.equal(a, b)
        same = pc.or_kleene(pc.fill_null(same, False), pc.and_(pc.is_null(a), pc.is_null(b)))
        differ = pc.invert(same) if differ is None else pc.or_(differ, pc.invert(same))
    bad = stored.filter(differ)
    if not bad.num_rows:
        return 0, []
    examples = []
    for row, right in zip(_first(bad), _first(expected.filter(differ)), strict=True):
        wrong = {name: row[name] for name in _DECIDED if row[name] != right[name]}
        said = ", ".join(f"{name} {value!r}" for name, value in wrong.items())
        good = ", ".join(f"{name} {right[name]!r}" for name in wrong)
        examples.append(f"{_labels_name(row)} has {said}, expected {good}")
    return bad.num_rows, examples


def _first(table: pa.Table) -> list[dict[str, Any]]:
    return list(table.slice(0, 3).to_pylist())


def _labels_name(row: dict[str, Any]) -> str:
    return f"{row['query_id']}|{row['model_id']}"


#: Answers beyond which the estimate of wrong labels is only made again with `--full`.
_MOST = 100_000


def errors_of_labels(evidence: Evidence) -> Results:
    """The estimate of wrong labels against answers and labels: made once more."""
    told, check = evidence.figures("label_errors"), "the estimate of wrong labels"
    if not told:
        if evidence.built:
            yield not_run("figures.label_errors", check, "the manifest holds none")
        return
    why = evidence.other_code if not evidence.same_code else ""
    if not why and len(evidence.withheld):
        why = "texts are withheld"
    if not why and not evidence.full and evidence.rows("responses") > _MOST:
        why = f"of more than {_MOST:,} answers only `--full` makes it"
    if why:
        yield not_run("figures.label_errors", check, why)
        return
    fresh = label_errors(
        evidence.table("queries", ["query_id", "scorer", "references", "choices"]),
        evidence.table("responses", ["query_id", "model_id", "text"]),
        evidence.table("labels", ["query_id", "model_id", "decided_by", "correct"]),
    )
    names = sorted(told.keys() | fresh.keys())
    wrong = list(values((name, told.get(name), fresh.get(name)) for name in names))
    if wrong:
        what = "figures differ from what answers, labels and measured error rates give"
        yield contradiction("figures.label_errors", len(wrong), len(names), what, wrong)
    else:
        says = "follows from answers, labels and the error rates that this code has measured"
        covers = (f"figures.label_errors.{name}" for name in names)
        yield proved("figures.label_errors", f"{check} {says}", *covers)
