"""The recipe `routerbench_plus` on a whole matrix, through import and build to a verified release.

    python -m benchmarks routerbench_plus mmlu_pro --workspace yard
    python -m benchmarks routerbench_plus planted --workspace yard

`mmlu_pro` takes MMLU-Pro's 12,032 questions and 29 models from ROUTEYARD_DATA; `planted` makes
112 models and 35,673 questions (`--questions` for fewer) and says how much of what was planted
was found. Either is written as EmbedLLM's three files first, since that is what the recipe reads,
and has its own workspace, `<workspace>/routerbench_plus/<matrix>`. A matrix of fewer than
35,673 questions is built at that scale. Then the five routers of the paper's Figure 7 are measured
on the release's test questions: the area over budgets and the peak, which it prints, and QNC.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("matrix", choices=("mmlu_pro", "planted"))
    parser.add_argument("--workspace", type=Path, default=Path("yard"))
    parser.add_argument("--questions", type=int, default=35_673, help="of the planted matrix")
    parser.add_argument("--resamples", type=int, default=1_000, help="of the routers' intervals")


def run(given: argparse.Namespace) -> dict[str, Any]:
    import pyarrow.parquet as pq

    from routeyard.flows.build import run_build
    from routeyard.flows.cli import run as command
    from routeyard.flows.recipe import load
    from routeyard.flows.rehearse import EMBEDLLM, plant, write_embedllm
    from routeyard.pipelines.ingest.importers import IMPORTERS
    from routeyard.pipelines.ingest.importers.write import run_import

    clock = Clock()
    root = given.workspace.absolute() / "routerbench_plus" / given.matrix
    planted = None
    if given.matrix == "planted":
        planted = plant(questions=given.questions)
        raw = write_embedllm(planted, root / "raw")
    else:
        raw = write_mmlu_pro(Path(os.environ.get("ROUTEYARD_DATA", "data")), root / "raw")
    clock.stop("matrix written")
    imported = run_import(IMPORTERS.get("embedllm"), raw, root / "imported")
    clock.stop("import")
    asked = pq.read_metadata(imported.folder / "queries.parquet").num_rows
    limit = sum(int(source.limit or 0) for source in load("routerbench_plus")[0].sources)
    before = os.environ.get(EMBEDLLM)
    os.environ[EMBEDLLM] = str(imported.folder)
    try:
        done = run_build("routerbench_plus", str(root), jobs=1, scale=min(1.0, asked / limit))
    finally:
        os.environ.pop(EMBEDLLM)
        if before is not None:
            os.environ[EMBEDLLM] = before
    release = Path(done["release"]["path"])
    clock.stop("build")
    with contextlib.redirect_stdout(sys.stderr):  # the figures alone are the output
        verified = command(["verify", str(release)]) == 0
    clock.stop("verify")
    routers = cost_metrics(release, root / "cache" / "embeddings", given.resamples)
    clock.stop("evaluate")
    return {
        "matrix": given.matrix,
        "release": str(release),
        "verified": verified,
        **figures(release, planted),
        "routers": routers,
        "resamples": given.resamples,
        "steps": clock.steps,
        "wall_s": round(sum(step["wall_s"] for step in clock.steps.values()), 1),
        "cpu_s": round(sum(step["cpu_s"] for step in clock.steps.values()), 1),
        "peak_mb": max(step["peak_mb"] for step in clock.steps.values()),
        "exit": 0 if verified else 1,
    }


class Clock:
    """Time and memory of one step after another, this process and its children.

    Attributes:
        steps: step → `wall_s`, `cpu_s`, and `peak_mb`: the most that one process had held by
            its end.
    """

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, float]] = {}
        self._at = self._now()[:2]

    def _now(self) -> tuple[float, float, int]:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        cpu = sum(one.ru_utime + one.ru_stime for one in used)
        return time.perf_counter(), cpu, round(max(one.ru_maxrss for one in used) / 1e3)

    def stop(self, step: str) -> None:
        """End a step; the next one begins."""
        wall, cpu, peak = self._now()
        self.steps[step] = {
            "wall_s": round(wall - self._at[0], 1),
            "cpu_s": round(cpu - self._at[1], 1),
            "peak_mb": peak,
        }
        self._at = (wall, cpu)


#: Routers of the paper's Figure 7, in its order, and what is printed of them.
ROUTERS = ("knn", "kmeans", "mlp", "mf", "best-generalist")
METRICS = (
    "accuracy",
    "audc_budget[params]",
    "audc[params]",
    "peak_accuracy[params]",
    "qnc[params]",
)


def cost_metrics(release: Path, cache: Path, resamples: int) -> dict[str, dict[str, Any]]:
    """Router → metric → value with its interval, on the release's test questions.

    A metric that cannot be computed has its reason instead.
    """
    from routeyard.flows.evaluation.evaluate import evaluate

    done = evaluate(
        release, ROUTERS, embed=True, cache=cache, pair_routers=False, resamples=resamples
    )
    found: dict[str, dict[str, Any]] = {name: {} for name in ROUTERS}
    for row in done.metrics.to_pylist():
        if row["router"] in found and row["metric"] in METRICS:
            known = [round(row[k], 4) for k in ("value", "low", "high") if row[k] is not None]
            found[row["router"]][row["metric"]] = known or row["reason"]
    return found


def figures(release: Path, planted: Any) -> dict[str, Any]:
    """What each rule left, and of a planted matrix how much of the structure was found."""
    import json

    import pyarrow.parquet as pq

    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    rules = {rule["rule"]: rule for rule in manifest["figures"]["curate"]["rules"]}
    models = pq.read_table(release / "data" / "models.parquet")
    found: dict[str, Any] = {
        "rules": {
            name: {"before": rule["before"], "after": rule["after"]} for name, rule in rules.items()
        },
        "kinds": dict(sorted(Counter(models.column("kind").to_pylist()).items())),
        "injected": [one["task"] for one in rules["pseudo_specialists"]["figures"]["injected"]],
    }
    if planted is None:
        return found
    tasks = set(
        pq.read_table(release / "data" / "queries.parquet", columns=["task"])
        .column("task")
        .to_pylist()
    )
    gone = {row["model_id"] for row in rules["prune"]["figures"]["order"]}
    alike = planted.copies.keys() | set(planted.copies.values())
    decided = {
        row["task"]: row["decision"] for row in rules["specialist_sample"]["figures"]["tasks"]
    }
    asked = [decided.get(name) == "demanding" for name in planted.specialists]
    found["planted"] = {
        "repeats": int(np.sum(planted.twin_of >= 0)),
        "repeats_gone": rules["dedup"]["before"]["queries"] - rules["dedup"]["after"]["queries"],
        "twin_tasks": len(planted.twin_tasks),
        "twin_tasks_of_which_one_is_left": sum(
            (one in tasks) != (other in tasks) for one, other in planted.twin_tasks.items()
        ),
        "specialists": len(asked),
        "specialists_found": sum(asked),
        "redundant_models": len(planted.copies),
        "models_gone": len(gone),
        "models_gone_that_are_alike": len(gone & alike),
        "hard_tasks": sorted(planted.hard),
    }
    return found


def write_mmlu_pro(data: Path, folder: Path) -> Path:
    """MMLU-Pro's outcomes as EmbedLLM's `train.csv`, `val.csv` and `test.csv`."""
    from benchmarks.zoo.matrices import mmlu_pro
    from routeyard.pipelines.common.encoders import text_of

    core, table = mmlu_pro(data, 42)
    asked = {row["query_id"]: row for row in table.to_pylist()}
    folder.mkdir(parents=True, exist_ok=True)
    for split, name in (("train", "train"), ("validation", "val"), ("test", "test")):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(("prompt_id", "model_id", "model_name", "category", "prompt", "label"))
            for row in core.rows("dense", split).tolist():
                query = core.query_ids[row]
                text = text_of(asked[query]["question"], asked[query]["choices"])
                for k, model in enumerate(core.model_ids):
                    label = core.labels[row, k]
                    if not np.isnan(label):
                        writer.writerow((query, k, model, core.tasks[row], text, int(label)))
    return folder
