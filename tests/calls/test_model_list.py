"""Which models an endpoint lists; whatever else it answers is unknown, not an empty pool."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager

import pytest
from aiohttp import web

from routeyard.pipelines.collect.client import list_models
from routeyard.schemas.recipe.pool import Provider
from tests.loopback import in_thread


@contextmanager
def endpoint(status, body):
    async def answer(request):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=content, content_type="application/json")

    with in_thread({"*": answer}) as address:
        yield Provider(name="p", base_url=f"{address}/v1")


def test_names_are_read():
    body = {"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b"}]}
    with endpoint(200, body) as provider:
        assert list_models(provider).models == {"a", "b"}


def test_without_a_key_none_is_sent():
    async def answer(request):
        told = request.headers.get("authorization", "nothing")
        return web.json_response({"data": [{"id": told}]})

    with in_thread({"*": answer}) as address:
        found = list_models(Provider(name="p", base_url=f"{address}/v1"))
    assert found.models == {"nothing"}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"error": {"message": "no such route"}}),
        (401, {"error": {"message": "who are you?"}}),
        (200, {"object": "list", "data": []}),
        (200, {"object": "list", "data": None}),
        (200, {"models": ["a"]}),
        (200, {"data": [{"name": "a"}]}),
        (200, ["a"]),
        (200, b"<html>welcome</html>"),
        (200, b""),
    ],
)
def test_anything_else_is_unknown(status, body):
    with endpoint(status, body) as provider:
        found = list_models(provider)
    assert found.models is None
    assert found.why


def test_no_server_and_no_key_are_unknown(monkeypatch):
    monkeypatch.delenv("ROUTEYARD_TEST_KEY", raising=False)
    gone = Provider(name="gone", base_url="http://127.0.0.1:9/v1")
    assert list_models(gone).models is None
    keyless = gone.model_copy(update={"api_key_env": "ROUTEYARD_TEST_KEY"})
    assert "ROUTEYARD_TEST_KEY" in (list_models(keyless).why or "")


def test_a_list_is_read_where_an_event_loop_runs_already():
    async def notebook(provider):
        return list_models(provider)

    with endpoint(200, {"data": [{"id": "a"}]}) as provider:
        assert asyncio.run(notebook(provider)).models == {"a"}
