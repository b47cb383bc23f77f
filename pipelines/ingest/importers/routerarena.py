"""RouterArena: a router's predictions, one model's answer per query.

Layout checked against files of RouteWorks/RouterArena (`router_inference/predictions/`:
`vllm-sr.json`, `sqwish-router.json`, `your-router-robustness.json`) and against the
scripts that write and check them (`llm_inference/run.py`, `llm_evaluation/run.py`,
`router_inference/check_config_prediction_files.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.ingest.importers.importer import (
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
)
from pipelines.ingest.importers.reading import (
    count,
    found_files,
    json_rows,
    obj,
    records,
    score,
    spent,
    text,
)

_COLUMNS = ("global index", "prompt", "prediction", "generated_result")
_LAYOUT = "router prediction files (*.json): a list of global index, prompt, prediction, …"


#: The same queries in other words; upstream measures with them whether a router's choice holds.
_REWORDED = "-robustness"


def read(path: Path) -> ImportResult:
    """Robustness files, placeholders and failed calls are counted, not imported."""
    found = ImportResult()
    paths = found_files(path, ["**/*.json", "**/*.jsonl"], _LAYOUT)
    if path.is_dir():
        reworded = {p for p in paths if p.stem.endswith(_REWORDED)}
        if reworded:
            found.left_out["robustness files, which reword the queries"] = len(reworded)
        paths = [p for p in paths if p not in reworded]
    found.answers = _answers(found, paths)
    return found


def _answers(found: ImportResult, paths: list[Path]) -> Iterator[ImportedAnswer]:
    seen: dict[tuple[str, str], str] = {}
    for path in paths:
        for where, row in records(json_rows(path), _COLUMNS, path.name, found):
            index, model = str(row["global index"]), str(row["prediction"])
            found.ask(
                ImportedQuestion(
                    id=index,
                    question=text(row["prompt"]),
                    prompt=text(row["prompt"]),
                    task=index.rsplit("_", 1)[0],
                ),
                where,
            )
            result = _result(row["generated_result"], where)
            if result is None:
                found.left_out["failed or absent calls"] += 1
                continue
            output = text(result["generated_answer"])
            if (index, model) in seen:
                # Several routers that chose the same model share one cached answer.
                same = "same answer" if seen[index, model] == output else "other answer"
                found.left_out[f"repeats by another router, {same}"] += 1
                continue
            seen[index, model] = output
            usage = obj(result.get("token_usage") or {}, where)
            tokens = count(usage.get("output_tokens", usage.get("completion_tokens")), where)
            yield ImportedAnswer(
                query=index,
                model=model,
                text=output,
                score=score(row.get("accuracy"), where),
                prompt_tokens=count(usage.get("input_tokens", usage.get("prompt_tokens")), where),
                completion_tokens=tokens,
                cost_usd=spent(row.get("cost"), tokens, where),
            )


def _result(said: Any, where: str) -> dict[str, Any] | None:
    """What was generated; None for a call that failed, was not made or stands for an example."""
    result = {} if said is None else obj(said, where)
    absent = not result.get("success") or result.get("generated_answer") is None
    return None if absent or result.get("provider") == "placeholder" else result


IMPORTER = Importer(
    name="routerarena",
    title="RouterArena predictions",
    url="https://github.com/RouteWorks/RouterArena",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("answers of models that no router chose", "gold answers", "latency"),
    read=read,
)
