"""SPROUT (CARROT): Parquet with one struct of tokens and score per model.

Layout checked against what reads the dataset, not against a file: somerstep/CARROT
(`carrot/gen_sprout.py`, `LLMJudge.ipynb`: six columns, then the models) and two public
loaders with its files (`data/{train,validation,test}-0000k-of-0000n.parquet`) and its
fields (`judge_response`, `num_input_tokens`, `num_output_tokens`, `response`, `score`).
SPROUT-o3mini has the same columns and one more model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import SourceError
from pipelines.ingest.importers.importer import (
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
)
from pipelines.ingest.importers.reading import (
    count,
    found_files,
    need,
    output_text,
    score,
    stray,
    text,
    texts,
)
from pipelines.io import files

_COLUMNS = ("key", "dataset", "prompt", "golden_answer")
_LAYOUT = "Parquet files with key, dataset, prompt, golden_answer and one struct per model"
_STRUCT = ("num_input_tokens", "num_output_tokens", "score")


def read(path: Path) -> ImportResult:
    """Tokens are given, dollars are not: costs stay unknown."""
    found = ImportResult()
    found.answers = _answers(found, found_files(path, ["**/*.parquet"], _LAYOUT))
    return found


def _answers(found: ImportResult, paths: list[Path]) -> Iterator[ImportedAnswer]:
    for path in paths:
        models = _models(path)
        split = next((s for s in ("train", "validation", "test") if path.name.startswith(s)), None)
        for number, row in enumerate(files.rows(path, "parquet")):
            where = f"{path.name}, row {number}"
            if number == 0 and stray(found, row, _COLUMNS, path.name):
                break
            need(row, _COLUMNS, where)
            query = f"{row['dataset']}/{row['key']}"
            found.ask(
                ImportedQuestion(
                    id=query,
                    question=text(row["prompt"]),
                    prompt=text(row["prompt"]),
                    task=text(row["dataset"]),
                    references=texts(row["golden_answer"]),
                    split=split,
                ),
                where,
            )
            for model in models:
                said = row.get(model)
                if not isinstance(said, dict):
                    found.left_out["pairs without answer"] += 1
                    continue
                need(said, _STRUCT, f"{where}, {model}")
                graded = score(said["score"], f"{where}, {model}")
                output = said.get("response")
                if graded is None and output is None:
                    found.left_out["pairs without score"] += 1
                    continue
                yield ImportedAnswer(
                    query=query,
                    model=model,
                    text=output_text(output),
                    score=graded,
                    prompt_tokens=count(said["num_input_tokens"], where),
                    completion_tokens=count(said["num_output_tokens"], where),
                )


def _models(path: Path) -> list[str]:
    """Columns that hold a struct with a score: the schema knows, a single row may lack some."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(
            f"the Parquet file cannot be read: {error}",
            where=str(path),
            next_step="fetch the file again",
        ) from error
    need(dict.fromkeys(schema.names), _COLUMNS, str(path))
    structs = [field for field in schema if pa.types.is_struct(field.type)]
    models = [field.name for field in structs if field.type.get_field_index("score") >= 0]
    if not models:
        raise SourceError(
            "no column is a model's struct", where=str(path), next_step=f"expected: {_LAYOUT}"
        )
    return models


IMPORTER = Importer(
    name="sprout",
    title="SPROUT (CARROT)",
    url="https://huggingface.co/datasets/CARROT-LLM-Routing/SPROUT",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("cost in USD", "latency"),
    read=read,
)
