"""Running the zoo on a release: embeddings, executors, and what is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.flows.console import counter, line
from routeyard.flows.evaluation import rules as by_rules
from routeyard.flows.tracking.runners import Runner
from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.io.staging import write_parquet, write_text
from routeyard.pipelines.lexical import NAME as TFIDF
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.embeddings import encoder_vectors
from routeyard.pipelines.release.sealed_files import outside_releases
from routeyard.pipelines.zoo import cell as cells
from routeyard.pipelines.zoo import run as zoo
from routeyard.pipelines.zoo.cell_inputs import CellInputs, read, write
from routeyard.pipelines.zoo.choose import ChoiceRequest
from routeyard.pipelines.zoo.protocol import CellResult
from routeyard.pipelines.zoo.report import cells_table, markdown, results_json, standings_json
from routeyard.pipelines.zoo.router_specs import RouterSpec


def vectors(
    tables: Mapping[str, pa.Table], core: Core, names: Sequence[str], *, scheme: str, cache: Path
) -> dict[str, Vectors]:
    """Encoder → (n, d) vectors of the core's questions; those that are missing are computed.

    A name is looked for among the release's own embeddings, then `tfidf`, then
    what `routeyard.pipelines.encoders` knows: packaged weights, a folder, a hub id.

    Raises:
        BadInput: the name is none of these.
    """
    from routeyard.pipelines import encoders
    from routeyard.pipelines.embed import embed, text_of
    from routeyard.pipelines.lexical import tfidf

    found: dict[str, Vectors] = {}
    shipped: set[str] = set()
    if "embeddings" in tables:
        shipped = set(tables["embeddings"].column("encoder").to_pylist())
    ids = pa.array(core.query_ids, pa.string())
    for name in dict.fromkeys(names):
        full = encoders.ALIASES.get(name, name)
        own = next((one for one in (name, full, f"{full}:float32") if one in shipped), None)
        if own is not None:
            loaded = encoder_vectors(tables["embeddings"], ids, own)
            assert loaded is not None
            found[name] = loaded
        elif name == TFIDF:
            rows = {q: k for k, q in enumerate(tables["queries"].column("query_id").to_pylist())}
            questions = tables["queries"].column("question").to_pylist()
            choices = tables["queries"].column("choices").to_pylist()
            texts = [text_of(questions[rows[q]], choices[rows[q]] or []) for q in core.query_ids]
            found[name] = tfidf(texts, core.splits[scheme] == "train")
        else:
            if not encoders.known(full):
                every = [TFIDF, *encoders.ALIASES, *encoders.names(), *sorted(shipped)]
                raise BadInput(
                    f"there is no encoder {name!r}",
                    next_step=did_you_mean(name, every)
                    + "; or name a folder of weights or a hub id (owner/name)",
                )
            outside_releases(cache)
            with counter("embed", "questions") as advance:
                table = embed(tables["queries"], encoder=full, cache=cache, on_progress=advance)
            loaded = encoder_vectors(table, ids, f"{full}:float32")
            assert loaded is not None
            found[name] = loaded
    return found


def code_of(specs: Sequence[RouterSpec]) -> dict[str, str]:
    """Router → hash of all code that its figures depend on; of other people's, of their file."""
    import hashlib

    from routeyard.flows.workspace.code import module_hash, reach

    shared = frozenset({"routeyard.pipelines.zoo.cell"})
    found = {}
    for spec in specs:
        module = spec.target.rpartition(":")[0]
        hashed = hashlib.sha256()
        if module.endswith(".py"):
            hashed.update(Path(module).read_bytes())
        elif not spec.is_table and not module.startswith("routeyard.pipelines."):
            # Another package's: its own file, and its version for what that file imports.
            hashed.update(_foreign(module))
        modules = shared | ({module} if module.startswith("routeyard.pipelines.") else set())
        for name in sorted(reach(frozenset(modules))):
            hashed.update(f"{name}={module_hash(name)}\n".encode())
        found[spec.name] = hashed.hexdigest()[:16]
    return found


