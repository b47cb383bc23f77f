"""Rows of a source → the `queries` table: uniform prompts and stable ids."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NoReturn

import pyarrow as pa

from routeyard.pipelines.common.arrays import DENSE, EXTENSION, SLICE
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import Line
from routeyard.pipelines.common.mapping import (
    BYTES,
    NoColumn,
    Sparse,
    compile_field,
    expression,
    keys,
    letter,
    text_key,
    text_of,
)
from routeyard.pipelines.ingest.images import SourceImages
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, without_marks
from routeyard.schemas.errors import did_you_mean
from routeyard.schemas.images import IMAGES, QuestionImage, with_marks
from routeyard.schemas.questions import GROUP
from routeyard.schemas.recipe import Fields, Source
from routeyard.schemas.statuses import GIVEN, NO_RULE

# What a row lists: its options, whose places are letters, and its references, as texts.
#
# A letter counts places, so an option is never left out from before another one: a null, NaN or
# empty text there is an error. At the end they are padding, as tables with a column for each
# option have it, and left out. What is no text (an object, a list) is an error too: taken as it
# is, its keys or its Python would be asked.


def options(value: Any, mapped: str | Sequence[str], place: str) -> list[str]:
    """The options of a row, each at the place its letter counts, without the marks of all
    places (`A) Paris`, `B) Lyon`); those at the end that are empty are left out.

    Args:
        value: What the mapping gave.
        mapped: The mapping, for the error's next step.
        place: File, row and id, for errors.

    Raises:
        SourceError: an option before others is empty, or one is no text.
    """
    results = [
        "" if _nothing(item) else str(item) for item in _items(value, mapped, "choices", place)
    ]
    while results and not results[-1].strip():
        results.pop()
    hole = next((at for at, text in enumerate(results) if not text.strip()), None)
    if hole is not None:
        listed = expression(mapped)
        raise SourceError(
            f"option {letter(hole) if hole < 26 else hole + 1} of {len(results)} has no text, and "
            "the letters of the others count it",
            where=place,
            next_step="complete the row, or leave it out with 'exclude'; to show such options as "
            f"empty write choices: \"{{{{ {listed} | map('default', '(empty)', true) | list }}}}\""
            ", and where the letters count only those with a text, "
            f"\"{{{{ {listed} | reject('in', [none, '']) | list }}}}\"",
        )
    return list(without_marks(tuple(results)))


def listed_references(value: Any, mapped: str | Sequence[str], place: str) -> list[str]:
    """The references of a row; null ones are left out: an answer may meet any of them.

    Raises:
        SourceError: one is no text.
    """
    items = _items(value, mapped, "references", place)
    return [str(item) for item in items if not _nothing(item)]


def _items(value: Any, mapped: str | Sequence[str], field: str, place: str) -> list[Any]:
    """The entries of a list, each a text, number or nothing; one value is a list of one."""
    if _nothing(value):
        return []
    if isinstance(value, Mapping):
        inside = expression(mapped)
        whole = field == "choices"
        taken = f"{inside}.values() | list" if whole else f"{inside}[{text_key(value)!r}]"
        raise SourceError(
            f"fields.{field} gives an object (with {keys(value)}) where texts are needed",
            where=place,
            next_step=f'write {field}: "{{{{ {taken} }}}}"',
        )
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        value = [value]
    items = list(value)
    for at, item in enumerate(items):
        if isinstance(item, Iterable) and not isinstance(item, str):
            _refuse_entry(item, items, at, mapped, field, place)
    return items


def _refuse_entry(
    item: Any, items: Sequence[Any], at: int, mapped: str | Sequence[str], field: str, place: str
) -> NoReturn:
    kind, taken, through = "a list", "[-1]", "map('last')"
    if isinstance(item, Mapping):
        kind, taken = f"an object (with {keys(item)})", f"[{text_key(item)!r}]"
        through = f"map(attribute={text_key(item)!r})"
    if isinstance(mapped, str):
        result = f'"{{{{ {expression(mapped)} | {through} | list }}}}"'
    else:
        # Each entry of a list of mappings gives one text.
        result = f'["{{{{ {expression(mapped[at])}{taken} }}}}", …]'
    step = f"write {field}: {result}, or another expression that gives texts"
    if isinstance(item, bytes):
        kind, step = "bytes", BYTES
    raise SourceError(
        f"entry {at + 1} of the {len(items)} that fields.{field} gives is {kind}, no text",
        where=place,
        next_step=step,
    )


def _nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


# One row of a source, read by its mapping: id, question, options, references; or a clear error.

Row = Mapping[str, Any]

#: What every row has to say, where it is mapped.
_NEEDED = ("id", "question", "scorer")
#: Places that an error shows.
_SHOWN = 3
#: Takes the rule's place for queries that no rule decides: neither form nor reference is asked for.
_NO_RULE = Scorer(NO_RULE, "0", lambda asked, output: ScoreResult("abstain"), needs_reference=False)


class SourceRowReader:
    """Reads the rows of one source; ids are unique in it.

    Raises:
        SourceError: the source names no fields or no scorer.
        UnknownName: there is no scorer of that name.
    """

    def __init__(self, source: Source, where: str):
        self.source = source
        self.where = where
        self.fields, self.scorer_name = _complete(source)
        self.scorer = _scorer(self.scorer_name, where=f"source {source.name!r}")
        #: Which keys rows leave out; checked and reported once all rows were read.
        self.sparse = Sparse(_named(source) if not source.on_hub else None)
        may_lack = {"question"} if source.incomplete == "remove" else set()
        self._read = {
            name: self.sparse.reader(name, read, needed=name in _NEEDED and name not in may_lack)
            for name, read in _readers(self.fields, where).items()
        }
        #: Id → number and hash of its first row; checked once all rows were read.
        self._ids: dict[str, tuple[int, int]] = {}
        self._twice: list[tuple[str, int, bool]] = []
        #: How references name options: a first place of each way.
        self._ways: dict[str, str] = {}

    def question(self, row: Row, number: int) -> tuple[str, str | None]:
        """(id, question) of a row; from here on `scorer` is the row's own. The question is None
        where the source leaves rows without one out.

        Raises:
            SourceError: there is no question.
        """
        place = place_of(row, self.where, number)
        if "scorer" in self._read:
            self.scorer_name = self.text("scorer", row, place) or ""
            self.scorer = _scorer(self.scorer_name, where=f"{place}, fields.scorer")
        source_id = self.text("id", row, place) if "id" in self._read else str(number)
        if not source_id:
            raise SourceError(
                f"source {self.source.name!r} has a row without an id",
                where=place,
                next_step="give it one, leave it out with 'exclude', or leave 'fields.id' out: "
                "rows are numbered then",
            )
        content = hash(repr(row["_item"] if "_item" in row else list(row.items())))
        first, earlier = self._ids.setdefault(source_id, (number, content))
        if first != number:
            self._twice.append((source_id, number, earlier == content))
        question = self.text("question", row, place) or ""
        if not question.strip():
            if self.source.incomplete == "remove":
                return source_id, None
            raise SourceError(
                f"source {self.source.name!r} has a row without a question",
                where=place,
                next_step="correct 'fields.question', or set 'incomplete: remove' to leave "
                "such rows out (they are listed in removals)",
            )
        return source_id, question

    def check(self) -> None:
        """Stop at ids that rows share, once all rows were read.

        Raises:
            SourceError: counts them; says whether their rows are equal, and shows some. Or
                references may be letters and may be texts of options.
            NoColumn: a mapped key that no row had.
        """
        self.sparse.check()
        if len(self._ways) > 1:
            raise SourceError(
                f"references of source {self.source.name!r} are texts of options, and one that is "
                "a letter is the text of another option",
                where="; ".join(self._ways.values()),
                next_step="map 'references' to the letters of the right options",
            )
        if not self._twice:
            return
        same = sum(alike for _, _, alike in self._twice)
        other = len(self._twice) - same
        places = [
            f"id {item!r} in rows {self._ids[item][0]} and {number}"
            for item, number, _ in self._twice[:_SHOWN]
        ]
        steps = []
        if same:
            steps.append("take rows that repeat another out of the file")
        if other:
            steps.append("map 'id' to a column whose values are unique, or mend those rows")
        raise SourceError(
            f"{len(self._twice):,} rows of source {self.source.name!r} have the id of another: "
            f"{same:,} repeat it word for word, {other:,} say something else",
            where=f"{self.where}: {'; '.join(places)}",
            next_step="; ".join(steps),
        )

    def answers(self, row: Row, number: int, source_id: str) -> tuple[list[str], list[str]] | None:
        """(options, references) of a row; None where the source leaves rows without one out.

        Raises:
            SourceError: there is no reference, or it is not the letter of an option; an option
                before others has no text; what is listed is no text.
            NoColumn: no row so far has the column of the references.
        """
        place = place_of(row, self.where, number)
        here = f"{place}, id {source_id!r}"
        choices, references = (
            read(self._value(name, row), getattr(self.fields, name), here)
            for name, read in (("choices", options), ("references", listed_references))
        )
        if self.scorer.needs_reference and not any(text.strip() for text in references):
            self.sparse.check("references")
            if self.source.incomplete == "remove":
                return None
            raise SourceError(
                f"source {self.source.name!r} has a question without a reference",
                where=here,
                next_step="map 'fields.references', or set 'incomplete: remove' "
                "to leave such questions out (they are listed in removals)",
            )
        if self.scorer.lettered:
            references = _letters(references, choices, place, self._ways)
        return choices, references

    def _value(self, name: str, row: Row) -> Any:
        return self._read[name](row) if name in self._read else None

    def text(self, name: str, row: Row, place: str) -> str | None:
        """A mapped text (`prompt`, `task`, `domain`); None where it is not mapped or not there.

        Raises:
            SourceError: it is a list or an object.
        """
        value = self._value(name, row)
        return None if value is None else text_of(value, getattr(self.fields, name), name, place)

    def images(self, row: Row) -> Any:
        """What `fields.images` gives; None where it is not mapped."""
        return self._value("images", row)

    def prompt(
        self, row: Row, place: str, question: str, choices: Sequence[str],
        images: Sequence[QuestionImage],
    ) -> str:  # fmt: skip
        """The mapped prompt, or one of the question, its choices and an instruction."""
        if prompt := self.text("prompt", row, place):
            return with_marks([prompt], images)[0] if images else prompt
        own = self.source.instruction
        instruction = self.scorer.instruction if own is None else own
        return uniform_prompt(question, choices, instruction)

    def metadata(
        self, row: Row, place: str, number: int, images: Sequence[QuestionImage]
    ) -> dict[str, Any]:
        """The columns of `fields.metadata`, None where a row has nothing; with what the source
        states of all rows, and the row's slice, group and images.
        """
        source = self.source
        metadata = {name: self._read[f"metadata:{name}"](row) for name in self.fields.metadata}
        for key in ("percent", "answer_in", "tolerance"):
            if (value := getattr(source, key)) is not None:
                metadata.setdefault(key, value)
        _check_percent(metadata.get("percent"), place)
        if source.dense is not None:
            metadata[SLICE] = DENSE if number < source.dense else EXTENSION
        if (group := self.text("group", row, place)) is not None:
            metadata[GROUP] = group
        if images:
            metadata[IMAGES] = [image.entry for image in images]
        return metadata


def place_of(row: Row, where: str, number: int) -> str:
    """File and line of a row that knows them, else its number in the source, from 1."""
    return getattr(row, "place", None) or f"{where}, row {number + 1}"


def each_item(source: Source, rows: Iterable[Row], *, where: str) -> Iterator[Row]:
    """The rows, or one for each item of the list that `source.each` names.

    Raises:
        SourceError: a row has no list there.
    """
    if source.each is None:
        yield from rows
        return
    read = compile_field(source.each, where=f"{where}, each")
    for number, row in enumerate(rows):
        items = read(row)
        if isinstance(items, str | bytes) or not isinstance(items, Iterable):
            raise SourceError(
                f"'each' of source {source.name!r} gives no list",
                where=place_of(row, where, number),
                next_step="name a column that holds a list, or take 'each' away",
            )
        for index, item in enumerate(items):
            line = Line({**row, "_item": item, "_index": index})
            if place := getattr(row, "place", None):
                line.place = place
            yield line


def _named(source: Source) -> list[str]:
    """What a source's mappings and filters name."""
    fields = source.fields.model_dump(exclude_none=True) if source.fields else {}
    listed = (field if isinstance(field, list) else [field] for field in fields.values())
    return [*(str(name) for names in listed for name in names), *source.where, *source.exclude,
            source.each or ""]  # fmt: skip


