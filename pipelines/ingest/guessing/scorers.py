"""Which scorer reads a table's answers: tried on some rows, with the agreement that was found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.scorers.scorer import ScoringInput

_CODE = re.compile(r"\bassert\b|\bdef check\(|\bunittest\b")
_MATH = re.compile(r"\\[a-z]+|\^|=|\d\s*/\s*\d|√|π|\bpi\b|[a-z]\d|\d[a-z]", re.I)
_NUMBER = re.compile(r"^[\s$€£¥₹]*[-+−]?[\d.,  ]*\d\s*(?:%|[a-zA-Z°€]{0,4})\s*$")
#: What a table writes before an answer and no model does: `# 366`, `#### 366`, `Answer: 366`.
_MARKER = re.compile(r"^\s*(?:#+\s*|(?:final )?answer\s*[:=]\s*)", re.IGNORECASE)
#: Shapes of references that no other scorer reads.
_OWN_SHAPES = frozenset(
    {"option", "word of a closed pair", "bracket sequence", "literal", "word list"}
)
#: Rows that are tried.
TRIED = 20


@dataclass(frozen=True, slots=True)
class ScorerSuggestion:
    """A scorer, why, and how often it read answers as it should.

    Attributes:
        right: Answers that repeat the row's own reference and were read as correct.
        wrong: Answers of another row that were, although the references differ.
        tried: Rows of both; 0 where the scorer was not tried (code is not run here).
    """

    scorer: str
    why: str
    right: int = 0
    wrong: int = 0
    tried: int = 0


def suggest(
    questions: Sequence[str], references: Sequence[Sequence[str]], choices: Sequence[Sequence[str]]
) -> ScorerSuggestion:
    """The scorer for these rows.

    A scorer is tried on answers that are known to be right (the reference itself, as a model
    says it: without the table's marker, in the form the scorer asks for) and on those of another
    row, which are wrong.
    """
    from pipelines.scorers.auto import shape_of

    flat = [text for texts in references for text in texts if text.strip()]
    if not flat:
        return ScorerSuggestion("none", "there is no reference: a judge has to decide")
    if any(_CODE.search(text) for text in flat):
        return ScorerSuggestion("code", "the references are tests in Python; they are not run here")
    if any(choices):
        return _tried("mcq", "the rows have options", questions, references, choices)
    shapes = Counter(shape_of(texts[0]) for texts in references if texts and texts[0].strip())
    words = sorted(len(text.split()) for text in flat)
    median = words[len(words) // 2]
    numbers = sum(bool(_NUMBER.match(_bare(text))) for text in flat) / len(flat)
    order: list[tuple[str, str]] = []
    mixed = [name for name, n in shapes.most_common() if n >= 0.1 * shapes.total()]
    if {*mixed} & _OWN_SHAPES or (len(mixed) > 1 and median <= 5):
        order.append(("auto", f"the references are of several kinds ({', '.join(mixed)})"
                      if len(mixed) > 1 else f"each reference is a {mixed[0]}"))  # fmt: skip
    if numbers >= 0.9:
        order.append(("numeric", "the references are numbers"))
    if sum(bool(_MATH.search(text)) for text in flat) / len(flat) >= 0.4 and median <= 8:
        order.append(("math", "the references are formulas"))
    if numbers < 0.9 and median <= 5:
        order.append(("em", "the references are names or short phrases"))
    if median <= 12:
        order.append(("f1", "the references are phrases"))
    order.append(("rouge_l", "the references are sentences"))
    tried = [_tried(name, why, questions, references, choices) for name, why in order]
    return max(tried, key=lambda one: one.right - one.wrong)  # the first of the best


def _tried(
    name: str,
    why: str,
    questions: Sequence[str],
    references: Sequence[Sequence[str]],
    choices: Sequence[Sequence[str]],
) -> ScorerSuggestion:
    from pipelines.scorers import SCORERS

    scorer = SCORERS.get(name)
    rows = [i for i, texts in enumerate(references) if any(t.strip() for t in texts)][:TRIED]
    right = wrong = 0
    for place, i in enumerate(rows):
        asked = ScoringInput(
            questions[i], tuple(references[i]), tuple(choices[i] if choices else ())
        )
        right += scorer.read(asked, _said(name, references[i][0])).outcome == "correct"
        other = references[rows[(place + 1) % len(rows)]]
        differs = not {t.casefold().strip() for t in other} & {
            t.casefold().strip() for t in references[i]
        }
        wrong += differs and scorer.read(asked, _said(name, other[0])).outcome == "correct"
    return ScorerSuggestion(name, why, right, wrong, len(rows))


def _bare(reference: str) -> str:
    return _MARKER.sub("", reference)


def _said(name: str, reference: str) -> str:
    """An answer in the form that the scorer's instruction asks for."""
    reference = _bare(reference)
    if name == "math":
        return f"\\boxed{{{reference}}}"
    return reference if name == "rouge_l" else f"Answer: {reference}"
