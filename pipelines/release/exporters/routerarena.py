"""RouterArena's cached results: JSON lines per model, prices, and each model as a fixed router.

Layout checked against `cached_results/`, `model_cost/cost.json` and `router_inference/predictions/`
of RouteWorks/RouterArena.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.release.exporters.bundle import (
    Exported,
    Exporter,
    numbers,
    pairs,
    write_jsonl,
)
from routeyard.pipelines.release.reader import OpenRelease


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """One line per labelled pair; a cost that is not known is null.

    The benchmark's name is the start of an index (`TASK_7`), as it is there.
    """
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    by_model: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_model.setdefault(row["model_id"], []).append(row)
    files: list[str] = []
    for name in ("cached_results", "router_inference/predictions", "model_cost"):
        (folder / name).mkdir(parents=True)
    for model, mine in sorted(by_model.items()):
        safe = _file_name(model, files)
        cached = f"cached_results/{safe}.jsonl"
        predicted = f"router_inference/predictions/{safe}.json"
        lines = [_line(row, index[row["query_id"]]) for row in mine]
        write_jsonl(folder / cached, lines)
        _write_json(folder / predicted, [_prediction(line) for line in lines])
        files += [cached, predicted]
    prices = {row["model_id"]: _price(row) for row in release.arrow("models").to_pylist()}
    priced = {model: price for model, price in prices.items() if price is not None}
    _write_json(folder / "model_cost/cost.json", priced)
    dropped = {
        "answers without a cost (inference_cost is null)": sum(r["cost_usd"] is None for r in rows),
        "models without prices (not in cost.json)": len(prices) - len(priced),
    }
    kept = {what: n for what, n in dropped.items() if n}
    return Exported((*files, "model_cost/cost.json"), len(rows), kept)


def _line(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    used = (row["prompt_tokens"], row["completion_tokens"])
    task = re.sub(r"\s+", "-", row["task"])
    return {
        "global_index": f"{task}_{number}",
        "question": row["prompt"],
        "llm_selected": row["model_id"],
        "generated_answer": row["text"],
        "token_usage": {
            "input_tokens": used[0],
            "output_tokens": used[1],
            "total_tokens": None if None in used else sum(used),
        },
        "success": True,
        "provider": None,
        "error": None,
        "evaluation_result": {
            "extracted_answer": None,
            "ground_truth": row["references"][0] if row["references"] else None,
            "score": row["score"],
            "metric": row["scorer"],
            "inference_cost": row["cost_usd"],
        },
    }


def _prediction(line: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as the choice of a router that always takes its model."""
    kept = ("generated_answer", "success", "token_usage", "provider", "error")
    return {
        "global index": line["global_index"],
        "prompt": line["question"],
        "prediction": line["llm_selected"],
        "generated_result": {name: line[name] for name in kept},
        "accuracy": line["evaluation_result"]["score"],
        "cost": line["evaluation_result"]["inference_cost"],
    }


def _price(row: Mapping[str, Any]) -> dict[str, float] | None:
    if row["price_in"] is None or row["price_out"] is None:
        return None
    return {
        "input_token_price_per_million": row["price_in"],
        "output_token_price_per_million": row["price_out"],
    }


def _file_name(model: str, taken: Sequence[str]) -> str:
    """A model's name as a file's: nothing of it can leave the folder."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", model).lstrip(".")[:100] or "model"
    number, unique = 1, name
    while f"cached_results/{unique}.jsonl" in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


EXPORTER = Exporter("routerarena", "RouterArena", (), write)
