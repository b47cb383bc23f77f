"""Hashes of what a router is given: equal questions, labels and vectors, equal hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from routeyard.pipelines.matrix.examples import Examples, Queries

#: Bytes that are hashed at once, of arrays that may be on disk.
_BLOCK = 1 << 24
#: Texts that are hashed at once.
_TEXTS = 4096

_KNOWN: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def digest(given: Examples | Queries) -> str:
    """16 hex digits over everything that is in it, computed once for an object."""
    if given not in _KNOWN:
        hashed = hashlib.sha256()
        feed(hashed, given)
        _KNOWN[given] = hashed.hexdigest()[:16]
    return _KNOWN[given]


def feed(hashed: Any, value: Any) -> None:
    """Every value with its kind and length before it, so that no two things read alike."""
    if value is None or isinstance(value, str):
        text = b"" if value is None else value.encode("utf-8", "surrogatepass")
        hashed.update(f"{type(value).__name__}{len(text)}:".encode() + text)
    elif isinstance(value, np.ndarray) and value.dtype.kind not in "UO":
        hashed.update(f"{value.dtype}{value.shape}:".encode())
        rows = max(1, _BLOCK // max(1, value[:1].nbytes))
        for first in range(0, len(value), rows):
            hashed.update(np.ascontiguousarray(value[first : first + rows]).data)
    elif isinstance(value, Mapping):
        hashed.update(f"map{len(value)}:".encode())
        for name in sorted(value):
            feed(hashed, name)
            feed(hashed, value[name])
    elif is_dataclass(value):
        for one in fields(value):
            feed(hashed, one.name)
            feed(hashed, getattr(value, one.name))
    else:
        hashed.update(f"list{len(value)}:".encode())
        for first in range(0, len(value), _TEXTS):
            texts = [
                str(one).encode("utf-8", "surrogatepass") for one in value[first : first + _TEXTS]
            ]
            hashed.update(b"".join([b"str%d:%b" % (len(text), text) for text in texts]))
