"""Which labels to doubt, and what people decide about them."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.label.policies import (
    answer,
    escalates_on,
    newest,
    query_ids,
    question,
    trusts_grades,
    verdict,
    verdict_table,
)
from routeyard.pipelines.label.scorers.patterns import patterns
from routeyard.pipelines.label.scorers.reading import committed
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe import Label
from routeyard.schemas.statuses import ANSWERLESS, GIVEN
from routeyard.schemas.text import own_table, spreadsheet, unguarded

# Agreement of two raters beyond chance.


def cohen_kappa(both: int, first: int, second: int, none: int) -> float | None:
    """κ = (p_o − p_e) / (1 − p_e), Cohen 1960, of two raters who say yes or no.

    Args:
        both, first, second, none: Units to which both, only one or neither says yes.

    Returns:
        None without units, and where chance alone would always agree.
    """
    n = both + first + second + none
    a, b = (both + first) / max(n, 1), (both + second) / max(n, 1)
    chance = a * b + (1 - a) * (1 - b)
    return None if not n or chance == 1 else ((both + none) / n - chance) / (1 - chance)


# How far doubtful labels could move a model's accuracy.


def intervals(labels: pa.Table, suspects: pa.Table | None = None) -> pa.Table:
    """Accuracy of each model with the interval that its doubtful labels leave open.

    A label is doubtful when it is contested, undecided, or rests on a suspect
    reference. The lower end counts every doubtful label as wrong, the upper end as
    right (worst-case bounds, Manski 1989): no assumption about the doubtful ones is
    made, and sampling error is not in it. Labels that a person decided are certain
    unless people were split.

    Args:
        labels: LABELS contract.
        suspects: `query_id` of questions whose reference is in doubt.

    Returns:
        model_id, n (labels of responses that exist), undecided, unreadable, doubtful,
        accuracy (over decided labels), accuracy_readable (over decided labels that
        are not `unreadable`), low, high (over n); sorted by model_id. Accuracies are
        null where nothing was decided.
    """
    return answer("intervals", labels=labels, suspects=query_ids(suspects))


# Verdicts as policies count them: a grade is right from the threshold that the recipe sets.


def by_policy(verdicts: pa.Table, queries: pa.Table, policy: Label) -> pa.Table:
    """The verdicts, `outcome` of graded ones by their task's threshold.

    A scorer sets `correct` by its own threshold. Where the recipe sets another for
    the task, labels go by that one, and so must whoever compares verdicts.

    Args:
        verdicts: contract form; rows of unknown questions stay as they are.
        queries: query_id and task.
    """
    tasks = sorted(set(queries.column("task").to_pylist()))
    limits = {task: policy.policy_of(task).threshold for task in tasks}
    if all(limit is None for limit in limits.values()):
        return verdicts
    lowest = pa.table({"task": tasks, "lowest": pa.array(limits.values(), pa.float64())})
    queries = queries.select(["query_id", "task"])
    return answer("by_policy", verdicts=verdicts, queries=queries, limits=lowest)


# What a stored text is, if no answer: stub, refusal, cut off, a harness's message, a constant.
#
# A file of scores is believed too easily. Where the text beside a score is "I do", "[ERROR]
# timeout" or ends in mid-sentence, the score says that a harness failed, not that a model did. What
# a text is follows from features: its length beside what the task's answers have, how it ends
# beside
# how the model's answers end, whether it opens or repeats others, what a rule read in it, and words
# without content (`texts.yaml`); never from one list of openings.

_RE = patterns("text_kinds")


#: A stub is no longer than this; a message of a harness or a refusal than these.
SHORT, MESSAGE, REFUSAL = 60, 300, 700
#: Questions that one text answers from which it is a constant.
CONSTANT = 20
_WORDS: Mapping[str, Any] = own_table(Path(__file__).with_name("texts.yaml"), words=True)
#: Scripts whose words are told apart by `\\b`: Latin, Greek, Cyrillic.
_SPACED = re.compile(r"[\x00-\u052f\u1e00-\u1fff\u2019…]*")


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    """Any of the words, whole where their script sets words apart, the longest first; `*` matches
    an ending, `…` a few words between."""
    parts = []
    for word in sorted({*words}, key=lambda word: (-len(word), word)):
        part = re.escape(word.rstrip("*")).replace("…", r"[^.!?\n]{1,60}")
        if _SPACED.fullmatch(word):
            part = rf"\b{part}" + ("" if word.endswith("*") else r"\b")
        parts.append(part)
    return re.compile("|".join(parts))


_GROUPS = {
    group: _any_of([word for words in _WORDS["languages"].values() for word in words[group]])
    for group in ("apology", "inability", "service", "self", "empty")
}
_EMPTY = _GROUPS.pop("empty")
_VALUES = frozenset(_WORDS["harness"]["values"])
_PHRASE = re.compile(rf"\b(?:{'|'.join(_WORDS['harness']['phrases'])})")
_MACHINE = re.compile(rf"\b(?:{'|'.join(_WORDS['harness']['words'])})\b")
#: Signs after which a sentence is over, in any script; and those after which it goes on.
ENDS = frozenset(".!?。！？…؟।॥」』”’\"'`)]}>*_|~】）》։။፡")
_GOES_ON = frozenset(",:;(-–—[{=+/&、，：；（\\<،؛")


@dataclass(frozen=True)
class Setting:
    """What a text is compared with.

    Attributes:
        typical: median length of the task's texts.
        ends: share of the model's longer texts that end a sentence.
        vocabulary: references and choices of the task, as `plain` gives them.
        unread: the question's rule read no answer in it; None where there is no rule's verdict, or
            it takes the whole text for the answer.
        opens: other questions with a longer answer that begins with this text.
        answers: questions that this text of the model answers, and their different references.
        right: it was scored as right.
    """

    typical: float = 0.0
    ends: float = 0.0
    vocabulary: frozenset[str] = frozenset()
    unread: bool | None = None
    opens: int = 0
    answers: tuple[int, int] = (1, 1)
    right: bool | None = None


def kind_of(text: str, at: Setting) -> str | None:
    """`stub`, `refusal`, `harness_error`, `constant` or `truncated`; None for an answer, right or
    wrong."""
    said = text.strip()
    low = plain(said) if len(said) <= MESSAGE else ""
    if not said:
        return "stub"
    if low and not at.vocabulary.isdisjoint((low, said.casefold())):
        return None
    if _is_harness(said, low):
        return "harness_error"
    # A refusal that was scored as right is one the more; the text is then all of it.
    longest = MESSAGE if at.right else REFUSAL
    if at.unread is not False and len(said) <= longest and _refuses(said[:MESSAGE].casefold()):
        return "refusal"
    n, references = at.answers
    repeated = n >= 5 and references >= 3 and not at.right
    if len(said) <= SHORT:
        if _is_answer(low, at):
            return None
        if _is_stub(said, low, at, repeated):
            return "stub"
    if repeated and n >= CONSTANT:
        return "constant"
    return "truncated" if len(said) > SHORT and _is_cut(said, at) else None


def plain(text: str) -> str:
    """A short text as it is compared: no case, no marks around it, single spaces."""
    return " ".join(text.casefold().split()).strip("*_`\"'.,:;!()[]{}#<>“”‘’ ")


def _is_harness(said: str, low: str) -> bool:
    """Whether a harness wrote it, or reasoning was opened and never closed."""
    if any(f"</{name}>" not in said for name in _RE["thinks"].findall(said)):
        return True
    if len(said) > MESSAGE:
        return False
    folded, words = said.casefold(), len(low.split())
    machine = len({*_MACHINE.findall(folded)})
    return (
        folded in _VALUES
        or low in _VALUES
        or bool(_RE["begins"].match(folded))
        or (machine >= 2 and words <= 8 * machine)
        or (words <= 12 and bool(_PHRASE.search(folded)))
    )


def _refuses(said: str) -> bool:
    """Whether a text names an inability beside another sign of a refusal, or a model apologises."""
    if _GROUPS["inability"].search(said):
        return any(said_of.search(said) for name, said_of in _GROUPS.items() if name != "inability")
    return bool(_GROUPS["apology"].search(said) and _GROUPS["self"].search(said))


def _is_answer(low: str, at: Setting) -> bool:
    """Whether a short text has the shape of an answer: an option, a number, a known reference."""
    if at.unread is not None:
        return not at.unread
    if _RE["letter"].fullmatch(low):
        return low.strip("([)].:") in at.vocabulary or at.typical <= SHORT
    shaped = _RE["gives"].search(low) or _RE["number"].search(low)
    return bool(shaped) or any(word in at.vocabulary for word in low.split() if len(word) > 1)


def _is_stub(said: str, low: str, at: Setting, repeated: bool) -> bool:
    bare = not re.search(r"\w", _EMPTY.sub("", low))
    hangs = said[-1] in _GOES_ON
    return (
        bare
        or hangs
        or at.unread is True
        or at.opens >= 3
        or (repeated and len(said) <= SHORT // 2)
        or at.typical > 5 * len(said) + 100
    )


def _is_cut(said: str, at: Setting) -> bool:
    """Whether a longer text stops before its end: something stays open, or it ends in mid-sentence
    although the model's answers do not, or without an answer before it."""
    ended = said[-1] in ENDS or (said[-1] == "$" and said.count("$") % 2 == 0)
    structured = said[0] in "{[<" or said.startswith("```")
    open_ = said.count("```") % 2 == 1 or said.count("\\[") > said.count("\\]")
    if structured or "\\boxed{" in said:
        open_ = open_ or said.count("{") > said.count("}") or said.count("[") > said.count("]")
    if open_ and (not ended or structured):
        return True
    if said[-1] in _GOES_ON and not at.right:
        return True
    if ended or (at.unread is not True and _closes_with_answer(said)):
        return False
    return at.unread is True or at.ends >= (0.9 if at.right else 0.6)


