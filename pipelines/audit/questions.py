"""Questions that are one question: equal words, equal ids, modes; those on two sides of a split."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit.answers import Answers, Codes
from routeyard.pipelines.audit.finding import Found
from routeyard.schemas.leaks import marks_of
from routeyard.schemas.near import same_question

#: Words of which an id that is only a row number may be made.
_ROW = re.compile(
    r"(?:test|train|dev|val|valid|validation|eval|row|id|idx|index|q|question|query|task|item|doc|"
    r"sample|example|instance|case|problem|prob|no|num|nr|line|main)*"
)
#: Labels that a mode adds to an id, and questions from which they are one.
MODES, STEMS = 8, 10
#: Share of the questions that come under several ids from which they are modes.
MOST = 0.5


def is_row_number(name: str) -> bool:
    """Whether an id says only which row it is: `17`, `test-17`, `question_0017`.

    >>> is_row_number("test/17"), is_row_number("django__django-11099")
    (True, False)
    """
    letters = re.sub(r"[\d\W_]+", "", name.lower())
    return _ROW.fullmatch(letters) is not None


def _asked(answers: Answers) -> pa.Array:
    """Text of each question, of its first row."""
    return answers.texts("prompt").take(pa.array(answers.first))


def _ids(answers: Answers) -> list[str]:
    names: list[str] = answers.texts("question").take(pa.array(answers.first)).to_pylist()
    return names


def groups_of(answers: Answers) -> Codes:
    """(questions,) number of the group of questions that are one: equal or near-equal words, or,
    where nobody knows the words, one id in several suites that is no row number."""
    return answers.cached("groups", _groups)


def _groups(answers: Answers) -> Codes:
    n = answers.n_questions
    if answers.has("prompt"):
        asked = _asked(answers)
        known = np.asarray(
            pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(asked)), 0).fill_null(False)
        )
        exact = np.asarray(marks_of(asked).dictionary_encode().indices).astype(np.int64)
        label = np.where(known, exact, exact.max(initial=0) + 1 + np.arange(n))
        return same_question(asked.to_pylist(), np.unique(label, return_inverse=True)[1])
    ids = answers.coded("question")[answers.first]
    names = _ids(answers)
    told = np.array([not is_row_number(name) for name in names])
    label = np.where(told, ids, ids.max(initial=0) + 1 + np.arange(n))
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def modes(answers: Answers) -> Iterator[Found]:
    """One question under several ids that differ by a mode, an effort or a seed."""
    found = _modes(answers)
    if found is not None:
        says, questions = found
        yield Found("questions", says, _rows_of(answers, questions), "grave")


def _modes(answers: Answers) -> tuple[str, Codes] | None:
    names = _ids(answers)
    if answers.has("prompt"):
        group = groups_of(answers)
        size = np.bincount(group)[group]
        if (
            len(group) >= STEMS
            and (size > 1).mean() >= MOST
            and len(answers.suites) < 2 * len(group)
        ):
            each = Counter(size[size > 1].tolist()).most_common(1)[0][0]
            labels = _labels(names)
            under = f" ({', '.join(sorted(labels)[:4])})" if labels else ""
            says = (
                f"{int((size > 1).sum()):,} of {len(group):,} questions ask the same words as "
                f"another, most of them {each} times{under}: modes or samples of one question, "
                "not questions"
            )
            return says, np.flatnonzero(size > 1)
        return None
    labels = _labels(names)
    if not labels:
        return None
    says = (
        f"ids differ only by {', '.join(sorted(labels)[:4])}: modes or samples of one question, "
        "not questions"
    )
    return says, np.arange(len(names))


def _labels(names: Sequence[str]) -> set[str]:
    """What follows the last sign of ids, where the same few labels end nearly all stems."""
    stems: dict[str, set[str]] = defaultdict(set)
    for name in names:
        cut = re.match(r"(.+)[@#:|/_\-. ]+([A-Za-z][\w@+]*)$", name)
        if cut is None:
            return set()
        stems[cut[1]].add(cut[2])
    labels = set().union(*stems.values()) if stems else set()
    whole = sum(len(one) == len(labels) for one in stems.values())
    several = 2 <= len(labels) <= MODES and len(stems) >= STEMS
    return labels if several and whole >= 0.8 * len(stems) else set()


def asked_twice(answers: Answers) -> Iterator[Found]:
    """Questions with the words of another one, where they are no modes."""
    if _modes(answers) is not None:
        return
    group = groups_of(answers)
    size = np.bincount(group)[group]
    if (size > 1).any() and answers.has("prompt"):
        doubled = np.flatnonzero(size > 1)
        says = (
            f"{len(doubled):,} of {len(group):,} questions ask what another one asks "
            f"({len(np.unique(group[doubled])):,} groups)"
        )
        yield Found("questions", says, _rows_of(answers, doubled), "note")


#: Prompts of a suite, characters that they open with alike, and part of a prompt from which these
#: are worked examples or instructions.
PROMPTS, OPENING, PART = 10, 200, 0.5


def same_opening(answers: Answers) -> Iterator[Found]:
    """Suites whose prompts open alike: worked examples or instructions, not the question."""
    suites = answers.suite[answers.first]
    asked = _asked(answers)
    for s in np.unique(suites):
        own = np.flatnonzero(suites == s)
        some = asked.take(pa.array(own[:: max(1, len(own) // 500)])).drop_null().to_pylist()
        some = sorted(set(some))
        if len(some) < PROMPTS:
            continue
        # The common start of the texts between is that of these two; a few may open otherwise.
        pairs = zip(some[len(some) // 10], some[-1 - len(some) // 10], strict=False)
        start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        usual = float(np.median([len(text) for text in some]))
        if start < OPENING or start < PART * usual:
            continue
        says = (
            f"its prompts open with the same {start:,} characters of {usual:,.0f} in the median: "
            "worked examples or instructions, which embeddings read before the question"
        )
        yield Found(answers.suites[s] or "prompts", says, _rows_of(answers, own), "note")


def shared_ids(answers: Answers) -> Iterator[Found]:
    """Ids of one suite that are ids of another, where texts do not say they differ."""
    ids = answers.coded("question")[answers.first]
    suite = answers.suite[answers.first]
    names = _ids(answers)
    told = np.array([not is_row_number(name) for name in names])
    if answers.has("prompt"):
        group = groups_of(answers)
        told &= np.bincount(group)[group] > 1
    by_id: dict[int, list[int]] = defaultdict(list)
    for k in np.flatnonzero(told):
        by_id[int(ids[k])].append(int(k))
    pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for places in by_id.values():
        own = sorted({int(suite[k]) for k in places})
        for a in own:
            for b in own:
                if a < b:
                    pairs[a, b] += [k for k in places if suite[k] in (a, b)]
    for (a, b), places in sorted(pairs.items()):
        sizes = [int(np.sum(suite == one)) for one in (a, b)]
        both = len(places) // 2
        says = (
            f"{both:,} of {min(sizes):,} ids are ids of the other suite ({max(sizes):,} questions)"
        )
        about = f"{answers.suites[a]} and {answers.suites[b]}"
        yield Found(about, says, _rows_of(answers, np.array(sorted(set(places)))))


def leaked(answers: Answers) -> Iterator[Found]:
    """Questions of the test split that are in train or validation as well."""
    group = groups_of(answers)
    names = {"train": 0, "validation": 0, "val": 0, "dev": 0, "test": 1}
    code, known = answers.coded("split")[answers.first], answers.names("split")
    side = np.array([names.get(name.lower(), -1) for name in known] + [-1])[code]
    size = int(group.max(initial=0)) + 1
    train = np.bincount(group[side == 0], minlength=size) > 0
    bad = np.flatnonzero((side == 1) & train[group])
    total = int((side == 1).sum())
    if len(bad):
        example = _ids(answers)[bad[0]]
        says = (
            f"{len(bad):,} of {total:,} test questions are also in train or validation "
            f"(such as {example})"
        )
        yield Found("split", says, _rows_of(answers, bad))


def _rows_of(answers: Answers, questions: Codes) -> Codes:
    inside = np.zeros(answers.n_questions, bool)
    inside[questions] = True
    return np.flatnonzero(inside[answers.question])
