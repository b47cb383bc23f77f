"""Mean-pooled hidden states of every layer, written shard by shard."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.staging import write_parquet, write_text
from routeyard.pipelines.signals.local_model import LocalModel
from routeyard.schemas import HIDDEN_STATES

ABOUT = "hidden_states.json"


@dataclass(frozen=True, slots=True)
class Written:
    """What a run did: shards written now, shards found, queries cut at the model's length.

    `form`: `chat` where prompts were read in the model's chat form, else `plain`.
    """

    written: int
    reused: int
    layers: int
    width: int
    truncated: int
    form: str


def pooled(
    local: LocalModel, prompts: list[str], *, batch_size: int = 8
) -> npt.NDArray[np.float32]:
    """Mean over each prompt's tokens of the hidden state after every layer.

    A prompt is read as the model is served it: in its chat form, where it has one.

    Returns:
        float32 of shape (prompts, layers + 1, width); layer 0 is the embedding layer.
    """
    import torch

    result: npt.NDArray[np.float32] | None = None
    for indices in local.batches(prompts, batch_size):
        asked = [local.prompt(prompts[i]) for i in indices]
        encoded = local.encode(asked, side="right", prompted=True)
        with torch.inference_mode():
            # Without its head: logits over a vocabulary would be most of the memory, for nothing.
            states = local.model.base_model(
                **encoded, output_hidden_states=True, use_cache=False
            ).hidden_states
            mask = encoded["attention_mask"].unsqueeze(-1).float()
            # Padding must not enter the mean, nor its length depend on the neighbours.
            means = [(s.float() * mask).sum(1) / mask.sum(1).clamp(min=1) for s in states]
        block = torch.stack(means, dim=1).cpu().numpy()
        if result is None:
            result = np.empty((len(prompts), *block.shape[1:]), dtype=np.float32)
        result[indices] = block
    return np.empty((0, 0, 0), dtype=np.float32) if result is None else result


def write_hidden_states(
    queries: pa.Table,
    local: LocalModel,
    folder: Path,
    *,
    identity: Mapping[str, Any],
    model_id: str | None = None,
    shard_size: int = 256,
    batch_size: int = 8,
    on_shard: Callable[[int, int], None] | None = None,
) -> Written:
    """Write `hidden_states` of all queries as `part-*.parquet`; finished shards are kept.

    A shard is written beside its place and renamed, so one that is there is
    whole: a run that was stopped goes on with the next shard.

    Args:
        queries: Needs `query_id` and `prompt`.
        identity: What else the result depends on (model fingerprint, dtype);
            kept in `hidden_states.json` and compared on resuming.
        on_shard: Called with (finished, all) after each shard.

    Raises:
        BadInput: the folder holds the states of another model or other queries.
    """
    rows = queries.select(["query_id", "prompt"]).sort_by("query_id").to_pylist()
    folder.mkdir(parents=True, exist_ok=True)
    name = model_id or local.name
    asked = hashlib.sha256(json.dumps([[r["query_id"], r["prompt"]] for r in rows]).encode())
    about = {
        **identity,
        "model_id": name,
        "queries": len(rows),
        "queries_sha256": asked.hexdigest(),
        "shard_size": shard_size,
        "max_length": local.max_length,
        "form": form_of(local),
        **({"system": local.system} if local.system else {}),
    }
    _same_run(folder, about)
    shards = [rows[i : i + shard_size] for i in range(0, len(rows), shard_size)]
    written = reused = truncated = 0
    for number, shard in enumerate(shards):
        path = folder / f"part-{number:05d}.parquet"
        prompts = [row["prompt"] for row in shard]
        served = [local.prompt(prompt) for prompt in prompts]
        truncated += sum(length > local.max_length for length in local.lengths(served))
        if path.exists():
            reused += 1
        else:
            states = pooled(local, prompts, batch_size=batch_size)
            _write(shard, states, name, path)
            written += 1
        if on_shard is not None:
            on_shard(number + 1, len(shards))
    config = local.model.config.get_text_config()
    return Written(
        written, reused, int(config.num_hidden_layers), int(config.hidden_size), truncated,
        form_of(local),
    )  # fmt: skip


def form_of(local: LocalModel) -> str:
    """`chat` where prompts are read in the model's chat form, else `plain`."""
    return "chat" if getattr(local.tokenizer, "chat_template", None) else "plain"


def _write(
    shard: list[dict[str, Any]], states: npt.NDArray[np.float32], model: str, path: Path
) -> None:
    n, layers, width = states.shape
    ids = pa.array([row["query_id"] for row in shard for _ in range(layers)], pa.string())
    vectors = pa.ListArray.from_arrays(
        np.arange(0, n * layers * width + 1, width, dtype=np.int32), states.reshape(-1)
    )
    table = pa.table(
        {
            "query_id": ids,
            "model_id": pa.array([model] * len(ids), pa.string()),
            "layer": pa.array(np.tile(np.arange(layers, dtype=np.int32), n)),
            "vector": vectors,
        }
    )
    write_parquet(path, HIDDEN_STATES.check(table, where=path.name))


def _same_run(folder: Path, about: Mapping[str, Any]) -> None:
    path = folder / ABOUT
    text = json.dumps(about, indent=2, sort_keys=True) + "\n"
    if not path.exists():
        if any(folder.glob("part-*.parquet")):
            raise BadInput(
                f"the folder holds shards but no {ABOUT}",
                where=str(folder),
                next_step="choose an empty folder with --out",
            )
        write_text(path, text)
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        before = {}
    before = before if isinstance(before, dict) else {}
    differing = sorted(key for key in {*about, *before} if before.get(key) != about.get(key))
    if differing:
        key = differing[0]
        raise BadInput(
            f"the folder holds hidden states of another run: {key} was {before.get(key)!r}, "
            f"now {about.get(key)!r}",
            where=str(path),
            next_step="choose another folder with --out, or delete this one",
        )
