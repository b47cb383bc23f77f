"""Writes an import: two Parquet files and a recipe, whole or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.pool import published_size
from routeyard.pipelines.common.staging import place, staging
from routeyard.pipelines.ingest.guess_scorers import ScorerAgreement, scorer_agreement
from routeyard.pipelines.ingest.importers.reading import (
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
    found_files,
    named_errors,
    newest_first,
)
from routeyard.schemas import STEPS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.release import NAMES

# The recipe of an import: it builds a release from the two Parquet files beside it.

#: A size in billions as names state it; not one of several experts (`8x7b`).
_SIZE = re.compile(r"(?<![0-9a-zA-Z.])(\d+(?:\.\d+)?)[bB](?![0-9a-zA-Z])")


def _model(importer: Importer, model: str) -> dict[str, Any]:
    """A model of the pool; with a size where its name states exactly one, or one is published."""
    sizes = set(_SIZE.findall(model)) if importer.sizes_in_names else set()
    if len(sizes) == 1:
        size = float(next(iter(sizes)))
        return {"model_id": model, "params_b": size} if size > 0 else {"model_id": model}
    return {"model_id": model, **published_size(model)}


def recipe_of(
    importer: Importer, name: str, result: ImportResult, models: list[str], known: set[str]
) -> dict[str, Any]:
    """The recipe that builds a release from the two files beside it."""
    scorers = sorted({question.scorer for question in result.questions.values()})
    names = ("id", "question", "prompt", "choices", "references", "task", "domain")
    mapped: dict[str, Any] = {name: name for name in names}
    parts = {NAMES.get((item.split or "").lower()) for item in result.questions.values()}
    if parts != {None}:
        mapped["metadata"] = ["split"]
    # A split that was published is kept, to the question, where it can serve as one.
    published = {"curate": [{"rule": "upstream_split"}]} if {"train", "test"} <= parts else {}
    sources = [
        {
            "name": name if len(scorers) == 1 else f"{name}_{scorer}",
            "path": "queries.parquet",
            "scorer": scorer,
            "license": importer.license,
            "url": importer.url,
            "where": {"scorer": scorer},
            "fields": mapped,
        }
        for scorer in scorers
    ]
    answers = [f.name for f in fields(ImportedAnswer) if f.name in {"query", "model", *known}]
    recorded = {"path": "responses.parquet", "fields": {name: name for name in answers}}
    metered = {"prompt_tokens", "completion_tokens", "cost_usd"} <= known
    reason = f"Imported as recorded upstream ({importer.title}); usage or price is not stated."
    left_out = [f"{reason}: {n:,}" for reason, n in result.reasons().items()]
    return {
        "name": name,
        "version": "1.0.0",
        "sources": sources,
        "pool": {"models": [_model(importer, model) for model in models]},
        "collect": {"provider": "recorded", "recorded": [recorded]},
        # An answer that upstream did not grade has no label; it is not wrong.
        **({"label": {"default": {"unreadable": "null"}}} if "given" in scorers else {}),
        **published,
        "release": {
            "title": importer.title,
            "description": f"Imported from {importer.url} in the format {importer.name}.",
            "license": importer.license,
            "known_issues": [
                *(f"The source does not record {what}." for what in importer.lacks),
                *(f"Left out on import: {line}." for line in left_out),
                *(f"{doubt}." for doubt in (*result.choices, *result.doubts)),
            ],
            **({} if metered else {"waivers": [{"gate": "metering", "reason": reason}]}),
        },
    }


def write_yaml(content: dict[str, Any], importer: Importer, path: Path) -> None:
    """Write a recipe, or a part of one, under a head that names its upstream."""
    head = (
        f"# {importer.title}, imported from files of the format `{importer.name}`.\n"
        f"# Upstream: {importer.url} (licence as stated there: {importer.license}).\n"
        "# queries.parquet and responses.parquet are beside this file.\n"
    )
    # Recipes are read without aliases: through JSON no part is held twice.
    plain = json.loads(json.dumps(content))
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(head + text, encoding="utf-8", newline="\n")


_BATCH = 50_000
#: Type of a field → Arrow type of its column.
_ARROW = {
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "tuple": pa.list_(pa.string()),
}


def _schema(row: type) -> pa.Schema:
    kinds = {f.name: str(f.type).partition(" ")[0].partition("[")[0] for f in fields(row)}
    return pa.schema([(name, _ARROW[kind]) for name, kind in kinds.items()])


QUESTIONS = _schema(ImportedQuestion)
ANSWERS = _schema(ImportedAnswer)
ANSWERS = ANSWERS.set(ANSWERS.get_field_index("sample"), pa.field("sample", pa.int32()))


class ImportExists(BadInput):
    """Another import of that name exists in the workspace."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import wrote, and what the source did not give."""

    folder: Path
    recipe: Path
    status: Literal["created", "unchanged"]
    questions: int
    models: int
    answers: int
    left_out: dict[str, int]
    lacks: tuple[str, ...]
    #: Calls of models on the way to the answers, in `steps.parquet`; 0 where none are recorded.
    steps: int = 0
    #: The rule that would read graded answers with text; None without any.
    scorer_agreement: ScorerAgreement | None = None


