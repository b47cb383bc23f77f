"""Verdicts against texts, labels against verdicts: scorers and policy read them once more."""

from __future__ import annotations

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
    agree,
    among,
    believed,
    contradiction,
    not_run,
    rows,
    values,
)
from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.statuses import NO_RULE

_VERDICTS_KEY = ("query_id", "model_id", "sample", "scorer", "scorer_version")
_READ = ("outcome", "score", "extracted", "span_start", "span_end", "conflict")
_QUESTION = ("query_id", "question", "prompt", "choices", "references", "scorer", "metadata",
             "source", "source_id", "task", "domain")  # fmt: skip
_LABELS_KEY = ("query_id", "model_id")
_DECIDED = ("score", "correct", "decided_by", "contested", "n_samples")
_BY_MODEL = [("model_id", "ascending"), ("query_id", "ascending")]


def verdicts_of_texts(evidence: Evidence) -> Results:
    """Contradictions between verdicts and what today's scorers read in the same texts."""
    if not evidence.rows("verdicts"):
        return
    yield from _by_others(evidence.table("verdicts", ["scorer", "scorer_version"]))
    sample = evidence.sampled.table
    if sample is None:
        return
    queries = evidence.table("queries", list(_QUESTION))
    if count := len(evidence.withheld):
        check = f"verdicts on {count:,} questions against texts"
        yield not_run("verdicts", check, "their text is withheld")
    left = {
        name: why
        for name in sorted(set(pc.unique(queries.column("scorer")).to_pylist()) - {NO_RULE})
        if (why := _unread(evidence, name))
    }
    for name, why in left.items():
        yield not_run("verdicts", f"verdicts of {name!r} against texts", why)
    queries = among(queries, "query_id", evidence.withheld, False)
    queries = among(queries, "scorer", pa.array(left, pa.string()), False)
    sample = among(sample, "query_id", queries.column("query_id"))
    sample = among(sample, "model_id", evidence.real)
    if not sample.num_rows:
        return
    try:
        tables = {
            "verdicts": evidence.tables["verdicts"],
            "expected": file_verdicts(queries, sample),
        }
    except RouteyardError as error:
        yield not_run("verdicts", "verdicts against texts", f"scorers cannot run: {error.what}")
        return
    with runner(Path(__file__).with_name("verdicts.sql"), tables) as run:
        known, again = run.table("known"), run.table("again")
    without = [] if evidence.same_code else ["reason"]
    scorers = set(again.column("scorer").to_pylist())
    covers = [*_READ, *([] if without or "code" in scorers else ["reason"])]
    whole = evidence.full or sample.num_rows >= evidence.rows("responses")
    how = "all" if evidence.full else f"a sample of {sample.num_rows:,} answers"
    says = f"what their scorer ({', '.join(sorted(scorers))}) reads in the text ({how}"
    says += ")" if whole else f", seed {evidence.seed})"
    wrong = rows(known, again, _VERDICTS_KEY, without)
    yield from agree("verdicts", "verdicts", says, again.num_rows, wrong, *covers)


def _unread(evidence: Evidence, scorer: str) -> str:
    """Why a scorer does not read its answers again; empty where it does."""
    if scorer == "code":  # of a stranger, in the jail
        return "" if evidence.full else "`--full` runs the programs"
    if scorer in ("bartscore", "meteor"):
        return "they need weights or data"
    return "" if scorer in SCORERS.targets else "that scorer is not installed here"


def _by_others(filed: pa.Table) -> Results:
    """What no computation here can repeat: judges, people, scorers of other versions."""
    counted = filed.group_by(["scorer", "scorer_version"]).aggregate([([], "count_all")])
    for row in counted.sort_by([(name, "ascending") for name in filed.column_names]).to_pylist():
        name, version = row["scorer"], row["scorer_version"]
        of = f"{row['count_all']:,} verdicts of {name!r}"
        if name.startswith(FAMILIES):
            yield believed("verdicts", f"{of}, of a model or a person")
        elif name not in SCORERS.targets:
            yield believed("verdicts", f"{of}, which is not installed here")
        elif version != (today := SCORERS.get(name).version):
            why = f"they are by version {version}; this code has version {today}"
            yield not_run("verdicts", f"{of} against texts", why)


def labels_of_verdicts(evidence: Evidence) -> Results:
    """Contradictions between labels and what the policy makes of the verdicts."""
    labels = evidence.table("labels", [*_LABELS_KEY, *_DECIDED])
    of = labels.num_rows
    why = evidence.lacks("label")
    if not why and not (evidence.has("responses") and evidence.rows("verdicts")):
        if evidence.built and of and not evidence.has("responses", "verdicts"):
            what = "labels have no response and no verdict to follow from"
            yield contradiction("labels", of, of, what, [])
            return
        why = "" if evidence.built or not of else f"{of:,} labels come without verdicts"
    if why:
        yield not_run("labels", "labels against verdicts by the recipe's policy", why)
        return
    stored = among(labels, "model_id", evidence.real)
    injected = of - stored.num_rows
    if injected and "pseudo_specialists" not in evidence.applied:
        yield believed("labels", f"{injected:,} labels of injected models, drawn by a rule")
    responses = evidence.table("responses", [*_LABELS_KEY, "sample", "status"])
    verdicts = ["sample", "scorer", "scorer_version", "outcome", "score", "conflict"]
    expected = decide(
        evidence.table("queries", ["query_id", "task", "scorer"]),
        among(responses, "model_id", evidence.real),
        evidence.table("verdicts", [*_LABELS_KEY, *verdicts]),
        policy=evidence.label,
    )
    if not evidence.built:  # a build makes a label of every pair with a response
        there = stored.select(_LABELS_KEY)
        expected = expected.join(there, list(_LABELS_KEY), join_type="left semi")
    expected = expected.sort_by(_BY_MODEL).select(stored.column_names)
    wrong = rows(stored, expected, _LABELS_KEY)
    says = "what the recipe's policy makes of the verdicts"
    covers = () if injected else _DECIDED
    yield from agree("labels", "labels", says, stored.num_rows, wrong, *covers)


#: Answers beyond which the estimate of wrong labels is only made again with `--full`.
_MOST = 100_000


def errors_of_labels(evidence: Evidence) -> Results:
    """The estimate of wrong labels against answers and labels: made once more."""
    stored, check = evidence.figures("label_errors"), "the estimate of wrong labels"
    why = evidence.lacks("code", "texts") if stored else "the manifest holds none"
    if not why and not evidence.full and evidence.rows("responses") > _MOST:
        why = f"of more than {_MOST:,} answers only `--full` makes it"
    if why:
        if stored or evidence.built:
            yield not_run("figures.label_errors", check, why)
        return
    fresh: dict[str, Any] = label_errors(
        evidence.table("queries", ["query_id", "scorer", "references", "choices"]),
        evidence.table("responses", ["query_id", "model_id", "text"]),
        evidence.table("labels", ["query_id", "model_id", "decided_by", "correct"]),
    )
    names = sorted(stored.keys() | fresh.keys())
    wrong = list(values((name, stored.get(name), fresh.get(name)) for name in names))
    says = "what answers, labels and measured error rates give"
    covers = (f"figures.label_errors.{name}" for name in names)
    yield from agree("figures.label_errors", "figures", says, len(names), wrong, *covers)
