"""Members of a zip file, within limits: a small archive can unfold into a full disk."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from routeyard.pipelines.common.errors import SourceError, Unsafe

MAX_BYTES = 4_000_000_000
MAX_MEMBERS = 200_000
#: JSON compresses about tenfold; a bomb does so a thousandfold.
MAX_RATIO = 200
_BLOCK = 1 << 20
#: What a damaged, cut or encrypted archive raises (OSError: its Zstandard stream).
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)
#: Zstandard's number among the compressions of a zip file; zipfile cannot read it before 3.14.
_ZSTANDARD = 93


def members(path: Path, ending: str, *, max_bytes: int = MAX_BYTES) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the members that end in `ending`, in order of name.

    Nothing is written to disk. The declared sizes are not believed: bytes are
    counted while they are unfolded.

    Raises:
        Unsafe: the archive unfolds to more than any dataset would.
        SourceError: it is damaged or encrypted.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
            if len(entries) > MAX_MEMBERS:
                raise _bomb(path, f"it has {len(entries):,} members")
            total = 0
            for entry in entries:
                if entry.is_dir() or not entry.filename.endswith(ending):
                    continue
                room = min(max_bytes - total, max(entry.compress_size, 5_000) * MAX_RATIO)
                content = _read(archive, entry, room, path)
                total += len(content)
                yield entry.filename, content
    except _DAMAGED as error:
        raise SourceError(
            f"the archive cannot be read: {error}",
            where=str(path),
            next_step="fetch the file again",
        ) from error


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, room: int, path: Path) -> bytes:
    blocks: list[bytes] = []
    size = 0
    with _opened(archive, entry, path) as stream:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > room:
                raise _bomb(path, f"{entry.filename} unfolds to more than {room:,} bytes")
            blocks.append(block)
    content = b"".join(blocks)
    if entry.compress_type == _ZSTANDARD and zlib.crc32(content) != entry.CRC:
        raise zipfile.BadZipFile(f"the checksum of {entry.filename} is wrong")
    return content


def _opened(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> IO[bytes] | Any:
    """Stream of a member's content, unfolded as it is read."""
    if entry.compress_type != _ZSTANDARD:
        return archive.open(entry)
    import pyarrow as pa

    with path.open("rb") as file:
        file.seek(entry.header_offset)
        head = file.read(30)
        if head[:4] != b"PK\x03\x04" or entry.flag_bits & 1:
            raise zipfile.BadZipFile(f"{entry.filename} has no readable header")
        # A name and an extra field of the lengths given there precede the content.
        file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
        packed = file.read(entry.compress_size)
    return pa.CompressedInputStream(pa.BufferReader(packed), "zstd")


def _bomb(path: Path, what: str) -> Unsafe:
    return Unsafe(
        f"the archive is refused: {what}",
        where=str(path),
        next_step="unpack it yourself if you trust it, and import the folder",
    )