def _closes_with_answer(said: str) -> bool:
    """Whether the last line is a marked answer ("Answer: Wednesday"), which needs no stop."""
    line = said.rpartition("\n")[2]
    return any(
        item.kind not in ("stated", "bold")
        and item.closed
        and len(item.text) <= SHORT
        and len(line) - item.end <= 4
        for item in committed(line)
    )


# Stored texts that are no answers, found in a whole set of answers; `kind_of` says of each
# what it is.

#: Kind of a text → kind of a finding, and what the texts are.
_KINDS = {
    "stub": ("stub_answers", "stubs without content"),
    "refusal": ("refusals", "refusals"),
    "harness_error": ("harness_errors", "messages of a harness, no answers of the model"),
    "truncated": ("truncated_answers", "cut off"),
    "constant": ("constant_text", "one text for many questions"),
}
#: Columns of the table `texts`: a text that is no answer.
_TOLD = pa.schema(
    {
        **dict.fromkeys(("model_id", "query_id"), pa.string()),
        "sample": pa.int32(),
        **dict.fromkeys(("kind", "text"), pa.string()),
        "scored_right": pa.bool_(),
    }
)


def look(connection: Any) -> tuple[dict[str, pa.Table], list[tuple[str, str, str]]]:
    """Findings about stored texts; the connection holds queries, verdicts, labels and texts.

    Args:
        connection: DuckDB, with `texts` (query_id, model_id, sample, text).

    Returns:
        Findings as (kind, about, says), and the tables `texts` (each text that is no answer, with
        its kind: its start, or its end where it is cut), `readable` (accuracy with and without
        those that are scored as wrong), `both_ways` (one text scored right and wrong).
    """
    named = [name for (name,) in connection.sql("SELECT DISTINCT scorer FROM queries").fetchall()]
    free = [name for name in named if escalates_on(name) == "not_correct"]
    connection.register("open_scorers", pa.table({"scorer": pa.array(free, pa.string())}))
    connection.execute(question("scored"))
    table = pa.Table.from_pylist(list(_kinds(connection)), schema=_TOLD)
    connection.register("no_answers", table)
    tables = {
        "texts": table,
        "readable": connection.sql(question("readable")).to_arrow_table(),
        "both_ways": connection.sql(question("both_ways")).to_arrow_table(),
    }
    return tables, _texts_findings(tables)