def run_import(
    importer: Importer, path: Path, target: Path, *, name: str | None = None
) -> ImportReport:
    """Read `path` and write `target` with questions, answers and a recipe.

    Args:
        target: `imports/<format>` of a workspace.
        name: Name of the benchmark; by default the format's.

    Raises:
        SourceError, Unsafe: the source is not of the format; nothing is written.
        ImportExists: `target` holds another import.
    """
    if not path.exists():
        raise SourceError(
            f"there is nothing at {path}",
            where=str(path),
            next_step=f"expected: {importer.layout}",
        )
    with staging(target) as folder:
        with named_errors(
            path, "the source has a value that the format does not allow",
            f"fetch or write it again; expected: {importer.layout}; where the file is as expected, "
            "the importer is wrong at {at}",
        ):  # fmt: skip
            result = ImportResult(path)
            paths = found_files(path, importer.files, importer.layout)
            if importer.newest_first is not None:
                paths = newest_first(paths, importer.newest_first)
            answers = importer.read(paths, result)
            models, count, known = _write_answers(answers, result, folder / "responses.parquet")
            rows = [_row(question, QUESTIONS) for question in result.questions.values()]
            table = pa.Table.from_pylist(rows, schema=QUESTIONS)
            pq.write_table(table, folder / "queries.parquet", compression="zstd")
            if result.steps:
                steps = STEPS.from_rows(result.steps, where=str(path))
                pq.write_table(steps, folder / "steps.parquet", compression="zstd")
        recipe = recipe_of(importer, name or importer.name, result, sorted(models), known)
        write_yaml(recipe, importer, folder / "recipe.yaml")
        write_yaml(recipe["pool"], importer, folder / "pool.yaml")
        status: Literal["created", "unchanged"] = "created"
        try:
            place(folder, target)
        except FileExistsError:  # it was there, or another import made it just now
            _check_same(folder, target)
            status = "unchanged"
    agreement = None
    if any(question.scorer == "given" for question in result.questions.values()):
        agreement = scorer_agreement(target / "queries.parquet", target / "responses.parquet")
    return ImportReport(
        folder=target,
        recipe=target / "recipe.yaml",
        status=status,
        questions=len(result.questions),
        models=len(models),
        answers=count,
        left_out=result.reasons(),
        lacks=tuple(importer.lacks),
        steps=len(result.steps),
        scorer_agreement=agreement,
    )


def _write_answers(
    answers: Iterable[ImportedAnswer], result: ImportResult, path: Path
) -> tuple[set[str], int, set[str]]:
    """Models, number of answers, and which optional fields are known at least once."""
    models: set[str] = set()
    known: set[str] = set()
    seen: set[tuple[str, str, int]] = set()
    listed = iter(answers)
    with pq.ParquetWriter(path, ANSWERS, compression="zstd") as writer:
        while batch := list(islice(listed, _BATCH)):
            for answer in batch:
                key = (answer.query, answer.model, answer.sample)
                if key in seen:
                    raise SourceError(
                        f"the answer of {answer.model!r} to {answer.query!r} is given twice",
                        next_step="remove one of them from the source; they are never merged "
                        "silently",
                    )
                seen.add(key)
            table = pa.Table.from_pylist([_row(answer, ANSWERS) for answer in batch], ANSWERS)
            writer.write_table(table)
            models.update(answer.model for answer in batch)
            known.update(n for n in ANSWERS.names if table.column(n).null_count < table.num_rows)
    unasked = next((query for query, _, _ in seen if query not in result.questions), None)
    if not seen or unasked is not None:
        what = "the source holds no answer" if not seen else f"no question has the id {unasked!r}"
        left_out = "; ".join(f"{reason}: {n:,}" for reason, n in result.reasons().items())
        raise SourceError(
            what + (f" (left out: {left_out})" if left_out else ""),
            next_step="check that PATH holds the whole source",
        )
    return models, len(seen), known


def _row(item: ImportedAnswer | ImportedQuestion, schema: pa.Schema) -> dict[str, Any]:
    return {name: getattr(item, name) for name in schema.names}


def _check_same(folder: Path, target: Path) -> None:
    for path in sorted(folder.iterdir()):
        other = target / path.name
        if not other.is_file() or sha256(path) != sha256(other):
            raise ImportExists(
                f"there is another import at {target.name}: {path.name} differs",
                where=str(target),
                next_step="give this one its own name with --name, or remove the old one",
            )
