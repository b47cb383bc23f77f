"""MMLU-Pro's models of known size, a third of them unseen, with text footprints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.methods.written import write


def mmlu_pro(release: Path, folder: Path, cache: Path, questions: int | None = None) -> Path:
    """The models of known size, a third of them unseen, and their text footprints.

    Args:
        questions: so many, drawn by a seed; all by default.
    """
    from routeyard.flows.evaluation.fingerprint import Described, Probing, describe, probe_queries
    from routeyard.pipelines.common.encoders import embed
    from routeyard.schemas import MODEL_SPLITS
    from routeyard.schemas.recipe import ENCODER

    read = {n: pq.read_table(release / "data" / f"{n}.parquet")
            for n in ("queries", "models", "labels", "splits")}  # fmt: skip
    read["models"] = read["models"].filter(pc.is_valid(read["models"]["params_b"]))
    # Of all questions, so that pieces that were embedded before are found again.
    read["embeddings"] = embed(read["queries"], encoder=ENCODER, cache=cache)
    if questions is not None:
        ids = np.array(sorted(read["queries"].column("query_id").to_pylist()))
        few = pa.array(np.random.default_rng(0).permutation(ids)[:questions].tolist())
        for table in ("queries", "labels", "splits", "embeddings"):
            kept = pc.is_in(read[table].column("query_id"), value_set=few)
            read[table] = read[table].filter(kept)
    names = sorted(read["models"].column("model_id").to_pylist())
    drawn = np.random.default_rng(0).permutation(len(names))[: len(names) // 3]
    unseen = {names[i] for i in drawn.tolist()}
    splits = MODEL_SPLITS.from_rows(
        {"scheme": "dense", "model_id": n, "split": "unseen" if n in unseen else "seen"}
        for n in names
    )
    probing = Probing(probes=192, steps=0, tokens=256)
    probes = probe_queries(release, probing)
    described = describe("text_footprint", probes, probing, Described(release, models=names))
    return write(folder, {**read, "model_splits": splits, "descriptors": described})
