"""RouterEval: pickles of score matrices per pool size and composition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.errors import SourceError
from pipelines.ingest.importers import unpickle
from pipelines.ingest.importers.found import Answer, Found, Importer, Question
from pipelines.ingest.importers.reading import found_files, need, score, text

_LAYOUT = "*.pkl with easy…/hard… → all_strong/all_weak/strong_to_weak → data, model, prompt"
_SPLITS = {"train": "train", "val": "validation", "test": "test"}


def read(path: Path) -> Found:
    """The union of all pools; a model that stands in several has one score per question."""
    found = Found()
    paths = found_files(path, ["**/*.pkl"], _LAYOUT)
    found.answers = _answers(found, paths)
    return found


def _answers(found: Found, paths: list[Path]) -> Iterator[Answer]:
    for path in paths:
        content = unpickle.load(path)
        pools = list(_pools(content, (), 0))
        if not pools:
            raise SourceError(
                "the pickle holds no pool with 'data' and 'model'",
                where=str(path),
                next_step=f"expected: {_LAYOUT}",
            )
        given: dict[tuple[str, str], float] = {}
        for name, pool in pools:
            where = f"{path.name}, {'/'.join(name) or 'top'}"
            for answer in _pool(found, path.stem, pool, where):
                key = (answer.query, answer.model)
                if key in given:
                    if given[key] != answer.score:
                        raise SourceError(
                            f"{answer.model!r} has two scores for one question", where=where
                        )
                    continue
                given[key] = float(answer.score or 0.0)
                yield answer


def _pools(
    node: Any, name: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if not isinstance(node, dict) or depth > 4:
        return
    if "data" in node and "model" in node:
        yield name, node
        return
    for key in sorted(node, key=str):
        inner = node[key]
        shared = {k: node[k] for k in ("prompt", "split_index") if k in node}
        if isinstance(inner, dict):
            inner = {**shared, **inner} if "data" in inner else inner
        yield from _pools(inner, (*name, str(key)), depth + 1)


def _pool(found: Found, task: str, pool: Mapping[str, Any], where: str) -> Iterator[Answer]:
    models = [str(name) for name in pool["model"]]
    data, prompts = pool["data"], pool.get("prompt")
    if not isinstance(data, dict):
        raise SourceError("'data' is no dictionary of score matrices", where=where)
    need(data, ("train_score", "val_score", "test_score"), where)
    for short, split in _SPLITS.items():
        rows = data[f"{short}_score"]
        texts = prompts.get(f"{short}_prompt") if isinstance(prompts, dict) else None
        if texts is not None and len(texts) != len(rows):
            raise SourceError(
                f"{split}: {len(texts)} prompts for {len(rows)} rows of scores", where=where
            )
        for number, row in enumerate(rows):
            place = f"{where}, {split} row {number}"
            if len(row) != len(models):
                raise SourceError(f"{len(row)} scores for {len(models)} models", where=place)
            prompt = text(texts[number]) if texts is not None else ""
            if prompt.strip():
                query = f"{task}/{hashlib.sha256(prompt.encode()).hexdigest()[:16]}"
            else:
                query = f"{task}/{split}-{number}"
                prompt = f"[question {query}: its text is not in the file]"
            if query in found.questions and found.questions[query].split != split:
                found.left_out["rows whose question stands in another split too"] += 1
                continue
            found.ask(
                Question(id=query, question=prompt, prompt=prompt, task=task, split=split), place
            )
            for model, value in zip(models, row, strict=True):
                graded = score(value, place)
                if graded is None:
                    found.left_out["pairs without score"] += 1
                    continue
                yield Answer(query=query, model=model, score=graded)


IMPORTER = Importer(
    name="routereval",
    title="RouterEval",
    url="https://github.com/MilkThink-Lab/RouterEval",
    license="NOASSERTION",
    layout=_LAYOUT,
    lacks=("model outputs", "gold labels", "token usage", "cost", "latency"),
    read=read,
)
