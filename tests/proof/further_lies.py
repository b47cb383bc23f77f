"""More releases that contradict themselves: recipes, requests, rules applied again, cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.proof.lies import (
    BEST,
    WORST,
    added,
    both,
    card,
    certificate,
    column,
    fact,
    few,
    of,
    replaced,
)
from tests.proof.resealed import Lie, Tables, put, where

Cases = dict[str, tuple[Lie, str, str]]


def recipe(change: Callable[[dict[str, Any]], Any]) -> Lie:
    return fact(lambda facts: change(facts["recipe"]))


def figures(stage: str, change: Callable[[dict[str, Any]], Any]) -> Lie:
    return fact(lambda facts: change(facts["figures"][stage]))


def rule(change: Callable[[dict[str, Any]], Any], place: int = 0) -> Lie:
    return figures("curate", lambda found: change(found["rules"][place]))


def thinned(tables: Tables, facts: dict[str, Any]) -> None:
    """Three hundred wrong answers of the worst models are gone, with verdicts and labels."""
    labels = tables["labels"]
    wrong = np.flatnonzero(where(labels, "correct", False) & ~where(labels, "model_id", BEST))
    gone = labels.take(pa.array(wrong[:300])).select(["query_id", "model_id"])
    for name in ("responses", "verdicts", "labels"):
        names, kept = tables[name].column_names, ["query_id", "model_id"]
        there = tables[name].append_column("at", pa.array(range(tables[name].num_rows)))
        rows = there.select([*kept, "at"]).join(gone, kept, join_type="left anti")
        chosen = rows.column("at").sort()
        tables[name] = tables[name].take(chosen.combine_chunks()).select(names)


def without_a_model(tables: Tables, facts: dict[str, Any]) -> None:
    """A model of the recipe is nowhere, and the stages never counted it."""
    for name, table in tables.items():
        if "model_id" in table.column_names:
            tables[name] = table.filter(pa.array(~where(table, "model_id", WORST)))
    told = facts["figures"]
    told["pool"]["models"] -= 1
    for one in told["curate"]["rules"]:
        one["before"]["models"] -= 1
        one["after"]["models"] -= 1


def said_to_be_injected(tables: Tables, facts: dict[str, Any]) -> None:
    """The worst model is an injected one that is always right."""
    rows = where(tables["models"], "model_id", WORST)
    tables["models"] = put(tables["models"], rows, kind="pseudo_specialist")
    rows = where(tables["labels"], "model_id", WORST)
    told = {"score": 1.0, "correct": True, "decided_by": "pseudo_specialist", "n_samples": 0}
    tables["labels"] = put(tables["labels"], rows, **told)


def a_judge(tables: Tables) -> list[dict[str, Any]]:
    row = tables["verdicts"].slice(0, 1).to_pylist()[0]
    return [{**row, "scorer": "judge:somebody", "outcome": "correct", "score": 1.0}]


def a_scheme(tables: Tables) -> list[dict[str, Any]]:
    names = tables["queries"].column("query_id").to_pylist()
    return [{"scheme": "easy", "query_id": name, "split": "test"} for name in names]


def half_of(table: pa.Table) -> pa.Table:
    return table.slice(0, table.num_rows // 2)


def groups_left_out(table: pa.Table) -> pa.Table:
    ids = table.column("group_id").unique()
    return table.filter(pc.is_in(table.column("group_id"), value_set=ids.slice(0, len(ids) // 2)))


def other_removals(tables: Tables, facts: dict[str, Any]) -> None:
    """The questions that are said to be near-duplicates are others."""
    tables["removals"] = put(tables["removals"], key=lambda key: "q" + key[:0:-1])


def exchanged(table: pa.Table, column_: str, a: str, b: str) -> pa.Table:
    return put(table, **{column_: lambda one: {a: b, b: a}.get(one, one)})


def router(change: Callable[[dict[str, Any]], Any]) -> Lie:
    return certificate(lambda found: change(max(found["routers"], key=lambda one: one["gain"])))


def at(name: str, change: Callable[[dict[str, Any]], Any]) -> Lie:
    """A change of an injected model's or a rule's rows."""
    return column(name, lambda table: np.char.startswith(ids(table), "pseudo"), **change)  # type: ignore[arg-type]


def ids(table: pa.Table) -> Any:
    return np.asarray(table.column("model_id").to_pylist(), dtype=str)


DEMO: Cases = {
    "prompts": (column("queries", few, prompt="Say 7."), "queries", "expected 'What"),
    "scorers of questions": (
        column("queries", lambda t: where(t, "scorer", "mcq"), scorer="em"),
        "queries", "scorer 'em', expected 'mcq'",
    ),
    "requests": (
        column("responses", few, request_hash="0" * 64),
        "responses", "requests are not what the recipe asks",
    ),
    "answers left out": (thinned, "figures", "the stage counted 3,753"),
    "a model left out": (without_a_model, "models", "sim-tern-mini is not there, expected"),
    "a real model said to be injected": (said_to_be_injected, "models", "the recipe's pool"),
    "costs left out": (
        column("responses", of(BEST), cost_usd=None, cost_source=None),
        "responses", "costs of known tokens and prices",
    ),
    "texts of blanks": (
        column("responses", few, text="  "), "responses", "texts that say something",
    ),
    "verdicts of an unknown judge": (added("verdicts", a_judge), "verdicts", "judge:somebody"),
    "costs of rules": (
        column("verdicts", few, cost_usd=0.01), "verdicts", "rules and people cost nothing",
    ),
    "a policy": (
        recipe(lambda found: found["label"]["default"].update(unreadable="null")),
        "labels", "are not what the recipe's policy makes",
    ),
    "a scheme of nobody": (added("splits", a_scheme), "splits", "'easy'"),
    "shares of the split": (
        recipe(lambda found: found["split"].update(train=0.7, test=0.2)),
        "splits", "expected 'train'",
    ),
    "a rule that the recipe lacks": (
        recipe(lambda found: found.update(curate=[])), "manifest", "rules applied",
    ),
    "parameters of a rule": (
        rule(lambda found: found["parameters"].update(threshold=0.5)),
        "manifest", "threshold of the rule 'dedup'",
    ),
    "threshold of duplicates": (
        column("duplicates", threshold=0.8), "manifest", "threshold of duplicates",
    ),
    "groups of duplicates left out": (
        replaced("duplicates", groups_left_out), "manifest", "groups of duplicates",
    ),
    "near-duplicates that are none": (
        other_removals, "removals", "questions removed as near-duplicates",
    ),
    "licence of a source": (
        fact(lambda facts: facts["sources"][0].update(license="MIT")),
        "manifest", "license of source 'bank_choice'",
    ),
    "a source that the recipe lacks": (
        recipe(lambda found: found["sources"].pop()), "manifest", "is not in both",
    ),
    "files of the sources": (
        fact(lambda facts: facts["sources"][0]["files"][0].update(sha256="0" * 64)),
        "manifest", "sources",
    ),
    "an audit left out": (
        fact(lambda facts: facts["figures"].pop("audit")), "manifest", "the stage 'audit'",
    ),
    "a finding of nobody": (
        figures("audit", lambda found: found["findings"].append(
            {"check": "latency", "model_id": BEST, "count": 3, "says": "odd"})),
        "figures.audit", "is listed, and the answers have none",
    ),
    "findings of the audit that are no list": (
        figures("audit", lambda found: found.update(findings="none")), "figures.audit", "none",
    ),
    "a figure left out": (
        certificate(lambda found: found["figures"].pop("best_covers")),
        "certificate", "best_covers is not in both",
    ),
    "words of the certificate": (
        certificate(lambda found: found.update(words="Everything is fine.")),
        "certificate", "words 'Everything is fine.'",
    ),
    "folds of the certificate": (
        certificate(lambda found: found.update(folds=50)), "certificate", "folds 50, expected 5",
    ),
    "leaks of the certificate": (
        certificate(lambda found: found["test_in_train"]["dense"].update(verbatim=7)),
        "certificate", "test_in_train",
    ),
    "rule of the certificate": (
        certificate(lambda found: found.update(rule="as we like")), "certificate", "rule 'as we",
    ),
    "a certificate left out": (
        figures("certify", lambda found: found.pop("certificate")),
        "certificate", "certificates are not there",
    ),
    "a word more in the certificate": (
        certificate(lambda found: found.update(endorsed_by="three experts")),
        "certificate", "endorsed_by is not in both",
    ),
    "seed of the certificate": (
        certificate(lambda found: found.update(seed=1234)), "certificate", "seed 1234, expected 0",
    ),
    "grades of answers that were asked for": (
        column("responses", few, given_score=1.0), "responses", "come without a grade",
    ),
    "gains of a router": (
        router(lambda found: found.update(gain=found["gain"] + 0.02)), "certificate", "gain of",
    ),
    "a card with another best model, by foreign code": (
        card(lambda text: text.replace(
            f"| best single model | {BEST} (", f"| the best of all | {WORST} ("), code="0.0.9"),
        "README.md", "the data give",
    ),
    "a card with another verdict, by foreign code": (
        card(lambda text: text.replace("**routable** over", "**not routable** over"), code="0.0.9"),
        "README.md", "not routable",
    ),
    "a card with another licence, by foreign code": (
        card(lambda text: text.replace("license: apache-2.0", "license: mit"), code="0.0.9"),
        "README.md", "has license 'mit'",
    ),
    "a card that names other files, by foreign code": (
        card(lambda text: text.replace("path: data/labels.parquet", "path: data/best.parquet"),
             code="0.0.9"),
        "README.md", "no file of this release",
    ),
}  # fmt: skip


def of_other_code(lie: Lie) -> Lie:
    """The same by a version that this code is not."""
    return both(lie, fact(lambda facts: facts.update(code="0.0.9")))


def without_tables(*names: str) -> Lie:
    return lambda tables, facts: [tables.pop(name) for name in names] and None


def without_stages(facts: dict[str, Any]) -> None:
    facts.update(fingerprints={}, figures={})


def without_addresses(facts: dict[str, Any]) -> None:
    facts["figures"]["collect"].pop("addresses", None)


def cheaper(tables: Tables, facts: dict[str, Any]) -> None:
    """The prices of the best model are a tenth, in table and recipe."""
    for model in facts["recipe"]["pool"]["models"]:
        if model["model_id"] == BEST:
            model.update(price_in=model["price_in"] / 10, price_out=model["price_out"] / 10)
    cut = {name: lambda one: one / 10 for name in ("price_in", "price_out")}
    tables["models"] = put(tables["models"], where(tables["models"], "model_id", BEST), **cut)


def of_another_family(tables: Tables, facts: dict[str, Any]) -> None:
    for model in facts["recipe"]["pool"]["models"]:
        model.update(family="one")
    tables["models"] = put(tables["models"], family="one")


def each_differs(hashed: str) -> str:
    return "0" * 8 + hashed[8:]


def no_conflict_seen(table: pa.Table) -> pa.Table:
    """Conflicts with labels of removed questions, which only the publisher has."""
    return put(table, label_conflict=False)


#: Recipes that are none, and checks that are switched off.
SWITCHED_OFF: Cases = {
    "no samples": (
        both(
            recipe(lambda found: found["collect"].update(samples=0)),
            column("responses", request_hash="0" * 64),
        ),
        "recipe", "collect.samples",
    ),
    "no samples, by other code": (
        of_other_code(recipe(lambda found: found["collect"].update(samples=0))),
        "recipe", "collect.samples",
    ),
    "a temperature in words": (
        recipe(lambda found: found["collect"].update(temperature="warm")),
        "recipe", "collect.temperature",
    ),
    "a key that no recipe has": (
        recipe(lambda found: found["collect"].update(votes=3)), "recipe", "collect.votes",
    ),
    "a price below zero": (
        recipe(lambda found: found["pool"]["models"][0].update(price_in=-1.0)),
        "recipe", "price_in",
    ),
    "shares of more than all": (
        recipe(lambda found: found["split"].update(train=7.0)), "recipe", "split",
    ),
    "a source of no kind": (
        recipe(lambda found: found["sources"][0].update(kind="hearsay")), "recipe", "sources.0",
    ),
    "a rule without a name": (
        recipe(lambda found: found["curate"][0].update(rule=None)), "recipe", "curate.0",
    ),
    "a recipe without a policy": (
        recipe(lambda found: found.pop("label")), "recipe", "`label` is missing",
    ),
    "a recipe of nothing": (
        recipe(lambda found: [found.pop(k) for k in ("sources", "pool", "collect", "label")]),
        "recipe", "`pool` is missing",
    ),
    "stages without figures": (
        fact(without_stages), "manifest", "the stage 'audit' has no figures",
    ),
    "no splits": (without_tables("splits"), "certificate", "no split into train and test"),
    "no verdicts": (without_tables("verdicts"), "labels", "no response and no verdict"),
    "an estimate of no wrong label": (
        fact(lambda facts: facts["figures"]["label_errors"].update(expected_wrong=0.0)),
        "figures.label_errors", "expected_wrong 0.0, expected",
    ),
    "prices in table and recipe": (cheaper, "figures.audit", "price_mismatch"),
    "requests of zeros": (
        column("responses", request_hash="0" * 64),
        "responses", "requests are not what the recipe asks",
    ),
    "requests of zeros to an address that nobody states": (
        both(column("responses", request_hash="0" * 64), fact(without_addresses)),
        "responses", "1 hashes of",
    ),
    "another system message": (
        recipe(lambda found: found["collect"].update(system="Think twice.")),
        "responses", "requests are not what the recipe asks",
    ),
    "reasons of verdicts": (
        column("verdicts", few, reason="as the judge says"),
        "verdicts", "has reason 'as the judge says', expected",
    ),
    "reasons of removals": (
        column("removals", detail="near-duplicate of another question"),
        "removals", "reasons of near-duplicates",
    ),
    "conflicts of half a group": (
        column("duplicates", lambda t: where(t, "representative", True), label_conflict=False),
        "duplicates", "conflicts of a whole group",
    ),
}  # fmt: skip

#: What no check can tell: what was changed → (the lie, its kind, what it is about, words of it).
NAMED: dict[str, tuple[Lie, str, str, str]] = {
    "a key of another version": (
        of_other_code(recipe(lambda found: found["collect"].update(votes=3))),
        "not_run", "recipe", "collect.votes",
    ),
    "an estimate by other code": (
        of_other_code(
            fact(lambda facts: facts["figures"]["label_errors"].update(expected_wrong=0.0))
        ),
        "not_run", "figures.label_errors", "version 0.0.9",
    ),
    "every question of law": (column("queries", domain="law"), "believed", "queries", "domain"),
    "requests beside a key of another version": (
        of_other_code(recipe(lambda found: found["collect"].update(votes=3))),
        "not_run", "responses", "request hashes against the recipe",
    ),
    "another version of a scorer": (
        column("verdicts", scorer_version="99"), "not_run", "verdicts", "version 99",
    ),
    "a system message to an address that nobody states": (
        both(column("responses", request_hash=each_differs), fact(without_addresses)),
        "believed", "responses", "system message",
    ),
    "requests by hashes that nobody can make": (
        both(column("responses", request_hash=each_differs), fact(without_addresses)),
        "not_run", "responses", "3,000 of 3,000 request hashes",
    ),
    "fingerprints of stages": (
        fact(lambda facts: facts["fingerprints"].update(label="0" * 24)),
        "believed", "stages", "fingerprints",
    ),
    "providers": (column("responses", provider="somebody"), "believed", "responses", "provider"),
    "attempts": (column("responses", attempts=7), "believed", "responses", "attempts"),
    "families in table and recipe": (of_another_family, "believed", "models", "family"),
    "conflicts with questions that are gone": (
        replaced("duplicates", no_conflict_seen), "believed", "duplicates", "label_conflict",
    ),
    "defects left out": (
        figures("audit", lambda found: found.update(defects=["none"])),
        "believed", "figures.audit", "defects",
    ),
    "pairs of duplicates": (
        rule(lambda found: found["figures"].update(pairs_found=1)),
        "believed", "figures.curate", "rules",
    ),
    "files of sources, in both places": (
        fact(lambda facts: [
            one["files"][0].update(sha256="0" * 64)
            for one in (*facts["sources"], *facts["figures"]["ingest"]["sources"])
        ]),
        "believed", "figures.ingest", "sources",
    ),
}  # fmt: skip

#: Those that say that another version of the code wrote the release.
APART = [
    ("a key of another version", "requests beside a key of another version",
     "an estimate by other code"),
]  # fmt: skip

#: Of the release with samples, pairs, schemes and an injected model.
RICH: Cases = {
    "temperature": (
        recipe(lambda found: found["collect"].update(temperature=0.0)),
        "responses", "requests are not what the recipe asks",
    ),
    "a system prompt": (
        recipe(lambda found: found["collect"].update(system="Think twice.")),
        "responses", "requests are not what the recipe asks",
    ),
    "signals": (
        column("signals", few, perplexity=lambda p: None if p is None else p + 0.5),
        "signals", "perplexity",
    ),
    "entropies": (
        column("entropies", few, semantic_entropy=lambda one: one * 0.9 if one else one),
        "entropies", "semantic_entropy",
    ),
    "pairs left out": (replaced("preferences", half_of), "preferences", "is not there"),
    "ties by labels": (
        column("preferences", lambda t: where(t, "basis", "correctness"),
               winner_tie=1, winner_model_a=0, winner_model_b=0),
        "preferences", "winner_tie",
    ),
    "answers of the second model": (
        column("preferences", response_b="Something else."), "preferences", "answers of the pairs",
    ),
    "entropies of the second model": (
        column("preferences", se_b=lambda one: None if one is None else one + 1, delta=None),
        "preferences", "entropies of the pairs",
    ),
    "prompts of the pairs": (
        column("preferences", few, prompt="Say 7."), "preferences", "prompts of the pairs",
    ),
    "reasons for no pair": (
        replaced("removals", lambda t: t.filter(pc.not_equal(t.column("entity"), "pair"))),
        "removals", "is not there",
    ),
    "models seen and unseen": (
        replaced("model_splits", lambda t: exchanged(t, "split", "seen", "unseen")),
        "model_splits", "unseen_models",
    ),
    "schemes of rules": (
        column("splits", lambda t: where(t, "scheme", "ood:mathematics") & few(t), split="train"),
        "splits", "out_of_distribution",
    ),
    "labels of injected models": (
        at("labels", {"score": 1.0, "correct": True}), "labels", "pseudo",
    ),
    "prices of injected models": (at("models", {"price_in": 0.0}), "models", "pseudo_specialists"),
    "tokens of injected models": (
        at("responses", {"prompt_tokens": 1}), "responses", "pseudo_specialists",
    ),
    "figures of a rule": (
        rule(lambda found: found["figures"]["pairs_by_basis"]["correctness"].update(ties=0), 3),
        "figures.curate", "pairs_by_basis",
    ),
    "labels of the best of three samples": (
        column("labels", lambda t: np.asarray(
            pc.fill_null(pc.and_(pc.greater(t.column("score"), 0), pc.less(t.column("score"), 1)),
                         False)), score=1.0, correct=True),
        "labels", "are not what the recipe's policy makes",
    ),
    "answers of other samples": (
        column("responses", lambda t: where(t, "sample", 2), sample=3),
        "verdicts", "not in responses",
    ),
}  # fmt: skip


def of_nobody(tables: Tables) -> list[dict[str, Any]]:
    return [{**row, "sample": 5} for row in tables["steps"].slice(0, 3).to_pylist()]


#: Of a release with embeddings.
EMBEDDED: Cases = {
    "embeddings left out": (replaced("embeddings", half_of), "manifest", "leave out"),
    "embeddings of two lengths": (
        column("embeddings", lambda t: np.arange(t.num_rows) < 5, vector=[1.0, 0.0]),
        "manifest", "expected one length",
    ),
}  # fmt: skip

#: Of an agent's trajectories.
STEPS: Cases = {
    "tokens written": (
        column("responses", completion_tokens=1), "responses", "tokens written in trajectories",
    ),
    "numbers of steps": (
        column("steps", step=lambda one: 2 * one), "responses", "steps numbered without a gap",
    ),
    "answers of trajectories": (
        column("responses", lambda t: few(t) & where(t, "status", "ok"), text="Answer: 7"),
        "responses", "answers of trajectories",
    ),
    "steps of nobody": (added("steps", of_nobody), "steps", "not in responses"),
}  # fmt: skip
