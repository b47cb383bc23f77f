"""Checks of rows: repeated, contradicting, foreign or missing ones."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit.answers import Answers, Codes, Floats, Found, Mask, counts, ranks
from routeyard.pipelines.common.pool import same_model
from routeyard.schemas.questions import marks_of, same_question

# Questions that are one question: equal words, equal ids, modes; those on two sides of a split.

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


# References that answers equal and are rejected against, and references that are damaged.

#: Rows of a suite that equal their reference and count as wrong, from which it is a finding.
REJECTED = 3
#: A reference that asks for nothing: an article or a preposition alone, a word for no value, signs
#: alone, a separator at its end, a sign of HTML.
_DAMAGED = (
    r"^\W*(the|an|of|and|or|to|is|in|it|this|that|nan|null|n/a|todo|tbd|undefined)?\W*$|"
    r"[\w)\]][;,:]\s*$|&(amp|lt|gt|quot|nbsp|#\d+);"
)


def rejected(answers: Answers) -> Iterator[Found]:
    """Answers that are the reference, but for a unit and marks, and count as wrong; by suite."""
    wrong = np.flatnonzero((answers.score == 0) & (answers.coded("reference") >= 0))
    text = pc.fill_null(answers.texts("text").take(pa.array(wrong)), "")
    keys = answers.texts("reference").take(pa.array(wrong))
    reference = _plain(keys)
    boxed = pc.if_else(pc.match_substring(text, "\\boxed{"), text, None)
    last = pc.struct_field(pc.extract_regex(boxed, _BOXED), "last")
    # Marks and a unit make a text no more than some times as long.
    most = pc.add(pc.multiply(pc.utf8_length(keys), 4), _MARKS)
    short = pc.if_else(pc.less_equal(pc.utf8_length(text), most), text, None)
    told = _plain(pc.coalesce(last, short))
    same = pc.or_kleene(pc.equal(told, reference), pc.equal(_amount(told), _amount(reference)))
    there = pc.greater(pc.utf8_length(reference), 0)
    bad = wrong[np.asarray(pc.fill_null(pc.and_(same, there), False), dtype=bool)]
    number = counts(answers.suite[bad], len(answers.suites))
    few = number[answers.suite[bad]] < REJECTED
    some = {answers.suites[s] or "all questions": bad[answers.suite[bad] == s]
            for s in np.flatnonzero(number >= REJECTED)}  # fmt: skip
    some |= {"other suites": bad[few]} if few.sum() >= REJECTED else {}
    for about, rows in some.items():
        says = f"{len(rows):,} answers are the reference, but for units and marks, and count as "
        yield Found(about, says + "wrong", rows)


#: Characters of marks around an answer, beside four for each of the reference's own.
_MARKS = 100
#: The last answer in a box of a text; its content may hold one pair of braces.
_BOXED = r"(?s).*\\boxed\{+(?P<last>[^{}]*(?:\{[^{}]*\})?[^{}]*)\}"
#: A number alone, with a currency sign before it or a unit behind it.
_AMOUNT = r"^[-−]?[$€£]? ?(?P<number>\d[\d,]*(?:\.\d+)?) ?(?:[a-z°²³]{1,12}|[%$€£])?$"


def _plain(texts: pa.Array) -> pa.Array:
    """Texts in lower case without signs of LaTeX and marks around them."""
    bare = pc.replace_substring_regex(texts, r"\\(?:text|mathrm|mathbf)\b|[\\{}$]", "")
    return pc.utf8_trim(pc.utf8_lower(bare), " \t\r\n.\"'`*")


def _amount(texts: pa.Array) -> pa.Array:
    """The signed number of a text without its unit; null where the text is not a number."""
    number = pc.struct_field(pc.extract_regex(texts, _AMOUNT), "number")
    sign = pc.if_else(pc.match_substring_regex(texts, "^[-−]"), "-", "")
    bare = pc.replace_substring_regex(pc.replace_substring(number, ",", ""), r"\.0*$", "")
    return pc.binary_join_element_wise(sign, bare, "")


def damaged(answers: Answers) -> Iterator[Found]:
    """References that look cut or empty, and that no arm's answer is right against."""
    best = np.full(answers.n_questions, -1.0)
    np.maximum.at(best, answers.question, np.nan_to_num(answers.score, nan=-1.0))
    asked = answers.texts("reference").take(pa.array(answers.first))
    odd = pc.match_substring_regex(asked, _DAMAGED, ignore_case=True)
    bad = np.flatnonzero(np.asarray(pc.fill_null(odd, False), dtype=bool) & (best == 0))
    if not len(bad) or len(bad) > 0.2 * answers.n_questions:
        return  # signs alone are what such questions ask for
    names = answers.texts("question").take(pa.array(answers.first[bad[:3]])).to_pylist()
    said = [asked[int(k)].as_py()[:40] for k in bad[:3]]
    shown = ", ".join(f"{text!r} of {name}" for text, name in zip(said, names, strict=True))
    says = f"{len(bad):,} references look damaged ({shown}), and no answer is right against them"
    yield Found("references", says, np.flatnonzero(np.isin(answers.question, bad)))


