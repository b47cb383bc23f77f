"""`code`: what is run, what is abstained on, and the unit-test formats."""

from __future__ import annotations

import ast
import gzip
import json
import random
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.common.errors import Unsafe
from routeyard.pipelines.common.isolation.jail import host
from routeyard.pipelines.label.scorers import code
from routeyard.pipelines.label.scorers.scorer import ScoringInput

PROMPT = 'from typing import List\n\ndef total(xs: List[int]) -> int:\n    """Sum of xs."""\n'
CHECK = "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n"
HUMANEVAL = ScoringInput(PROMPT, (CHECK,), metadata={"entry_point": "total"})
FENCED = "Here it is:\n\n```python\ndef total(xs):\n    return sum(xs)\n```\nIt adds."


def outcome(asked: ScoringInput, output: str) -> str:
    return code.read(asked, output).outcome


def test_a_fenced_program_is_run_and_its_span_named() -> None:
    reading = code.read(HUMANEVAL, FENCED)
    assert (reading.outcome, reading.score) == ("correct", 1.0)
    assert reading.span is not None
    assert FENCED[slice(*reading.span)] == reading.extracted
    assert reading.extracted == "def total(xs):\n    return sum(xs)\n"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("    return sum(xs)\n", "correct"),
        # base models run on after the answer
        ("    return sum(xs)\n\n\ndef other(:\n    pass", "correct"),
        ("    return len(xs)\n", "incorrect"),
        # trap: the usage example after the program is not the program
        (FENCED + "\n```python\nprint(total([1]))\n```", "correct"),
        ("```python\ndef total(xs):\n    return sum(xs)", "correct"),
        # uses what the prompt imports
        ("```python\ndef total(xs: List[int]):\n    return sum(xs)\n```", "correct"),
        ("```bash\npip install numpy\n```", "abstain"),
        ("I would rather not.", "abstain"),
        ("", "abstain"),
        ("```python\ndef sum_up(xs):\n    return sum(xs)\n```", "incorrect"),
    ],
)
def test_what_counts_as_the_program(output: str, expected: str) -> None:
    assert outcome(HUMANEVAL, output) == expected


def test_mbpp_asserts_and_objects_of_the_program() -> None:
    tests = ("assert longest([Pair(1, 2), Pair(3, 4)]) == 2", "assert longest([]) == 0")
    asked = ScoringInput("Write a function.", tests, metadata={})
    pair = "class Pair:\n    def __init__(self, a, b):\n        self.a = a\n"
    good = f"```python\n{pair}def longest(ps):\n    return len([p.a for p in ps])\n```"
    assert outcome(asked, good) == "correct"
    assert outcome(asked, good.replace("len(", "1 + len(")) == "incorrect"


def test_a_program_may_be_asked_for_a_builtin_but_not_blind_the_comparison() -> None:
    asked = ScoringInput("Add.", ("assert sum(1, 2) == 3",), metadata={})
    assert outcome(asked, "```python\ndef sum(a, b):\n    return a + b\n```") == "correct"
    compared = ScoringInput("Unique.", ("assert set(unique([1, 1])) == set([1])",), metadata={})
    blind = "```python\ndef unique(xs):\n    return []\ndef set(xs):\n    return 0\n```"
    assert outcome(compared, blind) == "incorrect"


def test_exceptions_the_tests_expect_reach_them() -> None:
    test = """
def check(candidate):
    try:
        candidate(None)
    except ValueError:
        return
    raise AssertionError
"""
    asked = ScoringInput(PROMPT, (test,), metadata={"entry_point": "total"})
    assert outcome(asked, "    raise ValueError('no')\n") == "correct"
    assert outcome(asked, "    raise KeyError('no')\n") == "incorrect"
    assert outcome(asked, "    raise AssertionError\n") == "incorrect"


CASES = json.dumps([{"input": "2 3\n", "output": "5\n"}, {"input": "0 0\n", "output": "0"}])


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("print(sum(map(int, input().split())))", "correct"),
        ("import sys\nprint(float(sum(map(int, sys.stdin.read().split()))))", "correct"),
        (
            "if __name__ == '__main__':\n    a, b = map(int, input().split())\n    print(a + b)",
            "correct",
        ),
        ("print(5)", "incorrect"),
        ("print(sum(map(int, input().split())))\nexit(1)", "incorrect"),
        ("import os, sys\nos._exit(0)", "incorrect"),
        ("while True: print('x' * 1000)", "incorrect"),
    ],
)
def test_livecodebench_standard_input(program: str, expected: str) -> None:
    asked = ScoringInput("Add two numbers.", (CASES,), options={"code_cpu_s": 2})
    assert outcome(asked, f"```python\n{program}\n```") == expected


@pytest.mark.parametrize(
    "tests", ["[1, 2]", '[{"input": "1"}]', '{"inputs": 3, "outputs": [1]}', "[{", "[" * 50_000]
)
def test_tests_that_are_not_in_form_are_an_error_of_the_question(tests: str) -> None:
    # Nobody's program is wrong by them, and they were a traceback.
    reading = code.read(ScoringInput("Add.", (tests,)), "```python\nprint(1)\n```")
    assert reading.outcome == "error"
    assert "not in form" in reading.reason


def test_livecodebench_functional() -> None:
    cases = json.dumps([{"input": "[1, 2]\n3", "output": "[1, 2, 3]"}])
    asked = ScoringInput("Append.", (cases,), metadata={"func_name": "join"})
    good = "class Solution:\n    def join(self, xs, x):\n        return (*xs, x)\n"
    assert outcome(asked, f"```python\n{good}```") == "correct"
    assert outcome(asked, f"```python\n{good.replace('(*xs, x)', 'xs')}```") == "incorrect"
    plain = "def join(xs, x):\n    return xs + [x]\n"
    assert outcome(asked, f"```python\n{plain}```") == "correct"


