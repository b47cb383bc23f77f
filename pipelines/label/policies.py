"""Labels of verdicts: a policy's steps, escalation, votes and people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.collect.ledger import Attempt
from routeyard.pipelines.collect.prompts import PromptResults
from routeyard.pipelines.collect.request import Request
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.schemas import LABELS, VERDICTS
from routeyard.schemas.contracts import statements
from routeyard.schemas.recipe import Label, Policy
from routeyard.schemas.statuses import ANSWERLESS, GIVEN, NO_CREDIT, NO_RULE, STATUSES

# Questions that the audit asks of verdicts and labels, by name; `questions.sql` holds them.

_SQL = statements(Path(__file__).with_name("questions.sql"))


def question(name: str, by: str = "") -> str:
    """The SQL of that name; the parts `{same}`, `{rules}` and `{graded}` and the column `{by}` in
    it are filled in."""
    parts = {"by": by}
    for part in ("same", "rules", "graded"):
        parts[part] = _SQL[part].format(**parts)
    return _SQL[name].format(**parts)


def query_ids(suspects: pa.Table | None) -> pa.Table:
    """Ids of questions whose reference is in doubt; nobody looked for them: none."""
    known = pa.schema([("query_id", pa.string())]).empty_table()
    return known if suspects is None else suspects.select(["query_id"])


def answer(name: str, *values: object, by: str = "", **tables: pa.Table) -> pa.Table:
    """The answer to a question about tables, which it calls by these names.

    Args:
        values: Of the places (`?`) in the question.
    """
    import duckdb

    with duckdb.connect(config={"threads": 1}) as connection:
        for table, rows in tables.items():
            connection.register(table, rows)
        return connection.sql(question(name, by), params=list(values)).to_arrow_table()


# Truth behind several fallible verdicts, each weighed by its estimated errors.

#: Steps of the algorithm, and the change of a probability at which it ends.
_STEPS, _ENOUGH = 200, 1e-9

#: Verdicts (abstain, correct, incorrect) on right and on wrong answers, counted before any is seen:
#: a scorer is better than chance until its verdicts say otherwise.
_PRIOR = (np.array([1, 3, 1]), np.array([1, 1, 3]))


def dawid_skene(verdicts: Any) -> Any:
    """Probability that each answer is right, by EM over the verdicts of several scorers.

    Dawid and Skene 1979: each scorer has a probability of each verdict on right and on wrong
    answers (an abstention is a verdict too: it may say more about one of them). It starts from the
    share of `correct` among the verdicts that decide; `_PRIOR` is added to the counts. Rows with
    equal verdicts are counted together, so the order of rows changes nothing.

    Args:
        verdicts: int (scorers, answers); 0 abstain, 1 correct, 2 incorrect.

    Returns:
        float64 (answers,), in [0, 1].
    """
    patterns, back, counts = np.unique(
        np.asarray(verdicts).T, axis=0, return_inverse=True, return_counts=True
    )
    said = patterns[:, :, None] == np.arange(3)  # (patterns, scorers, verdicts)
    yes, no = said[:, :, 1].sum(axis=1), said[:, :, 2].sum(axis=1)
    right = np.where(yes + no > 0, yes / np.maximum(yes + no, 1), 0.5)
    for _ in range(_STEPS):
        logs = []
        for chance, prior in zip((right, 1 - right), _PRIOR, strict=True):
            weight = chance * counts
            of_verdict = np.einsum("p,psv->sv", weight, said) + prior
            of_verdict /= of_verdict.sum(axis=1, keepdims=True)
            logs.append(
                np.log((weight.sum() + 1) / (counts.sum() + 2))
                + np.einsum("psv,sv->p", said, np.log(of_verdict))
            )
        before, right = right, 1 / (1 + np.exp(np.clip(logs[1] - logs[0], -700, 700)))
        if np.abs(right - before).max(initial=0.0) < _ENOUGH:
            break
    return right[back.ravel()]


# Verdicts laid out as a matrix: one row per response, one column per scorer.

#: Codes of `VerdictMatrix.outcome`; MISSING: no verdict was filed.
MISSING, CORRECT, INCORRECT, ABSTAIN, ERROR = range(5)
#: (query_id, model_id, sample): one response.
ResponseKey = tuple[str, str, int]
_OUTCOMES = pa.array(["correct", "incorrect", "abstain", "error"])


@dataclass(frozen=True)
class VerdictMatrix:
    """Current verdicts of every response that exists.

    Attributes:
        scorers: Scorer names, sorted; index into the first axis below.
        outcome: int8 (scorers + 1, responses), codes above; MISSING in the last row, which is of
            any scorer that is not among them.
        score: float64 (scorers + 1, responses), NaN where missing.
        conflict: bool (responses,), some current reading found several answers.
        pair: int64 (responses,), index into `query`, `query_ids` and `model_ids`.
        sample: int64 (responses,).
        status: int64 (responses,), index into `STATUSES`.
        query: int64 (pairs,), row of the `queries` table.
        model: int64 (pairs,), index of the model by name.
        query_ids, model_ids: Arrow (pairs,), sorted by both; every pair that has
            a response row, usable or not.
    """

    scorers: list[str]
    outcome: np.ndarray[Any, np.dtype[np.int8]]
    score: np.ndarray[Any, np.dtype[np.float64]]
    conflict: np.ndarray[Any, np.dtype[np.bool_]]
    pair: np.ndarray[Any, np.dtype[np.int64]]
    sample: np.ndarray[Any, np.dtype[np.int64]]
    status: np.ndarray[Any, np.dtype[np.int64]]
    model: np.ndarray[Any, np.dtype[np.int64]]
    query: np.ndarray[Any, np.dtype[np.int64]]
    query_ids: pa.Array
    model_ids: pa.Array


def lay_out(queries: pa.Table, responses: pa.Table, verdicts: pa.Table) -> VerdictMatrix:
    """Join verdicts to responses.

    Of several versions of one scorer the newest counts, by natural order of the
    version text. Verdicts of responses that are not there are left out, and so
    are verdicts of `error` responses: nothing was answered, so nothing was read.
    """
    query_ids = pc.unique(responses.column("query_id")).sort()
    model_ids = pc.unique(responses.column("model_id")).sort()
    samples = _ints(responses.column("sample"))
    width = int(max(samples.max(initial=0), _ints(verdicts.column("sample")).max(initial=0))) + 1
    models = max(len(model_ids), 1)

    pairs = _codes(responses, query_ids) * models + _codes(responses, model_ids, "model_id")
    unique, pair = np.unique(pairs, return_inverse=True)
    status = _codes(responses, pa.array(STATUSES), "status")
    exists = ~np.isin(status, [STATUSES.index(name) for name in ANSWERLESS])
    keys = (pairs * width + samples)[exists]
    order = np.argsort(keys, kind="stable")
    keys, pair = keys[order], pair[exists][order]

    names, outcome, score, conflict = _fill(verdicts, query_ids, model_ids, models, width, keys)
    rows = pc.index_in(query_ids, value_set=queries.column("query_id").combine_chunks())
    return VerdictMatrix(
        scorers=names,
        outcome=outcome,
        score=score,
        conflict=conflict,
        pair=pair,
        sample=keys % width,
        status=status[exists][order],
        model=unique % models,
        query=_ints(rows)[unique // models],
        query_ids=query_ids.take(pa.array(unique // models)),
        model_ids=model_ids.take(pa.array(unique % models)),
    )


def _fill(
    verdicts: pa.Table, query_ids: pa.Array, model_ids: pa.Array, models: int, width: int, keys: Any
) -> tuple[list[str], Any, Any, Any]:
    scorers = verdicts.column("scorer")
    names = sorted(pc.unique(scorers).to_pylist())
    column = _codes(verdicts, pa.array(names, pa.string()), "scorer")
    query, model = _codes(verdicts, query_ids), _codes(verdicts, model_ids, "model_id")
    key = (query * models + model) * width + _ints(verdicts.column("sample"))
    at = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
    known = (query >= 0) & (model >= 0) & (len(keys) > 0)
    known[known] = keys[at[known]] == key[known]

    # Oldest first, so that the newest version is written last.
    order = np.argsort(_age(verdicts), kind="stable")
    order = order[known[order]]
    shape = (len(names) + 1, len(keys))
    outcome = np.zeros(shape, np.int8)
    score = np.full(shape, np.nan)
    torn = np.zeros(shape, bool)
    where = (column[order], at[order])
    outcome[where] = _codes(verdicts, _OUTCOMES, "outcome")[order] + 1
    score[where] = verdicts.column("score").to_numpy()[order]
    torn[where] = np.asarray(verdicts.column("conflict"))[order]
    return names, outcome, score, torn.any(axis=0)


def keys(table: pa.Table) -> list[ResponseKey]:
    """(query_id, model_id, sample) of each row."""
    columns = (table.column(name).to_pylist() for name in ("query_id", "model_id", "sample"))
    return list(zip(*columns, strict=True))


def with_text(responses: pa.Table) -> pa.Table:
    """The responses that can be judged: somebody answered, and the text is there."""
    answerless = pc.is_in(responses.column("status"), value_set=pa.array(ANSWERLESS))
    return responses.filter(pc.and_not(pc.is_valid(responses.column("text")), answerless))


def newest(verdicts: pa.Table) -> pa.Table:
    """The newest version of each scorer's verdict on each response; order is kept."""
    return _last(verdicts, ["query_id", "model_id", "sample", "scorer"], _age(verdicts))


