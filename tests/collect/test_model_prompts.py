"""Members of a pool that differ in how they are asked: frames and system messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from routeyard.pipelines.collect.collect import collect, responses_table
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import RecipeError
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.loopback import Loopback, answer, completion
from tests.collect.test_collect import queries

STEPS = "{{ prompt }}\n\nThink step by step. ({{ task }})"


def pool(server: Loopback) -> Pool:
    same = {"endpoint_model": "one"}
    return Pool(
        models=[
            Model(model_id="plain", **same),
            Model(model_id="steps", prompt=STEPS, system="Be brief.", **same),
            # Twice the same question: what is asked is what counts, not who asks.
            Model(model_id="twin", prompt="{{ prompt }}", **same),
        ],
        providers=[Provider(name="local", base_url=server.base_url)],
    )


def test_ways_of_asking_one_model_are_members_of_their_own(tmp_path: Path) -> None:
    def say(body: dict, seen: int) -> object:
        return answer(completion("|".join(m["content"] for m in body["messages"])))

    with Loopback(say) as server, SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        made = plan(queries(3), pool(server), Collect(), ledger)
        assert collect(made, ledger).complete
        rows = responses_table(made, ledger).to_pylist()
        said = {(row["model_id"], row["query_id"]): row["text"] for row in rows}
        assert said["plain", "q0001"] == said["twin", "q0001"] == "What is 1 + 1?"
        assert said["steps", "q0001"] == ("Be brief.|What is 1 + 1?\n\nThink step by step. (t1)")
        assert plan(queries(3), pool(server), Collect(), ledger).missing == 0


def test_a_model_may_be_asked_more_often_than_the_others(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion(f"{body['seed']}"))) as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        provider = Provider(name="local", base_url=server.base_url)
        models = [Model(model_id="often", samples=3), Model(model_id="once")]
        made = plan(queries(2), Pool(models=models, providers=[provider]), Collect(), ledger)
        assert (made.wanted, made.calls) == (8, 8)
        collect(made, ledger)
        table = responses_table(made, ledger)
        counts = table.group_by("model_id").aggregate([("sample", "count")]).to_pylist()
        assert {row["model_id"]: row["sample_count"] for row in counts} == {"often": 6, "once": 2}
        assert set(table["text"].to_pylist()) == {"0", "1", "2"}


def test_a_frame_counts_in_what_a_plan_expects() -> None:
    long = "word " * 200 + "{{ prompt }}"
    models = [Model(model_id="plain"), Model(model_id="long", prompt=long)]
    provider = Provider(name="local", base_url="http://127.0.0.1:9/v1")
    plain, framed = plan(
        queries(4), Pool(models=models, providers=[provider]), Collect(max_tokens=8), None
    ).models
    assert framed.estimate.prompt_tokens - plain.estimate.prompt_tokens == pytest.approx(
        4 * 1000 / 4, rel=0.01
    )


def test_a_frame_without_the_question_is_refused() -> None:
    with pytest.raises(ValidationError, match="would not be asked the question"):
        Model(model_id="m", prompt="Say something nice about {{ task }}.")


def test_a_frame_sees_no_reference() -> None:
    # An answer in the prompt would make every label right.
    models = [Model(model_id="m", prompt="{{ prompt }} {{ references }}")]
    provider = Provider(name="local", base_url="http://127.0.0.1:9/v1")
    table = queries(1).append_column("references", [["4"]])
    with pytest.raises(RecipeError, match="references"):
        plan(table, Pool(models=models, providers=[provider]), Collect(), None)
