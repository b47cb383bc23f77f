"""Where an answer ends and a run-on generation begins.

A base model that was shown `Question: … Answer: …` examples goes on to invent
the next question and answers that too. What stands after the marker is not an
answer to our question.
"""

from __future__ import annotations

import re

# Each alternative starts with literal text and has bounded repeats: linear time.
_MARKER = re.compile(
    r"<\|(?:im_end|im_start|eot_id|endoftext|end|user|start_header_id)\|>"
    r"|</s>|<end_of_turn>|<eos>|\[/?INST\]"
    r"|\n[ \t]{0,8}[#*]{0,4} {0,2}"
    r"(?:Question|QUESTION|Q|Problem|Exercise|User|Human|Instruction|问题|题目)"
    r"(?: {0,2}#?\d{1,4})?[*]{0,2} {0,2}[:：]"
)


def end_of_answer(text: str) -> int:
    """Index at which the answer to the first question ends (len(text) if it runs to the end).

    A marker before any content is the model repeating the question it was
    asked, and does not end the answer.
    """
    for found in _MARKER.finditer(text):
        if text[: found.start()].strip():
            return found.start()
    return len(text)
