"""A server on this machine whose port changed: who answers there now, and may its answers mix?

A benchmark whose label moved from one loopback address to another keeps its answers only where a
person says so (`--reuse`), or where both addresses list the same models in detail. The ledger
notes the addresses that are one server, and what each listed when it was first met.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel

from routeyard.pipelines.calls.client import get_json
from routeyard.pipelines.calls.known_answers import APART_NOTE, MOVED_NOTE, place_note, places
from routeyard.pipelines.calls.reply import CallFault
from routeyard.pipelines.calls.wire.address import identity_of, is_loopback, on_loopback
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.pool import Provider

#: What a person says of answers that another port gave.
Decision = Literal["reuse", "ask_again"]
LISTED_NOTE = "listed:"
_TIMEOUT_S = 5.0
Listed = dict[str, dict[str, Any]]
Fetch = Callable[..., Mapping[str, Any]]
#: Keys of a listed model that say what is served; others differ at each start, or hold prices.
_TELLS = ("root", "path", "digest", "revision", "quantization", "architecture", "meta")


def settle_ports(
    ledger: Ledger,
    providers: Iterable[Provider],
    benchmark: str,
    decision: Decision | None,
    *,
    fetch: Fetch = get_json,
) -> list[str]:
    """Note which loopback addresses of a build are one server; lines that say what was decided.

    Where nothing is decided, `KnownAnswers` tells whoever looks an answer up (`KnownAnswers`).
    """
    said: list[str] = []
    for provider in {one.name: one for one in providers}.values():
        if not on_loopback(provider):
            continue
        identity, name = identity_of(provider), place_note(benchmark, provider.name)
        if decision is not None:
            ledger.forget([LISTED_NOTE + name])  # what is served now counts from now on
        same, apart = places(ledger, name)
        others = apart if identity in same else [*same, *apart]
        others = [one for one in others if one != identity]
        if not is_loopback(identity) or not others:
            continue
        last, known = others[-1], [*same, *apart, identity]
        if decision == "ask_again":
            same = [identity]
            said.append(f"{provider.name}: answers of other ports are left out; all is asked again")
        elif decision == "reuse" or _same(_lists(ledger, name).get(last), provider, fetch):
            why = "as --reuse says" if decision else "both list the same models"
            said.append(f"{provider.name}: answers of {last} are used for {identity}, {why}")
            # A list tells of these two alone.
            group = same if {identity, last} & {*same} else []
            same = [*dict.fromkeys(known if decision else [*group, last, identity])]
        else:
            continue
        apart = [] if decision else [one for one in known if one not in same]
        ledger.remember({MOVED_NOTE + name: json.dumps(same), APART_NOTE + name: json.dumps(apart)})
    return said


def note_lists(
    ledger: Ledger, providers: Iterable[Provider], benchmark: str, *, fetch: Fetch = get_json
) -> None:
    """Note what servers on this machine list, before they are asked anything.

    Raises:
        BadInput: a server lists another model under a name than when it was first asked.
    """
    for provider in {one.name: one for one in providers}.values():
        if not on_loopback(provider) or (now := _listed(provider, fetch)) is None:
            continue
        name, identity = place_note(benchmark, provider.name), identity_of(provider)
        lists = _lists(ledger, name)
        before = lists.setdefault(identity, now)
        for model in sorted(set(before) & set(now)):
            if before[model] and now[model] and before[model] != now[model]:
                raise BadInput(
                    f"{identity} serves another model as {model!r} than when it was first asked: "
                    f"then {_shown(before[model])}, now {_shown(now[model])}",
                    where=f"provider {provider.name!r}",
                    next_step="give the provider another name in the recipe to ask it everything; "
                    "or run `routeyard build` once with --reuse if it is the same model",
                )
        ledger.remember({LISTED_NOTE + name: json.dumps(lists)})


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


def _lists(ledger: Ledger, name: str) -> dict[str, Listed]:
    """Address → what it listed when it was first asked."""
    found: dict[str, Listed] = json.loads(ledger.recall(LISTED_NOTE + name).get("", "{}"))
    return found


def _same(before: Listed | None, provider: Provider, fetch: Fetch) -> bool:
    """Whether an endpoint lists the models that another listed, and says more than names."""
    now = _listed(provider, fetch)
    if not before or not now:
        return False
    both = set(before) & set(now)
    return bool(both) and all(before[one] and before[one] == now[one] for one in both)


def _listed(provider: Provider, fetch: Fetch) -> Listed | None:
    """Model → what an endpoint lists of it that tells it from others."""
    try:
        entries = fetch(provider, "/models", timeout_s=_TIMEOUT_S).get("data")
    except (BadInput, CallFault):
        return None
    return {
        one["id"]: {key: one[key] for key in _TELLS if one.get(key)}
        for one in (entries if isinstance(entries, list) else [])
        if isinstance(one, dict) and isinstance(one.get("id"), str)
    } or None


def _shown(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=True, default=str)[:200]
