"""SPROUT (CARROT): Parquet with one struct of tokens and score per model.

Layout checked against what reads the dataset, not against a file: somerstep/CARROT
(`carrot/gen_sprout.py`, `LLMJudge.ipynb`: six columns, then the models) and two public
loaders with its files (`data/{train,validation,test}-0000k-of-0000n.parquet`) and its
fields (`judge_response`, `num_input_tokens`, `num_output_tokens`, `response`, `score`).
SPROUT-o3mini has the same columns and one more model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.untrusted import bounded
from routeyard.pipelines.ingest.importers import reading, spec

_COLUMNS = ("key", "dataset", "prompt", "golden_answer")
_STRUCT = ("num_input_tokens", "num_output_tokens", "score")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Tokens are given, dollars are not: costs stay unknown."""
    for path in paths:
        models = _models(path)
        split = reading.split_of(path)
        rows = files.rows(path, "parquet")
        for where, row in reading.records(rows, _COLUMNS, path.name, result):
            query = f"{row['dataset']}/{row['key']}"
            question = spec.ImportedQuestion(
                id=query,
                question=reading.text(row["prompt"]),
                prompt=reading.text(row["prompt"]),
                task=reading.text(row["dataset"]),
                references=reading.texts(row["golden_answer"]),
                split=split,
            )
            result.ask(question, where)
            for model in models:
                cell = row.get(model)
                if not isinstance(cell, dict):
                    result.left_out["pairs without answer"] += 1
                    continue
                reading.need(cell, _STRUCT, f"{where}, {model}")
                graded = reading.score(cell["score"], f"{where}, {model}")
                output = cell.get("response")
                if graded is None and output is None:
                    result.left_out["pairs without score"] += 1
                    continue
                yield spec.ImportedAnswer(
                    query=query,
                    model=model,
                    text=reading.output_text(output),
                    score=graded,
                    prompt_tokens=reading.count(cell["num_input_tokens"], where),
                    completion_tokens=reading.count(cell["num_output_tokens"], where),
                )


def _models(path: Path) -> list[str]:
    """Columns that hold a struct with a score: the schema knows, a single row may lack some."""
    schema = pq.read_schema(bounded(path))
    reading.need(dict.fromkeys(schema.names), _COLUMNS, str(path))
    structs = [field for field in schema if pa.types.is_struct(field.type)]
    models = [field.name for field in structs if field.type.get_field_index("score") >= 0]
    if not models:
        raise SourceError(
            "no column is a model's struct",
            where=str(path),
            next_step=f"expected: {IMPORTER.layout}",
        )
    return models


IMPORTER = spec.importer("sprout", read)
