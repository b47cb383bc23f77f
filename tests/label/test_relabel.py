"""Relabelling says what changed, exactly; nothing but rules runs again."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import changes, file_verdicts, keep_others
from routeyard.pipelines.label.scorers import SCORERS, numeric
from routeyard.pipelines.label.scorers.scorer import ScoreResult, ScoringInput
from routeyard.schemas import VERDICTS
from tests.support.label_tables import qid, queries, responses, verdict

TEXTS: dict[str, list[str | None]] = {
    "a": ["answer is 0", "answer is 1", "answer is 2", "answer is 9"],
    "b": ["answer is 0", "answer is 9", "answer is 9", "answer is 9"],
    "c": ["answer is 0", "answer is 1", "answer is 9", None],
}


def _human(outcome: str) -> pa.Table:
    return VERDICTS.from_rows([verdict(0, "human:ada", outcome, model_id="a")])


def test_a_scorer_change_reports_exactly_the_labels_that_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, texts = queries([str(i) for i in range(4)]), responses(TEXTS)
    stored = pa.concat_tables([file_verdicts(asked, texts), _human("correct")])
    before = decide(asked, texts, stored)
    assert changes(asked, before, before).figures == {
        "labels": 0,
        "flipped": 0,
        "model_ranks": 0,
        "task_ranks": 0,
    }

    # the deliberate change: 9 is now taken for 2
    def lenient(about: ScoringInput, output: str) -> ScoreResult:
        return numeric.read(about, output.replace("9", "2"))

    changed = replace(numeric.SCORER, version="999", read=lenient)
    monkeypatch.setattr(numeric, "SCORER", changed)
    assert SCORERS.get("numeric").version == "999"
    verdicts = keep_others(stored, file_verdicts(asked, texts))
    assert set(verdicts["scorer"].to_pylist()) == {"numeric", "human:ada"}
    found = changes(asked, before, decide(asked, texts, verdicts))
    moved = [(row["query_id"], row["model_id"]) for row in found.labels.to_pylist()]
    assert moved == [(qid(2), "b"), (qid(2), "c")]
    assert {row["correct_before"] for row in found.labels.to_pylist()} == {False}
    ranks = {r["model_id"]: (r["rank_before"], r["rank_after"]) for r in found.models.to_pylist()}
    # c: 2 of 3 readable calls right before, 3 of 3 now; a keeps 3 of 4
    assert ranks == {"a": (1, 2), "b": (3, 3), "c": (2, 1)}
    assert found.figures["labels"] == found.figures["flipped"] == 2


def test_a_persons_decision_changes_one_label() -> None:
    asked, texts = queries(["0", "1", "2", "3"]), responses(TEXTS)
    stored = file_verdicts(asked, texts)
    before = decide(asked, texts, stored)
    after = decide(asked, texts, keep_others(_human("incorrect"), stored))
    (row,) = changes(asked, before, after).labels.to_pylist()
    assert (row["model_id"], row["decided_by_after"], row["score_after"]) == ("a", "human:ada", 0.0)
