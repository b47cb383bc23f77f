"""A server that says the key back, in every field, finds it in no file, no log and no table."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.collect.client import completion, list_models
from routeyard.pipelines.collect.prices import fetch_prices
from routeyard.pipelines.collect.request import Secret
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput, RouteyardError
from routeyard.pipelines.label.judges import judge, verify
from routeyard.schemas.recipe import Judge, Verifier
from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.asking import ask
from tests.calls.echo import Echo, forms
from tests.label.test_xverify import queries, responses

#: Signs that JSON, URLs and HTML write otherwise.
KEY = 'sk-canary/3f9a"7c51&Zq+8Xw0'
KINDS = ["ok", "quiet", "refusal", "error", "html", "error with 200", "no json", "redirect"]
ONCE = Retry(attempts=2, first_wait_s=0, pause_after=100)


def stands_in(text: str) -> bool:
    """Whether the key, or enough of it to guess the rest, stands in a text in any form."""
    seen = urllib.parse.unquote(text)
    for _ in range(3):
        for escaped in ("\\u00", "\\u"):
            seen = _unescaped(seen, escaped)
        seen = seen.replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\")
    return any(KEY[i : i + 12] in one for one in (text, seen) for i in range(len(KEY) - 11))


def _unescaped(text: str, mark: str) -> str:
    parts = text.split("\\u")
    out = [parts[0]]
    for part in parts[1:]:
        try:
            out.append(chr(int(part[:4], 16)) + part[4:])
        except ValueError:
            out.append("\\u" + part)
    return "".join(out)


def found_in(folder: Path) -> list[str]:
    """Files that hold the key, the write-ahead log included."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and stands_in(path.read_bytes().decode("utf-8", "replace"))
    ]


def asked(server: Echo, ledger: SqliteLedger) -> list[Any]:
    """Everything that can be asked of one provider, and everything that came of it."""
    provider = Provider(
        name="p", base_url=server.base_url, api_key_env="ECHO_KEY", price_list="openrouter"
    )
    pool = Pool(models=[Model(model_id="m")], providers=[provider])
    prompts = [f"q{i}" for i in range(4)]
    ways: list[dict[str, Any]] = [
        {"logprobs": True},
        {"stream": True, "temperature": 0.5},
        {"transport": "batch", "temperature": 0.7},
    ]
    told: list[Any] = [ask(ledger, pool, prompts, retry=ONCE, **way) for way in ways]
    served: dict[str, Any] = {"name": "x", "provider": provider, "retry": ONCE}
    told.append(verify(queries(2), responses(2, "m"), Verifier(**served), ledger, run="v"))
    for kind in ("reference", "choice"):
        by = Judge(kind=kind, **served)  # type: ignore[arg-type]
        told.append(judge(queries(2), responses(2, "m"), by, ledger, run="j"))
    told += [one.verdicts.to_pylist() for one in told[-3:]]
    told.append(list_models(provider))
    try:
        told.append(fetch_prices(provider, read_on="2026-11-01"))
    except BadInput as error:
        told.append(error.what + str(error.where))
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_comes_back_and_is_kept_nowhere(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ECHO_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    with Echo(KEY, kind=kind) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        told = asked(server, ledger)
        assert any(KEY.encode() in head for head in server.headers)
        kept = list(ledger.attempts())
        # The server was asked, and something of it was kept.
        assert kept
        assert found_in(tmp_path) == []
    assert found_in(tmp_path) == []
    assert not stands_in(repr(told))
    assert not stands_in(repr(kept))
    assert not stands_in(caplog.text)
    if kind == "ok":
        # Hidden, not dropped: the answers are there.
        assert sum(row.status == "ok" for row in kept) >= 8
        assert "[key]" in repr(kept)


def test_the_entailment_judge_keeps_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from routeyard.flows.ledgers import ask_prompts, model_to_ask
    from routeyard.flows.workspace import BuildContext
    from routeyard.schemas.recipe import Recipe

    monkeypatch.setenv("ECHO_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    for kind in KINDS:
        with Echo(KEY, kind=kind) as server:
            recipe = Recipe.model_validate(
                {
                    "name": "r",
                    "version": "1.0.0",
                    "sources": [{"name": "s", "catalog": "gsm8k"}],
                    "pool": {
                        "models": [{"model_id": "m"}],
                        "providers": [
                            {"name": "p", "base_url": server.base_url, "api_key_env": "ECHO_KEY"}
                        ],
                    },
                    "collect": {"retry": {"attempts": 1}},
                }
            )
            try:
                said: Any = ask_prompts(
                    BuildContext(recipe.name, tmp_path / kind, tmp_path),
                    recipe.pool,
                    recipe.collect,
                    model_to_ask(recipe.pool, "m"),
                    ["does it follow?"],
                    purpose="entailment",
                    parameters={"max_tokens": 8},
                )
            except RouteyardError as error:
                said = [str(error), error.what, error.where, error.next_step]
        assert not stands_in(repr(said)), kind
    assert found_in(tmp_path) == []
    assert not stands_in(caplog.text)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=8, max_size=40))
@settings(max_examples=15, deadline=None)
def test_any_key_is_hidden_in_every_form(key: str) -> None:
    secret = Secret(key)
    for form in (*forms(key)[:3], key.replace('"', '\\"')):
        assert key not in secret.hide(f"a {form} b")
    told = {key: [key, {"x": f"-{key}-"}], "error": None}
    assert key not in json.dumps(secret.clean(told), ensure_ascii=False)
    half = len(key) // 2
    parts = [{"text": key[:half]}, {"text": key[half:]}]
    reply = completion({"choices": [{"message": {"content": parts}}]}, secret)
    assert key not in str(reply.choices[0].text)


def test_what_an_address_takes_from_the_environment_is_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # A gateway whose path holds the token.
    caplog.set_level(logging.DEBUG)
    token = KEY.replace("/", "-").replace('"', "")
    monkeypatch.setattr("tests.calls.test_key_comes_back.KEY", token)
    for kind in ("ok", "error", "redirect"):
        with Echo(token, kind=kind) as server, SqliteLedger(tmp_path / f"{kind}.sqlite") as ledger:
            monkeypatch.setenv("GATEWAY", f"{server.base_url}/{token}")
            server.strip = f"/{token}"
            provider = Provider(name="p", base_url="${GATEWAY}")
            pool = Pool(models=[Model(model_id="m")], providers=[provider])
            assert not stands_in(repr(ask(ledger, pool, retry=ONCE))), kind
        # Nobody listens any more: the address stands in every library's words.
        with SqliteLedger(tmp_path / f"gone {kind}.sqlite") as ledger:
            told = [ask(ledger, pool, ["q2"], retry=ONCE), list_models(provider)]
            assert not stands_in(repr(told))
    assert found_in(tmp_path) == []
    assert not stands_in(caplog.text)


def test_a_client_shows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from routeyard.pipelines.collect.client import Client, Timeouts

    monkeypatch.setenv("ECHO_KEY", KEY)
    provider = Provider(name="p", base_url="http://127.0.0.1:9/v1", api_key_env="ECHO_KEY")
    client = Client(provider, connections=1, timeouts=Timeouts())
    assert not stands_in(repr(client.secret) + repr(vars(client)))
    asyncio.run(client.__aexit__(None, None, None))
