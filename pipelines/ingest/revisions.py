"""Whether the hub holds newer revisions than a recipe's sources ask for. Reads no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.catalog import from_catalog
from routeyard.pipelines.ingest.hub import is_commit, resolve
from routeyard.schemas.recipe import Source


@dataclass(frozen=True, slots=True)
class Revision:
    """One hub source.

    Attributes:
        wanted: What the recipe asks for; null for the default branch.
        newest: Newest commit of the default branch, or of the branch or tag that is
            wanted; null where the hub did not say (`why`).
    """

    source: str
    hub_id: str
    wanted: str | None
    newest: str | None
    why: str | None = None

    @property
    def pinned(self) -> bool:
        """A commit never moves; a branch, a tag or nothing does."""
        return self.wanted is not None and is_commit(self.wanted)

    @property
    def newer_exists(self) -> bool:
        """A pinned source of which the hub has another commit; false where it is unknown."""
        return self.pinned and self.newest is not None and self.newest != self.wanted


def revisions(sources: Sequence[Source]) -> list[Revision]:
    """Ask the hub about every hub source, in recipe order."""
    found = []
    for listed in sources:
        source = from_catalog(listed)
        if source.kind != "hub":
            continue
        name, hub_id, wanted = source.name, str(source.hub_id), source.revision
        asked = Revision(name, hub_id, wanted, None)
        try:
            branch = None if asked.pinned else wanted
            commit = resolve(hub_id, branch, where=f"source {name!r}")
        except SourceError as error:
            found.append(Revision(name, hub_id, wanted, None, error.what))
        else:
            found.append(Revision(name, hub_id, wanted, commit))
    return found
