"""Rewrites of references of the data folder: meaning kept is accepted, meaning changed refused.

The quick part takes a seeded share of the references; the whole is marked slow.
"""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routeyard.pipelines.label.scorers import SCORERS, symbolic
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from tests.scorers.rewrites import (
    LITERAL_CHANGED,
    LITERAL_KEPT,
    MATH_CHANGED,
    MATH_KEPT,
    NUMBER_CHANGED,
    NUMBER_KEPT,
    SCALAR_CHANGED,
    SCALAR_KEPT,
    Rewrite,
)

WHOLE, QUICK = 1_000, 25
SIZES = [QUICK, pytest.param(WHOLE, marks=pytest.mark.slow)]


@pytest.fixture(scope="module", autouse=True)
def _worker() -> Iterator[None]:
    yield
    symbolic.close()


def _seeded(found: list[str], size: int) -> list[str]:
    every = sorted(set(found))
    return random.Random(15).sample(every, min(size, len(every)))


def _options(data: Path, pattern: str, categories: set[str] | None = None) -> list[str]:
    """Options of MMLU-Pro that a pattern matches as a whole."""
    import pyarrow.parquet as pq

    rows = pq.read_table(data / "mmlu_pro" / "queries.parquet").to_pylist()
    return [
        option.strip()
        for row in rows
        if categories is None or row["category"] in categories
        for option in row["options"]
        if re.fullmatch(pattern, option.strip())
    ]


def _check(
    scorer: str,
    references: list[str],
    ways: Callable[[str], tuple[list[Rewrite], list[Rewrite]]],
    choices: Callable[[str], tuple[str, ...]] = lambda reference: (),
) -> None:
    """Every reference in its dozen rewrites; the share kept, and every changed one refused."""
    read = SCORERS.get(scorer).read
    refused: list[str] = []
    accepted: list[str] = []
    counts: dict[bool, list[int]] = defaultdict(list)
    for at, reference in enumerate(references):
        other = references[(at + 1) % len(references)]
        asked = ScoringInput("", (reference,), choices(reference))
        if read(asked, f"Answer: {other}").outcome == "correct":
            continue  # another spelling of the same value
        for kept, rewrites in zip((True, False), ways(reference), strict=True):
            outputs = [text for way in rewrites if (text := way(reference, other)) is not None]
            counts[kept].append(len(outputs))
            for output in outputs:
                right = read(asked, output).outcome == "correct"
                if right != kept:
                    (refused if kept else accepted).append(f"{reference!r}: {output!r}")
    share = 1 - len(refused) / sum(counts[True])
    print(  # for the report: pytest -s
        f"{scorer}: {len(counts[True])} references, {sum(counts[True])} kept "
        f"({share:.4f} accepted), {sum(counts[False])} changed ({len(accepted)} accepted)"
    )
    assert len(counts[True]) >= 0.9 * len(references)
    assert min(counts[True]) >= 12
    assert min(counts[False]) >= 12
    assert accepted == []
    assert share >= 0.98, refused[:20]


@pytest.mark.data
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scorer", ["numeric", "auto", "math"])
def test_whole_numbers(data: Path, scorer: str, size: int) -> None:
    lines = (data / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line)["answer"].rpartition("#### ")[2].replace(",", "") for line in lines]
    references = _seeded([one for one in answers if re.fullmatch(r"[1-9]\d*", one)], size)
    _check(scorer, references, lambda reference: (NUMBER_KEPT, NUMBER_CHANGED))


@pytest.mark.data
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("form", "pattern"),
    [("decimal", r"-?[1-9]\d*\.\d*[1-9]"), ("fraction", r"-?[1-9]\d?/(?:[2-9]|[1-9]\d)")],
)
@pytest.mark.parametrize("scorer", ["numeric", "math"])
def test_decimals_and_fractions(
    data: Path, scorer: str, form: str, pattern: str, size: int
) -> None:
    _check(
        scorer,
        _seeded(_options(data, pattern), size),
        lambda reference: (NUMBER_KEPT, NUMBER_CHANGED),
    )


_FORMULA = (
    r"(?=.*[A-Za-z\\^])(?!.*(?<!\\)\b(?!(?:sqrt|sin|cos|tan|log|ln|exp|pi|frac)\b)[A-Za-z]{2,})"
    r"[-+*/^_(){}\[\],.=\\ \dA-Za-z√π]{2,60}"
)


