"""The question bank: several hundred questions with gold answers, the same on any machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

from flows.demo import numbers, reasoning, snippets
from flows.demo.question import BankQuestion, Draft, finish

SEED = 20261121
#: Task → broad field.
DOMAINS: Mapping[str, str] = {
    "capitals": "knowledge",
    "science": "knowledge",
    "grammar": "language",
    "strings": "language",
    "arithmetic": "math",
    "algebra": "math",
    "units": "math",
    "sequences": "math",
    "code_output": "code",
    "logic": "reasoning",
    "dates": "reasoning",
}
#: Tasks in which case carries no meaning, so that a question may be repeated in other case.
_TWINNED = ("capitals", "science", "units", "arithmetic", "dates", "sequences")
_TWINS = 24


@cache
def bank(seed: int = SEED) -> tuple[BankQuestion, ...]:
    """All questions, in an order that mixes the tasks.

    24 of them repeat another one in other case, spacing or accents (`twin_of`):
    an uncased encoder gives both the same vector.
    """
    questions: list[BankQuestion] = []
    for task, drafts in _drafts(seed).items():
        random = Random(f"{seed}/{task}/choices")
        seen: set[str] = set()
        for draft in drafts:
            if draft.text in seen:
                continue
            seen.add(draft.text)
            questions.append(
                finish(
                    draft,
                    id=f"{task}-{len(seen):03d}",
                    task=task,
                    domain=DOMAINS[task],
                    random=random,
                )
            )
    questions += _twins(questions, Random(f"{seed}/twins"))
    Random(f"{seed}/order").shuffle(questions)
    return tuple(questions)


def write(path: str | Path, *, seed: int = SEED) -> Path:
    """Write the bank as JSONL (one question a line, keys sorted); returns the path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = [_row(question) for question in bank(seed)]
    staged = target.with_name(target.name + ".part")
    staged.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    staged.replace(target)
    return target


def _row(question: BankQuestion) -> str:
    row = asdict(question)
    # What is planted stays with the bank: the pipeline has to find the twins itself.
    del row["twin_of"]
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def _drafts(seed: int) -> dict[str, Sequence[Draft]]:
    import yaml

    facts: dict[str, Any] = yaml.safe_load(
        files("flows.demo").joinpath("facts.yaml").read_text(encoding="utf-8")
    )

    def draw(task: str) -> Random:
        return Random(f"{seed}/{task}")

    return {
        "capitals": [
            Draft(f"What is the capital of {country}?", tuple(names))
            for country, names in facts["capitals"].items()
        ],
        "science": _choices(facts["science"]),
        "grammar": _choices(facts["grammar"]),
        "strings": snippets.string_operations(draw("strings")),
        "arithmetic": numbers.arithmetic(draw("arithmetic")),
        "algebra": numbers.algebra(draw("algebra")),
        "units": numbers.units(draw("units")),
        "sequences": numbers.sequences(draw("sequences")),
        "code_output": snippets.code_output(draw("code_output")),
        "logic": reasoning.logic(draw("logic")),
        "dates": reasoning.dates(draw("dates")),
    }


def _choices(facts: Mapping[str, Sequence[str]]) -> list[Draft]:
    return [Draft(text, (right,), tuple(wrong)) for text, (right, *wrong) in facts.items()]


def _twins(questions: Sequence[BankQuestion], random: Random) -> list[BankQuestion]:
    accented = [q for q in questions if "ã" in q.question]
    others = [q for q in questions if q.task in _TWINNED and q not in accented]
    chosen = accented + random.sample(others, _TWINS - len(accented))
    return [
        replace(q, id=f"{q.id}-again", question=_respell(q.question, index), twin_of=q.id)
        for index, q in enumerate(chosen)
    ]


def _respell(text: str, index: int) -> str:
    """The same words in other dress: accents, capitals or spacing."""
    plain = text.translate(str.maketrans("ãé", "ae"))
    if plain != text:
        return plain
    return (text.upper(), text.lower(), text.replace(" ", "  "), text.title())[index % 4]
