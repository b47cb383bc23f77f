"""Answers of one model as columns; as rows only where a check looks at one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.metering.findings import Row

#: Words, runs of signs and signs beyond ASCII: no fewer than `bill.words` counts.
_WORDS = r"[0-9A-Za-z_]+|[^0-9A-Za-z_\t\n\v\f\r\x1c-\x20\x80-\x{10FFFF}]+|[^\x00-\x7f]"
#: The same mask for every answer, or one of each.
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class AnswerColumns:
    """A table of answers, of which each column may be absent."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column; null where it is absent."""
        if name in self.table.column_names:
            return self.table.column(name)
        return pa.chunked_array([pa.nulls(len(self), pa.string())])

    def numbers(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """A column as float64, NaN where it is null."""
        found = self.column(name)
        if found.null_count == len(found):
            return np.full(len(found), np.nan)
        return np.asarray(found.cast(pa.float64()), dtype=np.float64)

    def null(self, name: str) -> Mask:
        """Which answers have no value in a column."""
        return np.asarray(pc.is_null(self.column(name)), dtype=bool)

    def equal(self, name: str, value: str) -> Mask:
        """Which answers have a value in a column of texts."""
        return np.asarray(pc.fill_null(pc.equal(self.column(name), value), False), dtype=bool)

    def where(self, mask: Mask) -> AnswerColumns:
        """The answers of a mask."""
        return AnswerColumns(self.table.filter(pa.array(mask)))

    @property
    def rows(self) -> list[Row]:
        return list(self.table.to_pylist())


def most_words(texts: pa.ChunkedArray) -> Any:
    """Most words that each text can have, as float64; NaN where it is null."""
    found = pc.count_substring_regex(texts.cast(pa.string()), _WORDS)
    return found.cast(pa.float64()).to_numpy(zero_copy_only=False)
