"""An EmbedLLM-shaped benchmark with planted structure, for rehearsals and tests.

What is planted, and can be found again: near-duplicate questions whose labels conflict, tasks
that are the same as another, many models that copy one's answers, tasks that ask for a
specialist and tasks that are hard for everyone.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from routeyard.pipelines.arrays import Bools, Ints

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
