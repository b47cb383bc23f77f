"""Curation rules applied once more: schemes, seen models, injected models, pairs of answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import RouteyardError
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.entailment import scorer_equivalence
from routeyard.pipelines.curate.rule import Curated
from routeyard.pipelines.curate.split import split
from routeyard.pipelines.verify.evidence import (
    Evidence,
    Results,
    contradiction,
    not_run,
    proved,
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
    if not evidence.same_code:
        return evidence.other_code
    if len(evidence.withheld):
        return "texts are withheld"
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
    compared = 0
    fresh_tables = {**made.added, "removals": made.removed} if whole else made.added
    for name, fresh in fresh_tables.items():
        if name == "splits":
            evidence.schemes |= set(fresh.column("scheme").to_pylist())
        stored, fresh = _own(evidence, name, fresh, tables, rule.rule)
        without = ["self_assessment"] if name == "signals" else []
        contract = CONTRACTS[name]
        fresh = contract.conform(fresh, where=name)
        bad, examples = rows(stored, fresh, contract.key, without)
        compared += fresh.num_rows
        if bad:
            what = f"rows differ from what the recipe's rule {rule.rule!r} makes"
            yield contradiction(name, bad, max(bad, fresh.num_rows), what, examples)
            compared = -1 << 62
    if whole:
        figures = _figures(evidence, place)
        wrong = list(
            values(
                (n, figures.get(n), item)
                for n, item in json.loads(json.dumps(made.figures)).items()
            )
        )
        if wrong:
            what = f"figures of the rule {rule.rule!r} differ from those of the tables"
            yield contradiction("figures.curate", len(wrong), len(made.figures), what, wrong)
    if compared > 0:
        how = "" if whole else f" (a sample of {tables['queries'].num_rows:,} questions)"
        evidence.applied.add(rule.rule)
        says = f"{compared:,} rows are what the rule {rule.rule!r} makes{how}"
        covers = [
            f"{name}.{column}"
            for name, table in fresh_tables.items()
            for column in table.column_names
            if name in _OWN and column != "self_assessment"
        ]
        yield proved(", ".join(made.added), says, *covers)


def _read(evidence: Evidence, place: int, rule: CurationRule) -> tuple[dict[str, pa.Table], bool]:
    """The tables as the rule saw them, and whether that is all of them."""
    assert evidence.curation is not None
    names = ("queries", "models", *_AGAIN[rule.rule])
    earlier = [item.rule for item in evidence.curation[:place]]
    queries = evidence.whole("queries")
    whole = True
    wanted = [str(rule.parameters.get(side)) for side in ("strong", "weak")]
    answers = len(wanted) * evidence.samples * queries.num_rows
    if rule.rule == "preference" and not evidence.full and answers > _ANSWERS:
        drawn = np.random.Generator(np.random.PCG64(evidence.seed))
        rows_ = np.sort(drawn.choice(queries.num_rows, min(_QUESTIONS, queries.num_rows), False))
        queries, whole = queries.take(pa.array(rows_)), False
    tables = {"queries": queries}
    for name in names[1:]:
        if name == "duplicates" and ("dedup" not in earlier or not evidence.rows(name)):
            continue
        table = evidence.whole(name)
        if "model_id" in table.column_names and "pseudo_specialists" not in earlier:
            table = _among(table, "model_id", evidence.real)
        if rule.rule == "preference" and name != "models":
            table = _among(table, "model_id", pa.array(wanted))
            table = _among(table, "query_id", queries.column("query_id"))
        tables[name] = table
    return tables, whole


def _own(
    evidence: Evidence, name: str, fresh: pa.Table, tables: Mapping[str, pa.Table], rule: str
) -> tuple[pa.Table, pa.Table]:
    """Rows of a table that the rule is to have made: those stored, and those made now."""
    stored = evidence.whole(name)
    if name in tables:  # the rule extends it: what it was given is left out of both
        before = tables[name].column("model_id")
        return _among(stored, "model_id", before, False), _among(fresh, "model_id", before, False)
    if name == "removals":
        return _among(stored, "stage", pa.array([f"curate.{rule}"])), fresh
    if "scheme" in stored.column_names:
        return _among(stored, "scheme", fresh.column("scheme")), fresh
    return _among(stored, "query_id", tables["queries"].column("query_id")), fresh


def _among(table: pa.Table, column: str, names: Any, inside: bool = True) -> pa.Table:
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    there = pc.is_in(table.column(column), value_set=names)
    return table.filter(there if inside else pc.invert(there))


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
        says = [
            f"{name!r}, expected {settings.scheme!r} or one that a rule makes" for name in unknown
        ]
        yield contradiction("splits", len(unknown), len(schemes), "schemes are nobody's", says)
    if settings.scheme not in schemes or any(fnmatchcase(settings.scheme, item) for item in made):
        return
    if len(evidence.withheld):
        yield not_run("splits", f"scheme {settings.scheme!r} made again", "texts are withheld")
    elif not evidence.same_code:
        yield not_run("splits", f"scheme {settings.scheme!r} made again", evidence.other_code)
    else:
        own = _among(stored, "scheme", pa.array([settings.scheme]))
        yield from _split_again(evidence, settings, own)


def _model_schemes(evidence: Evidence) -> Iterator[str]:
    assert evidence.curation is not None
    if not any(rule.rule == "unseen_models" for rule in evidence.curation):
        return  # `recipe_of_release` says that no rule makes the table
    usual = {
        str(rule.parameters.get("scheme", "unseen_models"))
        for rule in evidence.curation
        if rule.rule == "unseen_models"
    }
    there = evidence.table("model_splits", ["scheme"]).column("scheme").to_pylist()
    yield from sorted(set(there) - usual)


def _split_again(evidence: Evidence, settings: Any, own: pa.Table) -> Results:
    duplicates = evidence.whole("duplicates") if evidence.rows("duplicates") else None
    try:
        made = split(evidence.whole("queries"), duplicates, **settings.model_dump())
    except RouteyardError as error:
        yield contradiction("splits", 1, 1, "schemes cannot be made again", [error.what])
        return
    bad, examples = rows(own, made, ("query_id",))
    if bad:
        what = f"questions of scheme {settings.scheme!r} are not where the recipe's split puts them"
        yield contradiction("splits", bad, max(bad, made.num_rows), what, examples)
    else:
        schemes = set(evidence.table("splits", ["scheme"]).column("scheme").to_pylist())
        covers = [] if schemes - evidence.schemes - {settings.scheme} else ["split"]
        says = f"scheme {settings.scheme!r} follows from ids, seed and shares"
        yield proved("splits", says, *covers)
