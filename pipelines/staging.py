"""A folder that appears whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.errors import DiskFull

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """A new folder beside `target`, removed at the end unless `place` moved it there.

    Raises:
        DiskFull: there was no room.
    """
    folder: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.staging-", dir=target.parent))
        yield folder
    except Exception as error:
        if is_full(error):
            raise DiskFull(
                f"there is no room on the disk for {target.name}",
                where=str(target),
                next_step="free some space and run the same command; "
                "finished stages are kept and nothing half-written is left",
            ) from error
        raise
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def place(folder: Path, target: Path) -> None:
    """Flush a staging folder to disk and rename it to `target`.

    A power cut leaves either nothing or all of it.

    Raises:
        FileExistsError: someone else made `target` in the meantime.
    """
    folder.chmod(0o755)
    for path in sorted(folder.rglob("*")):
        _flush(path)
    _flush(folder)
    if target.exists():
        raise FileExistsError(errno.EEXIST, "another build made it first", str(target))
    folder.rename(target)
    _flush(target.parent)


def is_full(error: BaseException) -> bool:
    """Whether an error of the system, Arrow or DuckDB says that the disk is full."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    words = ("no space left", "disk quota exceeded", "file too large")
    return any(word in str(error).lower() for word in words)


def sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
