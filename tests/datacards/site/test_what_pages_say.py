"""Sentences and figures of the pages that a reader takes for a verdict."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from routeyard.datacards.charts import PAGE, bars
from routeyard.datacards.site.evaluation import EvaluationTables, headline, pair_rows
from routeyard.datacards.site.language import powers, scorer
from routeyard.datacards.site.release import specialised
from routeyard.pipelines.evaluate.sweep import column_metric

POOL = [{"model_id": name} for name in "ab"]


def evaluated(router: float, single: float) -> EvaluationTables:
    """A router and a single model of these accuracies, at the same cost; another model is best."""
    rows = [
        {"router": name, "metric": metric, "split": "test", "value": value,
         "low": None, "high": None}
        for name, accuracy in (("knn", router), ("single:a", single), ("single:b", 0.9))
        for metric, value in (("accuracy", accuracy), ("mean_cost[usd]", 2e-3))
    ]  # fmt: skip
    facts = {"validation": {"knn": 0.8}, "best_single": "a"}
    return EvaluationTables("one", metrics=pa.Table.from_pylist(rows), facts=facts)


def test_the_first_sentence_names_how_its_single_model_was_chosen() -> None:
    told = headline(evaluated(0.75, 0.7), POOL, simulated=False)["sentence"]
    assert "always asking a, best on the train questions, 70.0 %" in told
    told = headline(evaluated(0.7, 0.7), POOL, simulated=False)["sentence"]
    # Both are named: that one which always asks `a` answers as many is no finding.
    assert told.startswith("Routing gains nothing here. knn answers 70.0 %")
    assert "; always asking a, best on the train questions, 70.0 %." in told


@pytest.mark.parametrize(
    ("won", "lost", "models", "sure"),
    [(12, 1, 2, True), (12, 1, 60, False), (30, 4, 60, True), (8, 8, 1, False), (0, 0, 1, False)],
)
def test_a_task_needs_a_specialist_where_chance_does_not_explain_the_lead(
    won: int, lost: int, models: int, sure: bool
) -> None:
    rivals = [{"task": "dates", "model_id": "m0", "won": won, "lost": lost}]
    rivals += [
        {"task": "dates", "model_id": f"m{k}", "won": 3, "lost": 9} for k in range(1, models)
    ]
    assert specialised(rivals) == ({"dates"} if sure else set())


def test_the_best_of_many_equal_models_is_seldom_called_a_specialist() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(200):
        won = rng.binomial(30, 0.25, size=(111, 5))
        lost = rng.binomial(30 - won, 1 / 3)
        wrong += bool(specialised([
            {"task": t, "model_id": m, "won": int(won[m, t]), "lost": int(lost[m, t])}
            for m in range(111) for t in range(5)
        ]))  # fmt: skip
    assert wrong <= 0.05 * 200


def test_all_right_on_five_questions_is_not_certain() -> None:
    row = column_metric("knn", "accuracy", "test", np.ones(5), np.ones(100), "")
    assert (row.value, row.high) == (1.0, 1.0)
    assert row.low == pytest.approx(0.5655, abs=1e-4)
    row = column_metric("knn", "gap_to_oracle", "test", np.zeros(5), np.zeros(100), "")
    assert (row.low, row.high) == (0.0, 0.0)


def test_differences_are_drawn_beside_zero() -> None:
    rows = [{"name": "dates", "value": 8.0}, {"name": "sums", "value": 4.5}]
    signed = bars(
        rows, name="a", title="t", of="task", value="points", form="+.1f", dots=True, look=PAGE
    )
    ranks = bars(rows, name="a", title="t", of="task", value="mean rank", dots=True, look=PAGE)
    zero = re.compile(r">0(\.0)?</text>")
    assert zero.search(signed)
    assert not zero.search(ranks)


def test_code_names_are_put_into_words() -> None:
    assert powers("USD per 10^6 tokens") == "USD per 10⁶ tokens"
    assert (scorer("given"), scorer("numeric")) == ("the source's score", "numeric")
    pair = {"first": "a", "second": "b", "metric": "audc[usd]", "difference": 0.1, "low": None,
            "high": None, "p_adjusted": 0.2, "significant": False}  # fmt: skip
    assert pair_rows([pair])[0][2] == "area under the curve (AUDC): USD"
    assert pair_rows([{**pair, "metric": "odd[usd]"}])[0][2] == "odd[usd]"
    said = {name: pair_rows([{**pair, "metric": f"mcnemar[{name}]"}])[0][2]
            for name in ("accuracy", "params")}  # fmt: skip
    assert said["accuracy"] == "questions right (McNemar)"
    assert said["params"].endswith("mean cost (McNemar): parameters")
