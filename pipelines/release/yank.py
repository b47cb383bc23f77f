"""Yanking: a version is marked as not to be used, and stays where it is."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from pipelines.errors import BadInput, GateFailed, SourceError
from pipelines.release.manifest import read_manifest
from schemas.recipe.base import Strict

MARK = "YANKED.json"


class Yanked(Strict):
    """Why a version should not be used, and which one to use instead."""

    reason: str
    use_instead: str | None = None

    @property
    def words(self) -> str:
        """For whoever uses the release all the same."""
        instead = f"; use {self.use_instead} instead" if self.use_instead else ""
        return f"this release was yanked: {self.reason}{instead}"


def yank(release: Path, *, reason: str, use_instead: str | None = None) -> Yanked:
    """Mark a release as yanked; its files and fingerprint stay as they are.

    Raises:
        BadInput: no reason is given, or the release is yanked already.
        SourceError: the folder is no release.
    """
    read_manifest(release)
    if not reason.strip():
        raise BadInput("a release is yanked for a reason", next_step="give one with --reason")
    if there := yanked(release):
        raise BadInput(
            f"the release is yanked already: {there.reason}",
            where=str(release),
            next_step=f"lift it first by removing {release / MARK}",
        )
    note = Yanked(reason=reason.strip(), use_instead=use_instead)
    text = json.dumps(note.model_dump(), indent=2, sort_keys=True, ensure_ascii=False)
    (release / MARK).write_text(text + "\n", encoding="utf-8")
    return note


def refuse_yanked(release: Path) -> None:
    """Before a release is published anew.

    Raises:
        GateFailed: it was yanked.
    """
    if note := yanked(release):
        other = f"publish {note.use_instead}" if note.use_instead else "publish another version"
        raise GateFailed(
            note.words,
            where=str(release),
            next_step=f"{other}, or lift the mark by removing {release / MARK}",
        )


def yanked(release: Path) -> Yanked | None:
    """The mark of a yanked release, None for any other.

    Raises:
        SourceError: there is a mark, but it cannot be read.
    """
    path = release / MARK
    if not path.exists():
        return None
    try:
        return Yanked.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, ValidationError) as error:
        raise SourceError(
            "the mark of a yanked release cannot be read",
            where=str(path),
            next_step="treat the release as yanked, or fetch it again",
        ) from error
