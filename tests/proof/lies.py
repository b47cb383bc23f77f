"""Forty releases that contradict themselves: what was changed, where it shows, and by which words.

Each is resealed with `write_release`, so that every checksum, fingerprint and summary is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.datacards.files import render as render_files
from routeyard.pipelines.release.build import WITHHELD
from routeyard.schemas import CONTRACTS
from tests.proof.resealed import Lie, Tables, put, where

BEST, WORST = "sim-atlas-xl", "sim-tern-mini"


def column(table: str, rows: Callable[[pa.Table], Any] | None = None, **columns: Any) -> Lie:
    """Other values in a table, in some rows or in all."""

    def lie(tables: Tables, facts: dict[str, Any]) -> None:
        chosen = True if rows is None else rows(tables[table])
        tables[table] = put(tables[table], chosen, **columns)

    return lie


def few(table: pa.Table) -> Any:
    """Every hundredth row."""
    return np.arange(table.num_rows) % 100 == 7


def of(model: str) -> Callable[[pa.Table], Any]:
    return lambda table: where(table, "model_id", model)


def both(*lies: Lie) -> Lie:
    def lie(tables: Tables, facts: dict[str, Any]) -> None:
        for one in lies:
            one(tables, facts)

    return lie


def fact(change: Callable[[dict[str, Any]], Any]) -> Lie:
    return lambda tables, facts: change(facts) and None


def verdicts_and_labels(tables: Tables, facts: dict[str, Any]) -> None:
    """The worst model is right on everything, in verdicts and labels alike."""
    rows = where(tables["verdicts"], "model_id", WORST) & (
        np.asarray(tables["verdicts"].column("outcome").to_pylist()) == "incorrect"
    )
    tables["verdicts"] = put(tables["verdicts"], rows, outcome="correct", score=1.0)
    labels = tables["labels"]
    decided = where(labels, "model_id", WORST) & ~where(labels, "decided_by", "unreadable")
    tables["labels"] = put(labels, decided, score=1.0, correct=True)


def free_tokens(tables: Tables, facts: dict[str, Any]) -> None:
    """No tokens, and costs to match: the metering audit in the manifest is clean."""
    tables["responses"] = put(
        tables["responses"], prompt_tokens=0, completion_tokens=0, reasoning_tokens=0, cost_usd=0.0
    )


def without(share: float) -> Lie:
    """Questions that the best model fails are gone, from every table."""

    def lie(tables: Tables, facts: dict[str, Any]) -> None:
        labels = tables["labels"]
        wrong = where(labels, "model_id", BEST) & where(labels, "correct", False)
        failed = labels.filter(pa.array(wrong)).column("query_id").to_pylist()
        gone = pa.array(failed[: int(len(failed) * share)])
        for name, table in tables.items():
            if "query_id" in table.column_names and name not in ("duplicates", "removals"):
                kept = pc.invert(pc.is_in(table.column("query_id"), value_set=gone))
                tables[name] = table.filter(kept)

    return lie


def added(table: str, rows: Callable[[Tables], list[dict[str, Any]]]) -> Lie:
    def lie(tables: Tables, facts: dict[str, Any]) -> None:
        more = CONTRACTS[table].from_rows(rows(tables))
        old = tables.get(table, CONTRACTS[table].empty())
        tables[table] = pa.concat_tables([old, more])

    return lie


def card(change: Callable[[str], str], code: str | None = None) -> Lie:
    def lie(tables: Tables, facts: dict[str, Any]) -> None:
        before = facts["render_card"]
        facts["render_card"] = lambda *given: change(before(*given))
        facts["code"] = code

    return lie


def exchanged(first: str, second: str) -> Callable[[str], str]:
    return lambda text: text.replace(first, "\0").replace(second, first).replace("\0", second)


def accuracies_exchanged(text: str) -> str:
    """The best and the worst model's rows of the card hold each other's accuracy."""
    rows = {
        name: next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        for name in (BEST, WORST)
    }
    cells = {name: row.split(" | ")[1] for name, row in rows.items()}
    for name, other in ((BEST, WORST), (WORST, BEST)):
        text = text.replace(rows[name], rows[name].replace(cells[name], cells[other]))
    return text


def other_plots(tables: Tables, facts: dict[str, Any]) -> None:
    """The plot of accuracies names the best model the worst."""

    def files(*given: Any) -> Mapping[str, bytes]:
        made = dict(render_files(*given))
        text = made["plots/accuracy.svg"].decode()
        made["plots/accuracy.svg"] = exchanged(BEST, WORST)(text).encode()
        assert made["plots/accuracy.svg"] != text.encode()
        return made

    facts["render_files"] = files


def certificate(change: Callable[[dict[str, Any]], Any]) -> Lie:
    return fact(lambda facts: change(facts["figures"]["certify"]["certificate"]))


def all_eleven(found: dict[str, Any]) -> None:
    for figure in found["figures"].values():
        if figure["value"] is not None:
            figure.update(value=0.111)


def no_interval(found: dict[str, Any]) -> None:
    for figure in found["figures"].values():
        if figure["low"] is not None:
            figure.update(low=figure["value"] - 1e-4, high=figure["value"] + 1e-4)


def another_verdict(found: dict[str, Any]) -> None:
    found["verdict"] = "not routable" if found["verdict"] == "routable" else "routable"


def split_moved(table: pa.Table) -> pa.Table:
    """Half of the test questions are in train."""
    test = np.flatnonzero(where(table, "split", "test"))
    chosen = np.zeros(table.num_rows, bool)
    chosen[test[::2]] = True
    return put(table, chosen, split="train")


def replaced(table: str, change: Callable[[pa.Table], pa.Table]) -> Lie:
    def lie(tables: Tables, facts: dict[str, Any]) -> None:
        tables[table] = change(tables[table])

    return lie


def numbered_later(tables: Tables, facts: dict[str, Any]) -> None:
    """The answers to one question are each the eighth sample, of which the recipe asks for one."""
    asked = tables["queries"].column("query_id")[0].as_py()
    for name in ("responses", "verdicts"):
        tables[name] = put(tables[name], where(tables[name], "query_id", asked), sample=7)


def hidden(tables: Tables, facts: dict[str, Any]) -> None:
    """Texts are withheld that nobody forbids to pass on."""
    asked = where(tables["queries"], "source", "bank_choice")
    tables["queries"] = put(tables["queries"], asked, question=WITHHELD, prompt=WITHHELD)
    ids = tables["queries"].filter(pa.array(asked)).column("query_id")
    rows = pc.is_in(tables["responses"].column("query_id"), value_set=ids.combine_chunks())
    tables["responses"] = put(tables["responses"], np.asarray(rows), text=WITHHELD)


def of_another(table: pa.Table) -> pa.Table:
    """The answers of one model are said to be served as another."""
    return put(table, where(table, "model_id", WORST), served_model="sim-other")


#: Of the demo: what was changed → (the lie, what the finding is about, words of it).
DEMO: dict[str, tuple[Lie, str, str]] = {
    "labels against verdicts": (
        column("labels", of(WORST), score=1.0, correct=True),
        "labels",
        "are not what the recipe's policy makes",
    ),
    "score 1 with correct false": (
        column("labels", few, score=1.0, correct=False),
        "labels",
        "score",
    ),
    "costs divided by 1,000": (
        column("responses", cost_usd=lambda usd: usd / 1000, cost_source="price_table"),
        "responses",
        "costs by the price table",
    ),
    "every answer replaced": (
        column("responses", text="I do not know."),
        "verdicts",
        "are not what their scorer",
    ),
    "verdicts emptied": (
        replaced("verdicts", lambda table: table.slice(0, 0)),
        "labels",
        "expected",
    ),
    "zero tokens beside a clean audit": (free_tokens, "figures.audit", "is not listed"),
    "latency below zero": (
        column("responses", latency_s=-5.0),
        "responses",
        "latency not negative",
    ),
    "decided by people everywhere": (
        column("labels", decided_by="human:anna"),
        "labels",
        "human:anna",
    ),
    "certificate figures of 11.1 %": (certificate(all_eleven), "certificate", "best_single 0.111"),
    "labels undecided": (
        column("labels", few, score=None, correct=None, decided_by=None, n_samples=0),
        "labels",
        "None",
    ),
    "verdicts and labels alike": (verdicts_and_labels, "verdicts", "expected 'incorrect'"),
    "references replaced": (
        column("queries", few, references=["42"]),
        "queries",
        "not the hash of their question",
    ),
    "questions reworded": (
        column("queries", few, question=lambda text: text + " Really?"),
        "queries",
        "not the hash",
    ),
    "prices of the models": (
        column("models", of(BEST), price_in=0.05, price_out=0.15),
        "models",
        "sim-atlas-xl has price_in 0.05",
    ),
    "sizes of the models": (column("models", of(BEST), params_b=7.0), "models", "params_b"),
    "scores of verdicts": (
        column("verdicts", lambda t: few(t) & where(t, "outcome", "correct"), score=0.5),
        "verdicts",
        "score 0.5, expected 1.0",
    ),
    "answers extracted": (
        column("verdicts", few, extracted="7 and nothing else"),
        "verdicts",
        "extracted",
    ),
    "splits moved": (replaced("splits", split_moved), "splits", "expected 'test'"),
    "splits cut": (
        replaced("splits", lambda table: table.slice(50)),
        "splits",
        "is not there, expected",
    ),
    "models split without a rule": (
        added(
            "model_splits",
            lambda tables: [
                {"scheme": "unseen", "model_id": name, "split": "unseen"}
                for name in tables["models"].column("model_id").to_pylist()
            ],
        ),
        "manifest",
        "unseen_models",
    ),
    "duplicates not alike": (
        column("duplicates", similarity=0.2),
        "duplicates",
        "similar as far as the threshold",
    ),
    "groups of duplicates": (
        column("duplicates", representative=True),
        "duplicates",
        "one representative",
    ),
    "removals forgotten": (
        replaced("removals", lambda table: table.slice(0, 0)),
        "figures",
        "0 removed",
    ),
    "questions left out": (without(1.0), "figures", "questions were read"),
    "contested labels": (column("labels", few, contested=True), "labels", "contested"),
    "samples counted": (column("labels", few, n_samples=5), "labels", "n_samples 5"),
    "samples numbered": (numbered_later, "responses", "no more samples than the recipe asks for"),
    "attempts": (column("responses", attempts=0), "responses", "attempts counted"),
    "dates in the future": (
        column("responses", few, requested_at="2199-01-01T00:00:00Z"),
        "responses",
        "no later than now",
    ),
    "statuses": (
        column("responses", lambda t: where(t, "status", "truncated"), status="ok"),
        "responses",
        "answers end as their reason says",
    ),
    "served by another model": (replaced("responses", of_another), "figures.audit", "served_model"),
    "first token after the last": (
        column("responses", few, ttft_s=1000.0),
        "responses",
        "time to the first token within latency",
    ),
    "card of other figures": (
        card(lambda text: text.replace("84.7 %", "94.7 %")),
        "README.md",
        "94.7",
    ),
    "card figures exchanged under foreign code": (
        card(accuracies_exchanged, code="0.0.9"),
        "README.md",
        "and the data give",
    ),
    "plots of other labels": (
        other_plots,
        "plots/accuracy.svg",
        "differs from what the tables give",
    ),
    "intervals of nothing": (certificate(no_interval), "certificate", "intervals are not those"),
    "certificate of another verdict": (
        certificate(another_verdict),
        "certificate",
        "by its own figures",
    ),
    "a waiver that the recipe lacks": (
        fact(
            lambda facts: facts["waivers"].append(
                {"gate": "metering", "reason": "nobody metered anything"}
            )
        ),
        "manifest",
        "waivers",
    ),
    "counts of the stages": (
        fact(lambda facts: facts["figures"]["ingest"].update(queries=10_000)),
        "figures",
        "10,000",
    ),
    "sources of fewer questions": (
        fact(lambda facts: facts["sources"][0].update(queries=3)),
        "figures",
        "gave 3 questions",
    ),
    "texts withheld that may be passed on": (hidden, "manifest", "may be passed on"),
    "embeddings that nobody asked for": (
        both(
            fact(lambda facts: facts["recipe"]["release"].update(include_embeddings=False)),
            added(
                "embeddings",
                lambda tables: [
                    {
                        "query_id": tables["queries"].column("query_id")[0].as_py(),
                        "encoder": "x",
                        "vector": [1.0, 0.0],
                    },
                ],
            ),
        ),
        "manifest",
        "include_embeddings",
    ),
    "scores given by nobody": (
        added(
            "verdicts",
            lambda tables: [
                {
                    **{
                        key: tables["responses"].column(key)[0].as_py()
                        for key in ("query_id", "model_id", "sample")
                    },
                    "scorer": "given",
                    "scorer_version": "1",
                    "outcome": "correct",
                    "score": 1.0,
                    "conflict": False,
                    "reason": "",
                    "cost_usd": 0.0,
                },
            ],
        ),
        "verdicts",
        "given",
    ),
}

#: Of preference pairs by semantic entropy.
PAIRS: dict[str, tuple[Lie, str, str]] = {
    "entropies above their clusters": (
        column("entropies", semantic_entropy=9.0),
        "entropies",
        "entropy within its clusters",
    ),
    "winners exchanged": (
        replaced(
            "preferences",
            lambda t: t.set_column(
                t.schema.get_field_index("winner_model_a"),
                t.schema.field("winner_model_a"),
                t.column("winner_model_b"),
            ).set_column(
                t.schema.get_field_index("winner_model_b"),
                t.schema.field("winner_model_b"),
                t.column("winner_model_a"),
            ),
        ),
        "preferences",
        "winners by the entropies",
    ),
    "answers of the pairs": (
        column("preferences", response_a="Something else."),
        "preferences",
        "answers of the pairs",
    ),
    "entropies of the pairs": (
        column("preferences", se_a=lambda se: None if se is None else se + 1, delta=None),
        "preferences",
        "entropies of the pairs",
    ),
}

#: Of an agent's trajectories.
STEPS: dict[str, tuple[Lie, str, str]] = {
    "costs of steps": (
        column("steps", cost_usd=lambda usd: None if usd is None else usd / 10),
        "steps",
        "not below the price table",
    ),
    "costs of trajectories": (
        column("responses", cost_usd=lambda usd: None if usd is None else usd / 10),
        "responses",
        "costs of trajectories",
    ),
}
