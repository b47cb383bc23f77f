"""One batch under way, as it is noted in the ledger before the provider hears of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from routeyard.pipelines.calls.request import Request, RequestSettings
from routeyard.pipelines.ledger.answer_keys import AnswerKey

PREFIX = "batch:"


@dataclass
class BatchNote:
    """Everything that importing its results needs."""

    name: str
    provider: str
    model_id: str
    run: str
    purpose: str
    requested_at: str
    position: int
    endpoint: str
    #: Per line: request_hash, samples, query_id, settings_hash.
    items: list[tuple[str, list[int], str, str]]
    file_id: str | None = None
    batch_id: str | None = None
    #: Per line: what was set aside for it in the ledger.
    charges: list[str] = field(default_factory=list)
    #: Per line: attempts before this one that were billed without an answer.
    billed: list[int] = field(default_factory=list)
    #: Per line: fewest tokens of its prompt, for the lower bound of its bill.
    least: list[int] = field(default_factory=list)
    #: Per line: most of its prompt that a cache can have held, as a share.
    cached: list[float] = field(default_factory=list)

    @classmethod
    def read(cls, text: str) -> BatchNote:
        """From the text of its note."""
        noted = cls(**json.loads(text))
        noted.items = [(h, list(s), q, sh) for h, s, q, sh in noted.items]
        return noted

    @property
    def keys(self) -> list[AnswerKey]:
        return [(item[0], sample) for item in self.items for sample in item[1]]

    @property
    def note_name(self) -> str:
        return PREFIX + self.name

    def note(self) -> dict[str, str]:
        return {self.note_name: json.dumps(vars(self))}

    def requests(self) -> list[Request]:
        """The requests as far as a note keeps them: enough to file their answers."""
        return [
            Request(
                query_id,
                self.model_id,
                _NotedSettings(self.provider, self.endpoint, "", {}, noted=settings_hash),
                (),
                tuple(samples),
                request_hash,
            ).with_billed(billed)
            for (request_hash, samples, query_id, settings_hash), billed in zip(
                self.items, self.billed, strict=True
            )
        ]


@dataclass(frozen=True)
class _NotedSettings(RequestSettings):
    """Settings of which only the hash was noted."""

    noted: str = ""

    @property
    def settings_hash(self) -> str:
        return self.noted
