"""The real model's release: its hidden states, its models' descriptors, what they are worth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.flows.evaluation.released import Tables, read_release, with_beside

SMALL, LARGE = "smollm2-q8-brief", "smollm2-q8-steps"
PAIR = (SMALL, LARGE)
STUDIES = (
    "router_ability", "router_alignment", "probe_aggregation", "probe_layers",
    "probe_width", "confidence_rates", "confidence_sizes", "cscr_curves", "cscr_descriptors",
    "cscr_loss", "cscr_significance", "descriptor_similarity",
)  # fmt: skip


def beside(release: Path, out: Path, workspace: Path) -> Tables:
    """The release with hidden states of all layers and logit footprints of all members.

    Made in `out` where they are not there yet: states by the fetched safetensors, footprints by
    asking the served model through the workspace's ledger.
    """
    from routeyard.flows.evaluation.fingerprint import Described, Probing, describe, probe_queries
    from routeyard.flows.recipe import load
    from routeyard.flows.workspace import fixtures, write_table
    from routeyard.pipelines.common.encoders import fetch
    from routeyard.pipelines.evaluate.signals import fingerprint, write_hidden_states
    from routeyard.pipelines.evaluate.signals import load as load_model

    states, footprints = out / "states", out / "descriptors.parquet"
    weights = str(fetch("smollm2"))
    write_hidden_states(
        read_release(release)["queries"],
        load_model(weights),
        states,
        identity={"model": fingerprint(weights), "dtype": "float32"},
        model_id=SMALL,
    )
    if not footprints.is_file():
        recipe, probing = load("real_tiny")[0], Probing(probes=16)
        probes = probe_queries(release, probing)
        with fixtures(recipe, workspace):
            of = Described(release, workspace, recipe)
            asked = describe("logit_footprint", probes, probing, of)
        said = describe("text_footprint", probes, probing, Described(release))
        write_table(pa.concat_tables([asked, said]), footprints)
    return with_beside(read_release(release), [states, footprints])


def told(tables: Mapping[str, Any]) -> str:
    """What the release holds, and what a difference or a larger model would need."""
    from routeyard.pipelines.common.matrix import core_of
    from routeyard.pipelines.evaluate.certificate import difference_shown, questions_needed

    core = core_of(tables)
    rows = core.rows(next(iter(core.splits)), "test")
    test, right = len(rows), np.nansum(core.decided[rows, core.model_ids.index(SMALL)])
    signals = tables["signals"].column("self_assessment") if "signals" in tables else pa.array([])
    assessed = len(signals) - signals.null_count
    oracle = 100 * float(np.nanmean(np.nanmax(core.decided, axis=1)))
    return (
        "## What the real model's release holds\n\n"
        "Release `real_tiny`; made by `python -m benchmarks.methods --only real`.\n\n"
        "| way of asking | right (%) | answers | tokens, mean | seconds, median | USD per 1,000 |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n"
        + "\n".join(_row(core, tables["responses"], k) for k in range(core.n_models))
        + f"\n\n- {core.n_queries} questions, {test} of them tested; one of the ways is right on "
        f"{oracle:.1f} %. SmolLM2-135M-Instruct on one machine that did other work as well.\n"
        "- Hidden states are those of all 31 layers on the question (float32, of the same weights);"
        " footprints, entropies and margins are the served model's own. Its self-assessment was "
        f"asked of {assessed} of its answers.\n"
        f"- `{SMALL}`, whose states and signals the routers read, is right on {right:.0f} of the "
        f"{test} tested questions: an AUROC hangs on these few, and resampling questions cannot "
        "say how it would be with others.\n"
        f"- {test} questions show a difference of {100 * difference_shown(test):.0f} points; 5 "
        f"points need {questions_needed(0.05):,} test questions, 2 points "
        f"{questions_needed(0.02):,}.\n"
        "- A larger model: the same commands, with `ROUTEYARD_REAL_GGUF` and a folder of its "
        "safetensors. In float32 states need 4 bytes a parameter (28 GB for 7B); a 7B model does "
        "52 times the arithmetic for each token.\n"
    )


def _row(core: Any, responses: pa.Table, k: int) -> str:
    name = core.model_ids[k]
    mine = responses.filter(pc.equal(responses.column("model_id"), name))
    tokens, seconds, usd = (
        np.array(mine.column(column).to_pylist(), dtype=float)
        for column in ("completion_tokens", "latency_s", "cost_usd")
    )
    return (
        f"| {name} | {100 * np.nanmean(core.decided[:, k]):.1f} | {mine.num_rows} | "
        f"{np.nanmean(tokens):.0f} | {np.nanmedian(seconds):.1f} | {1000 * np.nanmean(usd):.4f} |"
    )


def agents(out: Path) -> Path:
    """A release of `agent_demo`, built where it is not there yet."""
    from routeyard.flows.build import run_build

    return Path(run_build("agent_demo", str(out / "yard"))["release"]["path"])
