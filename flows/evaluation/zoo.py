"""Running the zoo on a release: embeddings, executors, and what is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.flows.console import counter, line
from routeyard.flows.evaluation.evaluate import code_of, predictions_in, write_evaluation
from routeyard.flows.evaluation.released import out_folder, read_release, vectors, with_beside
from routeyard.flows.tracking import Runner
from routeyard.pipelines.common.arrays import Floats, Vectors
from routeyard.pipelines.common.matrix import Core, Queries, core_of
from routeyard.pipelines.common.staging import write_parquet, write_text
from routeyard.pipelines.evaluate.experiment import (
    RouterSpec,
    as_published,
    default_scheme,
    registered,
    traits,
)
from routeyard.pipelines.evaluate.experiment import own as theirs
from routeyard.pipelines.evaluate.fit import CellInputs, PredictionStore, read, write
from routeyard.pipelines.evaluate.settings import PROTOCOL_SEEDS, EvaluationSettings
from routeyard.pipelines.evaluate.zoo import run as zoo
from routeyard.pipelines.evaluate.zoo.report import (
    cells_table,
    markdown,
    results_json,
    standings_json,
)
from routeyard.pipelines.evaluate.zoo.run import NO_ENCODER, CellResult
from routeyard.schemas.errors import BadInput


@contextmanager
def executor(runner: Runner, workers: int, address: str | None = None) -> Iterator[zoo.Map]:
    """Where cells run: threads of this process, or the processes of a Dask cluster.

    Raises:
        BadInput: Dask without its extra.
    """
    with ExitStack() as stack:
        pool: Executor
        if runner == "threads":
            pool = stack.enter_context(ThreadPoolExecutor(workers))
        else:
            pool = stack.enter_context(_dask(workers, address)).get_executor(pure=False)

        def run_all(jobs: Iterable[zoo.Job]) -> Iterator[CellResult]:
            waiting = [pool.submit(zoo.run_cell, job) for job in jobs]
            try:
                for future in as_completed(waiting):
                    yield future.result()
            finally:
                for future in waiting:
                    future.cancel()

        yield run_all


@contextmanager
def _dask(workers: int, address: str | None) -> Iterator[Any]:
    """A client of the Dask cluster at `address`, or of one that is made for the run."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise BadInput(
            "the Dask runner needs dask.distributed",
            next_step="pip install -c constraints.txt '.[dask]'",
        ) from error
    with ExitStack() as stack:
        cluster: Any = address or stack.enter_context(
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        )
        yield stack.enter_context(Client(cluster))


def run(
    core: Core,
    scheme: str,
    matrices: dict[str, Vectors],
    specs: Sequence[RouterSpec],
    out: Path,
    *,
    title: str,
    seeds: Sequence[int] = PROTOCOL_SEEDS,
    cache: Path | None = None,
    runner: Runner = "threads",
    workers: int = 2,
    dask_address: str | None = None,
    notes: Sequence[str] = (),
    search: bool = True,
    splits: int = 0,
) -> tuple[zoo.Zoo, CellInputs]:
    """Run all cells under `out`/cells and write cells.parquet, standings.json and table.md.

    Without `search` each router has its first setting and one fit.

    Args:
        seeds: of the first stage, then of the second.
        cache: folder of what commands share; predictions are kept there, by default in `out`.
        splits: how many times the split is drawn anew, and each winner fitted on it.
    """
    bench = write((out / "bench").resolve(), core, scheme, matrices, splits)
    folder = (out / "cells").resolve()
    with executor(runner, workers, dask_address) as map_, counter("zoo", "cells") as advance:
        done = zoo.run_zoo(
            bench, specs, map_, folder=folder, code=code_of(specs), seeds=seeds,
            store=None if cache is None else predictions_in(cache), on_progress=advance,
            search=search,
        )  # fmt: skip
    said = list(notes)
    said.append(
        f"{core.n_queries:,} questions × {core.n_models} models, scheme {scheme!r}: "
        + ", ".join(f"{np.sum(core.splits[scheme] == s):,} {s}" for s in SPLITS)
        + ". Routing accuracy on test at λ = 0, per cent; mean ± sd over seeds of the setting "
        "chosen on validation."
    )
    if bench.carved:
        said.append("The scheme has no validation questions: one in eight of train was taken.")
    said += _notes(core.take(core.rows(scheme, "test")), bench, done, splits)
    write_parquet(out / "cells.parquet", cells_table(done.results))
    page = markdown(
        title, done.rankings, done.references, done.refused, said, done.over_splits,
        leaks=done.leaked > 0, all_rows=all(map(as_published, specs)),
    )  # fmt: skip
    write_text(out / "table.md", page)
    standings = standings_json(done.rankings, done.over_splits)
    write_text(out / "standings.json", json.dumps(standings, indent=1) + "\n")
    carried = results_json(bench.data, scheme, done.rankings, done.references)
    write_text(out / "zoo.json", json.dumps(carried, indent=1) + "\n")
    line("zoo", f"{len(done.results)} cells, {len(done.rankings)} rows → {out / 'table.md'}")
    return done, bench


def _notes(test: Core, bench: CellInputs, done: zoo.Zoo, splits: int) -> list[str]:
    """What is missing, and what the columns beside the seeds' are: leaks, other draws."""
    said = []
    if test.coverage < 1:
        said.append(
            f"{1 - test.coverage:.1%} of the test labels are missing: a router chooses among the "
            "models with a label, and questions without any are left out."
        )
    if done.leaked:
        said.append(
            f"{done.leaked:,} test questions are also in train, in the same words or nearly: "
            "each figure is given without them and over all rows. Routers in the presets `text` "
            "and `code` are scored over all rows by their authors."
        )
    if bench.redrawn:
        said.append(
            f"Drawn splits ({len(bench.redrawn)}): the chosen setting, fitted on other draws of "
            "train, validation and test with the same counts in each task, near-equal questions "
            "together; mean ± sd, and behind it the same of its gain over the best single model."
        )
    elif splits:
        said.append(
            "The split puts whole tasks apart, so it is not drawn anew: ± is over seeds alone."
        )
    return said


