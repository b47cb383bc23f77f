"""How each stage over a release grows with its labels: CPU-seconds, memory, and the exponent.

`python -m benchmarks growth --labels 300000,1000000,3000000 --json` builds a release of each
size, then verifies it, compares it with itself, reads it as an evaluation does, evaluates the
routers that need no embeddings, certifies it, and writes its site. Each stage runs in a process
of its own, and processes it starts are counted; the exponent is the slope of CPU-seconds over
labels, both as logarithms, fitted to all sizes; the memory's likewise, of `peak_anon_mb`.
`peak_rss_mb` counts pages of mapped files that are in memory as well; `peak_anon_mb` leaves out
what can be taken back: anonymous memory, looked at 20 times a second.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

_ROOT = Path(__file__).parents[1]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", default="300000,1000000,3000000", help="sizes, by commas")
    parser.add_argument("--models", type=int, default=27)
    parser.add_argument("--text", type=int, default=0, help="letters in a question, at least")
    parser.add_argument("--stages", default=",".join(STAGES), help="stages, by commas")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    sizes = [int(size) for size in arguments.labels.split(",")]
    stages = [name for name in STAGES if name in arguments.stages.split(",")]
    found: dict[str, Any] = {name: [] for name in stages}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="growth-", dir=arguments.folder) as folder:
            for name in stages:
                taken = _apart(name, Path(folder), size, arguments.models, arguments.text)
                print(f"{name} of {size:,} labels: {taken}", file=sys.stderr, flush=True)
                found[name].append(taken)
    out: dict[str, Any] = {"labels": sizes, "models": arguments.models}
    for name, taken in found.items():
        seconds = [one["cpu_s"] for one in taken]
        memory = [one["peak_anon_mb"] for one in taken]
        out[name] = {
            "cpu_s": seconds,
            "peak_rss_mb": [one["peak_rss_mb"] for one in taken],
            "peak_anon_mb": memory,
            "exponent": _slope(sizes, seconds),
            "memory_exponent": _slope(sizes, memory),
        }
    return out


def _slope(sizes: list[int], seconds: list[float]) -> float | None:
    if len(sizes) < 2:
        return None
    return round(float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]), 3)


def _apart(stage: str, folder: Path, labels: int, models: int, text: int) -> dict[str, Any]:
    """What a stage takes in a separate process, its imports left out."""
    words = [sys.executable, "-m", "benchmarks.growth", stage, str(folder)]
    words += [str(labels), str(models), str(text)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    child = subprocess.Popen(words, cwd=_ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)
    peak, ended = 0, False
    while not ended:
        try:
            out, err = child.communicate(timeout=0.05)
            ended = True
        except subprocess.TimeoutExpired:
            peak = max(peak, _anonymous(child.pid))
    if child.returncode:
        raise RuntimeError(f"{stage} of {labels:,} labels failed:\n{err[-2000:]}")
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return {**answer, "peak_anon_mb": peak >> 20}


def _anonymous(pid: int) -> int:
    """Bytes of anonymous memory of a process and of those it started."""
    import psutil

    total = 0
    try:
        top = psutil.Process(pid)
        for process in [top, *top.children(recursive=True)]:
            used = process.memory_info()
            total += used.rss - used.shared
    except psutil.NoSuchProcess:
        pass  # one has just ended
    return total


def _release(folder: Path) -> Path:
    return folder / "bench" / "1.0.0"


def _build(folder: Path, labels: int, models: int, text: int = 0) -> None:
    from benchmarks.release import stream
    from routeyard.datacards.card import render
    from routeyard.pipelines.release.build import write_release

    recipe = {"name": "bench", "version": "1.0.0"}
    write_release(stream(labels, models, text=text), recipe=recipe, root=folder, render_card=render)


def _verify(folder: Path, labels: int, models: int) -> None:
    from routeyard.datacards.card import render
    from routeyard.pipelines.release.manifest import read_manifest
    from routeyard.pipelines.verify.database import check
    from routeyard.pipelines.verify.evidence import Evidence

    release = _release(folder)
    if findings := list(check(Evidence(release, read_manifest(release), render))):
        raise AssertionError(findings[:3])


def _diff(folder: Path, labels: int, models: int) -> None:
    from routeyard.pipelines.release.diff import diff_releases

    if not diff_releases(_release(folder), _release(folder)).empty:
        raise AssertionError("a release differs from itself")


def _read(folder: Path, labels: int, models: int) -> None:
    from routeyard.flows.evaluation.released import read_release
    from routeyard.pipelines.common.matrix import core_of

    core = core_of(read_release(_release(folder)))
    if core.labels.shape != (labels // models, models):
        raise AssertionError(core.labels.shape)


def _evaluate(folder: Path, labels: int, models: int) -> None:
    from routeyard.flows.evaluation.evaluate import evaluate

    made = evaluate(_release(folder), ["best-generalist", "random"], resamples=200)
    if not made.metrics.num_rows:
        raise AssertionError("an evaluation without figures")


def _certify(folder: Path, labels: int, models: int) -> None:
    from routeyard.flows.evaluation.evaluate import certify

    if certify(_release(folder), resamples=200).n_queries != labels // models:
        raise AssertionError("a certificate about other questions")


def _site(folder: Path, labels: int, models: int) -> None:
    from routeyard.flows.site import write

    with tempfile.TemporaryDirectory(dir=folder) as out:
        write([_release(folder)], Path(out) / "site")


#: Stage → what it does with the release in a folder.
STAGES: dict[str, Callable[[Path, int, int], None]] = {
    "build": _build,
    "verify": _verify,
    "diff": _diff,
    "evaluate_reads": _read,
    "evaluate": _evaluate,
    "certify": _certify,
    "site": _site,
}


def main() -> None:
    """One stage; its imports are made by a tiny release first, so that they are not counted."""
    import psutil

    stage, folder, (labels, models, text) = sys.argv[1], Path(sys.argv[2]), map(int, sys.argv[3:6])
    with tempfile.TemporaryDirectory(dir=folder) as small:
        for name in ("build", stage) if stage != "build" else ("build",):
            STAGES[name](Path(small), 60, 3)
    work = partial(_build, text=text) if stage == "build" else STAGES[stage]
    begun = time.process_time()
    work(folder, labels, models)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = time.process_time() - begun + children.ru_utime + children.ru_stime
    for child in psutil.Process().children(recursive=True):  # SQL is answered in one that lives on
        taken += sum(child.cpu_times()[:4])
    peak = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, children.ru_maxrss) // 1024
    print(json.dumps({"cpu_s": round(taken, 3), "peak_rss_mb": peak}))


if __name__ == "__main__":
    main()
