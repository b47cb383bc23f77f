"""Arrays of the numbers that evaluations and curation work on, by one name each."""

from __future__ import annotations

from typing import Any

import numpy as np
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
