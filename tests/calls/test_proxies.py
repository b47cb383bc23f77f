"""Which connections use the machine's proxies and `.netrc`, as SECURITY.md states."""

from __future__ import annotations

from pathlib import Path

import pytest

from routeyard.pipelines.collect.client import list_models
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.label.judges import verify
from routeyard.schemas.recipe import Verifier
from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Provider
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Loopback, answer, completion
from tests.label.test_xverify import queries, responses

ONCE = Retry(attempts=1)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Loopback:
    """A proxy that answers itself, and a `.netrc` with a login for the host behind it."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine far.invalid login me password of-the-netrc\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("PROVIDER_KEY", "sk-of-the-recipe-0123456789")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    return Loopback(lambda body, seen: answer(completion()))


@pytest.mark.parametrize("key", [None, "PROVIDER_KEY"])
def test_calls_go_through_the_proxy_with_the_recipes_key_and_no_other_login(
    proxy: Loopback, key: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = pool_of("http://far.invalid/v1", api_key_env=key)
    with proxy, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert ask(ledger, far, retry=ONCE).column("status") == ["ok"]
    (head,) = proxy.headers
    assert b"http://far.invalid/v1/chat/completions" in head
    authorization = b"sk-of-the-recipe" if key else b"Bearer none"
    assert authorization in head
    assert b"Basic" not in head  # what a .netrc becomes


def test_a_proxy_for_all_schemes_is_used_and_exceptions_from_it_are_kept(
    proxy: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HTTP_PROXY", raising=False)
    monkeypatch.delenv("http_proxy", raising=False)
    far = pool_of("http://far.invalid/v1")
    with proxy, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        ask(ledger, far, retry=ONCE)
        assert len(proxy.headers) == 1
        monkeypatch.setenv("NO_PROXY", "far.invalid")
        ask(ledger, far, ["r"], retry=ONCE)
        assert len(proxy.headers) == 1


def test_xverify_and_lists_of_models_use_no_proxy(
    proxy: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = Provider(name="p", base_url="http://far.invalid/v1")
    by = Verifier(name="x", provider=far, retry=ONCE)
    with proxy, SqliteLedger(tmp_path / "v.sqlite") as ledger:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        verify(queries(1), responses(1, "m"), by, ledger, run="r")
        assert list_models(far, timeout_s=5).models is None
    assert not proxy.headers
