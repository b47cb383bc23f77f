"""Answers that nobody gave or graded, counted as wrong."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow.compute as pc

from routeyard.pipelines.audit.answers import Answers, Mask
from routeyard.schemas.statuses import AUDITED, FAILED_TEXT, status_of

#: What an error's name or message says where the infrastructure failed. A program's own exception
#: (`AssertionError`) is the model's.
FAILED = (
    r"(api|http|server|network|connection|request|service|gateway|proxy|docker|container|sandbox|"
    r"infra\w*|harness|setup|provider|openai|anthropic|bard|bedrock|vertex)[\W_]*\w{0,20}"
    r"(error|issue|exception|fail\w*|refused|reset|aborted|down|crash\w*|unavailable)|"
    r"rate[\W_]?limit|time[\W_]?out|timed[\W_]out|overloaded|quota|too many requests|"
    r"\b(429|50[0-4]|529)\b|(context|token)[\W_](length|limit|window)|out of memory|"
    r"\b(base|setup|env\w*|harness|install|image)_failed"
)
#: Words of a status that say that a limit ended the attempt.
LIMIT = (
    r"\bmax[\W_]?(steps?|turns?|iter\w*|tokens?|rounds?|calls?|length|episode\w*)|"
    r"(steps?|turns?|iterations?|tokens?|budget|cost|length|call)[\W_]?(limit\w*|exceeded|exhausted)|"
    r"^(length|truncated|budget)$|out[\W_]of[\W_](steps|budget|tokens|turns)"
)
#: Length up to which a text can be an error in place of an answer.
_SHORT = 2_000


def failed(answers: Answers) -> Mask:
    return answers.cached("failed", _find_failed)


def _find_failed(answers: Answers) -> Mask:
    bad = np.zeros(len(answers), bool)
    if answers.has("status"):
        bad |= _with_status(answers, lambda word, status: status in ("error", "timeout"))
        bad |= _matching(answers, "status", FAILED)
    if answers.has("error"):
        bad |= _matching(answers, "error", FAILED)
    if answers.has("text"):
        short = answers.lengths("text") <= _SHORT
        bad |= _matching(answers, "text", FAILED_TEXT) & short
    return bad


def _with_status(answers: Answers, wanted: Callable[[str, str | None], bool]) -> Mask:
    """(n,) rows whose status, as a word and as ours, is wanted."""
    hit = [
        (word := re.sub(r"[\s-]+", "_", name.strip().lower())) not in AUDITED["wrong"]
        and wanted(word, status_of(name))
        for name in answers.names("status")
    ]
    return np.asarray(np.array([*hit, False])[answers.coded("status")])


def _matching(answers: Answers, column: str, pattern: str) -> Mask:
    """(n,) whether a text matches an RE2 pattern; each different text is looked at once."""
    values = answers.different(column)
    matches = pc.match_substring_regex(values.dictionary, pattern, ignore_case=True)
    hit = np.append(np.asarray(matches, dtype=bool), False)
    return np.asarray(hit[np.asarray(pc.fill_null(values.indices, len(hit) - 1))])


def _never_graded(answers: Answers) -> Mask:
    words = ("ungraded", "unanswered")
    return _with_status(
        answers, lambda word, status: status in words or word in AUDITED["ungraded"]
    )


def _never_given(answers: Answers) -> Mask:
    return _with_status(
        answers, lambda word, status: status == "unanswered" or word in AUDITED["not_given"]
    )


def of_status(answers: Answers) -> dict[str, Mask]:
    """(n,) each: whether its status says that nobody graded it, gave it, or let it end."""
    if not answers.has("status"):
        return dict.fromkeys(("ungraded", "not_given", "stopped"), np.zeros(len(answers), bool))
    return {
        "ungraded": _never_graded(answers),
        "not_given": _never_given(answers),
        "stopped": _matching(answers, "status", LIMIT),
    }


def scored_without_answer(answers: Answers) -> dict[str, Mask]:
    """Kind of grave finding → (n,) answers that nobody gave or graded, and that count as wrong."""
    wrong = answers.score == 0
    result = {"infrastructure_errors": failed(answers) & wrong}
    if answers.has("status"):
        never = _never_graded(answers) & ~_never_given(answers) & ~failed(answers)
        result["ungraded_as_wrong"] = never & wrong
    return result


def not_graded(answers: Answers) -> Mask:
    """(n,) answers that the infrastructure ended or nobody graded, and that count as wrong."""
    bad = failed(answers)
    if answers.has("status"):
        bad = bad | _never_graded(answers)
    return np.asarray(bad & (answers.score == 0))
