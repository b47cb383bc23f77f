"""Training encoders end to end on a release: the grid, what it will take, what it came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.extensions.tuning.encoder import (
    Encoder,
    TuningSettings,
    drawing,
    encoder_parameters,
)
from routeyard.extensions.tuning.training import (
    HEADS,
    REFERENCE_ROUTER,
    TuningCell,
    TuningInputs,
    choices,
    drawn,
    head_of,
    recorded,
    run,
)
from routeyard.flows.console import counter, line
from routeyard.flows.evaluation.released import texts_of
from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.arrays import Vectors
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.common.staging import replacing, write_parquet, write_text
from routeyard.pipelines.evaluate.experiment import default_scheme, with_validation
from routeyard.pipelines.evaluate.signals import tokenised
from routeyard.pipelines.evaluate.studies.study import TUNED, data_identity, whole
from routeyard.schemas.errors import BadInput

# The grid of trainings of `zoo tune`: routers × encoders × amounts of data × ways × seeds.


@dataclass(frozen=True)
class Grid:
    """Attributes:
    amounts: numbers of train questions; 0 is all there are.
    ways: `frozen`, `tuned` or both.
    """

    routers: tuple[str, ...]
    encoders: tuple[str, ...]
    amounts: tuple[int, ...]
    ways: tuple[str, ...]
    seeds: tuple[int, ...]

    def cells(self, encoder: str, available: int) -> list[TuningCell]:
        """The cells of one encoder: frozen ones first, the neighbours' reference among them."""
        rows = sorted({min(n, available) if n else available for n in self.amounts})
        results = []
        for n in rows:
            if "frozen" in self.ways:
                results.append(TuningCell(REFERENCE_ROUTER, encoder, n, False, self.seeds[0]))
            results += [
                TuningCell(router, encoder, n, way == "tuned", seed)
                for way, router, seed in product(self.ways, self.routers, self.seeds)
            ]
        return results


def grid_of(
    *,
    routers: Sequence[str] | None,
    encoders: Sequence[str],
    rows: Sequence[str],
    ways: Sequence[str],
    seeds: Sequence[str],
) -> Grid:
    """The grid of options as text: `all` rows, numbers as digits; None for all routers.

    Raises:
        UnknownName: there is no such router.
        BadInput: a way or a number cannot be read, or nothing would be trained.
    """
    names = list(HEADS) if routers is None else list(routers)
    for name in names:
        head_of(name, 0)
    if not ways or set(ways) - {"frozen", "tuned"}:
        raise BadInput(f"expected frozen, tuned or both; got {','.join(ways)!r}", where="--ways")
    try:
        amounts = tuple(0 if word == "all" else int(word) for word in rows)
        drawn = tuple(int(word) for word in seeds)
    except ValueError as error:
        raise BadInput(f"--rows and --seeds are numbers: {error}") from error
    if not (names and encoders and amounts and drawn):
        raise BadInput("the grid is empty", next_step="name routers, encoders, rows and seeds")
    if min(amounts) < 0:
        raise BadInput("a number of train questions is negative", next_step="--rows all")
    return Grid(tuple(names), tuple(encoders), amounts, tuple(ways), drawn)


def read(tables: Mapping[str, pa.Table], scheme: str | None) -> tuple[Core, str]:
    """The release with validation questions, `prompts` being the texts that encoders read."""
    core = core_of({k: v for k, v in tables.items() if k != "embeddings"})
    chosen = default_scheme(core, scheme)
    core, _ = with_validation(core, chosen)
    return replace(core, prompts=tuple(texts_of(tables, core))), chosen