def _kinds(connection: Any) -> Iterator[dict[str, Any]]:
    """Every text that is no answer, with its kind."""
    vocabulary = {
        task: frozenset(form for word in words for form in (plain(word), word.strip().casefold()))
        for task, words in connection.sql(question("vocabulary")).fetchall()
    }
    opens = _openings(connection)
    looked_at = connection.sql(question("looked_at"), params=[list(ENDS)])
    for batch in looked_at.to_arrow_reader(5000):
        for row in batch.to_pylist():
            text = row["text"]
            setting = Setting(
                row["typical"],
                row["ends"],
                vocabulary.get(row["task"], frozenset()),
                row["unread"],
                opens.get(plain(text), 0) if len(text) <= SHORT else 0,
                (row["answers"], row["different"]),
                row["scored_right"],
            )
            if kind := kind_of(text, setting):
                shown = text[-200:] if kind == "truncated" else text[:200]
                yield row | {"kind": kind, "text": shown}


def _openings(connection: Any) -> Counter[str]:
    """Short text → questions, up to a few, to which a longer answer begins with it."""
    short = {plain(text) for (text,) in connection.sql(question("short")).fetchall()}
    openings: dict[str, set[str]] = defaultdict(set)
    for query, head in connection.sql(question("heads")).fetchall():
        words = plain(head).split()
        for n in range(1, min(len(words), 8)):
            opening = plain(" ".join(words[:n]))
            if opening in short and len(openings[opening]) < 3:
                openings[opening].add(query)
    return Counter({opening: len(queries) for opening, queries in openings.items()})


