"""AlpacaEval: `<model>/<annotator>/annotations.json`, preferences of a judge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pipelines.ingest.importers.importer import (
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
)
from pipelines.ingest.importers.reading import (
    found_files,
    load_json,
    need,
    number,
    objects,
    output_text,
    score,
    text,
)

_COLUMNS = ("instruction", "output_1", "generator_1", "output_2", "generator_2", "preference")
_LAYOUT = "results/<model>/<annotator>/annotations.json"


def read(path: Path) -> ImportResult:
    """Score = preference - 1: 0 when the reference is preferred, 1 when the model is."""
    found = ImportResult()
    found.answers = _answers(found, found_files(path, ["**/annotations.json"], _LAYOUT))
    return found


def _answers(found: ImportResult, paths: list[Path]) -> Iterator[ImportedAnswer]:
    for path in paths:
        for position, row in enumerate(objects(load_json(path), str(path))):
            where = f"{path.parent.parent.name}/{path.parent.name}, record {position}"
            need(row, _COLUMNS, where)
            instruction = text(row["instruction"])
            query = hashlib.sha256(instruction.encode()).hexdigest()[:12]
            found.ask(
                ImportedQuestion(
                    id=query,
                    question=instruction,
                    prompt=instruction,
                    task=text(row.get("dataset")) or "alpaca_eval",
                    references=(text(row["output_1"]),),
                    domain="instructions",
                ),
                where,
            )
            preferred = row["preference"]
            if number(preferred, where) is None:
                found.left_out["annotations without a preference"] += 1
                continue
            yield ImportedAnswer(
                query=query,
                model=str(row["generator_2"]),
                text=output_text(row["output_2"]),
                score=score(preferred, where, low=1.0, high=2.0),
            )


IMPORTER = Importer(
    name="alpaca_eval",
    title="AlpacaEval annotations",
    url="https://github.com/tatsu-lab/alpaca_eval",
    license="CC-BY-NC-4.0",
    layout=_LAYOUT,
    lacks=("token usage", "cost", "latency"),
    read=read,
)
