"""How often texts hold signs: counted over the bytes of many texts at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from routeyard.pipelines.audit.answers import Floats

#: Texts that are looked at together: few enough that their bytes stay in the processor's cache.
_TOGETHER = 1024


def occurrences(texts: pa.Array, signs: Sequence[str]) -> Floats:
    """(signs, n) how often each text holds each sign; anything where the text is missing.

    Args:
        texts: strings.
        signs: one or two ASCII characters each, two different ones.
    """
    found = np.zeros((len(signs), len(texts)))
    for start in range(0, len(texts), _TOGETHER):
        content, ends = _bytes(texts.slice(start, _TOGETHER))
        for k, sign in enumerate(signs):
            first, *second = sign.encode()
            at = np.flatnonzero(content == first)
            if second:
                at = at[np.append(content, 0)[at + 1] == second[0]]
            # Two characters are in one text where the second one is before its end.
            before = np.searchsorted(at, ends[:-1])
            upto = np.searchsorted(at, np.maximum(ends[1:] - len(second), ends[:-1]))
            found[k, start : start + len(ends) - 1] = upto - before
    return found


def _bytes(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts, and (n + 1,) where each begins and the last one ends."""
    _, offsets, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    ends = np.frombuffer(offsets or b"", kind)[texts.offset :][: len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]], ends - ends[0]
