"""A rehearsal: a recipe built end to end from fixture rows and a pool on loopback, for nothing.

Catalogue sources become files of rows written by us, each model and judge of the recipe is
played by one local server, EmbedLLM is planted. The recipe that comes of it is an ordinary one
and is in the workspace, beside the files it reads.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.flows.build import run_build
from routeyard.flows.demo.answers import (
    SimulatedAnswer,
    SimulatedModel,
    act,
    calls,
    uniform,
    write_lines,
)
from routeyard.flows.demo.answers import bank as questions
from routeyard.flows.demo.server import HttpReply, SimulatedPool, running
from routeyard.flows.recipe import load, resized, scaled
from routeyard.pipelines.collect.budget import Price
from routeyard.pipelines.common.arrays import Bools, Ints
from routeyard.pipelines.common.files import names
from routeyard.pipelines.evaluate.signals import ASKS
from routeyard.pipelines.ingest.catalog import entry, from_catalog
from routeyard.pipelines.ingest.queries import each_item, to_queries
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe import HiddenStates, Pool, Provider, Recipe, Source, Waiver

# The pool of a rehearsal: answers any model's prompts from a file of fixture questions.
#
# Models are right with a chance that depends on their name; a prompt that shows an answer to
# judge gets a verdict in the form that Routeyard's own prompts ask for.

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

    faults: float = 0.0
    bank: str | Path = ""
    _rows: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = Path(self.bank).read_text(encoding="utf-8")
        self._bank: list[Mapping[str, Any]] = [json.loads(line) for line in text.splitlines()]

    def complete(self, request: Any) -> HttpReply:
        """One chat completion, or a step of an agent; malformed requests get a 400."""
        if isinstance(request, dict) and request.get("tools"):
            return self._step(str(request.get("model")), request, int(request.get("seed") or 0))
        return super().complete(request)

    def _model(self, name: str) -> SimulatedModel:
        return SimulatedModel(name, *prices(_effort(name)[0]))

    def _name(self, prompt: str) -> str:
        return prompt[:200]

    def _answer(
        self, model: SimulatedModel, prompt: str, sample: int, limit: int | None
    ) -> SimulatedAnswer:
        text = self._say(model.model_id, prompt, self._known(prompt), sample)
        return SimulatedAnswer(text, "stop")

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
        body = self._body(self._model(model), key, said, request)
        if query is not None:
            choice = body["choices"][0]
            choice["message"] |= {"content": None, "tool_calls": calls(query)}
            choice["finish_reason"] = "tool_calls"
        return HttpReply(200, body, (), 0.0, key)

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
        return next(letter for letter in letters if letter != said)
    return "-17" if row["scorer"] in ("numeric", "math") else "something else entirely"


def _verdict(prompt: str, said: str, row: Mapping[str, Any] | None) -> str:
    if listed := _LISTED.findall(prompt):
        held = [str(item) for item in row["references"]] if row is not None else []
        best = [name for name, text in listed if any(item in text for item in held)]
        # Where all are equally bad, all are equally good.
        return ", ".join(f"LLM {name}" for name in best or [name for name, _ in listed])
    right = row is not None and any(str(item) in said for item in row["references"])
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
    arm, _, suffix = name.partition(_EFFORT)
    level, _, model = suffix.partition(":")
    return (model, int(level)) if model and level.isdigit() else (arm, None)


def prices(name: str) -> tuple[float, float]:
    """USD per million tokens in and out, made up from the model's name."""
    price = round(0.1 + 4 * uniform(name, "price"), 2)
    return price, 3 * price


URL = "ROUTEYARD_REHEARSAL_URL"
EMBEDLLM = "ROUTEYARD_EMBEDLLM"
REAL = "ROUTEYARD_REAL_URL"
_BANK = "ROUTEYARD_DEMO_BANK"
ISSUE = (
    "This is a rehearsal: rows written for Routeyard replace the datasets and {} replace "
    "the models. It shows that the recipe builds, and says nothing about any real model."
)
#: EmbedLLM questions of a rehearsal, of 35,673.
PLANTED = 1_200
#: Questions of each part of a rehearsal's split, or a quarter of them: of two test questions no
#: router can be told from another.
LEAST = 8
#: Tasks of a rehearsal, of 80, by EmbedLLM's names: with fewer questions a task, luck hides what is
#: planted. The first three are hard, as RouterBench+ finds them; the last three repeat others.
TASKS = (
    "logiqa", "social_iqa", "gpqa", "mathqa", "asdiv", "gsm8k", "medmcqa",
    "mmlu_clinical_knowledge", "piqa", "mmlu_astronomy", "mmlu_philosophy", "truthfulqa",
    "mmlu_college_physics", "winogrande",
)  # fmt: skip


