"""RouterEval: pickles of score matrices per pool size and composition.

Layout checked against the generator and the test script of MilkThink-Lab/RouterEval
(`get_router_dataset.py`, `test_router.py`; its data are on a cloud drive and were not
at hand): `easy` → 3, 5 and `hard` → 10, 100, 1000 → `all_strong`, `all_weak`,
`strong_to_weak` → `data` and `model`; `prompt`, `split_index` and `embedding` are
once, at the top. All pools share one division, so a row is the same question in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import pickles
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers import reading, spec


def read(paths: Sequence[Path], result: spec.ImportResult) -> Iterator[spec.ImportedAnswer]:
    """The union of all pools; a model in several pools has one score per question."""
    for path in paths:
        content = pickles.read(path)
        pools = list(_pools(content, (), 0))
        if not pools:
            raise SourceError(
                "the pickle holds no pool with 'data' and 'model'",
                where=str(path),
                next_step=f"expected: {IMPORTER.layout}",
            )
        given: dict[tuple[str, str], float] = {}
        task = path.stem.removesuffix("_router_dataset")
        for name, pool in pools:
            where = f"{path.name}, {'/'.join(name) or 'top'}"
            for answer in _pool(result, task, pool, where):
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
    # The prompts are once above the pools of every size and composition.
    shared = {"prompt": node["prompt"]} if "prompt" in node else {}
    for key in sorted(node, key=str):
        inner = node[key]
        if isinstance(inner, dict) and key not in ("prompt", "split_index", "embedding"):
            yield from _pools({**shared, **inner}, (*name, str(key)), depth + 1)


def _pool(
    result: spec.ImportResult, task: str, pool: Mapping[str, Any], where: str
) -> Iterator[spec.ImportedAnswer]:
    models = [str(name) for name in pool["model"]]
    data, prompts = pool["data"], pool.get("prompt")
    if not isinstance(data, dict):
        raise SourceError("'data' is no dictionary of score matrices", where=where)
    reading.need(data, ("train_score", "val_score", "test_score"), where)
    for short, split in reading.SPLITS.items():
        rows = data[f"{short}_score"]
        texts = prompts.get(f"{short}_prompt") if isinstance(prompts, dict) else None
        if texts is not None and len(texts) != len(rows):
            raise SourceError(
                f"{split}: {len(texts)} prompts for {len(rows)} rows of scores", where=where
            )
        for number, row in enumerate(rows):
            place = f"{where}, {split} row {number + 1}"
            if len(row) != len(models):
                raise SourceError(f"{len(row)} scores for {len(models)} models", where=place)
            # Not the text: several rows may ask the same, and keep a score each.
            query = f"{task}/{split}-{number}"
            prompt = reading.text(texts[number]) if texts is not None else ""
            if not prompt.strip():
                prompt = f"[question {query}: its text is not in the file]"
            result.ask(
                spec.ImportedQuestion(
                    id=query, question=prompt, prompt=prompt, task=task, split=split
                ),
                place,
            )
            for model, value in zip(models, row, strict=True):
                graded = reading.score(value, place)
                if graded is None:
                    result.left_out["pairs without score"] += 1
                    continue
                yield spec.ImportedAnswer(query=query, model=model, score=graded)


IMPORTER = spec.importer("routereval", read)
