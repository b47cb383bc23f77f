"""Figure 4 on planted trajectories: what was seen on the way tells when to hand over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.evaluation.evaluate import reference
from routeyard.papers.triple_perspective.studies import choices_of, relays, states
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import StudyContext, check
from routeyard.schemas import LABELS, MODELS, QUERIES, RESPONSES, SPLITS, STEPS

N = 400
MEMBERS = ("large", "over-1", "small")


def tables(*, told: bool, seed: int = 0) -> dict[str, pa.Table]:
    """The small model is right where its first search found the question's words, if `told`.

    Handing over after the first step is always right and costs 6; small alone costs 2, large 10.
    """
    draw = np.random.default_rng(seed)
    ids = [f"q{k:020x}" for k in range(N)]
    right = draw.random(N) < 0.5
    seen = right if told else draw.random(N) < 0.5
    cost = {"small": 2.0, "over-1": 6.0, "large": 10.0}
    queries, labels, responses, steps = [], [], [], []
    for k, query in enumerate(ids):
        text = f"alpha{k} beta{k} gamma{k}"
        queries.append(
            {
                "query_id": query, "source": "s", "source_id": query, "task": "t",
                "domain": "general", "question": text, "prompt": text, "choices": [],
                "references": ["1"], "scorer": "em", "metadata": "{}",
            }
        )  # fmt: skip
        for member in MEMBERS:
            good = bool(right[k]) if member == "small" else True
            labels.append(
                {
                    "query_id": query, "model_id": member, "score": float(good), "correct": good,
                    "decided_by": "em", "contested": False, "n_samples": 1,
                }
            )  # fmt: skip
            responses.append(
                {
                    "query_id": query, "model_id": member, "sample": 0, "text": "1",
                    "status": "ok", "attempts": 2, "cost_usd": cost[member],
                    "cost_source": "price_table",
                }
            )  # fmt: skip
            for number in range(2):
                actor = "large" if member == "large" or (member == "over-1" and number) else "small"
                found = [text if seen[k] and not number else "nothing of it"]
                steps.append(step(query, member, number, actor, [] if number else found))
    parts = ["train", "test"]
    return {
        "queries": QUERIES.from_rows(queries),
        "models": MODELS.from_rows(
            {"model_id": m, "kind": "real", "simulated": True} for m in MEMBERS
        ),
        "labels": LABELS.from_rows(labels),
        "responses": RESPONSES.from_rows(responses),
        "steps": STEPS.from_rows(steps),
        "splits": SPLITS.from_rows(
            {"scheme": "dense", "query_id": q, "split": parts[k % 2]} for k, q in enumerate(ids)
        ),
    }


def step(query: str, member: str, number: int, actor: str, found: list[str]) -> dict[str, Any]:
    return {
        "query_id": query, "model_id": member, "sample": 0, "step": number, "acted_by": actor,
        "action": "search" if found else "answer", "queries": ["x"] if found else [],
        "found": found, "status": "ok", "attempts": 1, "request_hash": "h", "prompt_tokens": 9,
        "completion_tokens": 4,
    }  # fmt: skip


def curve(*, told: bool) -> dict[tuple[str, str], Any]:
    given = StudyContext(
        release="planted", tables=tables(told=told), make=reference, pair=("small", "large"),
        routers=("task-map",), resamples=100,
    )  # fmt: skip
    study = STUDIES.get("agentic_curve")
    check(study, given)
    assert study.curves(given).num_rows
    return {(cell.row, cell.column): cell for cell in study.cells(given)}


def test_handing_over_where_the_search_failed_is_found_and_pays() -> None:
    cells = curve(told=True)
    at = "at 25% of the extra cost"
    # Half the questions need help, at 4 more each: a quarter of the way to the large one's cost.
    learned, chance = cells["step: learned", at], cells["at random", at]
    assert learned.value > 0.97
    assert chance.value == pytest.approx(0.62, abs=0.06)
    assert learned.low > chance.high
    best = cells["step: oracle", "its cost, of the large one's"]
    assert best.value == pytest.approx(0.4, abs=0.05)


def test_where_nothing_was_seen_nothing_is_gained() -> None:
    cells = curve(told=False)
    at = "at 25% of the extra cost"
    # It may still hand everything over after a step, which costs 6 of 10: no better than that.
    assert cells["step: learned", at].value <= cells["step: fixed", at].value + 0.05


def test_a_relay_is_known_by_who_acted() -> None:
    made = tables(told=True)
    assert relays(made["steps"], "small", "large") == {1: "over-1"}
    assert relays(made["steps"], "large", "small") == {}
    ids, prompts = (made["queries"].column(n).to_pylist() for n in ("query_id", "prompt"))
    seen = states(made["steps"], "small", ids, prompts)
    assert set(seen) == {1}
    assert set(np.unique(seen[1][:, 3])) == {0.0, 1.0}


def test_a_release_without_steps_is_refused_with_the_next_step() -> None:
    made = {k: v for k, v in tables(told=True).items() if k != "steps"}
    given = StudyContext(release="r", tables=made, make=reference, pair=("small", "large"))
    with pytest.raises(BadInput) as error:
        check(STUDIES.get("agentic_curve"), given)
    assert "collect.agent" in str(error.value.next_step)


def test_questions_of_equal_score_change_models_together() -> None:
    given = StudyContext(
        release="planted", tables=tables(told=True), make=reference, pair=("small", "large"),
        routers=("best-generalist",), resamples=20,
    )  # fmt: skip
    chosen = choices_of(given)[1]["question: best-generalist"]
    # It scores all questions alike: all of them or none, whatever order they are in.
    assert {len(set(row.tolist())) for row in chosen} == {1}
