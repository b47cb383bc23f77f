"""ZeroEval: `result_dirs/<task>/<model>.json`, raw outputs of one model per file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.ingest.importers import reading, spec

_COLUMNS = ("id", "output")
#: task of the path → rule scorer that reads its answers.
_SCORERS = {"gsm": "numeric", "math": "math", "mmlu": "mcq", "crux": "literal", "zebra": "given"}
#: Of other tasks the shape of each reference says how its answers are read.
_BY_SHAPE = "auto"


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Outputs are labelled here, by a rule scorer, not as upstream labelled them."""
    for path in paths:
        if path.name.endswith(".summary.json"):
            continue
        task, model = path.parent.name, path.stem
        scorer = next((s for start, s in _SCORERS.items() if task.startswith(start)), _BY_SHAPE)
        content = reading.load_json(path)
        if reading.stray(result, content, _COLUMNS, f"{task}/{path.name}"):
            continue
        rows = reading.objects(content, str(path))
        for where, row in reading.records(rows, _COLUMNS, f"{task}/{path.name}"):
            history = row.get("chat_history")
            prompt = reading.text(history[0]) if isinstance(history, list) and history else None
            asked = reading.text(row.get("question")) or prompt or ""
            query = f"{task}/{row['id']}"
            question = spec.ImportedQuestion(
                id=query,
                question=asked,
                prompt=prompt,
                task=task,
                references=_references(row, scorer),
                choices=reading.options(row.get("choices")),
                scorer=scorer,
            )
            result.ask(question, where)
            outputs = row["output"]
            outputs = outputs if isinstance(outputs, list) else [outputs]
            for sample, output in enumerate(outputs):
                if output is None:
                    result.left_out["absent outputs"] += 1
                    continue
                generator = row.get("generator")
                yield spec.ImportedAnswer(
                    query=query,
                    model=model,
                    sample=sample,
                    text=reading.output_text(output),
                    served_model=None if generator is None else str(generator),
                )


def _references(row: dict[str, Any], scorer: str) -> tuple[str, ...]:
    answer = row.get("answer", row.get("correct_answer"))
    if scorer == "numeric" and isinstance(answer, str):
        return (answer.rsplit("####", 1)[-1].lstrip("# ").strip(),)
    choices = reading.options(row.get("choices"))
    if scorer == "mcq" and isinstance(answer, str) and answer in choices:
        return (chr(ord("A") + choices.index(answer)),)
    return reading.texts(answer)


IMPORTER = spec.importer("zeroeval", read)