def add(verdicts: pa.Table, more: pa.Table) -> pa.Table:
    """Both, where a verdict under the same key is replaced by the later one.

    Only an `error` is ever replaced that way: a scorer's decision has its version
    in the key, and its ledger answers the same again.
    """
    if not more.num_rows:
        return verdicts
    return VERDICTS.check(_last(pa.concat_tables([verdicts, more]), list(VERDICTS.key), 0))


def _last(table: pa.Table, key: list[str], age: Any) -> pa.Table:
    """Of rows with one key the one of the highest age, the last of several; order is kept."""
    n = table.num_rows
    ranked = table.select(key).append_column("rank", pa.array(age * n + np.arange(n)))
    best = ranked.group_by(key).aggregate([("rank", "max")]).column("rank_max").to_numpy()
    return table.take(pa.array(np.sort(best % max(n, 1))))


def natural(version: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which `1.10` is newer than `1.9`."""
    return tuple(
        (1, int(part[:18]), part) if part.isdigit() and part.isascii() else (0, 0, part)
        for part in re.split(r"([0-9]+)", version)
        if part
    )


def _age(verdicts: pa.Table) -> Any:
    versions = pc.unique(verdicts.column("scorer_version")).to_pylist()
    return _codes(verdicts, pa.array(sorted(versions, key=natural), pa.string()), "scorer_version")


def _codes(table: pa.Table, among: pa.Array, column: str = "query_id") -> Any:
    return _ints(pc.index_in(table.column(column), value_set=among))


def _ints(values: Any) -> Any:
    """int64 array, -1 where null."""
    filled = pc.fill_null(values.cast(pa.int64()), -1)
    return np.asarray(filled, dtype=np.int64)


#: Probability that a label of `dawid_skene` has to exceed: twice that of the other.
_SURE = 2 / 3
#: `decided_by` of a response that every scorer abstained on and whose status decides nothing.
UNREADABLE = "unreadable"


class PolicyDecisions:
    """What became of each response.

    score: float64, NaN while undecided. correct: bool. by: index into `names`,
    -1 while undecided. threshold: NaN where neither policy nor scorer sets one.
    contested: bool. wanted: rows on which a scorer is needed and has given no verdict.
    by_person: bool.
    """

    def __init__(self, n: int) -> None:
        self.score, self.threshold = np.full((2, n), np.nan)
        self.correct, self.contested, self.by_person = np.zeros((3, n), bool)
        self.by = np.full(n, -1, np.int64)
        self.names: list[str] = []
        self.wanted: dict[str, list[Any]] = {}

    def put(self, rows: Any, score: Any, correct: Any, by: str, threshold: float) -> None:
        if by not in self.names:
            self.names.append(by)
        self.score[rows] = score
        self.correct[rows] = correct
        self.by[rows] = self.names.index(by)
        self.threshold[rows] = threshold

    def want(self, name: str, rows: Any) -> None:
        if len(rows):
            self.wanted.setdefault(name, []).append(rows)


def apply_policy(
    matrix: VerdictMatrix,
    policy: Policy,
    scorer: str,
    rows: Any,
    decisions: PolicyDecisions,
    defined: Sequence[str] = (),
) -> None:
    """Decide `rows`, which share task policy and rule scorer.

    Args:
        defined: Verifiers and judges that the recipe names.
    """
    outcome, score = matrix.outcome[:, rows], matrix.score[:, rows]
    if policy.threshold is not None:
        reached = np.where(score >= policy.threshold, CORRECT, INCORRECT)
        outcome = np.where(_decides(outcome), reached, outcome).astype(np.int8)
    yes, no = (outcome == CORRECT).any(axis=0), (outcome == INCORRECT).any(axis=0)
    decisions.contested[rows] = (yes & no) | matrix.conflict[rows]

    names = _steps({*matrix.scorers, *defined}, policy, scorer)
    place = {name: at for at, name in enumerate(matrix.scorers)}
    steps = np.array([place.get(name, -1) for name in names], np.int64)
    if scorer != GIVEN and GIVEN in place:
        grade, unread = outcome[place[GIVEN]], outcome[place.get(scorer, -1)] == MISSING
        graded = grade != MISSING
        # A stored score without any text has only the score its source carries.
        settled = graded & unread & (scorer != NO_RULE)
        if trusts_grades(policy):
            # A model's grades are its labels; what its source left ungraded stays undecided.
            model = matrix.model[matrix.pair[rows]]
            settled = np.isin(model, model[graded])
        by_grade, limit = graded & settled, _limit(policy, GIVEN)
        right = grade[by_grade] == CORRECT
        decisions.put(rows[by_grade], score[place[GIVEN], by_grade], right, GIVEN, limit)
        outcome, score, rows = outcome[:, ~settled], score[:, ~settled], rows[~settled]
    if not names or not len(rows):
        return
    decide = _escalate if policy.rule == "escalate" else _vote
    unread = rows[decide(policy, scorer, names, outcome[steps], score[steps], rows, decisions)]
    _unreadable(policy, matrix.status[unread], unread, decisions)


def trusts_grades(policy: Policy) -> bool:
    """Whether a recording's own grades are the labels, whatever a rule reads.

    A policy that lists `given` among its steps has decided when they count.
    """
    return policy.trust != "rules" and GIVEN not in policy.then


def _steps(known: set[str], policy: Policy, scorer: str) -> list[str]:
    steps = [] if scorer == NO_RULE else [scorer]
    for name in policy.then:
        family = sorted(item for item in known if item.startswith(f"{name}:"))
        steps += [step for step in (family or [name]) if step not in steps]
    return steps


def _decides(outcome: Any) -> Any:
    return (outcome == CORRECT) | (outcome == INCORRECT)


def _failed(outcome: Any) -> Any:
    return (outcome == ERROR) | (outcome == MISSING)


def _escalate(
    policy: Policy,
    scorer: str,
    names: list[str],
    outcome: Any,
    score: Any,
    rows: Any,
    decisions: PolicyDecisions,
) -> Any:
    """Decide the rows that a step decides; which of them no scorer could read is returned."""
    on = policy.escalate_on or escalates_on(scorer)
    passing = (ABSTAIN, INCORRECT) if on == "not_correct" else (ABSTAIN,)
    here = np.ones(len(rows), bool)  # still going up
    held = here.copy()  # no step failed on the way
    last = np.full(len(rows), -1)  # the last step that said anything
    for at, name in enumerate(names):
        failed = here & _failed(outcome[at])
        decisions.want(name, rows[failed])
        held &= ~failed
        last[here & _decides(outcome[at])] = at
        here &= np.isin(outcome[at], passing)
    for at, name in enumerate(names):
        decided, limit = held & (last == at), _limit(policy, name)
        right = outcome[at, decided] == CORRECT
        decisions.put(rows[decided], score[at, decided], right, name, limit)
    return held & (last == -1)


def escalates_on(scorer: str) -> str:
    return SCORERS.get(scorer).escalate_on if scorer in SCORERS.targets else "abstain"


def _vote(
    policy: Policy,
    scorer: str,
    names: list[str],
    outcome: Any,
    score: Any,
    rows: Any,
    decisions: PolicyDecisions,
) -> Any:
    """The same by votes: counted, or weighed by each scorer's estimated errors."""
    for name, said in zip(names, outcome, strict=True):
        decisions.want(name, rows[_failed(said)])
    complete = ~_failed(outcome).any(axis=0)
    yes, no = (outcome == CORRECT).sum(axis=0), (outcome == INCORRECT).sum(axis=0)
    read = complete & (yes + no > 0)
    by = names[0] if len(names) == 1 and policy.rule != "dawid_skene" else policy.rule
    if policy.rule == "dawid_skene":
        chance = np.full(len(rows), 0.5)
        chance[complete] = dawid_skene(np.where(_decides(outcome), outcome, 0)[:, complete])
        settled = read & (np.abs(chance - 0.5) > _SURE - 0.5)
        right = chance > 0.5
        mean = right.astype(float)
    else:
        settled = read & (yes != no)
        if policy.rule == "unanimous":
            settled &= (yes == 0) | (no == 0)
        right = yes > no
        won = outcome == np.where(right, CORRECT, INCORRECT)
        mean = np.where(won, score, 0.0).sum(axis=0) / np.maximum(won.sum(axis=0), 1)
    decisions.put(rows[settled], mean[settled], right[settled], by, _limit(policy, names[0]))
    return complete & ~read


def _unreadable(policy: Policy, status: Any, rows: Any, decisions: PolicyDecisions) -> None:
    """Label answers that every scorer abstained on: by their status, else as the policy says."""
    limit, wrong = _limit(policy, UNREADABLE), policy.unreadable == "incorrect"
    for code in np.unique(status).tolist():
        name = STATUSES[code] if STATUSES[code] in NO_CREDIT and not wrong else UNREADABLE
        score = np.nan if name == UNREADABLE and not wrong else 0.0
        decisions.put(rows[status == code], score, False, name, limit)


def apply_people(matrix: VerdictMatrix, decisions: PolicyDecisions) -> None:
    """People decide over everyone; when they are split, the label is undecided."""
    people = [at for at, name in enumerate(matrix.scorers) if name.startswith("human:")]
    yes = (matrix.outcome[people] == CORRECT).sum(axis=0)
    no = (matrix.outcome[people] == INCORRECT).sum(axis=0)
    decisions.by_person = yes + no > 0
    decisions.contested |= (yes > 0) & (no > 0)
    split = decisions.by_person & (yes == no)
    decisions.score[split], decisions.by[split], decisions.correct[split] = np.nan, -1, False
    for at in reversed(people):  # the first by name is who decided
        agrees = matrix.outcome[at] == np.where(yes > no, CORRECT, INCORRECT)
        rows = np.flatnonzero((yes != no) & agrees)
        right = (yes > no)[rows]
        decisions.put(rows, right.astype(float), right, matrix.scorers[at], np.nan)


def _limit(policy: Policy, scorer: str) -> float:
    if policy.threshold is not None:
        return policy.threshold
    own = SCORERS.get(scorer).threshold if scorer in SCORERS.targets else None
    return float("nan") if own is None else float(own)


# What verifiers and judges share: who is asked about what, and how a verdict is filed.


@dataclass(frozen=True, slots=True)
class AnswerToJudge:
    """One response and the question it answers."""

    key: ResponseKey
    question: str
    references: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class FiledVerdicts:
    """Verdicts of one verifier or judge; responses that were not asked about have none."""

    verdicts: pa.Table
    figures: Mapping[str, Any] = field(default_factory=dict)


def answers(
    queries: pa.Table, responses: pa.Table, only: Iterable[ResponseKey] | None = None
) -> Iterator[AnswerToJudge]:
    """Responses that hold a text, in table order, or in the order of `only`.

    Args:
        only: Responses to ask about; all of them by default.
    """
    if only is not None:
        place = {key: number for number, key in enumerate(only)}
        results = [entry for entry in answers(queries, responses) if entry.key in place]
        yield from sorted(results, key=lambda entry: place[entry.key])
        return
    asked = {
        row["query_id"]: row
        for row in queries.select(["query_id", "prompt", "references"]).to_pylist()
    }
    columns = ["query_id", "model_id", "sample", "text", "graded_against"]
    for batch in with_text(responses).select(columns).to_batches(max_chunksize=1000):
        for query_id, model_id, sample, text, own in zip(*batch.to_pydict().values(), strict=True):
            item = asked[query_id]
            references = tuple(item["references"] if own is None else own)
            yield AnswerToJudge((query_id, model_id, sample), item["prompt"], references, text)


def verdict(
    key: ResponseKey, scorer: str, version: str, outcome: str, **columns: Any
) -> dict[str, Any]:
    """One row of `verdicts`; the score of a right or wrong answer defaults to 1 or 0."""
    decided = outcome in ("correct", "incorrect")
    return {
        **dict(zip(VERDICTS.key, (*key, scorer, version), strict=True)),
        "outcome": outcome,
        "score": float(outcome == "correct") if decided else None,
        "conflict": False,
        **columns,
    }


def failure(attempt: Attempt) -> str:
    """Why an attempt without a usable reply is no verdict."""
    if attempt.status != "error":
        # Another purpose took it for a reply.
        return f"the reply is {attempt.status}, which is no verdict"
    return f"{attempt.error_class}: {attempt.error}"


class Costs:
    """Cost of each prompt, counted once: the first verdict that rests on it bears it."""

    def __init__(self) -> None:
        self._borne: set[str] = set()

    def of(self, attempt: Attempt) -> float | None:
        if attempt.request_hash in self._borne:
            return 0.0
        self._borne.add(attempt.request_hash)
        return attempt.cost_usd


def verdicts_from(
    asked: Iterable[tuple[AnswerToJudge, Request]],
    results: PromptResults,
    scorer: str,
    version: str,
    read: Callable[[AnswerToJudge, str], dict[str, Any]],
) -> list[dict[str, Any]]:
    """One row for each answer that was asked about; an attempt without a reply is an `error`.

    Args:
        read: (answer, reply) → `outcome` and other columns of the verdict.
    """
    rows, costs = [], Costs()
    for answer, request in asked:
        attempt = results.answers.get(request.request_hash)
        if attempt is None:
            continue
        if attempt.status != "ok" or attempt.text is None:
            about: dict[str, Any] = {
                "outcome": "error",
                "reason": failure(attempt),
                "cost_usd": attempt.cost_usd,
            }
        else:
            about = {"reason": attempt.text, "cost_usd": costs.of(attempt)}
            about |= read(answer, attempt.text)
        rows.append(verdict(answer.key, scorer, version, **about))
    return rows


def verdict_table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """VERDICTS table, sorted by key."""
    table = VERDICTS.from_rows(rows)
    return table.sort_by([(name, "ascending") for name in VERDICTS.key])


# Verdicts → labels, by the policy of each task.
#
# The rules, for one response:
#
# * Verdicts of `human:<name>` decide first, under every policy.
# * `escalate`: the query's rule scorer, then each of `then`. A step is passed when
#   it abstains, and under `not_correct` also when it says incorrect. The last
#   step that said correct or incorrect decides. Every abstention to the end makes
#   the response `unreadable`: null, or incorrect if the policy says so. Cut off, refused
#   and empty answers that nobody could read are incorrect, decided by their status.
# * Where a model's answers carry grades of their source, those are its labels (`trust:
#   given`) and the rule's verdicts a check; with `trust: rules` the rule decides.
# * `majority`: all of them vote, abstentions do not count; a tie stays undecided.
# * `unanimous`: all that do not abstain must agree, else the label stays
#   undecided and contested.
# * A step that errs, or whose verdict was never filed, leaves the response
#   undecided when the policy needs it. An outage is never a verdict.
#
# For several samples the label's score is the mean over the decided samples, and
# `correct` is that mean ≥ the task's threshold, else the deciding scorer's own.
# Where neither sets one the outcomes count, and not the scores beside them: the
# label is correct when more than half of the decided samples are. A mean of exactly
# one half counts so too: one right sample of two is no right answer. `contested`
# says that current verdicts on a sample disagree, or that a text commits to
# several answers, whatever the policy made of it.


def decide(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, *, policy: Label | None = None
) -> pa.Table:
    """Labels: one row for every pair that has a response row.

    A pair whose responses are all `error` gets a row with nulls and
    `n_samples` 0; a pair without any response gets none.

    Args:
        queries: QUERIES contract; `task` picks the policy, `scorer` the rule.
        responses: RESPONSES contract.
        verdicts: VERDICTS contract, all versions ever filed; the newest counts.
        policy: Label section of the recipe.

    Returns:
        LABELS contract, sorted by query_id, model_id.
    """
    rules = policy or Label()
    matrix = lay_out(queries, responses, _entering(verdicts, rules))
    return _labels(matrix, _apply_policies(queries, matrix, rules))


def open_steps(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, *, policy: Label | None = None
) -> dict[str, list[ResponseKey]]:
    """Scorer → (query_id, model_id, sample) that the policy still wants it to judge.

    Only steps that have come up are listed: while a rule decides, or has not been
    run yet, the verifier behind it is not asked. Steps that erred are listed
    again, so that the next run repairs an outage. What a person has decided is not
    asked again. Judges that decide nothing are wanted for every first answer.
    """
    rules = policy or Label()
    matrix = lay_out(queries, responses, _entering(verdicts, rules))
    decisions = _apply_policies(queries, matrix, rules)
    steps = {name: _without(name, responses, verdicts) for name in rules.opinions}
    for name, parts in sorted(decisions.wanted.items()):
        rows = np.sort(np.concatenate(parts))
        rows = rows[~decisions.by_person[rows]]
        pair = pa.array(matrix.pair[rows])
        ids = [matrix.query_ids.take(pair), matrix.model_ids.take(pair), matrix.sample[rows]]
        steps[name] = keys(pa.table(ids, names=["query_id", "model_id", "sample"]))
    return {name: wanted for name, wanted in steps.items() if wanted}


def _entering(verdicts: pa.Table, policy: Label) -> pa.Table:
    """The verdicts without those that are opinions alone."""
    if not policy.opinions:
        return verdicts
    opinions = pa.array(policy.opinions, pa.string())
    return verdicts.filter(pc.invert(pc.is_in(verdicts.column("scorer"), value_set=opinions)))


def _without(scorer: str, responses: pa.Table, verdicts: pa.Table) -> list[ResponseKey]:
    """First answers with a text on which a scorer has given no verdict but errors."""
    judged = verdicts.filter(
        pc.and_(pc.equal(verdicts["scorer"], scorer), pc.not_equal(verdicts["outcome"], "error"))
    )
    first = with_text(responses).filter(pc.field("sample") == 0)
    return sorted(set(keys(first)) - set(keys(judged)))


def _apply_policies(queries: pa.Table, matrix: VerdictMatrix, policy: Label) -> PolicyDecisions:
    kinds = list(zip(*queries.select(["task", "scorer"]).to_pydict().values(), strict=True))
    known = {kind: code for code, kind in enumerate(dict.fromkeys(kinds))}
    kind_of = np.array([known[kind] for kind in kinds], np.int64)[matrix.query][matrix.pair]
    decisions = PolicyDecisions(len(matrix.pair))
    defined = [f"xverify:{verifier.name}" for verifier in policy.verifiers]
    defined += [f"judge:{judge.name}" for judge in policy.judges]
    for (task, scorer), code in known.items():
        rows = np.flatnonzero(kind_of == code)
        apply_policy(matrix, policy.policy_of(task), scorer, rows, decisions, defined)
    apply_people(matrix, decisions)
    return decisions


def _labels(matrix: VerdictMatrix, decisions: PolicyDecisions) -> pa.Table:
    pairs = len(matrix.query_ids)
    decided = ~np.isnan(decisions.score)
    pair = matrix.pair[decided]
    entered = np.bincount(pair, minlength=pairs)
    total = np.bincount(pair, weights=decisions.score[decided], minlength=pairs)
    mean = np.divide(total, entered, out=np.full(pairs, np.nan), where=entered > 0)

    right = np.bincount(pair, weights=decisions.correct[decided], minlength=pairs)
    limits = np.full(pairs, -np.inf)
    np.maximum.at(limits, pair, np.nan_to_num(decisions.threshold[decided], nan=-np.inf))
    # One sample: its own outcome. Several: the mean against the threshold. Without one a score
    # need not say what is right (ReCoRD's is token F1 beside exact match): the outcomes do.
    by_outcome = (entered == 1) | np.isneginf(limits)
    most = 2 * right > entered
    halves = (mean == 0.5) & (limits == 0.5)
    correct = np.where(by_outcome | halves, most, mean >= limits)

    contested = np.zeros(pairs, bool)
    np.logical_or.at(contested, matrix.pair, decisions.contested)
    undecided = entered == 0
    return LABELS.check(
        pa.table(
            {
                "query_id": matrix.query_ids,
                "model_id": matrix.model_ids,
                "score": pa.array(mean, mask=undecided),
                "correct": pa.array(correct, mask=undecided),
                "decided_by": _deciders(matrix, decisions, pairs, undecided),
                "contested": contested,
                "n_samples": pa.array(entered, pa.int32()),
            }
        )
    )


def _deciders(
    matrix: VerdictMatrix, decisions: PolicyDecisions, pairs: int, undecided: Any
) -> pa.Array:
    """Who decided; several names, joined by `+`, when samples were decided by several."""
    # A decided pair lists who decided its decided samples; an undecided one may
    # still say that nothing could be read.
    named = (decisions.by >= 0) & (~np.isnan(decisions.score) | undecided[matrix.pair])
    order = sorted(range(len(decisions.names)), key=decisions.names.__getitem__)
    rank, n = np.argsort(np.array(order, np.int64)), max(len(order), 1)
    each = matrix.pair[named] * n + rank[decisions.by[named]]
    if not (np.diff(each) > 0).all():  # several samples of a pair: each name once
        each = np.unique(each)
    words = pa.array(sorted(decisions.names), pa.string()).take(pa.array(each % n))
    ends = pa.array(np.searchsorted(each, np.arange(pairs + 1) * n), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, words), "+")
    return pc.if_else(pc.equal(joined, ""), None, joined)