def _complete(source: Source) -> tuple[Fields, str]:
    if source.fields is None:
        raise SourceError(
            f"source {source.name!r} names no fields",
            where=f"source {source.name!r}",
            next_step="say which column is what, e.g. fields: {question: q, references: answer}, "
            "or take the source from the catalogue (`routeyard sources`)",
        )
    if source.scorer is None:
        raise SourceError(
            f"source {source.name!r} names no scorer",
            where=f"source {source.name!r}",
            next_step=f"write 'scorer: NAME' beside its fields: one of {', '.join(SCORERS.names())}"
            f"; {GIVEN!r} takes scores that were recorded with the answers, {NO_RULE!r} leaves "
            "them to judges",
        )
    return source.fields, source.scorer


def _scorer(name: str, *, where: str) -> Scorer:
    if name == NO_RULE:
        return _NO_RULE
    scorer: Scorer = SCORERS.get(name, where=where)
    return scorer


def _readers(fields: Fields, where: str) -> dict[str, Callable[[Row], Any]]:
    """One function per mapped field."""
    readers: dict[str, Callable[[Row], Any]] = {}
    for name, value in fields.model_dump(exclude={"metadata"}).items():
        at = f"{where}, fields.{name}"
        if value:
            one = isinstance(value, str)
            readers[name] = compile_field(value, where=at) if one else _listed(value, at)
    for name in fields.metadata:
        readers[f"metadata:{name}"] = compile_field(name, where=f"{where}, fields.metadata")
    return readers


