"""Which of several marks counts, whether they contradict each other, and what was cut off."""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers.reading import (
    Committed,
    committed,
    cut_within,
    looks_cut,
    settle,
)


def settled(text: str) -> tuple[str, bool]:
    found = [(one, one.text.strip(" .*$")) for one in committed(text)]
    done = settle(found, text, lambda one, other: one == other)
    return found[done.index][1], done.conflict


@pytest.mark.parametrize(
    ("text", "counts", "conflict"),
    [
        ("The answer is 4.\nThe answer is 5.", "5", True),
        ("\\boxed{4}\nThe answer is 5.", "4", True),  # a box is firm, a sentence is not
        ("\\boxed{4}\nAnswer: 5", "5", True),  # a line sums up what is above it
        ("\\boxed{4}\nWait, I was wrong. The answer is 5.", "5", False),
        ("Answer: 4\nThe answer is 5.", "5", True),  # neither is firm
        ("\\boxed{4}\n\\boxed{5}", "5", True),
        ("\\boxed{4}\n\\boxed{5}\n\\boxed{5}", "5", True),  # neighbours are compared
        ("The answer is 5.\nAnswer: 5", "5", False),
        ("\\boxed{4}, but 5 + 1 = 6, so the answer is 6.", "6", True),  # concludes new working
        ("\\boxed{4}, but 6 is more, so the answer is 6.", "4", True),  # without any
        ("\\boxed{4}, but 5 + 1 = 6, so the answer is 6.\nThat is it.", "4", True),
    ],
)
def test_the_mark_that_counts(text: str, counts: str, conflict: bool) -> None:
    assert settled(text) == (counts, conflict)


def test_a_correction_is_short() -> None:
    for size, counts in ((150, "5"), (170, "4")):
        text = "\\boxed{4}\nWait, the answer is 5" + "," * size + "\n."
        assert settled(text)[0].strip(",") == counts


@pytest.mark.parametrize(
    ("line", "alone", "whole"),
    [
        ("", True, False),
        ("7 apples", True, True),  # all there is, and short
        ("7 apples", False, False),
        ("x" * 60, True, True),
        ("x" * 61, True, False),
        ("It is 7.", False, True),
        ("It is (7)", False, True),
        ("It is **7 apples**", False, True),
        ("It is 7 *", False, False),
        ("It is 7 −", False, False),
        ("so 3 + 4 = 7", False, True),  # a result
        ("so 3 + 4 = $43,500 in all", False, True),
        ("so it is = $43,5", False, False),  # a group of digits that was cut
        ("so 3 + 4 = 7 of the many red apples", False, False),
        ("So she has 7 apples for", True, False),
        ("The total is 3 +", True, False),
    ],
)
def test_a_line_that_was_written_to_its_end(line: str, alone: bool, whole: bool) -> None:
    text = line if alone else f"First we add.\n{line}"
    assert looks_cut(text) is not whole


@pytest.mark.parametrize(
    ("kind", "after", "truncated", "closed", "cut"),
    [
        ("stated", "", True, True, True),
        ("stated", " $*\n", True, True, True),
        ("stated", "", False, True, False),
        ("stated", " and so on", True, True, False),
        ("field", "", True, True, False),  # closed by its quote
        ("boxed", "", False, False, True),  # never closed
        ("boxed", " and so on", False, False, False),
    ],
)
def test_a_mark_that_the_end_cut(
    kind: str, after: str, truncated: bool, closed: bool, cut: bool
) -> None:
    one = Committed(kind, 14, 15, "1", closed)
    assert cut_within(one, "The answer is 1" + after, truncated=truncated) is cut
