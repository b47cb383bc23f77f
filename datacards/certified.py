"""The certificate in sentences: what each figure asks, and what its value means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FigureSentence:
    """One figure: a short name, its value and interval as text, and a sentence."""

    name: str
    value: str
    interval: str
    sentence: str


#: figure → (short name, kind of number, sentence). `share` is read as per cent, `points` as
#: percentage points (a difference of two shares), `size` as points without a sign, `number`
#: as it stands.
FIGURES: dict[str, tuple[str, str, str]] = {
    "best_single": ("best single model", "share",
        "Asking one model for everything gets this share right; a router has to beat it."),
    "best_covers": ("best model among the solvable", "share",
        "Of the questions any model gets right, the best single model gets this share."),
    "query_oracle": ("per-query oracle", "share",
        "Knowing for each question which model gets it right would reach this: no router can "
        "do better."),
    "query_oracle_corrected": ("per-query oracle without luck", "share",
        "The per-query oracle when the model is chosen on one half of its samples and scored on "
        "the other, so that luck does not count."),
    "query_oracle_chance_corrected": ("per-query oracle without guessing", "share",
        "The per-query oracle after right guesses are taken out: among many models that guess "
        "between options, one is nearly always right."),
    "task_oracle": ("per-task oracle", "share",
        "Sending each task to its best model, chosen on the same questions, reaches this."),
    "task_oracle_crossfitted": ("per-task oracle, held out", "share",
        "Sending each task to the model that is best on other questions of it reaches this: "
        "what a router gets from knowing the task alone."),
    "gap_query_oracle": ("room above the best model", "points",
        "Points between the best single model and the per-query oracle: all that any router "
        "could gain."),
    "gap_query_oracle_corrected": ("room without luck", "points",
        "The same room after sampling luck is taken out."),
    "gap_query_oracle_chance_corrected": ("room without guessing", "points",
        "The same room after right guesses are taken out."),
    "gap_task_oracle": ("room by task", "points",
        "Points that choosing a model per task would gain over the best single model."),
    "gap_mix": ("room above a random mix", "points",
        "Points between the per-query oracle and a random mix of models at the oracle's cost."),
    "cost_matched_mix": ("random mix at the oracle's cost", "share",
        "Choosing models at random, at the cost of the oracle, gets this share right."),
    "uniform_random": ("model at random", "share",
        "Choosing a model at random for each question gets this share right."),
    "hard_share": ("hard questions", "share",
        "Of the questions any model gets right, the share that exactly one model gets right, "
        "or that few do and the best single model does not."),
    "all_right_share": ("all models right", "share",
        "Share of questions that every model with a label answers right: here the cheapest should "
        "be asked."),
    "unsolved_share": ("no model right", "share",
        "Share of questions no model answers right: no router can win them."),
    "dominated_share": ("dominated models", "share",
        "Share of models beside which another is no dearer and no less accurate, and better in "
        "one of the two."),
    "redundancy": ("likeness of the models", "number",
        "How often two models are both right or both wrong on a question, over all pairs of "
        "models (1: always)."),
    "specialist_stability": ("stability of specialists", "number",
        "How well what each model is better at repeats between two halves of the questions "
        "(1: fully, 0: not at all)."),
    "resolvable_difference": ("smallest difference seen", "size",
        "A paired test on the test questions finds a difference of this size between two of the "
        "best models four times in five; smaller ones it misses more often."),
    "resolvable_difference_crossfitted": ("smallest difference seen on all", "size",
        "The same where routers are cross-fitted, so that all questions are test questions."),
    "contested_share": ("contested labels", "share",
        "Share of labels that are in doubt: verdicts disagree, or the answer's text commits to "
        "several answers."),
    "unreadable_share": ("unreadable answers", "share",
        "Share of labels where no scorer could read an answer in the text."),
}  # fmt: skip


def sentences(certificate: Mapping[str, Any]) -> list[FigureSentence]:
    """The figures of a certificate in the order in which they are read, unknown ones last."""
    figures: Mapping[str, Mapping[str, Any]] = certificate.get("figures") or {}
    order = [name for name in FIGURES if name in figures]
    order += sorted(name for name in figures if name not in FIGURES)
    return [_said(name, figures[name]) for name in order]


def _said(name: str, figure: Mapping[str, Any]) -> FigureSentence:
    short, kind, sentence = FIGURES.get(name, (name.replace("_", " "), "number", ""))
    value, low, high = figure.get("value"), figure.get("low"), figure.get("high")
    interval = ""
    if low is not None and high is not None:
        interval = f"{number(low, kind)} to {number(high, kind)}"
    if value is None:
        sentence = f"{sentence} Not known: {figure.get('reason') or 'no reason given'}."
    elif kind == "points" and low is not None and high is not None and low <= 0 <= high:
        sentence += " The interval holds zero: there may be nothing to gain."
    return FigureSentence(
        short, "–" if value is None else number(value, kind), interval, sentence.strip()
    )


def number(value: float, kind: str) -> str:
    """A figure as people read it: per cent, percentage points, or a plain number."""
    if kind == "share":
        return f"{100 * value:.1f} %"
    if kind == "points":
        return f"{100 * value:+.1f} points"
    if kind == "size":
        return f"{100 * value:.1f} points"
    return f"{value:.2f}"
