"""Fits in several threads give the figures of fits in one: sums have one order in each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from threadpoolctl import threadpool_info

from routeyard.pipelines.common.machine import one_thread_each
from routeyard.pipelines.routers.clusters import clustered


def _threads(*kinds: str) -> set[int]:
    found = threadpool_info()
    return {one["num_threads"] for one in found if one["user_api"] in (kinds or ("blas", "openmp"))}


def test_every_thread_that_fits_computes_in_one() -> None:
    """OpenMP's limit was that of the first thread alone: K-means in the others took all cores."""
    clustered(np.zeros((4, 2), np.float32), 1, 0)  # loads what is limited
    meet = Barrier(2, timeout=60)

    def inside(_: int) -> set[int]:
        with one_thread_each():
            meet.wait()
            seen = _threads()
            meet.wait()
            return seen

    before = _threads("openmp")
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(inside, range(2))) == [{1}, {1}]
    with one_thread_each(), one_thread_each():
        assert _threads() == {1}
    assert _threads("openmp") == before