def _texts_findings(tables: dict[str, pa.Table]) -> list[tuple[str, str, str]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in tables["texts"].to_pylist():
        groups[row["kind"], row["model_id"]].append(row)
    readable = {row["model_id"]: row for row in tables["readable"].to_pylist()}
    findings = []
    for (kind, model), rows in sorted(groups.items(), key=itemgetter(0)):
        of, (name, what) = readable[model], _KINDS[kind]
        cut = slice(-30, None) if kind == "truncated" else slice(60)
        shown = Counter(row["text"][cut] for row in rows).most_common(3)
        examples = ", ".join(
            f"{'nothing at all' if not text.strip() else repr(text)} ({n:,}×)" for text, n in shown
        )
        left = "unknown" if of["accuracy_readable"] is None else f"{of['accuracy_readable']:.1%}"
        stored = "unknown" if of["accuracy"] is None else f"{of['accuracy']:.1%}"
        wrong = sum(row["scored_right"] is False for row in rows)
        says = (
            f"{len(rows):,} of {of['answers']:,} answers are {what}, {wrong:,} of them scored as "
            f"wrong, such as {examples}: accuracy {stored} as stored, {left} without its wrong "
            "answers of this and the other kinds of texts that are no answers"
        )
        findings.append((name, model, says))
    for row in tables["both_ways"].to_pylist():
        says = (
            f"{row['text'][:60]!r} is marked right {row['marked_right']:,} times of "
            f"{row['answers']:,} under the same question and reference"
            + (f", in {row['queries']} duplicate rows" if row["queries"] > 1 else "")
        )
        kind = "duplicate_row_contradicts" if row["queries"] > 1 else "same_text_scored_both_ways"
        findings.append((kind, row["query_id"], says))
    return findings


# Which references are probably wrong, judged by which answers models of different skill choose.
#
# A latent-truth model in the manner of Dawid and Skene (1979), with difficulty of questions as in
# Rasch's: model m gives the true answer of a question with probability σ(θ_m − b), b ~ N(0, s²);
# wrong answers fall on the other options by a Dirichlet-multinomial of concentration α per option,
# so that agreement on a tempting wrong one is expected; the reference is the truth but for a share
# ε.
# A model that repeats another's mistakes counts for less. Everything is estimated from the answers
# alone, so the result is a probability, not a vote.

#: Other answers to a question that are considered as its truth, the most frequent first.
_OTHERS = 6
#: Options of a question that lists none.
_OPEN = 10
#: Questions that parameters are estimated from; scoring them is linear in their number.
_SAMPLE = 4000
#: Similarity of wrong answers from which two models are copies of one.
_COPY = 0.9
#: Share of wrong references that is usual in published sets (Gema and others 2024 find 2 to 3 %
#: in MMLU), and of how many questions its weight is.
_USUAL, _PRIOR = 0.02, 50.0
_GRID = np.linspace(-3.5, 3.5, 29)
_MASS = np.log(np.exp(-(_GRID**2) / 2) / np.exp(-(_GRID**2) / 2).sum())


@dataclass(frozen=True)
class _Votes:
    """answers: int8 [q, m], 0 the reference, 1… others by frequency, -1 none; options: [q]."""

    answers: Any
    options: Any
    weight: Any


@dataclass
class _Parameters:
    skill: Any
    spread: float = 2.0
    alpha: float = 0.5
    wrong: Any = 0.02


def wrong_keys(said: pa.Table, *, least: float = 0.1, models: int = 3) -> pa.Table:
    """Questions whose reference is probably wrong, the most probable first.

    Args:
        said: query_id, model_id, task, options (0 where a question lists none), `answer` as it
            is compared, and `right`: whether it is the reference's. One row per model.
        least: Probability from which a question is listed.
        models: Answers that a question needs, and models that err each in their own way.

    Returns:
        query_id, task, answer (what models say instead), agreeing, answered, `probability` that
        the reference is wrong, and `apart`: the most frequent answer has under half of the votes,
        so that the question, not its reference, is in doubt.
    """
    query_ids, tasks, names, votes = _votes(said)
    enough = (votes.answers >= 0).sum(axis=1) >= models
    probability = np.zeros(len(query_ids))
    truth = np.zeros((len(query_ids), _OTHERS + 2))
    at = np.flatnonzero(enough)
    votes.weight[:] = _discount(votes.answers[at[:_SAMPLE]])
    # Copies of one model are one voice: with too few, nobody can say who errs.
    if len(at) >= 2 and votes.weight.sum() > models - 0.5:
        result = _fit(_take(votes, at[:_SAMPLE]))
        wrong = np.full(len(query_ids), result.wrong)
        for _ in range(2):
            for start in range(0, len(at), _SAMPLE):
                part = at[start : start + _SAMPLE]
                truth[part] = _posterior(_take(votes, part), replace(result, wrong=wrong[part]))[0]
            # Subjects differ in how many keys are wrong: each has its own share, drawn to the
            # common.
            wrong = _shares(tasks, truth[:, 0], enough, result.wrong)
        probability[at] = 1 - truth[at, 0]
    other = 1 + truth[:, 1:-1].argmax(axis=1)
    agreeing = (votes.answers == other[:, None]).sum(axis=1)
    answered = (votes.answers >= 0).sum(axis=1)
    top = np.maximum(agreeing, (votes.answers == 0).sum(axis=1))
    listed = np.flatnonzero((probability >= least) & (agreeing >= 2))
    order = listed[np.lexsort((listed, -probability[listed].round(9)))]
    return pa.table(
        {
            "query_id": pa.array(query_ids[order], pa.string()),
            "task": pa.array(tasks[order], pa.string()),
            "answer": pa.array([names[k, other[k]] for k in order.tolist()], pa.string()),
            "agreeing": pa.array(agreeing[order]),
            "answered": pa.array(answered[order]),
            "probability": pa.array(probability[order].round(4)),
            "apart": pa.array((top < answered / 2)[order]),
        }
    )


def _votes(said: pa.Table) -> tuple[Any, Any, dict[tuple[int, int], str], _Votes]:
    """Ids and tasks of questions by id, (row, code) → answer, and the matrix of answers."""
    rows = said.sort_by([("query_id", "ascending"), ("model_id", "ascending")])
    ids, first, q = np.unique(
        rows.column("query_id").to_numpy(), return_index=True, return_inverse=True
    )
    model_ids, m = np.unique(rows.column("model_id").to_numpy(), return_inverse=True)
    right = rows.column("right").to_numpy()
    words = np.where(right, "", rows.column("answer").to_numpy()).astype(str)
    pairs, each, count = np.unique(
        np.rec.fromarrays([q, words]), return_inverse=True, return_counts=True
    )
    # Codes within a question: the reference 0, others from 1 by falling frequency.
    of, word = pairs["f0"], pairs["f1"]
    order = np.lexsort((word, -count, word != "", of))
    start = np.searchsorted(of[order], np.arange(len(ids)))
    code = np.empty(len(pairs), np.int64)
    code[order] = np.arange(len(pairs)) - start[of[order]]
    has_key = np.zeros(len(ids), bool)
    has_key[of[word == ""]] = True
    code += ~has_key[of]
    answers = np.full((len(ids), len(model_ids)), -1, np.int16)
    answers[q, m] = code[each]
    distinct = answers.max(axis=1, initial=0)
    options = rows.column("options").to_numpy()[first]
    options = np.maximum(np.where(options > 1, options, _OPEN), distinct + 2 - (options > 1))
    names = {(int(a), int(b)): str(c) for a, b, c in zip(of, code, word, strict=True)}
    votes = _Votes(answers, np.maximum(options, 2), np.ones(len(model_ids)))
    return ids, rows.column("task").to_numpy()[first], names, votes


def _take(votes: _Votes, at: Any) -> _Votes:
    return _Votes(votes.answers[at], votes.options[at], votes.weight)


def _fit(votes: _Votes) -> _Parameters:
    """Skills, spread, concentration and share of wrong references by alternating maximisation."""
    from scipy.special import expit

    result = _Parameters(_logit((votes.answers == 0).sum(axis=0), (votes.answers >= 0).sum(axis=0)))
    for _ in range(5):
        tried = [
            _Parameters(result.skill, float(spread), float(alpha), result.wrong)
            for spread in result.spread * np.array([0.8, 1.0, 1.25])
            for alpha in result.alpha * np.array([0.7, 1.0, 1.4])
        ]
        result = max(tried, key=lambda item: _posterior(votes, item)[1])
        truth, _ = _posterior(votes, result)
        doubted = float((1 - truth[:, 0]).sum()) + _PRIOR * _USUAL
        result.wrong = min(doubted / (len(truth) + _PRIOR), 0.3)
        seen = votes.answers >= 0
        code = np.clip(votes.answers, 0, _OTHERS)
        hit = np.take_along_axis(truth, code, axis=1) * (seen & (votes.answers <= _OTHERS))
        share = np.clip(hit.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), 0.01, 0.99)
        # The skill whose mean over difficulties is that share, by bisection.
        low, high = np.full(len(share), -12.0), np.full(len(share), 24.0)
        for _ in range(40):
            middle = (low + high) / 2
            mean = expit(middle[:, None] - result.spread * _GRID) @ np.exp(_MASS)
            low, high = np.where(mean < share, middle, low), np.where(mean < share, high, middle)
        result.skill = (low + high) / 2
    return result


def _posterior(votes: _Votes, parameters: _Parameters) -> tuple[Any, float]:
    """P(truth = code) [q, codes + 1 for an answer that nobody gave], and the log-likelihood."""
    from scipy.special import expit, gammaln, logsumexp

    answers, weight, alpha = votes.answers, votes.weight, parameters.alpha
    chance = np.clip(expit(parameters.skill[:, None] - parameters.spread * _GRID), 1e-6, 1 - 1e-6)
    right, wrong = np.log(chance) * weight[:, None], np.log1p(-chance) * weight[:, None]
    seen = (answers >= 0).astype(float)
    codes = range(max(int(answers.max(initial=0)) + 1, _OTHERS + 1))
    tables = np.stack([((answers == code) * weight).sum(axis=1) for code in codes], axis=1)
    spread = gammaln(alpha + tables) - gammaln(alpha)
    every, total, others = spread.sum(axis=1), tables.sum(axis=1), votes.options - 1
    # The last: an answer that nobody gave.
    chosen = np.column_stack([tables[:, : _OTHERS + 1], np.zeros(len(answers))])
    of_chosen = np.column_stack([spread[:, : _OTHERS + 1], np.zeros(len(answers))])
    likely = np.full((len(answers), _OTHERS + 2), -np.inf)
    for code in range(_OTHERS + 2):
        hit = ((answers == code) & (code <= _OTHERS)).astype(float)
        fits = logsumexp(hit @ right + (seen - hit) @ wrong + _MASS, axis=1)
        # Wrong answers over the other options.
        left = total - chosen[:, code]
        of_wrong = every - of_chosen[:, code]
        of_wrong = of_wrong + gammaln(alpha * others) - gammaln(alpha * others + left)
        known = (code in (0, _OTHERS + 1)) | (chosen[:, code] > 0)
        likely[:, code] = np.where(known, fits + of_wrong, -np.inf)
    given_others = (tables[:, 1:] > 0).sum(axis=1)
    unsaid = np.maximum(votes.options - 1 - given_others, 0)
    with np.errstate(divide="ignore"):
        likely[:, 0] += np.log1p(-np.asarray(parameters.wrong))
        likely[:, 1:] += np.log(np.asarray(parameters.wrong) / others)[..., None]
        likely[:, -1] += np.log(unsaid)
    total_of = logsumexp(likely, axis=1)
    return np.exp(likely - total_of[:, None]), float(total_of.sum())