def rehearse(recipe: str, workspace: str, *, copies: int = 3, real: bool = False) -> dict[str, Any]:
    """Build the rehearsal of a recipe; the summary of `routeyard build`.

    Args:
        copies: How often each fixture row is asked, each time as another variant.
        real: A real small model, in several quantisations, answers in the place of the pool's
            models; its layers read the questions where the recipe has `hidden_states`. Verifiers
            and judges are played all the same: the model is too small for it.

    Raises:
        BadInput: a source is neither of the catalog nor an import of EmbedLLM.
    """
    root = Path(workspace).absolute()
    folder = root / "rehearsals" / load(recipe)[0].name
    folder.mkdir(parents=True, exist_ok=True)
    with _embedllm(recipe, folder):
        checked, _ = load(recipe)
        if all(model.simulated for model in checked.pool.models):  # nobody would be asked anyway
            return run_build(recipe, workspace, jobs=1, until="release")
        if checked.collect.provider == "recorded":
            small = _shrunk(checked)
            path = _write_recipe(small, folder)
            return run_build(str(path), workspace, jobs=1, until="release")

        sources, bank = _fixtures(checked, folder, copies)
        with running("rehearsed", bank=str(bank)) as url, _environment({URL: url}):
            played = _played(checked, sources)
            if real:
                played = _real(played, checked.hidden_states)
            path = _write_recipe(played, folder, real=real)
            return run_build(str(path), workspace, jobs=1, until="release")


def _shrunk(recipe: Recipe) -> Recipe:
    """A recipe of recorded answers with about `PLANTED` questions; whole where no source says
    how many it has."""
    limit = sum(source.limit or 0 for source in recipe.sources)
    scale = min(1.0, PLANTED / max(limit, 1))
    if scale == 1:
        return recipe
    stated = [item.but(limit=item.limit or PLANTED) for item in recipe.sources]
    return scaled(recipe.but(sources=stated), scale)


def _fixtures(recipe: Recipe, folder: Path, copies: int) -> tuple[list[Source], Path]:
    """Sources that read fixture rows, and the bank of their questions for the server."""

    sources: list[Source] = []
    bank: list[dict[str, Any]] = []
    for listed in recipe.sources:
        if _BANK in names(str(listed.path or "")):  # our own questions need no replacement
            sources.append(listed)
            bank += [asdict(question) for question in questions()]
            continue
        if listed.catalog is None:
            raise BadInput(
                f"source {listed.name!r} is not from the catalog, so there are no rows to rehearse",
                next_step="name a 'catalog' entry, or build the recipe itself",
            )
        source, rows = _varied(from_catalog(listed), listed.catalog, copies)
        path = write_lines(folder / f"{listed.name}.jsonl", rows)
        taken, _ = to_queries(
            source.but(limit=None, dense=None),
            each_item(source, rows, where=path.name),
            seen=Counter(),
            where=path.name,
        )
        solutions = [_solution(row) for row in each_item(source, rows, where=path.name)]
        for query, solution in zip(taken, solutions, strict=False):
            fields = {k: query[k] for k in ("question", "references", "choices", "scorer")}
            bank.append({**fields, "solution": solution})
        dense = None if source.dense is None else max(1, round(0.4 * len(taken)))
        update = {"path": path.name, "limit": len(taken), "dense": dense}
        sources.append(source.model_copy(update=update))
    return sources, write_lines(folder / "bank.jsonl", bank)


def _varied(source: Source, name: str, copies: int) -> tuple[Source, list[dict[str, Any]]]:
    """The source on files, each fixture row `copies` times with another `_variant`."""
    rows = [
        {"_config": "", "_split": "", **row, "_variant": f" (variant {k})" if k else ""}
        for k in range(copies)
        for row in entry(name).rows
    ]
    assert source.fields is not None
    fields = source.fields.but(
        question=_template(source.fields.question),
        id=None if source.fields.id is None else _template(source.fields.id),
    )
    changes: dict[str, Any] = {
        "format": "jsonl",
        **dict.fromkeys(("catalog", "hub_id", "config")),
        "fields": fields,
        "where": {},
        "exclude": {},
    }
    return source.model_copy(update=changes), rows


def _template(mapped: str) -> str:
    whole = mapped if "{{" in mapped or "{%" in mapped else f"{{{{ _row[{mapped!r}] }}}}"
    return whole + "{{ _variant }}"


