"""`code`: where in an output the program is, and whose fault a missing module is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import routeyard
from tests.conftest import Call

TESTS = ("assert add(1, 2) == 3", "assert add(5, 5) == 10")
ABOUT = {"entry_point": "add"}
GOOD, DRAFT = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"
OPEN, SHUT = "```python\n", "```\n"
FENCED = OPEN + GOOD + SHUT


def _indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


PROGRAMS = {
    "a fence left open within thinking": f"<think>\n{OPEN}{DRAFT}\nno.\n</think>\n{FENCED}Done.",
    "and without a language": f"<think>\n```\n{DRAFT}no\n</think>\n```\n{GOOD}```",
    "and behind a whole draft": f"<think>\n{OPEN}{DRAFT}</think>\n```\n{GOOD}```",
    "thinking that the template opened": f"hm\n{OPEN}{DRAFT}\nno(\n</think>\n{FENCED}",
    "in brackets": f"[THINK]\n{OPEN}{DRAFT}[/THINK]\n{FENCED}",
    "in a channel": (
        f"<|channel|>analysis<|message|>\n{OPEN}{DRAFT}(\n<|end|><|start|>assistant"
        f"<|channel|>final<|message|>{FENCED}"
    ),
    "twice": f"<think>a</think>\n{FENCED}<think>\n{OPEN}{DRAFT}{SHUT}</think>\nFine.",
    "a list item": f"1. Here:\n\n{_indented(FENCED, '    ')}\n2. It adds.",
    "the line of a list item": f"1. {_indented(FENCED, '   ').lstrip()}\nThat is all.",
    "a list in lists": f"- a\n  - b\n    - c\n\n{_indented(FENCED, ' ' * 8)}",
    "a list with a tabulator": f"* here\n{_indented(FENCED, chr(9))}",
    "only the fence in a list": f"   {OPEN}{GOOD}   {SHUT}",
    "a quotation": f"{_indented(FENCED, '> ')}\nIt adds.",
    "a closing tag on the closing fence": f"<answer>\n{OPEN}{GOOD}```</answer>",
    "one of thinking": f"<think>\n{OPEN}{DRAFT}```</think>\n{FENCED}",
    "one on the opening fence": f"<think>\nhm\n</think>{FENCED}",
    "one behind an open fence": f"<answer>{OPEN}{GOOD}</answer>",
    "a lone closing fence": f"{GOOD}{SHUT}\nThis adds.",
    "and an example": f"{GOOD}{SHUT}\nUsage:\n{OPEN}print(add(1, 2))\n{SHUT}",
    "a fence on the last line": f"{OPEN}{GOOD.rstrip()}```\nIt adds.",
    "words before the fence": f"The program: {FENCED}",
    "an earlier fence left open": f"{OPEN}{DRAFT}\nOops (again:\n\n{FENCED}",
    "fences in its text": (
        f'{OPEN}def add(a, b):\n    """E.g.\n    {OPEN}    1\n    {SHUT}    """\n'
        f"    return a + b\n{SHUT}"
    ),
    "a tag in its text": f'{OPEN}T = "</think>"\n{GOOD}{SHUT}',
    "no fence, a tag in its text": f'T = "<think></think>"\n{GOOD}',
}
NONE = {
    "within thinking": f"<think>\n{FENCED}</think>\nThe sum is easy.",
    "nothing follows": f"<think>\n{FENCED}</think>",
    "a tag on the fence": f"<think>\n{OPEN}{GOOD}```</think>\nDone.",
    "the template opened it": f"hm\n{FENCED}ok</think>\nThere.",
    "without a fence": f"<think>\n{GOOD}</think>\nThe function adds.",
    "other brackets": f"[THINK]\n{FENCED}[/THINK]\nI could not do it.",
    "triangles": f"◁think▷\n{FENCED}◁/think▷\nI could not do it.",
    "an analysis": f"<analysis>\n{FENCED}</analysis>\nI could not do it.",
    "a reflection, and a plan in it": f"<reflection><plan>a</plan>{FENCED}</reflection>\nNo.",
    "a broken program within thinking": f"[THINK]\n{OPEN}def add(a, b\n{SHUT}[/THINK]\nNo.",
    "a session": f"{OPEN}>>> add(1, 2)\n3\n{SHUT}",
    "no program": "I could not do it.",
}
BROKEN = {
    "marked as Python": f"{OPEN}def add(a, b) return a + b\n{SHUT}Done.",
    "in short": f"So:\n```py\ndef add(a, b):\n    return (a\n{SHUT}",
    "behind thinking": f"<think>\n{FENCED}</think>\n{OPEN}def add(a, b) return a + b\n{SHUT}",
}


def test_where_the_program_is(call: Call, tmp_path: Path) -> None:
    wanted = dict.fromkeys(PROGRAMS, "correct") | dict.fromkeys(NONE, "abstain")
    wanted |= dict.fromkeys(BROKEN, "incorrect")
    path = tmp_path / "answers.jsonl"
    more = {"scorer": "code", "references": TESTS, "metadata": ABOUT, "question": "Write add."}
    rows = [more | {"output": text} for text in (PROGRAMS | NONE | BROKEN).values()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = call("score", path, "--json")
    assert done.returncode == 0, done.stderr
    outcomes = [row["outcome"] for row in json.loads(done.stdout)]
    assert dict(zip(wanted, outcomes, strict=True)) == wanted


def _outcome(program: str, *tests: str, **about: str) -> str:
    return routeyard.score(
        f"```python\n{program}\n```", tests, scorer="code", metadata=ABOUT | about
    ).outcome


@pytest.mark.parametrize(
    "program",
    [
        "import nowhere_to_be_found\n" + GOOD,
        "from nowhere_to_be_found.part import x\n" + GOOD,
        "def add(a, b):\n    import nowhere_to_be_found\n    return a + b",
        "import numpy\n" + GOOD,  # installed here, but no part of the question's or recipe's world
        "raise ModuleNotFoundError('x', name='nowhere_to_be_found')",
        'def add(a, b):\n    import os\n    os.write(4, b\'{"missing": "numpy"}\\n\')',
        "def add(a, b):\n    return [0] * 10**10",
        "def add(a, b):\n    return add(a, b)",
    ],
)
def test_a_program_that_fails_by_what_it_says_is_wrong(program: str) -> None:
    assert _outcome(program, *TESTS) == "incorrect"


def test_a_module_that_the_question_needs_and_the_machine_lacks_is_no_programs_fault() -> None:
    needs = "import nowhere_to_be_found\n" + TESTS[0]
    assert _outcome(GOOD, needs) == "error"
    assert _outcome("import nowhere_to_be_found\n" + GOOD, needs) == "error"
    assert _outcome(GOOD, TESTS[0], test_setup="import nowhere_to_be_found") == "error"
    # nor is code of the question that does not run
    assert _outcome(GOOD, TESTS[0], test_setup="raise KeyError(1)") == "error"
    # but another module is
    assert _outcome("import nowhere_either\n" + GOOD, needs) == "incorrect"


def test_standard_input_that_asks_for_no_function() -> None:
    script = "print(sum(map(int, input().split())))\n"
    cases = '[{"input": "1 2", "output": "3"}]'
    texts = {
        f"{script}{SHUT}\nUsage:\n{OPEN}print(1)\n{SHUT}": "correct",
        f"<think>\n{OPEN}print(0)\n</think>\n{OPEN}{script}{SHUT}": "correct",
        f"1. So:\n\n    {OPEN}    {script}    {SHUT}": "correct",
        f"<think>\n{OPEN}{script}{SHUT}</think>\nDone.": "abstain",
        f"{OPEN}import nowhere_to_be_found\n{script}{SHUT}": "incorrect",
    }
    for text, outcome in texts.items():
        assert routeyard.score(text, cases, scorer="code").outcome == outcome, text
