"""The `recorded` provider: answers that somebody already has become `responses`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.collect.budget import Price
from routeyard.pipelines.common import files
from routeyard.pipelines.common import mapping as reading
from routeyard.pipelines.common.errors import RecordedError, SourceError
from routeyard.pipelines.common.mapping import Sparse, compile_field, expression, is_column, text_of
from routeyard.schemas import RESPONSES
from routeyard.schemas.errors import did_you_mean
from routeyard.schemas.questions import same_words
from routeyard.schemas.recipe import Recorded
from routeyard.schemas.statuses import ANSWERLESS, GIVEN, STATUSES, attempt_status, response_status

#: What every row has to say, and what is read as text.
NEEDED = ("query", "model")
_TEXTS = (*NEEDED, "text")
#: Ids and places that a note or an error shows; rows that become a batch of responses.
_SHOWN, _BATCH = 3, 20_000
#: (query_id, model_id, sample)
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class RecipeQuestion:
    """What the recipe asks under one `source_id`."""

    query_id: str
    question: str
    prompt: str
    choices: Sequence[str]
    references: Sequence[str]
    scorer: str = ""


def asks_the_same(sent: Any, asked: RecipeQuestion) -> bool:
    """Whether a recorded prompt asks the recipe's question, whatever text is around it.

    Case and space do not count. Where some of the options are beside the question, all have to.

    Args:
        sent: A text, or a list of chat messages.
    """
    text, question = same_words(_words_of(sent)), same_words(asked.question)
    if text in (question, same_words(asked.prompt)):
        return True
    if question not in text:
        return False
    around = text.replace(question, " ")
    options = map(same_words, asked.choices)
    there = [re.search(rf"(?<!\w){re.escape(option)}(?!\w)", around) for option in options]
    return all(there) or not any(there)


def _words_of(sent: Any) -> str:
    """The words of a prompt: a text, a message with `content`, or a list of either."""
    if isinstance(sent, Mapping):
        return _words_of(sent.get("content", sent.get("text", "")))
    if isinstance(sent, str) or not isinstance(sent, Iterable):
        return str(sent)
    return "\n".join(_words_of(part) for part in sent)


# What a row says of an answer.


def recorded_status(
    said: Mapping[str, Any], score: float | None, scorer: str, place: str
) -> str | None:
    """How a recorded attempt ended; None where the row holds neither text, score nor status.

    The row's own word counts first, then its finish reason and its error, then what there is: a
    text of blanks is `empty`, and one without a score for a question that only its source grades
    is `ungraded`.

    Raises:
        RecordedError: a word means no status that is known.
    """
    word, text = said.get("status"), said.get("text")
    finish = said.get("ended", said.get("finish_reason"))
    try:
        stated = attempt_status(
            word, text=text, score=score, finish=finish, error=said.get("error")
        )
    except LookupError as error:
        bad = str(error.args[0])[:60]
        key = bad if re.fullmatch(r"[A-Za-z][\w.-]*", bad) else json.dumps(bad, ensure_ascii=False)
        raise RecordedError(
            f"the status {bad!r} is not one of {', '.join(STATUSES)}, nor a word for one",
            where=f"{place}, fields.{'status' if error.args[0] is word else 'finish_reason'}",
            next_step="say what it means, beside `fields` of this file in collect.recorded: "
            f"statuses: {{{key}: error}} (or ok, refused, truncated, …)",
        ) from None
    if stated is None and text is None and score is None:
        return None
    if stated not in (None, "ok", "ungraded"):
        return stated
    if text is None and score is None:
        return "ungraded"
    if response_status("ok", text) == "empty":
        return "empty"
    return "ungraded" if score is None and (scorer == GIVEN or stated == "ungraded") else "ok"


def _value(read: Callable[[Any, str], Any], value: Any, place: str) -> Any:
    """A score, count or amount, or None where the row says nothing, as NaN does.

    Raises:
        RecordedError: it is something else.
    """
    if value is None:
        return None
    try:
        return read(value, place)
    except SourceError as error:
        step = "correct the file, or map it in 'fields': null where it means 'unknown'"
        if read is reading.score:
            step = "scale it in the mapping, e.g. score: '{{ rating / 10 }}'"
        raise RecordedError(error.what, where=place, next_step=step) from None


#: Field of what an answer took → how it is read.
_MEASURES: dict[str, Callable[[Any, str], Any]] = {
    "prompt_tokens": reading.count, "completion_tokens": reading.count,
    "cache_read_tokens": reading.count, "cache_write_tokens": reading.count,
    "cost_usd": reading.amount, "latency_s": reading.amount, "calls": reading.count,
}  # fmt: skip
_UNMEASURED: Mapping[str, None] = dict.fromkeys([*_MEASURES, "cost_source"])


def _took(
    said: Mapping[str, Any], score: float | None, price: Price, place: str
) -> Mapping[str, Any]:
    """What an answer took: tokens, USD, seconds and calls, as columns.

    A zero beside an answer is unknown: nobody measured it, and it is not free.
    """
    if _MEASURES.keys().isdisjoint(said):
        return _UNMEASURED
    took = {name: _value(read, said.get(name), place) for name, read in _MEASURES.items()}
    if said["status"] not in ANSWERLESS:
        answered = bool(said.get("text") or score)
        named = ["prompt_tokens", "latency_s", *["completion_tokens"] * answered]
        for name in [*named, *["cost_usd"] * (not price.free)]:
            took[name] = took[name] or None
    cost, source = took["cost_usd"], "provider"
    if cost is None:
        prompt, completion, read, write, *_ = took.values()
        cost, source = price.of(prompt, completion, read, write), "price_table"
    return took | {"cost_usd": cost, "cost_source": None if cost is None else source}


# Answers that recordings hold more than once: all are counted, and none is merged silently.

_KEPT = {
    "first": "the first of each counts",
    "last": "the last of each counts",
    "missing": "those pairs have no answer",
}


@dataclass(slots=True)
class _Repeats:
    """Rows of one recording that repeat an earlier one, or say something else about its pair."""

    policy: str
    same: int = 0
    other: int = 0
    shown: list[str] = field(default_factory=list)


@dataclass(slots=True)
class RepeatedRows:
    """What was seen over all files of a recipe, and which rows give way to others.

    Attributes:
        seen: Key → (place, hash of what the row says, number of the row among those taken).
        dropped: Numbers of taken rows that a later one replaced or contradicted.
    """

    seen: dict[Key, tuple[str, int, int]] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    _contradicted: set[Key] = field(default_factory=set)
    _of: dict[str, _Repeats] = field(default_factory=dict)
    #: Number of a taken row → counts of its file.
    _taken: list[dict[str, int]] = field(default_factory=list)

    def take(
        self, key: Key, said: Mapping[str, Any], place: str, entry: Recorded, counts: dict[str, int]
    ) -> bool:
        """Whether the row makes a response; counted as `responses`, or as `repeated`.

        Args:
            counts: Of the row's file. A later row of another file may change them.
        """
        # What it took to answer may differ between two records of one answer.
        says = hash((said.get("text"), repr(said.get("score")), repr(said.get("finish_reason"))))
        taken = key not in self.seen
        if not taken:
            before, said_before, number = self.seen[key]
            policy = entry.duplicates
            of = self._of.setdefault(entry.path, _Repeats(policy))
            other = says != said_before
            of.other, of.same = of.other + other, of.same + (not other)
            if len(of.shown) < _SHOWN:
                of.shown.append(f"{place} and {before} (id {said['query']!r}, model {key[1]!r})")
            if other and policy not in ("error", "first"):
                self._drop(number)
                taken = policy != "missing" and key not in self._contradicted
                if not taken:
                    self._contradicted.add(key)
        counts["responses" if taken else "repeated"] += 1
        if taken:
            self.seen[key] = (place, says, len(self._taken))
            self._taken.append(counts)
        return taken

    def _drop(self, number: int) -> None:
        if number not in self.dropped:
            self.dropped.add(number)
            self._taken[number]["responses"] -= 1
            self._taken[number]["repeated"] += 1

    def check(self) -> list[str]:
        """What to report about them, once all files were read.

        Raises:
            RecordedError: a recording whose `duplicates` is `error` has some.
        """
        notes = []
        for recording, of in self._of.items():
            places = "; ".join(of.shown)
            if of.policy == "error":
                steps = ["rows that repeat another can be taken out of the file"] * bool(of.same)
                if of.other:
                    steps.append("several answers to one question are samples: map 'fields.sample'")
                raise RecordedError(
                    f"{of.same + of.other:,} rows answer what another row has answered: "
                    f"{of.same:,} repeat it word for word, {of.other:,} say something else",
                    where=f"{recording}: {places}",
                    next_step="; ".join(steps) + "; or say with 'duplicates' which one counts: "
                    "'first' or 'last', or 'missing', which leaves pairs with different answers "
                    "without one",
                )
            says = [f"{of.same:,} rows repeat another word for word and count once"] * bool(of.same)
            if of.other:
                what = f"{of.other:,} rows say something else about a pair that has an answer"
                says.append(f"{what}: {_KEPT[of.policy]}")
            notes.append(f"{recording}: {'; '.join(says)} ({places})")
        return notes


# One file of recorded answers: rows become responses, and all that is left out is counted.

#: Policy of a status → the status that it becomes, and what the build says.
_POLICIES = {"missing": "unanswered", "wrong": "truncated", "scored": None,
             **{name: name for name in STATUSES}}  # fmt: skip
_COUNT_AS = {"missing": "missing", "wrong": "wrong", "scored": "their source scores them",
             **{name: f"`{name}`" for name in STATUSES}}  # fmt: skip
_COUNTED = ("responses", "missing", "not_asked", "other_models", "prompts", "other_questions",
            "repeated")  # fmt: skip


@dataclass(slots=True)
class RecordedFileReader:
    """Responses of one file, and what was counted on the way.

    Attributes:
        index: `source_id` → question.
        pool: Models that may answer, and their prices.
        repeats: Pairs that have an answer, over all files.
        sparse: What rows leave out, over all files of the entry.
        strangers: Ids of rows about questions that the recipe does not ask, the first few.
        reworded: Places of prompts that ask something else, the first few.
    """

    entry: Recorded
    index: Mapping[str, RecipeQuestion]
    pool: Mapping[str, Price]
    repeats: RepeatedRows
    path: Path
    sparse: Sparse
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    strangers: list[str] = field(default_factory=list)
    reworded: list[str] = field(default_factory=list)
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    _read: dict[str, Any] = field(default_factory=dict)
    #: Fields that are mapped to a column as it is.
    _columns: dict[str, str] = field(default_factory=dict)
    _policies: dict[str, str] = field(default_factory=dict)

    def rows(self) -> Iterator[dict[str, Any]]:
        for name, text in self.entry.fields.model_dump(exclude_none=True).items():
            read = compile_field(text, where=f"{self.path.name}, fields.{name}")
            self._read[name] = self.sparse.reader(name, read, needed=name in NEEDED)
            if is_column(text):
                self._columns[name] = text
        self._policies = {_as_word(word): what for word, what in self.entry.statuses.items()}
        for number, row in enumerate(files.rows(self.path, self.entry.format), 1):
            line = getattr(row, "line", None)
            place = f"{self.path.name}, {'line' if line else 'row'} {line or number}"
            self.sparse.see(row)
            response = self._response(self._fields(row, place), place)
            if response is not None:
                yield response

    def _fields(self, row: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Field → value of every mapped field.

        Raises:
            RecordedError: the row names no question or no model, or its answer is no text.
            RecipeError: a mapping fails, or the row lacks a needed key.
        """
        said = None
        if len(self._columns) == len(self._read):  # at once, where the row has all of them
            try:
                said = {name: row[column] for name, column in self._columns.items()}
                self.sparse.whole(said)
            except KeyError:  # a key within a key, or one that the row leaves out
                pass
        said = said or {name: read(row) for name, read in self._read.items()}
        for name, value in said.items():
            if isinstance(value, float) and value != value:
                said[name] = None
        for name in NEEDED:
            if said[name] is None or said[name] == "":
                raise RecordedError(
                    f"a row names no {'question' if name == 'query' else 'model'}",
                    where=f"{place}, fields.{name}",
                    next_step="give it one, or take the row out of the file",
                )
        for name in _TEXTS:
            if (value := said.get(name)) is not None and type(value) is not str:
                mapped = getattr(self.entry.fields, name)
                said[name] = text_of(value, mapped, name, place, error=RecordedError)
        return said

    def _response(self, said: dict[str, Any], place: str) -> dict[str, Any] | None:
        """A response; None where the row makes none, which is counted."""
        model, entry, counts = said["model"], self.entry, self.counts
        if model not in self.pool:
            if entry.other_models == "error":
                raise not_in_the_pool([model], self.pool, entry, where=place)
            counts["other_models"] += 1
            return None
        asked = self.index.get(said["query"])
        if asked is None:
            counts["not_asked"] += 1
            if said["query"] not in self.strangers and len(self.strangers) <= _SHOWN:
                self.strangers.append(said["query"])
            return None
        if said.get("text") == "" and files.format_of(self.path, entry.format) == "csv":
            said["text"] = None  # a CSV cannot tell an empty answer from none
        score = self._by_policy(said, _value(reading.score, said.get("score"), place))
        status = recorded_status(said, score, asked.scorer, place)
        if status is None:
            counts["missing"] += 1
            return None
        if self._other_question(said, asked, place) and entry.other_questions == "ignore":
            return None
        key = (asked.query_id, model, int(said.get("sample") or 0))
        if not self.repeats.take(key, said, place, entry, counts):
            return None
        said["status"] = status
        without, graded = status in ANSWERLESS, said.get("graded_against")
        against = [graded] if isinstance(graded, str) else graded
        return {
            "query_id": asked.query_id,
            "model_id": model,
            "sample": key[2],
            "text": None if without else said.get("text"),
            "status": status,
            "error": _short(said.get("error")) or _short(said.get("text")) if without else None,
            "finish_reason": said.get("finish_reason"),
            "served_model": said.get("served_model"),
            "attempts": 1,
            "given_score": score,
            "graded_against": against if against and against != asked.references else None,
            **_took(said, score, self.pool[model], place),
        }

    def _by_policy(self, said: dict[str, Any], score: float | None) -> float | None:
        """The score by what the recipe says of the row's status, which is translated in place."""
        for name in ("status", "finish_reason") if self._policies else ():
            if (policy := self._policies.get(_as_word(said.get(name)))) is None:
                continue
            self.ended[str(said[name]), policy] += 1
            said["status"] = _POLICIES[policy]
            if name == "finish_reason":
                said["ended"] = None  # its meaning is stated; the word is kept
            return 0.0 if policy == "wrong" else score
        return score

    def _other_question(self, said: dict[str, Any], asked: RecipeQuestion, place: str) -> bool:
        """Whether the row states that something else was asked; counted."""
        sent = said.get("prompt")
        if sent is None or sent == "":
            return False
        self.counts["prompts"] += 1
        if asks_the_same(sent, asked):
            return False
        self.counts["other_questions"] += 1
        if len(self.reworded) < _SHOWN:
            self.reworded.append(f"{place} (id {said['query']!r})")
        return True

    def check(self) -> None:
        """Look at the file as a whole, once all of it was read.

        Raises:
            RecordedError: nothing matches, or answers were given to other questions.
        """
        counts, name = self.counts, self.path.name
        other, keep = counts["other_questions"], self.entry.other_questions
        if other and keep == "error":
            raise RecordedError(
                f"{other:,} of {counts['prompts']:,} recorded prompts of {name} do not ask what "
                "the recipe asks under the same id",
                where=f"{'; '.join(self.reworded)}, fields.prompt",
                next_step="correct the questions or the recording; or write 'other_questions: "
                "ignore' to leave those answers out, 'keep' to take them (the card says how many)",
            )
        if not (counts["responses"] or counts["missing"] or counts["repeated"] or other):
            raise RecordedError(
                f"no row of {name} matches a question of the recipe",
                where=str(self.path),
                next_step="map 'fields.query' to the column that holds the source's own id"
                + (f": the file names {few(self.strangers)}, " if self.strangers else ": ")
                + f"the questions are {few(list(self.index)[:_SHOWN])}",
            )

    def notes(self) -> Iterator[str]:
        """What to report about the file, once all files were read."""
        counts = self.counts
        if counts["missing"]:
            yield f"{counts['missing']:,} rows hold neither text nor score: missing answers"
        for (word, policy), n in sorted(self.ended.items()):
            yield f"{n:,} answers that ended as {word[:60]!r} count as {_COUNT_AS[policy]}"
        if counts["not_asked"]:
            yield (
                f"{counts['not_asked']:,} rows are about questions that the recipe does not ask "
                f"({few(self.strangers)})"
            )
        if counts["other_models"]:
            yield f"{counts['other_models']:,} rows of models outside the pool are left out"
        if other := counts["other_questions"]:
            what = "left out" if self.entry.other_questions == "ignore" else "taken all the same"
            yield (
                f"{other:,} answers were given to prompts that do not ask the recipe's question: "
                f"{what} ({'; '.join(self.reworded)})"
            )
        if self.entry.fields.prompt is None:
            yield (
                f"that its {counts['responses']:,} answers were given to these questions rests on "
                "the ids alone: no column states what was asked (fields.prompt)"
            )


