"""What the graded scorers share: best reference, threshold, span, reason."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from routeyard.pipelines.label.scorers.patterns import patterns
from routeyard.pipelines.label.scorers.reading import short_answer, whole_answer
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

# Texts → comparable words: SQuAD normalisation with care for operators and CJK.

_RE = patterns("words")


# Han, kana and hangul syllables: written without spaces, so each sign is a token.
_CJK = re.compile(
    "([\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f])"
)
#: Signs that change what a formula says: √2+√3 is not √2·√3. Category "Sm"
#: (mathematical symbol) is kept as well.
_OPERATORS = frozenset("+-*/^=<>%·√°|&@#")
#: Signs that spaces around are dropped of.
_SPACED = frozenset("+*/^=<>·√")
#: Signs that are a space where no hyphen may depend on it.
_BLANKS = dict.fromkeys(map(ord, "!():;?[\\]_{}"), " ")
_ARTICLES = frozenset(("a", "an", "the"))
_MINUS = str.maketrans("−–—‐‑⋅∙•×÷", "-----···*/")
_QUOTE = "'’‘`\"“”"


def normalise(text: str, *, articles: bool = False) -> str:
    """SQuAD's normal form: lower case, no punctuation, no articles, single spaces.

    Differences to the SQuAD script (Rajpurkar et al. 2016), each of which made
    different answers equal or equal answers different: operators and decimal
    points stay (a hyphen between words is a space), thousands separators go,
    and Unicode is compatibility-folded.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_MINUS)).translate(_MINUS)
    text = text.casefold()
    if "-" not in text:
        text = text.translate(_BLANKS)
    if _RE["sign"].search(text):
        text = " ".join(_RE["sign"].sub(_replacement, text).split())
        if not _SPACED.isdisjoint(text):
            text = _RE["spaced_operator"].sub(r"\1", text)
        return text if articles else " ".join(_RE["article"].sub(" ", text).split()) or text
    words = text.split()
    content = words if articles else [word for word in words if word not in _ARTICLES]
    return " ".join(content or words)


def _replacement(match: re.Match[str]) -> str:
    sign, text, index = match[0], match.string, match.start()
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    if sign == "." and after.isdigit():  # 3.5 and .5 keep their point
        return sign
    if sign == "," and before.isdigit() and _RE["thousands"].match(text, index):
        return ""
    if sign == "-":
        word = before.isalpha() and after.isalpha() and text[max(0, index - 2) : index].isalpha()
        dash = (not after or after.isspace()) and not before.strip().isdigit()
        # well-known → well known; 3-2, -5 and x-1 keep their minus.
        return " " if (word and index > 1) or dash else sign
    if sign in _OPERATORS or unicodedata.category(sign)[0] in "MS":
        return "" if sign == "`" else sign
    return "" if sign in _QUOTE else " "


def tokens(text: str, *, articles: bool = False) -> list[str]:
    """Normalised words; each CJK sign is a word."""
    return _CJK.sub(r" \1 ", normalise(text, articles=articles)).split()


def all_tokens(text: str) -> list[str]:
    """`tokens` with the articles kept, for scorers that compare whole texts."""
    return tokens(text, articles=True)


#: Instruction of scorers that compare the whole text.
BARE_TEXT = "Reply with the requested text only, without an introduction or closing remarks."