def _listed(expressions: Sequence[str], where: str) -> Callable[[Row], list[Any]]:
    parts = [compile_field(text, where=where) for text in expressions]
    return lambda row: [part(row) for part in parts]


def _letters(
    references: Sequence[str], choices: Sequence[str], place: str, ways: dict[str, str]
) -> list[str]:
    """References to options as letters: each is one, or the text of one option. A number that may
    count the options is neither.

    Args:
        ways: Gets the first place with a reference that is no letter, and the first with a letter
            that is the text of another option.
    """
    from routeyard.pipelines.label.scorers.mcq import letter_of, option_of

    counts = {str(number) for number in range(len(choices) + 1)}
    letters = [
        None if text.strip() in counts else letter_of(text, tuple(choices)) for text in references
    ]
    if choices and None in letters:
        raise SourceError(
            f"the reference {references[letters.index(None)]!r} is not the letter of one of "
            f"{len(choices)} options, nor the text of one",
            where=place,
            next_step="map 'references' to the letter: {{ answer | letter }} turns an index "
            "into one"
            if len(choices) > 1
            else "map 'choices' to a list of all options: {{ options | split(';') }} makes one of "
            f"a text (it gives {choices[0][:60]!r})",
        )
    for given, taken in zip(references, letters, strict=True):
        meant = option_of(given, tuple(choices)) if taken else None
        if meant and meant != taken:
            ways.setdefault("either", f"{place}: {given!r}")
        elif meant and len(given.strip(" ().*")) > 1:
            ways.setdefault("text", f"{place}: {given!r}")
    return [letter or given for letter, given in zip(letters, references, strict=True)]


