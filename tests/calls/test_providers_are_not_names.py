"""Answers are shared by address and model, not by what recipes call a provider."""

from __future__ import annotations

from pathlib import Path

from routeyard.pipelines.collect.sqlite import SqliteLedger
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Loopback, answer, completion


def texts(ledger: SqliteLedger, name: str, url: str, benchmark: str) -> list[str]:
    return ask(ledger, pool_of(url, name=name), benchmark=benchmark).column("text")


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
