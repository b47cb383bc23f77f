"""Whether a stage's folder holds what its stage wrote: sizes and SHA-256 of its files.

A file kept on a disk for months can lose a file, end early or have a bit flipped. A folder that
does not match its seal counts as not made, so that the stage is run again; nothing in it was
paid for that the ledger does not hold.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.pipelines.io.files import sha256
from routeyard.pipelines.io.staging import beside

RECORD = "stage.json"


def sealed(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a finished stage with its files, and with a hash over all of it."""
    files = {
        path.relative_to(folder).as_posix(): [path.stat().st_size, sha256(path)]
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    whole = {**record, "files": files}
    return {**whole, "seal": _digest(whole)}


def intact(folder: Path, *, thoroughly: bool = True) -> dict[str, Any] | None:
    """The record of a stage's folder; None where the record is missing or damaged.

    Args:
        thoroughly: Read every file; else their sizes are compared.
    """
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        seal = record.pop("seal")
        if seal != _digest(record):
            return None
        for name, (size, digest) in record["files"].items():
            path = folder / name
            if path.stat().st_size != size or (thoroughly and sha256(path) != digest):
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return dict(record)


def clear(folder: Path) -> bool:
    """Take a damaged folder out of the way; True when there was one.

    Of a link only the link is taken: what it leads to, if anything, is somebody else's.
    """
    if not os.path.lexists(folder):
        return False
    aside = beside(folder)
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return False  # another process was faster
    if aside.is_symlink():
        aside.unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    return True


def _digest(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
