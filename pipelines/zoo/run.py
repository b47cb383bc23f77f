"""A whole run: cells of both stages through an executor, then rankings and references."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.baselines import alone, query_oracle, random_mean, task_oracle
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.pipelines.zoo import cell as cells
from routeyard.pipelines.zoo.cell_inputs import CellInputs, read
from routeyard.pipelines.zoo.protocol import (
    NO_ENCODER,
    CellResult,
    Ranking,
    ZooCell,
    first_stage,
    ranking,
    second_stage,
)
from routeyard.pipelines.zoo.router_specs import RouterSpec, architectures, traits

#: Runs jobs somewhere and yields what they come to, in any order.
Map = Callable[[Iterable[cells.Job]], Iterator[CellResult]]


@dataclass(frozen=True)
class Zoo:
    """Attributes:
    results: of all cells, refusals included.
    rankings: (router, encoder) → its ranking.
    refused: (router, encoder) → why it has none.
    fingerprints: (router, encoder) → of the winner's cell, whose scores are kept.
    references: name → test accuracy of best single model, task map oracle and so on.
    """

    results: list[CellResult]
    rankings: dict[tuple[str, str], Ranking]
    refused: dict[tuple[str, str], str]
    fingerprints: dict[tuple[str, str], str]
    references: dict[str, float]


def run(
    bench: CellInputs,
    specs: Sequence[RouterSpec],
    map_: Map,
    *,
    folder: Path,
    code: Mapping[str, str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    search: bool = True,
) -> Zoo:
    """Both stages of every router with every encoder; without `search` its first setting, once.

    Args:
        folder: where cells lie; those that are there are not run again.
        code: router → hash of the code that decides its figures.
        on_progress: called with (done, wanted) cells; wanted grows by the second
            stage as the first one ends.
    """
    jobs: list[cells.Job] = []
    chance: dict[str, bool] = {}
    for spec in specs:
        about = traits(spec)
        chance[spec.name] = about.stochastic
        reads = "embeddings" in about.needs
        for encoder in list(bench.vectors) if reads else [NO_ENCODER]:
            jobs += [
                _job(bench, spec, one, folder, code or {})
                for one in first_stage(
                    spec.name, encoder, architectures(spec)[: None if search else 1]
                )
            ]
    by_name = {spec.name: spec for spec in specs}
    done: list[CellResult] = []
    wanted = len(jobs)

    def through(some: list[cells.Job]) -> None:
        for result in map_(some):
            done.append(result)
            if on_progress:
                on_progress(len(done), wanted)

    through(jobs)
    order = {job.cell: place for place, job in enumerate(jobs)}
    done.sort(key=lambda result: order[result.cell])
    more: list[cells.Job] = []
    for (router, _), results in _groups(done).items():
        if chance[router] and search:
            more += [
                _job(bench, by_name[router], one, folder, code or {})
                for one in second_stage(results)
            ]
    wanted += len(more)
    through(more)
    order |= {job.cell: len(order) + place for place, job in enumerate(more)}
    done.sort(key=lambda result: order[result.cell])
    names = {job.cell: job.fingerprint for job in [*jobs, *more]}
    rankings, refused, kept = {}, {}, {}
    for key, results in _groups(done).items():
        found = ranking(results)
        if found is None:
            refused[key] = results[0].reason or "no cell was fitted"
        else:
            rankings[key], kept[key] = found, names[found.winner]
    _prune(folder, set(names.values()) - set(kept.values()))
    core = read(bench.folder, bench.data, "")
    return Zoo(done, rankings, refused, kept, references(core, bench.scheme))


def references(core: Core, scheme: str) -> dict[str, float]:
    """Test accuracy of what is no router: best single model on train, chance, oracles."""
    test = core.take(core.rows(scheme, "test")).labelled()
    y = test.labels
    price, order = cells.price(core, scheme), cells.order(core, scheme)
    return {
        "best single model (train)": float(
            at_choice(y, alone(~np.isnan(y), order)[:, order[0]]).mean()
        ),
        "uniform random": float(np.nanmean(random_mean(y))),
        "task oracle": float(at_choice(y, task_oracle(y, test.tasks, price, order)).mean()),
        "oracle": float(at_choice(y, query_oracle(y)).mean()),
    }


def scores(bench: CellInputs, zoo: Zoo, folder: Path, encoder: str) -> dict[str, Vectors]:
    """Router → test scores of its winner with an encoder, for the evaluate stage."""
    found = {}
    for (router, used), name in zoo.fingerprints.items():
        if used in (encoder, NO_ENCODER):
            kept = cells.scores_of(folder, name)
            if kept is not None:
                found[router] = kept
    return found


def _groups(results: Sequence[CellResult]) -> dict[tuple[str, str], list[CellResult]]:
    found: dict[tuple[str, str], list[CellResult]] = {}
    for result in results:
        found.setdefault((result.cell.router, result.cell.encoder), []).append(result)
    return found


def _job(
    bench: CellInputs, spec: RouterSpec, one: ZooCell, folder: Path, code: Mapping[str, str]
) -> cells.Job:
    vectors = "" if one.encoder == NO_ENCODER else bench.vectors[one.encoder]
    what = [code.get(spec.name, ""), spec.name, spec.target, bench.data, vectors]
    what.append(bench.texts)
    if spec.is_table:
        what.append(hashlib.sha256(Path(spec.target).read_bytes()).hexdigest())
    text = json.dumps([*what, bench.scheme, one.architecture, one.seed])
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:24]
    place = (str(bench.folder), str(folder))
    return cells.Job(one, spec, fingerprint, *place, bench.data, vectors, bench.texts)


def _prune(folder: Path, names: set[str]) -> None:
    """Scores of cells that did not win go; their records stay."""
    for name in names:
        (folder / f"{name}.safetensors").unlink(missing_ok=True)