def graded(
    name: str,
    version: str,
    label: str,
    score: Callable[[Sequence[str], Sequence[str]], float],
    *,
    threshold: float | None = None,
    instruction: str = "",
) -> Scorer:
    """Scorer of the best score over the references; `correct` at or above the threshold.

    Args:
        label: What the score is called.
        score: (answer tokens, reference tokens) → score in [0, 1].
        threshold: None where `correct` is the same words, and the score told beside it.
        instruction: Empty where the whole output is compared (summaries, translations),
            not its short answer.
    """
    words = tokens if instruction else all_tokens

    def read(asked: ScoringInput, output: str) -> ScoreResult:
        wanted = [reference for item in asked.references if (reference := words(item))]
        if not wanted:
            return ScoreResult("error", reason="no reference has any word left after normalisation")
        short = bool(instruction)
        result = short_answer(output, truncated=asked.truncated) if short else whole_answer(output)
        if result is None:
            return ScoreResult("abstain", reason="no answer to compare")
        answer, span, conflict = result
        said = words(answer)
        best = max(score(said, reference) for reference in wanted)
        right = said in wanted if threshold is None else best >= threshold
        rule = f"exact match {right}" if threshold is None else f"threshold {threshold:g}"
        reason = f"{label} {best:.3f}, {rule}"
        if conflict:
            reason += "; the output commits to several answers"
        return ScoreResult.of(right, output[slice(*span)], span, reason, conflict, best)

    return Scorer(name, version, read, threshold, instruction or BARE_TEXT)


# `f1`: SQuAD's token F1, the best of several references (Rajpurkar et al. 2016, §6.1).


def token_f1(answer: Sequence[str], reference: Sequence[str]) -> float:
    """2PR/(P+R) over the bag of words; two empty bags agree, one empty bag scores 0."""
    if not answer or not reference:
        return float(not answer and not reference)
    common = sum((Counter(answer) & Counter(reference)).values())
    return 2 * common / (len(answer) + len(reference))


F1_SCORER = replace(
    graded(
        "f1",
        "14",
        "F1",
        token_f1,
        threshold=0.5,
        instruction=(
            'End with one line of the form "Answer: ...", as short as possible, no full sentence.'
        ),
    ),
    escalate_on="not_correct",
)


# `rouge_l`: F-measure of the longest common subsequence (Lin 2004, β = 1).


def longest_common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    Bit-parallel (Hyyrö 2004): one machine operation per word of `b` and 64
    words of `a`, so outputs of 10,000 words take milliseconds.
    """
    places: dict[str, int] = {}
    for index, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << index
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        match = row & places.get(word, 0)
        row = ((row + match) | (row - match)) & full
    return len(a) - row.bit_count()


def rouge_l(answer: Sequence[str], reference: Sequence[str]) -> float:
    """2·LCS/(|answer| + |reference|), which is F1 of LCS precision and recall."""
    if not answer or not reference:
        return 0.0
    return 2 * longest_common(answer, reference) / (len(answer) + len(reference))


#: The threshold is recorded with every verdict; a recipe's policy may set another per task.
ROUGE_L_SCORER = graded("rouge_l", "8", "ROUGE-L", rouge_l, threshold=0.3)


# `given`: carries over the score that a source already holds (RouterBench, BARTScore, …).
#
# `read` takes the score as text, so that one call serves JSONL files and columns
# alike; scores outside [0, 1] must be mapped by the reader of the source, which
# knows their scale.

THRESHOLD = 0.5


def carried(score: float | None) -> ScoreResult:
    """Reading of a stored score; a missing one is `abstain`, never 0."""
    if score is None or math.isnan(score):
        return ScoreResult("abstain", reason="the source carries no score")
    if not 0 <= score <= 1:
        return ScoreResult("error", reason=f"the source's score {score} is not in [0, 1]")
    reason = f"score {score:g} of the source, threshold {THRESHOLD:g}"
    return ScoreResult.of(score >= THRESHOLD, None, None, reason, score=float(score))


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads `metadata["given_score"]`, else the output itself as a number."""
    stored = asked.metadata.get("given_score")
    if stored is None:
        stored = output.strip() or None
    try:
        return carried(None if stored is None else float(str(stored)))
    except ValueError:
        return ScoreResult("abstain", reason=f"no score in {str(stored)[:40]!r}")


GIVEN_SCORER = Scorer("given", "1", read, threshold=THRESHOLD, needs_reference=False)
