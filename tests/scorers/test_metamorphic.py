"""Rewrites of references of the data folder: meaning kept is accepted, meaning changed refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.scorers import SCORERS
from pipelines.scorers.scorer import Asked

Rewrite = Callable[[str], str]

NUMBER_KEPT: list[Rewrite] = [
    lambda n: f"The answer is {n}.",
    lambda n: f"\\boxed{{{n}}}",
    lambda n: f"#### {n}",
    lambda n: f'{{"reasoning": "2 + 2 = 4", "answer": "{n}"}}',
    lambda n: f"<answer>{n}</answer>",
    lambda n: f"**Final Answer:** {n}",
    lambda n: f"Answer: {n}.00",
    lambda n: f"Answer: ${int(n):,}",
    lambda n: f"\\boxed{{{int(n):,}}}".replace(",", ",\\!"),
    lambda n: f"First 1 + 1 = 2.\n\n**{n}**",
    lambda n: f"The answer is not {int(n) + 1} but {n}.",
    lambda n: f"The answer is {int(n) + 1}. Wait, I made a mistake. The answer is {n}.",
]
NUMBER_CHANGED: list[Rewrite] = [
    lambda n: f"The answer is {int(n) + 1}.",
    lambda n: f"\\boxed{{{int(n) * 10 + 1}}}",
    lambda n: f"#### {n}.5",
    lambda n: f"Answer: {n}\\sqrt{{2}}",
    lambda n: f"Answer: {n}i",
    lambda n: f"Answer: {n} + sqrt(3)",
    lambda n: f"Answer: x > {n}",
    lambda n: f"Answer: {n}x",
    lambda n: f"\\boxed{{{n}\\pi}}",
    lambda n: f"Answer: {n} or {int(n) + 1}",
    lambda n: f"The answer is {n}. Wait, I made a mistake. The answer is {int(n) + 1}.",
    lambda n: f"The answer is not {n} but {int(n) + 1}.",
]
LETTER_KEPT: list[Rewrite] = [
    lambda a: f"The answer is ({a}).",
    lambda a: f"Answer: {a}",
    lambda a: f"\\boxed{{{a}}}",
    lambda a: f"<answer>{a}</answer>",
    lambda a: f"So {a}.",
    lambda a: f"It must be {a}",
    lambda a: f"La respuesta correcta es la {a}.",
    lambda a: f"Die richtige Antwort ist {a}.",
    lambda a: f"La réponse est {a}.",
    lambda a: f"正确答案是{a}。",
    lambda a: f"정답: {a}",
    lambda a: f"Ответ: {a}",
]
LETTER_CHANGED: list[Rewrite] = [
    lambda a, w=way: w(_other(a))  # type: ignore[misc]
    for way in LETTER_KEPT
]


def _other(letter: str) -> str:
    return "ABCDEFGHIJ"[("ABCDEFGHIJ".index(letter) + 1) % 4]


def _shares(
    scorer: str, references: list[str], kept: list[Rewrite], changed: list[Rewrite]
) -> tuple[float, float]:
    read = SCORERS.get(scorer).read
    choices = (
        ("wa", "wb", "wc", "wd", "we", "wf", "wg", "wh", "wi", "wj") if scorer == "mcq" else ()
    )
    asked = [Asked("", (reference,), choices) for reference in references]
    same = [read(one, way(one.references[0])).outcome == "correct" for one in asked for way in kept]
    other = [
        read(one, way(one.references[0])).outcome != "correct" for one in asked for way in changed
    ]
    return sum(same) / len(same), sum(other) / len(other)


@pytest.mark.data
@pytest.mark.parametrize("scorer", ["numeric", "auto"])
def test_rewritten_numbers(data: Path, scorer: str) -> None:
    lines = (data / "gsm8k" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line)["answer"].rpartition("#### ")[2].replace(",", "") for line in lines]
    references = [one for one in answers if re.fullmatch(r"[1-9]\d*", one)][:600]
    kept, changed = _shares(scorer, references, NUMBER_KEPT, NUMBER_CHANGED)
    assert len(references) == 600
    assert kept >= 0.98
    assert changed == 1


@pytest.mark.data
def test_rewritten_options(data: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(data / "mmlu_pro" / "queries.parquet", columns=["answer"])
    references = [one for one in table.column("answer").to_pylist() if one in "ABCDEFGHIJ"][:500]
    kept, changed = _shares("mcq", references, LETTER_KEPT, LETTER_CHANGED)
    assert kept >= 0.98
    assert changed == 1
