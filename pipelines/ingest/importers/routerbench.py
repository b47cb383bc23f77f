"""RouterBench: `routerbench_{0,5}shot.pkl`, a wide pandas pickle of eleven models.

Columns checked against what withmartian/routerbench writes and reads
(`convertors/common.py`, `convertors/martian_evals_convertor.py`, `utils.py`,
`evaluate_routers.py`), and against the list of columns, blocks and pickled names that
Hbin77/tierroute holds of the very file (`src/tierroute/adapters/routerbench.py`); the
file itself was not at hand. It holds the scores of the eleven models as objects.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import pickles
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import reading, spec

#: What a row's columns of a model give.
_CELL = ("text", "score", "cost_usd")


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """Wide frame → one answer per model; an empty cell is an answer that is missing."""
    for file in paths:
        frame = pickles.read(file)
        if not isinstance(frame, pickles.Frame):
            raise SourceError("the pickle holds no data frame", where=str(file))
        columns = list(frame.columns)
        reading.need(dict.fromkeys(columns), ("sample_id", "prompt", "eval_name"), str(file))
        models = [name for name in columns if f"{name}|total_cost" in columns]
        if not models:
            raise SourceError("no column has a twin '<model>|total_cost'", where=str(file))
        rows: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for number, row in enumerate(frame.rows(), 1):
            name = str(row["sample_id"])
            called = f"{file.stem}/{name}" if len(paths) > 1 else name
            rows.setdefault(called, []).append((f"{file.name}, row {number}", dict(row)))
        for called, repeats in rows.items():
            for question, cells in _apart(called, repeats).items():
                result.ask(question, cells[0][0])
                for model in models:
                    yield from _cells(result, question.id, model, cells)


def _apart(
    called: str, repeats: list[tuple[str, dict[str, Any]]]
) -> dict[spec.ImportedQuestion, list[tuple[str, dict[str, Any]]]]:
    """The questions that share a sample_id, each with its rows.

    The file repeats some ids: with another prompt, which is another question
    (`id#2`), or with the same one, each row holding the cells the other lacks.
    """
    apart: dict[spec.ImportedQuestion, list[tuple[str, dict[str, Any]]]] = {}
    numbers: dict[tuple[str, str], str] = {}
    for where, row in repeats:
        prompt, task = _unwrapped(row["prompt"]), str(row["eval_name"])
        number = len(numbers) + 1
        name = numbers.setdefault((prompt, task), called if number == 1 else f"{called}#{number}")
        question = spec.ImportedQuestion(id=name, question=prompt, prompt=prompt, task=task)
        apart.setdefault(question, []).append((where, row))
    return apart


def _cells(
    result: spec.ImportResult, query: str, model: str, rows: list[tuple[str, dict[str, Any]]]
) -> Iterator[spec.ImportedAnswer]:
    """One answer per model; halves are put together, a second graded answer is a sample."""
    answers: list[spec.ImportedAnswer] = []
    for where, row in rows:
        graded = reading.score(row[model], f"{where}, {model}")
        text = _unwrapped(row.get(f"{model}|model_response")) or None
        if graded is None and text is None:
            continue
        cost = reading.spent(row[f"{model}|total_cost"], None, where)
        new = spec.ImportedAnswer(query=query, model=model, text=text, score=graded, cost_usd=cost)
        half = next((at for at, one in enumerate(answers) if _complete(one, new)), None)
        if half is None:
            answers.append(new)
        elif answers[half] != new:
            answers[half] = _together(answers[half], new)
        else:
            result.left_out["cells that repeat another row's"] += 1
    if not answers:
        result.left_out["pairs without answer"] += 1
    yield from (replace(one, sample=at) for at, one in enumerate(answers))


def _complete(one: spec.ImportedAnswer, other: spec.ImportedAnswer) -> bool:
    """Whether two cells do not contradict each other: what both know is the same."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in _CELL)
    return all(a is None or b is None or a == b for a, b in pairs)


def _together(one: spec.ImportedAnswer, other: spec.ImportedAnswer) -> spec.ImportedAnswer:
    lacking = [name for name in _CELL if getattr(one, name) is None]
    return replace(one, **{name: getattr(other, name) for name in lacking})


def _unwrapped(value: Any) -> str:
    """The text inside `['…']`, the form in which a list of one text was stored."""
    if value is None or value != value:
        return ""
    text = str(value)
    if text.startswith("[") and text.endswith("]") and len(text) < 1_000_000:
        try:
            parts = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
        if isinstance(parts, list) and parts and all(isinstance(part, str) for part in parts):
            return "\n".join(parts)
    return text


IMPORTER = spec.importer("routerbench", read)
