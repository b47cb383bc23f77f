"""References and answers that every test which tries all scorers takes."""

from __future__ import annotations

from collections.abc import Iterator

from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

#: Reference, and answers that are right, in part right and wrong for most kinds of it. Every
#: scorer reads one of them: one that reads none of these brings a line of its own.
SAID = {
    "12": ("12", "12.5", "about 12 or 13", "7"),
    "A": ("A", "B", "A and B"),
    "yes": ("yes", "no", "yes and no"),
    "entailment": ("entailment", "neutral", "not entailment"),
    "[1, 2]": ("[1, 2]", "[1, 3]", "[1]"),
    "Barack Obama": ("Barack Obama", "President Barack Obama", "Obama", "a cat"),
}
#: Scorers that run programs or ask a model, and so are not tried on these.
UNTRIED = ("bartscore", "code")


def readings(scorer: Scorer) -> Iterator[ScoreResult]:
    """What a scorer reads in each of them, where it gives a score."""
    for reference, answers in SAID.items():
        for answer in answers:
            asked = ScoringInput("Which?", (reference,), ("one", "two"), {"given_score": 0.4})
            reading = scorer.read(asked, f"Answer: {answer}")
            if reading.score is not None:
                yield reading


def is_read(scorer: Scorer) -> bool:
    """Whether a scorer reads any of them."""
    return scorer.name in UNTRIED or any(True for _ in readings(scorer))
