"""A source's records as questions and answers, by a mapping of names: the one form of all tables.

A reader gives records with their place in the source: `(where, record)`. A mapping says which key
is what, in words of our own; it never looks at values. Both together are an importer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from routeyard.pipelines.common import files
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.importers.reading import (
    FORMATS,
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
)
from routeyard.schemas.errors import BadInput

#: A record and where a person finds it: file and row.
Record: TypeAlias = "tuple[str, dict[str, Any]]"
#: Gives the records of some files; what it leaves out it adds to the result.
Reader: TypeAlias = "Callable[[Sequence[Path], ImportResult], Iterable[Record]]"
#: Key of a record with one record for each of its answers; without it a record is one answer.
ANSWERS = "_answers"
#: Key of an answer's record with one record for each call of a model on the way to it.
STEPS = "_steps"
_ABSENT = object()

#: Field → how its value is read; one that is not listed is taken as it is.
_QUESTION: dict[str, Callable[[Any], Any]] = {
    "id": str, "question": reading.text, "prompt": reading.text, "task": reading.text,
    "choices": reading.options, "references": reading.texts,
}  # fmt: skip
_ANSWER: dict[str, Callable[[Any, str], Any]] = {
    "model": lambda value, _: str(value),
    "text": lambda value, _: reading.output_text(value),
    "served_model": lambda value, _: None if value is None else str(value),
    "prompt_tokens": reading.count,
    "completion_tokens": reading.count,
    "cache_read_tokens": reading.count,
    "cache_write_tokens": reading.count,
    "latency_s": reading.amount,
}


@dataclass(frozen=True, slots=True)
class Mapped:
    """Which keys of a source's records hold what.

    A key may be a path (`usage.input_tokens`), the first of several that a record has
    (`a | b`), a text with keys in it (`{dataset}/{index}`), or a constant (`=math`). What a record
    lacks is unknown.

    Attributes:
        question: Field of `ImportedQuestion` → key of a record.
        answer: Field of `ImportedAnswer` → key of a record, or of one of its `_answers`; counts
            and seconds of an answer with steps are those of its steps.
        step: Column of `steps` → key of one of an answer's `_steps`, of which the last answered.
        needs: Keys without which a record is not of the format.
        records: Kind of the files, where nothing but the mapping has to be known of them.
        repeated: Several answers of one model to a question are its samples.
        without: Fields, one of which an answer must have → why those without are left out.
        scale: Lowest and highest score.
    """

    question: Mapping[str, str]
    answer: Mapping[str, str]
    needs: Sequence[str]
    step: Mapping[str, str] = field(default_factory=dict)
    records: str = ""
    repeated: bool = False
    without: Mapping[str, str] | None = None
    scale: tuple[float, float] = (0.0, 1.0)

    def read(self, records: Iterable[Record], result: ImportResult) -> Iterator[ImportedAnswer]:
        """The answers of some records, whose questions the result gets.

        Raises:
            SourceError: a value is not of its kind, with its place; two questions share an id.
        """
        for where, record in records:
            asked = _fields(self.question, record, where)
            question = ImportedQuestion(
                **{k: _QUESTION[k](v) if k in _QUESTION else v for k, v in asked.items()}
            )
            result.ask(question, where)
            for item in record.get(ANSWERS, (record,)):
                at = item.get("_where", where)
                calls = [_read(_fields(self.step, call, at), at) for call in item.get(STEPS, ())]
                answer = self._answer(question.id, _fields(self.answer, item, at), calls, at)
                lacking = self._lacking(answer)
                if lacking is not None:
                    result.left_out[lacking] += 1
                    continue
                if self.repeated:
                    answer["sample"] = result.next_sample(question.id, answer["model"])
                result.steps += _steps(answer, calls)
                yield ImportedAnswer(**answer)

    def _answer(
        self, query: str, said: dict[str, Any], calls: list[dict[str, Any]], where: str
    ) -> dict[str, Any]:
        answer = (reading.sums_of(calls) if calls else {}) | _read(said, where)
        low, high = self.scale
        if "score" in said:
            answer["score"] = reading.score(said["score"], where, low=low, high=high)
        if "cost_usd" in said:
            tokens = answer.get("prompt_tokens" if calls else "completion_tokens")
            answer["cost_usd"] = reading.spent(said["cost_usd"], tokens, where)
        return {"query": query, **answer}

    def _lacking(self, answer: Mapping[str, Any]) -> str | None:
        """Why an answer is left out; None where it has what it needs."""
        for names, why in (self.without or {}).items():
            if all(answer.get(name) is None for name in names.split()):
                return why
        return None


def _read(said: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Fields of an answer or a step, each read as what it is."""
    return {k: _ANSWER[k](v, where) if k in _ANSWER else v for k, v in said.items()}


