"""MixInstruct: instructions with the candidates of several models and their metrics.

Layout checked against the card and the list of files of the dataset
llm-blender/mix-instruct and against its reader in yuchenlin/LLM-Blender
(`llm_blender/pair_ranker/data.py`: JSON lines or one JSON list).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from routeyard.pipelines.ingest.importers import reading, spec

_COLUMNS = ("id", "instruction", "input", "output", "candidates")
#: The metric taken as score: in [0, 1], and the field's usual one for this set.
METRIC = "bertscore"


def by_bertscore(scores: dict[str, Any], where: str) -> float | None:
    """The candidate's BERTScore."""
    return reading.score(scores.get(METRIC), where)


def by_bartscore(scores: dict[str, Any], where: str) -> float | None:
    """exp(BARTScore): the score that RouterBench+ (section 4.1) and CSCR take for this set.

    BARTScore is a mean log-probability, at most 0, so its exponential is in (0, 1].
    """
    found = reading.number(scores.get("bartscore"), where)
    return None if found is None else reading.score(math.exp(min(found, 700.0)), where)


Graded = Callable[[dict[str, Any], str], float | None]


def read(
    paths: Sequence[Path], result: spec.ImportResult, graded: Graded = by_bertscore
) -> Iterator[spec.ImportedAnswer]:
    """Candidates with one of their metrics as score; `cmp_results` stays in the source."""
    for path in paths:
        # The dataset's own folder holds each split once; revisions hold JSON beside JSONL.
        split = reading.split_of(path)
        for where, row in reading.records(reading.json_rows(path), _COLUMNS, path.name, result):
            yield from _candidates(result, row, split, where, graded)


def _candidates(
    result: spec.ImportResult, row: dict[str, Any], split: str | None, where: str, graded: Graded
) -> Iterator[spec.ImportedAnswer]:
    query = str(row["id"])
    parts = (reading.text(row["instruction"]), reading.text(row["input"]))
    asked = "\n".join(part for part in parts if part)
    question = spec.ImportedQuestion(
        id=query,
        question=asked,
        prompt=asked,
        task=query.split("/")[0] if "/" in query else "mixinstruct",
        references=reading.texts(row["output"]),
        split=split,
    )
    result.ask(question, where)
    for candidate in reading.objects(row["candidates"], where):
        reading.need(candidate, ("model", "text", "scores"), where)
        scores = reading.obj(candidate["scores"], where)
        yield spec.ImportedAnswer(
            query=query,
            model=str(candidate["model"]),
            text=reading.output_text(candidate["text"]),
            score=graded(scores, where),
        )


IMPORTER = spec.importer("mixinstruct", read)

BARTSCORE = spec.importer("mixinstruct_bartscore", partial(read, graded=by_bartscore))