def plan(
    core: Core, scheme: str, grid: Grid, settings: TuningSettings, out: Path
) -> dict[str, Any]:
    """What the grid will read; no weight is loaded and nothing is trained.

    Raises:
        BadInput: two encoders have one name.
    """
    from transformers import AutoTokenizer

    shared = [Path(encoder).name for encoder in grid.encoders]
    if len(set(shared)) < len(shared):
        raise BadInput(
            f"two encoders are called {max(shared, key=shared.count)!r}, and so would their cells",
            next_step="rename a folder, or train them into separate folders (--out)",
        )
    rows: list[dict[str, Any]] = []
    for encoder in grid.encoders:
        parameters = encoder_parameters(encoder)
        tokenizer = AutoTokenizer.from_pretrained(encoders.location(encoders.full_name(encoder)))
        read = tokenised(tokenizer, core.prompts, settings.tokens)
        lengths = dict(zip(core.query_ids, map(len, read), strict=True))
        for cell in grid.cells(encoder, len(core.rows(scheme, "train"))):
            learnt = [lengths[q] for q in drawn(core, scheme, cell.rows).queries.query_ids]
            rows.append(
                {
                    "cell": cell.name, "train_rows": cell.rows, "tokens": sum(learnt),
                    "steps": settings.epochs * -(-cell.rows // settings.batch) * cell.tuned,
                    "parameters": parameters, "done": recorded(out / cell.name) is not None,
                }
            )  # fmt: skip
    for size, cells in Counter(row["parameters"] for row in rows).items():
        line("tune", f"{cells} cells of an encoder of {size / 1e6:.1f} million parameters")
    return {"cells": rows}


def tune(
    core: Core, scheme: str, grid: Grid, settings: TuningSettings, out: Path
) -> dict[str, Any]:
    """Run every cell; write tuned.parquet, runs.parquet and table.md of all that are done."""
    for encoder in grid.encoders:
        weights = encoders.weights_hash(encoder)
        vectors = frozen(core, scheme, encoder, weights, settings, out)
        bench = TuningInputs(
            replace(core, embeddings=vectors), scheme, weights, encoder_parameters(encoder)
        )
        for cell in grid.cells(encoder, len(core.rows(scheme, "train"))):
            with counter("tune", "questions") as advance:
                result = run(cell, bench, settings, out, advance)
            line(
                "tune",
                f"{cell.name}: validation {result['validation']:.2%}, test {result['test']:.2%}, "
                f"{result['seconds']:,.0f} s, peak {result['peak_mb'] / 1e3:.1f} GB",
            )
    return write_results(core, scheme, out)


def frozen(
    core: Core, scheme: str, encoder: str, weights: str, settings: TuningSettings, out: Path
) -> Vectors:
    """(n, d) vectors of the untouched encoder, read from `out` where they were made before."""
    from safetensors.numpy import load_file, save_file

    name = f"{whole(core, scheme)}-{weights}-{settings.tokens}"
    path = out / "vectors" / f"{name}.safetensors"
    if path.is_file():
        return np.asarray(load_file(path)["vectors"])
    with drawing(settings, 0, settings.device), counter("encode", "questions") as advance:
        item = Encoder(encoder, settings.tokens)
        item.model.to(settings.device)
        vectors = item.vectors(item.ids(core.prompts), advance)
    with replacing(path) as unfinished:
        save_file({"vectors": vectors}, unfinished)
    return vectors


def write_results(core: Core, scheme: str, out: Path) -> dict[str, Any]:
    """Choices, runs and a table of every cell that is done on this release."""
    data = data_identity(core, scheme)
    records = [(p, recorded(p)) for p in sorted(out.iterdir()) if p.is_dir()]
    done = [(p, r) for p, r in records if r is not None and r["data"] == data]
    tables = [choices(p, r, core, scheme) for p, r in done]
    write_parquet(out / "tuned.parquet", TUNED.conform(pa.concat_tables(tables)))
    keys = (
        "router", "encoder", "parameters", "rows", "tuned", "seed", "validation", "test",
        "seconds", "cpu_s", "peak_mb",
    )  # fmt: skip
    runs = [{k: r[k] for k in keys} for _, r in done]
    (out / "runs").mkdir(exist_ok=True)
    write_parquet(out / "runs" / "runs.parquet", pa.Table.from_pylist(runs))
    write_text(out / "table.md", _page(runs))
    return {"path": out, "runs": runs}


def _page(runs: Sequence[Mapping[str, Any]]) -> str:
    head = "| router | encoder | train questions | encoder is | seed | validation | test | s |"
    rows = [
        f"| {r['router']} | {r['encoder']} | {r['rows']:,} | {'tuned' if r['tuned'] else 'frozen'} "
        f"| {r['seed']} | {100 * r['validation']:.2f} | {100 * r['test']:.2f} "
        f"| {r['seconds']:,.0f} |"
        for r in runs
    ]
    ruled = "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |"
    return "\n".join(["Routing accuracy at λ = 0, per cent.", "", head, ruled, *rows, ""])
