"""The answer-format instruction that goes with each rule scorer.

A question and the scorer that reads its answer must agree on the form of the
answer, so ingest appends this text to the prompt and the scorers read it back
first. Changing a sentence here changes every prompt, and with it every
request hash: it is a new benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Scorer name → what the model is told about the form of its answer.
INSTRUCTIONS: Mapping[str, str] = {
    "mcq": (
        "Think it through, then end with one line of the form "
        '"Answer: X", where X is the letter of the one option you choose.'
    ),
    "numeric": (
        "Work it out, then end with one line of the form "
        '"Answer: N", where N is a single number without further words.'
    ),
    "math": (
        "Work it out step by step, then end with the final answer, "
        "and nothing but the final answer, inside \\boxed{}."
    ),
    "em": 'End with one line of the form "Answer: ...", holding the answer and nothing else.',
    "f1": 'End with one line of the form "Answer: ...", as short as possible, no full sentence.',
    "rouge_l": "Reply with the requested text only, without an introduction or closing remarks.",
    "meteor": "Reply with the requested text only, without an introduction or closing remarks.",
    "bartscore": "Reply with the requested text only, without an introduction or closing remarks.",
    "superglue_boolq": 'End with one line: "Answer: yes" or "Answer: no".',
    "superglue_cb": (
        'End with one line: "Answer: entailment", "Answer: contradiction" or "Answer: neutral".'
    ),
    "superglue_copa": 'End with one line: "Answer: 1" or "Answer: 2".',
    "superglue_multirc": 'End with one line: "Answer: yes" or "Answer: no".',
    "superglue_record": 'End with one line of the form "Answer: ...", naming the one entity.',
    "superglue_rte": 'End with one line: "Answer: entailment" or "Answer: not_entailment".',
    "superglue_wic": 'End with one line: "Answer: yes" or "Answer: no".',
    "superglue_wsc": 'End with one line: "Answer: yes" or "Answer: no".',
    "code": (
        "Reply with one complete Python program or function in a single fenced code block, "
        "imports included and without tests or example calls."
    ),
    "given": "",
}


def instruction(scorer: str | None) -> str:
    """Instruction text for a scorer; empty when the scorer prescribes no form."""
    return INSTRUCTIONS.get(scorer or "", "")


def with_instruction(question: str, scorer: str | None) -> str:
    """The question followed by its answer-format instruction, a blank line between."""
    text = instruction(scorer)
    return f"{question}\n\n{text}" if text else question