def _discount(answers: Any) -> Any:
    """Weight of each model, mean 1: less, the more of its wrong answers it shares with another.

    Shared: Jaccard similarity of their wrong answers, in excess of the median pair's. Copies of
    one model have the weight of one together.
    """
    m = answers.shape[1]
    same = np.zeros((m, m))
    for code in range(1, int(answers.max(initial=0)) + 1):
        said = (answers == code).astype(float)
        same += said.T @ said
    own = np.diag(same)
    union = own[:, None] + own[None, :] - same
    like = np.divide(same, union, out=np.zeros_like(same), where=union > 0)
    np.fill_diagonal(like, np.nan)
    if m < 3:
        return np.ones(m)
    usual = float(np.nanmedian(like))
    excess = np.nan_to_num(np.clip((like - usual) / max(1 - usual, 1e-9), 0, None))
    weight = 1 / (1 + excess.sum(axis=1))
    copies = 1 + (np.nan_to_num(like) >= _COPY).sum(axis=1)
    return weight / weight.mean() / copies


def _shares(tasks: Any, of_key: Any, enough: Any, common: float) -> Any:
    """Share of wrong references of each question's task, drawn to the common one."""
    _, task = np.unique(tasks, return_inverse=True)
    counted = np.bincount(task, weights=enough.astype(float))
    wrong = np.bincount(task, weights=np.where(enough, 1 - of_key, 0.0))
    share = np.clip((wrong + _PRIOR * common) / (counted + _PRIOR), 1e-4, 0.3)
    return share[task]


def _logit(hits: Any, of: Any) -> Any:
    share = (hits + 0.5) / (of + 1)
    return np.log(share / (1 - share))


# The review queue: doubtful labels, most consequential first; decisions become verdicts.

#: What a person may write; `cannot_tell` files an abstention.
DECISIONS = {"correct": "correct", "incorrect": "incorrect", "cannot_tell": "abstain"}
#: Columns of the exported file; only `decision` and `note` are read back.
COLUMNS = (
    "query_id", "model_id", "sample", "task", "why", "label", "order_changes", "closeness",
    "question", "references", "output", "span", "readings", "reasons", "decision", "note",
)  # fmt: skip
#: Of a longer answer the beginning, what was read and the end are shown, so many characters in all.
_REVIEW_SHOWN = 20_000
_WANTED = pa.schema({"place": pa.int64(), "query_id": pa.string(), "model_id": pa.string()})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def review_queue(
    queries: pa.Table,
    responses: pa.Table,
    verdicts: pa.Table,
    labels: pa.Table,
    suspects: pa.Table | None = None,
    *,
    limit: int = 200,
) -> list[dict[str, Any]]:
    """Labels worth a person's time, ordered by what flipping them does to the ranking.

    Doubtful are contested and undecided labels, and labels of questions whose
    reference is suspect; those a person has decided are done. `order_changes`
    counts the pairs of models whose order by number of correct answers changes when
    this label flips (a tie gained or lost counts ½; for a suspect reference all its
    labels flip together). `closeness` breaks ties: for each other model, how near its
    accuracy is, 1 / (1 + gap in correct answers), summed.

    Returns:
        At most `limit` rows with the columns of `COLUMNS`, one per response.
    """
    asked = queries.select(["query_id", "task"])
    known = verdicts.select(["query_id", "model_id", "scorer"])
    doubtful = answer(
        "doubtful", labels=labels, queries=asked, verdicts=known, suspects=query_ids(suspects)
    )
    rows: list[dict[str, Any]] = doubtful.to_pylist()
    right = answer("right_answers", labels=labels)
    at = {name: place for place, name in enumerate(right.column("model_id").to_pylist())}
    counts = right.column("n").to_numpy()
    gaps = np.abs(counts[:, None] - counts[None, :])
    closeness = (1 / (1 + gaps)).sum(axis=1) - 1
    flips: dict[Any, dict[int, int]] = defaultdict(dict)
    for row in rows:
        whole = row["why"] == "suspect reference"
        row["together"] = row["query_id"] if whole else (row["query_id"], row["model_id"])
        # an undecided label can only become right: unchanged it adds nothing
        flips[row["together"]][at[row["model_id"]]] = -1 if row["correct"] else 1
    for row in rows:
        row["order_changes"] = _order_changes(counts, flips[row["together"]])
        row["closeness"] = round(float(closeness[at[row["model_id"]]]), 6)
    rows.sort(key=lambda r: (-r["order_changes"], -r["closeness"], r["query_id"], r["model_id"]))
    return _with_texts(rows[:limit], queries, responses, newest(verdicts))


def _order_changes(counts: Any, moved: Mapping[int, int]) -> float:
    after = counts.copy()
    for place, step in moved.items():
        after[place] += step
    touched = sorted(moved)
    before = np.sign(counts[touched, None] - counts[None, :])
    now = np.sign(after[touched, None] - after[None, :])
    changed = np.abs(now - before) / 2
    # pairs among the touched models are in two rows
    inside = changed[:, touched].sum() / 2
    return float(changed.sum() - inside)


