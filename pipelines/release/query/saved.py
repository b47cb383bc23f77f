"""The twelve things people ask a release first, as saved queries (`saved.yaml`)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import yaml

from routeyard.pipelines.errors import UnknownName, did_you_mean


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """One saved query: the question in words, and in SQL."""

    asks: str
    sql: str


_CONTENT = yaml.safe_load(files(__package__).joinpath("saved.yaml").read_text(encoding="utf-8"))
SAVED = {name: SavedQuery(**query) for name, query in _CONTENT.items()}


def saved(name: str) -> SavedQuery:
    """A saved query by name.

    Raises:
        UnknownName: no saved query has that name.
    """
    if name not in SAVED:
        raise UnknownName(f"there is no saved query {name!r}", next_step=did_you_mean(name, SAVED))
    return SAVED[name]
