"""Rows of a source → the `queries` table: uniform prompts and stable ids."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.errors import SourceError
from pipelines.ingest.filters import Filtered
from pipelines.jinja import compile_field, letter
from pipelines.scorers import SCORERS
from pipelines.scorers.scorer import NO_RULE, Reading, Scorer
from pipelines.slices import DENSE, EXTENSION, SLICE
from schemas import QUERIES
from schemas.recipe import Fields, Source

Row = Mapping[str, Any]

#: Stands for queries that no rule decides: neither form nor reference is asked for.
_NO_RULE = Scorer(NO_RULE, "0", lambda asked, output: Reading("abstain"), needs_reference=False)


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


def uniform_prompt(question: str, choices: Sequence[str], told: str) -> str:
    """Question, lettered choices, and the answer-format instruction."""
    parts = [question]
    if choices:
        parts.append("\n".join(f"{letter(i)}. {text}" for i, text in enumerate(choices)))
    if told:
        parts.append(told)
    return "\n\n".join(parts)


def to_queries(
    source: Source,
    rows: Iterable[Row],
    *,
    seen: Counter[str],
    where: str,
    notes: list[str] | None = None,
) -> tuple[list[dict[str, Any]], list[tuple[str, str, str]]]:
    """Query rows of one source and what was left out (key, reason, detail).

    Args:
        seen: Content ids counted so far over all sources of the recipe.
        where: File or dataset, for errors.
        notes: Gets a sentence for each condition that left nothing out.

    Raises:
        SourceError: a question, reference or id is missing or repeated; `where` matches
            nothing; there is no row at all.
        RecipeError: a mapping names a column that does not exist.
        UnknownName: there is no scorer of that name.
    """
    fields, named = _complete(source)
    scorer = _scorer(named, where=f"source {source.name!r}")
    read = _readers(fields, where)
    told = source.instruction if source.instruction is not None else scorer.instruction
    filtered = Filtered(source, where)
    out: list[dict[str, Any]] = []
    removed: list[tuple[str, str, str]] = []
    ids: dict[str, int] = {}
    for number, row in enumerate(rows):
        if source.limit is not None and len(out) == source.limit:
            filtered.stopped_early()
            break
        if not filtered.takes(row):
            continue
        place = f"{where}, row {number}"
        source_id = str(read["id"](row)) if "id" in read else str(number)
        if source_id in ids:
            raise SourceError(
                f"source {source.name!r} has the id {source_id!r} twice",
                where=f"{place} (first in row {ids[source_id]})",
                next_step="map 'id' to a column whose values are unique",
            )
        ids[source_id] = number
        question = _text(read["question"](row))
        if not question.strip():
            raise SourceError(
                f"source {source.name!r} has a row without a question",
                where=place,
                next_step="filter such rows with 'where', or correct 'fields.question'",
            )
        if filtered.excludes(row):
            removed.append((f"{source.name}|{source_id}", "excluded", place))
            continue
        choices = _texts(read["choices"](row)) if "choices" in read else []
        references = _texts(read["references"](row)) if "references" in read else []
        if scorer.needs_reference and not any(text.strip() for text in references):
            if source.missing_reference == "remove":
                removed.append((f"{source.name}|{source_id}", "no_reference", place))
                continue
            raise SourceError(
                f"source {source.name!r} has a question without a reference",
                where=f"{place}, id {source_id!r}",
                next_step="map 'fields.references', or set 'missing_reference: remove' "
                "to leave such questions out (they are listed in removals)",
            )
        if scorer.lettered:
            _check_letters(references, choices, place)
        content = query_id(question, choices, references, 0)
        repeat = seen[content]
        seen[content] += 1
        prompt = _text(read["prompt"](row)) if "prompt" in read else ""
        metadata = {name: row.get(name) for name in fields.metadata}
        if source.dense is not None:
            metadata[SLICE] = DENSE if len(out) < source.dense else EXTENSION
        out.append(
            {
                "query_id": query_id(question, choices, references, repeat),
                "source": source.name,
                "source_id": source_id,
                "task": _text(read["task"](row)) if "task" in read else source.task or source.name,
                "domain": _text(read["domain"](row)) if "domain" in read else source.domain,
                "question": question,
                "prompt": prompt or uniform_prompt(question, choices, told),
                "choices": choices,
                "references": references,
                "scorer": named,
                "metadata": json.dumps(
                    metadata, sort_keys=True, ensure_ascii=False, default=str, allow_nan=False
                ),
            }
        )
    told_of = filtered.check()
    if notes is not None:
        notes += told_of
    if not out and not removed:
        raise SourceError(
            f"source {source.name!r} holds no question",
            where=where,
            next_step="correct 'path' or 'split', or take the source out of the recipe",
        )
    return out, removed


def to_table(rows: Iterable[Mapping[str, Any]], *, where: str) -> pa.Table:
    """Checked `queries` table in source order."""
    return QUERIES.from_rows(rows, where=where)


def _complete(source: Source) -> tuple[Fields, str]:
    if source.fields is None or source.scorer is None:
        raise SourceError(
            f"source {source.name!r} names no {'fields' if source.fields is None else 'scorer'}",
            next_step="add it to the recipe, or take the source from the catalog",
        )
    return source.fields, source.scorer


def _scorer(name: str, *, where: str) -> Scorer:
    if name == NO_RULE:
        return _NO_RULE
    found: Scorer = SCORERS.get(name, where=where)
    return found


def _readers(fields: Fields, where: str) -> dict[str, Callable[[Row], Any]]:
    """One function per mapped field."""
    readers: dict[str, Callable[[Row], Any]] = {}
    for name in ("id", "question", "prompt", "task", "domain"):
        if text := getattr(fields, name):
            readers[name] = compile_field(text, where=f"{where}, fields.{name}")
    for name in ("choices", "references"):
        value = getattr(fields, name)
        if isinstance(value, str):
            readers[name] = compile_field(value, where=f"{where}, fields.{name}")
        elif value:
            readers[name] = _listed(value, f"{where}, fields.{name}")
    for name in fields.metadata:
        readers[f"metadata:{name}"] = compile_field(name, where=f"{where}, fields.metadata")
    return readers


def _listed(expressions: Sequence[str], where: str) -> Callable[[Row], list[Any]]:
    parts = [compile_field(text, where=where) for text in expressions]
    return lambda row: [part(row) for part in parts]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _texts(value: Any) -> list[str]:
    """A list of texts; one value is a list of one, null entries are dropped."""
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = [value]
    return [str(item) for item in value if item is not None]


def _check_letters(references: Sequence[str], choices: Sequence[str], place: str) -> None:
    letters = {letter(i) for i in range(len(choices))}
    bad = [text for text in references if text.strip().upper() not in letters]
    if choices and bad:
        raise SourceError(
            f"the reference {bad[0]!r} is not the letter of one of {len(choices)} options",
            where=place,
            next_step="map 'references' to the letter: {{ answer | letter }} turns an index "
            "into one",
        )
