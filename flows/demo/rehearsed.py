"""The pool of a rehearsal: answers any model's prompts from a file of fixture questions.

Models are right with a chance that depends on their name; a prompt that shows an answer to
judge gets a verdict in the form that Routeyard's own prompts ask for.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.flows.demo.answers import SimulatedAnswer, SimulatedModel, act, calls, uniform
from routeyard.flows.demo.completions import HttpReply, SimulatedPool, _refuse, message_texts
from routeyard.pipelines.common.arrays import Bools, Ints
from routeyard.pipelines.evaluate.signals import ASKS

# An EmbedLLM-shaped benchmark with planted structure, for rehearsals and tests.
#
# What is planted, and can be found again: near-duplicate questions whose labels conflict, tasks
# that are the same as another, many models that copy one's answers, tasks that ask for a
# specialist and tasks that are hard for everyone.

#: Words of which the questions of a task are made; each task has its own.
_SYLLABLES = ("ba", "co", "di", "fu", "ge", "ho", "ki", "la", "mo", "ne", "po", "ri", "su", "ta")


@dataclass(frozen=True)
class Planted:
    """What was planted.

    Attributes:
        tasks: Task of each question.
        twin_of: Question that this one repeats word for word; −1 for none.
        copies: Model → the model whose answers it repeats but for a few.
        twin_tasks: Task → the task whose texts it shares.
        specialists: Task → the model that masters it.
        hard: Tasks on which every model is weak and none far ahead.
        questions, models: Texts and names; a name states the size (`-7b`).
        correct: (m, n) who is right on what.
    """

    tasks: list[str]
    twin_of: Ints
    copies: dict[str, str]
    twin_tasks: dict[str, str]
    specialists: dict[str, str]
    hard: tuple[str, ...]
    questions: list[str]
    models: list[str]
    correct: Bools


#: Models; those that repeat one weak model's answers but for 2 %; share of repeated questions.
MODELS, REDUNDANT, DUPLICATES = 112, 30, 0.06


def plant(
    *, questions: int = 35_673, tasks: int = 80, twin_tasks: int = 12, names: Sequence[str] = ()
) -> Planted:
    """A benchmark of `MODELS` models × `questions` in `tasks` tasks.

    Args:
        names: Of the tasks, in the place of `tasks`: hard ones, then those with specialists first.
        twin_tasks: Tasks whose texts come from another task's words.
    """
    random = np.random.default_rng(0)
    names = list(names) or [f"task_{k:02d}" for k in range(tasks)]
    tasks = len(names)
    own = tasks - twin_tasks
    twins = {names[own + k]: names[own - 1 - k] for k in range(twin_tasks)}
    words = [_words(k) for k in range(own)]
    task = np.sort(random.integers(0, tasks, questions))
    texts: list[str] = []
    twin_of = np.full(questions, -1)
    first: dict[int, list[int]] = {}
    for row, t in enumerate(task.tolist()):
        earlier = first.setdefault(t, [])
        if earlier and random.random() < DUPLICATES:
            twin_of[row] = earlier[int(random.integers(len(earlier)))]
            texts.append(texts[int(twin_of[row])])
            continue
        vocabulary = words[t if t < own else 2 * own - 1 - t]
        drawn = random.choice(len(vocabulary), 8)
        texts.append(f"{' '.join(vocabulary[i] for i in drawn)} {row}?")
        earlier.append(row)
    real = MODELS - REDUNDANT
    sizes = random.choice([1.1, 2, 7, 13, 34, 70], MODELS)
    hard = tuple(names[:3])
    # Small ones, which every budget can pay.
    small = np.argsort(sizes[:real], kind="stable")
    specialists = {names[3 + k]: int(small[k % real]) for k in range(8)}
    skill = np.clip(0.25 + 0.08 * np.log(sizes) + random.normal(0, 0.05, MODELS), 0.15, 0.9)
    chance = np.clip(skill[:, None] + random.normal(0, 0.06, (MODELS, tasks)), 0.05, 0.95)
    for name, model in specialists.items():
        chance[model, names.index(name)] = 0.97
    correct = random.random((MODELS, questions)) < chance[:, task]
    for t in range(len(hard)):
        # The same share for each model: by chance alone one of a hundred would be far ahead.
        (rows,) = np.nonzero(task == t)
        order = random.random((MODELS, len(rows))).argsort(axis=1)
        correct[:, rows] = order < round(0.3 * len(rows))
    copies = {}
    # One weak model under many names, as fine-tunes of one base are: average similarity,
    # by which pruning goes, hardly sees a single pair of twins.
    source = int(np.argsort(chance[:real].mean(axis=1), kind="stable")[real // 4])
    labels = [f"org/model-{k:03d}-{size:g}b" for k, size in enumerate(sizes)]
    for k in range(real, MODELS):
        correct[k] = correct[source] ^ (random.random(questions) < 0.02)
        copies[labels[k]] = labels[source]
    return Planted(
        tasks=[names[t] for t in task.tolist()],
        twin_of=twin_of,
        copies=copies,
        twin_tasks=twins,
        specialists={name: labels[model] for name, model in specialists.items()},
        hard=hard,
        questions=texts,
        models=labels,
        correct=correct,
    )


def write_embedllm(planted: Planted, folder: Path) -> Path:
    """`train.csv`, `val.csv` and `test.csv` in EmbedLLM's columns; one row per model and prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    n = len(planted.questions)
    held = max(1, round(n * 3000 / 35_673))
    order = np.random.default_rng(1).permutation(n)
    parts = {"test": order[:held], "val": order[held : 2 * held], "train": order[2 * held :]}
    for name, rows in parts.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(("prompt_id", "model_id", "model_name", "category", "prompt", "label"))
            writer.writerows(_rows(planted, np.sort(rows)))
    return folder


