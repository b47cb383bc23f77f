"""What a simulated model says: a pure function of (seed, model, question, sample)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from statistics import NormalDist

from routeyard.flows.demo.bank import LETTERS, BankQuestion, bank
from routeyard.flows.demo.models import SimulatedModel

_NORMAL = NormalDist()
#: Shares of variance: how hard the question is for everyone, how well it suits this
#: model, and what differs from sample to sample. They sum to one, so that the
#: chance of a right answer stays the planted strength.
_SHARED, _OWN, _SAMPLE = 0.3, 0.45, 0.25
_TOKEN = re.compile(r"\s?\w{1,6}|\s?[^\w\s]|\s")


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """What the server sends: `text` is None when only `refusal` is set."""

    text: str | None
    finish_reason: str
    refusal: str | None = None
    reasoning_tokens: int = 0


def uniform(*parts: object) -> float:
    """A number in (0, 1) that depends on `parts` alone."""
    digest = blake2b("\x1f".join(map(str, parts)).encode(), digest_size=7).digest()
    return (int.from_bytes(digest, "big") + 0.5) / 2**56


def tokens(text: str) -> list[str]:
    """Pieces of at most seven characters; joined they are the text again."""
    return _TOKEN.findall(text)


def answer(
    seed: int, model: SimulatedModel, question: BankQuestion, sample: int
) -> SimulatedAnswer:
    """The answer of `model` to `question`; right with the planted strength."""
    key = (seed, model.model_id, question.id, sample)
    hidden = int(40 + 360 * uniform(*key, "hidden")) if model.reasons else 0
    if succeeds(seed, model, question, sample):
        right = _say(key, model, question, question.references[0])
        return SimulatedAnswer(right, "stop", reasoning_tokens=hidden)
    fate, wrong = uniform(*key, "fate"), _wrong(key, question)
    for kind, share in model.failures.items():
        if fate < share:
            return _fail(kind, key, model, question, hidden)
        fate -= share
    return SimulatedAnswer(_say(key, model, question, wrong), "stop", reasoning_tokens=hidden)


def succeeds(seed: int, model: SimulatedModel, question: BankQuestion, sample: int) -> bool:
    """Whether the answer is meant to be right: true with the planted strength."""
    shared = question.twin_of or question.id
    normal = (
        _SHARED**0.5 * _NORMAL.inv_cdf(uniform(seed, shared))
        + _OWN**0.5 * _NORMAL.inv_cdf(uniform(seed, model.model_id, question.id))
        + _SAMPLE**0.5 * _NORMAL.inv_cdf(uniform(seed, model.model_id, question.id, sample, "luck"))
    )
    return _NORMAL.cdf(normal) < model.strengths[question.task]


def small_talk(seed: int, model: SimulatedModel, prompt: str, sample: int) -> SimulatedAnswer:
    """A stable reply to a prompt that is no question of the bank."""
    words = [w for w in re.findall(r"\w+", prompt[:2000]) if len(w) > 3] or ["that"]
    picked = [
        words[int(uniform(seed, model.model_id, prompt, sample, i) * len(words))]
        for i in range(3 + 4 * model.verbosity)
    ]
    return SimulatedAnswer(f"I would say it is about {' and '.join(picked)}.", "stop")


def _say(key: tuple[object, ...], model: SimulatedModel, question: BankQuestion, value: str) -> str:
    """`value` in one of the forms that real models use."""
    form = uniform(*key, "form")
    lead = _reasoning(key, model, question)
    if form < 0.08 and question.scorer != "em":
        right = question.references[0]
        first = right if right != value else _wrong((*key, "first"), question)
        return (
            f"{lead}So the answer is {_shown(first, question)}.\n\n"
            "Wait, actually, let me check that again. I made a mistake.\n\n"
            f"{_closing(0.3, question, value)}"
        )
    if form < 0.14 and model.verbosity == 0:
        return _shown(value, question)
    return lead + _closing(uniform(*key, "closing"), question, value)


def _closing(form: float, question: BankQuestion, value: str) -> str:
    shown = _shown(value, question)
    if question.scorer == "em":
        lead = "Answer:" if form < 0.6 else "**Answer:**" if form < 0.85 else "Final answer:"
        return f"{lead} {value}"
    if form < 0.35:
        return f"The answer is {shown}."
    if form < 0.6:
        return f"\\boxed{{{value}}}" if form < 0.5 else f"Therefore $\\boxed{{{value}}}$."
    return f"Answer: {value}" if form < 0.85 else f"**Answer: {value}**"


def _shown(value: str, question: BankQuestion) -> str:
    return f"({value})" if question.scorer == "mcq" else value


def _reasoning(key: tuple[object, ...], model: SimulatedModel, question: BankQuestion) -> str:
    if model.verbosity == 0:
        return ""
    given = re.findall(r"\d+(?:\.\d+)?", question.question)[:3]
    noticed = f"The question gives {', '.join(given)}." if given else "There are no figures here."
    sentences = (
        "Let me think about this step by step.",
        noticed,
        f"This is about {question.task.replace('_', ' ')}.",
        "I go through it once more to be sure.",
        "Nothing else in the text changes the result.",
        "First I look at what is asked.",
        "The rest follows directly.",
    )
    start = int(uniform(*key, "reasoning") * len(sentences))
    chosen = [sentences[(start + i) % len(sentences)] for i in range(model.verbosity)]
    return " ".join(chosen) + "\n\n"


def _fail(
    kind: str, key: tuple[object, ...], model: SimulatedModel, question: BankQuestion, hidden: int
) -> SimulatedAnswer:
    if kind == "refused":
        said = "I'm sorry, but I can't help with that request."
        if uniform(*key, "refusal") < 0.5:
            return SimulatedAnswer(None, "stop", refusal=said)
        return SimulatedAnswer(said, "content_filter")
    if kind == "truncated":
        text = _reasoning(key, model, question) + "To work this out properly, consider that the"
        return SimulatedAnswer(text, "length", reasoning_tokens=hidden)
    return SimulatedAnswer(
        _reasoning(key, model, question)
        + "There is more than one way to look at it, and I would not commit to any of them.",
        "stop",
        reasoning_tokens=hidden,
    )


def _wrong(key: tuple[object, ...], question: BankQuestion) -> str:
    """A wrong answer of the right kind; popular ones come up more often."""
    luck = uniform(*key, "wrong")
    right = question.references[0]
    if question.scorer == "mcq":
        others = [x for x in LETTERS[: len(question.choices)] if x != right]
        return others[int(luck * luck * len(others))]
    if question.scorer == "numeric":
        value = float(right)
        candidates = (value + 1, value - 1, value + 10, value * 2, value * 10, value + 3, value - 7)
        found = [c for c in candidates if abs(c - value) > 1e-9]
        return f"{found[int(luck * luck * len(found))]:.10g}"
    rivals = [x for x in _golds(question.task) if x not in question.references]
    start = int(uniform(question.id, "rivals") * len(rivals))
    return rivals[(start + int(luck * luck * 6)) % len(rivals)]


@cache
def _golds(task: str) -> list[str]:
    return sorted({q.references[0] for q in bank() if q.task == task and q.scorer == "em"})
