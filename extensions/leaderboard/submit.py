"""Runs a router on a benchmark's open part and writes what it chose as a bundle."""

from __future__ import annotations

import json
import platform
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.extensions.leaderboard.bundle import (
    PREDICTIONS,
    SUBMISSION,
    TIMES,
    AuditLine,
    BenchmarkRef,
    DecisionTimes,
    SubmissionAbout,
    benchmark_of,
    named,
    send,
)
from routeyard.flows.evaluation.evaluate import EVALUATION_CACHE as CACHE
from routeyard.flows.evaluation.evaluate import code_of, reached
from routeyard.flows.evaluation.released import read_release, with_embeddings
from routeyard.pipelines.common.arrays import Floats, Ints
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.common.staging import write_json, write_parquet
from routeyard.pipelines.evaluate.experiment import (
    RouterSpec,
    default_scheme,
    load_module,
    own,
    registered,
)
from routeyard.pipelines.evaluate.experiment import order as order_of
from routeyard.pipelines.evaluate.fit import Fit
from routeyard.pipelines.evaluate.metrics.selection import best
from routeyard.pipelines.evaluate.zoo.submissions import Suspicion, audit
from routeyard.pipelines.release.exporters.router_tables import ABOUT
from routeyard.pipelines.release.manifest import MANIFEST, read_manifest
from routeyard.pipelines.routers import ROUTERS

#: Questions that are asked one by one, and seconds after which no further one is.
ALONE, ALONE_S = 200, 20.0


@dataclass(frozen=True)
class SubmitResult:
    """Where a bundle went (None where its audit failed), what it says, and its findings."""

    where: str | None
    about: SubmissionAbout
    found: list[Suspicion]


def submit(
    router: str,
    to: str,
    *,
    release: Path | None = None,
    name: str | None = None,
    scheme: str | None = None,
    seed: int = 0,
    embed: bool = False,
    encoder: str | None = None,
    cache: Path = CACHE,
) -> SubmitResult:
    """Fit a router, ask it about the test questions, check its choices, and send them as a bundle.

    This runs the router's code. What is sent is data: a score for every question and model,
    seconds per question, hashes of the router's files and the findings. A bundle whose audit
    fails is not sent.

    Args:
        router: `file.py`, `file.py:Class`, `module:Class`, the name of a registered router, or a
            CSV or Parquet file of predictions.
        to: A folder or an address that fsspec knows.
        release: The benchmark's open part or a release; by default the one at `to`.
        name: Folder of the entry. Default: the router's name.

    Raises:
        BadInput: no router or benchmark there, or the router's scores are not usable.
    """
    with ExitStack() as stack:
        place = stack.enter_context(benchmark_of(to)) if release is None else release
        spec = spec_of(router)
        benchmark = _benchmark(place, scheme)
        tables = read_release(place)
        tables = with_embeddings(tables, None, embed, cache, encoder, benchmark["scheme"])
        core = core_of(tables)
        chosen = default_scheme(core, benchmark["scheme"])
        test = core.take(core.rows(chosen, "test"))
        scores, times, seconds = _asked(spec, core, chosen, test, seed)
        choice = chosen_models(scores, core, chosen)
        found = audit(core, chosen, choices_table(test, choice))
        with tempfile.TemporaryDirectory(prefix="routeyard-bundle-") as made:
            folder = Path(made)
            _tables(folder, test, scores, seconds)
            files = _code_files(spec)
            about = SubmissionAbout(
                format=1,
                router=spec.name or router,
                made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                benchmark=BenchmarkRef(**{**benchmark, "scheme": chosen}),
                code=None if spec.is_table else code_of([spec])[spec.name],
                files_of_code=files,
                seed=seed,
                routeyard=_version(),
                python=platform.python_version(),
                labels_readable=bool((~np.isnan(test.labels)).any()),
                times=times,
                audit=[AuditLine(name=o.name, level=o.level, says=o.says) for o in found],
                files={one: sha256(folder / one) for one in (PREDICTIONS, TIMES)},
            )
            write_json(folder / SUBMISSION, about.model_dump())
            if any(one.level == "fail" for one in found):
                return SubmitResult(None, about, found)
            entry = named(name or (spec.name or "router").replace(":", "-").replace(" ", "-"))
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
            number = f"{stamp}-{about.files[PREDICTIONS][:8]}"
            return SubmitResult(send(folder, to, entry, number), about, found)


