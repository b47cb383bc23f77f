"""`routeyard init` on real files of many layouts: what is read, and whether the recipe builds.

Each file or folder below ROUTEYARD_DATA is read as it is there; the recipe is checked, and with
`--build` built unedited. Sentence embeddings take most of a build's time: `--most` leaves larger
sets of questions with texts unbuilt, and says so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

#: Place below the data folder → its layout.
PLACES = {
    "shapes/swebench_mini_info": "JSON map: model, instance, record",
    "shapes/swe_reports/results": "lists of ids per outcome, with a stated score",
    "shapes/swe_reports/evaluation": "lists of ids per outcome, and predictions",
    "shapes/trustedrouter_gateway": "summaries, replays and gateway calls in one folder",
    "shapes/trustedrouter_gateway/results": "map of task to a list of one reward",
    "shapes/mint_multiturn": "JSON lines of conversations; model and task in the path",
    "shapes/inspect_logs": "Inspect logs, some cancelled or without scores",
    "shapes/inspect_logs/tests/scorer/logs/"
    "2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": "one Inspect log (zip)",
    "shapes/inspect_logs/tests/data/inspect/data_arc_sonnet.json": "one Inspect log (JSON)",
    "shapes/swe_reports/results/reports/gpt-5.2.json": "one report of lists of ids",
    "shapes/mint_multiturn/data/outputs/claude-2/F=None/max5_p2+tool+cd/reasoning/gsm8k/"
    "results.jsonl": "one file whose model is in the path above it",
    "shapes/routellm_wide_bool/routellm/evals/mmlu/responses/mmlu_global_facts.csv": "one wide CSV",
    "shapes/helm_runs": "HELM run folders",
    "shapes/lm_eval_harness": "lm-evaluation-harness samples and results",
    "shapes/routellm_wide_bool/routellm/evals/mmlu/responses": "wide CSVs of True and False",
    "shapes/routellm_wide_bool/routellm/evals/gsm8k": "a wide CSV with responses",
    "shapes/routerarena_cached": "JSON lines per model, nested, one false success column",
    "matrices/evalperf_passrates.parquet": "long table in percent",
    "matrices/mint_bench_labels.parquet": "long table of models, settings and statuses",
    "matrices/numersense_v2_outputs.parquet": "answers with references, decoding modes, no score",
    "open_llm_leaderboard_v2/scores.parquet": "long table: task, index, model, score",
    "livecodebench/passrates.parquet": "long table with a score column per task",
    "omnisbench/items.parquet": "long table with cost, tokens, milliseconds and runs",
    "crux_sample/upstream_labels.parquet": "long table of three columns",
    "math_samples/samples.parquet": "eight samples of one model",
    "trajectories/tau_bench_airline_gpt4o.parquet": "trials of an agent",
    "routellm/mt_bench.parquet": "points from 1 to 10, two turns",
    "judged/gaokao_mcq.parquet": "one model's judged answers",
    "routerdc/matrix.parquet": "wide table, score:model",
    "alpaca_eval/annotations.parquet": "preferences from 1 to 2",
    "gsm8k/example_model_solutions.parquet": "long table with worked solutions",
    "judged/evouna_nq.parquet": "long table with verdicts of people",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default=os.environ.get("ROUTEYARD_DATA"))
    parser.add_argument("--build", action="store_true", help="build each recipe unedited")
    parser.add_argument("--part", default="1/1", help="`2/3`: the second third of the places")
    parser.add_argument("--most", type=int, default=600, help="questions with texts to build")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    data = Path(arguments.data or "")
    part, parts = (int(one) for one in arguments.part.split("/"))
    rows = []
    with tempfile.TemporaryDirectory() as made:
        for number, (place, layout) in list(enumerate(PLACES.items()))[part - 1 :: parts]:
            folder = Path(made) / str(number)
            row = {"file": place, "layout": layout, **_one(data / place, folder, arguments)}
            print(*row.values(), sep=" | ", file=sys.stderr, flush=True)
            rows.append(row)
    return {
        "files": len(rows),
        "without_a_fault": sum(row.get("faults") == 0 for row in rows),
        "built": sum(row.get("built") == "yes" for row in rows),
        "rows": rows,
    }


def _one(place: Path, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    from routeyard.flows.new_recipe import start_recipe
    from routeyard.flows.recipe_check import faults
    from routeyard.pipelines.common.errors import RouteyardError

    recipe, began = folder / "mine.yaml", time.process_time()
    try:
        done = start_recipe(recipe, str(place), fields={})
    except RouteyardError as error:
        return {"refused": str(error).splitlines()[0]}
    seconds = time.process_time() - began
    if not (folder / "mine-data").is_dir():
        return {"refused": "taken for a table of questions", "to_confirm": len(done.lacks)}
    asked = pq.read_table(folder / "mine-data" / "queries.parquet", columns=["id", "question"])
    texts = asked.column("id").to_pylist() != asked.column("question").to_pylist()
    answers = pq.read_table(folder / "mine-data" / "responses.parquet")
    found = {
        "questions": asked.num_rows,
        "models": len(set(answers.column("model").to_pylist())),
        "answers": answers.num_rows,
        "to_confirm": len(done.lacks),
        "init_cpu_s": round(seconds, 2),
        "faults": len(faults(str(recipe))),
    }
    if not arguments.build:
        return found
    if texts and asked.num_rows > arguments.most:
        return {**found, "built": f"not tried: more than {arguments.most} texts to embed"}
    command = [sys.executable, "-m", "routeyard", "build", str(recipe), "-w", str(folder / "yard")]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode == 0:
        return {**found, "built": "yes"}
    lines = [line for line in built.stderr.splitlines() if line.startswith("error")]
    return {**found, "built": f"no ({built.returncode}): {' '.join(lines)[:300]}"}
