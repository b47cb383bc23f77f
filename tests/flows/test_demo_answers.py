"""The simulated pool as the scorers see it."""

from __future__ import annotations

from collections import Counter

import pytest

from routeyard.flows.demo.answers import answer, bank, pool, succeeds, uniform
from routeyard.flows.demo.server import SimulatedPool
from routeyard.flows.recipe import find, read_yaml
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from routeyard.schemas.recipe import Recipe


@pytest.fixture(scope="module")
def readings():
    """(model, question) → what its rule scorer reads in the first sample."""
    read = {name: SCORERS.get(name).read for name in ("mcq", "numeric", "em")}
    return {
        (model.model_id, q): read[q.scorer](
            ScoringInput(q.question, q.references, q.choices), answer(0, model, q, 0).text or ""
        )
        for model in pool().values()
        for q in bank()
    }


def test_there_are_eight_models_with_distinct_strengths_and_prices():
    assert len(pool()) >= 8
    assert len({tuple(m.strengths.values()) for m in pool().values()}) == len(pool())
    assert len({(m.price_in, m.price_out) for m in pool().values()}) == len(pool())
    best = Counter(
        max(pool().values(), key=lambda m: m.strengths[task]).model_id
        for task in next(iter(pool().values())).strengths
    )
    # One model that is best at everything would leave nothing to route.
    assert len(best) >= 4


def test_scorers_read_what_was_planted(readings):
    # A form that a scorer misreads would pass as a weakness of the model.
    for (model, q), reading in readings.items():
        meant = succeeds(0, pool()[model], q, 0)
        assert (reading.outcome == "correct") == meant, (model, q, reading)


def test_other_samples_can_differ_and_stay_as_strong():
    model = pool()["sim-sage-small"]
    outcomes = {q.id: [succeeds(0, model, q, s) for s in range(20)] for q in bank()}
    assert any(0 < sum(seen) < 20 for seen in outcomes.values())
    mean = sum(map(sum, outcomes.values())) / (20 * len(outcomes))
    wanted = sum(model.strengths[q.task] for q in bank()) / len(bank())
    assert abs(mean - wanted) < 0.06


def test_answers_come_in_many_forms():
    said = [answer(0, m, q, 0) for m in pool().values() for q in bank()]
    texts = [a.text or "" for a in said]
    assert any("\\boxed{" in t for t in texts)
    assert any("Wait, actually" in t for t in texts)
    assert any(t.startswith("(") or t.isdecimal() for t in texts)
    assert any(a.refusal for a in said)
    assert {a.finish_reason for a in said} == {"stop", "length", "content_filter"}
    # The metering gate allows few truncated answers.
    assert 0 < sum(a.finish_reason == "length" for a in said) / len(said) < 0.03


def test_uniform_is_spread_and_stable():
    drawn = [uniform("a", i) for i in range(4000)]
    assert 0.47 < sum(drawn) / len(drawn) < 0.53
    assert min(drawn) > 0
    assert max(drawn) < 1
    assert uniform("ab", "c") != uniform("a", "bc")


def test_a_question_is_recognised_inside_a_prompt_also_when_it_is_part_of_another():
    served = SimulatedPool(faults=0)
    for q in bank():
        assert served._recognise(f"Be brief.\n\n{q.question}\n\nAnswer with a word.") == q
    assert served._recognise("Who are you?") is None


def test_every_model_of_the_recipe_says_that_it_is_simulated():
    recipe = Recipe.model_validate(read_yaml(find("demo")))
    assert {m.model_id for m in recipe.pool.models} == set(pool())
    assert all(m.simulated and m.price_date for m in recipe.pool.models)
    assert "SIMULATED" in recipe.release.description