# `where` and `exclude` of a source: which rows are taken, and conditions that no row meets.
#
# A `where` that no row meets is probably a slip that takes questions away, and stops the build. An
# `exclude` that no row meets may be meant (a newer revision corrected its rows): it is reported.

#: Different values of a column that are kept for an error.
_SEEN = 20


class _Condition:
    """A column, nested names as in mappings, and the value that it must have."""

    def __init__(self, kind: str, column: str, value: Any, sparse: Sparse, where: str):
        self.name, self.column, self.value = f"{kind}.{column}", column, value
        self.met = False
        self._seen: dict[Any, None] = {}
        read = compile_field(column, where=f"{where}, {kind}")
        self._read = sparse.reader(self.name, read, needed=False)

    def meets(self, row: Row) -> bool:
        """Whether the row has the value; a key that the row leaves out is None."""
        result = self._read(row)
        if result == self.value:
            self.met = True
        elif len(self._seen) < _SEEN and isinstance(result, str | int | float | bool | None):
            self._seen.setdefault(result)
        return bool(result == self.value)

    def instead(self) -> str:
        """What the column has in place of the value."""
        seen = list(self._seen)
        same = [item for item in seen if str(item) == str(self.value)]
        texts = [item for item in seen if isinstance(item, str)]
        if same:
            return f"write {_shown(same[0])}: the column holds {_kind(same[0])}"
        if isinstance(self.value, str) and texts:
            return did_you_mean(self.value, texts)
        return "the column has " + ", ".join(map(_shown, seen[:8]))