def test_it_refuses_to_run_without_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    start = host._start

    def without(job: Any, limits: Any, *, isolate: bool, **more: Any) -> dict[str, Any]:
        return {"refused": "EPERM"} if isolate else start(job, limits, isolate=False, **more)

    monkeypatch.setattr(host, "_start", without)
    with pytest.raises(Unsafe, match="isolation"):
        code.read(HUMANEVAL, FENCED)
    # data may not accept the risk: only the run's own options can
    sly = ScoringInput(PROMPT, (CHECK,), metadata={"entry_point": "total", code.OPTION: True})
    with pytest.raises(Unsafe):
        code.read(sly, FENCED)
    bold = ScoringInput(
        PROMPT, (CHECK,), metadata={"entry_point": "total"}, options={code.OPTION: True}
    )
    assert outcome(bold, FENCED) == "correct"


# -- HumanEval ---------------------------------------------------------------------------

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Lt: ast.GtE,
    ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip

#: Mutants that the question's own tests do not notice: how many come first in the
#: seeded order, and why they survive. The one after them must fail.
SURVIVORS = {
    "HumanEval/10": (1, "steps by two: no test has its palindrome at an odd offset"),
    "HumanEval/35": (1, "starts from the second element: the loop still sees every element"),
    "HumanEval/59": (1, "tries one divisor more: n + 1 never divides n"),
    "HumanEval/66": (1, "special case for the empty text: its sum is 0 without it"),
    "HumanEval/93": (1, "`x` counts as a vowel: no test holds an x"),
    "HumanEval/94": (2, "another start, another power in the prime test: no test tells them apart"),
    "HumanEval/116": (1, "drops the leading one bit of every number: the order stays"),
    "HumanEval/127": (4, "four changes of the prime test: the tests have too few lengths"),
    "HumanEval/129": (1, "the changed initial value is overwritten for every grid"),
    "HumanEval/157": (1, "one of three sides: no test has the second side as hypotenuse"),
}


def mutant(program: str, entry: str, seed: str, nth: int = 0) -> tuple[str, str]:
    """(program, change): one change of an operator, constant or comparison, by seed."""
    places = list(range(sum(1 for _ in ast.walk(ast.parse(program)))))
    random.Random(seed).shuffle(places)
    for place in places:
        tree = ast.parse(program)
        defined = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry]
        inside = {id(node) for node in ast.walk(defined[-1])}
        node = list(ast.walk(tree))[place]
        if id(node) in inside and (change := _change(node)):
            if nth == 0:
                return ast.unparse(tree), change
            nth -= 1
    return _negated(program, entry)


def _negated(program: str, entry: str) -> tuple[str, str]:
    """For programs without operator, constant or comparison: `return x` → `return not x`."""
    tree = ast.parse(program)
    defined = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry][-1]
    last = [n for n in ast.walk(defined) if isinstance(n, ast.Return) and n.value][-1]
    assert last.value is not None
    last.value = ast.UnaryOp(ast.Not(), last.value)
    return ast.unparse(tree), "return not …"


def _change(node: ast.AST) -> str:
    line = getattr(node, "lineno", 0)
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)) and type(node.op) in _SWAPS:
        node.op = _SWAPS[type(node.op)]()  # type: ignore[assignment]
        return f"line {line}: {type(node.op).__name__}"
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        node.ops[0] = _SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        return f"line {line}: {type(node.ops[0]).__name__}"
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        return f"line {line}: constant {node.value}"
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 20:
        node.value += "x"
        return f"line {line}: constant {node.value!r}"
    return ""


def humaneval(data: Path) -> list[dict[str, str]]:
    with gzip.open(data / "humaneval" / "HumanEval.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _outcomes(asked: list[ScoringInput], outputs: list[str]) -> list[str]:
    with ThreadPoolExecutor(2) as pool:
        return [reading.outcome for reading in pool.map(code.read, asked, outputs)]


@pytest.mark.data
@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.slow)])
def test_humaneval_solutions_pass_and_mutants_fail(data: Path, every: int) -> None:
    problems = humaneval(data)[::every]
    asked = [
        ScoringInput(
            p["prompt"],
            (p["test"],),
            metadata={"entry_point": p["entry_point"]},
            options={"code_cpu_s": 2},
        )
        for p in problems
    ]
    started, before = time.monotonic(), _children()
    right = _outcomes(asked, [p["canonical_solution"] for p in problems])
    wrong, first = [], []
    for about, p in zip(asked, problems, strict=True):
        program, task = p["prompt"] + p["canonical_solution"], p["task_id"]
        passed_over, _ = SURVIVORS.get(task, (0, ""))
        changed = [mutant(program, p["entry_point"], task, n) for n in range(passed_over + 1)]
        *survivors, killed = (f"```python\n{text}\n```" for text, _ in changed)
        wrong.append((about, killed))
        first += [(about, text) for text in survivors]
    mutants = _outcomes([about for about, _ in wrong], [text for _, text in wrong])
    # wall time on a busy machine says little; two idle cores would need half the CPU time
    seconds = min(time.monotonic() - started, (_children() - before) / 2)
    survived = _outcomes([about for about, _ in first], [text for _, text in first])

    assert right == ["correct"] * len(problems)
    failed = {p["task_id"]: said for p, said in zip(problems, mutants, strict=True)}
    assert failed == dict.fromkeys(failed, "incorrect")
    # the list above stays honest: what it calls a survivor still is one
    assert survived == ["correct"] * len(first)
    assert seconds < 60
