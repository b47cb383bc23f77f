"""The short answer of a long output, for scorers that compare words.

A marked answer (`Answer: …`, `\\boxed{}`, a JSON field, `####`) counts; of
several the last. An output without any mark is the answer itself, as a whole:
guessing a part of it would be the scorer's answer, not the model's.
"""

from __future__ import annotations

import re

from pipelines.scorers.answers.commitment import committed, trim
from pipelines.scorers.answers.run_on import end_of_answer

#: An unmarked output longer than this is no short answer.
LONGEST_WHOLE = 20_000
_QUOTES = "\"'`*_“”‘’「」《》$ \t"
_TEXT = re.compile(r"\\(?:text|mathrm|textbf)\{([^{}]*)\}")


def short_answer(output: str) -> tuple[str, tuple[int, int], bool] | None:
    """(answer, span, conflict), or None for an empty or endless output.

    `conflict`: marked answers differ.
    """
    marked = [one for one in committed(output) if one.kind != "stated" or len(one.text) <= 120]
    if marked:
        last = marked[-1]
        start, end = _unquoted(output, last.start, last.end)
        if start < end:
            answers = {clean(one.text) for one in marked}
            return clean(output[start:end]), (start, end), len(answers) > 1
    start, end = _unquoted(output, 0, end_of_answer(output))
    if not start < end <= start + LONGEST_WHOLE:
        return None
    return clean(output[start:end]), (start, end), False


def whole_answer(output: str) -> tuple[str, tuple[int, int], bool] | None:
    """The output without surrounding space and run-on questions, for texts that are the answer."""
    start, end = trim(output, 0, end_of_answer(output))
    return (output[start:end], (start, end), False) if start < end else None


def clean(text: str) -> str:
    """The text without LaTeX text wrappers, quotes, markdown and a closing full stop."""
    text = _TEXT.sub(r"\1", text).strip(_QUOTES)
    return text[:-1].rstrip(_QUOTES) if text.endswith((".", "。")) else text


def _unquoted(text: str, start: int, end: int) -> tuple[int, int]:
    start, end = trim(text, start, end)
    while start < end and text[start] in _QUOTES:
        start += 1
    while end > start and text[end - 1] in _QUOTES:
        end -= 1
    return start, end
