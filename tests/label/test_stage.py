"""Rule scorers over stored responses."""

from __future__ import annotations

import json
import os
from typing import Any

import pyarrow as pa
import pytest

from routeyard.pipelines.common.errors import BadInput, UnknownName, Unsafe
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput
from routeyard.schemas import QUERIES, RESPONSES
from tests.support.label_tables import answer, question


def _read(asked: ScoringInput, output: str) -> ScoreResult:
    if output == "raise":
        raise ValueError("no")
    if output == "die":
        os._exit(7)
    if output == "refuse":
        raise Unsafe("not here")
    if output == "nonsense":
        return ScoreResult("correct", score=7.0)
    if output == "pid":
        return ScoreResult("correct", 1.0, str(os.getpid()))
    at = output.find("=")
    if at < 0:
        return ScoreResult("abstain", reason="no sign")
    answer = output[at + 1 :]
    right = answer in asked.references
    return ScoreResult(
        "correct" if right else "incorrect", float(right), answer, (at + 1, len(output))
    )


SIGN = Scorer("sign", "3", _read)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = {**SCORERS.targets, "sign": f"{__name__}:SIGN"}
    monkeypatch.setitem(SCORERS.__dict__, "targets", targets)


def queries(n: int = 3, scorer: str = "sign") -> pa.Table:
    return QUERIES.from_rows(
        question(i, question="?", scorer=scorer, metadata=json.dumps({"i": i})) for i in range(n)
    )


def responses(*rows: dict[str, Any]) -> pa.Table:
    return RESPONSES.from_rows(
        answer(row.get("q", 0)) | {"text": "=0"} | {k: v for k, v in row.items() if k != "q"}
        for row in rows
    )


def outcomes(table: pa.Table) -> list[str]:
    return table.column("outcome").to_pylist()


def test_reads_each_response_against_its_own_query() -> None:
    filed = file_verdicts(
        queries(),
        responses({"q": 2, "text": "x=2"}, {"q": 0, "text": "x=2"}, {"q": 1, "text": "nothing"}),
    )
    assert outcomes(filed) == ["correct", "incorrect", "abstain"]
    first = filed.to_pylist()[0]
    assert (first["scorer"], first["scorer_version"], first["cost_usd"]) == ("sign", "3", 0.0)
    assert (first["extracted"], first["span_start"], first["span_end"]) == ("2", 2, 3)


def test_status_decides_what_is_read() -> None:
    filed = file_verdicts(
        queries(),
        responses(
            {"sample": 0, "status": "error", "text": None},
            # trap: a truncated answer may still hold the answer
            {"sample": 1, "status": "truncated", "text": "so =0"},
            {"sample": 2, "status": "refused", "text": "I cannot help"},
            {"sample": 3, "status": "truncated", "text": None},
        ),
    )
    assert filed.column("sample").to_pylist() == [1, 2, 3]
    assert outcomes(filed) == ["correct", "abstain", "abstain"]


def test_a_run_with_its_own_references_is_read_against_them() -> None:
    filed = file_verdicts(
        queries(),
        responses(
            {"model_id": "a", "text": "=9", "graded_against": ["9"]},
            {"model_id": "b", "text": "=9"},
        ),
    )
    assert outcomes(filed) == ["correct", "incorrect"]


def test_a_run_of_another_revision_is_read_by_its_letters() -> None:
    # Trap: upstream revised the options; the letter the run was graded against is none of ours.
    row = queries().to_pylist()[0] | {"choices": ["only one"], "references": ["A"], "scorer": "mcq"}
    filed = file_verdicts(
        QUERIES.from_rows([row]),
        responses(
            {"model_id": "a", "text": "The answer is (C).", "graded_against": ["C"]},
            {"model_id": "b", "text": "The answer is (A)."},
        ),
    )
    assert outcomes(filed) == ["correct", "correct"]


def test_a_failing_scorer_costs_one_row_and_is_never_a_verdict() -> None:
    rows = [{"sample": i, "text": text} for i, text in enumerate(["=0", "raise", "nonsense", "=0"])]
    filed = file_verdicts(queries(), responses(*rows))
    assert outcomes(filed) == ["correct", "error", "error", "correct"]
    assert filed.column("score").to_pylist() == [1.0, None, None, 1.0]
    assert filed.column("reason").to_pylist()[1] == "ValueError: no"


def test_a_refusal_to_run_stops_the_stage() -> None:
    # 164 error verdicts would hide that nothing was run at all
    with pytest.raises(Unsafe):
        file_verdicts(queries(), responses({"text": "refuse"}))


def test_a_stored_score_is_filed_beside_the_regrade() -> None:
    filed = file_verdicts(
        queries(),
        responses(
            {"model_id": "both", "text": "=1", "given_score": 1.0},
            {"model_id": "only", "text": None, "given_score": 0.25},
        ),
    )
    found = {(r["model_id"], r["scorer"]): (r["outcome"], r["score"]) for r in filed.to_pylist()}
    assert found == {
        ("both", "sign"): ("incorrect", 0.0),
        ("both", "given"): ("correct", 1.0),
        ("only", "given"): ("incorrect", 0.25),
    }


@pytest.mark.parametrize("scorer", ["none", "judge:j", "xverify:v"])
def test_queries_without_a_rule_get_no_rule_verdict(scorer: str) -> None:
    assert file_verdicts(queries(scorer=scorer), responses({})).num_rows == 0


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownName):
        file_verdicts(queries(scorer="numerik"), responses({}))
    with pytest.raises(BadInput):
        file_verdicts(queries(), responses({"q": 77}))