#: Answers of an arm on a suite from which verdicts are compared with lengths, arms that have to
#: agree, and share of pairs (right, wrong) in which the longer, or the shorter, one is right.
LENGTHS, ARMS, FOLLOWS = 40, 3, 0.9


def by_length(answers: Answers) -> Iterator[Found]:
    """Suites on which nearly only the length of an answer decides whether it is right."""
    length = answers.lengths("text")
    usable = ~np.isnan(length) & (length > 0) & ~np.isnan(answers.score)
    for s, suite in enumerate(answers.suites):
        found = []
        for a in range(len(answers.arms)):
            rows = np.flatnonzero(usable & (answers.cell == a * len(answers.suites) + s))
            right = answers.score[rows] > 0.5
            if len(rows) < LENGTHS or min(right.sum(), (~right).sum()) < 0.1 * LENGTHS:
                continue
            below = ranks(length[rows])[right].sum() - right.sum() * (right.sum() + 1) / 2
            found.append(below / (right.sum() * (~right).sum()))
        share = float(np.median(found)) if len(found) >= ARMS else 0.5
        if max(share, 1 - share) < FOLLOWS:
            continue
        which = "longer" if share > 0.5 else "shorter"
        says = (
            f"of a right and a wrong answer the {which} one is right in "
            f"{100 * max(share, 1 - share):.0f} % of the pairs (median of {len(found)} arms): the "
            "verdict follows the length"
        )
        yield Found(suite or "all questions", says, np.flatnonzero(usable & (answers.suite == s)))


#: Characters from which a text is an answer that no two models give word for word.
LONG = 80
#: Answers that two arms share from which, and share of an arm's long answers from which, its rows
#: are another's.
SHARED, SHARE = 5, 0.02
#: Part of a name that two arms have in common from which they are of one model, and share of equal
#: answers from which that explains nothing.
ALIKE, MANY = 0.6, 0.1


def served(answers: Answers) -> Iterator[Found]:
    """Answers that another model than the arm's served, by arm and name."""
    names = answers.texts("served_model").dictionary_encode()
    known, code = names.dictionary.to_pylist(), np.asarray(pc.fill_null(names.indices, -1))
    for k, arm in enumerate(answers.arms):
        mine = answers.arm == k
        total = int(np.sum(mine & (code >= 0)))
        for c in np.unique(code[mine & (code >= 0)]):
            rows = np.flatnonzero(mine & (code == c))
            if same_model(arm, known[c]) or _spelled(known[c]) in _spelled(arm):
                continue
            # An arm may be named otherwise than any model: then one name serves all of it.
            if len(rows) == total and known[c] not in answers.arms:
                continue
            says = f"{len(rows):,} of {total:,} answers are {known[c]!r}'s, as their rows say"
            yield Found(arm, says, rows)


