"""`math`: what an answer is does not depend on other answers, and no answer can leave the count."""

from __future__ import annotations

import itertools
import json
import random
import resource
from collections.abc import Sequence
from pathlib import Path

import pytest

import routeyard
from tests.conftest import Call

HALF, SPELLED = r"\frac{\sqrt{2}}{2}", r"\cos(\pi/4)"
#: Each a different way to be too large, too long or too slow.
HOSTILE = [
    *(rf"9^{{9^{{9^{{9}}}}}}+{n}" for n in range(12)),
    r"(10^9)!",
    "9!!!!!!",
    "2^{" * 60 + "2" + "}" * 60,
    "9" * 5_000,
    "x+" * 400 + "1",
    r"x^{10^{10}}",
    r"(x+1)^{10^{10}}",
    r"\binom{10^{9}}{5\cdot 10^{8}}",
    r"\sqrt{2}^{10^{9}}",
    r"\sin(10^{10^{6}})",
    r"e^{e^{e^{e^{9}}}}",
    r"|9^{9^{9^{9}}}|",
    r"\left\lfloor \frac{9^{9^{9}}}{7} \right\rfloor",
    r"\cos(\pi/4)+10^{-10^{9}}",
    r"0\cdot 9^{9^{9^{9}}}+\cos(\pi/4)",
    r"\gcd(10^{10^{8}},7)",
    r"\pi^{\pi^{\pi^{\pi^{\pi}}}}",
    "(" * 300 + "x" + ")" * 300,
]


def _read(call: Call, tmp_path: Path, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Outcomes of (answer, reference), read one after the other in one process."""
    path = tmp_path / "answers.jsonl"
    lines = [
        {"scorer": "math", "references": [reference], "output": rf"\boxed{{{answer}}}"}
        for answer, reference in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = call("score", path, "--json")
    assert done.returncode == 0, done.stderr
    return [row["outcome"] for row in json.loads(done.stdout)]


def test_right_answers_are_right_before_between_and_after_hostile_ones(
    call: Call, tmp_path: Path
) -> None:
    rows = [(SPELLED, HALF), ("5", HALF), ("7", "7"), (HALF, SPELLED)]
    rows += [(answer, HALF) for answer in (*HOSTILE[:4], HOSTILE[12], HOSTILE[17])]
    wanted = dict(zip(rows, ["correct", "incorrect", "correct", "correct"], strict=False))
    for seed in range(2):
        random.Random(seed).shuffle(rows)
        outcomes = _read(call, tmp_path, rows)
        assert outcomes == [wanted.get(row, "incorrect") for row in rows]


def test_thirty_hostile_answers_are_wrong_and_take_seconds() -> None:
    assert len(set(HOSTILE)) == 30
    routeyard.score(SPELLED, HALF, scorer="math")  # what starts the first comparison
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    said = {
        answer: routeyard.score(rf"\boxed{{{answer}}}", HALF, scorer="math") for answer in HOSTILE
    }
    spent = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before
    assert {answer[:30]: one.outcome for answer, one in said.items()} == {
        answer[:30]: "incorrect" for answer in HOSTILE
    }
    assert routeyard.score(rf"\boxed{{{SPELLED}}}", HALF, scorer="math").outcome == "correct"
    assert spent < 15


@pytest.mark.parametrize(
    ("answer", "references", "outcome"),
    [
        # the fault of a reference, whatever answers it
        ("5", [r"9^{9^{9^{9}}}"], "error"),
        (r"9^{9^{9^{8}}}", [r"9^{9^{9^{9}}}"], "error"),
        (r"\sin(5)", [r"\sin(5)+(10^9)!"], "error"),
        # its own text is it all the same
        (r"9^{9^{9^9}}", [r"9^{9^{9^{9}}}"], "correct"),
        # a reference that cannot be evaluated hides no other
        (SPELLED, [r"9^{9^{9^{9}}}", HALF], "correct"),
        (SPELLED, [HALF, r"9^{9^{9^{9}}}"], "correct"),
        (r"9^{9^{9^{9}}}", ["5", r"9^{9^{9^9}}"], "error"),
        (r"9^{9^{9^{9}}}", [r"9^{9^{9^9}}", "5"], "error"),
        # large is not too large, and all digits count
        (r"10^{10^{6}}", [r"10^{1000000}"], "correct"),
        ("20000!", [r"20000 \cdot 19999!"], "correct"),
        (r"2^{20000}+1", [r"2^{20000}"], "incorrect"),
        # other forms are apart without evaluation
        (r"\{1, 2\}", [r"9^{9^{9^{9}}}"], "incorrect"),
        # hostile parts of answers that have several
        (r"\{9^{9^{9^{9}}}, 1\}", [r"\{\sqrt{2}, 1\}"], "incorrect"),
        (r"(0, 9^{9^{9^{9}}})", [r"(0, \sqrt{2})"], "incorrect"),
        (
            r"\begin{pmatrix}1&9^{9^{9^9}}\\0&1\end{pmatrix}",
            [r"\begin{pmatrix}1&\sqrt{2}\\0&1\end{pmatrix}"],
            "incorrect",
        ),
    ],
)
def test_who_is_at_fault(answer: str, references: list[str], outcome: str) -> None:
    assert routeyard.score(rf"\boxed{{{answer}}}", references, scorer="math").outcome == outcome


def test_a_model_cannot_leave_the_count(call: Call, tmp_path: Path) -> None:
    """60 % right, and bombs on the rest, is 60 %; nor does that touch an honest model."""
    rows = []
    for number, model in itertools.product(range(40), ("hostile", "honest")):
        evades = number < 16
        reference = HALF if number % 2 else rf"\sqrt{{{number + 2}}}+\frac{{1}}{{3}}"
        right = SPELLED if number % 2 else rf"\frac{{1}}{{3}}+\sqrt{{{number + 2}}}"
        answer = rf"9^{{9^{{9^{{9}}}}}}+{number}" if evades and model == "hostile" else right
        rows.append(
            {
                "question_id": f"q{number}",
                "question": f"What is value {number} of the table?",
                "reference": reference,
                "model": model,
                "output": rf"\boxed{{{answer}}}",
            }
        )
    source, yard = tmp_path / "answers.jsonl", tmp_path / "yard"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = call("try", source, "--workspace", yard, "--no-open", "--json")
    assert done.returncode == 0, done.stderr
    (manifest,) = yard.glob("try/*/releases/*/1.0.0/manifest.json")
    labels = routeyard.open_release(manifest.parent).arrow("labels").to_pylist()
    rates = {
        model: [row["correct"] for row in labels if row["model_id"] == model]
        for model in ("hostile", "honest")
    }
    assert {model: (len(said), said.count(True)) for model, said in rates.items()} == {
        "hostile": (40, 24),
        "honest": (40, 40),
    }
