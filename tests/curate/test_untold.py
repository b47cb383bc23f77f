"""What rules do without being told, and under which names they report it: recipes and cards rely
on both, and no other test would notice a change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from routeyard.pipelines.curate.dedup import dedup, join
from routeyard.pipelines.curate.prune import prune
from routeyard.pipelines.curate.pseudo_specialists import pseudo_specialists
from routeyard.pipelines.curate.search import near_duplicate_pairs
from routeyard.pipelines.curate.split import out_of_distribution
from tests.curate.test_split import places
from tests.curate.test_tasks import POOL, matrix, specialist_scores

LONG = "word " * 300


@pytest.fixture
def cut(make_queries: Any, make_embeddings: Any, qid: Any) -> dict[str, Any]:
    """Two questions with one passage, of which the encoder read no more."""
    rows = [{"name": n, "question": f"{LONG}{ask}"} for n, ask in (("a", "won?"), ("b", "lost?"))]
    vectors = np.ones((2, 3), dtype=np.float32)
    return {
        "queries": make_queries(rows),
        "embeddings": make_embeddings([qid("a"), qid("b")], vectors, [1000, 1000]),
    }


def test_unread_ends_are_compared_unless_told_otherwise(cut: dict[str, Any]) -> None:
    assert len(dedup(cut).removed) == 0
    assert len(dedup(cut, compare_unseen=False).removed) == 1
    assert dedup(cut).figures["truncated"] == 2
    pairs = near_duplicate_pairs(np.ones((2, 3), dtype=np.float32), 0.999)
    assert join(pairs, [LONG + "won?", LONG + "lost?"], [1000, 1000]).pairs_counted == 0


def test_every_query_counts_the_same_unless_tasks_are_to() -> None:
    # By query "many" is the generalist, by task "few" is.
    pool = matrix({"few": "11000000", "many": "00111110"}, "aabbbbbb")
    costs = {"few": 1.0, "many": 1.0}
    assert specialist_scores(pool, costs).generalists == ["many"]
    assert specialist_scores(pool, costs, weighting="task").generalists == ["few"]


def test_budgets_that_are_named_are_the_ones_used() -> None:
    costs = {"cheap": 1.0, "general": 2.0, "special": 3.0}
    assert specialist_scores(POOL, costs, budgets=[2.5]).budgets == [2.5]


def test_a_task_no_other_affordable_model_was_labelled_on_has_no_gain() -> None:
    pool = matrix({"best": "1111", "rest": "10.."}, "aabb")
    score = specialist_scores(pool, {"best": 1.0, "rest": 1.0}).score
    assert score[0] == pytest.approx(-0.5)
    assert np.isnan(score[1])


def test_another_seed_draws_another_validation(make_queries: Any) -> None:
    rows = [{"name": str(i), "task": "gsm8k" if i % 2 else "other"} for i in range(200)]
    tables = {"queries": make_queries(rows)}
    drawn = [
        places(
            out_of_distribution(tables, groups={"g": ["gsm8k"]}, seed=s).added["splits"], "ood:g"
        )
        for s in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_figures_have_the_names_that_cards_print(
    make_queries: Any, make_models: Any, make_labels: Any, qid: Any
) -> None:
    bits = {"good": "1111", "twin": "1101", "poor": "1000"}
    tables = {
        "queries": make_queries([{"name": str(i), "task": f"t{i % 2}"} for i in range(4)]),
        "models": make_models(sorted(bits)),
        "labels": make_labels(
            [(qid(str(i)), m, said[i] == "1") for m, said in bits.items() for i in range(4)]
        ),
    }
    (step,) = prune(tables, trade_off=0.5, target=2).figures["order"]
    assert set(step) == {"model_id", "score", "accuracy", "mean_similarity"}
    (injected,) = pseudo_specialists(tables, tasks=["t0"]).figures["injected"]
    assert injected == {
        "model_id": "pseudo-specialist:t0",
        "task": "t0",
        "accuracy": 1.0,
        "best_real": 1.0,
        "queries": 2,
    }
    held = out_of_distribution(tables, groups={"g": ["t0"]}).figures["g"]
    assert held == {"test": 2, "left_out_as_duplicates": 0}


def test_a_model_without_labels_on_a_task_does_not_count_in_its_mean(
    make_queries: Any, make_models: Any, make_labels: Any, qid: Any
) -> None:
    bits = {"everywhere": "1010", "on t0 only": "1.1."}
    told = [
        (qid(str(i)), m, b == "1") for m, s in bits.items() for i, b in enumerate(s) if b != "."
    ]
    tables = {
        "queries": make_queries([{"name": str(i), "task": f"t{i % 2}"} for i in range(4)]),
        "models": make_models(sorted(bits)),
        "labels": make_labels(told),
    }
    made = pseudo_specialists(tables, tasks=["t0"]).added["labels"].to_pylist()
    right = {r["query_id"]: r["correct"] for r in made if r["model_id"].startswith("pseudo")}
    assert [right[qid(str(i))] for i in range(4)] == [True, False, True, False]
