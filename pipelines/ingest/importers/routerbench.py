"""RouterBench: `routerbench_{0,5}shot.pkl`, a wide pandas pickle of eleven models.

Columns checked against what withmartian/routerbench writes and reads
(`convertors/common.py`, `convertors/martian_evals_convertor.py`, `utils.py`,
`evaluate_routers.py`), and against the list of columns, blocks and pickled names that
Hbin77/tierroute holds of the very file (`src/tierroute/adapters/routerbench.py`); the
file itself was not at hand. The scores of the eleven models lie there as objects.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.errors import SourceError
from pipelines.ingest import pickles
from pipelines.ingest.importers.found import Answer, Found, Importer, Question
from pipelines.ingest.importers.reading import found_files, need, score, spent

_LAYOUT = "routerbench_0shot.pkl or routerbench_5shot.pkl (columns sample_id, prompt, eval_name, …)"


def read(path: Path) -> Found:
    """Wide frame → one answer per model; an empty cell is an answer that is missing."""
    found = Found()
    frames = []
    for file in found_files(path, ["*shot*.pkl"], _LAYOUT):
        frame = pickles.load(file)
        if not isinstance(frame, pickles.Frame):
            raise SourceError("the pickle holds no data frame", where=str(file))
        columns = list(frame.columns)
        need(dict.fromkeys(columns), ("sample_id", "prompt", "eval_name"), str(file))
        frames.append((file, frame, columns))
    found.answers = _answers(found, frames)
    return found


def _answers(found: Found, frames: list[tuple[Path, pickles.Frame, list[str]]]) -> Iterator[Answer]:
    several = len(frames) > 1
    for file, frame, columns in frames:
        models = [name for name in columns if f"{name}|total_cost" in columns]
        if not models:
            raise SourceError("no column has a twin '<model>|total_cost'", where=str(file))
        seen: set[str] = set()
        for number, row in enumerate(frame.rows()):
            where = f"{file.name}, row {number}"
            name = str(row["sample_id"])
            sample_id = f"{file.stem}/{name}" if several else name
            prompt = _unwrapped(row["prompt"])
            question = Question(
                id=sample_id, question=prompt, prompt=prompt, task=str(row["eval_name"])
            )
            found.ask(question, where)
            if name in seen:  # upstream's reader drops them too
                found.left_out["rows that repeat a sample_id"] += 1
                continue
            seen.add(name)
            for model in models:
                graded = score(row[model], f"{where}, {model}")
                text = _unwrapped(row.get(f"{model}|model_response"))
                if graded is None and not text:
                    found.left_out["pairs without answer"] += 1
                    continue
                yield Answer(
                    query=sample_id,
                    model=model,
                    text=text or None,
                    score=graded,
                    cost_usd=spent(row[f"{model}|total_cost"], None, where),
                )


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


IMPORTER = Importer(
    name="routerbench",
    title="RouterBench",
    url="https://huggingface.co/datasets/withmartian/routerbench",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("gold labels", "token usage", "latency"),
    read=read,
)
