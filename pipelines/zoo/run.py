"""A whole run: cells of both stages through an executor, then rankings and references."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.experiment.entrants import RouterSpec, architectures, traits
from routeyard.pipelines.experiment.inputs import CellInputs, on_draw, read
from routeyard.pipelines.experiment.settings import PROTOCOL_SEEDS, EvaluationSettings
from routeyard.pipelines.experiment.splits import order, price
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.leaked import leaked
from routeyard.pipelines.metrics.baselines import alone, query_oracle, random_mean, task_oracle
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.pipelines.zoo import cell as cells
from routeyard.pipelines.zoo.protocol import (
    BESIDE,
    NO_ENCODER,
    REDRAWN,
    SINGLE,
    CellResult,
    Ranking,
    ZooCell,
    first_stage,
    ranking,
    second_stage,
)

#: Of the fit that `evaluate` asks for by default.
OWN_SEED = EvaluationSettings().seeds[0]
#: Runs jobs somewhere and yields what they come to, in any order.
Map = Callable[[Iterable[cells.Job]], Iterator[CellResult]]


@dataclass(frozen=True)
class Zoo:
    """Attributes:
    results: of all cells, refusals included.
    rankings: (router, encoder) → its ranking.
    refused: (router, encoder) → why it has none.
    winners: (router, encoder) → the winner's cell, whose scores are kept.
    references: name → test accuracy of best single model, task map oracle and so on.
    over_splits: (router, encoder) → test accuracies of its winner, fitted anew, on other draws
        of the split; of (`SINGLE`, "") those of the best single model.
    leaked: how many test questions are also in train.
    """

    results: list[CellResult]
    rankings: dict[tuple[str, str], Ranking]
    refused: dict[tuple[str, str], str]
    winners: dict[tuple[str, str], cells.Job]
    references: dict[str, float]
    over_splits: dict[tuple[str, str], list[float]]
    leaked: int


def run(
    bench: CellInputs,
    specs: Sequence[RouterSpec],
    map_: Map,
    *,
    folder: Path,
    store: Path | None = None,
    code: Mapping[str, str] | None = None,
    seeds: Sequence[int] = PROTOCOL_SEEDS,
    on_progress: Callable[[int, int], None] | None = None,
    search: bool = True,
) -> Zoo:
    """Both stages of every router with every encoder, and the fit that `evaluate` asks for.

    Without `search` the first setting of each, once, and what it says of train is kept too.

    Args:
        folder: where cells are stored; those that are there are not run again.
        store: where predictions are kept; by default beside the cells.
        code: router → hash of the code that decides its figures.
        seeds: of the first stage, then of the second.
        on_progress: called with (done, wanted) fits; wanted grows as a stage begins.
    """
    by_name = {spec.name: spec for spec in specs}
    job = partial(_job, bench, by_name, folder, store or folder.parent / "predictions", code or {})
    first, beside = _first(bench, specs, seeds[0], search)
    jobs = [replace(job(one), and_train=not search) for one in first]
    counts = [0, 0]

    def through(some: list[cells.Job]) -> list[CellResult]:
        counts[1] += len(some)
        found = []
        for result in map_(some):
            found.append(result)
            counts[0] += 1
            if on_progress:
                on_progress(counts[0], counts[1])
        places = {job.cell: place for place, job in enumerate(some)}
        return sorted(found, key=lambda result: places[result.cell])

    done = through(jobs)
    more = [
        job(one)
        for (router, _), results in _groups(done).items()
        if search and traits(by_name[router]).stochastic
        for one in second_stage(results, seeds[1:])
    ]
    done += through(more)
    for _ in map_(job(one) for one in beside):
        pass
    by_cell = {job.cell: job for job in [*jobs, *more]}
    rankings, refused = _judged(done)
    winners = {key: by_cell.pop(found.winner) for key, found in rankings.items()}
    for lost in sorted(by_cell.values(), key=lambda one: one.vectors):
        cells.forget(lost)
    again = [
        replace(job(replace(won.cell, stage=REDRAWN, draw=k)), redrawn=drawn)
        for k, drawn in enumerate(bench.redrawn, 1)
        for won in winners.values()
        if not won.spec.is_table
    ]
    over = _over_splits(bench, through(again))
    core = read(bench.folder, bench.data, "", bench.texts)
    told = references(core, bench.scheme)
    return Zoo(done, rankings, refused, winners, told, over, leaks(core, bench.scheme))


def _over_splits(
    bench: CellInputs, results: Sequence[CellResult]
) -> dict[tuple[str, str], list[float]]:
    """`Zoo.over_splits`; a router that refused a draw is left out."""
    core = read(bench.folder, bench.data, "")
    draws = [on_draw(core, bench.folder / drawn) for drawn in bench.redrawn]
    over = {(SINGLE, ""): [references(one, bench.scheme)[SINGLE] for one in draws]}
    for key, own in _groups(results).items():
        reached = [one.test_accuracy for one in own if one.test_accuracy is not None]
        if len(reached) == len(draws):
            over[key] = reached
    return over


def leaks(core: Core, scheme: str) -> int:
    """How many of the test questions that have a label are also in train."""
    rows = core.rows(scheme, "test")
    return int(leaked(core, scheme, rows[~np.isnan(core.labels[rows]).all(axis=1)]).sum())


def _first(
    bench: CellInputs, specs: Sequence[RouterSpec], seed: int, search: bool
) -> tuple[list[ZooCell], list[ZooCell]]:
    """Cells of the first stage, and those that `evaluate` asks for."""
    first: list[ZooCell] = []
    beside: list[ZooCell] = []
    for spec in specs:
        reads = "embeddings" in traits(spec).needs
        for encoder in list(bench.vectors) if reads else [NO_ENCODER]:
            settings = architectures(spec)[: None if search else 1]
            first += first_stage(spec.name, encoder, settings, seed)
            # `evaluate` takes no validation questions from train, so it learns from others there.
            if search and not bench.carved and not spec.is_table:
                beside.append(ZooCell(spec.name, encoder, "{}", OWN_SEED, BESIDE))
    return first, beside


def _judged(
    done: Sequence[CellResult],
) -> tuple[dict[tuple[str, str], Ranking], dict[tuple[str, str], str]]:
    """(router, encoder) → its ranking, and → why it has none."""
    rankings, refused = {}, {}
    for key, results in _groups(done).items():
        found = ranking(results)
        if found is None:
            refused[key] = results[0].reason or "no cell was fitted"
        else:
            rankings[key] = found
    return rankings, refused


def references(core: Core, scheme: str) -> dict[str, float]:
    """Test accuracy of what is no router: best single model on train, chance, oracles."""
    test = core.take(core.rows(scheme, "test")).labelled()
    y = test.labels
    cost, first = price(core, scheme), order(core, scheme)
    return {
        SINGLE: float(at_choice(y, alone(~np.isnan(y), first)[:, first[0]]).mean()),
        "uniform random": float(np.nanmean(random_mean(y))),
        "task oracle": float(at_choice(y, task_oracle(y, test.tasks, cost, first)).mean()),
        "oracle": float(at_choice(y, query_oracle(y)).mean()),
    }


def scores(zoo: Zoo, encoder: str) -> dict[str, Vectors]:
    """Router → test scores of its winner with an encoder, for the evaluate stage."""
    return {
        router: cells.test_scores(job)
        for (router, used), job in zoo.winners.items()
        if used in (encoder, NO_ENCODER)
    }


def train_bce(zoo: Zoo, encoder: str) -> dict[str, float]:
    """Router → cross-entropy of its winner on the train questions, where it gives chances."""
    found = {
        router: cells.train_bce(job)
        for (router, used), job in zoo.winners.items()
        if used in (encoder, NO_ENCODER)
    }
    return {router: value for router, value in found.items() if value is not None}


def _groups(results: Sequence[CellResult]) -> dict[tuple[str, str], list[CellResult]]:
    found: dict[tuple[str, str], list[CellResult]] = {}
    for result in results:
        found.setdefault((result.cell.router, result.cell.encoder), []).append(result)
    return found


def _job(
    bench: CellInputs,
    specs: Mapping[str, RouterSpec],
    folder: Path,
    store: Path,
    code: Mapping[str, str],
    one: ZooCell,
) -> cells.Job:
    spec, own = specs[one.router], code.get(one.router, "")
    vectors = "" if one.encoder == NO_ENCODER else bench.vectors[one.encoder]
    what = [own, spec.name, spec.target, bench.data, vectors, bench.texts]
    if spec.is_table:
        what.append(hashlib.sha256(Path(spec.target).read_bytes()).hexdigest())
    text = json.dumps([*what, bench.scheme, one.architecture, one.seed])
    return cells.Job(
        one, spec, hashlib.sha256(text.encode()).hexdigest()[:24], str(bench.folder), str(folder),
        str(store), bench.data, vectors, bench.texts, own,
    )  # fmt: skip