def _as_word(status: Any) -> str:
    """A status without case, spaces and hyphens."""
    return "_".join(str(status).strip().lower().replace("-", " ").split())


def _short(value: Any) -> str | None:
    """An error's message, no longer than a person reads."""
    return " ".join(str(value).split())[:500] or None if value is not None else None


def not_in_the_pool(
    strangers: Sequence[str], pool: Collection[str], entry: Recorded, *, where: str
) -> RecordedError:
    """Models of a recording that the recipe does not have."""
    first, item = strangers[0], len(strangers) == 1
    here = expression(entry.fields.model)
    renamed = f"{{{{ {{{first!r}: '…'}}.get({here}, {here}) }}}}"
    return RecordedError(
        f"the model{'' if item else 's'} {few(strangers)} "
        f"ha{'s' if item else 've'} responses but {'is' if item else 'are'} not in the pool",
        where=where,
        next_step=f"add it to the pool ({did_you_mean(first, pool)}); where the file calls a model "
        f'by another name, translate it: fields.model: "{renamed}"; or set '
        "'other_models: ignore'",
    )


def few(names: Sequence[str]) -> str:
    """The first names, quoted."""
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown + (", …" if len(names) > _SHOWN else "")


@dataclass(frozen=True, slots=True)
class RecordedImport:
    """Responses in key order; per file, where they came from; and what to report about them.

    Attributes:
        places: (query_id, model_id, sample) → file and row of the answer.
    """

    responses: pa.Table
    provenance: list[dict[str, Any]]
    notes: list[str]
    places: Mapping[Key, str]


