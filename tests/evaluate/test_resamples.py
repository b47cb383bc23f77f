"""Resamples that cannot decide are refused with the least number that can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from routeyard.flows.evaluation.evaluate import certify
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.certificate import CROSSFIT_SURE as SURE
from routeyard.pipelines.evaluate.certificate import holm, least_resamples
from routeyard.pipelines.evaluate.metrics.bootstrap import p_value
from tests.support.worded_release import worded_release


@pytest.mark.parametrize("routers", [1, 2, 5, 9])
def test_the_least_number_can_decide_and_one_less_cannot(routers: int) -> None:
    least = least_resamples(routers)

    def best(resamples: int) -> float:
        surely = p_value(np.ones(resamples))
        return min(holm([surely, *[1.0] * (routers - 1)]))

    assert best(least) < SURE
    assert best(least - 1) >= SURE


def test_too_few_are_refused(tmp_path: Path) -> None:
    release = worded_release(tmp_path)
    with pytest.raises(BadInput, match="resamples cannot show") as refused:
        certify(release, resamples=20)
    assert "give at least" in str(refused.value.next_step)
