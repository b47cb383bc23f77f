"""RouterArena: a router's predictions, one model's answer per query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines import files
from pipelines.ingest.importers.found import Answer, Found, Importer, Question
from pipelines.ingest.importers.reading import (
    count,
    found_files,
    load_json,
    need,
    obj,
    objects,
    score,
    spent,
    text,
)

_COLUMNS = ("global index", "prompt", "prediction", "generated_result")
_LAYOUT = "router prediction files (*.json): a list of global index, prompt, prediction, …"


def read(path: Path) -> Found:
    """Robustness repeats and failed calls are counted, not imported."""
    found = Found()
    paths = found_files(path, ["**/*.json", "**/*.jsonl"], _LAYOUT)
    found.answers = _answers(found, paths)
    return found


def _answers(found: Found, paths: list[Path]) -> Iterator[Answer]:
    seen: dict[tuple[str, str], str | None] = {}
    for path in paths:
        lines = path.suffix == ".jsonl"
        rows = list(files.rows(path, "jsonl")) if lines else objects(load_json(path), str(path))
        for number, row in enumerate(rows):
            where = f"{path.name}, record {number}"
            need(row, _COLUMNS, where)
            index, model = str(row["global index"]), str(row["prediction"])
            found.ask(
                Question(
                    id=index,
                    question=text(row["prompt"]),
                    prompt=text(row["prompt"]),
                    task=index.rsplit("_", 1)[0],
                ),
                where,
            )
            said = row["generated_result"]
            result = obj(said, where) if said is not None else {}
            output = result.get("generated_answer")
            if not result.get("success") or output is None:
                found.left_out["failed or absent calls"] += 1
                continue
            if (index, model) in seen:
                # Several routers that chose the same model share one cached answer.
                same = "same answer" if seen[index, model] == output else "other answer"
                found.left_out[f"repeats by another router, {same}"] += 1
                continue
            seen[index, model] = output
            usage = obj(result.get("token_usage") or {}, where)
            tokens = count(usage.get("output_tokens", usage.get("completion_tokens")), where)
            yield Answer(
                query=index,
                model=model,
                text=str(output),
                score=score(row.get("accuracy"), where),
                prompt_tokens=count(usage.get("input_tokens", usage.get("prompt_tokens")), where),
                completion_tokens=tokens,
                cost_usd=spent(row.get("cost"), tokens, where),
            )


IMPORTER = Importer(
    name="routerarena",
    title="RouterArena predictions",
    url="https://github.com/RouteWorks/RouterArena",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("answers of models that no router chose", "gold answers", "latency"),
    read=read,
)
