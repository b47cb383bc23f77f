"""What a page of the zoo's benchmark says of its split's size."""

from __future__ import annotations

import numpy as np

from benchmarks.zoo.run import resolution


def test_a_split_says_what_it_can_resolve() -> None:
    # A hundred questions of ten thousand turn against the first: 1 point, 0.1 of error.
    gap = np.r_[np.ones(100), np.zeros(9_900)]
    error = 100 * float(gap.std(ddof=1)) / 100
    clear = {"points": 1.0, "error": error, "differ": 0.01, "questions": 10_000}
    assert "one split can tell them from none" in resolution([clear])
    assert "6.0 standard errors" in resolution([clear])
    # A thousand questions of which a tenth differ: the error alone is a point.
    noisy = {"points": 1.1, "error": 1.0, "differ": 0.1, "questions": 1_000}
    said = resolution([noisy, None, noisy])
    assert "one split cannot tell them from none" in said
    assert "1.10 ± 1.00; 1.10 ± 1.00 points" in said
    assert "about 10,700 test questions" in said
    assert resolution([None]) == ""
