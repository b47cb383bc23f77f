"""RouteLLM: `mmlu_<subject>.csv` and `gsm8k_responses.csv`, a strong and a weak model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import reading, spec


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Every column besides `prompt` and `<model>_response` is a model."""
    for path in paths:
        task = path.stem.removeprefix("mmlu_").removesuffix("_responses")
        models: list[str] = []
        for number, row in enumerate(reading.csv_rows(path, ("prompt",))):
            where = f"{path.name}, row {number + 1}"
            models = models or _models(row, where)
            query = f"{task}-{number}"
            prompt = row["prompt"]
            result.ask(
                spec.ImportedQuestion(id=query, question=prompt, prompt=prompt, task=task), where
            )
            for model in models:
                graded = reading.score(row[model], f"{where}, {model}")
                if graded is None:
                    result.left_out["pairs without label"] += 1
                    continue
                yield spec.ImportedAnswer(
                    query=query, model=model, text=row.get(f"{model}_response"), score=graded
                )


def _models(row: dict[str, str], where: str) -> list[str]:
    names = [n for n in row if n not in ("prompt", "", "Unnamed: 0")]
    models = [n for n in names if not n.endswith("_response")]
    wrong = [n for n in models if row[n].strip().lower() not in ("true", "false", "", "0", "1")]
    if wrong or len(models) < 2:
        raise SourceError(
            f"column {wrong[0]!r} is no model's True/False" if wrong else "two models are expected",
            where=where,
            next_step=f"expected: {IMPORTER.layout}",
        )
    return models


IMPORTER = spec.importer("routellm", read)
