"""Yanking: a version is marked as not to be used, and stays where it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from routeyard.pipelines.errors import BadInput, GateFailed, SourceError
from routeyard.pipelines.io.staging import write_text
from routeyard.pipelines.io.untrusted import short_text
from routeyard.pipelines.release.finding import Finding
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.schemas.strict import Strict

MARK = "YANKED.json"
#: Bytes of a mark: a reason is some sentences, and is shown by every command.
_MOST = 10_000


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
    if len(text.encode()) >= _MOST:
        raise BadInput("the reason is too long", next_step="shorten it to some sentences")
    # a link would be written through
    write_text(release / MARK, text + "\n")
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
    if not os.path.lexists(path):  # a link that leads nowhere is a mark as well
        return None
    try:
        note = Yanked.model_validate(json.loads(short_text(path, _MOST)))
        note.words.encode()  # half of a surrogate pair is no text
    except (OSError, ValueError, RecursionError, SourceError) as error:
        raise SourceError(
            "the mark of a yanked release cannot be read",
            where=str(path),
            next_step="treat the release as yanked, or fetch it again",
        ) from error
    return note


def check_mark(release: Path) -> Iterator[Finding]:
    """The finding of a mark that nobody can read; what is no file is named among the files."""
    path = release / MARK
    if path.is_symlink() or not path.is_file():
        return
    try:
        yanked(release)
    except SourceError as error:
        yield Finding("yanked", MARK, error.what)
