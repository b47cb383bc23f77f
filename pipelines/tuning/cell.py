"""One fit of a grid: a router, an encoder, an amount of data, frozen or trained, a seed.

Its folder is named after it and holds `run.json`, written last: a cell that has one is
done. Beside it are the saved router and its scores on validation and test questions, as
a table that `evaluate` and `zoo run` take for a router. A cell that was killed has
checkpoints instead, and goes on from the newest.
"""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines import encoders
from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.experiment.effort import peak_memory
from routeyard.pipelines.experiment.fit import fit
from routeyard.pipelines.experiment.splits import order, price, priced_in
from routeyard.pipelines.io.staging import replacing, write_text
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.texts import some
from routeyard.pipelines.metrics.selection import best
from routeyard.pipelines.routers import ROUTERS, saved
from routeyard.pipelines.routers.base import Examples
from routeyard.pipelines.tuning.encoder import Encoder
from routeyard.pipelines.tuning.heads import head_of, registered
from routeyard.pipelines.tuning.loop import tune
from routeyard.pipelines.tuning.settings import TuningSettings
from routeyard.pipelines.zoo.cell import hits

#: Fitted on frozen vectors only, as what data and encoder alone are worth (section 6.2).
REFERENCE = "knn"


@dataclass(frozen=True)
class TuningCell:
    """Attributes:
    encoder: as it was named.
    rows: train questions.
    tuned: whether the encoder is trained.
    """

    router: str
    encoder: str
    rows: int
    tuned: bool
    seed: int

    @property
    def name(self) -> str:
        """As its folder, and as the router that its table of scores is."""
        encoder = self.encoder.rstrip("/").rpartition("/")[2].replace("#", "_")
        how = "tuned" if self.tuned else "frozen"
        return f"{self.router}-{encoder}-{self.rows}-{how}-{self.seed}"


@dataclass(frozen=True)
class TuningInputs:
    """What the cells of one encoder share.

    Attributes:
        core: with validation questions; `prompts` are the texts that encoders read, and
            `embeddings` the untouched encoder's vectors of them.
        weights: hash of the encoder's weight files.
        parameters: of the encoder.
    """

    core: Core
    scheme: str
    weights: str
    parameters: int

    @property
    def data(self) -> str:
        return whole(self.core, self.scheme)


def identity(core: Core, scheme: str) -> str:
    """Hash of the test questions, the models and their labels: what figures are comparable on.

    Train questions are no part of it: amounts of data may be split schemes of one release, or
    releases that share their test split, as the study's two benchmarks do.
    """
    return whole(core.take(core.rows(scheme, "test")), scheme)


def whole(core: Core, scheme: str) -> str:
    """Hash of questions, models, labels and splits."""
    words = json.dumps([list(core.query_ids), core.model_ids, core.splits[scheme].tolist()])
    hashed = hashlib.sha256(words.encode())
    hashed.update(np.ascontiguousarray(core.labels).tobytes())
    return hashed.hexdigest()[:16]


def drawn(core: Core, scheme: str, rows: int) -> Examples:
    """So many train questions, by a hash of their ids: a larger draw contains a smaller one."""
    train = core.training(scheme)
    keys = [hashlib.sha256(q.encode()).hexdigest() for q in train.queries.query_ids]
    few = np.sort(np.argsort(np.array(keys))[:rows])
    return train.take(few.astype(np.int64))


