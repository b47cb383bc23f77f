"""EmbedLLM: `train.csv`, `val.csv`, `test.csv` with one 0/1 label per model and prompt.

File names and licence checked against the pages of the dataset RZ412/EmbedLLM, columns
against richardzhuang0412/EmbedLLM (`data_preprocessing/download_data.py`,
`algorithm/knn.py`, `algorithm/mf.py`); not checked against a file. Its reader takes the
better of repeated labels and 0 for missing ones; here repeats are samples and what is
missing is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from routeyard.pipelines.ingest.importers import reading, spec

_COLUMNS = ("prompt_id", "model_id", "model_name", "category", "prompt", "label")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Repeats of (model, prompt), conflicting or not, are kept as samples."""
    for path in paths:
        for number, row in enumerate(reading.csv_rows(path, _COLUMNS), 1):
            where = f"{path.name}, row {number}"
            query, model = row["prompt_id"], row["model_name"]
            question = spec.ImportedQuestion(
                id=query,
                question=row["prompt"],
                prompt=row["prompt"],
                task=row["category"],
                split=reading.SPLITS.get(path.stem),
            )
            result.ask(question, where)
            label = reading.score(row["label"], where)
            if label is None:
                result.left_out["rows without a label"] += 1
                continue
            sample = result.next_sample(query, model)
            yield spec.ImportedAnswer(query=query, model=model, sample=sample, score=label)
    repeats = sum(n - 1 for n in result.samples.values())
    if repeats:
        result.left_out["nothing; repeats of a model and prompt kept as samples"] = repeats


IMPORTER = spec.importer("embedllm", read)
