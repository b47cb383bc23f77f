"""Arrow's columns of text, read from their buffers with every offset checked."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.pickles.machine import Made, Refused

_OFFSETS = {"string": "<i4", "utf8": "<i4", "large_string": "<i8", "large_utf8": "<i8"}


def strings(to: Any, value: Any) -> list[str | None]:
    """The texts of a pickled Arrow array or chunked array; null is None.

    Args:
        to: The conversion (`plain.Plain`) that the value belongs to.

    Raises:
        Refused: it is no column of text.
        ValueError: an offset points outside its buffer.
    """
    if not isinstance(value, Made):
        raise Refused("the pickle holds an Arrow column without data")
    if value.name.name == "chunked_array":
        chunks = value.arguments[0] if value.arguments else []
        return [text for chunk in chunks for text in strings(to, chunk)]
    if value.name.name != "_restore_array" or len(value.arguments) != 1:
        raise Refused(f"the pickle asks for {value.name}, which data do not need")
    kind, length, _, offset, buffers, *_ = value.arguments[0]
    if not isinstance(kind, Made) or kind.name.name not in ("type_for_alias", *_OFFSETS):
        raise Refused("the pickle holds an Arrow column that is no text")
    alias = kind.arguments[0] if kind.arguments else kind.name.name
    if alias not in _OFFSETS or not isinstance(buffers, list) or len(buffers) != 3:
        raise Refused(f"the pickle holds an Arrow column of {str(alias)[:40]}, not of text")
    if type(length) is not int or type(offset) is not int or length < 0 or offset < 0:
        raise ValueError("an Arrow column without a valid length")
    to.spend(length)
    valid, offsets, data = (_buffer(to, part) for part in buffers)
    return _texts(valid, offsets, data, _OFFSETS[alias], length, offset)


def _texts(
    valid: bytes | None, offsets: bytes | None, data: bytes | None, kind: str, length: int, at: int
) -> list[str | None]:
    import numpy as np

    if not length:
        return []
    size = int(kind[-1])
    if offsets is None or len(offsets) < (at + length + 1) * size:
        raise ValueError("an Arrow column with fewer offsets than rows")
    edges = np.frombuffer(offsets, dtype=kind, count=at + length + 1)[at:]
    text = data or b""
    if edges[0] < 0 or (np.diff(edges) < 0).any() or edges[-1] > len(text):
        raise ValueError("an offset of an Arrow column points outside its text")
    if valid is not None and len(valid) * 8 < at + length:
        raise ValueError("an Arrow column with fewer validity bits than rows")
    present = (
        np.ones(length, dtype=bool)
        if valid is None
        else np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[at : at + length]
    )
    places = edges.tolist()
    return [
        text[places[i] : places[i + 1]].decode("utf-8") if present[i] else None
        for i in range(length)
    ]


def _buffer(to: Any, value: Any) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, Made) or value.name.name != "py_buffer" or not value.arguments:
        raise Refused("the pickle holds an Arrow column without buffers")
    held = to.of(value.arguments[0])
    if not isinstance(held, bytes):
        raise ValueError("a buffer that holds no bytes")
    return held
