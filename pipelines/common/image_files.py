"""Image files of strangers: kind, size and hash from their first bytes; no picture is decoded."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

from routeyard.pipelines.common.errors import SourceError

#: Bytes and pixels of an image, at most: more is refused, as a small file may hold many pixels.
MOST_BYTES, MOST_PIXELS = 20_000_000, 64_000_000


def read_image(name: str, folder: Path, place: str) -> bytes:
    """Bytes of an image below a folder.

    Raises:
        SourceError: the path leads out of the folder, also by a link; it is no plain file, or
            larger than `MOST_BYTES`.
    """
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, name)) if "\0" not in name else ""
    inside = not os.path.isabs(name) and ".." not in Path(name).parts
    if not inside or not path or os.path.commonpath([root, path]) != root:
        raise _refused(
            f"the image {name[:200]!r} leads out of the folder of images", place,
            "name images by their path below 'images_in', without '..' and links to elsewhere",
        )  # fmt: skip
    try:
        result = os.stat(path)
        if not stat.S_ISREG(result.st_mode):
            raise _refused(f"the image {name[:200]!r} is no plain file", place, "name a file")
        _check_size(result.st_size, place)
        with open(path, "rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise _refused(
            f"the image {name[:200]!r} cannot be read: {error.strerror}", place,
            f"put the file into {folder.name!r}, or correct the column or 'images_in'",
        ) from error  # fmt: skip


def describe_image(data: bytes, place: str) -> tuple[str, int, int]:
    """Media type, width and height (pixels) of an image, as its header has them.

    Raises:
        SourceError: it is no PNG, JPEG, GIF or WebP, or larger than `MOST_BYTES` or `MOST_PIXELS`.
    """
    _check_size(len(data), place)
    try:
        result = next(
            (
                (kind, *size(data))
                for kind, begins, size in _KINDS
                if data.startswith(begins) and (kind != "image/webp" or data[8:12] == b"WEBP")
            ),
            None,
        )
    except (struct.error, IndexError, ValueError):
        result = None
    if result is None:
        raise _refused(
            f"expected a PNG, JPEG, GIF or WebP image; found {len(data):,} bytes that begin with "
            f"{data[:12]!r}", place,
            "convert the image: drawings such as SVG and documents are not sent to models",
        )  # fmt: skip
    kind, width, height = result
    if not 0 < width * height <= MOST_PIXELS:
        raise _refused(
            f"the image says that it has {width:,} × {height:,} pixels; at most {MOST_PIXELS:,} "
            "are taken", place, "make it smaller: it may be made to exhaust memory",
        )  # fmt: skip
    return kind, width, height


def _check_size(size: int, place: str) -> None:
    if size > MOST_BYTES:
        raise _refused(
            f"the image has {size:,} bytes; at most {MOST_BYTES:,} are taken", place,
            "make it smaller",
        )  # fmt: skip


def _refused(what: str, place: str, then: str) -> SourceError:
    return SourceError(what, where=place, next_step=then)


def _png(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        raise ValueError
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        if data[at] != 0xFF:
            raise ValueError
        kind = data[at + 1]
        if kind == 0xFF:  # a filling byte
            at += 1
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + max(struct.unpack_from(">H", data, at + 2)[0], 2)


def _webp(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8X":
        wide, high = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return wide + 1, high + 1
    raise ValueError


_KINDS = (
    ("image/png", b"\x89PNG\r\n\x1a\n", _png),
    ("image/jpeg", b"\xff\xd8\xff", _jpeg),
    ("image/gif", (b"GIF87a", b"GIF89a"), _gif),
    ("image/webp", b"RIFF", _webp),
)
