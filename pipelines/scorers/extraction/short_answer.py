"""The short answer of a long output, for scorers that compare words.

A marked answer (`Answer: …`, `\\boxed{}`, a JSON field, a tag, `####`) counts; of
several the one that `commitment` settles on. An output without any mark is the
answer itself, as a whole: guessing a part of it would be the scorer's answer,
not the model's.
"""

from __future__ import annotations

from routeyard.pipelines.scorers.extraction.commitment import breaks_off, cut_within, settle
from routeyard.pipelines.scorers.extraction.envelopes import after_draft
from routeyard.pipelines.scorers.extraction.marks import MOST_READ, committed
from routeyard.pipelines.scorers.extraction.run_on import end_of_answer
from routeyard.pipelines.scorers.extraction.statements import Committed, trim
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("short_answer")

#: An unmarked output longer than this is not a short answer.
LONGEST_WHOLE = 20_000
#: Words of a longer text are not compared: 200,000 characters are a book.
LONGEST_TEXT = 200_000
_QUOTES = "\"'`*_“”‘’「」《》$ \t"


def short_answer(
    output: str, *, truncated: bool = False
) -> tuple[str, tuple[int, int], bool] | None:
    """(answer, span, conflict), or None for an empty, endless or cut-off output.

    `conflict`: marked answers differ.
    """
    marked = [
        (one, clean(one.text))
        for one in committed(output)
        if one.kind not in ("stated", "final") or len(one.text) <= 120 or _is_list(one.text)
    ]
    if marked:
        settled = settle(marked, output, lambda one, other: one == other)
        last = marked[settled.index][0]
        if cut_within(last, output, truncated=truncated):
            return None
        start, end = _unquoted(output, *_whole_list(output, last))
        if start < end:
            return clean(output[start:end]), (start, end), settled.conflict
    if len(output) > MOST_READ or breaks_off(output, truncated=truncated):
        return None
    stop = end_of_answer(output)
    start, end = _unquoted(output, after_draft(output, stop), stop)
    if not start < end <= start + LONGEST_WHOLE:
        return None
    return clean(output[start:end]), (start, end), False


def whole_answer(output: str) -> tuple[str, tuple[int, int], bool] | None:
    """The text that is the answer: a field, what follows `Answer:`, else the output.

    Without surrounding space, drafts and run-on questions; of a text longer than
    `LONGEST_TEXT` the beginning.
    """
    end = end_of_answer(output[: 2 * MOST_READ])
    fields = [one for one in committed(output) if one.kind in ("field", "boxed")]
    if fields:
        start, end = fields[-1].start, fields[-1].end
    else:
        start = after_draft(output, end)
        announced = [m.end() for m in _RE["announced"].finditer(output, start, end)]
        if announced and output[announced[-1] : end].strip():
            start = announced[-1]
    start, end = trim(output, start, min(end, start + LONGEST_TEXT))
    return (output[start:end], (start, end), False) if start < end else None


def clean(text: str) -> str:
    """The text without LaTeX text wrappers, quotes, markdown and a closing full stop."""
    if len(_RE["item"].findall(text)) > 1 and _RE["item"].match(text):
        text = _RE["item"].sub(", ", text).strip(", ")
    text = _RE["text"].sub(r"\1", text).strip(_QUOTES)
    return text[:-1].rstrip(_QUOTES) if text.endswith((".", "。")) else text


def _is_list(text: str) -> bool:
    """Whether a long text lists words or short items, and is no sentence."""
    if _RE["sentence"].search(text):
        return False
    items = _RE["separator"].split(text)
    if len(items) > 3:
        return all(len(one.split()) <= 5 for one in items)
    return not _RE["function"].search(text)


def _whole_list(output: str, mark: Committed) -> tuple[int, int]:
    """The span of a mark, of a list of items, one a line, where its text is the first of them."""
    begin = output.rfind("\n", 0, mark.start) + 1
    if mark.kind in ("stated", "final", "label") and begin:
        for kind in ("items", "lines"):
            if (found := _RE[kind].match(output, begin)) and found.end() > mark.end:
                return begin, found.end()
    return mark.start, mark.end


def _unquoted(text: str, start: int, end: int) -> tuple[int, int]:
    start, end = trim(text, start, end)
    while start < end and text[start] in _QUOTES:
        start += 1
    while end > start and text[end - 1] in _QUOTES:
        end -= 1
    return start, end
