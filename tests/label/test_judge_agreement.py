"""Agreement figures by hand, and AlpacaEval's published win rates."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import BadInput
from pipelines.label.audit.agreement import cohen_kappa, krippendorff_alpha
from pipelines.label.preference import verdicts_from_preferences, win_rates

NAN = float("nan")


def test_cohen_by_hand() -> None:
    # Cohen's own form: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o 0.7, p_e 0.5
    a = ["y"] * 25 + ["n"] * 25
    b = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    assert cohen_kappa(a, b) == pytest.approx(0.4)
    assert cohen_kappa([1, 0, None], [1, 0, 1]) == 1
    assert np.isnan(cohen_kappa([], []))
    # trap: two judges that always say yes agree by chance alone
    assert np.isnan(cohen_kappa([1, 1], [1, 1]))


def test_krippendorff_by_hand() -> None:
    # four raters, twelve units, the worked example of Krippendorff (2011)
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    assert krippendorff_alpha(ratings) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(ratings, level="interval") == pytest.approx(0.849, abs=5e-4)
    assert np.isnan(krippendorff_alpha([[1, NAN], [NAN, 1]]))


def preferences(*values: float | None) -> pa.Table:
    n = range(len(values))
    return pa.table(
        {
            "query_id": [f"q{i:020x}" for i in n],
            "model_id": ["m"] * len(values),
            "preference": pa.array(values, pa.float64()),
        }
    )


def test_preferences_become_verdicts() -> None:
    table = verdicts_from_preferences(preferences(1.0, 1.5, 2.0, None), judge="a")
    assert table["outcome"].to_pylist() == ["incorrect", "correct", "correct", "error"]
    assert table["score"].to_pylist() == [0.0, 0.5, 1.0, None]
    (row,) = win_rates(table).to_pylist()
    # the missing annotation counts neither for nor against
    assert (row["win_rate"], row["n"]) == (50.0, 3)
    assert row["standard_error"] == pytest.approx(100 * 0.5 / 3**0.5)
    with pytest.raises(BadInput):
        verdicts_from_preferences(preferences(0.0), judge="a")


@pytest.mark.data
def test_alpaca_eval_win_rates_are_reproduced(data: Path) -> None:
    folder = data / "alpaca_eval"
    raw = pq.read_table(folder / "annotations.parquet")
    # the instruction alone does not say which annotation: one text stands in two datasets
    keys = [
        f"{dataset}|{instruction}"
        for dataset, instruction in zip(
            raw["dataset"].to_pylist(), raw["instruction_id"].to_pylist(), strict=True
        )
    ]
    annotations = pa.table(
        {"query_id": keys, "model_id": raw["model"], "preference": raw["preference"]}
    )
    verdicts = verdicts_from_preferences(annotations, judge="weighted_alpaca_eval_gpt4_turbo")
    found = {row["model_id"]: row for row in win_rates(verdicts).to_pylist()}
    with open(folder / "leaderboard.csv") as file:
        published = list(csv.DictReader(file))
    assert len(published) == 28
    for row in published:
        ours = found[row[next(iter(row))]]
        assert ours["win_rate"] == pytest.approx(float(row["win_rate"]), abs=5e-4)
        assert ours["standard_error"] == pytest.approx(float(row["standard_error"]), abs=5e-4)
        assert ours["n"] == int(row["n_total"])
