"""What each router of the zoo costs: seconds and memory on a planted matrix of any size.

    python -m benchmarks zoo.cost --questions 36000 --models 112

Each router is fitted and read once at the size, with the setting it lists first, in a process of
its own (its peak is then its own) and one thread. What its whole protocol costs is that time, times
the sum over the cells the protocol would run of how much dearer their setting is than the first
one, which is measured on `--small` questions. `two_core_hours` is the sum over routers, halved.

`--measured N` fits at N and N/2 questions only and extrapolates time to `--questions` by the power
those two show (at least 1, at most 2), memory likewise above what the process holds without data.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from routeyard.pipelines.common.matrix import Core

#: Size of the packaged encoder's vectors.
DIMENSIONS = 384


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--questions", type=int, default=12_032)
    parser.add_argument("--models", type=int, default=29)
    parser.add_argument("--measured", type=int, help="fit at this size and extrapolate")
    parser.add_argument("--small", type=int, default=2_000)
    parser.add_argument("--routers", default="all")
    parser.add_argument("--kept", type=Path, help="JSON file of rows: those there are kept")
    parser.add_argument("--page", type=Path, help="Markdown file for the table")


def planted(n: int, m: int, *, seed: int = 0) -> Core:
    """n questions of 40 tasks × m models of three tiers, 70 % train, 10 % validation.

    A model has a level, a leaning to each task, and eight hidden skills that the questions'
    vectors show under noise: there is something to learn beyond the task.
    """
    rng = np.random.default_rng(seed)
    task = rng.integers(0, 40, n)
    hidden = rng.normal(size=(n, 8))
    shown = np.concatenate([rng.normal(size=(40, 24))[task], hidden], axis=1)
    vectors = shown @ rng.normal(size=(32, DIMENSIONS)) + 4 * rng.normal(size=(n, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    level = np.linspace(-1.0, 1.0, m)
    logits = level + 0.4 * rng.normal(size=(40, m))[task] + 0.3 * hidden @ rng.normal(size=(8, m))
    labels = (rng.random((n, m)) < 1 / (1 + np.exp(-logits - rng.normal(size=(n, 1))))) * 1.0
    about = rng.random((m, 256))
    norms = np.linalg.norm(about, axis=1, keepdims=True)
    split = rng.permutation(
        np.repeat(["train", "validation", "test"], [7, 1, 2]).repeat(-(-n // 10))
    )
    return Core(
        query_ids=tuple(f"q{i:06d}" for i in range(n)),
        model_ids=tuple(f"m{k:04d}" for k in range(m)),
        labels=labels.astype(np.float64),
        costs={"usd": np.tile(10.0 ** (3 * np.arange(m) / max(m - 1, 1) - 6), (n, 1))},
        tasks=np.array([f"task-{k:02d}" for k in task]),
        domains=np.array(["planted"] * n),
        splits={"dense": split[:n]},
        groups=np.arange(n),
        embeddings=vectors.astype(np.float32),
        descriptors={"text_footprint": (about / norms).astype(np.float32)},
    )


def once(core: Core, router: str, setting: dict[str, Any]) -> dict[str, float]:
    """Seconds of processor and clock, and peak memory in MB, of one cell."""
    from routeyard.pipelines.evaluate.experiment import order, registered
    from routeyard.pipelines.evaluate.fit import Fit
    from routeyard.pipelines.evaluate.zoo import run as cell

    # The peak is that of the process: the benchmark runs big cells in fresh ones.
    clock = perf_counter()
    fit = Fit(replace(registered([router])[0], setting=setting, seed=42), core.training("dense"))
    first = order(core, "dense")
    for split in ("validation", "test"):
        part = core.take(core.rows("dense", split)).labelled()
        accuracy = float(cell.hits(part, fit.scores(part.queries()), first).mean())
    return {
        "cpu_s": fit.record.cpu_s,
        "wall_s": perf_counter() - clock,
        "peak_mb": fit.record.peak_mb,
        "accuracy": accuracy,
    }


def cells_in_first_settings(small: list[float], stochastic: bool) -> float:
    """How many fits of the first setting the protocol's cells cost: the finalists unknown, the
    dearest five are taken.

    >>> cells_in_first_settings([1.0, 2.0], False)
    3.0
    >>> cells_in_first_settings([1.0, 2.0], True)
    15.0
    """
    from routeyard.pipelines.evaluate.settings import MORE_SEEDS
    from routeyard.pipelines.evaluate.zoo.run import FINALISTS

    more = len(MORE_SEEDS) * sum(sorted(small)[-FINALISTS:]) if stochastic else 0.0
    return (sum(small) + more) / small[0]


def extrapolated(half: dict[str, float], whole: dict[str, float], times: float) -> dict[str, float]:
    """Time and memory at `times` as many questions as `whole`, of which `half` has half.

    Time grows by the power that the two sizes show, from 1 (each question alone) to 2 (each
    against each); memory by what the second half added.

    >>> small, large = {"cpu_s": 1.0, "peak_mb": 110.0}, {"cpu_s": 2.0, "peak_mb": 120.0}
    >>> extrapolated(small, large, 4.0)
    {'cpu_s': 8.0, 'peak_mb': 180.0, 'power': 1.0}
    """
    ratio = whole["cpu_s"] / max(half["cpu_s"], 1e-9)
    power = float(np.clip(np.log2(max(ratio, 1e-9)), 1.0, 2.0))
    added = 2 * max(whole["peak_mb"] - half["peak_mb"], 0.0)
    return {
        **{k: v for k, v in whole.items() if k != "wall_s"},
        "cpu_s": whole["cpu_s"] * times**power,
        "peak_mb": whole["peak_mb"] + added * (times - 1),
        "power": power,
    }


def run(given: argparse.Namespace) -> dict[str, Any]:
    from routeyard.pipelines.common.errors import BadInput
    from routeyard.pipelines.evaluate.experiment import architectures, registered, traits

    names = None if given.routers == "all" else given.routers.split(",")
    little = planted(given.small, given.models)
    kept = given.kept if given.kept is not None and given.kept.is_file() else None
    rows: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept else {}
    for entrant in registered(names):
        if entrant.name in rows:
            continue
        settings = [dict(one) for one in architectures(entrant)]
        try:
            once(little, entrant.name, settings[0])  # imports, and libraries that start slowly
        except BadInput as why:
            rows[entrant.name] = {"refused": why.args[0]}
            continue
        small = [once(little, entrant.name, one)["cpu_s"] for one in settings]
        times = cells_in_first_settings(small, traits(entrant).stochastic)
        found = _apart(given.measured or given.questions, given.models, entrant.name, settings[0])
        if given.measured:
            half = _apart(given.measured // 2, given.models, entrant.name, settings[0])
            found = extrapolated(half, found, given.questions / given.measured)
        rows[entrant.name] = {
            **{k: round(v, 4 if k == "accuracy" else 2) for k, v in found.items()},
            "cells": len(settings) + 4 * min(5, len(settings)) * traits(entrant).stochastic,
            "protocol_cpu_s": round(times * found["cpu_s"], 1),
        }
        print(entrant.name, rows[entrant.name], file=sys.stderr, flush=True)
        if given.kept is not None:
            given.kept.write_text(json.dumps(rows, indent=1) + "\n")
    total = sum(row.get("protocol_cpu_s", 0.0) for row in rows.values())
    done = {
        "questions": given.questions,
        "models": given.models,
        "measured_at": given.measured or given.questions,
        "cpu_hours": round(total / 3600, 3),
        "two_core_hours": round(total / 7200, 3),
        "routers": dict(sorted(rows.items(), key=lambda row: -row[1].get("protocol_cpu_s", 0.0))),
    }
    if given.page is not None:
        given.page.write_text(page(done, given.small), encoding="utf-8")
    return done


def page(found: dict[str, Any], small: int) -> str:
    """The table: what one fit takes, and what the protocol's cells take by it."""
    size = f"{found['questions']:,} × {found['models']}"
    lines = [
        f"# What the zoo costs at {size}", "",
        f"Made by `python -m benchmarks zoo.cost --questions {found['questions']} --models "
        f"{found['models']} --small {small} --page FILE`, on planted outcomes.", "",
        f"Measured: one fit and reading of each router at {found['measured_at']:,} questions, with "
        "its first setting, in a separate process with one thread. Multiplied: its protocol, by "
        f"what its settings cost at {small:,} questions against the first, the dearest five of "
        "them for four more seeds.",
        "", f"All routers: {found['cpu_hours']:.2f} hours of one core, "
        f"{found['two_core_hours']:.2f} of two.", "",
        "| router | s of one fit (CPU) | peak MB | cells | CPU s of the protocol |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for name, row in found["routers"].items():
        if "refused" in row:
            lines.append(f"| {name} | refused: {row['refused']} | – | – | – |")
            continue
        lines.append(
            f"| {name} | {row['cpu_s']:.1f} | {row['peak_mb']:.0f} | {row['cells']:.0f} | "
            f"{row['protocol_cpu_s']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _apart(n: int, m: int, router: str, setting: dict[str, Any]) -> dict[str, float]:
    """`once` in a fresh process, so that peaks of different routers do not mix."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_planted_once, n, m, router, setting).result()


def _planted_once(n: int, m: int, router: str, setting: dict[str, Any]) -> dict[str, float]:
    core = planted(n, m)
    once(planted(300, m), router, setting)  # imports are not the router's
    return once(core, router, setting)