def _with_texts(
    rows: list[dict[str, Any]], queries: pa.Table, responses: pa.Table, current: pa.Table
) -> list[dict[str, Any]]:
    texts = answer(
        "queue_texts",
        wanted=pa.table(
            [range(len(rows)), *([row[name] for row in rows] for name in _WANTED.names[1:])],
            schema=_WANTED,
        ),
        queries=queries.select(["query_id", "prompt", "references", "scorer"]),
        responses=responses.select(["query_id", "model_id", "sample", "text", "status"]),
        verdicts=current,
    )
    full = []
    for text in texts.to_pylist():
        text["output"], text["span"] = _review_shown(text["output"] or "", text["span"] or "")
        item = {**rows[text["place"]], **text, "decision": "", "note": ""}
        full.append({name: "" if item[name] is None else item[name] for name in COLUMNS})
    return full


def _review_shown(text: str, span: str) -> tuple[str, str]:
    """A long answer cut to its beginning, what was read and its end; the span moves along.

    Answers are at the end, and the span that was read must be visible.
    """
    if len(text) <= _REVIEW_SHOWN:
        return text, span
    start, end = map(int, span.split("-")) if span else (0, 0)
    part = _REVIEW_SHOWN // 4
    around = (start - part // 2, min(end, start + part) + part // 2)
    mask = np.zeros(len(text), bool)
    for first, last in ((0, part), around, (len(text) - part, len(text))):
        mask[max(0, first) : last] = True
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    out, moved, before = "", "", 0
    for first, last in edges.reshape(-1, 2).tolist():
        if out:
            out += f"\n[… {first - before:,} characters …]\n"
        if span and first <= start < last:
            shift = len(out) - first
            moved = f"{start + shift}-{min(end, last) + shift}"
        out += text[first:last]
        before = last
    return out, moved


def to_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """The queue as CSV; fill in `decision` with correct, incorrect or cannot_tell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: spreadsheet(row[name]) for name in COLUMNS})
    return out.getvalue()


def from_csv(text: str, *, by: str, at: str) -> pa.Table:
    """Verdicts of `human:<by>` from an exported file whose `decision` is filled in.

    Args:
        at: When it was decided, ISO 8601 UTC; a later decision of the same person
            on the same response counts instead of an earlier one.

    Raises:
        BadInput: columns are missing, or a decision is not one of the three words.
    """
    csv.field_size_limit(10_000_000)
    reader = csv.DictReader(io.StringIO(text))
    needed = {"query_id", "model_id", "sample", "decision"}
    if missing := sorted(needed - set(reader.fieldnames or ())):
        raise BadInput(
            f"the file lacks the column(s) {', '.join(missing)}",
            next_step="export it with `routeyard review NAME --csv FILE` and fill in `decision`",
        )
    rows = []
    try:
        for number, row in enumerate(reader, start=2):
            said = (row["decision"] or "").strip().lower().replace(" ", "_")
            if said:
                key = _key(row, f"line {number}")
                rows.append((key, said, row.get("note") or "", f"line {number}"))
    except csv.Error as error:
        raise BadInput(f"expected a CSV file: {error}", where=f"line {reader.line_num}") from error
    return decisions(rows, by=by, at=at)


def _key(row: Mapping[str, str | None], where: str) -> tuple[str, str, int]:
    try:
        # A row that ends early has null in its last cells.
        return str(row["query_id"]), unguarded(row["model_id"] or ""), int(row["sample"] or "")
    except ValueError as error:
        raise BadInput(
            f"expected a number in `sample`, found {row['sample']!r}", where=where
        ) from error


def decisions(
    rows: Iterable[tuple[tuple[str, str, int], str, str, str]], *, by: str, at: str
) -> pa.Table:
    """Verdicts of `human:<by>` from (response key, decision, note, where) rows.

    Raises:
        BadInput: a name that is not a plain word, or a decision that is not one of the three.
    """
    if not _NAME.fullmatch(by):
        raise BadInput(
            f"{by!r} cannot be a reviewer's name",
            next_step="use letters, digits, dots, dashes and underscores",
        )
    filed: dict[tuple[str, str, int], dict[str, Any]] = {}
    for key, said, note, where in rows:
        if said not in DECISIONS:
            raise BadInput(
                f"{said!r} is no decision",
                where=where,
                next_step=f"write one of {', '.join(DECISIONS)}",
            )
        reason = note or f"decided by {by}"
        filed[key] = verdict(key, f"human:{by}", at, DECISIONS[said], reason=reason, cost_usd=0.0)
    return verdict_table(filed.values())


# Labels that must not become a release: too many undecided, or grades that a rule contradicts.

#: Answers of one model on a task from which its shares are judged.
GATES_LEAST = 100
#: Share of undecided answers that stops a release when it is surely larger.
UNDECIDED = 0.1
#: Change of a model's accuracy that stops a release while nobody has said whose labels count.
MOVED = 0.05
#: Tasks whose agreement is listed, the least first.
_GATES_SHOWN = 5


@dataclass(frozen=True)
class LabelGates:
    """What stops a release, each with the way out; and what to report about the labels."""

    stops: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def label_gates(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, labels: pa.Table, policy: Label
) -> LabelGates:
    """Gates over the labels of a build, per task and model.

    * Undecided: the share of answers without a label has a one-sided 95 % lower bound
      (Clopper and Pearson 1934) above 10 %, on a task with at least 100 answers of the
      model. Calls without an answer, and answers that their source left ungraded, do not count.
    * Grades: a recording carries grades, no policy says whose labels count (`trust`), and the
      rule would move a model's accuracy on a task of at least 100 graded answers by at least
      5 points, with a paired 95 % interval that excludes 0.

    Args:
        queries, responses, verdicts, labels: contract form.
        policy: Label section of the recipe.
    """
    gates = LabelGates()
    asked = queries.select(["query_id", "task", "scorer", "references"])
    rows = answer(
        "undecided",
        queries=asked,
        labels=labels,
        responses=responses.select(["query_id", "model_id", "status"]),
        answerless=pa.table({"status": [*ANSWERLESS, "ungraded"]}),
    )
    _undecided(rows.to_pylist(), gates)
    if GIVEN in verdicts.column("scorer").unique().to_pylist():
        current = by_policy(newest(verdicts), queries, policy)
        _grades({"queries": asked, "verdicts": current}, policy, gates)
    return gates


def _undecided(rows: Sequence[dict[str, Any]], gates: LabelGates) -> None:
    open_ = [row for row in rows if row["undecided"]]
    if not open_:
        return
    from scipy.special import betaincinv  # `scipy.stats` takes a second to import

    for row in open_:
        n, k = row["answers"], row["undecided"]
        row["low"] = float(betaincinv(k, n - k + 1, 0.05))
    many = [row for row in open_ if row["answers"] >= GATES_LEAST and row["low"] > UNDECIDED]
    many.sort(key=lambda row: (row["task"], -row["share"], row["model_id"]))
    for task, of_task in groupby(many, key=itemgetter("task")):
        first, *others = of_task
        more = f"; and {len(others)} more of its models" if others else ""
        gates.stops.append(
            {
                "what": f"expected a label for nearly every answer of task {task!r}; of model "
                f"{first['model_id']!r} {first['undecided']:,} of {first['answers']:,} answers are "
                f"undecided ({first['share']:.1%}, at least {first['low']:.1%} with 95 % "
                f"confidence, most often by scorer {first['scorer']!r}){more}",
                "next_step": "choose another 'scorer' for its source; or name a verifier or judge "
                "under label.default.then; or count what cannot be read as wrong, which the card "
                f"says: label: {{tasks: {{{task!r}: {{unreadable: incorrect}}}}}}",
            }
        )
    worst = max(open_, key=lambda row: (row["share"], row["answers"], row["model_id"]))
    gates.notes.append(
        f"{sum(row['undecided'] for row in open_):,} of "
        f"{sum(row['answers'] for row in rows):,} answers are undecided, which leaves accuracies "
        f"between bounds; most of model {worst['model_id']!r} on task {worst['task']!r} "
        f"({worst['undecided']:,} of {worst['answers']:,}, {worst['share']:.1%})"
    )


def _grades(tables: Mapping[str, pa.Table], policy: Label, gates: LabelGates) -> None:
    agreed = []
    rows = answer("regraded", GATES_LEAST, MOVED, **tables).to_pylist()
    for total in (row for row in rows if row["model_id"] is None):
        task, scorer, of = total["task"], total["scorer"], policy.policy_of(total["task"])
        kappa = cohen_kappa(*(total[name] for name in ("both", "given", "rule", "none")))
        whose = "the grades" if trusts_grades(of) else "those of the rule"
        share = (total["both"] + total["none"]) / total["n"]
        agreed.append(
            (
                share,
                f"task {task!r}: grades of the recording and rule {scorer!r} agree on {share:.1%} "
                f"of {total['n']:,} answers (κ {'undefined' if kappa is None else f'{kappa:.2f}'});"
                f" the labels are {whose}",
            )
        )
        moved = [row for row in rows if row["task"] == task and row["model_id"] and row["moves"]]
        if moved and of.trust is None and trusts_grades(of):
            gates.stops.append(_contradiction(moved, tables))
    agreed.sort()
    gates.notes.extend(note for _, note in agreed[:_GATES_SHOWN])
    if len(agreed) > _GATES_SHOWN:
        gates.notes.append(
            f"grades and rules agree on at least {agreed[_GATES_SHOWN][0]:.1%} of the answers of "
            f"{len(agreed) - _GATES_SHOWN} more tasks"
        )


def _contradiction(
    moved: Sequence[dict[str, Any]], tables: Mapping[str, pa.Table]
) -> dict[str, str]:
    """What stops the release: the model that the rule would move most, with three examples."""
    worst, *others = moved
    task, scorer = worst["task"], worst["scorer"]
    examples = "; ".join(
        f"{row['query_id']}: read {row['extracted']!r} for {row['reference']!r}, "
        f"{row['regraded']} by rule, {row['given']} as graded"
        for row in answer("graded_examples", task, worst["model_id"], **tables).to_pylist()
    )
    more = f" and of {len(others)} more models" if others else ""
    return {
        "what": f"the recording's grades of task {task!r} and rule {scorer!r} contradict each "
        f"other: of model {worst['model_id']!r} {worst['graded_right']:.1%} are right as graded "
        f"and {worst['rule_right']:.1%} by the rule ({worst['change']:+.1%}, 95 % interval "
        f"{worst['low']:+.1%} to {worst['high']:+.1%}){more}: {examples}",
        "next_step": "look at the examples and write whose labels count: label: {tasks: "
        f"{{{task!r}: {{trust: given}}}}}} keeps the recording's, 'trust: rules' takes the rule's; "
        "or choose a 'scorer' that reads these answers",
    }


# What is wrong, or may be, with the labels of a benchmark.
#
# Every check is a query over verdicts and labels; what it finds is a list of
# findings with the rows behind them. Nothing is changed: a finding is for a person.

#: Answers of a model below which no share is judged.
AUDIT_LEAST = 20
_WRONG_KEY = (
    "{agreeing} of {answered} models say {consensus!r}, the reference {references!r}: wrong with "
    "probability {probability:.2f}"
)
#: Kind of a finding → the table whose rows it is about, the column that names what, and what it
#: says of a row.
_SAYS = {
    "unreadable_model": (
        "abstentions", "model_id", "{share:.1%} of its {answers:,} answers could not be read",
    ),
    "conflicting_run": (
        "conflicts", "model_id", "{share:.1%} of its answers commit to several different answers "
        "(median model {median_share:.1%}): neither the first nor the last can be trusted",
    ),
    "constant_fill_in": (
        "fill_ins", "model_id", "where its text holds no answer ({unreadable:,} times) stored "
        "labels are right {right_at_fill_in:.0%} of the time when the reference is {fill_in!r}, "
        "{right_elsewhere:.0%} otherwise: a constant was filled in",
    ),
    "suspect_gold": ("suspect_gold", "query_id", _WRONG_KEY),
    "doubtful_question": (
        "suspect_gold", "query_id", _WRONG_KEY + "; no answer has half of the models, so the "
        "question may be at fault",
    ),
    "stored_labels_differ": (
        "stored_accuracy", "model_id", "{differ:,} of {answers:,} stored labels differ from the "
        "regrade: {stored:.1%} as stored, {regraded:.1%} regraded ({read_right:,} read as right "
        "and stored as wrong, {read_wrong:,} the reverse)",
    ),
    "duplicate_conflict": (
        "duplicate_conflicts", "group_id", "{questions} near-duplicates with {conflict}",
    ),
}  # fmt: skip
#: Which rows of the table are findings, where not all are.
_DOUBTFUL: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "unreadable_model": lambda row: row["answers"] >= AUDIT_LEAST and row["share"] >= 0.5,
    # Often in itself, and beside the other models.
    "conflicting_run": lambda row: (
        row["answers"] >= AUDIT_LEAST and row["share"] >= max(0.05, 4 * row["median_share"])
    ),
    "suspect_gold": lambda row: not row["apart"],
    "doubtful_question": lambda row: row["apart"],
    "stored_labels_differ": lambda row: row["differ"] > 0,
}


@dataclass(frozen=True, slots=True)
class LabelDoubt:
    """One thing to look at: `kind` for machines, `says` for people; `probability` that it is
    so, where one can be computed."""

    kind: str
    about: str
    says: str
    probability: float | None = None


@dataclass(frozen=True)
class Audit:
    """Findings, and the tables they rest on (each sorted; empty when nothing was found)."""

    findings: list[LabelDoubt]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)


def audit(
    queries: pa.Table,
    responses: pa.Table,
    verdicts: pa.Table,
    labels: pa.Table,
    duplicates: pa.Table | None = None,
    *,
    policy: Label | None = None,
) -> Audit:
    """Look for labels that should not be trusted.

    Args:
        duplicates: Near-duplicate groups, where they were looked for.
        policy: The recipe's; its thresholds say which grades are right, here as in `aggregate`.

    Tables: `agreement` and `confusion` (task, scorer pairs), `abstentions`,
    `conflicts` (model_id), `suspect_gold`, `fill_ins`, `duplicate_conflicts`,
    `stored_labels` (a regrade differs), `stored_accuracy`, `accuracy` (with
    label-noise interval), and of the stored texts `texts` (those that are no answers, by kind),
    `readable` (accuracy without them) and `both_ways`.
    """
    import duckdb

    current = newest(verdicts)
    if policy is not None:
        current = by_policy(current, queries, policy)
    with duckdb.connect() as connection:
        for name, table in (("queries", queries), ("verdicts", current), ("labels", labels)):
            connection.register(name, table)
        columns = ["query_id", "model_id", "sample", "graded_against"]
        connection.register("responses", responses.select(columns))

        def ask(name: str, *values: object) -> pa.Table:
            return connection.sql(question(name), params=list(values)).to_arrow_table()

        connection.register("confusion", confusion := ask("confusion"))
        tables = {
            "confusion": confusion,
            "abstentions": ask("abstentions"),
            "conflicts": ask("conflicts"),
            "fill_ins": _beyond_chance(ask("fill_ins", AUDIT_LEAST)),
            "stored_labels": ask("stored"),
            "stored_accuracy": ask("stored_accuracy"),
        }
        connection.register("said", said := ask("said"))
        connection.register("wrong", wrong_keys(said))
        tables["suspect_gold"] = ask("suspect")
        connection.register("texts", responses.select(["query_id", "model_id", "sample", "text"]))
        behind, doubts = look(connection)
        tables |= behind
        if duplicates is not None:
            connection.register("duplicates", duplicates)
            tables["duplicate_conflicts"] = ask("duplicates")
        tables["agreement"] = _agreement(ask("agreement"))
    tables["accuracy"] = intervals(labels, tables["suspect_gold"])
    return Audit(_audit_findings(tables) + [LabelDoubt(*doubt) for doubt in doubts], tables)


_AGREEMENT = pa.schema(
    [
        *((name, pa.string()) for name in ("task", "scorer_a", "scorer_b")),
        ("n", pa.int64()),
        *((name, pa.float64()) for name in ("agree", "kappa", "alpha_all")),
    ]
)


def _agreement(pairs: pa.Table) -> pa.Table:
    """Cohen's κ per task and pair of scorers, from how often both, one or neither say right."""
    rows = pairs.to_pylist()
    for row in rows:
        cells = [row[name] for name in ("both", "first", "second", "none")]
        row |= {"n": sum(cells), "agree": (cells[0] + cells[3]) / sum(cells)}
        row["kappa"] = cohen_kappa(*cells)
    return pa.Table.from_pylist(rows, schema=_AGREEMENT)


def _beyond_chance(fill_ins: pa.Table, level: float = 0.001) -> pa.Table:
    """Fill-ins that chance does not explain: the right labels among the unreadable answers
    fall on one letter's questions more often than a random draw of as many would
    (hypergeometric upper tail, times the letters that were tried).
    """
    from scipy.stats import hypergeom

    chance = []
    for row in fill_ins.to_pylist():
        right = round(row["right_at_fill_in"] * row["at_fill_in"])
        tail = hypergeom.sf(right - 1, row["unreadable"], row["right_in_all"], row["at_fill_in"])
        chance.append(min(1.0, float(tail) * row["letters"]))
    tested = fill_ins.drop_columns(["letters"]).append_column(
        "p_adjusted", pa.array(chance, pa.float64())
    )
    return tested.filter(pa.array([p < level for p in chance], pa.bool_()))


def _audit_findings(tables: Mapping[str, pa.Table]) -> list[LabelDoubt]:
    return [
        LabelDoubt(kind, row[about], says.format(**_audit_shown(row)), row.get("probability"))
        for kind, (table, about, says) in _SAYS.items()
        if table in tables
        for row in tables[table].to_pylist()
        if kind not in _DOUBTFUL or _DOUBTFUL[kind](row)
    ]


def _audit_shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """The values as a sentence has them: lists joined, and texts cut."""
    texts = {name: "; ".join(v) if isinstance(v, list) else v for name, v in row.items()}
    return {name: text[:60] if isinstance(text, str) else text for name, text in texts.items()}