def _spelled(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.rsplit("/", 1)[-1].lower())


def copies(answers: Answers) -> Iterator[Found]:
    """Answers of an arm that are word for word another arm's answers to the same questions.

    Arms of one family share a few; a pair is a finding when it shares far more than the arms'
    other pairs do. Of arms of one model, by their names, a few are only a note.
    """
    groups = _equal_answers(answers)
    size = len(answers.arms)
    pairs = np.zeros((size, size))
    for rows in groups:
        own = np.unique(answers.arm[rows])
        pairs[np.ix_(own, own)] += 1
    total = counts(answers.arm, size, answers.lengths("text") >= LONG)
    share = pairs / np.maximum(np.minimum(total[:, None], total[None, :]), 1)
    np.fill_diagonal(share, 0)
    for a, b in np.argwhere(np.triu(pairs >= SHARED, 1) & (share > SHARE)):
        rest = np.delete(np.concatenate([share[a], share[b]]), [a, b, size + a, size + b])
        if len(rest) and share[a, b] <= 3 * np.quantile(rest, 0.75):
            continue
        shared = [one[np.isin(answers.arm[one], (a, b))] for one in groups]
        both = [one for one in shared if len(np.unique(answers.arm[one])) > 1]
        names = answers.arms[a], answers.arms[b]
        common = difflib.SequenceMatcher(None, *names).find_longest_match().size
        alike = common >= ALIKE * min(map(len, names)) and share[a, b] < MANY
        says = (
            f"{int(pairs[a, b]):,} long answers to the same questions ({100 * share[a, b]:.0f} %) "
            "are equal word for word: rows of one are stored under the other, or both are one model"
        )
        found = np.sort(np.concatenate(both))
        yield Found(f"{names[0]} and {names[1]}", says, found, "note" if alike else None)


def _equal_answers(answers: Answers) -> list[Codes]:
    """Rows of several arms with one long text under one question, and under no other question."""
    rows = np.flatnonzero(answers.lengths("text") >= LONG)
    text, question = answers.equal("text")[rows], answers.question[rows]
    order, starts = _grouped(text, question)
    size = np.diff(np.append(starts, len(order)))
    # A refusal or a template answers many questions.
    questions_of_text = np.bincount(text[order][starts]) if len(starts) else np.empty(0)
    wanted = (size > 1) & (questions_of_text[text[order][starts]] == 1) if len(starts) else []
    found = [rows[order[k : k + n]] for k, n in zip(starts[wanted], size[wanted], strict=True)]
    return [one for one in found if len(np.unique(answers.arm[one])) > 1]


def _grouped(a: Codes, b: Codes) -> tuple[Codes, Codes]:
    """Order that sorts by (a, b), and where each pair starts in it."""
    order = np.lexsort((b, a))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(a[order]) != 0) | (np.diff(b[order]) != 0)
    return order, np.flatnonzero(new)


def repeated(answers: Answers) -> Iterator[Found]:
    """Rows that answer what another row has answered: one arm, question and sample."""
    sample = np.nan_to_num(answers.table.column("sample").to_numpy(zero_copy_only=False), nan=-1)
    key = answers.arm * answers.n_questions + answers.question
    order, starts = _grouped(key, sample.astype(np.int64))
    size = np.diff(np.append(starts, len(order)))
    if size.max(initial=0) < 2:
        return
    inside = np.repeat(np.arange(len(starts)), size)
    again = order[size[inside] > 1]
    score = np.nan_to_num(answers.score[order], nan=-1)
    low = np.minimum.reduceat(score, starts)
    differ = (np.maximum.reduceat(score, starts) != low) & (size > 1)
    if (size == size[0]).all() and not answers.has("sample"):
        says = f"every question has {size[0]} rows of each arm that nothing numbers: samples?"
        yield Found("sample", says, again, "note")
        return
    says = (
        f"{len(again):,} rows come {int(size.max())} times or twice: one arm, question and sample"
    )
    if differ.any():
        says += f"; {int(differ.sum()):,} of them with different scores"
    yield Found("rows", says, np.sort(again), "grave" if differ.any() else None)


