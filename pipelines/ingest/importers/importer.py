"""What an importer gives back: questions, answers, and what the source does not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.errors import SourceError


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
    cost_usd: float | None = None
    latency_s: float | None = None


@dataclass
class ImportResult:
    """Everything one import found; filled while the source is read.

    `answers` may be an iterator: the writer drains it before it writes the
    questions. `left_out` counts what was not taken, by reason; `skipped` names whole files
    that were not.
    """

    answers: Iterable[ImportedAnswer] = ()
    questions: dict[str, ImportedQuestion] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, list[str]] = field(default_factory=dict)

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
            SourceError: another question stands under the same id.
        """
        there = self.questions.setdefault(question.id, question)
        if there != question:
            raise SourceError(
                f"the id {question.id!r} stands for two different questions",
                where=where,
                next_step="import the files one by one, or mend the ids in the source",
            )


@dataclass(frozen=True, slots=True)
class Importer:
    """One format: where it comes from, what it lacks, and how it is read.

    Attributes:
        layout: What `PATH` must hold, in one sentence for an error.
        license: As stated upstream; NOASSERTION when nothing is stated.
        lacks: What the source does not record at all.
        read: Path → questions and answers.
        sizes_in_names: Model names state sizes (`…-7b-…`), which then become `params_b`.
    """

    name: str
    title: str
    url: str
    license: str
    layout: str
    lacks: tuple[str, ...]
    read: Callable[[Path], ImportResult]
    sizes_in_names: bool = False
