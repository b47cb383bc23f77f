"""What somebody with DuckDB alone sees of a release that contradicts itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.release.build import write_release
from routeyard.pipelines.release.checks import release_checks
from routeyard.pipelines.release.tables import IN_DATABASE
from routeyard.pipelines.verify.prove import verify
from routeyard.schemas import CONTRACTS
from routeyard.schemas.release import WITHHELD
from tests.faults.test_releases import CORRUPTIONS, database
from tests.faults.test_releases import written as written_file
from tests.release.alone import shown
from tests.support import small_release as small
from tests.support.sampled import some, together
from tests.support.sound_release import verify_release

#: What a build of the tiny release would have stated.
FIGURES: dict[str, Any] = {
    "ingest": {"queries": 6, "removed": 0},
    "pool": {"models": 3},
    "collect": {"responses": 17},
    "label": {"labels": 17, "undecided": 0, "verdicts": 17},
    "curate": {
        "rules": [
            {"rule": "prune", "parameters": {"share": 0.5}, "figures": {},
             "before": {"queries": 6, "models": 3}, "after": {"queries": 6, "models": 3}}
        ]
    },
}  # fmt: skip
RECIPE = {**small.RECIPE, "curate": [{"rule": "prune", "parameters": {"share": 0.5}}]}

Lie = Callable[[dict[str, Any]], Any]


def row(table: str, number: int, **values: Any) -> Lie:
    """Other values in one row of a table."""
    return lambda told: told[table][number].update(values)


def rows(table: str, **values: Any) -> Lie:
    return lambda told: [one.update(values) for one in told[table]]


def stated(change: Callable[[dict[str, Any]], Any]) -> Lie:
    return lambda told: change(told["figures"])


def source(**values: Any) -> Lie:
    return lambda told: told["sources"][0].update(values)


def duplicate(number: int) -> dict[str, Any]:
    """A representative of the group of the first question."""
    return {
        "query_id": small.qid(number), "group_id": small.qid(0), "encoder": "tfidf",
        "threshold": 0.9, "similarity": 1.0, "representative": True, "label_conflict": True,
    }  # fmt: skip


REMOVED = {"stage": "curate.prune", "entity": "query", "reason": "easy", "detail": "All are right."}
#: What was invented → how, and the check that shows it.
INVENTED: dict[str, tuple[Lie, str]] = {
    "a right answer that scores 0": (
        row("labels", 0, score=0.0),
        "whole_scores_of_labels_agree_with_correct"),
    "labels that no verdict gives": (
        rows("labels", score=1.0, correct=True), "labels_have_verdicts"),
    "a label of a real model, said to be injected": (
        row("labels", 3, decided_by="pseudo_specialist"), "injected_marked"),
    "an injected model with labels of a scorer": (
        row("models", 2, kind="pseudo_specialist"), "injected_marked"),
    "more samples than answers": (row("labels", 12, n_samples=9), "labels_have_responses"),
    "a right answer that nobody could read": (
        row("labels", 6, decided_by="unreadable"), "unreadable_labels"),
    "a right answer that was refused": (
        row("labels", 9, decided_by="refused"), "labels_without_a_reading"),
    "a question that was removed, and is there": (
        lambda told: told["removals"].append({**REMOVED, "key": small.qid(0)}),
        "removed_questions_are_gone"),
    "a model that was removed, and is there": (
        lambda told: told["removals"].append({**REMOVED, "entity": "model", "key": "m1"}),
        "removed_models_are_gone"),
    "a removal that no rule counts": (
        lambda told: told["removals"].append({**REMOVED, "key": "q" + "f" * 20}), "rules_chained"),
    "more questions read than there are": (
        stated(lambda f: f["ingest"].update(queries=9)), "questions_and_models_counted"),
    "more models in the pool": (
        stated(lambda f: f["pool"].update(models=5)), "questions_and_models_counted"),
    "more answers collected": (
        stated(lambda f: f["collect"].update(responses=20)), "responses_counted"),
    "more labels made": (stated(lambda f: f["label"].update(labels=18)), "labels_counted"),
    "more verdicts filed": (
        stated(lambda f: f["label"].update(verdicts=18)), "verdicts_counted"),
    "labels left undecided": (
        stated(lambda f: f["label"].update(undecided=2)), "undecided_counted"),
    "a rule with another threshold": (
        stated(lambda f: f["curate"]["rules"][0]["parameters"].update(share=0.9)),
        "rules_of_recipe"),
    "a rule that the recipe lacks": (
        stated(lambda f: f["curate"]["rules"][0].update(rule="easy")), "rules_of_recipe"),
    "a rule that was given fewer questions": (
        stated(lambda f: f["curate"]["rules"][0]["after"].update(queries=5)), "rules_chained"),
    "two questions that both represent their group": (
        lambda told: told.update(duplicates=[duplicate(0), duplicate(1)]),
        "one_representative_for_each_group"),
    "a near-duplicate that is not near": (
        lambda told: told.update(
            duplicates=[duplicate(0), {**duplicate(1), "similarity": 0.2, "representative": False}]
        ),
        "similar_as_far_as_the_threshold_says"),
    "questions of a source that nobody lists": (
        source(source="algebra", queries=6), "questions_of_sources"),
    "more questions than a source gave": (source(queries=2), "questions_of_sources"),
    "text that is kept back though it may be passed on": (
        row("queries", 0, question=WITHHELD), "licences_kept"),
    "a cost that tokens and prices do not give": (
        row("responses", 0, cost_source="price_table", cost_usd=0.5), "costs_by_the_price_table"),
    "fewer tokens than none": (row("responses", 1, prompt_tokens=-5), "token_counts_not_negative"),
    "an answer that ended at its limit": (
        row("responses", 2, finish_reason="length"), "answers_end_as_their_reason_says"),
}  # fmt: skip


def written(root: Path, lie: Lie | None = None) -> Path:
    """The tiny release with figures of a build, sealed with a lie in it."""
    told: dict[str, Any] = {name: rows.to_pylist() for name, rows in small.tiny_tables().items()}
    told |= {"removals": told.get("removals", []), "figures": _copy(FIGURES)}
    told["sources"] = [{**one, "queries": 6} for one in small.SOURCES]
    if lie is not None:
        lie(told)
    tables = {name: CONTRACTS[name].from_rows(rows) for name, rows in told.items()
              if name in CONTRACTS}  # fmt: skip
    made = write_release(
        tables, recipe=RECIPE, root=root, render_card=render,
        sources=told["sources"], figures=told["figures"],
    )  # fmt: skip
    return made.path


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list) else value


def test_an_honest_release_shows_nothing(tmp_path: Path) -> None:
    assert shown(written(tmp_path)) == {}
    assert len(release_checks(IN_DATABASE)) >= 12
    assert len(INVENTED) >= 25


#: Figures that a question or model removed in the same release would explain.
COUNTED = (
    "more questions read than there are", "more answers collected", "more labels made",
    "more verdicts filed", "labels left undecided", "a rule with another threshold",
)  # fmt: skip


@pytest.mark.parametrize("names", together(INVENTED, 3, lambda one: one[1], apart=[COUNTED]))
def test_an_invented_release_shows_and_verify_names_it(tmp_path: Path, names: list[str]) -> None:
    def lie(told: dict[str, Any]) -> None:
        for name in names:
            INVENTED[name][0](told)

    release = written(tmp_path, lie)
    checks = {INVENTED[name][1] for name in names}
    assert {one.rpartition(": ")[2] for one in shown(release)} >= checks
    findings = "\n".join(map(str, verify(release, render_card=render).findings))
    says = {one.name: one.says for one in release_checks([*CONTRACTS])}
    assert [check for check in checks if says[check] not in findings] == []


#: Corruptions of `tests.faults` that change a table of the database or a file of one.
OF_TABLES = (
    "a row changed", "a row gone", "a table gone", "a table for a view over a secret",
    "a table for a view over itself", "a view of the release changed", "a default that computes",
    "a column added", "a column renamed", "rows without end in the database",
    "a table that unfolds to gigabytes", "scores lowered", "a parent gone", "rows repeated",
    "rows in another order", "a column gone", "a Parquet of noise", "an empty Parquet",
    "statistics that hide rows", "a table that Arrow reads and DuckDB does not",
)  # fmt: skip


#: These change no answer of a table that is read as a whole.
HARMLESS = (
    "a table for a view over itself", "rows in another order", "statistics that hide rows",
)  # fmt: skip


@pytest.mark.parametrize("name", some(OF_TABLES, 4))
def test_a_corrupted_table_shows_if_it_changes_an_answer(release: Path, name: str) -> None:
    CORRUPTIONS[name][1](release)
    assert bool(shown(release)) == (name not in HARMLESS)


def checks_changed(release: Path) -> None:
    """A check of the files that finds nothing any more, sealed."""
    path = release / "checks.sql"
    written_file("checks.sql", path.read_text().replace("HAVING count(*) > 1", "HAVING false"))(
        release
    )


def test_checks_that_a_release_changed_are_found(release: Path) -> None:
    checks_changed(release)
    database(
        "CREATE OR REPLACE VIEW checks.labels_keys AS SELECT 1 LIMIT 0",
        "CREATE OR REPLACE MACRO hardest(n := 9) AS TABLE SELECT n",
    )(release)
    said = "\n".join(map(str, verify_release(release, render_card=render)))
    assert "checks.sql: is not the text of the checks" in said
    assert "its view 'checks.labels_keys' is not what a release defines" in said
    assert "its macro 'main.hardest' is not what a release defines" in said


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE numbered.per_model SET cost_usd = cost_usd / 10", "sums_per_model_agree"),
        ("UPDATE numbered.per_model SET correct = correct + 9", "sums_per_model_agree"),
        ("UPDATE numbered.metered SET known_cost_usd = known_cost_usd / 10",
         "sums_per_model_agree"),
        ("UPDATE numbered.cheapest SET queries = queries + 9", "sums_per_model_agree"),
        ("UPDATE numbered.splits SET split = CASE split WHEN 'train' THEN 'test' ELSE 'train' END",
         "card_splits"),
    ],
)  # fmt: skip
def test_sums_of_a_database_contradict_each_other(
    release: Path, statement: str, check: str
) -> None:
    database(statement)(release)
    assert check in {one.rpartition(": ")[2] for one in shown(release)}


def test_figures_that_a_database_states_otherwise_are_found(release: Path) -> None:
    statements = "UPDATE stated.counts SET n = 7 WHERE name = 'labels'", "DELETE FROM stated.card"
    database(*statements)(release)
    said = "\n".join(map(str, verify_release(release, render_card=render)))
    assert "its table stated.card has 0 rows, expected 94" in said
    assert "its table stated.counts is not that of manifest and card: row 3 has n 7" in said
