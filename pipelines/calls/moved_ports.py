"""A server on this machine whose port changed: who answers there now, and may its answers mix?

A benchmark whose label moved from one loopback address to another keeps its answers only where a
person says so (`--reuse`), or where both addresses list the same models in detail. The ledger
notes the addresses that are one server, and what each listed when it was first met.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import BaseModel

from routeyard.pipelines.calls.client import get_json
from routeyard.pipelines.calls.known_answers import MOVED_NOTE, place_note
from routeyard.pipelines.calls.reply import CallFault
from routeyard.pipelines.calls.wire.address import identity_of, is_loopback
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.pool import Provider

#: What a person says of answers that another port gave.
Decision = Literal["reuse", "ask_again"]
LISTED_NOTE = "listed:"
_TIMEOUT_S = 5.0
#: Keys of a listed model that differ at each start, or say nothing about what is served.
_IDLE = frozenset({"id", "object", "created", "permission", "owned_by"})


def settle_ports(
    ledger: Ledger,
    providers: Iterable[Provider],
    benchmark: str,
    decision: Decision | None,
    *,
    fetch: Any = get_json,
) -> list[str]:
    """Compare and note the loopback addresses of a build; lines that say what was decided.

    Where nothing is decided, whoever looks an answer up is told (`KnownAnswers`).
    """
    said: list[str] = []
    for provider in {one.name: one for one in providers}.values():
        identity = identity_of(provider)
        if not is_loopback(identity):
            continue
        name = place_note(benchmark, provider.name)
        known: list[str] = json.loads(ledger.recall(MOVED_NOTE + name).get("", "[]"))
        lists: dict[str, Any] = json.loads(ledger.recall(LISTED_NOTE + name).get("", "{}"))
        if identity not in lists and (now := _listed(provider, fetch)):
            lists[identity] = now
            ledger.remember({LISTED_NOTE + name: json.dumps(lists)})
        if not known or identity in known:
            continue
        before = lists.get(known[-1])
        same = before is not None and before == lists.get(identity) and _tells(before)
        if decision == "ask_again":
            known = []
            said.append(f"{provider.name}: answers of other ports are left out; all is asked again")
        elif decision == "reuse" or same:
            why = "as --reuse says" if decision else "both list the same models"
            said.append(f"{provider.name}: answers of {known[-1]} are used for {identity}, {why}")
        else:
            continue
        ledger.remember({MOVED_NOTE + name: json.dumps([*known, identity])})
    return said


def providers_in(value: object) -> Iterator[Provider]:
    """Every provider in a recipe: of the pool, of verifiers, of judges."""
    if isinstance(value, Provider):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from providers_in(getattr(value, name))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from providers_in(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from providers_in(one)


def _listed(provider: Provider, fetch: Any) -> list[dict[str, Any]] | None:
    """The models that an endpoint lists, without what changes at each start."""
    try:
        entries = fetch(provider, "/models", timeout_s=_TIMEOUT_S).get("data")
    except (BadInput, CallFault):
        return None
    kept = [
        {key: value for key, value in one.items() if key not in _IDLE - {"id"}}
        for one in (entries if isinstance(entries, list) else [])
        if isinstance(one, dict)
    ]
    return sorted(kept, key=lambda one: json.dumps(one, sort_keys=True, default=str)) or None


def _tells(listed: list[dict[str, Any]]) -> bool:
    """Whether a list says more than names: another model can have any name."""
    return all(set(one) - _IDLE for one in listed)
