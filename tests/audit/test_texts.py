"""What the audit counts in texts equals what Arrow's and numpy's own functions give."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from routeyard.pipelines.audit.exchanges import levels, occurrences

SIGNS = ("\n", ",", "I ")
TEXTS = ["I , I", " ", None, "", "I", " I am, I  was", "é,\nI\n ", "II I,,"] * 400


@pytest.mark.parametrize(
    "texts",
    [
        pa.array(TEXTS),
        pa.array(TEXTS).slice(5, 2050),
        pa.array(TEXTS, pa.large_string()).slice(3),
        pa.array([], pa.string()),
        pa.array([None], pa.string()),
    ],
)
def test_signs_are_counted_within_each_text(texts: pa.Array) -> None:
    found = occurrences(texts, SIGNS)
    there = pc.is_valid(texts).to_numpy(zero_copy_only=False)
    for row, sign in zip(found, SIGNS, strict=True):
        expected = pc.fill_null(pc.count_substring(texts, sign), 0)
        assert row[there].tolist() == expected.to_numpy(zero_copy_only=False)[there].tolist()


def test_levels_are_those_of_the_known_cells() -> None:
    rng = np.random.default_rng(0)
    made = np.where(rng.random((7, 3, 5)) < 0.4, np.nan, rng.random((7, 3, 5)))
    made[:, 1, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = made - np.nanmedian(made, axis=0, keepdims=True)
    assert np.array_equal(levels(made), expected, equal_nan=True)
