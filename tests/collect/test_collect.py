"""The path from a plan through a real HTTP server and a real ledger to `responses`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines.audit.metering import audit
from routeyard.pipelines.collect.collect import canary_answers
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import RecipeError
from routeyard.schemas import MODELS, RESPONSES
from routeyard.schemas.recipe.collect import Collect, Coverage
from routeyard.schemas.recipe.pool import Model, Pool
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Do, Loopback, answer, completion

NOBODY = "http://127.0.0.1:9"


def queries(n: int) -> pa.Table:
    return pa.table(
        {
            "query_id": [f"q{i:04d}" for i in range(n)],
            "task": [f"t{i % 3}" for i in range(n)],
            "prompt": [f"What is {i} + {i}?" for i in range(n)],
        }
    )


def pool(server: Loopback, n: int = 2, **model: object) -> Pool:
    return pool_of(server, *(Model(model_id=f"m{i}", **model) for i in range(n)))


def test_a_run_asks_each_pair_once_and_a_second_run_nothing(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion(f"{body['model']} says 4"))) as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        found = ask(ledger, pool(server), queries(50))
        assert (found.plan.wanted, found.plan.missing) == (100, 100)
        assert found.ended.complete
        assert found.ended.stopped is None
        assert server.requests == 100
        assert found.column("status") == ["ok"] * 100
        assert found.column("cost_usd") == [None] * 100  # no price: unknown, not free
        assert ask(ledger, pool(server), queries(50)).plan.missing == 0
        assert server.requests == 100


def test_cached_tokens_are_kept_priced_and_planned_with(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1_000, "completion_tokens": 5,
             "prompt_tokens_details": {"cached_tokens": 800}}  # fmt: skip
    prices = {"price_in": 10.0, "price_out": 20.0, "price_date": "2026-11-01"}
    with (
        Loopback(lambda body, seen: answer(completion(usage=usage))) as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        priced = pool(server, 1, **prices, price_cache_read=1.0)
        found = ask(ledger, priced, queries(40))
        assert set(found.column("cache_read_tokens")) == {800}
        each = (200 * 10 + 800 * 1 + 5 * 20) / 1e6
        assert found.column("cost_usd") == pytest.approx([each] * 40)
        # What is missing is expected to be cached as what was asked.
        more = plan(queries(60), priced, Collect(max_tokens=9), ledger).models[0].estimate
        prompt = more.prompt_tokens
        said = prompt * (0.2 * 10 + 0.8 * 1) + 60 * 5 * 20
        assert more.cost_usd == pytest.approx(said / 1e6, rel=0.01)
        # Nobody states what a cached token costs here: unknown, not the price of a fresh one.
        silent = ask(ledger, pool(server, 1, **prices), queries(40))
        assert silent.column("cost_usd") == [None] * 40
        assert server.requests == 40


def test_another_temperature_is_another_request(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion())) as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        ask(ledger, pool(server, 1), queries(5))
        assert plan(queries(5), pool(server, 1), Collect(temperature=0.5), ledger).missing == 5
        # More samples add to what is there.
        assert plan(queries(5), pool(server, 1), Collect(samples=3), ledger).missing == 10


def test_canaries_are_asked_at_both_ends_of_a_run_and_never_answer_a_question(
    tmp_path: Path,
) -> None:
    changed = []

    def behave(body: dict[str, Any], seen: int) -> Do:
        prompt = body["messages"][-1]["content"]
        if prompt.startswith("canary"):
            assert (body["temperature"], body["max_tokens"]) == (0, 64)
            return answer(completion("after" if changed else "before"))
        changed.append(True)
        return answer(completion())

    settings = {"temperature": 0.7, "max_tokens": 100, "canary": ["canary 1", "canary 2"]}
    with Loopback(behave) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        found = ask(ledger, pool(server, 1), queries(3), **settings)
        assert found.ended.complete
        assert server.requests == 3 + 2 * 2
        assert len(found.rows) == 3
        findings = audit(RESPONSES.empty(), MODELS.empty(), canaries=canary_answers(ledger))
        assert [(f.check, f.count) for f in findings] == [("canary_drift", 2)]
        # A run that asks nothing needs no canaries.
        ask(ledger, pool(server, 1), queries(3), **settings)
        assert server.requests == 7


def test_sparse_coverage_is_balanced_and_seeded(tmp_path: Path) -> None:
    nine = pool_of(NOBODY, *(Model(model_id=f"m{i}") for i in range(9)))
    third = Collect(coverage=Coverage(share=1 / 3, seed=1))
    made = plan(queries(300), nine, third, None)
    assert made.wanted == 900
    asked = np.zeros((9, 300), dtype=int)
    for number, model in enumerate(made.models):
        asked[number, model.rows] = 1
    assert set(asked.sum(axis=0)) == {3}
    for task in range(3):
        per_model = asked[:, task::3].sum(axis=1)
        assert np.ptp(per_model) <= 1
    # Not the same three together each time.
    together = asked @ asked.T
    assert together[np.triu_indices(9, 1)].min() > 0
    again = plan(queries(300), nine, third, None)
    assert all((a.rows == b.rows).all() for a, b in zip(made.models, again.models, strict=True))
    other = plan(queries(300), nine, Collect(coverage=Coverage(share=1 / 3, seed=2)), None)
    assert any(len(a.rows) != len(b.rows) or (a.rows != b.rows).any()
               for a, b in zip(made.models, other.models, strict=True))  # fmt: skip


def test_plan_figures_are_unknown_where_a_price_is(tmp_path: Path) -> None:
    priced = {"price_in": 1.0, "price_out": 2.0, "price_date": "2026-01-01"}
    pool = pool_of(NOBODY, Model(model_id="a", **priced), Model(model_id="b"))
    figures = plan(queries(10), pool, Collect(max_tokens=1000), None).figures()
    a, b = figures["models"]
    # Nothing was metered: not every answer is as long as it may be.
    assert a["completion_tokens"] == 1200
    assert a["completion_tokens_source"] == "typical"
    assert a["cost_usd"] == (a["prompt_tokens"] + 2 * 1200) / 1e6
    assert a["least_cost_usd"] == (a["prompt_tokens"] + 2 * 50) / 1e6
    assert a["worst_cost_usd"] >= 2 * 10_000 / 1e6
    assert b["cost_usd"] is None
    assert figures["cost_usd"] is None  # not the sum of what is known
    only_a = plan(queries(10), pool.model_copy(update={"models": pool.models[:1]}), Collect(), None)
    assert only_a.figures()["cost_usd"] is None  # no limit, nothing metered: unknown


def test_estimates_learn_from_the_ledger(tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        tokens = len(body["messages"][-1]["content"]) // 2 + 7
        usage = {"prompt_tokens": tokens, "completion_tokens": 11, "total_tokens": tokens + 11}
        return answer(completion(usage=usage))

    texts = [f"{'word ' * (i % 40)}{i}" for i in range(200)]
    table = pa.table({"query_id": texts, "task": ["t"] * 200, "prompt": texts})
    with Loopback(behave) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        ask(ledger, pool(server, 1), table.slice(0, 100))
        (model,) = plan(table, pool(server, 1), Collect(), ledger).figures()["models"]
    truth = sum(len(text) // 2 + 7 for text in texts[100:])
    assert model["prompt_tokens_source"] == "ledger"
    assert model["completion_tokens_source"] == "ledger"
    assert abs(model["prompt_tokens"] - truth) < 0.05 * truth
    assert model["completion_tokens"] == 1100


def test_a_tokenizer_counts_exactly(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.save(str(tmp_path / "tokenizer.json"))
    model = Model(model_id="m", tokenizer=str(tmp_path / "tokenizer.json"))
    made = plan(queries(10), pool_of(NOBODY, model), Collect(), None)
    (figures,) = made.figures()["models"]
    assert figures["prompt_tokens"] == 10 * (5 + 8)  # "What is 1 + 1?" is five words
    assert figures["prompt_tokens_error"] is None
    missing = Model(model_id="m", tokenizer=str(tmp_path / "nowhere.json"))
    with pytest.raises(RecipeError, match="tokenizer"):
        plan(queries(1), pool_of(NOBODY, missing), Collect(), None)


def test_a_price_of_the_recipe_prices_what_is_there(tmp_path: Path) -> None:
    # Asked before a price was known: no call is needed to know the cost now.
    with (
        Loopback(lambda body, seen: answer(completion())) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        ask(ledger, pool(server, 1), queries(5))
        priced = pool(server, 1, price_in=1.0, price_out=2.0, price_date="2026-01-01")
        found = ask(ledger, priced, queries(5))
    assert found.plan.missing == 0
    assert found.column("cost_usd") == [(10 + 2 * 5) / 1e6] * 5
    assert found.column("cost_source") == ["price_table"] * 5


def test_a_model_without_its_provider_is_named() -> None:
    wrong = Model(model_id="m", provider="openruoter")
    pool = pool_of("https://example.org/v1", wrong, name="openrouter")
    with pytest.raises(RecipeError, match="'m' is served by 'openruoter'") as caught:
        plan(queries(1), pool, Collect(), None)
    assert "did you mean 'openrouter'" in str(caught.value)
