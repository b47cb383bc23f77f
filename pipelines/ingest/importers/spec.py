"""What an importer is: a declaration, and a reader that yields answers and adds questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from routeyard.pipelines.common.errors import SourceError


@dataclass(frozen=True, slots=True)
class ImportedQuestion:
    """One question; `id` is its name inside the source."""

    id: str
    question: str
    task: str
    prompt: str | None = None
    choices: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    domain: str = "general"
    scorer: str = "given"
    split: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedAnswer:
    """One answer of one model; None is not known, never zero."""

    query: str
    model: str
    sample: int = 0
    text: str | None = None
    score: float | None = None
    graded_against: tuple[str, ...] | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    #: Calls to models that the answer took; None where it is one or not known.
    calls: int | None = None
    status: str | None = None
    error: str | None = None


@dataclass
class ImportResult:
    """The questions of an import and what was left out; filled while the source is read.

    Attributes:
        source: The file or folder that is imported.
        left_out: Reason → number of records that were not taken.
        skipped: Reason → names of whole files that were not taken.
        samples: (question, model) → answers so far, in formats that repeat them.
        doubts: What a person has to know or to decide, one sentence each.
        choices: What was chosen where the source leaves it open, one sentence each.
        steps: Rows of `steps` with the questions' own ids; written beside the answers.
    """

    source: Path
    questions: dict[str, ImportedQuestion] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    samples: Counter[tuple[str, str]] = field(default_factory=Counter)
    doubts: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)

    def skip(self, why: str, file: str) -> None:
        """Leave a whole file out, by name."""
        self.skipped.setdefault(why, []).append(file)

    def reasons(self) -> dict[str, int]:
        """What was not taken: reason, with the names of whole files, → count."""
        named = {}
        for why, files in self.skipped.items():
            more = f" and {len(files) - 5} more" if len(files) > 5 else ""
            named[f"{why} ({', '.join(sorted(files)[:5])}{more})"] = len(files)
        return dict(sorted((self.left_out + Counter(named)).items()))

    def ask(self, question: ImportedQuestion, where: str) -> None:
        """Add a question.

        Raises:
            SourceError: another question has the same id.
        """
        if self.questions.setdefault(question.id, question) != question:
            raise SourceError(
                f"the id {question.id!r} belongs to two different questions",
                where=where,
                next_step="import the files one by one, or mend the ids in the source",
            )

    def next_sample(self, query: str, model: str) -> int:
        """Number of the model's next answer to a question, from 0."""
        self.samples[query, model] += 1
        return self.samples[query, model] - 1


@dataclass(frozen=True, slots=True)
class Importer:
    """One format: where it comes from, what it lacks, and how it is read.

    Attributes:
        layout: What `PATH` must hold, in one sentence for an error.
        files: Patterns of the format's files below a folder.
        license: As stated upstream; NOASSERTION when nothing is stated.
        lacks: What the source does not record at all.
        read: `read(paths, result)` yields the answers in these files, and adds their questions
            and what is left out to `result`.
        newest_first: The time in a file's name; `read` gets the newest file first.
        sizes_in_names: Model names state sizes (`…-7b-…`), which then become `params_b`.
    """

    name: str
    title: str
    url: str
    license: str
    layout: str
    files: tuple[str, ...]
    lacks: tuple[str, ...]
    read: Callable[[Sequence[Path], ImportResult], Iterable[ImportedAnswer]]
    newest_first: re.Pattern[str] | None = None
    sizes_in_names: bool = False


def importer(
    name: str,
    read: Callable[[Sequence[Path], ImportResult], Iterable[ImportedAnswer]],
    *,
    newest_first: re.Pattern[str] | None = None,
) -> Importer:
    """The importer of a format that `importers.yaml` describes."""
    if name not in FORMATS:
        raise LookupError(f"describe {name!r} in pipelines/ingest/importers/importers.yaml first")
    about: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in FORMATS[name].items()
        if key != "reader"
    }
    return Importer(name=name, read=read, newest_first=newest_first, **about)


#: What `importers.yaml` says of each format; `reader` is the module and name of its importer.
FORMATS = yaml.safe_load(Path(__file__).with_name("importers.yaml").read_text(encoding="utf-8"))