def _steps(answer: Mapping[str, Any], calls: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of `steps` of an answer: every call but the last called tools."""
    key = {
        "query_id": answer["query"], "model_id": answer["model"],
        "sample": answer.get("sample", 0), "outcome": answer.get("score"),
    }  # fmt: skip
    for number, call in enumerate(calls):
        acted_by = str(call.pop("acted_by", None) or answer["model"])
        yield reading.step(key, number, acted_by, number < len(calls) - 1, **call)


def _fields(keys: Mapping[str, str], record: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Field → value of a record, without those that it lacks."""
    fields = {field: value_of(record, key, where) for field, key in keys.items()}
    return {field: value for field, value in fields.items() if value is not _ABSENT}


def value_of(record: Mapping[str, Any], key: str, where: str) -> Any:
    """What a record has under a key of a mapping; a marker where it has nothing there."""
    if key in record:
        return record[key]
    if key.startswith("="):
        return key[1:]
    if "{" in key:
        return re.sub(r"\{([^}]*)\}", lambda m: str(record[m[1]]), key)
    if "|" in key:
        several = (value_of(record, part.strip(), where) for part in key.split("|"))
        return next((value for value in several if value is not _ABSENT), _ABSENT)
    first, dot, rest = key.partition(".")
    if not dot or first not in record:
        return _ABSENT
    return value_of(reading.obj(record[first], where), rest, where)


def parse_map(text: str | None, roles: Sequence[str], models: str | None = None) -> dict[str, str]:
    """Role → column of `role=column,role=a.b`, as a person says it.

    A column may be a path (`usage.prompt_tokens`); of results also an expression of recipes
    (`{{ id | lower }}`) or a constant (`=gpt-4o`).

    Args:
        roles: Those that there are.
        models: Columns, each the scores of the model that it names: `a,b,c`.

    Raises:
        BadInput: a part is no `role=column`, or names a role that there is not, or twice.
    """
    mapping = {"models": models} if models else {}
    for part in re.split(r",(?=\s*\w+=)", text) if text else ():
        role, _, column = part.strip().partition("=")
        if role not in roles or not column or role in mapping:
            raise BadInput(
                f"expected known roles, each once, with a column; found {part.strip()!r}",
                where="--map",
                next_step="write --map role=COLUMN,role=COLUMN; roles are " + ", ".join(roles),
            )
        mapping[role] = column
    return mapping


def mapping_of(name: str) -> Mapped:
    """The mapping of a format in `importers.yaml`."""
    return Mapped(**FORMATS[name]["mapping"])


def importer(
    name: str, records: Reader | None = None, *, newest_first: re.Pattern[str] | None = None
) -> Importer:
    """The importer of a format that `importers.yaml` maps.

    Args:
        records: Reads the format's files; by default rows of the kind that the mapping names.
        newest_first: The time in a file's name; the newest file is read first.
    """
    mapped = mapping_of(name)
    rows = records or partial(_rows, mapped)

    def read(paths: Sequence[Path], result: ImportResult) -> Iterator[ImportedAnswer]:
        yield from mapped.read(rows(paths, result), result)
        again = sum(n - 1 for n in result.samples.values())
        if mapped.records and again:
            result.left_out["nothing; repeats of a model and prompt kept as samples"] = again

    return reading.importer(name, read, newest_first=newest_first)


def _rows(mapped: Mapped, paths: Sequence[Path], result: ImportResult) -> Iterator[Record]:
    """The rows of some files, with the split that a file's name states."""
    for path in paths:
        split = reading.split_of(path)
        for number, row in enumerate(files.rows(path, mapped.records), 1):
            where = f"{path.name}, row {number}"
            reading.need(row, mapped.needs, where if number > 1 else str(path))
            yield where, {**row, "_split": split}