def both_ways(answers: Answers) -> Iterator[Found]:
    """The same answer to the same question, right in one row and wrong in another."""
    score = answers.score
    text = answers.equal("text")
    rows = np.flatnonzero(((score == 0) | (score == 1)) & (text >= 0))
    key = answers.question
    if answers.has("reference"):
        key = key * (int(answers.coded("reference").max()) + 2) + answers.coded("reference") + 1
    order, starts = _grouped(key[rows], text[rows])
    number = np.diff(np.append(starts, len(order)))
    if not len(rows):
        return
    right = np.add.reduceat(score[rows][order], starts)
    differ = (right > 0) & (right < number)
    if not differ.any():
        return
    inside = np.repeat(differ, number)
    found = rows[order][inside]
    minority = np.repeat(right * 2 <= number, number)[inside]
    odd = found[np.where(minority, score[found] == 1, score[found] == 0)]
    empty = int(np.sum(np.nan_to_num(answers.lengths("text")[odd]) == 0))
    says = (
        f"{int(differ.sum()):,} answers are right in one row and wrong in another under the same "
        f"question{f' ({empty} of them empty)' if empty else ''}"
    )
    yield Found("grades", says, np.sort(odd))


# Answers that are missing where questions are hard, and accuracies over other questions.

#: Share of the questions that an arm may lack, and standard errors from which what it lacks is
#: easier or harder than what it has.
LACKS, HIGHEST = 0.01, 4.0
#: Change of an accuracy, by imputation, from which it matters.
MATTERS = 0.01
#: Columns of usage, the share of an arm's answers from which it states them, and the fewest that
#: it may lack.
_USAGE = {"cost_usd": "the costs", "prompt_tokens": "the prompt tokens",
          "completion_tokens": "the completion tokens", "latency_s": "the times"}  # fmt: skip
STATED, FEWEST = 0.95, 5
#: Chance, over all arms, below which a share of unscored answers is out of line.
RARE = 0.001


@dataclass(frozen=True, eq=False)
class ArmCoverage:
    """What arms answered, and what their accuracy is where answers are missing.

    Attributes:
        n: (arms,) questions with a score.
        of: (arms,) questions of the suites in which it has any.
        accuracy: (arms,) mean over the scored ones.
        low, high: (arms,) the accuracy if all missing ones were wrong, or right.
        imputed: (arms,) the accuracy if it answers a missing question as well, against the other
            arms' mean, as it does the others (missing at random within a question's difficulty).
        z: (arms,) by how many standard errors the other arms do better on what it has than on
            what it lacks.
    """

    n: Floats
    of: Floats
    accuracy: Floats
    low: Floats
    high: Floats
    imputed: Floats
    z: Floats


def coverage(answers: Answers) -> ArmCoverage:
    """Coverage of every arm over all questions that any arm has scored."""
    arms, m = len(answers.arms), answers.n_questions
    score = np.clip(answers.score, 0, 1)
    known = ~np.isnan(score)
    key = answers.arm[known] * m + answers.question[known]
    # A question's score is the mean over its samples.
    unique, inverse = np.unique(key, return_inverse=True)
    mean = np.bincount(inverse, weights=score[known]) / np.bincount(inverse)
    arm, question = unique // m, unique % m
    total = np.bincount(question, weights=mean, minlength=m)
    number = np.bincount(question, minlength=m).astype(float)
    asked = number > 0
    made = {name: np.full(arms, np.nan) for name in ArmCoverage.__dataclass_fields__}
    for a in range(arms):
        mine = arm == a
        if not mine.any():
            made["n"][a], made["of"][a] = 0, asked.sum()
            continue
        own, at = mean[mine], question[mine]
        rest = number.copy()
        rest[at] -= 1
        sums = total.copy()
        sums[at] -= own
        with np.errstate(invalid="ignore", divide="ignore"):
            difficulty = np.where(rest > 0, sums / rest, np.nan)
        has = np.zeros(m, bool)
        has[at] = True
        lacks = asked & ~has
        made["n"][a], made["of"][a], made["accuracy"][a] = len(own), asked.sum(), own.mean()
        made["low"][a] = own.sum() / asked.sum()
        made["high"][a] = (own.sum() + lacks.sum()) / asked.sum()
        made["imputed"][a], made["z"][a] = _imputed(own, difficulty, at, lacks)
    return ArmCoverage(**made)


