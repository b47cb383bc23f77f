"""`rouge_l`: F-measure of the longest common subsequence (Lin 2004, β = 1)."""

from __future__ import annotations

from collections.abc import Sequence

from routeyard.pipelines.scorers.graded import graded


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
SCORER = graded("rouge_l", "8", "ROUGE-L", rouge_l, threshold=0.3)
