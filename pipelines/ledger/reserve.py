"""Disk space that is held until the disk is full, for answers that are paid for by then."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar


class Reserve:
    """A file beside the ledger whose space the ledger takes when there is no other.

    Processes that share a ledger share it.
    """

    #: What calls in flight bring, generously: 256 answers of 30 KB.
    BYTES: ClassVar[int] = 8 << 20

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(f"{ledger.name}-reserve")

    def hold(self) -> None:
        """Hold the space.

        Raises:
            OSError: there is not so much, or the file system can hold none.
        """
        if self.path.is_file() and self.path.stat().st_size >= self.BYTES:
            return
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            _allocate(file, self.BYTES)
        except OSError:
            self.free()
            raise
        finally:
            os.close(file)

    def free(self) -> bool:
        """Give the space to whoever writes next; whether there was any."""
        try:
            self.path.unlink()
        except OSError:
            return False
        return True


def _allocate(file: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    part = bytes(1 << 20)
    for start in range(0, size, len(part)):
        os.write(file, part[: size - start])
