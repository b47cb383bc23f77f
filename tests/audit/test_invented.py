"""Scores and costs that nobody measured, put into a recording whose arms share hard questions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.audit.planted import ARMS, SUITES, Columns, audited, honest, kinds, large, of, planted


def table(columns: Columns, without: str) -> np.ndarray:
    """(arms, questions) scores of the other arms."""
    return np.stack([columns["score"][of(columns, arm)] for arm in ARMS if arm != without])


def best_of_all(columns: Columns) -> None:
    columns["score"][of(columns, "ember")] = table(columns, "ember").max(axis=0)


def majority_of_all(columns: Columns) -> None:
    columns["score"][of(columns, "ember")] = (table(columns, "ember").mean(axis=0) > 0.5) * 1.0


def worst_of_all(columns: Columns) -> None:
    columns["score"][of(columns, "ember")] = table(columns, "ember").min(axis=0)


def means_of_a_cell(columns: Columns) -> None:
    rows = of(columns, "birch", "chess")
    columns["score"][rows] = columns["score"][rows].mean()


def halves_for_missing(columns: Columns) -> None:
    rows = np.random.default_rng(3).choice(of(columns, "birch", "chess"), 30, replace=False)
    columns["score"][rows] = 0.5


def labels_of_a_suite_at_random(columns: Columns) -> None:
    for k, arm in enumerate(ARMS):
        rows = of(columns, arm, "drama")
        columns["score"][rows] = np.random.default_rng(k).permutation(columns["score"][rows])


def all_labels_at_random(columns: Columns) -> None:
    for k, arm in enumerate(ARMS):
        rows = of(columns, arm)
        columns["score"][rows] = np.random.default_rng(k).permutation(columns["score"][rows])


def suite_spelled_otherwise(columns: Columns) -> None:
    rows = np.concatenate([of(columns, arm, "chess") for arm in ARMS[:3]])
    columns["suite"][rows] = "Chess "


@pytest.mark.parametrize(
    ("kind", "plant", "about", "says"),
    [
        ("made_of_others", best_of_all, "ember", "is the best of the other arms'"),
        ("made_of_others", majority_of_all, "ember", "is the majority of the other arms'"),
        ("made_of_others", worst_of_all, "ember", "is the worst of the other arms'"),
        ("filled_score", means_of_a_cell, "birch on chess", "of all 300 answers"),
        ("filled_score", halves_for_missing, "birch on chess", "30 of 300 scores are 0.5"),
        ("scores_at_random", labels_of_a_suite_at_random, "drama", "on the other suites"),
        ("scores_at_random", all_labels_at_random, "algebra", "labels at random"),
        ("one_suite_two_names", suite_spelled_otherwise, "'Chess ', 'chess'", "spellings"),
    ],
)
def test_scores_that_no_grader_gave_are_named(
    kind: str, plant: Callable[[Columns], None], about: str, says: str
) -> None:
    planted(plant, kind, about, says)


def test_every_suite_of_a_recording_at_random_is_named() -> None:
    columns = large()
    all_labels_at_random(columns)
    assert kinds(audited(columns))["scores_at_random"] == {*SUITES}


def test_costs_that_only_rise_are_a_running_total() -> None:
    columns = honest()
    rows = of(columns, "copper")
    columns["cost_usd"][rows] = np.cumsum(columns["cost_usd"][rows])
    assert "copper" in kinds(audited(columns))["running_total"]


def test_costs_at_an_old_price_and_a_new_one_are_named() -> None:
    columns = honest()
    columns["cost_usd"][of(columns, "delta")[:140]] *= 2.5
    found = audited(columns)
    assert "delta" in kinds(found)["price_mismatch"]
    assert "at two prices" in " ".join(one.says for one in found.findings)


def test_prompts_that_open_with_worked_examples_are_noted() -> None:
    columns = honest()
    examples = "Q: 2 + 2? A: 4\n" * 20
    here = columns["suite"] == "chess"
    columns["prompt"][here] = [examples + text for text in columns["prompt"][here]]
    found = [one for one in audited(columns).findings if one.kind == "same_opening"]
    assert [(one.about, one.severity) for one in found] == [("chess", "note")]
    assert "open with the same 3" in found[0].says
