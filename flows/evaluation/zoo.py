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
from routeyard.flows.evaluation import rules as by_rules
from routeyard.flows.evaluation.kept import code_of, predictions_in
from routeyard.flows.tracking.runners import Runner
from routeyard.pipelines.arrays import Floats, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.entrants import RouterSpec, as_published, traits
from routeyard.pipelines.experiment.fit import PredictionStore
from routeyard.pipelines.experiment.inputs import CellInputs, read, write
from routeyard.pipelines.experiment.settings import PROTOCOL_SEEDS, EvaluationSettings
from routeyard.pipelines.experiment.splits import order
from routeyard.pipelines.io.staging import write_parquet, write_text
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.examples import Queries
from routeyard.pipelines.zoo import cell as cells
from routeyard.pipelines.zoo import run as zoo
from routeyard.pipelines.zoo.choose import ChoiceRequest
from routeyard.pipelines.zoo.protocol import NO_ENCODER, CellResult
from routeyard.pipelines.zoo.report import cells_table, markdown, results_json, standings_json


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

        def run_all(jobs: Iterable[cells.Job]) -> Iterator[CellResult]:
            waiting = [pool.submit(cells.run, job) for job in jobs]
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
    rules: Sequence[ChoiceRequest] = (),
    search: bool = True,
    splits: int = 0,
) -> tuple[zoo.Zoo, CellInputs]:
    """Run all cells under `out`/cells and write cells.parquet, standings.json and table.md.

    With `rules`, rules.parquet says what each winner reaches under each. Without `search` each
    router has its first setting and one fit.

    Args:
        seeds: of the first stage, then of the second.
        cache: folder of what commands share; predictions are kept there, by default in `out`.
        splits: how many times the split is drawn anew, and each winner fitted on it.
    """
    bench = write((out / "bench").resolve(), core, scheme, matrices, splits)
    folder = (out / "cells").resolve()
    with executor(runner, workers, dask_address) as map_, counter("zoo", "cells") as advance:
        done = zoo.run(
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
    page += found_here(bench, done)
    if rules:
        by_rule = by_rules.by_rule(bench, done, specs, rules)
        write_parquet(out / "rules.parquet", by_rule)
        page += by_rules.page(by_rule)
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


def found_here(bench: CellInputs, done: zoo.Zoo) -> str:
    """What the plateau study found, as each encoder's winners have it here."""
    from routeyard.pipelines.zoo.facts import facts, lines

    out = ""
    for encoder in bench.vectors:
        whole = read(bench.folder, bench.data, "")
        test = whole.take(whole.rows(bench.scheme, "test"))
        test = test.take(np.flatnonzero(~np.all(np.isnan(test.labels), axis=1)))
        train = whole.take(whole.rows(bench.scheme, "train"))
        kept = zoo.scores(done, encoder)
        try:
            said = lines(facts(test, train, kept, order(whole, bench.scheme)))
        except BadInput as why:  # labels between 0 and 1 that nobody decided
            said = [f"- unknown: {why.args[0]}."]
        if said:
            out += f"\nWhat the plateau study found, here with {encoder}:\n\n"
            out += "\n".join(said) + "\n"
    return out


SPLITS = ("train", "validation", "test")


def measured(bench: CellInputs, done: zoo.Zoo, encoder: str, settings: EvaluationSettings) -> Any:
    """The evaluate stage on the winners' scores with one encoder: its tables and figures."""
    from routeyard.pipelines.evaluate.run import evaluate

    whole = read(bench.folder, bench.data, bench.vectors[encoder], bench.texts)
    kept = zoo.scores(done, encoder)
    makers, code = {}, {}
    for (name, used), won in sorted(done.winners.items()):
        if used in (encoder, NO_ENCODER):
            makers[name] = _maker(won, kept[name])
            code[name] = won.code
    first = next(iter(done.winners.values()), None)
    seeds = settings.seeds[:1] if first is None else (first.cell.seed,)
    store = None if first is None else PredictionStore(Path(first.store), code)
    how = settings.but(scheme=bench.scheme, seeds=seeds, splits=0)
    return evaluate(whole, makers, how, store=store)


def _maker(won: cells.Job, scores: Vectors) -> Callable[[int], Any]:
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
    from routeyard.flows.evaluation.report import write_evaluation

    found = measured(bench, done, encoder, settings)
    folder = out / encoder.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    return write_evaluation(folder, release, found, tables, None)
