"""One cell: fit a router with one setting and seed, look at validation and test, write it down.

The record is written last and by renaming, so a record that is there is whole: a
kill at any moment costs the cells in flight and nothing else.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.staging import replacing, write_text
from routeyard.pipelines.matrix.core import Core, complete_measure
from routeyard.pipelines.matrix.ranking import mean_costs, ranked
from routeyard.pipelines.metrics.selection import at_choice, best
from routeyard.pipelines.routers.base import Router, unlike_published
from routeyard.pipelines.zoo import cell_inputs
from routeyard.pipelines.zoo.protocol import CellResult, ZooCell
from routeyard.pipelines.zoo.router_specs import RouterSpec, made


@dataclass(frozen=True)
class Job:
    """What a worker gets: strings and numbers only, so that any process can take it.

    Attributes:
        fingerprint: of code, data, vectors, setting and seed; names the files.
        bench: folder of the bench; cells lie in `cells` beside it.
        data, vectors, texts: hashes of the bench's files.
    """

    cell: ZooCell
    spec: RouterSpec
    fingerprint: str
    bench: str
    cells: str
    data: str
    vectors: str
    texts: str


def run(job: Job) -> CellResult:
    """Run a cell, or read its record where there is one.

    A router that refuses the release (BadInput) gives a result without figures
    that says why; anything else it raises is a fault of its code and is raised.
    """
    from threadpoolctl import threadpool_limits

    folder = Path(job.cells)
    record = folder / f"{job.fingerprint}.json"
    known = recorded(record, job.cell)
    if known is not None:
        return known
    core = cell_inputs.read(Path(job.bench), job.data, job.vectors, job.texts)
    scheme = next(iter(core.splits))
    # One thread per cell: sums then have one order, on every machine and runner.
    with threadpool_limits(limits=1), peak_memory() as peak:
        began, cpu = time.perf_counter(), time.thread_time()
        try:
            router = made(job.spec, job.cell.setting, job.cell.seed)
            router.fit(core.training(scheme))
            fit_s = time.perf_counter() - began
            validation, _ = accuracy(core, scheme, "validation", router)
            test, scores = accuracy(core, scheme, "test", router)
            cpu_s = time.thread_time() - cpu
        except BadInput as refused:
            result = CellResult(job.cell, None, None, 0.0, 0.0, peak(), reason=refused.args[0])
            scores = None
        else:
            unlike = "; ".join(unlike_published(router))
            result = CellResult(
                job.cell, validation, test, fit_s, cpu_s, peak(), not_as_published=unlike
            )
    if scores is not None:
        _scores(folder / f"{job.fingerprint}.safetensors", scores)
    write_text(record, json.dumps(asdict(result)))
    return result


def recorded(record: Path, cell: ZooCell) -> CellResult | None:
    """The result of a record; None without one or when it cannot be read."""
    try:
        values = json.loads(record.read_text())
    except (OSError, ValueError):
        return None
    values.pop("cell", None)
    return CellResult(cell, **values)


def accuracy(core: Core, scheme: str, split: str, router: Router) -> tuple[float, Vectors]:
    """(routing accuracy at λ = 0, scores) on the questions of a split that have a label.

    Ties of scores go to the model that `order` has first.

    Raises:
        BadInput: scores have the wrong shape or are not finite.
    """
    part = core.take(core.rows(scheme, split)).labelled()
    scores = np.asarray(router.scores(part.queries()), dtype=np.float64)
    shape = (part.n_queries, part.n_models)
    if scores.shape != shape or not np.isfinite(scores).all():
        wrong = "are not finite" if scores.shape == shape else f"have shape {scores.shape}"
        raise BadInput(
            f"the scores of router {getattr(router, 'name', router)!r} {wrong}",
            next_step=f"`scores` returns {shape[0]} × {shape[1]} finite numbers",
        )
    # What is kept is float32; what is counted is read off the same numbers.
    kept = scores.astype(np.float32)
    choice = best(kept.astype(np.float64), ~np.isnan(part.labels), order(core, scheme))
    return float(at_choice(part.labels, choice).mean()), kept


def price(core: Core, scheme: str) -> Floats:
    """(m,) mean train cost by the first measure that knows all models; zeros without any."""
    measure = priced_in(core, scheme)
    if measure is None:
        return np.zeros(core.n_models)
    return mean_costs(core.costs[measure][core.rows(scheme, "train")])


def order(core: Core, scheme: str) -> Ints:
    """(m,) models, best on train first; ties as `ranked` has them."""
    return ranked(core.labels[core.rows(scheme, "train")], price(core, scheme))


def priced_in(core: Core, scheme: str) -> str | None:
    """The measure that `price` takes; None where none knows all models."""
    train = core.rows(scheme, "train")
    return complete_measure({name: cost[train] for name, cost in core.costs.items()})


def scores_of(cells: Path, fingerprint: str) -> Vectors | None:
    """Stored test scores of a cell; None when they were pruned."""
    from safetensors.numpy import load_file

    path = cells / f"{fingerprint}.safetensors"
    return np.asarray(load_file(path)["scores"]) if path.is_file() else None


def _scores(path: Path, scores: Vectors) -> None:
    from safetensors.numpy import save_file

    with replacing(path) as unfinished:
        save_file({"scores": np.ascontiguousarray(scores)}, unfinished)


@contextmanager
def peak_memory() -> Iterator[Any]:
    """Yields a function: the largest resident memory of the process, MB, while inside.

    Sampled every 20 ms. Cells that share a process as threads share the figure.
    """
    stop, seen = threading.Event(), [_resident()]

    def watch() -> None:
        while not stop.wait(0.02):
            seen[0] = max(seen[0], _resident())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: max(seen[0], _resident())
    finally:
        stop.set()
        thread.join()


def _resident() -> float:
    """Resident memory in MB; the process's peak where there is no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
