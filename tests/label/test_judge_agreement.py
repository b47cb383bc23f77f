"""Agreement figures by hand."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.label.audit.agreement import cohen_kappa, krippendorff_alpha

NAN = float("nan")


def test_cohen_by_hand() -> None:
    # Cohen's own form: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o 0.7, p_e 0.5
    assert cohen_kappa(20, 5, 10, 15) == pytest.approx(0.4)
    assert cohen_kappa(1, 0, 0, 1) == 1
    assert cohen_kappa(0, 0, 0, 0) is None
    # trap: two judges that always say yes agree by chance alone
    assert cohen_kappa(2, 0, 0, 0) is None


def test_krippendorff_by_hand() -> None:
    # four raters, twelve units, the worked example of Krippendorff (2011)
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    assert krippendorff_alpha(ratings) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(ratings, level="interval") == pytest.approx(0.849, abs=5e-4)
    assert np.isnan(krippendorff_alpha([[1, NAN], [NAN, 1]]))
