"""AlpacaEval: `<model>/<annotator>/annotations.json`, preferences of a judge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from routeyard.pipelines.ingest.importers import reading, spec

_COLUMNS = ("instruction", "output_1", "generator_1", "output_2", "generator_2", "preference")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Score = preference - 1: 0 when the reference is preferred, 1 when the model is."""
    for path in paths:
        rows = reading.objects(reading.load_json(path), str(path))
        name = f"{path.parent.parent.name}/{path.parent.name}"
        for where, row in reading.records(rows, _COLUMNS, name):
            instruction = reading.text(row["instruction"])
            query = hashlib.sha256(instruction.encode()).hexdigest()[:12]
            question = spec.ImportedQuestion(
                id=query,
                question=instruction,
                prompt=instruction,
                task=reading.text(row.get("dataset")) or "alpaca_eval",
                references=(reading.text(row["output_1"]),),
                domain="instructions",
            )
            result.ask(question, where)
            preferred = row["preference"]
            if reading.number(preferred, where) is None:
                result.left_out["annotations without a preference"] += 1
                continue
            yield spec.ImportedAnswer(
                query=query,
                model=str(row["generator_2"]),
                text=reading.output_text(row["output_2"]),
                score=reading.score(preferred, where, low=1.0, high=2.0),
            )


IMPORTER = spec.importer("alpaca_eval", read)
