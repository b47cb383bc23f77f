"""Where a key is read from, and in which forms it is hidden when it comes back."""

from __future__ import annotations

import base64

import pytest

from routeyard.pipelines.collect.request import Secret
from routeyard.pipelines.common.errors import BadInput
from routeyard.schemas.recipe.pool import Provider


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
