"""What a simulated model says: a pure function of (seed, model, question, sample)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from statistics import NormalDist
from typing import Any

from routeyard.pipelines.common.staging import replacing
from routeyard.schemas.text import own_table

# The questions of `demo` and `agent_demo`: data files beside this module, the same everywhere.
#
# `bank.jsonl` has several hundred questions with gold answers. 24 of them repeat another one in
# other case, spacing or accents (`twin_of`): an uncased encoder gives both the same vector.
# `hops.jsonl` has questions in two steps for agents, in the layout of HotpotQA: made-up people,
# works and towns, where the first passage leads to the second and neither answers alone.

LETTERS = "ABCDEFGH"


@dataclass(frozen=True, slots=True)
class BankQuestion:
    """A question with its gold answer.

    Attributes:
        scorer: `mcq`, `numeric` or `em`.
        references: Accepted answers; the letter for `mcq`.
        twin_of: Id of the question this one repeats in other spelling, or None.
    """

    id: str
    task: str
    domain: str
    scorer: str
    question: str
    references: tuple[str, ...]
    choices: tuple[str, ...] = ()
    twin_of: str | None = None


@cache
def bank() -> tuple[BankQuestion, ...]:
    """All questions of `demo`, in an order that mixes the tasks."""
    return tuple(
        BankQuestion(
            **row
            | {"references": tuple(row["references"]), "choices": tuple(row.get("choices", ()))}
        )
        for row in _rows("bank.jsonl")
    )


@cache
def hops() -> tuple[Mapping[str, Any], ...]:
    """All questions of `agent_demo`: question, context (title → sentences), answer, bridge."""
    return tuple(_rows("hops.jsonl"))


def write(path: Path) -> Path:
    """Write the questions of `demo` as JSON lines, without what is planted; returns the path."""
    planted = {"twin_of"}  # the pipeline has to find the twins without help
    rows = [{k: v for k, v in asdict(q).items() if k not in planted} for q in bank()]
    return write_lines(path, rows, sort_keys=True)


def write_hops(folder: Path) -> tuple[Path, Path]:
    """Write the questions of `agent_demo`, and the answers their server knows, as JSON lines."""
    known = [
        {
            "question": row["question"],
            "references": [row["answer"]],
            "choices": [],
            "scorer": "f1",
            "bridge": row["bridge"],
        }
        for row in hops()
    ]
    return write_lines(folder / "hops.jsonl", hops()), write_lines(folder / "bank.jsonl", known)


def _rows(name: str) -> Iterable[dict[str, Any]]:
    text = files("routeyard.flows.demo").joinpath(name).read_text(encoding="utf-8")
    return map(json.loads, text.splitlines())


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]], *, sort_keys: bool = False) -> Path:
    """Write rows as JSON lines; returns the path."""
    with replacing(path) as staged:
        lines = [json.dumps(row, ensure_ascii=False, sort_keys=sort_keys) + "\n" for row in rows]
        staged.write_text("".join(lines), encoding="utf-8")
    return path


# The simulated pool: what each model is good at, how it speaks, and how it fails.


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """One model of the pool.

    Attributes:
        strengths: Task → probability that its answer is right and readable.
        price_in: USD per million prompt tokens, as the recipe states it.
        price_out: USD per million completion tokens.
        first_token_ms: Simulated wait before the first token.
        token_ms: Simulated wait per completion token.
        verbosity: Sentences of reasoning before an answer.
        reasons: Bills hidden reasoning tokens.
        failures: Share of wrong answers that are refused, cut off, or give no answer at all.
    """

    model_id: str
    price_in: float
    price_out: float
    context_window: int = 100_000
    strengths: Mapping[str, float] = field(default_factory=dict)
    first_token_ms: float = 0.0
    token_ms: float = 0.0
    verbosity: int = 0
    reasons: bool = False
    failures: Mapping[str, float] = field(
        default_factory=lambda: {"refused": 0.06, "truncated": 0.05, "formless": 0.08}
    )
    throttled: float = 0.006
    broken: float = 0.006


@cache
def pool() -> dict[str, SimulatedModel]:
    """Model id → model. Prices come from the recipe, so both always agree."""
    manners = _yaml("demo", "models.yaml")
    keys = ("model_id", "price_in", "price_out", "context_window")
    return {
        row["model_id"]: SimulatedModel(
            **{key: row[key] for key in keys}, **manners[row["model_id"]]
        )
        for row in _yaml("recipes", "demo.yaml")["pool"]["models"]
    }


def _yaml(*path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = own_table(files("routeyard.flows").joinpath(*path))
    return loaded


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
    numbers = ", ".join(re.findall(r"\d+(?:\.\d+)?", question.question)[:3])
    noticed = f"The question gives {numbers}." if numbers else "There are no figures here."
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
        misses = [c for c in candidates if abs(c - value) > 1e-9]
        return f"{misses[int(luck * luck * len(misses))]:.10g}"
    rivals = [x for x in _golds(question.task) if x not in question.references]
    start = int(uniform(question.id, "rivals") * len(rivals))
    return rivals[(start + int(luck * luck * 6)) % len(rivals)]


@cache
def _golds(task: str) -> list[str]:
    return sorted({q.references[0] for q in bank() if q.task == task and q.scorer == "em"})


# A simulated agent: what it searches for, and when it answers.
#
# It knows an answer only where a search has shown it. A stronger model more often follows the link
# from the first passage to the second, and reads the answer right there.

#: Searches after which it answers in any case.
_MOST = 3


def act(
    model: str, row: Mapping[str, Any] | None, messages: Sequence[Mapping[str, Any]], seed: int
) -> tuple[str | None, str | None]:
    """(query of a search, null) or (null, answer) for the next step of a conversation."""
    question = row["question"] if row else _asked(messages)
    result = "\n".join(str(m.get("content")) for m in messages if m.get("role") == "tool")
    searches = sum(m.get("role") == "tool" for m in messages)
    if not searches:
        return question, None
    reference = str(row["references"][0]) if row and row["references"] else ""
    skill = 0.35 + 0.6 * uniform(model, "skill")
    if reference and _shows_answer(row, result, reference):
        right = uniform(model, question, seed, "reads") < 0.5 + skill / 2
        return None, reference if right else "something else entirely"
    if searches >= _MOST:
        return None, "I do not know"
    bridge = str(row.get("bridge", "")) if row else ""
    if bridge and bridge in result and uniform(model, question, seed, searches, "link") < skill:
        return bridge, None
    # Lost: it looks for the question's last words, which are in many passages.
    return " ".join(question.split()[-3:]), None


def _shows_answer(row: Mapping[str, Any] | None, text: str, reference: str) -> bool:
    """Whether the passage about the linked person was shown, and the answer in it."""
    bridge = str(row.get("bridge", "")) if row else ""
    shown = [part for part in text.split("\n") if f"] {bridge}: " in part] if bridge else [text]
    return any(reference in part for part in shown)


def _asked(messages: Sequence[Mapping[str, Any]]) -> str:
    users = [str(m.get("content")) for m in messages if m.get("role") == "user"]
    return users[0][:200] if users else ""


def calls(query: str) -> list[dict[str, Any]]:
    """The call of the tool, in the form of the API."""
    arguments = json.dumps({"query": query}, ensure_ascii=False)
    function = {"name": "search", "arguments": arguments}
    return [{"id": "call_0", "type": "function", "function": function}]
