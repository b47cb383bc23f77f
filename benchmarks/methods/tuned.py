"""Encoders trained end to end on a few recorded questions, beside the same heads on them frozen.

RouterDC's English tasks and MMLU-Pro, as `benchmarks.zoo.matrices` reads them; so many train,
validation and test questions of each are drawn by a seed. A run that is stopped goes on
where it was, so it may be given out in pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.methods.written import write
from benchmarks.zoo.matrices import mmlu_pro, routerdc
from routeyard.extensions.tuning import tune as do
from routeyard.extensions.tuning.encoder import TuningSettings
from routeyard.extensions.tuning.tune import Grid
from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.matrix import Core

MATRICES = {"routerdc": routerdc, "mmlu_pro": mmlu_pro}
#: Questions of each split, and passes over the train questions: half a minute of one core a cell.
FEW = {"train": 160, "validation": 80, "test": 300}
SETTINGS = TuningSettings(epochs=2, batch=16, micro=16, tokens=32, head_first=True, save_every=10)


def release(name: str, data: Path, folder: Path, few: dict[str, int] | None = None) -> Path:
    """A small release of a recorded matrix; `few` questions of each split, all without."""
    from routeyard.schemas import LABELS, MODELS, QUERIES, SPLITS

    core, asked = MATRICES[name](data, 42)
    split = core.splits["dense"]
    draw = np.random.default_rng(0)
    kept: list[int] = []
    for part in ("train", "validation", "test"):
        rows = draw.permutation(np.flatnonzero(split == part))
        kept += rows[: few[part] if few else None].tolist()
    core = core.take(np.sort(np.array(kept)))
    texts = {row["query_id"]: row for row in asked.to_pylist()}
    texts = {_id(name, q): texts[q] for q in core.query_ids}
    core = replace(core, query_ids=tuple(texts))
    return write(
        folder,
        {
            "queries": QUERIES.from_rows(_queries(core, texts)),
            "models": MODELS.from_rows(
                {"model_id": m, "kind": "real", "simulated": False} for m in core.model_ids
            ),
            "labels": LABELS.from_rows(
                {
                    "query_id": q, "model_id": m, "score": float(core.labels[i, k]),
                    "correct": bool(core.labels[i, k] >= 0.5), "decided_by": "recorded",
                    "contested": False, "n_samples": 1,
                }
                for i, q in enumerate(core.query_ids)
                for k, m in enumerate(core.model_ids)
                if not np.isnan(core.labels[i, k])
            ),
            "splits": SPLITS.from_rows(
                {"scheme": "dense", "query_id": q, "split": str(part)}
                for q, part in zip(core.query_ids, core.splits["dense"], strict=True)
            ),
        },
    )  # fmt: skip


#: All questions, on an accelerator.
FULL = TuningSettings(
    epochs=5, batch=32, micro=32, tokens=256, precision="bf16", device="cuda", save_every=500
)


def run(name: str, data: Path, out: Path, heads: tuple[str, ...], *, full: bool = False) -> Path:
    """The grid of one matrix; the folder of its release, which `tuned` is beside.

    Args:
        full: all questions and five seeds, on an accelerator.
    """
    folder = out / (f"{name}_all" if full else f"{name}_few")
    if not (folder / "data").is_dir():
        release(name, data, folder, None if full else FEW)
    settings = FULL if full else SETTINGS
    seeds = (42, 1337, 2026, 7, 99) if full else (42,)
    core, scheme = do.read(read_release(folder), None)
    grid = Grid(heads, ("minilm",), (0,), ("frozen", "tuned"), seeds)
    place = out / "tuned" / folder.name
    place.mkdir(parents=True, exist_ok=True)
    do.plan(core, scheme, grid, settings, place)
    do.tune(core, scheme, grid, settings, place)
    return folder


def _queries(core: Core, texts: Mapping[str, Mapping[str, Any]]) -> list[dict[str, object]]:
    return [
        {
            "query_id": q, "source": "recorded", "source_id": one["query_id"],
            "task": str(core.tasks[i]), "domain": "general", "question": one["question"],
            "prompt": one["question"], "choices": one["choices"], "references": [""],
            "scorer": "given", "metadata": "{}",
        }
        for i, (q, one) in enumerate(texts.items())
    ]  # fmt: skip


def _id(name: str, question: str) -> str:
    return "q" + hashlib.sha256(f"{name}:{question}".encode()).hexdigest()[:20]
