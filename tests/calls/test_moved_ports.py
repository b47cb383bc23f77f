"""A recipe whose port changed: another model's answers are never taken without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import run
from routeyard.flows.plan import plan_build
from routeyard.pipelines.collect.collect import collect
from routeyard.pipelines.collect.known_answers import note_lists, providers_in, settle_ports
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.reply import CallFault
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.loopback import Loopback, answer, completion, error
from tests.calls.test_faults import table
from tests.ledger.test_namespaces import recipe

LLAMA = {"id": "m", "object": "model", "created": 1, "root": "llama-3-8b", "max_model_len": 8192}
QWEN = LLAMA | {"root": "qwen-2-7b"}


def says(text: str) -> Loopback:
    return Loopback(lambda body, seen: answer(completion(text)))


def lists(*entries: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    return lambda provider, path, **_: {"data": list(entries)}


def none(provider: Provider, path: str, **_: Any) -> dict[str, Any]:
    raise CallFault("http_404", "no list", status=404, permanent=True)


def build(
    server: Loopback,
    ledger: SqliteLedger,
    decision: Any = None,
    fetch: Any = none,
    model: str = "m",
    how: Collect | None = None,
) -> tuple[list[str], int]:
    """What was said, and how many calls were made."""
    provider = Provider(name="p", base_url=server.base_url)
    before = server.requests
    said = settle_ports(ledger, [provider], "b", decision, fetch=fetch)
    note_lists(ledger, [provider], "b", fetch=fetch)
    pool = Pool(models=[Model(model_id=model)], providers=[provider])
    how = how or Collect()
    collect(plan(table(["q1", "q2"]), pool, how, ledger, benchmark="b"), ledger)
    return said, server.requests - before


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with SqliteLedger(tmp_path / "l.sqlite") as one:
        yield one


def test_another_port_is_asked_about(ledger: SqliteLedger) -> None:
    # The recipe's port was another, with another model behind it: 0 calls, and the old answers.
    with says("old") as old, says("new") as new:
        assert build(old, ledger) == ([], 2)
        with pytest.raises(BadInput, match="another model may answer") as caught:
            build(new, ledger)
        assert "--reuse" in caught.value.next_step
        assert old.base_url in caught.value.what
        assert new.requests == 0
        said, calls = build(new, ledger, "reuse")
        assert (len(said), calls) == (1, 0)
        # Said once: it is the same server from now on, at either port.
        assert build(new, ledger) == build(old, ledger) == ([], 0)


def test_asking_again_leaves_the_old_answers_out_for_good(ledger: SqliteLedger) -> None:
    with says("old") as old, says("new") as new:
        build(old, ledger)
        assert build(new, ledger, "ask_again")[1] == 2
        assert build(new, ledger) == ([], 0)
        with pytest.raises(BadInput):
            build(old, ledger)


def test_a_port_that_gave_no_answer_is_not_asked_about(ledger: SqliteLedger) -> None:
    # Its calls were sent, and the message said that the ledger has answers.
    with Loopback(lambda *_: error(400)) as old, says("new") as new, says("other") as other:
        assert build(old, ledger) == ([], 2)
        assert build(new, ledger) == ([], 2)
        assert build(new, ledger) == ([], 0)
        with pytest.raises(BadInput, match=new.base_url):
            build(old, ledger)
        with pytest.raises(BadInput, match=new.base_url):
            build(other, ledger)
        assert build(other, ledger, "reuse")[1] == 0
        assert build(old, ledger, "reuse")[1] == 0


def test_of_errors_at_two_ports_the_one_of_now_counts(ledger: SqliteLedger) -> None:
    # What had failed at the old port was asked at the new one in every build.
    once = Collect.model_validate({"retry": {"attempts": 1}})

    def half(status: int) -> Loopback:
        return Loopback(
            lambda body, seen: (
                answer(completion("a"))
                if "q1" in body["messages"][-1]["content"]
                else error(status)
            )
        )

    with half(500) as old, half(400) as new:
        assert build(old, ledger, how=once) == ([], 2)
        assert build(new, ledger, "reuse", how=once)[1] == 1
        assert build(new, ledger, how=once) == ([], 0)


def test_another_model_at_another_port_makes_no_server_the_same(ledger: SqliteLedger) -> None:
    # The label was then known at both ports, and the first model's answers were taken in silence.
    with says("first") as first, says("second") as second:
        assert build(first, ledger, model="m") == ([], 2)
        assert build(second, ledger, model="n") == ([], 2)
        for server, model in ((second, "m"), (first, "n")):
            with pytest.raises(BadInput, match="another model may answer"):
                build(server, ledger, model=model)
        assert build(first, ledger, model="m") == build(second, ledger, model="n") == ([], 0)
        assert (first.requests, second.requests) == (2, 2)


def test_a_list_joins_two_addresses_and_no_third(ledger: SqliteLedger) -> None:
    with says("1") as first, says("2") as second, says("3") as third:
        build(first, ledger, fetch=lists(LLAMA))
        build(second, ledger, fetch=lists(QWEN | {"id": "n"}), model="n")
        said, calls = build(third, ledger, fetch=lists(QWEN | {"id": "n"}), model="n")
        assert (len(said), calls) == (1, 0)
        with pytest.raises(BadInput):
            build(third, ledger, fetch=lists(QWEN | {"id": "n"}), model="m")


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        (LLAMA, LLAMA | {"created": 2}, True),
        (LLAMA, QWEN, False),
        # Names alone tell nothing apart.
        ({"id": "m", "object": "model"}, {"id": "m", "object": "model"}, False),
        (LLAMA, None, False),
        (None, LLAMA, False),
    ],
)
def test_lists_of_models_are_compared(ledger: Any, then: Any, now: Any, same: bool) -> None:
    with says("old") as old, says("new") as new:
        build(old, ledger, fetch=lists(then) if then else none)
        fetch = lists(now) if now else none
        if same:
            said, calls = build(new, ledger, fetch=fetch)
            assert "both list the same models" in said[0]
            assert calls == 0
        else:
            with pytest.raises(BadInput):
                build(new, ledger, fetch=fetch)
            assert new.requests == 0


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
        note_lists(ledger, [provider], "b", fetch=lists(served))
    with pytest.raises(BadInput, match="serves another model as 'm'") as caught:
        note_lists(ledger, [provider], "b", fetch=lists(QWEN))
    assert "qwen-2-7b" in caught.value.what
    # A model that was added to the list changes nothing; whoever says so goes on.
    note_lists(ledger, [provider], "b", fetch=lists(LLAMA, QWEN | {"id": "other"}))
    if not variable:
        settle_ports(ledger, [provider], "b", "reuse", fetch=none)
        note_lists(ledger, [provider], "b", fetch=lists(QWEN))


def test_the_command_asks_and_takes_an_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(*words: str) -> int:
        path = str(tmp_path / "recipe/recipe.yaml")
        known = ["--until", "collect", "--workspace", str(tmp_path / "yard")]
        return run(["build", path, *known, *words])

    with says("Answer: 1") as old, says("Answer: 2") as new:
        path = recipe(tmp_path / "recipe", old)
        rows = (path.parent / "questions.jsonl").read_text().splitlines()[:3]
        (path.parent / "questions.jsonl").write_text("\n".join(rows) + "\n")
        assert build() == 0
        content = json.loads(path.read_text())
        content["pool"]["providers"][0]["base_url"] = new.base_url
        path.write_text(json.dumps(content))
        assert build() == 2
        assert "--ask-again" in capsys.readouterr().err
        # A plan tells what will happen, and what the other answer costs.
        planned = plan_build(path, tmp_path / "yard")
        assert planned["calls"] == 9
        assert "the build will stop" in planned["notes"][-1]
        assert build("--reuse", "--ask-again") == 2
        assert new.requests == 0
        assert build("--reuse") == 0
        assert new.requests == 0
        planned = plan_build(path, tmp_path / "yard")
        assert (planned["calls"], "stop" in str(planned["notes"])) == (0, False)


def test_every_provider_of_a_recipe_is_found() -> None:
    pool = Pool(models=[Model(model_id="m")], providers=[Provider(name="p", base_url="http://h")])
    assert [one.name for one in providers_in({"a": [pool], "b": None})] == ["p"]