def spec_of(router: str) -> RouterSpec:
    """A router by file, class or name; of a file without a class, the one class that is a router.

    Raises:
        BadInput: there is no such file or router, or the file has several.
    """
    if router in ROUTERS.names():
        return registered([router])[0]
    if not router.endswith(".py"):
        return own(router)
    if not Path(router).is_file():
        raise BadInput(
            "there is no such file", where=router, next_step="name a file with a router class"
        )
    module = load_module(str(Path(router).resolve()))
    classes = [
        key
        for key, one in vars(module).items()
        if isinstance(one, type)
        and one.__module__ == module.__name__
        and all(callable(getattr(one, method, None)) for method in ("fit", "scores"))
    ]
    if len(classes) != 1:
        raise BadInput(
            f"expected one class with `fit` and `scores` in the file, found {len(classes)}",
            where=router,
            next_step=f"name it: {router}:{classes[0] if classes else 'MyRouter'}",
        )
    return own(f"{router}:{classes[0]}")


def _benchmark(place: Path, scheme: str | None) -> dict[str, Any]:
    """Name, version, fingerprint and split scheme of an open part or a release.

    Raises:
        BadInput: it is neither, or another scheme than that of the open part is asked for.
    """
    if (place / ABOUT).is_file():
        about = json.loads((place / ABOUT).read_text(encoding="utf-8"))
        if scheme not in (None, about["scheme"]):
            raise BadInput(
                f"the leaderboard is on split scheme {about['scheme']!r}, not {scheme!r}",
                where=str(place / ABOUT),
                next_step="leave --scheme out",
            )
        return {key: about[key] for key in ("name", "version", "fingerprint", "scheme")}
    if not (place / MANIFEST).is_file():
        raise BadInput(
            f"the folder is neither a release nor the open part of one (no {ABOUT})",
            where=str(place),
            next_step="routeyard export participants RELEASE FOLDER writes the latter",
        )
    manifest = read_manifest(place)
    return {
        "name": manifest.name, "version": manifest.version,
        "fingerprint": manifest.fingerprint, "scheme": scheme,
    }  # fmt: skip


def _asked(
    spec: RouterSpec, core: Core, scheme: str, test: Core, seed: int
) -> tuple[Floats, DecisionTimes, dict[str, float]]:
    """Scores of the test questions asked together, what that took, and seconds of some alone."""
    fitted = Fit(replace(spec, seed=seed), core.training(scheme))
    scores = fitted.scores(test.queries(), time.perf_counter)
    batch_s = float(fitted.seconds or 0.0)
    together = chosen_models(scores, core, scheme)
    if spec.is_table:
        times = DecisionTimes(fit_s=0.0, batch_s=0.0, asked=0, moved=0, p50_s=None, p95_s=None)
        return scores, times, {}
    drawn = np.random.default_rng(0).permutation(test.n_queries)[:ALONE]
    seconds: dict[str, float] = {}
    moved, began = 0, time.perf_counter()
    for row in drawn:
        one = test.take(np.array([row]))
        alone = fitted.scores(one.queries(), time.perf_counter)
        seconds[one.query_ids[0]] = float(fitted.seconds or 0.0)
        moved += int(chosen_models(alone, core, scheme)[0] != together[row])
        if time.perf_counter() - began > ALONE_S:
            break
    p50, p95 = np.quantile(list(seconds.values()), [0.5, 0.95])
    times = DecisionTimes(
        fit_s=fitted.record.fit_s, batch_s=batch_s, asked=len(seconds), moved=moved,
        p50_s=float(p50), p95_s=float(p95),
    )  # fmt: skip
    return scores, times, seconds


def chosen_models(scores: Floats, core: Core, scheme: str) -> Ints:
    """(n,) model with the highest score; ties as an evaluation settles them."""
    every = np.ones(scores.shape, dtype=np.bool_)
    return np.asarray(best(scores, every, order_of(core, scheme)), dtype=np.int64)


def choices_table(test: Core, choice: Ints) -> pa.Table:
    """query_id, model_id of every test question, as `audit --release` reads choices."""
    return pa.table(
        {
            "query_id": pa.array(test.query_ids, pa.string()),
            "model_id": pa.array([test.model_ids[k] for k in choice], pa.string()),
        }
    )


def _tables(folder: Path, test: Core, scores: Floats, seconds: Mapping[str, float]) -> None:
    """The bundle's tables: a column for each model, and seconds where a question was timed."""
    ids = pa.array(test.query_ids, pa.string())
    columns = {name: pa.array(scores[:, k]) for k, name in enumerate(test.model_ids)}
    write_parquet(folder / PREDICTIONS, pa.table({"query_id": ids, **columns}))
    timed = pa.array([seconds.get(one) for one in test.query_ids], pa.float64())
    write_parquet(folder / TIMES, pa.table({"query_id": ids, "seconds": timed}))


def _code_files(spec: RouterSpec) -> dict[str, str]:
    """Name → SHA-256 of the router's own file and the files beside it that it imports."""
    module = spec.target.rpartition(":")[0]
    if not module.endswith(".py"):
        return {}
    return {one.name: sha256(one) for one in sorted(reached(Path(module)))}


def _version() -> str:
    from importlib.metadata import version

    return version("routeyard")
