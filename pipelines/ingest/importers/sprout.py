"""SPROUT (CARROT): Parquet with one struct of tokens and score per model.

Column and field names checked against readers of the dataset: somerstep/CARROT
(`carrot/gen_sprout.py`, `carrot/data_utils.py`) and two public loaders, one of which lists
the files (`data/{train,validation,test}-0000k-of-0000n.parquet`) and says that the
structs hold response texts too; their field names were not seen. Not checked against a
file. The variant with one more model (SPROUT-o3mini) has the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines import files
from pipelines.errors import SourceError
from pipelines.ingest.importers.found import Answer, Found, Importer, Question
from pipelines.ingest.importers.reading import count, found_files, need, score, text, texts

_COLUMNS = ("key", "dataset", "prompt", "golden_answer")
_LAYOUT = "Parquet files with key, dataset, prompt, golden_answer and one struct per model"
_STRUCT = ("num_input_tokens", "num_output_tokens", "score")


def read(path: Path) -> Found:
    """Tokens are given, dollars are not: costs stay unknown."""
    found = Found()
    found.answers = _answers(found, found_files(path, ["**/*.parquet"], _LAYOUT))
    return found


def _answers(found: Found, paths: list[Path]) -> Iterator[Answer]:
    for path in paths:
        models: list[str] = []
        split = next((s for s in ("train", "validation", "test") if path.name.startswith(s)), None)
        for number, row in enumerate(files.rows(path, "parquet")):
            where = f"{path.name}, row {number}"
            need(row, _COLUMNS, where)
            if not models:
                models = [
                    name
                    for name, value in row.items()
                    if isinstance(value, dict) and "score" in value
                ]
                if not models:
                    raise SourceError("no column is a model's struct", where=where)
            query = f"{row['dataset']}/{row['key']}"
            found.ask(
                Question(
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
                yield Answer(
                    query=query,
                    model=model,
                    text=None if output is None else str(output),
                    score=graded,
                    prompt_tokens=count(said["num_input_tokens"], where),
                    completion_tokens=count(said["num_output_tokens"], where),
                )


IMPORTER = Importer(
    name="sprout",
    title="SPROUT (CARROT)",
    url="https://huggingface.co/datasets/CARROT-LLM-Routing/SPROUT",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("cost in USD", "latency"),
    read=read,
)