def _imputed(own: Floats, difficulty: Floats, at: Codes, lacks: Mask) -> tuple[float, float]:
    """(accuracy with missing answers imputed by difficulty, z of has against lacks)."""
    there, gone = difficulty[at], difficulty[lacks]
    there, gone = there[~np.isnan(there)], gone[~np.isnan(gone)]
    if not len(gone) or not len(there):
        return float(own.mean()), 0.0
    error = np.sqrt(there.var() / len(there) + gone.var() / len(gone)) + 1e-9
    z = (there.mean() - gone.mean()) / error
    known = ~np.isnan(difficulty[at])
    edges = np.quantile(there, np.linspace(0, 1, 11)[1:-1])
    bins, wanted = np.digitize(difficulty[at][known], edges), np.digitize(gone, edges)
    total = np.bincount(bins, weights=own[known], minlength=10) + own.mean()
    rate = total / (np.bincount(bins, minlength=10) + 1)
    filled = (own.sum() + rate[wanted].sum()) / (len(own) + len(gone))
    return float(filled), float(z)


def not_at_random(answers: Answers) -> Iterator[Found]:
    """Arms whose missing answers are to easier or harder questions than their others."""
    if len(answers.arms) < 3:
        return
    found = answers.cached("coverage", coverage)
    lacks = 1 - found.n / np.maximum(found.of, 1)
    for a in np.argsort(-np.nan_to_num(np.abs(found.z)), kind="stable"):
        differs = abs(found.z[a]) > HIGHEST and abs(found.imputed[a] - found.accuracy[a]) > MATTERS
        if lacks[a] <= LACKS or not differs:
            continue
        harder = "harder" if found.z[a] > 0 else "easier"
        says = (
            f"{int(found.n[a]):,} of {int(found.of[a]):,} questions have a score, and those it "
            f"lacks are {harder}: {100 * found.accuracy[a]:.1f} % as recorded, "
            f"{100 * found.imputed[a]:.1f} % with missing answers by difficulty "
            f"[{100 * found.low[a]:.1f}, {100 * found.high[a]:.1f}]"
        )
        after = np.where(np.arange(len(answers.arms)) == a, found.imputed, found.accuracy)
        yield Found(
            answers.arms[a], says, np.empty(0, np.int64), after=after, before=found.accuracy
        )


def undecided(answers: Answers) -> Iterator[Found]:
    """Arms of whose answers more have no score than of the other arms' together (exact test)."""
    from scipy.special import bdtrc

    arms, m = len(answers.arms), np.isnan(answers.score)
    rows, lacks = counts(answers.arm, arms, np.ones(len(m), bool)), counts(answers.arm, arms, m)
    for a in range(arms if arms > 1 else 0):
        rest = rows.sum() - rows[a]
        share = (lacks.sum() - lacks[a]) / max(rest, 1)
        # As many as `lacks`, were each as rarely left open as those of the others (and one more).
        usual = min(1.0, (lacks.sum() - lacks[a] + 1) / (rest + 1))
        if lacks[a] < FEWEST or lacks[a] / rows[a] - share < LACKS:
            continue
        if arms * bdtrc(int(lacks[a]) - 1, int(rows[a]), usual) < RARE:
            right = np.nansum(np.clip(answers.score[answers.arm == a], 0, 1))
            low, high = 100 * right / rows[a], 100 * (right + lacks[a]) / rows[a]
            says = (
                f"{int(lacks[a]):,} of {int(rows[a]):,} answers have no score, of the other arms' "
                f"{100 * share:.1f} %: its accuracy is {low:.1f} to {high:.1f} %, whatever they are"
            )
            yield Found(answers.arms[a], says, np.flatnonzero(m & (answers.arm == a)))


