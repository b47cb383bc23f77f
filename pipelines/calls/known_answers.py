"""What a ledger knows of requests, also where they were kept under another port's hash.

A server on this machine may get another port at each start: a benchmark whose label moved from
one loopback address to another keeps its answers, once somebody has said that it is the same
server (`moved_ports.py`). Addresses of which nobody has said so are kept apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from routeyard.pipelines.calls.request import Message, RequestSettings
from routeyard.pipelines.calls.wire.address import is_loopback
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ledger.answer_keys import AnsweredKey, AnswerKey, SettledKey
from routeyard.pipelines.ledger.ledger import Ledger

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