SPLITS = ("train", "validation", "test")


def measured(bench: CellInputs, done: zoo.Zoo, encoder: str, settings: EvaluationSettings) -> Any:
    """The evaluate stage on the winners' scores with one encoder: its tables and figures."""
    from routeyard.pipelines.evaluate.run import evaluate

    whole = read(bench.folder, bench.data, bench.vectors[encoder], bench.texts)
    scores = zoo.scores(done, encoder)
    makers, code = {}, {}
    for (name, used), won in sorted(done.winners.items()):
        if used in (encoder, NO_ENCODER):
            makers[name] = _maker(won, scores[name])
            code[name] = won.code
    first = next(iter(done.winners.values()), None)
    seeds = settings.seeds[:1] if first is None else (first.cell.seed,)
    store = None if first is None else PredictionStore(Path(first.store), code)
    how = settings.but(scheme=bench.scheme, seeds=seeds, splits=0)
    return evaluate(whole, makers, how, store=store)


def _maker(won: zoo.Job, scores: Vectors) -> Callable[[int], Any]:
    """Maker of a router that already gave its scores on the test questions, in their order.

    One that learns from costs is the router itself, whose predictions are kept: where some costs
    are unknown it is fitted again on the models whose cost is known.
    """
    own, asked = traits(won.spec), won.ground.asked.query_ids
    if "costs" in own.needs:
        return replace(won.spec, setting=won.cell.setting)
    known = scores.astype(np.float64)

    def said(queries: Queries) -> Floats:
        if tuple(queries.query_ids) != tuple(asked):
            raise BadInput("what it says of other questions is not kept", where=won.spec.name)
        return known

    stored = SimpleNamespace(
        name=won.spec.name, fit=lambda train: None, scores=said,
        traits=replace(own, scale=won.fit_of().scale), as_published=as_published(won.spec),
    )  # fmt: skip
    return lambda seed: stored


def write_report(
    bench: CellInputs,
    done: zoo.Zoo,
    out: Path,
    encoder: str,
    *,
    release: Path,
    tables: Mapping[str, pa.Table],
    settings: EvaluationSettings,
) -> Path:
    """Evaluate tables and an HTML report under `out`/<encoder>; the path of the report."""

    result = measured(bench, done, encoder, settings)
    folder = out / encoder.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    return write_evaluation(folder, release, result, tables, None)


# The zoo run on a release folder: routers, encoders and rules by name, results in a folder.

#: The plateau study's protocol, measured with fewer resamples than `evaluate` takes.
SETTINGS = EvaluationSettings(seeds=PROTOCOL_SEEDS, resamples=2_000, splits=5)


def run_zoo(
    release: Path,
    out: Path,
    *,
    encoders: Sequence[str],
    routers: Sequence[str] | None = None,
    own: Sequence[str] = (),
    also: Sequence[Path] = (),
    settings: EvaluationSettings = SETTINGS,
    cache: Path = Path("yard/cache/embeddings"),
    report: bool = True,
    runner: Runner = "threads",
    workers: int = 2,
    dask_address: str | None = None,
) -> dict[str, Any]:
    """Train and compare routers on a release; the standings, and the folder they are in.

    Args:
        encoders: tfidf, minilm, names of packaged weights, folders or hub ids.
        routers: Names of registered routers; None for all.
        own: `module:Class` or `file.py:Class` of other routers (this runs that code), or
            tables of predictions.
        also: Files or folders of tables beside the release.
        settings: `seeds` of the fits, `scheme`, and how the winners are measured.
        cache: Folder of what commands share: embeddings and predictions.
        report: Also evaluate the winners, with a page for each encoder.

    Raises:
        BadInput: no encoder is named, two routers have one name, or something named is missing.
    """
    entrants = [*registered(None if routers is None else list(routers)), *map(theirs, own)]
    names = [entrant.name for entrant in entrants]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"two routers are called {twice[0]!r}", next_step="rename one of them")
    tables = with_beside(read_release(release), also)
    folder = out_folder(release, out)
    core = core_of(tables.without("embeddings"))
    chosen = default_scheme(core, settings.scheme)
    if not encoders:
        raise BadInput("no encoder is named", next_step="--encoders tfidf needs no weights")
    matrices = vectors(tables, core, encoders, scheme=chosen, cache=cache, device=settings.device)
    title = f"Routers on {release.resolve().parent.name} {release.resolve().name}"
    done, bench = run(
        core, chosen, matrices, entrants, folder, title=title, seeds=settings.seeds, cache=cache,
        runner=runner, workers=workers, dask_address=dask_address,
        splits=settings.splits,
    )  # fmt: skip
    for (router, encoder), why in sorted(done.refused.items()):
        line("refused", f"{router} with {encoder}: {why}")
    if not done.rankings:
        why = next(iter(done.refused.values()), "no router was named")
        raise BadInput(f"no router could be fitted: {why}", next_step="`routeyard zoo`")
    for name in encoders if report else ():
        write_report(bench, done, folder, name, release=release, tables=tables, settings=settings)
    standings = json.loads((folder / "standings.json").read_text(encoding="utf-8"))
    used_settings = settings.but(scheme=chosen).to_json()
    return {"path": folder, "standings": standings, "settings": used_settings}