def _rows(planted: Planted, rows: Ints) -> Iterator[tuple[object, ...]]:
    for row in rows.tolist():
        for k, model in enumerate(planted.models):
            right = int(planted.correct[k, row])
            yield (row, k, model, planted.tasks[row], planted.questions[row], right)


def _words(task: int) -> list[str]:
    """Twenty words that no other task uses."""
    random = np.random.default_rng(1000 + task)
    return ["".join(random.choice(_SYLLABLES, 4)) for _ in range(20)]


#: How small models assess an answer of theirs when they are asked for one word.
_ASSESSED = ("yes", "No.", "Yes, it is correct.", "No, the answer is not right.")
_JUDGED = re.compile(r"<(answer|output)>\n(?P<said>.*?)\n</(answer|output)>", re.S)
_LISTED = re.compile(r"LLM (\d+) response:\n<answer>\n(.*?)\n</answer>", re.S)
#: Between an arm and its level in the name that is asked for.
_EFFORT = "+effort:"
#: Level of effort → share of a model's skill that it has with it.
_WITH_EFFORT = (0.6, 0.75, 0.85, 0.9)


@dataclass
class RehearsedPool(SimulatedPool):
    """Answers from `bank`: JSON lines with question, references, choices, scorer."""

    bank: str | Path = ""
    _rows: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = Path(self.bank).read_text(encoding="utf-8")
        self._bank: list[Mapping[str, Any]] = [json.loads(line) for line in text.splitlines()]

    def complete(self, request: Any) -> HttpReply:
        """One chat completion; malformed requests get a 400."""
        if not isinstance(request, dict):
            return _refuse(400, "the body must be a JSON object", "invalid_request_error")
        prompt = next(reversed(message_texts(request.get("messages"), "user")), None)
        if prompt is None:
            return _refuse(400, "'messages' needs a user message", "invalid_request_error")
        model = str(request.get("model"))
        n = int(request.get("n") or 1)
        seed = request.get("seed") or 0
        if request.get("tools"):
            return self._step(model, request, int(seed))
        row = self._known(prompt)
        key = (model, prompt[:200], int(seed))
        self.asked[key] += 1
        said = [
            SimulatedAnswer(self._say(model, prompt, row, int(seed) + k), "stop") for k in range(n)
        ]
        body = self._body(_simulated(model), key, said, request)
        return HttpReply(200, {**body, "model": model}, (), 0.0, key)

    def _step(self, model: str, request: Mapping[str, Any], seed: int) -> HttpReply:
        """A step of an agent: a search, or an answer. `tool_choice: none` leaves it no search."""
        messages = request["messages"]
        asked = next((m["content"] for m in messages if m.get("role") == "user"), "")
        query, text = act(model, self._known(str(asked)), messages, seed)
        if request.get("tool_choice") == "none" and text is None:
            query, text = None, "I do not know"
        key = (model, f"{len(messages)}:{asked}"[:200], seed)
        self.asked[key] += 1
        wrote = text if query is None else json.dumps([c["function"] for c in calls(query)])
        said = [SimulatedAnswer(wrote, "stop")]  # a call of a tool is billed as it is written
        body = self._body(_simulated(model), key, said, request)
        if query is not None:
            choice = body["choices"][0]
            choice["message"] |= {"content": None, "tool_calls": calls(query)}
            choice["finish_reason"] = "tool_calls"
        return HttpReply(200, {**body, "model": model}, (), 0.0, key)

    def _known(self, prompt: str) -> Mapping[str, Any] | None:
        if prompt not in self._rows:
            inside = [row for row in self._bank if row["question"] in prompt]
            self._rows[prompt] = max(inside, key=lambda row: len(row["question"]), default=None)
        return self._rows[prompt]

    def _say(self, model: str, prompt: str, row: Mapping[str, Any] | None, seed: int) -> str:
        if prompt.endswith(ASKS):
            return _ASSESSED[int(len(_ASSESSED) * uniform(model, prompt, seed))]
        if judged := _JUDGED.search(prompt):
            return _verdict(prompt, judged["said"], row)
        if row is None or not row["references"]:
            return f"A short reply, number {int(100 * uniform(model, prompt, seed))}."
        played, level = _effort(model)
        # What is hard for one model is hard for others, and for its other efforts more so.
        hard = 0.5 * (uniform(row["question"]) + uniform(played, row["question"]))
        luck = 0.7 * hard + 0.3 * uniform(model, prompt, seed)
        skill = 0.35 + 0.6 * uniform(played, "skill")
        if level is None:
            return _answer(row, right=luck < skill)
        right = luck < skill * _WITH_EFFORT[min(level, len(_WITH_EFFORT) - 1)]
        return "I think about it. " * (4 * level) + _answer(row, right=right)