def import_recorded(
    queries: pa.Table, models: pa.Table, entries: Sequence[Recorded], *, base: Path
) -> RecordedImport:
    """Read recorded responses and match them with queries by `source_id`.

    A row without text and without score is an answer that is missing: it makes
    no response and is counted. Rows about questions that the recipe does not
    ask, keys that a row leaves out and prompts that ask something else are
    counted too, and said in `notes`. A cost that the recording does not state is
    tokens × the pool's price, where both are known.

    Raises:
        RecordedError: responses occur more than once and `duplicates` does not say which
            counts, or one names a model outside the pool, was given to another question,
            or no row matches a question.
        RecipeError: a mapping names a column that no row has.
        SourceError: a file is missing or damaged.
    """
    pool = {row["model_id"]: Price.of_row(row) for row in models.to_pylist()}
    repeats = RepeatedRows()
    batches: list[pa.RecordBatch] = []
    provenance: list[dict[str, Any]] = []
    notes: list[str] = []
    readers: list[RecordedFileReader] = []
    sparse_notes: list[str] = []
    for entry in entries:
        index = _index(queries, entry)
        sparse = Sparse(entry.fields.model_dump(exclude_none=True).values())
        for path in files.expand(entry.path, base=base, where="collect.recorded"):
            reader = RecordedFileReader(entry, index, pool, repeats, path, sparse)
            rows = reader.rows()
            while batch := list(islice(rows, _BATCH)):
                batches.append(_batch(batch))
            reader.check()
            readers.append(reader)
        sparse.check()
        sparse_notes += [f"{entry.path}: {note}" for note in sparse.notes()]
    for reader in readers:  # a later file may have replaced what an earlier one said
        notes += [f"{reader.path.name}: {note}" for note in reader.notes()]
        sha256 = files.sha256(reader.path)
        provenance.append({"file": reader.path.name, "sha256": sha256, **reader.counts})
    notes += sparse_notes
    notes += repeats.check()
    table = pa.Table.from_batches(batches, schema=RESPONSES.schema)
    if repeats.dropped:
        stays = np.ones(table.num_rows, dtype=bool)
        stays[list(repeats.dropped)] = False
        table = table.filter(pa.array(stays))
    answered = set(table.column("model_id").unique().to_pylist())
    if silent := sorted(pool.keys() - answered):
        notes.append(f"no answer is recorded of {len(silent)} of the pool's models: {few(silent)}")
    order = [(name, "ascending") for name in RESPONSES.key]
    checked = RESPONSES.check(table.sort_by(order), where="recorded responses")
    places = {key: place for key, (place, *_) in repeats.seen.items()}
    return RecordedImport(checked, provenance, notes, places)


