"""A key in the environment stands in no file, no error, no repr and no log."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import pytest

from routeyard.pipelines.collect.client import Client, Timeouts
from routeyard.pipelines.collect.collect import collect, responses_table
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.request import Secret
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput
from routeyard.schemas.recipe.collect import Collect, Retry
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.loopback import Do, Loopback, answer, completion, error
from tests.calls.test_faults import table

SECRET = "sk-canary-3f9a7c51"


def test_the_key_is_sent_and_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    caplog.set_level(logging.DEBUG)

    def behave(body: object, seen: int) -> Do:
        # A server that says the key back, in answers and in errors.
        prompt = str(body["messages"][0]["content"])  # type: ignore[index]
        if prompt == "error":
            return error(400, f"bad key {SECRET}")
        if prompt == "html":
            return Do(status=500, body=f"<p>{SECRET}</p>".encode())
        return answer(completion(f"your key is {SECRET}", model=SECRET))

    with (
        Loopback(behave) as server,
        SqliteLedger(tmp_path / "ledger" / "l.sqlite") as ledger,
    ):
        provider = Provider(name="p", base_url=server.base_url, api_key_env="SOME_API_KEY")
        pool = Pool(models=[Model(model_id="m")], providers=[provider])
        settings = Collect(retry=Retry(attempts=2, first_wait_s=0))
        made = plan(table(["error", "html", "fine"]), pool, settings, ledger)
        collected = collect(made, ledger)
        responses = responses_table(made, ledger)
        assert any(SECRET.encode() in head for head in server.headers)
        # The write-ahead log too, while it is there.
        for path in (tmp_path / "ledger").iterdir():
            assert SECRET.encode() not in path.read_bytes(), path.name
        client = Client(provider, connections=1, timeouts=Timeouts(deadline_s=1))
    seen = [caplog.text, repr(collected), repr(made), str(responses.to_pylist())]
    seen += [repr(client.secret), repr(vars(client)), repr(provider)]
    assert not any(SECRET in text for text in seen)


def test_a_missing_key_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    provider = Provider(name="p", base_url="https://example.org/v1", api_key_env="NO_SUCH_KEY")
    with pytest.raises(BadInput, match="NO_SUCH_KEY"):
        Secret.of(provider)


@pytest.mark.parametrize("url", ["https://user:pw@host/v1", "https://host/v1?key=1", "host/v1"])
def test_a_base_url_holds_no_credentials(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        Provider(name="p", base_url=url)


@pytest.mark.parametrize(
    "way", ["base64", "base64url", "hex", "HEX", "backwards", "upper", "lower"]
)
def test_a_key_that_comes_back_encoded_is_hidden(way: str) -> None:
    key = "sk-Canary-3f9a7c51?>"
    raw = key.encode()
    said = {
        "base64": base64.b64encode(raw).decode(),
        "base64url": base64.urlsafe_b64encode(raw).decode(),
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        "backwards": key[::-1],
        "upper": key.upper(),
        "lower": key.lower(),
    }[way]
    assert said.rstrip("=") not in Secret(key).clean({"text": f"it is {said}, they say"})["text"]
    # a short key's encodings are words
    assert Secret("demo").hide("omed DEMO") == "omed DEMO"