def _foreign(module: str) -> bytes:
    """Source of a module of another package and the versions it is distributed in."""
    from importlib.metadata import packages_distributions, version
    from importlib.util import find_spec

    spec = find_spec(module)
    source = Path(spec.origin).read_bytes() if spec and spec.origin else b""
    names = sorted(set(packages_distributions().get(module.partition(".")[0], [])))
    return source + json.dumps([f"{name}=={version(name)}" for name in names]).encode()


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
            "the Dask runner needs dask.distributed", next_step="pip install 'routeyard[dask]'"
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
    runner: Runner = "threads",
    workers: int = 2,
    dask_address: str | None = None,
    notes: Sequence[str] = (),
    rules: Sequence[ChoiceRequest] = (),
    search: bool = True,
) -> tuple[zoo.Zoo, CellInputs]:
    """Run all cells under `out`/cells and write cells.parquet, standings.json and table.md.

    With `rules`, rules.parquet says what each winner reaches under each. Without `search` each
    router has its first setting and one fit.
    """
    bench = write((out / "bench").resolve(), core, scheme, matrices)
    folder = (out / "cells").resolve()
    with executor(runner, workers, dask_address) as map_, counter("zoo", "cells") as advance:
        done = zoo.run(
            bench, specs, map_, folder=folder, code=code_of(specs), on_progress=advance,
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
    write_parquet(out / "cells.parquet", cells_table(done.results))
    page = markdown(title, done.rankings, done.references, done.refused, said)
    page += found_here(bench, done, folder)
    if rules:
        by_rule = by_rules.by_rule(bench, done, folder, specs, rules)
        write_parquet(out / "rules.parquet", by_rule)
        page += by_rules.page(by_rule)
    write_text(out / "table.md", page)
    write_text(out / "standings.json", json.dumps(standings_json(done.rankings), indent=1) + "\n")
    carried = results_json(bench.data, scheme, done.rankings, done.references)
    write_text(out / "zoo.json", json.dumps(carried, indent=1) + "\n")
    line("zoo", f"{len(done.results)} cells, {len(done.rankings)} rows → {out / 'table.md'}")
    return done, bench


def found_here(bench: CellInputs, done: zoo.Zoo, folder: Path) -> str:
    """What the plateau study found, as each encoder's winners have it here."""
    from routeyard.pipelines.zoo.facts import facts, lines

    out = ""
    for encoder in bench.vectors:
        whole = read(bench.folder, bench.data, "")
        test = whole.take(whole.rows(bench.scheme, "test"))
        test = test.take(np.flatnonzero(~np.all(np.isnan(test.labels), axis=1)))
        train = whole.take(whole.rows(bench.scheme, "train"))
        kept = zoo.scores(bench, done, folder, encoder)
        try:
            said = lines(facts(test, train, kept, cells.order(whole, bench.scheme)))
        except BadInput as why:  # labels between 0 and 1 that nobody decided
            said = [f"- cannot be told: {why.args[0]}."]
        if said:
            out += f"\nWhat the plateau study found, here with {encoder}:\n\n"
            out += "\n".join(said) + "\n"
    return out


SPLITS = ("train", "validation", "test")


def measured(
    core: Core, bench: CellInputs, done: zoo.Zoo, out: Path, encoder: str, *, resamples: int
) -> Any:
    """The evaluate stage on the winners' scores with one encoder: its tables and figures."""
    from routeyard.pipelines.evaluate.run import evaluate

    whole = read(bench.folder, bench.data, bench.vectors[encoder])
    kept = zoo.scores(bench, done, out / "cells", encoder)
    makers = {name: _stored(name, scores) for name, scores in sorted(kept.items())}
    return evaluate(whole, makers, scheme=bench.scheme, resamples=resamples)


def _stored(name: str, scores: Vectors) -> Callable[[int], Any]:
    """Maker of a router that already gave its scores on the test questions, in their order."""

    known = scores.astype(np.float64)
    stored = SimpleNamespace(name=name, fit=lambda train: None, scores=lambda queries: known)
    return lambda seed: stored


def write_report(
    core: Core,
    bench: CellInputs,
    done: zoo.Zoo,
    out: Path,
    encoder: str,
    *,
    release: Path,
    tables: Mapping[str, pa.Table],
    resamples: int,
) -> Path:
    """Evaluate tables and an HTML report under `out`/<encoder>; the path of the report."""
    from routeyard.flows.evaluation.report import write_evaluation

    found = measured(core, bench, done, out, encoder, resamples=resamples)
    folder = out / encoder.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    return write_evaluation(folder, release, found, tables, None)