def _index(queries: pa.Table, entry: Recorded) -> dict[str, RecipeQuestion]:
    """source_id → the question of the entry's source."""
    index: dict[str, RecipeQuestion] = {}
    asked = ["query_id", "question", "prompt", "choices", "references", "scorer"]
    names = ["source", "source_id", *asked]
    rows = queries.select(names).to_pylist()
    sources = {row["source"] for row in rows}
    if entry.source is not None and entry.source not in sources:
        raise RecordedError(
            f"there is no source {entry.source!r} in the recipe",
            where="collect.recorded",
            next_step=did_you_mean(entry.source, sources),
        )
    for row in rows:
        source, source_id = row.pop("source"), row.pop("source_id")
        if entry.source is not None and source != entry.source:
            continue
        if source_id in index:
            raise RecordedError(
                f"the id {source_id!r} is in more than one source",
                where=f"collect.recorded, {entry.path}",
                next_step="set 'source' to the source that these responses answer",
            )
        index[source_id] = RecipeQuestion(**row)
    return index


def _batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Responses as a batch; all rows have the same keys in one order."""
    names = list(rows[0])
    said = dict(zip(names, zip(*(row.values() for row in rows), strict=True), strict=True))
    try:
        arrays = [
            pa.array(said[f.name], f.type) if f.name in said else pa.nulls(len(rows), f.type)
            for f in RESPONSES.schema
        ]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise RecordedError(
            f"a recorded column has values of the wrong type: {error}",
            where="collect.recorded",
            next_step="convert it in the mapping, e.g. prompt_tokens: '{{ tokens | int }}'",
        ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=RESPONSES.schema)
