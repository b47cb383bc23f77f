"""LLMRouterBench: a tree `results/bench/<dataset>/<split>/<model>/…json`.

Layout checked against what ynulihao/LLMRouterBench writes (`data_collector/storage.py`,
`runner.py`, `generators/generator.py`) and reads (`baselines/data_loader.py`); the
published archive has one level less (`bench-release/<dataset>/<model>/…json`). As
there, the newest run by the time in the file's name counts. Its reader takes a null
score as 0; here such an answer has no score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.ingest.importers import reading, spec

_HEADER = ("model_name", "dataset_name", "split", "records")
_RECORD = ("index", "origin_query", "prompt", "score", "ground_truth")
#: How the three places that catch an error write it in place of the output.
_FAILED = ("Generation failed: ", "Processing failed: ", "Unexpected error: ")
_STAMP = re.compile(r"\d{8}_\d{6}(?=\.json$)")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Identity comes from the header, not from the path; failed calls are missing answers."""
    seen: set[tuple[str, ...]] = set()
    for path in paths:
        content = reading.load_json(path)
        if reading.stray(result, content, (*_HEADER, "records"), path.name):
            continue
        run = reading.obj(content, str(path))
        reading.need(run, _HEADER, str(path))
        identity = tuple(str(run[key]) for key in _HEADER[:3])
        if run.get("demo"):
            result.left_out["demonstration runs"] += 1
            continue
        if identity in seen:
            result.skip("older runs of the same model and dataset", path.name)
            continue
        seen.add(identity)
        yield from _run(result, identity, reading.objects(run["records"], str(path)), path.name)


def _run(
    result: spec.ImportResult, identity: tuple[str, ...], rows: list[dict[str, Any]], name: str
) -> Iterator[spec.ImportedAnswer]:
    model, dataset, split = identity
    for where, record in reading.records(rows, _RECORD, name):
        output = reading.output_text(record.get("raw_output"))
        # A failed record may have lost its question too: it is looked at first.
        if output is not None and output.startswith(_FAILED):
            result.left_out["failed calls"] += 1
            continue
        graded = reading.score(record["score"], where)
        if graded is None and not output:
            result.left_out["records without output and score"] += 1
            continue
        query = f"{dataset}/{split}/{record['index']}"
        question = spec.ImportedQuestion(
            id=query,
            question=reading.text(record["origin_query"]) or reading.text(record["prompt"]),
            prompt=reading.text(record["prompt"]),
            task=dataset,
            references=reading.texts(record["ground_truth"]),
            split=split,
        )
        result.ask(question, where)
        tokens = reading.count(record.get("completion_tokens"), where)
        yield spec.ImportedAnswer(
            query=query,
            model=model,
            text=output,
            score=graded,
            prompt_tokens=reading.count(record.get("prompt_tokens"), where),
            completion_tokens=tokens,
            cost_usd=reading.spent(record.get("cost"), tokens, where),
        )


IMPORTER = spec.importer("llmrouterbench", read, newest_first=_STAMP)
