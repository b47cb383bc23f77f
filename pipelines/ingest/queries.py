"""Rows of a source → the `queries` table: uniform prompts and stable ids."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from routeyard.pipelines.dense_slice import DENSE, EXTENSION, SLICE
from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.filters import Filtered
from routeyard.pipelines.ingest.images import SourceImages
from routeyard.pipelines.ingest.row import Row, SourceRowReader, place_of
from routeyard.pipelines.mapping.expressions import letter
from routeyard.schemas.images import IMAGES, QuestionImage, with_marks
from routeyard.schemas.near import GROUP
from routeyard.schemas.recipe import Source

#: What scorers take in `metadata["percent"]`.
PERCENT = ("value", "points", "either")


@dataclass(frozen=True, slots=True)
class Ingested:
    """Queries in source order, what was left out, and where the rows came from."""

    queries: pa.Table
    removed: list[tuple[str, str, str]]
    provenance: list[dict[str, Any]]
    #: What a person should know of the sources and no figure tells.
    notes: tuple[str, ...] = ()


def query_id(question: str, choices: Sequence[str], references: Sequence[str], repeat: int) -> str:
    """`q` + 20 hex digits over what is asked and its references.

    Source, order and wording of the prompt do not enter, so the id survives
    re-ingestion. `repeat` counts earlier rows with exactly the same content.
    """
    content: list[Any] = [question, list(choices), list(references)]
    if repeat:
        content.append(repeat)
    digest = hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
    return f"q{digest[:20]}"


def uniform_prompt(question: str, choices: Sequence[str], instruction: str) -> str:
    """Question, lettered choices, and the answer-format instruction."""
    parts = [question]
    if choices:
        parts.append("\n".join(f"{letter(i)}. {text}" for i, text in enumerate(choices)))
    if instruction:
        parts.append(instruction)
    return "\n\n".join(parts)


def _asked(
    reader: SourceRowReader, source: Source, row: Row, place: str, question: str,
    choices: list[str], references: list[str], images: Sequence[QuestionImage],
) -> dict[str, Any]:  # fmt: skip
    """Task, domain, question and prompt of a row, its choices and references."""
    own = source.instruction
    instruction = reader.scorer.instruction if own is None else own
    task, domain = ((reader.text(name, row, place) or "").strip() for name in ("task", "domain"))
    prompt = reader.text("prompt", row, place)
    if prompt and images:
        (prompt,) = with_marks([prompt], images)
    return {
        "task": task or source.task or source.name,
        "domain": domain or source.domain,
        "question": question,
        "prompt": prompt or uniform_prompt(question, choices, instruction),
        "choices": choices,
        "references": references,
    }


def _metadata(
    reader: SourceRowReader, source: Source, row: Row, place: str, number: int,
    images: Sequence[QuestionImage],
) -> dict[str, Any]:  # fmt: skip
    """Metadata of a row, with what its source states of all, its slice, group and images."""
    metadata = reader.metadata(row)
    for key in ("percent", "answer_in", "tolerance"):
        if (value := getattr(source, key)) is not None:
            metadata.setdefault(key, value)
    _check_percent(metadata.get("percent"), place)
    if source.dense is not None:
        metadata[SLICE] = DENSE if number < source.dense else EXTENSION
    if (group := reader.text("group", row, place)) is not None:
        metadata[GROUP] = group
    if images:
        metadata[IMAGES] = [image.entry for image in images]
    return metadata


def to_queries(
    source: Source,
    rows: Iterable[Row],
    *,
    seen: Counter[str],
    where: str,
    notes: list[str] | None = None,
    images: SourceImages | None = None,
) -> tuple[list[dict[str, Any]], list[tuple[str, str, str]]]:
    """Query rows of one source and what was left out (key, reason, detail).

    Args:
        seen: Content ids counted so far over all sources of the recipe.
        where: File or dataset, for errors.
        notes: Gets a sentence for each condition that left nothing out, and for each field
            that some rows have no key for.
        images: Reads what `fields.images` names; None where the files are not at hand.

    Raises:
        SourceError: a question, reference or id is missing or repeated; `where` matches
            nothing; there is no row at all.
        RecipeError: a mapping names a column that does not exist.
        UnknownName: there is no scorer of that name.
    """
    reader = SourceRowReader(source, where)
    filtered = Filtered(source, where)
    pictures = images or SourceImages(source, None)
    out: list[dict[str, Any]] = []
    removed: list[tuple[str, str, str]] = []
    for number, row in enumerate(rows):
        if source.limit is not None and len(out) == source.limit:
            filtered.stopped_early()
            break
        if not filtered.takes(row):
            continue
        reader.sparse.see(row)
        place = place_of(row, where, number)
        source_id, question = reader.question(row, number)
        if filtered.excludes(row):
            removed.append((f"{source.name}|{source_id}", "excluded", place))
            continue
        if question is None:
            removed.append((f"{source.name}|{source_id}", "no_question", place))
            continue
        answers = reader.answers(row, number, source_id)
        if answers is None:
            removed.append((f"{source.name}|{source_id}", "no_reference", place))
            continue
        choices, references = answers
        seen_with = pictures.of(reader.images(row), place)
        if seen_with:
            question, *choices = with_marks([question, *choices], seen_with)
        content = query_id(question, choices, references, 0)
        repeat = seen[content]
        seen[content] += 1
        out.append(
            {
                "query_id": query_id(question, choices, references, repeat),
                "source": source.name,
                "source_id": source_id,
                **_asked(reader, source, row, place, question, choices, references, seen_with),
                "scorer": reader.scorer_name,
                "metadata": _json(
                    _metadata(reader, source, row, place, len(out), seen_with), place
                ),
            }
        )
    notes_of_filter = filtered.check()
    reader.check()
    if notes is not None:
        notes += notes_of_filter
        notes += [f"source {source.name!r}: {note}" for note in reader.sparse.notes()]
    if not out and not removed:
        raise SourceError(
            f"source {source.name!r} holds no question",
            where=where,
            next_step="correct 'path' or 'split', or take the source out of the recipe",
        )
    return out, removed


def _json(metadata: Mapping[str, Any], place: str) -> str:
    try:
        return json.dumps(
            metadata, sort_keys=True, ensure_ascii=False, default=str, allow_nan=False
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise SourceError(
            f"the metadata of a question cannot be kept: {error}",
            where=place,
            next_step="take the column out of fields.metadata, or mend its value: JSON has no "
            "infinity, and no NaN within a list",
        ) from error


def _check_percent(policy: Any, place: str) -> None:
    """Refuse a `percent` in a row's metadata that is no policy of the scorers."""
    if policy not in (None, *PERCENT):
        raise SourceError(
            f"the policy 'percent' of a question is {policy!r}",
            where=place,
            next_step=f"a column mapped as metadata 'percent' holds one of {', '.join(PERCENT)}; "
            "rename it, or leave it out of fields.metadata",
        )
