"""Writes an import: two Parquet files and a recipe, whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import BadInput, RouteyardError, SourceError
from pipelines.ingest.guessing.scorers import ScorerAgreement, scorer_agreement
from pipelines.ingest.importers.importer import (
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
)
from pipelines.ingest.importers.reading import found_files, newest_first
from pipelines.io.files import sha256
from pipelines.io.staging import place, staging
from pipelines.io.untrusted import too_large

_BATCH = 50_000
#: What a value of another kind raises where the format's was expected.
_SURPRISES = (
    ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
_STRINGS = pa.list_(pa.string())

QUESTIONS = pa.schema(
    [
        (f.name, _STRINGS if "tuple" in str(f.type) else pa.string())
        for f in fields(ImportedQuestion)
    ]
)
_ANSWER_TYPES = {
    "sample": pa.int32(),
    "score": pa.float64(),
    "graded_against": _STRINGS,
    "prompt_tokens": pa.int64(),
    "completion_tokens": pa.int64(),
    "cost_usd": pa.float64(),
    "latency_s": pa.float64(),
}
ANSWERS = pa.schema(
    [(f.name, _ANSWER_TYPES.get(f.name, pa.string())) for f in fields(ImportedAnswer)]
)


class ImportExists(BadInput):
    """Another import of that name lies in the workspace."""


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
    #: The rule that would read graded answers with text; None where there are none.
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
    status: Literal["created", "unchanged"]
    with staging(target) as folder:
        with _a_strangers(path, importer):
            found = ImportResult(path)
            paths = found_files(path, importer.files, importer.layout)
            if importer.newest_first is not None:
                paths = newest_first(paths, importer.newest_first)
            listed = importer.read(paths, found)
            models, answers, known = _write_answers(listed, found, folder / "responses.parquet")
            _write_questions(found, folder / "queries.parquet")
        recipe = recipe_of(importer, name or importer.name, found, sorted(models), known)
        _write_yaml(recipe, importer, folder / "recipe.yaml")
        _write_yaml(recipe["pool"], importer, folder / "pool.yaml")
        try:
            place(folder, target)
            status = "created"
        except FileExistsError:  # it was there, or another import made it just now
            status = _same(folder, target)
    given = any(question.scorer == "given" for question in found.questions.values())
    return ImportReport(
        folder=target,
        recipe=target / "recipe.yaml",
        status=status,
        questions=len(found.questions),
        models=len(models),
        answers=answers,
        left_out=found.reasons(),
        lacks=importer.lacks,
        scorer_agreement=scorer_agreement(target / "queries.parquet", target / "responses.parquet")
        if given
        else None,
    )


@contextmanager
def _a_strangers(path: Path, importer: Importer) -> Iterator[None]:
    """A value of another kind than the format's is the source's fault, and named as such.

    Importers name what they expect to go wrong; a stranger's file can hold anything anywhere.
    """
    try:
        yield
    except RouteyardError:
        raise
    except MemoryError as e:
        raise too_large(path, "needs more memory than there is") from e
    except _SURPRISES as e:
        said = f"{type(e).__name__}: {str(e)[:300]!r}"
        raise SourceError(
            f"the source holds a value that the format does not: {said}",
            where=str(path),
            next_step=f"fetch or write it again; expected: {importer.layout}",
        ) from e


def _write_answers(
    answers: Iterable[ImportedAnswer], found: ImportResult, path: Path
) -> tuple[set[str], int, set[str]]:
    """Models, number of answers, and which optional fields are known at least once."""
    models: set[str] = set()
    known: set[str] = set()
    seen: set[tuple[str, str, int]] = set()
    with pq.ParquetWriter(path, ANSWERS, compression="zstd") as writer:
        for batch in _batches(_checked(answers, seen)):
            table = pa.Table.from_pylist([_row(answer) for answer in batch], schema=ANSWERS)
            writer.write_table(table)
            models.update(answer.model for answer in batch)
            known.update(n for n in ANSWERS.names if table.column(n).null_count < table.num_rows)
    unasked = next((query for query, _, _ in seen if query not in found.questions), None)
    if not seen or unasked is not None:
        what = "the source holds no answer" if not seen else f"no question has the id {unasked!r}"
        left_out = "; ".join(f"{reason}: {n:,}" for reason, n in found.reasons().items())
        raise SourceError(
            what + (f" (left out: {left_out})" if left_out else ""),
            next_step="check that PATH holds the whole source",
        )
    return models, len(seen), known


def _checked(
    answers: Iterable[ImportedAnswer], seen: set[tuple[str, str, int]]
) -> Iterable[ImportedAnswer]:
    for answer in answers:
        key = (answer.query, answer.model, answer.sample)
        if key in seen:
            raise SourceError(
                f"the answer of {answer.model!r} to {answer.query!r} stands twice",
                next_step="remove one of them from the source; they are never merged silently",
            )
        seen.add(key)
        yield answer


def _batches(answers: Iterable[ImportedAnswer]) -> Iterable[list[ImportedAnswer]]:
    batch: list[ImportedAnswer] = []
    for answer in answers:
        batch.append(answer)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _row(item: ImportedAnswer | ImportedQuestion) -> dict[str, Any]:
    row = {f.name: getattr(item, f.name) for f in fields(item)}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in row.items()}


def _write_questions(found: ImportResult, path: Path) -> None:
    rows = [_row(question) for question in found.questions.values()]
    pq.write_table(pa.Table.from_pylist(rows, schema=QUESTIONS), path, compression="zstd")


#: A size in billions as names state it; not one of several experts (`8x7b`).
_SIZE = re.compile(r"(?<![0-9a-zA-Z.])(\d+(?:\.\d+)?)[bB](?![0-9a-zA-Z])")


def pool_of(importer: Importer, models: list[str]) -> dict[str, Any]:
    """The pool of an import; a size only where the model's name states exactly one."""
    rows: list[dict[str, Any]] = []
    for model in models:
        row: dict[str, Any] = {"model_id": model}
        sizes = set(_SIZE.findall(model)) if importer.sizes_in_names else set()
        if len(sizes) == 1 and float(next(iter(sizes))) > 0:
            row["params_b"] = float(next(iter(sizes)))
        rows.append(row)
    return {"models": rows}


