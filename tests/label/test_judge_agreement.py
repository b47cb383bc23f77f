"""Agreement figures by hand."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

from routeyard.pipelines.audit.labels import audit, cohen_kappa
from routeyard.pipelines.label.policies import decide
from routeyard.schemas import VERDICTS
from tests.support.label_tables import qid, queries, responses


def test_cohen_by_hand() -> None:
    # Cohen's own form: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o 0.7, p_e 0.5
    assert cohen_kappa(20, 5, 10, 15) == pytest.approx(0.4)
    assert cohen_kappa(1, 0, 0, 1) == 1
    assert cohen_kappa(0, 0, 0, 0) is None
    # trap: two judges that always say yes agree by chance alone
    assert cohen_kappa(2, 0, 0, 0) is None


def test_krippendorff_of_two_values_by_hand() -> None:
    # two observers, ten units, the worked example of Krippendorff (2011), section B
    said = {"judge:meg": "0100000010", "judge:owen": "1110010000"}
    asked = queries(["1"] * 22)
    texts = responses({"m": ["Answer: 1"] * 22})
    rows: list[dict[str, Any]] = [
        {"query_id": qid(2 * i), "model_id": "m", "sample": 0, "scorer": scorer,
         "scorer_version": "1", "outcome": "correct" if one == "1" else "incorrect",
         "score": float(one), "conflict": False, "reason": ""}
        for scorer, ratings in said.items()
        for i, one in enumerate(ratings)
    ]  # fmt: skip
    # trap: an abstention is no rating, and a unit with one rating says nothing of agreement
    more = {"query_id": qid(20), "outcome": "correct", "score": 1.0}
    rows += [rows[0] | more, rows[-1] | more | {"outcome": "abstain", "score": None}]
    verdicts = VERDICTS.from_rows(rows)
    found = audit(asked, texts, verdicts, decide(asked, texts, verdicts))
    (pair,) = found.tables["agreement"].to_pylist()
    assert pair["alpha_all"] == pytest.approx(0.095, abs=5e-4)
    assert (pair["n"], pair["agree"]) == (10, 0.6)
    same = verdicts.filter(pc.equal(verdicts["outcome"], "correct"))
    (pair,) = audit(asked, texts, same, decide(asked, texts, same)).tables["agreement"].to_pylist()
    assert (pair["agree"], pair["alpha_all"], pair["kappa"]) == (1.0, None, None)