class Filtered:
    """The conditions of one source, and which of them were met so far."""

    def __init__(self, source: Source, where: str):
        self._source, self._place = source.name, where
        self._rows = self._taken = 0
        self._sparse = Sparse()
        self._where, self._exclude = (
            [_Condition(kind, *item, self._sparse, where) for item in conditions.items()]
            for kind, conditions in (("where", source.where), ("exclude", source.exclude))
        )

    def takes(self, row: Row) -> bool:
        """Whether `where` takes the row."""
        self._rows += 1
        met = [condition.meets(row) for condition in self._where]
        self._taken += all(met)
        return all(met)

    def excludes(self, row: Row) -> bool:
        """Whether `exclude` leaves the row out; only for rows that `where` takes."""
        met = [condition.meets(row) for condition in self._exclude]
        return any(met)

    def stopped_early(self) -> None:
        """Not all rows were read: what no row met so far, a later one may meet."""
        self._rows = 0

    def check(self) -> list[str]:
        """Conditions that no row met, once all rows were read.

        Returns:
            One sentence per `exclude` that left nothing out.

        Raises:
            SourceError: a `where` matches nothing; names the values the column has instead.
            NoColumn: no row has the column of a `where`.
        """
        if not self._rows:
            return []
        for item in self._where:
            if not item.met:
                self._sparse.check(item.name)
                raise SourceError(
                    f"'where' of source {self._source!r} matches nothing: no row of "
                    f"{self._rows:,} has {item.column} = {_shown(item.value)}",
                    where=f"{self._place}, {item.name}",
                    next_step=item.instead(),
                )
        if self._where and not self._taken:
            both = " and ".join(f"{entry.column} = {entry.value!r}" for entry in self._where)
            raise SourceError(
                f"'where' of source {self._source!r} matches nothing: none of "
                f"{self._rows:,} rows has {both} at once",
                where=self._place,
                next_step="correct 'where', or take the source out of the recipe",
            )
        return [
            f"'exclude' of source {self._source!r} leaves nothing out: {self._not_met(entry)}"
            for entry in self._exclude
            if not entry.met
        ]

    def _not_met(self, condition: _Condition) -> str:
        try:
            self._sparse.check(condition.name)
        except NoColumn as error:  # of a dataset's other revision, it may be
            return f"{error.what}, {error.next_step}"
        return f"no row has {condition.column} = {_shown(condition.value)} ({condition.instead()})"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _kind(value: Any) -> str:
    if value is None:
        return "nulls"
    if isinstance(value, bool):
        return "true and false, not text"
    return "text" if isinstance(value, str) else "numbers, not text"


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
        task, domain = ((reader.text(n, row, place) or "").strip() for n in ("task", "domain"))
        out.append(
            {
                "query_id": query_id(question, choices, references, repeat),
                "source": source.name,
                "source_id": source_id,
                "task": task or source.task or source.name,
                "domain": domain or source.domain,
                "question": question,
                "prompt": reader.prompt(row, place, question, choices, seen_with),
                "choices": choices,
                "references": references,
                "scorer": reader.scorer_name,
                "metadata": _json(reader.metadata(row, place, len(out), seen_with), place),
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


def page() -> str:
    """What a mapping of a source may say, as Markdown; a test evaluates each of its examples."""
    return files(__package__).joinpath("mappings.md").read_text(encoding="utf-8")