def recipe_of(
    importer: Importer, name: str, found: ImportResult, models: list[str], known: set[str]
) -> dict[str, Any]:
    """The recipe that builds a release from the two files beside it."""
    scorers = sorted({question.scorer for question in found.questions.values()})
    mapped = {
        "id": "id",
        "question": "question",
        "prompt": "prompt",
        "choices": "choices",
        "references": "references",
        "task": "task",
        "domain": "domain",
    }
    if any(question.split for question in found.questions.values()):
        mapped["metadata"] = ["split"]  # type: ignore[assignment]
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
    fields_ = {"query": "query", "model": "model"}
    fields_ |= {n: n for n in ANSWERS.names if n in known and n not in ("query", "model")}
    metered = {"prompt_tokens", "completion_tokens", "cost_usd"} <= known
    reason = f"Imported as recorded upstream ({importer.title}); usage or price is not stated."
    left_out = [f"{reason}: {n:,}" for reason, n in found.reasons().items()]
    return {
        "name": name,
        "version": "1.0.0",
        "sources": sources,
        "pool": pool_of(importer, models),
        "collect": {
            "provider": "recorded",
            "recorded": [{"path": "responses.parquet", "fields": fields_}],
        },
        # An answer that upstream did not grade has no label; it is not wrong.
        **({"label": {"default": {"unreadable": "null"}}} if "given" in scorers else {}),
        "release": {
            "title": importer.title,
            "description": f"Imported from {importer.url} in the format {importer.name}.",
            "license": importer.license,
            "known_issues": [
                *(f"The source does not record {what}." for what in importer.lacks),
                *(f"Left out on import: {line}." for line in left_out),
            ],
            **({} if metered else {"waivers": [{"gate": "metering", "reason": reason}]}),
        },
    }


def _write_yaml(content: dict[str, Any], importer: Importer, path: Path) -> None:
    import yaml

    class RecipeDumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True  # recipes are read without aliases

    head = (
        f"# {importer.title}, imported from files of the format `{importer.name}`.\n"
        f"# Upstream: {importer.url} (licence as stated there: {importer.license}).\n"
        "# queries.parquet and responses.parquet lie beside this file.\n"
    )
    text = yaml.dump(content, Dumper=RecipeDumper, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(head + text, encoding="utf-8", newline="\n")


def _same(folder: Path, target: Path) -> Literal["unchanged"]:
    names = sorted(path.name for path in folder.iterdir())
    for name in names:
        if not (target / name).is_file() or sha256(folder / name) != sha256(target / name):
            raise ImportExists(
                f"another import lies at {target.name}: {name} differs",
                where=str(target),
                next_step="give this one its own name with --name, or remove the old one",
            )
    return "unchanged"
