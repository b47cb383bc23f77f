"""RouterArena: a router's predictions, one model's answer per query.

Layout checked against files of RouteWorks/RouterArena (`router_inference/predictions/`:
`vllm-sr.json`, `sqwish-router.json`, `your-router-robustness.json`) and against the
scripts that write and check them (`llm_inference/run.py`, `llm_evaluation/run.py`,
`router_inference/check_config_prediction_files.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.ingest.importers import reading, spec

_COLUMNS = ("global index", "prompt", "prediction", "generated_result")


#: The same queries in other words; upstream measures with them whether a router's choice holds.
_REWORDED = "-robustness"


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Robustness files, placeholders and failed calls are counted, not imported."""
    if result.source.is_dir():
        reworded = {path for path in paths if path.stem.endswith(_REWORDED)}
        result.left_out["robustness files, which reword the queries"] += len(reworded)
        paths = [path for path in paths if path not in reworded]
    seen: dict[tuple[str, str], str | None] = {}
    for path in paths:
        for where, row in reading.records(reading.json_rows(path), _COLUMNS, path.name, result):
            index, model = str(row["global index"]), str(row["prediction"])
            question = spec.ImportedQuestion(
                id=index,
                question=reading.text(row["prompt"]),
                prompt=reading.text(row["prompt"]),
                task=index.rsplit("_", 1)[0],
            )
            result.ask(question, where)
            call = _call(row["generated_result"], where, graded=row.get("accuracy") is not None)
            if call is None:
                result.left_out["failed or absent calls"] += 1
                continue
            output = reading.output_text(call["generated_answer"])
            if (index, model) in seen:
                # Several routers that chose the same model share one cached answer.
                same = "same answer" if seen[index, model] == output else "other answer"
                result.left_out[f"repeats by another router, {same}"] += 1
                continue
            seen[index, model] = output
            usage = reading.obj(call.get("token_usage") or {}, where)
            asked, answered = (
                reading.count(usage.get(f"{new}_tokens", usage.get(f"{old}_tokens")), where)
                for new, old in (("input", "prompt"), ("output", "completion"))
            )
            yield spec.ImportedAnswer(
                query=index,
                model=model,
                text=output,
                score=reading.score(row.get("accuracy"), where),
                prompt_tokens=asked,
                completion_tokens=answered,
                cost_usd=reading.spent(row.get("cost"), answered, where),
            )


def _call(value: Any, where: str, *, graded: bool) -> dict[str, Any] | None:
    """What was generated; None for a call that failed, was not made or is an example's."""
    call = {} if value is None else reading.obj(value, where)
    absent = not call.get("success") or (call.get("generated_answer") is None and not graded)
    return None if absent or call.get("provider") == "placeholder" else call


IMPORTER = spec.importer("routerarena", read)