def _is_scalar(reference: str) -> bool:
    """Whether algebra may be done around it: no list, relation, clock or quantity with a unit."""
    if re.search(r"\d [A-Za-z]{1,3}$|\)[A-Z]$|:|\.\.|\^-\d\w", reference):
        return False
    return not re.search(r"[=<>,;]|\\(?:cup|in|pm|le|ge|begin|text)|[\[\]]", reference)


@pytest.mark.data
@pytest.mark.parametrize("size", SIZES)
def test_mathematics(data: Path, size: int) -> None:
    import pyarrow.parquet as pq

    answers = pq.read_table(data / "math_samples" / "queries.parquet").column("answer").to_pylist()
    answers = [one for one in answers if not re.fullmatch(r"[\d.]+|.*\\text.*", one)]
    options = [
        one.strip("$")
        for one in _options(data, _FORMULA, {"math", "physics", "engineering", "computer science"})
        if one.count("(") == one.count(")")
        and one.count("{") == one.count("}")
        # what is multiplied by nothing may change, and nothing times two is nothing
        and not re.search(r"\b0\(|^0\.?0*(?![.\d])", one)
        and not re.fullmatch(r"\d+\^0", one)  # its digit is a degree sign
        and not re.search(r"\d\s?=\s?\d", one)  # of a calculation the result counts
        and one.count("=") < 2  # of a chain the last member counts, whatever stands before it
        and not re.fullmatch(r"1\^\d+", one)  # 1 to any power is 1
    ]
    # Computer algebra takes its time; of the whole size some are their neighbour in other words.
    size = size + size // 5 if size > QUICK else QUICK // 2
    references = _seeded(answers, size // 4)
    references += _seeded(options, size - len(references))

    def ways(reference: str) -> tuple[list[Rewrite], list[Rewrite]]:
        scalar = _is_scalar(reference)
        return (
            MATH_KEPT + (SCALAR_KEPT if scalar else []),
            MATH_CHANGED + (SCALAR_CHANGED if scalar else []),
        )

    _check("math", references, ways)


@pytest.mark.data
@pytest.mark.parametrize("size", SIZES)
def test_literals(data: Path, size: int) -> None:
    found = []
    with gzip.open(data / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            for node in ast.walk(ast.parse(json.loads(line)["test"])):
                try:
                    found.append(repr(ast.literal_eval(node)))  # type: ignore[arg-type]
                except (ValueError, TypeError, SyntaxError, RecursionError):
                    continue
    _check("literal", _seeded(found, size), lambda reference: (LITERAL_KEPT, LITERAL_CHANGED))


LETTER_SAID = [
    "The answer is ({r}).",
    "Answer: {r}",
    "\\boxed{{{r}}}",
    "<answer>{r}</answer>",
    "So {r}.",
    "It must be {r}",
    "La respuesta correcta es la {r}.",
    "Die richtige Antwort ist {r}.",
    "La réponse est {r}.",
    "正确答案是{r}。",
    "정답: {r}",
    "Ответ: {r}",
    "I first thought ({p}), but on reflection the answer is ({r}).",
    '{{"reasoning": "{p} is wrong", "answer": "{r}"}}',
]


@pytest.mark.data
@pytest.mark.parametrize("size", SIZES)
def test_options(data: Path, size: int) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_table(data / "mmlu_pro" / "queries.parquet").to_pylist()
    rows = [row for row in rows if len(row["options"]) >= 4]
    read = SCORERS.get("mcq").read
    kept: list[bool] = []
    accepted: list[str] = []
    for row in random.Random(15).sample(rows, size):
        asked = ScoringInput(row["question"], (row["answer"],), tuple(row["options"]))
        right = row["answer"]
        wrong = "ABCDEFGHIJ"[("ABCDEFGHIJ".index(right) + 1) % len(row["options"])]
        contents = {
            letter: row["options"]["ABCDEFGHIJ".index(letter)].strip() for letter in (right, wrong)
        }
        distinct = len({" ".join(one.lower().split()) for one in row["options"]}) == len(
            row["options"]
        )
        for form in LETTER_SAID:
            kept.append(read(asked, form.format(r=right, p=wrong)).outcome == "correct")
            output = form.format(r=wrong, p=right)
            if read(asked, output).outcome == "correct":
                accepted.append(output)
        if distinct:  # an option that merely is quoted
            kept.append(read(asked, f"({right}) {contents[right]}").outcome == "correct")
            output = f"({wrong}) {contents[wrong]}"
            if read(asked, output).outcome == "correct":
                accepted.append(output)
    print(f"mcq: {size} references, {len(kept)} kept ({sum(kept) / len(kept):.4f} accepted)")
    assert accepted == []
    assert sum(kept) / len(kept) >= 0.98