def _answer(row: Mapping[str, Any], *, right: bool) -> str:
    said = str(row["references"][0])
    if row["scorer"] == "code":
        return f"```python\n{row.get('solution', '') if right else 'pass'}\n```"
    if not right:
        said = _other(row, said)
    if row["scorer"] == "math":
        return f"So it is \\boxed{{{said}}}"
    return said if row["scorer"] in ("meteor", "rouge_l") else f"I think so.\nAnswer: {said}"


def _other(row: Mapping[str, Any], said: str) -> str:
    """A wrong answer of the same form."""
    forms = {"yes": "no", "no": "yes", "1": "2", "2": "1", "entailment": "contradiction"}
    if row["scorer"].startswith("superglue"):
        return forms.get(said, "nobody")
    if row["scorer"] == "mcq":
        letters = [chr(65 + k) for k in range(len(row["choices"]))]
        return next(one for one in letters if one != said)
    return "-17" if row["scorer"] in ("numeric", "math") else "something else entirely"


def _verdict(prompt: str, said: str, row: Mapping[str, Any] | None) -> str:
    if listed := _LISTED.findall(prompt):
        held = [str(one) for one in row["references"]] if row is not None else []
        best = [name for name, text in listed if any(one in text for one in held)]
        # Where all are equally bad, all are equally good.
        return ", ".join(f"LLM {name}" for name in best or [name for name, _ in listed])
    right = row is not None and any(str(one) in said for one in row["references"])
    if "<output>" in prompt:
        return "Correct" if right else "Incorrect"
    if "1 (useless) to 10" in prompt or "scale of 1 to 10" in prompt:
        return f"It reads well. [[{4 + int(5 * uniform(said, 'rating'))}]]"
    return f"Compared with the references. [[{int(right)}]]"


def effort_of(arm: str, model: str, level: int) -> str:
    """Name under which an arm is asked that is this model at a level of effort, from 0 on."""
    return f"{arm}{_EFFORT}{level}:{model}"


def _effort(name: str) -> tuple[str, int | None]:
    """(model that is played, level of effort or None) of a name that the server is asked for."""
    arm, _, told = name.partition(_EFFORT)
    level, _, model = told.partition(":")
    return (model, int(level)) if model and level.isdigit() else (arm, None)


def _simulated(name: str) -> SimulatedModel:
    return SimulatedModel(name, *prices(_effort(name)[0]))


def prices(name: str) -> tuple[float, float]:
    """USD per million tokens in and out, made up from the model's name."""
    price = round(0.1 + 4 * uniform(name, "price"), 2)
    return price, 3 * price
