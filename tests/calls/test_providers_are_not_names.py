"""Answers are shared by address and model, not by what recipes call a provider."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from routeyard.pipelines.collect.collect import collect, responses_table
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.ledger.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.loopback import Loopback, answer, completion
from tests.calls.test_faults import table


def texts(ledger: SqliteLedger, name: str, url: str, benchmark: str) -> list[str]:
    pool = Pool(models=[Model(model_id="m")], providers=[Provider(name=name, base_url=url)])
    made = plan(table(["q"]), pool, Collect(), ledger, benchmark=benchmark)
    collect(made, ledger)
    return list(responses_table(made, ledger)["text"].to_pylist())


def test_two_recipes_with_one_label_and_two_servers_get_their_own_answers(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion("one"))) as one,
        Loopback(lambda body, seen: answer(completion("two"))) as two,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        assert texts(ledger, "local", one.base_url, "a") == ["one"]
        assert texts(ledger, "local", two.base_url, "b") == ["two"]
        # Another label for the same address asks nothing.
        assert texts(ledger, "other", one.base_url + "/", "c") == ["one"]
        assert (one.requests, two.requests) == (1, 1)


def test_a_ledger_that_kept_answers_by_label_is_still_read(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion("new"))) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        pool = Pool(
            models=[Model(model_id="m")], providers=[Provider(name="p", base_url=server.base_url)]
        )
        made = plan(table(["q"]), pool, Collect(), ledger)
        earlier = made.models[0].settings.earlier
        assert earlier is not None
        collect(made, ledger)
        (kept,) = ledger.attempts()
    with SqliteLedger(tmp_path / "old.sqlite") as old:
        name = earlier.request_hash(made.models[0].asks.messages(0))
        row = replace(kept, request_hash=name, settings_hash=earlier.settings_hash, text="old")
        old.append([row], settles=True, done=lambda fault: None)
        old.remember({f"settings:{earlier.settings_hash}": earlier.identity.decode()})
        again = plan(table(["q"]), pool, Collect(), old)
        assert again.missing == 0
        (answered,) = responses_table(again, old).to_pylist()
        assert answered["text"] == "old"
        assert answered["request_hash"] == kept.request_hash
