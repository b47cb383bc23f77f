"""Members of a pool that differ in how they are asked: frames and system messages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pydantic import ValidationError

from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import RecipeError
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model, Pool
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Loopback, answer, completion
from tests.collect.test_collect import queries

NOBODY = "http://127.0.0.1:9/v1"
STEPS = "{{ prompt }}\n\nThink step by step. ({{ task }})"


def pool(server: Loopback) -> Pool:
    same = {"endpoint_model": "one"}
    return pool_of(
        server,
        Model(model_id="plain", **same),
        Model(model_id="steps", prompt=STEPS, system="Be brief.", **same),
        # Twice the same question: what is asked is what counts, not who asks.
        Model(model_id="twin", prompt="{{ prompt }}", **same),
    )


def test_ways_of_asking_one_model_are_members_of_their_own(tmp_path: Path) -> None:
    def say(body: dict, seen: int) -> object:
        return answer(completion("|".join(m["content"] for m in body["messages"])))

    with Loopback(say) as server, SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        found = ask(ledger, pool(server), queries(3))
        assert found.ended.complete
        said = {(row["model_id"], row["query_id"]): row["text"] for row in found.rows}
        assert said["plain", "q0001"] == said["twin", "q0001"] == "What is 1 + 1?"
        assert said["steps", "q0001"] == ("Be brief.|What is 1 + 1?\n\nThink step by step. (t1)")
        assert plan(queries(3), pool(server), Collect(), ledger).missing == 0


def test_a_model_may_be_asked_more_often_than_the_others(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion(f"{body['seed']}"))) as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        models = [Model(model_id="often", samples=3), Model(model_id="once")]
        found = ask(ledger, pool_of(server, *models), queries(2))
        assert (found.plan.wanted, found.plan.calls) == (8, 8)
        assert Counter(found.column("model_id")) == {"often": 6, "once": 2}
        assert set(found.column("text")) == {"0", "1", "2"}


def test_a_frame_counts_in_what_a_plan_expects() -> None:
    long = "word " * 200 + "{{ prompt }}"
    both = pool_of(NOBODY, Model(model_id="plain"), Model(model_id="long", prompt=long))
    plain, framed = plan(queries(4), both, Collect(max_tokens=8), None).models
    assert framed.estimate.prompt_tokens - plain.estimate.prompt_tokens == pytest.approx(
        4 * 1000 / 4, rel=0.01
    )


def test_a_frame_without_the_question_is_refused() -> None:
    with pytest.raises(ValidationError, match="would not be asked the question"):
        Model(model_id="m", prompt="Say something nice about {{ task }}.")


def test_a_frame_sees_no_reference() -> None:
    # An answer in the prompt would make every label right.
    peeks = pool_of(NOBODY, Model(model_id="m", prompt="{{ prompt }} {{ references }}"))
    table = queries(1).append_column("references", [["4"]])
    with pytest.raises(RecipeError, match="references"):
        plan(table, peeks, Collect(), None)