def run(
    cell: TuningCell,
    bench: TuningInputs,
    settings: TuningSettings,
    out: Path,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Fit it, or go on with it, or read what it came to; the content of `run.json`."""
    folder = out / cell.name
    fingerprint = _fingerprint(cell, bench, settings)
    done = recorded(folder)
    if done is not None and done["fingerprint"] == fingerprint:
        return done
    (folder / "run.json").unlink(missing_ok=True)
    train = drawn(bench.core, bench.scheme, cell.rows)
    cpu, began = time.process_time(), time.monotonic()
    with peak_memory() as peak:
        router, core, more = _fitted(cell, bench, settings, folder, train, fingerprint, on_progress)
        validation, test = (
            float(hits(part, router.scores(part.queries()), order(core, bench.scheme)).mean())
            for part in (
                core.take(core.rows(bench.scheme, split)).labelled()
                for split in ("validation", "test")
            )
        )
    _scores(folder / f"{cell.name}.parquet", core, bench.scheme, router)
    record = {
        **asdict(cell), "fingerprint": fingerprint,
        "data": identity(core, bench.scheme),
        "parameters": bench.parameters, "validation": validation, "test": test,
        "seconds": time.monotonic() - began, "cpu_s": time.process_time() - cpu,
        "peak_mb": peak(), "settings": asdict(settings), **more,
    }  # fmt: skip
    write_text(folder / "run.json", json.dumps(record, indent=1) + "\n")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    if cell.tuned:
        # An encoder, its gradients and moments refer to each other in circles, and are few objects:
        # left to itself Python kept those of four cells.
        del router, core
        gc.collect()
    return record


def recorded(folder: Path) -> dict[str, Any] | None:
    """What a cell came to; None when it is not done."""
    try:
        found: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def choices(folder: Path, record: dict[str, Any], core: Core, scheme: str) -> pa.Table:
    """Rows of `tuned` of a cell that is done: its choice on every test question with a label."""
    test = core.take(core.rows(scheme, "test")).labelled()
    cell = TuningCell(*(record[k] for k in ("router", "encoder", "rows", "tuned", "seed")))
    table = pq.read_table(folder / f"{cell.name}.parquet")
    at = {q: k for k, q in enumerate(table.column("query_id").to_pylist())}
    rows = [at[q] for q in test.query_ids]
    scores = np.column_stack([table.column(m).to_numpy()[rows] for m in core.model_ids])
    chosen = best(scores, ~np.isnan(test.labels), order(core, scheme))
    n = len(rows)
    return pa.table(
        {
            "data": [record["data"]] * n, "router": [cell.router] * n,
            "encoder": [cell.encoder] * n, "parameters": [record["parameters"]] * n,
            "train_rows": [cell.rows] * n, "tuned": [cell.tuned] * n, "seed": [cell.seed] * n,
            "query_id": list(test.query_ids), "model_id": [core.model_ids[k] for k in chosen],
        }
    )  # fmt: skip


def _fitted(
    cell: TuningCell,
    bench: TuningInputs,
    settings: TuningSettings,
    folder: Path,
    train: Examples,
    fingerprint: str,
    on_progress: Callable[[int, int], None] | None,
) -> tuple[Any, Core, dict[str, Any]]:
    """(router, the core with the vectors it reads, more for the record); the router is saved."""
    core = bench.core
    place = folder / "router"
    shutil.rmtree(place, ignore_errors=True)
    setting = {"seed": cell.seed}
    encoder, weights, more = cell.encoder, bench.weights, {}
    if cell.router == REFERENCE:
        router, setting = fit(ROUTERS.get(REFERENCE)(), train), {}
    elif not cell.tuned:
        router = registered(fit(head_of(cell.router, cell.seed), train))
    else:
        head = head_of(cell.router, cell.seed)
        trained = Encoder(cell.encoder, settings.tokens)
        progress = tune(
            head, trained, train, settings, folder / "checkpoints", fingerprint=fingerprint,
            on_progress=on_progress,
        )  # fmt: skip
        rows = np.flatnonzero(np.isin(core.splits[bench.scheme], ("validation", "test")))
        vectors = np.zeros((core.n_queries, trained.size), dtype=np.float32)
        vectors[rows] = trained.vectors(trained.ids(some(core.prompts, rows)))
        core, router = replace(core, embeddings=vectors), registered(head)
        trained.save(place / saved.TUNED)
        encoder, weights = saved.TUNED, encoders.weights_hash(str(place / saved.TUNED))
        more = {
            "best_step": progress.best_step, "steps": progress.step, "looks": progress.looks,
            "training_s": progress.seconds,
        }  # fmt: skip
    cost = price(core, bench.scheme)
    saved.save(
        router, place, setting=setting, model_ids=core.model_ids, encoder=encoder,
        encoder_hash=weights, price=cost if np.any(cost > 0) else None,
        price_in=priced_in(core, bench.scheme),
    )  # fmt: skip
    return router, core, more


def _scores(path: Path, core: Core, scheme: str, router: Any) -> None:
    """Scores on all validation and test questions, a column for each model."""
    rows = np.flatnonzero(np.isin(core.splits[scheme], ("validation", "test")))
    part = core.take(rows)
    scores: Floats = np.asarray(router.scores(part.queries())).astype(np.float32)
    columns = {m: scores[:, k].astype(np.float64) for k, m in enumerate(core.model_ids)}
    with replacing(path) as unfinished:
        pq.write_table(pa.table({"query_id": list(part.query_ids), **columns}), unfinished)


def _fingerprint(cell: TuningCell, bench: TuningInputs, settings: TuningSettings) -> str:
    """Of everything that decides the figures, but for the code: hours are not lost to an edit."""
    decides = {k: v for k, v in asdict(settings).items() if k not in ("save_every", "threads")}
    if not cell.tuned:
        decides = {"tokens": settings.tokens}
    words = [asdict(cell), bench.data, bench.weights, decides]
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:24]
