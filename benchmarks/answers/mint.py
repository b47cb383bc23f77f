"""MINT-bench's own grader, and on which of its verdicts that differ from ours it is at fault.

The rules are those of its `mint/tasks/reasoning.py`: the text of the last closed `<solution>` tag;
two texts that `float` reads agree within `0.05 * reference`, else the reference must be a part of
the text; of TheoremQA's references whole numbers are compared with the rounded answer and others
within 4 % (its `compare_two_numbers`), and lists are sorted; of options "a)" is looked for, else
the letter is a part of the text.
"""

from __future__ import annotations

import json
import re

from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput

#: What its grader does: it reads proposed solutions, and numbers may be 5 % off.
RULES = {"answer_in": "solution"}
TOLERANT = {"gsm8k", "math"}
#: Tasks whose references are tests of a program; `code` is measured elsewhere.
PROGRAMS = ("mbpp", "humaneval")
_CLOSED = re.compile(r"<solution>(.*?)</solution>", re.DOTALL)
_OWN = "ours or open"


def rules(task: str, reference: str) -> dict[str, object]:
    """Metadata under which `auto` reads a task by its grader's rules."""
    if task == "theoremqa":
        tolerance = {"absolute_tolerance": 0.5} if reference.isdigit() else {"tolerance": 0.04}
    else:
        tolerance = {"tolerance": 0.05} if task in TOLERANT else {}
    return {**RULES, "task": task, **tolerance}


def official(reference: str, said: str) -> bool:
    """`compare_w_digits` of its grader."""
    known, text = reference.lower().strip(), said.lower().strip()
    try:
        return abs(float(known) - float(text)) <= 0.05 * float(known)
    except ValueError:
        return known in text


def fault(asked: ScoringInput, output: str, outcome: str) -> str:
    """Which fault of the official grader explains a difference; `_OWN` where none does.

    Args:
        outcome: Our verdict, `correct` or `incorrect`; the official one is the other.
    """
    task, reference = asked.metadata.get("task"), asked.references[0]
    closed = _CLOSED.findall(output)
    if outcome == "correct":
        if task in ("gsm8k", "math") and not official(reference, reference):
            return "it rejects the reference itself: 5 % of a negative number is negative"
        exact = ScoringInput(asked.question, asked.references, asked.choices, RULES)
        if SCORERS.get("auto").score(exact, output).outcome != "correct":
            return _OWN  # within 5 % in a sentence
        if not closed:
            return "it reads closed tags only"
        if task in ("gsm8k", "math", "theoremqa"):
            return "it reads bare numbers only, and this text names the reference exactly"
        if task == "mmlu":
            return "it reads letters only, and this is the text of the option"
        return _OWN
    if task == "hotpotqa" and closed and official(reference, closed[-1]):
        return "it lets a number of another kind, as a year, be 5 % off"
    if task == "mmlu" and closed and reference.lower() in closed[-1].lower():
        return "it takes any text that has the letter for the option"
    if task == "theoremqa" and reference.startswith("["):
        said = re.findall(r"-?\d+", closed[-1]) if closed else []
        if sorted(map(int, said)) == sorted(json.loads(reference)):
            return "it sorts lists before it compares them"
    return _OWN