def disjoint(answers: Answers) -> Iterator[Found]:
    """Groups of arms that share no question with the other groups: nothing compares them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    known = ~np.isnan(answers.score)
    arm, question = answers.arm[known], answers.question[known] + len(answers.arms)
    size = len(answers.arms) + answers.n_questions
    graph = coo_array((np.ones(len(arm)), (arm, question)), shape=(size, size))
    label = connected_components(graph, directed=False)[1]
    groups = [np.flatnonzero(label[: len(answers.arms)] == k) for k in np.unique(label[arm])]
    if len(groups) > 1:
        each = "; ".join(", ".join(answers.arms[a] for a in own[:3]) for own in groups[:3])
        says = (
            f"{len(groups)} groups of arms share no question with one another ({each}): their "
            "accuracies are over other questions and cannot be compared"
        )
        yield Found("arms", says, np.empty(0, np.int64))


def few_answers(answers: Answers) -> Iterator[Found]:
    """Arms on top of the leaderboard that the lower bound of their accuracy does not hold there."""
    found = answers.cached("coverage", coverage)
    if len(answers.arms) < 2 or np.isnan(found.accuracy).all():
        return
    top = int(np.nanargmax(found.accuracy))
    if found.n[top] >= 0.8 * found.of[top]:
        return
    best = int(np.nanargmax(found.low))
    if best == top:
        return
    says = (
        f"leads with {100 * found.accuracy[top]:.1f} % of {int(found.n[top]):,} of "
        f"{int(found.of[top]):,} questions; by the lower bound {answers.arms[best]} leads with "
        f"{100 * found.low[best]:.1f} %"
    )
    yield Found(
        answers.arms[top], says, np.empty(0, np.int64), after=found.low, before=found.accuracy
    )


def unmeasured(answers: Answers) -> Iterator[Found]:
    """Arms without costs, tokens or times that other arms state; by arm.

    Their place in a ranking by cost is unknown, and not the first.
    """
    asked = ~np.isnan(answers.score)
    size = len(answers.arms)
    total = counts(answers.arm, size, asked)
    lacks: dict[int, list[str]] = {}
    for name, words in _USAGE.items():
        known = counts(answers.arm, size, asked & ~np.isnan(answers.numbers(name)))
        share = known / np.maximum(total, 1)
        # A column that few arms state says nothing of those that do not.
        if (share >= STATED).sum() >= max(1, 0.5 * (total > 0).sum()):
            for a in np.flatnonzero((share < STATED) & (total - known >= FEWEST)):
                lacks.setdefault(int(a), []).append(f"{words} of {int(total[a] - known[a]):,}")
    for arm, unknown in lacks.items():
        of = f"{', '.join(unknown)} of {int(total[arm]):,} answers"
        rows = np.flatnonzero(asked & (answers.arm == arm))
        yield Found(answers.arms[arm], f"{of} are unknown: other arms state them", rows)


def two_names(answers: Answers) -> Iterator[Found]:
    """Arms that share no question and whose names are one model's but for a provider or a date."""
    arms, m = len(answers.arms), answers.n_questions
    alike = [
        (a, b)
        for a in range(arms)
        for b in range(a + 1, arms)
        if same_model(answers.arms[a], answers.arms[b])
    ]
    for a, b in alike:
        asked = [np.bincount(answers.question[answers.arm == k], minlength=m) > 0 for k in (a, b)]
        if not (asked[0] & asked[1]).any():
            names = f"{answers.arms[a]} and {answers.arms[b]}"
            says = "are one model by their names, and share no question: one arm under two names"
            yield Found(names, says, np.flatnonzero((answers.arm == a) | (answers.arm == b)))
