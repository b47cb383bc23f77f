"""A source's records as questions and answers, by a mapping of names: the one form of all tables.

A reader gives records with their place in the source: `(where, record)`. A mapping says which key
is what, in words of our own; it never looks at values. Both together are an importer.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from routeyard.pipelines.common import files
from routeyard.pipelines.common.mapping import compile_field, expression, is_column
from routeyard.pipelines.ingest.importers import reading
from routeyard.pipelines.ingest.importers.reading import (
    FORMATS,
    ImportedAnswer,
    ImportedQuestion,
    Importer,
    ImportResult,
)
from routeyard.pipelines.ingest.results.values import factor, other_money
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe import Recorded, RecordedFields

#: A record and where a person finds it: file and row.
Record: TypeAlias = "tuple[str, dict[str, Any]]"
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


def _own_names(of: type) -> dict[str, str]:
    """Each field under its own name: what a reader's records have that needs no mapping."""
    return {item.name: item.name for item in fields(of)}


@dataclass(frozen=True, slots=True)
class Mapped:
    """Which keys of a source's records hold what.

    A key may be a path (`usage.input_tokens`), the first of several that a record has
    (`a | b`), an expression of recipes (`{{ dataset }}/{{ index }}`), or a constant (`=math`). What
    a record lacks is unknown.

    Attributes:
        question: Field of `ImportedQuestion` → key of a record; by default the fields' own names.
            Where no id is mapped, a question is known by a hash of what is asked.
        answer: Field of `ImportedAnswer` → key of a record, or of one of its answers; counts
            and seconds of an answer with steps are those of its steps.
        step: Column of `steps` → key of one of an answer's `_steps`; by default their own names.
        answers: Path of the list that holds a record for each answer.
        needs: Keys without which a record is not of the format.
        answer_needs: Keys without which one of its answers is not.
        records: Kind of the files, where nothing but the mapping has to be known of them.
        repeated: Several answers of one model to a question are its samples.
        first_counts: Records of one id may ask it in other words; the first is the question.
        without: Fields, one of which an answer must have → why those without are left out.
        scale: Lowest and highest score.
        logarithm: Scores are those of probabilities.
        apart: Pattern of a file's name → what files of a folder are that hold none of the records;
            an empty text for those that need no word.
    """

    question: Mapping[str, str] = field(default_factory=lambda: _own_names(ImportedQuestion))
    answer: Mapping[str, str] = field(default_factory=lambda: _own_names(ImportedAnswer))
    step: Mapping[str, str] = field(default_factory=dict)
    answers: str = ANSWERS
    needs: Sequence[str] = ()
    answer_needs: Sequence[str] = ()
    records: str = ""
    repeated: bool = False
    first_counts: bool = False
    without: Mapping[str, str] | None = None
    scale: tuple[float, float] = (0.0, 1.0)
    logarithm: bool = False
    apart: Mapping[str, str] = field(default_factory=dict)

    def read(self, records: Iterable[Record], result: ImportResult) -> Iterator[ImportedAnswer]:
        """The answers of some records, whose questions the result gets.

        Raises:
            SourceError: a value is not of its kind, with its place; two questions share an id.
        """
        for where, record in records:
            asked = _fields(self.question, record, where)
            asked = {k: _QUESTION[k](v) if k in _QUESTION else v for k, v in asked.items()}
            if "id" not in self.question:
                asked["id"] = hashlib.sha256(asked["question"].encode()).hexdigest()[:12]
            question = ImportedQuestion(**asked)
            if not (self.first_counts and question.id in result.questions):
                result.ask(question, where)
            listed = value_of(record, self.answers, where)
            for item in (record,) if listed is _ABSENT else reading.objects(listed, where):
                at = item.get("_where", where)
                reading.need(item, self.answer_needs, at)
                calls = self._calls(item, at)
                answer = self._answer(question.id, _fields(self.answer, item, at), calls, at)
                lacking = self._lacking(answer)
                if lacking is not None:
                    result.left_out[lacking] += 1
                    continue
                if self.repeated:
                    answer["sample"] = result.next_sample(question.id, answer["model"])
                result.steps += _steps(answer, calls)
                yield ImportedAnswer(**answer)

    def _calls(self, item: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
        calls = item.get(STEPS, ())
        if not self.step:
            return list(calls)
        return [_read(_fields(self.step, call, where), where) for call in calls]

    def _answer(
        self, query: str, said: dict[str, Any], calls: list[dict[str, Any]], where: str
    ) -> dict[str, Any]:
        answer = (reading.sums_of(calls) if calls else {}) | _read(said, where)
        low, high = self.scale
        if "score" in said:
            score = reading.number(said["score"], where)
            if self.logarithm and score is not None:
                score = math.exp(min(score, 700.0))
            answer["score"] = reading.score(score, where, low=low, high=high)
        if "cost_usd" in said:
            tokens = answer.get("prompt_tokens" if calls else "completion_tokens")
            answer["cost_usd"] = reading.spent(said["cost_usd"], tokens, where)
        return {**answer, "query": query}

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
    """Rows of `steps` of an answer: where it is not known, every call but the last called tools."""
    key = {
        "query_id": answer["query"], "model_id": answer["model"],
        "sample": answer.get("sample", 0), "outcome": answer.get("score"),
    }  # fmt: skip
    for number, call in enumerate(calls):
        acted_by = str(call.pop("acted_by", None) or answer["model"])
        called = call.pop("called", number < len(calls) - 1)
        yield reading.step(key, number, acted_by, called, **call)


def _fields(keys: Mapping[str, str], record: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Field → value of a record, without those that it lacks."""
    said = {field: value_of(record, key, where) for field, key in keys.items()}
    return {field: value for field, value in said.items() if value is not _ABSENT}


def value_of(record: Mapping[str, Any], key: str, where: str) -> Any:
    """What a record has under a key of a mapping; a marker where it has nothing there."""
    if key in record:
        return record[key]
    if key.startswith("="):
        return key[1:]
    if "{{" in key:
        return _expression(key)(record)
    if "|" in key:
        several = (value_of(record, part.strip(), where) for part in key.split("|"))
        return next((value for value in several if value is not _ABSENT), _ABSENT)
    first, dot, rest = key.partition(".")
    if not dot or first not in record:
        return _ABSENT
    return value_of(reading.obj(record[first], where), rest, where)


@cache
def _expression(text: str) -> Callable[[Mapping[str, Any]], Any]:
    return compile_field(text, where="mapping")


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
    _check_unit(mapping.get("cost"), "--map cost")
    return mapping


_MONEY = {"foreign": "no US dollars", "rate": "a price, not what an answer cost",
          "unclear": "milli-, micro- or million dollars"}  # fmt: skip


def _check_unit(column: str | None, where: str) -> None:
    """Stop at a cost whose column by its name holds other money, prices, or an unclear unit.

    Raises:
        BadInput: says which.
    """
    if column is None or column.startswith("=") or not is_column(column):
        return
    if kind := other_money(column):
        raise BadInput(
            f"expected a column of USD, found {column!r}: by its name it holds {_MONEY[kind]}",
            where=where,
            next_step="name a column of USD, or leave the cost out; of results and recordings an "
            f"expression gives USD, as in {{{{ _row[{column!r}] * 1.08 }}}}",
        )


#: Role → field of a recording.
FIELDS = {
    "arm": "model", "question": "query", "text": "text", "score": "score", "sample": "sample",
    "prompt_tokens": "prompt_tokens", "completion_tokens": "completion_tokens",
    "cached_tokens": "cache_read_tokens", "cost": "cost_usd", "latency": "latency_s",
    "served_model": "served_model", "status": "status", "error": "error", "prompt": "prompt",
}  # fmt: skip


def with_fields(entry: Recorded) -> Recorded:
    """A recording with `fields` in place of what its `mapping` says of roles."""
    _check_unit(entry.mapping.get("cost") or entry.fields.cost_usd, f"recording {entry.path}")
    if not entry.mapping:
        return entry
    said = {FIELDS[role]: in_units(role, column) for role, column in entry.mapping.items()}
    return entry.model_copy(update={"fields": RecordedFields(**said), "mapping": {}})


def in_units(role: str, column: str, *, low: float = 0.0, by: float | None = None) -> str:
    """A recipe's mapping of what a person says of a role, in USD, in seconds or from 0 to 1.

    Args:
        low: What is 0 on the column's scale.
        by: What makes of its unit the role's; by default as the column's name says.
    """
    if column.startswith("="):
        return f"{{{{ {column[1:]!r} }}}}"
    if not is_column(column):
        return column
    by = factor(column, role) if by is None else by
    if by == 1 and low == 0:
        return column
    value = f"_row[{column!r}]"
    number = f"({value} | float - {low:g})" if low else f"{value} | float"
    return f"{{{{ none if {value} in (none, '') else {number} * {by:g} }}}}"


def mapping_of(name: str) -> Mapped:
    """The mapping of a format in `importers.yaml`."""
    return Mapped(**FORMATS[name].get("mapping", {}))


#: What `importers.yaml` says of a format and its importer does not keep.
_APART = ("reader", "mapping", "metrics")


def importer(name: str, *, newest_first: re.Pattern[str] | None = None) -> Callable[..., Importer]:
    """A decorator: the importer of a format in `importers.yaml`, of what reads or explains it.

    Decorated is `records(paths, result)`, which gives the records of all files; where the format's
    mapping names the kind of its `records`, nothing, or `row(record, where, path, result)`, which
    gives the further keys of one record, and None for one that is left out.
    """

    def of(explained: Callable[..., Any] = _nothing_more) -> Importer:
        mapped = mapping_of(name)
        records = partial(_rows, mapped, explained) if mapped.records else explained

        def read(paths: Sequence[Path], result: ImportResult) -> Iterator[ImportedAnswer]:
            yield from mapped.read(records(paths, result), result)
            again = sum(n - 1 for n in result.samples.values())
            if mapped.records and again:
                result.left_out["nothing; repeats of a model and prompt kept as samples"] = again

        about = {k: v for k, v in FORMATS[name].items() if k not in _APART}
        return Importer(name=name, read=read, newest_first=newest_first, **about)

    return of


#: Kind of `records` → what reads them; others are known by the names of files.
_READERS: dict[str, Callable[[Path], Iterable[dict[str, Any]]]] = {
    "json": reading.json_rows, "list": reading.json_list,
}  # fmt: skip


def _nothing_more(*_: object) -> dict[str, Any]:
    return {}


def _rows(
    mapped: Mapped, row: Callable[..., Any], paths: Sequence[Path], result: ImportResult
) -> Iterator[Record]:
    """The records of some files, with what the files' names say and what a row means."""
    for path in paths:
        apart = (why for pattern, why in mapped.apart.items() if path.match(pattern))
        why = next(apart, None) if result.source.is_dir() else None
        if why is not None:
            result.left_out[why] += bool(why)
            continue
        kind = mapped.records
        rows = _READERS[kind](path) if kind in _READERS else files.rows(path, kind or None)
        said = {
            "_split": reading.split_of(path.name),
            "_file": path.stem,
            "_folder": path.parent.name,
        }
        among_others = result if len(paths) > 1 else None
        placed = reading.records(rows, mapped.needs, result.name_of(path), among_others)
        for number, (where, record) in enumerate(placed):
            own = row(record, where, path, result)
            if own is not None:
                yield where, {**said, "_number": number, **record, **own}


#: Role of a table → fields of its questions.
_ASKED = {
    "question": ("id",), "suite": ("task",), "prompt": ("question", "prompt"),
    "reference": ("references",), "split": ("split",),
}  # fmt: skip
_TABLES = ("**/*.csv", "**/*.tsv", "**/*.jsonl", "**/*.ndjson", "**/*.json", "**/*.parquet")


def table_importer(mapping: Mapping[str, str]) -> Importer:
    """The importer of any table with a row for each answer, whose columns a person names.

    Args:
        mapping: Role → column, of `parse_map`.

    Raises:
        BadInput: neither a question's id nor its text is named, or no arm, or no answer.
    """
    roles = [*_ASKED, *FIELDS, "prompt"]
    asked = {"question", "prompt"} & mapping.keys()
    if not asked or "arm" not in mapping or not {"text", "score"} & mapping.keys():
        raise BadInput(
            "expected the columns of the model, of the question and of its text or score",
            where="--map",
            next_step="write --map arm=COLUMN,question=COLUMN,score=COLUMN; roles are "
            + ", ".join(dict.fromkeys(roles)),
        )
    if unknown := [role for role in mapping if role not in roles]:
        raise BadInput(f"a table that is imported has no {unknown[0]!r}", where="--map")
    question = {of: mapping[role] for role in mapping if role in _ASKED for of in _ASKED[role]}
    if "prompt" not in mapping:
        named = "{{ " + expression(mapping["question"]) + " }}"
        question["question"] = f"[question {named}: its text is not in the file]"
    answer = {
        FIELDS[role]: column if column.startswith("=") else in_units(role, column)
        for role, column in mapping.items()
        if role not in _ASKED
    }
    columns = [c.partition(".")[0] for c in mapping.values() if is_column(c) and c[0] != "="]
    mapped = Mapped({"task": "=answers", **question}, answer, repeated="sample" not in mapping)

    def note(row: dict[str, Any], *_: object) -> dict[str, Any]:
        seen.update(row)
        return {}

    seen: set[str] = set()

    def read(paths: Sequence[Path], result: ImportResult) -> Iterator[ImportedAnswer]:
        yield from mapped.read(_rows(mapped, note, paths, result), result)
        reading.need(dict.fromkeys(seen), columns, "--map")

    return Importer(
        name="table", title="Answers of a table", url="a file of one's own", files=_TABLES,
        layout="CSV, JSONL or Parquet with a row for each answer", license="NOASSERTION",
        lacks=(), read=read,
    )  # fmt: skip
