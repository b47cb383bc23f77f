"""Arrays of the numbers that evaluations and curation work on, by one name each."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Names = NDArray[np.str_]
Array = NDArray[Any]


def ratio(part: Any, whole: Any) -> Floats:
    """part / whole where `whole` is above 0, else NaN."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.asarray(whole) > 0, np.divide(part, whole), np.nan)


# Which questions are the dense slice: marked by ingest, read by collect and by the splits.
#
# A source with `dense: n` marks its first n questions. They are asked of the whole
# pool; the others are the extension, which `collect.coverage` thins (Nine-by-300k,
# appendix D.2 of the routing-plateau paper).

#: Key in `queries.metadata`, and its two values.
SLICE = "slice"
DENSE, EXTENSION = "dense", "extension"


def dense_rows(queries: pa.Table) -> Bools:
    """(n,) True for questions marked as the dense slice; all False where nothing is marked."""
    found = np.zeros(queries.num_rows, dtype=bool)
    if "metadata" not in queries.column_names:
        return found
    needle = json.dumps(DENSE)
    for row, text in enumerate(queries.column("metadata").to_pylist()):
        # Parsed only where the mark can be: most benchmarks have none.
        if text and needle in text:
            metadata: Any = json.loads(text)
            found[row] = isinstance(metadata, dict) and metadata.get(SLICE) == DENSE
    return found
