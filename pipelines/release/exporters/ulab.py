"""ulab LLMRouter's folder: routed answers, queries, embeddings, models and a configuration.

Layout checked against its package `llmrouter-lib` 0.4.0 (`llmrouter/data/data_loader.py`,
`llmrouter/models/knnrouter`), whose trainer runs on the folder as it is written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from routeyard.pipelines.release.exporters.bundle import (
    TARGET,
    Exported,
    Exporter,
    numbers,
    pairs,
    write_jsonl,
)
from routeyard.pipelines.release.reader import OpenRelease
from routeyard.schemas.recipe import ENCODER

_SPLITS = ("train", "validation", "test")


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """One line per labelled pair; tokens, costs and times that are not known are null.

    Row `embedding_id` of `query_embeddings.pt` belongs to a query. `router.yaml` names the files by
    the absolute path of the bundle, as the peer's loader needs.
    """
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    files = []
    for split in _SPLITS:
        mine = [row for row in rows if row["split"] == split]
        routed, asked = f"default_routing_{split}_data.jsonl", f"default_query_{split}.jsonl"
        write_jsonl(folder / routed, (_line(row, index[row["query_id"]]) for row in mine))
        first = {row["query_id"]: row for row in mine}
        write_jsonl(folder / asked, (_query(row) for row in first.values()))
        files += [routed, asked]
    models = release.arrow("models").to_pylist()
    dropped = _dropped(release, rows, len(models))
    vectors = _vectors(release)
    if vectors is None:
        dropped["query embeddings: the release has no texts"] = len(index)
    else:
        import torch

        torch.save(torch.from_numpy(vectors[0]), folder / "query_embeddings.pt")
        _write_json(folder / "default_llm_embeddings.json", _described(models, vectors[1]))
        files += ["query_embeddings.pt", "default_llm_embeddings.json"]
    _write_json(folder / "default_llm.json", {row["model_id"]: _model(row) for row in models})
    text = yaml.safe_dump(_configuration(Path(options[TARGET])), sort_keys=False)
    (folder / "router.yaml").write_text(text, encoding="utf-8")
    return Exported((*files, "default_llm.json", "router.yaml"), len(rows), dropped)


def _line(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    used = (row["prompt_tokens"], row["completion_tokens"])
    return {
        **_query(row),
        "model_name": row["model_id"],
        "response": row["text"],
        "token_num": None if None in used else sum(used),
        "input_tokens": row["prompt_tokens"],
        "output_tokens": row["completion_tokens"],
        "response_time": row["latency_s"],
        "performance": row["score"],
        "cost": row["cost_usd"],
        "embedding_id": number,
    }


def _query(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "task_name": row["task"],
        "query": row["prompt"],
        "ground_truth": row["references"][0] if row["references"] else None,
        "metric": row["scorer"],
        "choices": json.dumps(row["choices"], ensure_ascii=False),
        "task_id": row["query_id"],
    }


def _dropped(
    release: OpenRelease, rows: Sequence[Mapping[str, Any]], models: int
) -> dict[str, int]:
    """What the peer reads otherwise than it is: absent pairs, and queries of one text."""
    asked = {row["query_id"]: row["prompt"] for row in rows}
    missing = len(asked) * models - len(rows)
    texts = Counter(asked.values())
    same = sum(count for count in texts.values() if count > 1)
    said = {
        "pairs without a label (its graph router takes them for 0)": missing,
        "queries of one text, which it takes for one": same,
    }
    return {what: n for what, n in said.items() if n}


def _vectors(release: OpenRelease) -> tuple[np.ndarray, Any] | None:
    """Embeddings of the queries in the release's order, and their encoder; None without texts."""
    from routeyard.pipelines.common import encoders

    queries = release.arrow("queries")
    prompts = queries.column("prompt").to_pylist()
    if any(prompt is None for prompt in prompts):
        return None
    encode = encoders.load(ENCODER, batch_size=8)
    if "embeddings" in release.tables:
        table = release.arrow("embeddings")
        known = dict(zip(table.column("query_id").to_pylist(),
                         table.column("vector").to_pylist(), strict=True))  # fmt: skip
        ids = queries.column("query_id").to_pylist()
        if all(one in known for one in ids):
            return np.array([known[one] for one in ids], np.float32), encode
    return np.asarray(encode(prompts)[0], np.float32), encode


def _described(models: Sequence[Mapping[str, Any]], encode: Any) -> dict[str, Any]:
    """Model → its entry with the embedding of its description."""
    vectors = encode([_feature(row) for row in models])[0]
    return {
        row["model_id"]: {**_model(row), "embedding": [float(x) for x in vector]}
        for row, vector in zip(models, vectors, strict=True)
    }


def _feature(row: Mapping[str, Any]) -> str:
    """A model in words: what the release says of it."""
    known = [
        f"model {row['model_id']}",
        f"family {row['family']}" if row.get("family") else "",
        f"{row['params_b']:g} billion parameters" if row.get("params_b") else "",
        f"{row['price_in']:g} USD per million input tokens" if row.get("price_in") else "",
        f"{row['price_out']:g} USD per million output tokens" if row.get("price_out") else "",
    ]
    return ", ".join(one for one in known if one)


def _model(row: Mapping[str, Any]) -> dict[str, Any]:
    size = row.get("params_b")
    return {
        "size": f"{size:g}B" if size else None,
        "feature": _feature(row),
        "input_price": row.get("price_in"),
        "output_price": row.get("price_out"),
        "model": row["model_id"],
        "service": row.get("provider"),
    }


def _configuration(target: Path) -> dict[str, Any]:
    """The peer's configuration of its nearest-neighbour router on these files."""
    files = {
        "query_data_train": "default_query_train.jsonl",
        "query_data_test": "default_query_test.jsonl",
        "query_embedding_data": "query_embeddings.pt",
        "routing_data_train": "default_routing_train_data.jsonl",
        "routing_data_test": "default_routing_test_data.jsonl",
        "llm_data": "default_llm.json",
        "llm_embedding_data": "default_llm_embeddings.json",
    }
    model = str(target / "knn_model.pkl")
    return {
        "data_path": {key: str(target / name) for key, name in files.items()},
        "model_path": dict.fromkeys(
            ("ini_model_path", "save_model_path", "load_model_path"), model
        ),
        "hparam": {"n_neighbors": 5, "metric": "cosine"},
        "metric": {"weights": {"performance": 1}},
    }


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


EXPORTER = Exporter("ulab", "ulab LLMRouter", (), write)
