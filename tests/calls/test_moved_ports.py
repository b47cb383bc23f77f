"""Answers are shared by address and model; another model behind a port or a label is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.client import check_served
from routeyard.pipelines.collect.reply import CallFault
from routeyard.pipelines.collect.request import identity_of
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput
from routeyard.schemas.recipe.pool import Pool, Provider
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Loopback, answer, completion

LLAMA = {"id": "m", "object": "model", "created": 1, "root": "llama-3-8b", "max_model_len": 8192}
QWEN = LLAMA | {"root": "qwen-2-7b"}


def says(text: str) -> Loopback:
    return Loopback(lambda body, seen: answer(completion(text)))


def lists(*entries: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    return lambda provider, path, **_: {"data": list(entries)}


def none(provider: Provider, path: str, **_: Any) -> dict[str, Any]:
    raise CallFault("http_404", "no list", status=404, permanent=True)


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with SqliteLedger(tmp_path / "l.sqlite") as one:
        yield one


def calls(server: Loopback, ledger: SqliteLedger, base_url: str, **keys: Any) -> int:
    """How many calls a run makes."""
    before = server.requests
    ask(ledger, pool_of(base_url, **keys), ["q1", "q2"], benchmark="b")
    return server.requests - before


def test_another_port_is_asked_everything(ledger: SqliteLedger) -> None:
    # The recipe's port was another, with another model behind it: 0 calls, and the old answers.
    with says("old") as old, says("new") as new:
        assert calls(old, ledger, old.base_url) == 2
        assert calls(new, ledger, new.base_url) == 2
        assert calls(old, ledger, old.base_url) == calls(new, ledger, new.base_url) == 0


def test_a_port_left_to_the_environment_may_change(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with says("old") as old, says("new") as new:
        for server, expected in ((old, 2), (new, 0)):
            monkeypatch.setenv("PORT_TRIED", server.base_url)
            assert calls(server, ledger, "${PORT_TRIED}") == expected


@pytest.mark.parametrize("variable", [True, False])
def test_a_server_with_an_id_keeps_its_answers_wherever_it_is(
    ledger: SqliteLedger, variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with says("old") as old, says("new") as new:
        for server, expected in ((old, 2), (new, 0)):
            monkeypatch.setenv("PORT_TRIED", server.base_url)
            address = "${PORT_TRIED}" if variable else server.base_url
            assert calls(server, ledger, address, id="mine") == expected
        # The id alone counts: of another server nothing is known.
        assert calls(new, ledger, new.base_url, id="other") == 2
        monkeypatch.delenv("PORT_TRIED")
        assert identity_of(Provider(name="p", base_url="${PORT_TRIED}", id="mine")) == "mine"


def test_an_id_is_no_address_and_one_servers_alone() -> None:
    # It would take the answers of that address for its own.
    for name in ("https://api.example.org/v1", "sha256:00"):
        with pytest.raises(ValueError, match="should match pattern"):
            Provider(name="p", base_url="http://127.0.0.1:9/v1", id=name)
    first = Provider(name="p", base_url="http://127.0.0.1:9/v1", id="mine")
    for other in ({"name": "q", "id": "mine"}, {"name": "mine"}):
        with pytest.raises(ValueError, match="two providers have the id 'mine'"):
            Pool(providers=[first, Provider(base_url="${PORT_TRIED}", **other)])


@pytest.mark.parametrize("variable", [True, False])
def test_another_model_at_the_same_address_is_seen(
    ledger: SqliteLedger, variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where the address is left to the environment, answers are kept by the provider's name.
    address = "${PORT_TRIED}" if variable else "http://127.0.0.1:9/v1"
    provider = Provider(name="p", base_url=address)
    for port, served in (
        (9, LLAMA),
        (8 if variable else 9, LLAMA | {"created": 5, "pricing": "1"}),
    ):
        monkeypatch.setenv("PORT_TRIED", f"http://127.0.0.1:{port}/v1")
        check_served(ledger, [provider], "b", fetch=lists(served))
    with pytest.raises(BadInput, match="serves another model as 'm'") as caught:
        check_served(ledger, [provider], "b", fetch=lists(QWEN))
    assert "qwen-2-7b" in caught.value.what
    # A model that was added to the list changes nothing, and neither does a server without one.
    check_served(ledger, [provider], "b", fetch=lists(LLAMA, QWEN | {"id": "other"}))
    check_served(ledger, [provider], "b", fetch=none)
    # An id is watched like an address.
    moved = Provider(name="r", base_url="http://127.0.0.1:7/v1", id="mine")
    check_served(ledger, [moved.but(base_url="http://127.0.0.1:6/v1")], "b", fetch=lists(LLAMA))
    with pytest.raises(BadInput, match="mine serves another model as 'm'"):
        check_served(ledger, [moved], "b", fetch=lists(QWEN))
    # Whoever says so, with another name of the provider, goes on.
    check_served(ledger, [provider.but(name="q")], "b", fetch=lists(QWEN))


def test_names_alone_tell_no_models_apart(ledger: SqliteLedger) -> None:
    provider = Provider(name="p", base_url="http://127.0.0.1:9/v1")
    check_served(ledger, [provider], "b", fetch=lists({"id": "m", "object": "model"}))
    check_served(ledger, [provider], "b", fetch=lists(QWEN))


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
