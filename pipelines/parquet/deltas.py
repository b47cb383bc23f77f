"""Texts that are written as what differs from the last one: how long they are, by the page.

A page in DELTA_BYTE_ARRAY begins with two sequences in DELTA_BINARY_PACKED (parquet-format,
`Encodings`): how much of the last text each one repeats, and how much follows; a page in
DELTA_LENGTH_BYTE_ARRAY has the second alone. Only these are read. They say themselves how many
lengths they hold, and a reader makes room for so many.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.parquet.pages import Page
from pipelines.parquet.thrift import Compact, WrongPage

LENGTHS, TEXTS = 6, 7
#: Numbers that are unpacked together, and the most of one block: writers take some hundreds.
_TOGETHER = _LARGEST = 1 << 16
_HALF = 1 << 31  # lengths are 32 bits with a sign


def length(stream: BinaryIO, page: Page, codec: str, levels: int) -> int:
    """Bytes of the texts of a page in `LENGTHS` or `TEXTS`.

    Args:
        stream: The file.
        codec: Of the column chunk, as its footer names it.
        levels: How many kinds of levels the column has: of what repeats, of what may be null.

    Raises:
        WrongPage: the page is not what its header says.
    """
    data = _values(_unpacked(stream, page, codec), page, levels)
    if not data:
        return 0
    reader = Compact(data)
    try:
        repeated = _sum(reader, page.values) if page.encoding == TEXTS else 0
        own = _sum(reader, page.values)
    except IndexError:
        raise WrongPage("lengths that end early") from None
    if own > len(data) - reader.at:
        raise WrongPage("texts that end early")
    return repeated + own


def _unpacked(stream: BinaryIO, page: Page, codec: str) -> bytes:
    stream.seek(0, 2)
    if page.at + page.packed > stream.tell():
        raise WrongPage("a page that ends after its file")
    stream.seek(page.at)
    stream.read(min(page.levels or 0, page.packed))
    data = stream.read(max(0, page.packed - (page.levels or 0)))
    size = page.size - (page.levels or 0)
    if size < 0:
        raise WrongPage("levels that are longer than their page")
    if not page.compressed or codec == "UNCOMPRESSED" or not data or not size:
        return data
    unpacked: bytes = pa.Codec("lz4_raw" if codec == "LZ4" else codec.lower()).decompress(
        data, size, asbytes=True
    )
    return unpacked


def _values(data: bytes, page: Page, levels: int) -> bytes:
    """What follows the levels where these are within, each kind after its length."""
    at = 0
    for _ in range(levels if page.levels is None else 0):
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    if at > len(data):
        raise WrongPage("levels that are longer than their page")
    return data[at:]


def _sum(reader: Compact, most: int) -> int:
    """The sum of a sequence of lengths; the reader stands behind it then."""
    block, minis, count = reader.unsigned(), reader.unsigned(), reader.unsigned()
    first = reader.signed()
    if not minis or block % 128 or block % (32 * minis) or not 0 < block <= _LARGEST:
        raise WrongPage("lengths in blocks of a wrong size")
    if count > most:
        raise WrongPage("more lengths than values")
    if not count:
        return 0
    last = total = _length(first)
    size, left = block // minis, count - 1
    while left:
        deltas = _deltas(reader, size, minis, left)
        left -= len(deltas)
        # As readers do, which take 32 bits of everything.
        found = np.cumsum(deltas, dtype=np.uint32) + np.uint32(last)
        last = _length(int(found[-1]))
        if found.max() >= _HALF:
            raise WrongPage("a length below zero")
        total += int(found.sum(dtype=np.uint64))
    return total


def _length(number: int) -> int:
    if not 0 <= number < _HALF:
        raise WrongPage("a length below zero")
    return number


def _deltas(reader: Compact, size: int, minis: int, left: int) -> npt.NDArray[np.uint32]:
    """The differences of some blocks, at most `left`; each mini-block has bits of its own."""
    starts: list[int] = []
    widths: list[int] = []
    least: list[int] = []
    while left > size * len(starts) and size * len(starts) < _TOGETHER:
        step = reader.signed() % (1 << 32)
        for width in reader.bytes(minis):
            if size * len(starts) >= left:
                break  # of the last block, those that hold nothing are not written
            if width > 32:
                raise WrongPage("a length of more than 32 bits")
            starts.append(reader.at)
            widths.append(width)
            least.append(step)
            reader.skip(size // 8 * width)
    found = _bits(reader.data, np.array(starts), np.array(widths), size)
    found += np.array(least, np.uint32)[:, None]
    return found.reshape(-1)[:left]


def _bits(
    data: bytes, starts: npt.NDArray[np.int64], widths: npt.NDArray[np.int64], size: int
) -> npt.NDArray[np.uint32]:
    """Numbers of `widths` bits, `size` of them from each start: starts × size."""
    page = np.frombuffer(data, np.uint8)
    found = np.zeros((len(starts), size), np.uint32)
    for width in np.unique(widths[widths > 0]):
        which = np.flatnonzero(widths == width)
        packed = page[starts[which, None] + np.arange(size // 8 * width)]
        bits = np.zeros((len(which), size, 32), np.uint8)
        bits[:, :, :width] = np.unpackbits(packed, axis=1, bitorder="little").reshape(
            len(which), size, width
        )
        found[which] = np.packbits(bits, axis=2, bitorder="little").view("<u4")[:, :, 0]
    return found
