"""Curation rules applied once more: schemes, seen models, injected models, pairs of answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from routeyard.pipelines.common.errors import RouteyardError
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.entailment import scorer_equivalence
from routeyard.pipelines.curate.rule import Curated
from routeyard.pipelines.curate.split import split
from routeyard.pipelines.verify.evidence import (
    Evidence,
    Results,
    agree,
    among,
    contradiction,
    not_run,
    rows,
    values,
)
from routeyard.schemas import CONTRACTS
from routeyard.schemas.recipe import CurationRule
from routeyard.schemas.release import SCHEME

#: Rules that make rows of what a release holds → the tables that they read of it beside queries
#: and models. Rules that remove questions or models read what is no longer there.
_AGAIN: Mapping[str, tuple[str, ...]] = {
    "dense_sparse": ("duplicates",),
    "out_of_distribution": ("duplicates",),
    "upstream_split": (),
    "unseen_models": (),
    "pseudo_specialists": ("labels", "responses"),
    "preference": ("labels", "responses", "verdicts"),
}
#: Rule → schemes that it may make, where it cannot be applied again.
_SCHEMES: Mapping[str, tuple[str, ...]] = {
    "dense_sparse": ("dense", "sparse"),
    "out_of_distribution": ("ood:*",),
    "upstream_split": (SCHEME,),
}
#: Tables of which a rule makes all rows.
_OWN = ("entropies", "preferences", "model_splits", "signals")
#: Answers of two models whose pairs are all made again without `--full`, and the questions of
#: which they are where there are more.
_ANSWERS, _QUESTIONS = 4_000, 200
#: What decides that two answers mean the same → whether this machine can be asked.
_DECIDERS: Mapping[str, Callable[[], Any]] = {
    "equality": lambda: None,
    "equivalence": scorer_equivalence,
}


def rules_again(evidence: Evidence) -> Results:
    """Contradictions between what rules and split of the recipe make, and what is there."""
    if not evidence.built:
        return
    if evidence.curation is None:
        yield not_run("splits", "rules and split applied again", evidence.unread("curate"))
        return
    known: list[str] = []
    for place, rule in enumerate(evidence.curation):
        if rule.rule not in _AGAIN:
            why = "it read questions, models or vectors that a release does not hold"
            yield not_run("curate", f"the rule {rule.rule!r} applied again", why)
            continue
        scheme = rule.parameters.get("scheme")
        known += [str(scheme)] if scheme else _SCHEMES.get(rule.rule, ())
        why = _not_again(evidence, place)
        if why:
            yield not_run("curate", f"the rule {rule.rule!r} applied again", why)
            continue
        try:
            yield from _applied(evidence, place, rule)
        except RouteyardError as error:
            yield contradiction(
                "curate", 1, 1, "rules cannot be applied", [f"{rule.rule}: {error.what}"]
            )
    yield from _splits(evidence, known)


def _not_again(evidence: Evidence, place: int) -> str:
    """Why a rule cannot be applied to what the release holds; empty where it can."""
    assert evidence.curation is not None
    if why := evidence.lacks("code", "texts"):
        return why
    later = {f"curate.{rule.rule}" for rule in evidence.curation[place + 1 :]}
    removed = evidence.table("removals", ["stage", "entity"]).to_pylist()
    if later & {row["stage"] for row in removed if row["entity"] in ("query", "model")}:
        return "later rules removed questions or models that it read"
    rule = evidence.curation[place]
    backend = rule.parameters.get("backend", "equivalence")
    if rule.rule == "preference" and backend not in _DECIDERS:
        return "what decided that answers mean the same is a model"
    return ""


def _applied(evidence: Evidence, place: int, rule: CurationRule) -> Results:
    tables, whole = _read(evidence, place, rule)
    parameters = dict(rule.parameters)
    if rule.rule == "preference":
        parameters["entailment"] = _DECIDERS[str(parameters.get("backend", "equivalence"))]()
        parameters["self_assessment"] = False
    made: Curated = RULES.get(rule.rule).apply(tables, **parameters)
    says = f"what the recipe's rule {rule.rule!r} makes"
    says += "" if whole else f" (a sample of {tables['queries'].num_rows:,} questions)"
    sound = True
    for name, fresh in {**made.added, **({"removals": made.removed} if whole else {})}.items():
        if name == "splits":
            evidence.schemes |= set(fresh.column("scheme").to_pylist())
        stored, fresh = _own(evidence, name, fresh, tables, rule.rule)
        contract = CONTRACTS[name]
        fresh = contract.conform(fresh, where=name)
        without = ["self_assessment"] if name == "signals" else []
        wrong = rows(stored, fresh, contract.key, without)
        covers = [column for column in fresh.column_names if column not in without]
        sound = sound and not wrong[0]
        kept = covers if name in _OWN else ()
        yield from agree(name, "rows", says, fresh.num_rows, wrong, *kept)
    if whole:
        figures = _figures(evidence, place)
        made_figures = json.loads(json.dumps(made.figures))
        differ = list(values((n, figures.get(n), item) for n, item in made_figures.items()))
        sound = sound and not differ
        yield from agree("figures.curate", "figures", says, len(made_figures), differ)
    if sound:
        evidence.applied.add(rule.rule)


def _read(evidence: Evidence, place: int, rule: CurationRule) -> tuple[dict[str, pa.Table], bool]:
    """The tables as the rule saw them, and whether that is all of them."""
    assert evidence.curation is not None
    names = ("queries", "models", *_AGAIN[rule.rule])
    earlier = [item.rule for item in evidence.curation[:place]]
    queries = evidence.whole("queries")
    wanted = [str(rule.parameters.get(side)) for side in ("strong", "weak")]
    answers = len(wanted) * evidence.samples * queries.num_rows
    if rule.rule == "preference" and answers > _ANSWERS:
        queries = evidence.some(queries, _QUESTIONS)
    whole = queries.num_rows == evidence.rows("queries")
    tables = {"queries": queries}
    for name in names[1:]:
        if name == "duplicates" and ("dedup" not in earlier or not evidence.rows(name)):
            continue
        table = evidence.whole(name)
        if "model_id" in table.column_names and "pseudo_specialists" not in earlier:
            table = among(table, "model_id", evidence.real)
        if rule.rule == "preference" and name != "models":
            table = among(table, "model_id", pa.array(wanted))
            table = among(table, "query_id", queries.column("query_id"))
        tables[name] = table
    return tables, whole


def _own(
    evidence: Evidence, name: str, fresh: pa.Table, tables: Mapping[str, pa.Table], rule: str
) -> tuple[pa.Table, pa.Table]:
    """Rows of a table that the rule is to have made: those stored, and those made now."""
    stored = evidence.whole(name)
    if name in tables:  # the rule extends it: what it was given is left out of both
        before = tables[name].column("model_id")
        return among(stored, "model_id", before, False), among(fresh, "model_id", before, False)
    if name == "removals":
        return among(stored, "stage", pa.array([f"curate.{rule}"])), fresh
    if "scheme" in stored.column_names:
        return among(stored, "scheme", fresh.column("scheme")), fresh
    return among(stored, "query_id", tables["queries"].column("query_id")), fresh


def _figures(evidence: Evidence, place: int) -> Mapping[str, Any]:
    rules: Any = evidence.figures("curate").get("rules")
    rule = rules[place] if isinstance(rules, list) and place < len(rules) else {}
    figures = rule.get("figures") if isinstance(rule, Mapping) else None
    return figures if isinstance(figures, Mapping) else {}


def _splits(evidence: Evidence, made: Sequence[str]) -> Results:
    """The recipe's own scheme, and schemes that nothing makes."""
    stored = evidence.whole("splits")
    schemes = sorted(set(stored.column("scheme").to_pylist()))
    settings = evidence.split
    assert evidence.curation is not None
    if settings is None:
        check = f"{len(schemes)} schemes ({', '.join(schemes)[:200]}) made again"
        yield not_run("splits", check, evidence.unread("split"))
        return
    plugged = any(rule.rule not in RULES.builtin for rule in evidence.curation)
    unknown = [
        name
        for name in (*schemes, *_model_schemes(evidence))
        if name != settings.scheme and not any(fnmatchcase(name, item) for item in made)
    ]
    if unknown and not plugged:
        strange = [
            f"{name!r}, expected {settings.scheme!r} or one that a rule makes" for name in unknown
        ]
        yield contradiction("splits", len(unknown), len(schemes), "schemes are nobody's", strange)
    if settings.scheme not in schemes or any(fnmatchcase(settings.scheme, item) for item in made):
        return
    if why := evidence.lacks("texts", "code"):
        yield not_run("splits", f"scheme {settings.scheme!r} made again", why)
        return
    own = among(stored, "scheme", pa.array([settings.scheme]))
    duplicates = evidence.whole("duplicates") if evidence.rows("duplicates") else None
    try:
        made_again = split(evidence.whole("queries"), duplicates, **settings.model_dump())
    except RouteyardError as error:
        yield contradiction("splits", 1, 1, "schemes cannot be made again", [error.what])
        return
    says = f"where the recipe's split puts them (scheme {settings.scheme!r})"
    covers = [] if {*schemes} - evidence.schemes - {settings.scheme} else ["split"]
    wrong = rows(own, made_again, ("query_id",))
    yield from agree("splits", "questions", says, made_again.num_rows, wrong, *covers)


def _model_schemes(evidence: Evidence) -> list[str]:
    usual = {
        str(rule.parameters.get("scheme", "unseen_models"))
        for rule in evidence.curation or ()
        if rule.rule == "unseen_models"
    }
    there = evidence.table("model_splits", ["scheme"]).column("scheme").to_pylist()
    # Without such a rule a check of the release says that no rule makes the table.
    return sorted(set(there) - usual) if usual else []
