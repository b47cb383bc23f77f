"""Labels against verdicts: the recipe's policy decides once more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.sql import runner
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
    rows,
    values,
)
from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.statuses import NO_RULE

# Verdicts of rules against texts and references: the scorers read the answers once more.

_VERDICTS_KEY = ("query_id", "model_id", "sample", "scorer", "scorer_version")
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
    readable: list[Any] = []
    hidden = pc.is_in(queries.column("query_id"), value_set=evidence.withheld)
    count = pc.sum(hidden).as_py() or 0
    if count:
        check = f"verdicts on {count:,} questions against texts"
        readable.append(not_run("verdicts", check, "their text is withheld"))
    queries = queries.filter(pc.invert(hidden))
    left = {}
    for name in sorted(set(pc.unique(queries.column("scorer")).to_pylist())):
        if name in _PROGRAMS and not evidence.full:
            left[name] = "`--full` runs the programs"
        elif name in _WEIGHTS:
            left[name] = "they need weights or data"
        elif name != NO_RULE and name not in SCORERS.targets:
            left[name] = "that scorer is not installed here"
    readable += [
        not_run("verdicts", f"verdicts of {name!r} against texts", why)
        for name, why in left.items()
    ]
    others = pc.is_in(queries.column("scorer"), pa.array(left, pa.string()))
    queries = queries.filter(pc.invert(others))
    known = pc.is_in(
        sample.column("query_id"), value_set=queries.column("query_id").combine_chunks()
    )
    real = pc.is_in(sample.column("model_id"), value_set=evidence.real)
    return queries, sample.filter(pc.and_(known, real)), readable


def _compared(evidence: Evidence, sample: pa.Table, expected: pa.Table) -> Results:
    """Each expected verdict against the stored one of the same scorer and version."""
    tables = {"verdicts": evidence.tables["verdicts"], "expected": expected}
    with runner(Path(__file__).with_name("verdicts.sql"), tables) as run:
        run.keep("known", "again")
        known, again = (run.connection.table(name).to_arrow_table() for name in ("known", "again"))
        absent = run.table("absent").column("says").to_pylist()
        equal = {row["scorer"]: row["n"] for row in run.table("equal").to_pylist()}
    of = expected.num_rows
    bad, examples = rows(known, again, _VERDICTS_KEY, ["reason"])
    if bad:
        what = "verdicts that were computed again differ from what their scorer reads in the text"
        yield contradiction("verdicts", bad, of, what, examples)
    if absent:
        yield contradiction("verdicts", len(absent), of, "answers have no verdict", absent)
    # What programs print may differ each time.
    fixed = pc.invert(pc.is_in(again.column("scorer"), pa.array([*_PROGRAMS])))
    reworded, examples = (0, []) if bad else rows(
        known.filter(pc.invert(pc.is_in(known.column("scorer"), pa.array([*_PROGRAMS])))),
        again.filter(fixed), _VERDICTS_KEY,
    )  # fmt: skip
    if reworded and evidence.same_code:
        what = "reasons of verdicts differ from what their scorer says"
        yield contradiction("verdicts", reworded, of, what, examples)
    covers = [*_READ, *([] if reworded or _PROGRAMS & set(equal) else ["reason"])]
    how = "all" if evidence.full else f"a sample of {sample.num_rows:,} answers"
    whole = evidence.full or sample.num_rows >= evidence.rows("responses")
    for name, count in equal.items():
        says = f"{count:,} verdicts of {name!r} follow from text and reference ({how}"
        says += ")" if whole else f", seed {evidence.seed})"
        yield proved("verdicts", says, *covers)


_LABELS_KEY = ("query_id", "model_id")
_DECIDED = ("score", "correct", "decided_by", "contested", "n_samples")


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
    injected = labels.num_rows - (pc.sum(real).as_py() or 0)
    if injected and "pseudo_specialists" not in evidence.applied:
        yield believed("labels", f"{injected:,} labels of injected models, drawn by a rule")
    stored, expected = labels.filter(real), _decided(evidence, policy)
    if not evidence.built:  # a build makes a label of every pair with a response
        there = stored.select(_LABELS_KEY)
        expected = expected.join(there, list(_LABELS_KEY), join_type="left semi")
        expected = expected.sort_by([("model_id", "ascending"), ("query_id", "ascending")])
    bad, examples = rows(stored, expected.select(stored.column_names), _LABELS_KEY)
    if bad:
        what = "labels differ from what the recipe's policy makes of their verdicts"
        yield contradiction("labels", bad, stored.num_rows, what, examples)
    elif stored.num_rows:
        says = f"{stored.num_rows:,} labels follow from the verdicts by the recipe's policy"
        covers = _DECIDED if stored.num_rows == labels.num_rows else ()
        yield proved("labels", says, *covers)


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


#: Answers beyond which the estimate of wrong labels is only made again with `--full`.
_MOST = 100_000


def errors_of_labels(evidence: Evidence) -> Results:
    """The estimate of wrong labels against answers and labels: made once more."""
    stored, check = evidence.figures("label_errors"), "the estimate of wrong labels"
    if not stored:
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
    names = sorted(stored.keys() | fresh.keys())
    wrong = list(values((name, stored.get(name), fresh.get(name)) for name in names))
    if wrong:
        what = "figures differ from what answers, labels and measured error rates give"
        yield contradiction("figures.label_errors", len(wrong), len(names), what, wrong)
    else:
        says = "follows from answers, labels and the error rates that this code has measured"
        covers = (f"figures.label_errors.{name}" for name in names)
        yield proved("figures.label_errors", f"{check} {says}", *covers)
