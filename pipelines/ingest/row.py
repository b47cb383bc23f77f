"""One row of a source, read by its mapping: id, question, options, references; or a clear error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.listed import options
from routeyard.pipelines.ingest.listed import references as listed_references
from routeyard.pipelines.io.files import Line
from routeyard.pipelines.mapping.expressions import letter
from routeyard.pipelines.mapping.fields import Sparse, compile_field
from routeyard.pipelines.mapping.texts import text_of
from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import GIVEN, NO_RULE, Scorer, ScoreResult
from routeyard.schemas.recipe import Fields, Source

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
        self.sparse = Sparse(_named(source) if source.kind == "files" else None)
        may_lack = {"question"} if source.missing_question == "remove" else set()
        self._read = {
            name: self.sparse.reader(name, read, needed=name in _NEEDED and name not in may_lack)
            for name, read in _readers(self.fields, where).items()
        }
        #: Id → number and hash of its first row; checked once all rows were read.
        self._ids: dict[str, tuple[int, int]] = {}
        self._twice: list[tuple[str, int, bool]] = []

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
            if self.source.missing_question == "remove":
                return source_id, None
            raise SourceError(
                f"source {self.source.name!r} has a row without a question",
                where=place,
                next_step="correct 'fields.question', or set 'missing_question: remove' to leave "
                "such rows out (they are listed in removals)",
            )
        return source_id, question

    def check(self) -> None:
        """Stop at ids that rows share, once all rows were read.

        Raises:
            SourceError: counts them; says whether their rows are equal, and shows some.
            NoColumn: a mapped key that no row had.
        """
        self.sparse.check()
        if not self._twice:
            return
        same = sum(alike for _, _, alike in self._twice)
        other = len(self._twice) - same
        places = [
            f"id {one!r} in rows {self._ids[one][0]} and {number}"
            for one, number, _ in self._twice[:_SHOWN]
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
            if self.source.missing_reference == "remove":
                return None
            raise SourceError(
                f"source {self.source.name!r} has a question without a reference",
                where=here,
                next_step="map 'fields.references', or set 'missing_reference: remove' "
                "to leave such questions out (they are listed in removals)",
            )
        if self.scorer.lettered:
            _check_letters(references, choices, place)
        return choices, references

    def _value(self, name: str, row: Row) -> Any:
        return self._read[name](row) if name in self._read else None

    def text(self, name: str, row: Row, place: str) -> str | None:
        """A mapped text (`prompt`, `task`, `domain`); None where it is not mapped or not there.

        Raises:
            SourceError: it is a list or an object.
        """
        found = self._value(name, row)
        return None if found is None else text_of(found, getattr(self.fields, name), name, place)

    def images(self, row: Row) -> Any:
        """What `fields.images` gives; None where it is not mapped."""
        return self._value("images", row)

    def metadata(self, row: Row) -> dict[str, Any]:
        """The columns of `fields.metadata`; None where a row has nothing."""
        return {name: self._read[f"metadata:{name}"](row) for name in self.fields.metadata}


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
            one = Line({**row, "_item": item, "_index": index})
            if place := getattr(row, "place", None):
                one.place = place
            yield one


def _named(source: Source) -> list[str]:
    """What a source's mappings and filters name."""
    fields = source.fields.model_dump(exclude_none=True) if source.fields else {}
    listed = (one if isinstance(one, list) else [one] for one in fields.values())
    return [*(str(name) for names in listed for name in names), *source.where, *source.exclude,
            source.each or ""]  # fmt: skip


def _complete(source: Source) -> tuple[Fields, str]:
    if source.fields is None:
        raise SourceError(
            f"source {source.name!r} names no fields",
            where=f"source {source.name!r}",
            next_step="say which column is what, e.g. fields: {question: q, references: answer}, "
            "or take the source from the catalogue (`routeyard sources list`)",
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
    found: Scorer = SCORERS.get(name, where=where)
    return found


def _readers(fields: Fields, where: str) -> dict[str, Callable[[Row], Any]]:
    """One function per mapped field."""
    readers: dict[str, Callable[[Row], Any]] = {}
    for name in ("id", "question", "prompt", "task", "domain", "scorer", "group", "images"):
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