def _solution(row: Mapping[str, Any]) -> str:
    """A program that passes the row's tests, where the dataset has one."""
    if "canonical_solution" in row:
        return str(row["prompt"]) + str(row["canonical_solution"])
    return str(row.get("code", ""))


def _played(recipe: Recipe, sources: list[Source]) -> Recipe:
    """The recipe over the fixture sources, every model played by the local server."""

    stage = Provider(name="rehearsal", base_url=f"${{{URL}}}")
    models = []
    for model in recipe.pool.models:
        if model.relay is not None:
            models.append(model.but(simulated=True))
            continue
        # Efforts are played by one simulated model, which knows how many levels there are below.
        played = model.model_id if model.arm is None else model.arm.of
        price_in, price_out = prices(played)
        level = None if model.arm is None else model.arm.effort_level
        called = None if level is None else effort_of(model.model_id, played, level)
        stated = {
            "endpoint_model": called, "provider": "rehearsal", "simulated": True,
            **Price(price_in, price_out, "2026-11-01", "made up for the rehearsal").stated,
        }  # fmt: skip
        models.append(model.model_copy(update=stated))
    label = recipe.label.but(
        verifiers=[v.but(provider=stage) for v in recipe.label.verifiers],
        judges=[j.but(provider=stage) for j in recipe.label.judges],
    )
    small = resized(recipe, sources, LEAST)
    return small.but(
        pool=Pool(models=models, providers=[stage]),
        label=label,
        collect=small.collect.but(max_tokens=512),
        hidden_states=None,
    )


def _real(played: Recipe, layers: HiddenStates | None) -> Recipe:
    """The rehearsal with a real model in the place of the pool's, the coarser the smaller theirs.

    Judges stay programs: a model of 135 million parameters names the first of two answers in
    either order, or none.
    """
    from routeyard.flows.demo.real import VARIANTS
    from routeyard.schemas.recipe.collect import RateLimits

    stage = Provider(name="real", base_url=f"${{{REAL}}}", limits=RateLimits(concurrency=2))
    models = played.pool.models
    largest = sorted(models, key=lambda item: -(item.params_b or float("inf")))
    finest = list(VARIANTS)
    last = max(len(models) - 1, 1)
    serves = {
        element.model_id: finest[round(place * (len(finest) - 1) / last)]
        for place, element in enumerate(largest)
    }
    asked = [
        model if model.relay is not None else model.but(
            endpoint_model=serves[model.model_id], provider=stage.name, simulated=False,
            price_cache_read=0.0, context_window=2048,
        )
        for model in models
    ]  # fmt: skip
    waived = [
        Waiver(gate=f"metering:{gate}", reason="A small model on the machine that rehearses.")
        for gate in ("truncated", "latency")
    ]
    return played.but(
        pool=Pool(models=asked, providers=[stage]),
        collect=played.collect.but(
            max_tokens=64,
            deadline_s=300.0,
            metering=played.collect.metering.but(cache_unwritten=1.0),
        ),
        release=played.release.but(waivers=[*played.release.waivers, *waived]),
        hidden_states=None if layers is None else layers.but(weights="smollm2", dtype="float32"),
    )


def _write_recipe(recipe: Recipe, folder: Path, *, real: bool = False) -> Path:
    """The rehearsal's recipe as YAML beside its files, named after the real one."""
    import yaml

    said = ISSUE.format("SmolLM2-135M in several quantisations" if real else "programs")
    release = recipe.release.but(known_issues=[*recipe.release.known_issues, said])
    content = recipe.but(release=release).model_dump(mode="json", exclude_unset=True)
    content["name"] = f"{recipe.name}-rehearsal"
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


@contextmanager
def _embedllm(recipe: str, folder: Path) -> Iterator[None]:
    """A planted EmbedLLM, imported, where the recipe reads one."""
    checked, _ = load(recipe)
    if not any(EMBEDLLM in (source.path or "") for source in checked.sources):
        yield
        return
    from routeyard.pipelines.ingest.importers import IMPORTERS
    from routeyard.pipelines.ingest.importers.write import run_import

    raw = write_embedllm(plant(questions=PLANTED, names=TASKS, twin_tasks=3), folder / "embedllm")
    # Another version of Routeyard may have planted others; what is made of them is made again.
    shutil.rmtree(folder / "import", ignore_errors=True)
    done = run_import(IMPORTERS.get("embedllm"), raw, folder / "import")
    with _environment({EMBEDLLM: str(done.folder)}):
        yield


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
