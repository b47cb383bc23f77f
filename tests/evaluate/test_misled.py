"""Preferences that name the wrong model train no router."""

from __future__ import annotations

import pyarrow as pa

from routeyard.flows.evaluation.evaluate import pair_scorers
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.run.fitted import duels_agreement as agreement


def preferences(core: Core, *, wrong: bool, n: int = 40) -> pa.Table:
    """Records of train questions on which one of two models alone is right, and of test ones."""
    rows = []
    for split, number in (("train", n), ("test", 5)):
        told = [row for row in core.rows("dense", split) if core.decided[row, :2].sum() == 1]
        for row in told[:number]:
            first = bool(core.decided[row, 0] == 1) is not (wrong or split == "test")
            rows.append(
                {
                    "query_id": core.query_ids[row], "basis": "semantic_entropy",
                    "model_a": core.model_ids[0], "model_b": core.model_ids[1],
                    "winner_model_a": first, "winner_model_b": not first, "winner_tie": False,
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows)


def test_only_train_records_in_which_one_model_is_right_are_counted(core: Core) -> None:
    assert agreement(core, "dense", preferences(core, wrong=False)) == (40, 40)
    assert agreement(core, "dense", preferences(core, wrong=True, n=5)) == (0, 5)
    tied = preferences(core, wrong=False).set_column(6, "winner_tie", pa.array([True] * 45))
    assert agreement(core, "dense", tied) == (0, 0)


def test_no_router_learns_from_preferences_worse_than_chance(core: Core, capsys) -> None:
    pair = (core.model_ids[0], core.model_ids[1])
    bad, good = (preferences(core, wrong=wrong) for wrong in (True, False))
    assert pair_scorers(core, {"preferences": bad}, "dense", pair) == {}
    said = capsys.readouterr()
    assert "0 of 40 records in which one alone is right" in said.out + said.err
    assert "pair-knn[semantic_entropy]" in pair_scorers(core, {"preferences": good}, "dense", pair)
