"""What a ledger knows of requests, also where they were kept under another port's hash.

A server on this machine may get another port at each start: a benchmark whose label moved from
one loopback address to another keeps its answers, once somebody has said that it is the same
server. Addresses of which nobody has said so are kept apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import pyarrow as pa
from pydantic import BaseModel

from routeyard.pipelines.collect.client import get_json
from routeyard.pipelines.collect.ledger import AnsweredKey, AnswerKey, Ledger, SettledKey
from routeyard.pipelines.collect.reply import CallFault
from routeyard.pipelines.collect.request import (
    Message,
    Request,
    RequestSettings,
    identity_of,
    is_loopback,
    on_loopback,
)
from routeyard.schemas.contracts import RESULTS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe.pool import Provider

#: Addresses of one server, and those that were asked beside it without a word of a person.
MOVED_NOTE, APART_NOTE = "moved:", "apart:"

_Found = TypeVar("_Found", SettledKey, AnsweredKey)


class KnownAnswers:
    """Looks up the answers of one model's requests.

    Args:
        benchmark: Whose requests; only it follows a label to another port.
    """

    def __init__(self, ledger: Ledger, settings: RequestSettings, benchmark: str) -> None:
        self._ledger = ledger
        self._settings = settings
        self._others = _moved(ledger, settings, benchmark)

    @property
    def answering(self) -> bool:
        """Whether the model has answered any request of these settings."""
        every = (self._settings, *self._others)
        return any(self._ledger.has_answers(one.settings_hash) for one in every)

    def settled(self, asked: Sequence[Sequence[Message]]) -> dict[AnswerKey, SettledKey]:
        """What the ledger holds for each request and sample."""
        now, before = self._hashes(asked)
        return _both(self._ledger.settled(now), self._ledger.settled(list(before)), before)

    def answered(self, asked: Sequence[Sequence[Message]]) -> dict[AnswerKey, AnsweredKey]:
        """As `settled`, with the whole attempts."""
        now, before = self._hashes(asked)
        return _both(self._ledger.answered(now), self._ledger.answered(list(before)), before)

    def _hashes(self, asked: Sequence[Sequence[Message]]) -> tuple[list[str], dict[str, str]]:
        """Request hashes, and hash elsewhere → hash."""
        now = [self._settings.request_hash(messages) for messages in asked]
        before: dict[str, str] = {}
        for other in self._others:
            hashes = [other.request_hash(messages) for messages in asked]
            before |= dict(zip(hashes, now, strict=True))
        return now, before


class PortMoved(BadInput):
    """Another port answered, and nobody has said whether it is the same server."""


def notes(ledger: Ledger, settings: Iterable[RequestSettings], benchmark: str) -> dict[str, str]:
    """What a run notes of its settings: the loopback addresses of each label."""
    noted: dict[str, str] = {}
    for one in settings:
        name = place_note(benchmark, one.label or one.provider)
        same, apart = places(ledger, name)
        if is_loopback(one.provider) and one.provider not in (*same, *apart):
            kind, before = (APART_NOTE, apart) if same else (MOVED_NOTE, same)
            noted[kind + name] = json.dumps([*before, one.provider])
    return noted


def places(ledger: Ledger, name: str) -> tuple[list[str], list[str]]:
    """Loopback addresses of a label that are one server, and others that were asked for it."""
    same, apart = (ledger.recall(note + name).get("", "[]") for note in (MOVED_NOTE, APART_NOTE))
    return json.loads(same), json.loads(apart)


def _both(
    now: dict[AnswerKey, _Found], elsewhere: dict[AnswerKey, _Found], names: dict[str, str]
) -> dict[AnswerKey, _Found]:
    both = {(names[name], sample): found for (name, sample), found in elsewhere.items()}
    # What one address answered counts for more than that the one of now refused it.
    return both | {
        key: one
        for key, one in now.items()
        if key not in both or _is_answer(one) or not _is_answer(both[key])
    }


def _is_answer(found: SettledKey | AnsweredKey) -> bool:
    one = found if isinstance(found, SettledKey) else found.attempt
    return one.status != "error"


def _moved(ledger: Ledger, settings: RequestSettings, benchmark: str) -> list[RequestSettings]:
    """The same settings at the ports that are known to be the same server.

    Raises:
        PortMoved: another port answered these settings, and nobody said that it is the same server.
    """
    if not is_loopback(settings.provider):
        return []
    same, apart = places(ledger, place_note(benchmark, settings.label or settings.provider))
    if settings.provider not in same:
        same, apart = [], [*same, *apart]
    for place in reversed(apart):
        there = replace(settings, provider=place)
        if place != settings.provider and ledger.has_answers(there.settings_hash):
            raise PortMoved(
                f"the ledger has answers of model {settings.endpoint_model!r} that {place} gave; "
                f"the recipe now says {settings.provider}, where another model may answer under "
                "that name",
                where=f"provider {settings.label or settings.provider!r}",
                next_step="if it is the same model, run `routeyard build` once with --reuse: "
                "nothing is paid for again; with --ask-again every question is asked at the new "
                "address",
            )
    return [replace(settings, provider=one) for one in same if one != settings.provider]


def place_note(benchmark: str, label: str) -> str:
    """Name of a label's notes in a benchmark."""
    return f"{benchmark}/{label}"


# A server on this machine whose port changed: who answers there now, and may its answers mix?
#
# A benchmark whose label moved from one loopback address to another keeps its answers only where a
# person says so (`--reuse`), or where both addresses list the same models in detail. The ledger
# notes the addresses that are one server, and what each listed when it was first met.

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


# Canary prompts: fixed prompts asked at the start and again at the end of a run.
#
# An endpoint that changes under a run (another model behind the name, another
# quantisation) answers them differently. They are kept in the ledger under
# separate purposes, never enter `responses`, and are asked in every run.

START, END = "canary:start", "canary:end"


def canary_requests(
    model_id: str, settings: RequestSettings, prompts: Sequence[str], run: str
) -> Iterator[Request]:
    """One request per prompt at temperature 0 for 64 tokens, with the model's other parameters.

    The run's name is part of the key, so that each run asks anew.
    """
    parameters = {k: v for k, v in settings.parameters.items() if k != "max_completion_tokens"}
    limit = "max_completion_tokens" if parameters != settings.parameters else "max_tokens"
    parameters |= {"temperature": 0, "seed": 0, limit: 64}
    asked = replace(settings, parameters=parameters)
    for prompt in prompts:
        messages = [{"role": "user", "content": prompt}]
        yield Request(
            query_id=prompt,
            model_id=model_id,
            settings=asked,
            messages=messages,
            samples=(0,),
            request_hash=f"{run}:{asked.request_hash(messages)}",
        )


def canary_answers(ledger: Ledger) -> pa.Table | None:
    """Canary answers of the newest run that asked any at its end; null without one.

    Columns `model_id`, `prompt`, `phase` (`start`, `end`), `text`, `served_model`.
    """
    rows = []
    newest: str | None = None
    for phase, purpose in (("start", START), ("end", END)):
        for attempt in ledger.attempts(purpose=purpose):
            if attempt.usable:
                rows.append((attempt.run, phase, attempt))
                newest = attempt.run
    if not rows:
        return None
    return pa.Table.from_pylist(
        [
            {
                "model_id": attempt.model_id,
                "prompt": attempt.query_id,
                "phase": phase,
                "text": attempt.text,
                "served_model": attempt.served_model,
            }
            for run, phase, attempt in rows
            if run == newest
        ],
        schema=RESULTS["canary_answers"],
    )
