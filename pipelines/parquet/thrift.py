"""Structs of Thrift's compact protocol, in which Parquet writes its footer and its page headers.

They are read more strictly than readers do, so that both see the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_DEEPEST = 16

#: Field → (type, value).
Fields = dict[int, tuple[int, Any]]


class WrongPage(ValueError):
    """A header or a footer that is none."""


class Compact:
    """A reader of structs.

    Its whole numbers are those of Parquet's deltas too. IndexError where the bytes end early.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> Fields:
        if depth > _DEEPEST:
            raise WrongPage("a header nested too deeply")
        return {number: (kind, self.value(kind, depth)) for number, kind in self.fields()}

    def fields(self) -> Iterator[tuple[int, int]]:
        """(number, type) of each field; the value of one has to be read before the next."""
        last = 0
        while first := self._byte():
            kind, step = first & 15, first >> 4
            number = last + step if step else self.signed()
            if number <= last:  # readers differ in which of two they take
                raise WrongPage("a header whose fields are not in order")
            yield number, kind
            last = number

    def value(self, kind: int, depth: int = 0) -> Any:
        """The value of a field: bytes of texts and numbers with a fraction, as they are."""
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind in (I16, I32, I64):
            return self.signed()
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (BYTE, DOUBLE, BINARY):
            return self.bytes({BYTE: 1, DOUBLE: 8}.get(kind) or self.unsigned())
        if kind == LIST:
            if depth >= _DEEPEST:
                raise WrongPage("a header nested too deeply")
            size, of = self.list_of()
            # Within a list, a truth is a byte.
            return [self.value(BYTE if of in (TRUE, FALSE) else of, depth + 1) for _ in range(size)]
        raise WrongPage(f"a header with a value of kind {kind}")

    def list_of(self) -> tuple[int, int]:
        """(length, type of the entries) of a list that begins here."""
        first = self._byte()
        return (self.unsigned() if first >> 4 == 15 else first >> 4), first & 15

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.data):
            raise IndexError

    def bytes(self, size: int) -> bytes:
        self.skip(size)
        return self.data[self.at - size : self.at]

    def unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise WrongPage("a number without an end")

    def signed(self) -> int:
        found = self.unsigned()
        return (found >> 1) ^ -(found & 1)

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]
