"""LLMRouterBench: a tree `results/bench/<dataset>/<split>/<model>/…json`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines.ingest.importers.found import Answer, Found, Importer, Question
from pipelines.ingest.importers.reading import (
    count,
    found_files,
    load_json,
    need,
    obj,
    objects,
    score,
    spent,
    text,
    texts,
)

_HEADER = ("model_name", "dataset_name", "split", "records")
_RECORD = ("index", "origin_query", "prompt", "score", "ground_truth")
_LAYOUT = "results/bench/<dataset>/<split>/<model>/*.json with a header and records"
_FAILED = "Generation failed"


def read(path: Path) -> Found:
    """Identity comes from the header, not from the path; failed calls are missing answers."""
    found = Found()
    found.answers = _answers(found, found_files(path, ["**/*.json"], _LAYOUT))
    return found


def _answers(found: Found, paths: list[Path]) -> Iterator[Answer]:
    for path in paths:
        run = obj(load_json(path), str(path))
        need(run, _HEADER, str(path))
        model, dataset, split = (str(run[key]) for key in _HEADER[:3])
        if run.get("demo"):
            found.left_out["demonstration runs"] += 1
            continue
        for number, record in enumerate(objects(run["records"], str(path))):
            where = f"{path.name}, record {number}"
            need(record, _RECORD, where)
            query = f"{dataset}/{split}/{record['index']}"
            found.ask(
                Question(
                    id=query,
                    question=text(record["origin_query"]),
                    prompt=text(record["prompt"]),
                    task=dataset,
                    references=texts(record["ground_truth"]),
                    split=split,
                ),
                where,
            )
            output = record.get("raw_output")
            if isinstance(output, list):
                output = "\n".join(map(str, output))
            graded = score(record["score"], where)
            if output is not None and str(output).startswith(_FAILED):
                found.left_out["failed calls"] += 1
                continue
            if graded is None and not output:
                found.left_out["records without output and score"] += 1
                continue
            tokens = count(record.get("completion_tokens"), where)
            yield Answer(
                query=query,
                model=model,
                text=None if output is None else str(output),
                score=graded,
                prompt_tokens=count(record.get("prompt_tokens"), where),
                completion_tokens=tokens,
                cost_usd=spent(record.get("cost"), tokens, where),
            )


IMPORTER = Importer(
    name="llmrouterbench",
    title="LLMRouterBench",
    url="https://github.com/ynulihao/LLMRouterBench",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("latency of single calls",),
    read=read,
)
