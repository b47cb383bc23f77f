"""Paired bootstrap of deferral areas: one matrix product against loops over resamples.

Both see the same draws: the loop gathers the drawn queries' values and
averages them, one resample per iteration, vectorised over queries, routers and
budgets. CPU-seconds are of this process; set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

from routeyard.pipelines.evaluate.metrics.areas import audc
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--routers", type=int, default=5)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=3_000)
    parser.add_argument("--budgets", type=int, default=100)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    r, b, k, n = arguments.routers, arguments.resamples, arguments.budgets, arguments.queries
    correct, nano = _curves(n, r, k)
    low, high = float(nano.mean(axis=0).min()), float(nano.mean(axis=0).max())

    before = _peak_mb()
    start = time.process_time()
    columns = np.concatenate([correct, nano], axis=2).reshape(n, r * 2 * k)
    draws = Draws(n, b, seed=7)
    fast = np.empty((b, r))
    for first, counts in draws.blocks():
        means = (counts @ columns).reshape(-1, r, 2 * k) / n
        accuracy, cost = means[..., :k], means[..., k:]
        fast[first : first + len(counts)] = audc(cost, accuracy, low, high, accuracy[..., 0])
    fast_s = time.process_time() - start
    used = _peak_mb() - before

    start = time.process_time()
    generator = np.random.Generator(np.random.PCG64(7))
    slow = np.empty((b, r))
    for i in range(b):
        drawn = generator.integers(0, n, size=n)
        accuracy, cost = correct[drawn].mean(axis=0), nano[drawn].mean(axis=0)
        slow[i] = audc(cost, accuracy, low, high, accuracy[..., 0])
    slow_s = time.process_time() - start
    scipy_s = _scipy(correct, nano, low, high, min(b, 200)) * b / min(b, 200)
    return {
        "routers": r,
        "resamples": b,
        "queries": n,
        "budgets": k,
        "matrix_cpu_s": round(fast_s, 3),
        "loop_cpu_s": round(slow_s, 3),
        "speedup_vs_loop": round(slow_s / fast_s, 2),
        "scipy_cpu_s": round(scipy_s, 3),
        "speedup_vs_scipy": round(scipy_s / fast_s, 2),
        "largest_area_difference": float(np.abs(fast - slow).max()),
        "matrix_peak_mb_added": round(used, 1),
    }


def _scipy(correct: np.ndarray, nano: np.ndarray, low: float, high: float, resamples: int) -> float:
    """CPU-seconds of `scipy.stats.bootstrap` over question numbers, percentile intervals."""
    from scipy.stats import bootstrap

    def areas(drawn: np.ndarray) -> np.ndarray:
        accuracy, cost = correct[drawn].mean(axis=0), nano[drawn].mean(axis=0)
        return audc(cost, accuracy, low, high, accuracy[..., 0])

    start = time.process_time()
    bootstrap(
        (np.arange(len(correct)),),
        areas,
        n_resamples=resamples,
        vectorized=False,
        method="percentile",
        random_state=7,
    )
    return time.process_time() - start


def _curves(n: int, routers: int, budgets: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, routers, budgets) labels and nano-dollars of what each router picks at each budget."""
    rng = np.random.default_rng(0)
    skill = np.linspace(0.3, 0.8, budgets)
    ability = rng.random((n, routers, 1))
    correct = (ability < skill).astype(np.float64)
    usd = np.sort(rng.gamma(2.0, 1e-4, (n, routers, budgets)), axis=2)
    return correct, np.rint(usd * 1e9)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
