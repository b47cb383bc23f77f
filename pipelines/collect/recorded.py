"""The `recorded` provider: responses that someone already has become `responses`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines import files
from pipelines.errors import RecordedError, did_you_mean
from pipelines.jinja import compile_field
from schemas import RESPONSES
from schemas.recipe import Recorded, RecordedFields

_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class Imported:
    """Responses in key order and, per file, where they came from."""

    responses: pa.Table
    provenance: list[dict[str, Any]]


def import_recorded(
    queries: pa.Table, models: pa.Table, entries: Sequence[Recorded], *, base: Path
) -> Imported:
    """Read recorded responses and match them with queries by `source_id`.

    A row without text and without score is an answer that is missing: it makes
    no response and is counted. Rows about questions that the recipe does not
    ask are counted too.

    Raises:
        RecordedError: a response stands twice, names a model outside the pool,
            or no row matches a question.
        SourceError: a file is missing or damaged.
    """
    pool = set(models.column("model_id").to_pylist())
    seen: dict[tuple[str, str, int], str] = {}
    batches: list[pa.RecordBatch] = []
    provenance: list[dict[str, Any]] = []
    for entry in entries:
        index = _index(queries, entry)
        for path in files.expand(entry.path, base=base, where="collect.recorded"):
            counts = {"responses": 0, "missing": 0, "not_asked": 0, "other_models": 0}
            reader = _Reader(entry, index, pool, seen, path, counts)
            columns: dict[str, list[Any]] = {name: [] for name in RESPONSES.column_names}
            for row in reader.rows():
                for name, values in columns.items():
                    values.append(row.get(name))
                if len(columns["query_id"]) >= _BATCH:
                    batches.append(_batch(columns))
                    columns = {name: [] for name in columns}
            batches.append(_batch(columns))
            if not counts["responses"]:
                raise RecordedError(
                    f"no row of {path.name} matches a question of the recipe",
                    where=str(path),
                    next_step="map 'fields.query' to the column that holds the source's own id",
                )
            provenance.append({"file": path.name, "sha256": files.sha256(path), **counts})
    table = pa.Table.from_batches(batches, schema=RESPONSES.schema)
    order = [(name, "ascending") for name in RESPONSES.key]
    return Imported(RESPONSES.check(table.sort_by(order), where="recorded responses"), provenance)


@dataclass(frozen=True, slots=True)
class _Reader:
    entry: Recorded
    index: Mapping[str, tuple[str, list[str]]]
    pool: set[str]
    seen: dict[tuple[str, str, int], str]
    path: Path
    counts: dict[str, int]

    def rows(self) -> Iterator[dict[str, Any]]:
        read = _readers(self.entry.fields, self.path.name)
        for number, row in enumerate(files.rows(self.path, self.entry.format)):
            place = f"{self.path.name}, row {number}"
            response = self._response({name: of(row) for name, of in read.items()}, place)
            if response is not None:
                self.counts["responses"] += 1
                yield response

    def _response(self, said: dict[str, Any], place: str) -> dict[str, Any] | None:
        model = str(said["model"])
        if model not in self.pool:
            if self.entry.other_models == "ignore":
                self.counts["other_models"] += 1
                return None
            raise RecordedError(
                f"the model {model!r} has responses but is not in the pool",
                where=place,
                next_step=f"add it to the pool ({did_you_mean(model, self.pool)}), or set "
                "'other_models: ignore'",
            )
        asked = self.index.get(str(said["query"]))
        if asked is None:
            self.counts["not_asked"] += 1
            return None
        query_id, references = asked
        text, score = said.get("text"), _score(said.get("score"), place)
        if text is None and score is None:
            self.counts["missing"] += 1
            return None
        sample = int(said.get("sample") or 0)
        key = (query_id, model, sample)
        if key in self.seen:
            raise RecordedError(
                f"the response of {model!r} to {said['query']!r} (sample {sample}) stands twice",
                where=f"{place} and {self.seen[key]}",
                next_step="map 'fields.sample' when the file holds several samples, or remove one",
            )
        self.seen[key] = place
        cut = said.get("finish_reason") == "length"
        graded = said.get("graded_against")
        against = [graded] if isinstance(graded, str) else graded
        cost = _number(said.get("cost_usd"), float, place)
        return {
            "query_id": query_id,
            "model_id": model,
            "sample": sample,
            "text": None if text is None else str(text),
            "status": "truncated" if cut else "ok",
            "finish_reason": said.get("finish_reason"),
            "served_model": said.get("served_model"),
            "prompt_tokens": _number(said.get("prompt_tokens"), int, place),
            "completion_tokens": _number(said.get("completion_tokens"), int, place),
            "cost_usd": cost,
            "cost_source": None if cost is None else "provider",
            "latency_s": _number(said.get("latency_s"), float, place),
            "attempts": 1,
            "given_score": score,
            "graded_against": against if against and against != references else None,
        }


def _index(queries: pa.Table, entry: Recorded) -> dict[str, tuple[str, list[str]]]:
    """source_id → (query_id, references) of the entry's source."""
    index: dict[str, tuple[str, list[str]]] = {}
    columns = queries.select(["source", "source_id", "query_id", "references"]).to_pylist()
    sources = {row["source"] for row in columns}
    if entry.source is not None and entry.source not in sources:
        raise RecordedError(
            f"there is no source {entry.source!r} in the recipe",
            where="collect.recorded",
            next_step=did_you_mean(entry.source, sources),
        )
    for row in columns:
        if entry.source is not None and row["source"] != entry.source:
            continue
        if row["source_id"] in index:
            raise RecordedError(
                f"the id {row['source_id']!r} stands in more than one source",
                where=f"collect.recorded, {entry.path}",
                next_step="set 'source' to the source that these responses answer",
            )
        index[row["source_id"]] = (row["query_id"], row["references"])
    return index


def _readers(fields: RecordedFields, where: str) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
    return {
        name: compile_field(text, where=f"{where}, fields.{name}")
        for name, text in fields.model_dump(exclude_none=True).items()
    }


def _score(value: Any, place: str) -> float | None:
    if value is None or value == "":
        return None
    words = {"true": 1.0, "false": 0.0}
    try:
        score = words.get(str(value).strip().lower())
        score = float(value) if score is None else score
    except (TypeError, ValueError):
        score = float("nan")
    if not 0 <= score <= 1:
        raise RecordedError(
            f"the score {value!r} is not a number in [0, 1]",
            where=place,
            next_step="scale it in the mapping, e.g. score: '{{ rating / 10 }}'",
        )
    return score


def _number(value: Any, kind: type[int] | type[float], place: str) -> float | None:
    """A number, or None where the file says nothing (CSV writes that as an empty text)."""
    if value is None or value == "":
        return None
    try:
        return kind(float(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise RecordedError(
            f"{value!r} is not a number", where=place, next_step="correct 'fields' or the file"
        ) from error


def _batch(columns: Mapping[str, list[Any]]) -> pa.RecordBatch:
    try:
        arrays = [pa.array(columns[f.name], type=f.type) for f in RESPONSES.schema]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise RecordedError(
            f"a recorded column has values of the wrong type: {error}",
            where="collect.recorded",
            next_step="convert it in the mapping, e.g. prompt_tokens: '{{ tokens | int }}'",
        ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=RESPONSES.schema)
