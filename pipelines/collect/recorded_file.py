"""One file of recorded answers: rows become responses, and all that is left out is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.collect.recorded_row import (
    RecipeQuestion,
    RecordedRowReader,
    amount_of,
    answer_of,
    asks_the_same,
    count_of,
    measured,
    recorded_status,
    score_of,
)
from routeyard.pipelines.collect.repeated_rows import RepeatedRows
from routeyard.pipelines.errors import RecordedError, did_you_mean
from routeyard.pipelines.io import files
from routeyard.pipelines.mapping.fields import Sparse
from routeyard.pipelines.mapping.texts import expression
from routeyard.schemas.recipe import Recorded
from routeyard.schemas.statuses import ANSWERLESS, STATUSES

#: Ids and places that a note or an error shows.
_SHOWN = 3
#: Policy of a status → the status that it becomes, and what the build says.
_POLICIES = {"missing": "unanswered", "wrong": "truncated", "scored": None,
             **{name: name for name in STATUSES}}  # fmt: skip
_COUNT_AS = {"missing": "missing", "wrong": "wrong", "scored": "their source scores them",
             **{name: f"`{name}`" for name in STATUSES}}  # fmt: skip
#: Fields of what an answer took, and the columns of a recording that maps none of them.
_MEASURES = frozenset(
    [
        "prompt_tokens",
        "completion_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "cost_usd",
        "latency_s",
        "calls",
    ]
)
_UNMEASURED: Mapping[str, None] = dict.fromkeys([*sorted(_MEASURES), "cost_source"])
_COUNTED = (
    "responses",
    "missing",
    "not_asked",
    "other_models",
    "prompts",
    "other_questions",
    "repeated",
)


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
    read: RecordedRowReader = field(init=False)
    policy: dict[str, str] = field(init=False)
    csv: bool = field(init=False)

    def __post_init__(self) -> None:
        self.csv = files.format_of(self.path, self.entry.format) == "csv"
        self.policy = {_as_word(word): what for word, what in self.entry.statuses.items()}
        self.read = RecordedRowReader(self.entry, self.path, self.sparse)

    def rows(self) -> Iterator[dict[str, Any]]:
        file = self.path.name
        for number, row in enumerate(files.rows(self.path, self.entry.format), 1):
            line = getattr(row, "line", None)
            place = f"{file}, line {line}" if line else f"{file}, row {number}"
            self.sparse.see(row)
            response = self._response(self.read.read(row, place), place)
            if response is not None:
                yield response

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

    def notes(self) -> list[str]:
        """What to report about the file, once all files were read."""
        return [f"{self.path.name}: {note}" for note in self._notes()]

    def _notes(self) -> Iterator[str]:
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

    def _response(self, said: dict[str, Any], place: str) -> dict[str, Any] | None:
        model = said["model"]
        if model not in self.pool:
            if self.entry.other_models == "ignore":
                self.counts["other_models"] += 1
                return None
            raise not_in_the_pool([model], self.pool, self.entry, where=place)
        asked = self.index.get(said["query"])
        if asked is None:
            self.counts["not_asked"] += 1
            if said["query"] not in self.strangers and len(self.strangers) <= _SHOWN:
                self.strangers.append(said["query"])
            return None
        said["text"] = answer_of(said.get("text"), csv=self.csv)
        score = score_of(said.get("score"), place)
        score = self._by_policy(said, score)
        status = recorded_status(said, score, asked.scorer, place)
        if status is None:
            self.counts["missing"] += 1
            return None
        if self._other_question(said, asked, place) and self.entry.other_questions == "ignore":
            return None
        key = (asked.query_id, model, int(said.get("sample") or 0))
        entry, counts = self.entry, self.counts
        if not self.repeats.take(key, said, place, entry.path, entry.duplicates, counts):
            return None
        said["status"] = status
        return _as_response(asked, said, score, self.pool[model], place)

    def _by_policy(self, said: dict[str, Any], score: float | None) -> float | None:
        """The score by what the recipe says of the row's status, which is translated in place."""
        if not self.policy:
            return score
        for name in ("status", "finish_reason"):
            if (policy := self.policy.get(_as_word(said.get(name)))) is not None:
                break
        else:
            return score
        self.ended[str(said[name]), policy] += 1
        said["status"] = _POLICIES[policy]
        if name == "finish_reason":
            said["ended"] = None  # its meaning is stated; the word is kept
        return 0.0 if policy == "wrong" else score

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


def _as_word(status: Any) -> str:
    """A status without case, spaces and hyphens."""
    return "_".join(str(status).strip().lower().replace("-", " ").split())


def _as_response(
    asked: RecipeQuestion, said: dict[str, Any], score: float | None, price: Price, place: str
) -> dict[str, Any]:
    without = said["status"] in ANSWERLESS
    graded = said.get("graded_against")
    against = [graded] if isinstance(graded, str) else graded
    return {
        "query_id": asked.query_id,
        "model_id": said["model"],
        "sample": int(said.get("sample") or 0),
        "text": None if without else said["text"],
        "status": said["status"],
        "error": (_words(said.get("error")) or _words(said["text"])) if without else None,
        "finish_reason": said.get("finish_reason"),
        "served_model": said.get("served_model"),
        "attempts": 1,
        "given_score": score,
        "graded_against": against if against and against != asked.references else None,
        **_took(said, score, price, place),
    }


def _took(
    said: Mapping[str, Any], score: float | None, price: Price, place: str
) -> Mapping[str, Any]:
    """What an answer took: tokens, USD, seconds and calls, as columns."""
    if _MEASURES.isdisjoint(said):
        return _UNMEASURED
    given = said["status"] not in ANSWERLESS
    answered = given and bool(said["text"] or score)
    prompt = measured(count_of(said.get("prompt_tokens"), place), given)
    completion = measured(count_of(said.get("completion_tokens"), place), answered)
    read = count_of(said.get("cache_read_tokens"), place)
    write = count_of(said.get("cache_write_tokens"), place)
    cost, source = amount_of(said.get("cost_usd"), place), "provider"
    cost = measured(cost, given and not price.free)
    if cost is None:
        cost, source = price.of(prompt, completion, read, write), "price_table"
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "cost_usd": cost,
        "cost_source": None if cost is None else source,
        "latency_s": measured(amount_of(said.get("latency_s"), place), given),
        "calls": count_of(said.get("calls"), place),
    }


def _words(value: Any) -> str | None:
    """An error's message, no longer than a person reads."""
    return " ".join(str(value).split())[:500] or None if value is not None else None


def not_in_the_pool(
    strangers: Sequence[str], pool: Collection[str], entry: Recorded, *, where: str
) -> RecordedError:
    """Models of a recording that the recipe does not have."""
    first, one = strangers[0], len(strangers) == 1
    here = expression(entry.fields.model)
    renamed = f"{{{{ {{{first!r}: '…'}}.get({here}, {here}) }}}}"
    return RecordedError(
        f"the model{'' if one else 's'} {few(strangers)} "
        f"ha{'s' if one else 've'} responses but {'is' if one else 'are'} not in the pool",
        where=where,
        next_step=f"add it to the pool ({did_you_mean(first, pool)}); where the file calls a model "
        f'by another name, translate it: fields.model: "{renamed}"; or set '
        "'other_models: ignore'",
    )


def few(names: Sequence[str]) -> str:
    """The first names, quoted."""
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown + (", …" if len(names) > _SHOWN else "")
