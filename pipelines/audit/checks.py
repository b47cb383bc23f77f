"""The table of checks: kind, function, what it needs, how grave it is, and the key that mends it.

Checks that select rows are in `recording.sql`.

`score` checks are mended by making the scores of their rows unknown, `cost` checks by making the
costs unknown; the effect on the leaderboard is measured so.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.audit import errors, exchanges, rows
from routeyard.pipelines.audit.answers import (
    GAP,
    SHOWN,
    Answers,
    AuditCheck,
    AuditFinding,
    CellGrid,
    Floats,
    Found,
    Mask,
    Mends,
    grid_of,
    means,
    odd_cells,
    ranks,
)
from routeyard.pipelines.audit.errors import not_graded
from routeyard.pipelines.audit.exchanges import exchanged, in_blocks
from routeyard.pipelines.audit.rows import coverage
from routeyard.pipelines.common.pool import same_model
from routeyard.pipelines.common.sql import head_of, runner
from routeyard.schemas.contracts import statements

# Cells and suites that fit nothing: anomalies, exchanged arms, broken graders, solved suites.

#: Best accuracy on a suite, and median of the arms' own medians elsewhere, of a broken grader.
FAILED, GOOD = 0.25, 0.33
#: Robust standard deviations by which a suite is harder than all others, so that its being hard
#: does not explain it; a spread of suites below 0.4 on the logit scale counts as 0.4.
HARDER, LEAST = 4.5, 0.4
#: Arms from which their order says something, and rank correlation with the other suites.
ARMS, INVERTED = 6, -0.5
#: Rank correlation with one other suite from which the order of the arms is no chance.
ALIKE = 0.85
#: Arms below which a suite that all fail may be a hard one.
FEW = 4
_FAR = "standard deviations from what arm and suite explain"


def anomalies(answers: Answers) -> Iterator[Found]:
    """Cells that fit neither their arm nor their suite, unless two arms changed places there."""
    grid = answers.cached("grid", grid_of)
    swaps = answers.cached("swaps", exchanged)
    explained = {cell for a, b, s in swaps for cell in ((a, s), (b, s))}
    whole = answers.cached("broken", _broken)
    for a, s in odd_cells(grid):
        if (a, s) in explained or s in whole:
            continue
        z = grid.z[a, s]
        yield Found(
            f"{answers.arms[a]} on {answers.suites[s]}",
            f"{100 * grid.p[a, s]:.0f} % of {int(grid.n[a, s]):,} answers are right, where its "
            f"siblings have {100 * grid.low[a, s]:.0f} to {100 * grid.high[a, s]:.0f} %"
            + ("" if np.isnan(z) else f" ({abs(z):.1f} {_FAR})"),
            _rows(answers, a, s),
        )


def swapped_arms(answers: Answers) -> Iterator[Found]:
    """Suites, or stretches of a file without them, on which two arms' answers changed places."""
    answers = in_blocks(answers)
    for a, b, s in answers.cached("swaps", exchanged):
        first, second = _rows(answers, a, s), _rows(answers, b, s)
        yield Found(
            f"{answers.arms[a]} and {answers.arms[b]} on {answers.suites[s]}",
            "each one's figures there are what the other one's other suites let expect: "
            "their answers have changed places",
            np.concatenate([first, second]),
            swap=np.concatenate([np.full(len(first), b), np.full(len(second), a)]),
        )


def broken_graders(answers: Answers) -> Iterator[Found]:
    """Suites on which every arm fails that succeeds elsewhere, or whose order is turned round.

    Of two or three arms nobody can tell a broken grader from a hard suite: that is a note.
    """
    grid = answers.cached("grid", grid_of)
    for s, why in answers.cached("broken", _broken).items():
        few = int((~np.isnan(grid.p[:, s])).sum()) < FEW
        rows = np.flatnonzero(answers.suite == s)
        yield Found(answers.suites[s], why, rows, "note" if few else None)


def _broken(answers: Answers) -> dict[int, str]:
    """Suite → why its grader is broken."""
    grid = answers.cached("grid", grid_of)
    broken = {}
    for s in range(len(answers.suites) if answers.has("suite") else 0):
        here = ~np.isnan(grid.p[:, s]) & (np.delete(~np.isnan(grid.p), s, axis=1)).any(axis=1)
        if here.sum() < 2:
            continue
        why = _below_sibling(answers, grid, s, here) or _failed_or_turned(answers, grid, s, here)
        if why:
            broken[s] = why
    return broken


def _below_sibling(answers: Answers, grid: CellGrid, s: int, here: Mask) -> str:
    sibling = _sibling(answers.suites, s)
    if sibling is None or np.isnan(grid.p[here, sibling]).all():
        return ""
    p, other = grid.p[here, s], grid.p[here, sibling]
    if np.nanmin(other) - p.max() <= GAP:
        return ""
    return (
        f"all {len(p)} arms have {_span(p)} here and {_span(other)} on {answers.suites[sibling]!r}"
    )


def _failed_or_turned(answers: Answers, grid: CellGrid, s: int, here: Mask) -> str:
    p, elsewhere = grid.p[here, s], np.nanmedian(np.delete(grid.p[here], s, axis=1), axis=1)
    order = _rank_correlation(p, elsewhere) if len(p) >= ARMS else 0.0
    if p.max() <= FAILED and np.median(elsewhere) >= GOOD:
        # On a suite that is only hard the better arms are still better, on the same questions.
        hard = order >= -INVERTED or _told_apart(answers, s) or _ordered_as_another(grid, s)
        if hard and _ease(grid)[s] > -HARDER:
            return ""
        return (
            f"all {len(p)} arms have {_span(p)} here and a median of "
            f"{100 * np.median(elsewhere):.0f} % on the other suites, harder than any suite is"
            if hard
            else f"all {len(p)} arms have {_span(p)} here and a median of "
            f"{100 * np.median(elsewhere):.0f} % on the other suites, and what is right is right "
            "at random"
        )
    turned = order <= max(INVERTED, -2.8 / np.sqrt(len(p) - 1)) and np.ptp(p) > 0.1
    if turned and np.median(_orders(grid, s)) > 0:
        return (
            f"the better an arm is elsewhere, the worse it is here (rank correlation {order:.2f} "
            f"over {len(p)} arms)"
        )
    return ""


def _ordered_as_another(grid: CellGrid, s: int) -> bool:
    """Whether a suite orders the arms as one other suite does, such as another of its subject."""
    known = ~np.isnan(grid.p[:, s])
    others = [t for t in range(grid.p.shape[1]) if t != s and not np.isnan(grid.p[known, t]).any()]
    return bool(known.sum() >= ARMS) and any(
        _rank_correlation(grid.p[known, s], grid.p[known, t]) >= ALIKE for t in others
    )


def _ease(grid: CellGrid) -> Floats:
    """(suites,) how much easier a suite is than the others, in robust standard deviations."""
    smooth = np.clip(grid.p, 0.5 / (grid.n + 1), 1 - 0.5 / (grid.n + 1))
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # a suite or an arm of which too little is known
        logit = np.log(smooth / (1 - smooth))
        ease = np.nanmedian(logit - np.nanmedian(logit, axis=1, keepdims=True), axis=0)
        middle = np.nanmedian(ease)
        spread = 1.4826 * np.nanmedian(np.abs(ease - middle))
    return np.asarray((ease - middle) / max(float(spread), LEAST))


def _span(p: Floats) -> str:
    return f"{100 * np.nanmin(p):.0f} to {100 * np.nanmax(p):.0f} %"


def _told_apart(answers: Answers, s: int) -> bool:
    """Whether the arms' right answers fall on the same questions, as on a hard suite.

    The variance of right answers per question is that of independent draws where a grader lets
    some through by chance; on a suite that is only hard it is more.
    """
    rows = np.flatnonzero((answers.suite == s) & ~np.isnan(answers.score))
    arms, arm = np.unique(answers.arm[rows], return_inverse=True)
    if len(arms) < 4:
        return False
    questions, question = np.unique(answers.question[rows], return_inverse=True)
    table = np.full((len(arms), len(questions)), np.nan)
    table[arm, question] = answers.score[rows] > 0.5
    whole = table[:, ~np.isnan(table).any(axis=0)]
    p = whole.mean(axis=1) if whole.size else np.zeros(1)
    chance = float(np.sum(p * (1 - p)))
    if whole.shape[1] < 20 or chance == 0:
        return False
    ratio = whole.sum(axis=0).var(ddof=1) / chance
    return bool(ratio > 1 + 3 * np.sqrt(2 / whole.shape[1]))


def _orders(grid: CellGrid, without: int) -> list[float]:
    """Rank correlation of each other suite with the mean of the rest."""
    orders = [0.0]
    for s in range(grid.p.shape[1]):
        rest = np.delete(grid.p, [s, without], axis=1)
        known = ~np.isnan(grid.p[:, s]) & (~np.isnan(rest)).any(axis=1)
        if s != without and known.sum() >= ARMS:
            orders.append(_rank_correlation(grid.p[known, s], np.nanmedian(rest[known], axis=1)))
    return orders[1:] or orders


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's; NaN where a value is unknown."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    if np.isnan(a).any() or np.isnan(b).any():
        return float("nan")
    return float(np.asarray(np.corrcoef(ranks(a), ranks(b)))[1, 0])


def _sibling(suites: list[str], s: int) -> int | None:
    """The suite with the likest name, where one is another's with a word more or less."""
    ratios = [
        difflib.SequenceMatcher(None, suites[s].lower(), other.lower()).ratio() if k != s else 0.0
        for k, other in enumerate(suites)
    ]
    k = int(np.argmax(ratios))
    return k if ratios[k] >= 0.75 and len(suites[s]) >= 4 else None


def _rows(answers: Answers, a: int, s: int) -> np.ndarray:
    return np.flatnonzero(answers.cell == a * len(answers.suites) + s)


# What mending a finding does to the leaderboard.


#: The sentence, pairs of arms that change places, and the largest change of an arm.
Effect: TypeAlias = tuple[str, int, float]


def effect(answers: Answers, finding: Found, mends: Mends) -> Effect:
    """The leaderboard by accuracy, or by mean cost, with and without what was found."""
    if finding.before is not None and finding.after is not None:
        return _leaderboard_change(answers.arms, finding.before, finding.after, "score")
    if mends == "nothing" or not len(finding.rows):
        return "the leaderboard stays as it is", 0, 0.0
    values = answers.numbers("score" if mends == "score" else "cost_usd").copy()
    arm = answers.arm.copy()
    before = means(arm, values, len(answers.arms))
    if finding.swap is None:
        values[finding.rows] = np.nan
    else:
        arm[finding.rows] = finding.swap
    return _leaderboard_change(answers.arms, before, means(arm, values, len(answers.arms)), mends)


def _leaderboard_change(arms: list[str], before: Floats, after: Floats, mends: Mends) -> Effect:
    both = ~np.isnan(before) & ~np.isnan(after)
    gone = [arms[k] for k in np.flatnonzero(~np.isnan(before) & np.isnan(after))]
    swaps = inversions(before[both], after[both])
    change = np.where(both, after - before, 0.0)
    if mends == "cost":
        change = change / np.maximum(np.abs(np.where(both, after, 1.0)), 1e-12)
    parts = []
    if both.any() and np.any(change):
        k, cost = int(np.argmax(np.abs(change))), mends == "cost"
        old, new = (1 + int(np.sum(v < v[k] if cost else v > v[k])) for v in (before, after))
        shown = [f"${v:.3g}" if cost else f"{100 * v:.1f} %" for v in (before[k], after[k])]
        parts.append(f"{arms[k]}: {'mean cost' if cost else 'accuracy'} {' → '.join(shown)}")
        parts[-1] += f", place {old} → {new} of {int(both.sum())}" if old != new else ""
    if gone:
        names = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        what = "known cost" if mends == "cost" else "scored answer"
        parts.append(f"without any {what}: {names}")
    if swaps:
        parts.append(f"{swaps} pair{'s' if swaps > 1 else ''} of arms change places")
    elif not gone:
        parts.append("no arm changes its place")
    # Arms that lose their place altogether have changed places with all others.
    lost = len(gone) * (int((~np.isnan(before)).sum()) - 1)
    return "; ".join(parts), swaps + lost, float(np.abs(change).max(initial=0.0))


def inversions(before: Floats, after: Floats) -> int:
    """Pairs whose order differs."""
    a = np.sign(before[:, None] - before[None, :])
    b = np.sign(after[:, None] - after[None, :])
    return int(np.sum(np.triu(a * b < 0)))


# Many findings of one check put together: an arm each, with one cause.

#: Findings of one kind and severity up to which each is listed alone, and parts that are named.
ALONE, TOLD = 2, 3


def by_severity(findings: Iterable[Found]) -> Iterator[list[Found]]:
    """What a check found, each alone; of one severity together where there are many."""
    listed: dict[str | None, list[Found]] = {}
    for item in findings:
        listed.setdefault(item.severity, []).append(item)
    for some in listed.values():
        if len(some) > ALONE:
            yield sorted(some, key=lambda entry: -len(entry.rows))
        else:
            yield from ([element] for element in some)


def together(some: Sequence[Found]) -> Found:
    """One finding about all that some are about; mending it mends each of them."""
    first = some[0]
    says = "; ".join(f"{entry.about}: {entry.says}" for entry in some[:TOLD])
    rest = len(some) - TOLD
    rows = np.concatenate([entry.rows for entry in some])
    swaps = [entry.swap for entry in some if entry.swap is not None]
    after = None
    if first.before is not None:
        after = first.before.copy()
        for item in some:
            if item.after is not None:
                after = np.where(item.after != first.before, item.after, after)
    return Found(
        about=", ".join(entry.about for entry in some),
        says=f"{says}; and {rest:,} more" if rest > 0 else says,
        rows=rows,
        severity=first.severity,
        swap=np.concatenate(swaps) if swaps else None,
        before=first.before,
        after=after,
    )


def _written_in_sql() -> Iterator[AuditCheck]:
    """The checks of `recording.sql`, whose heads say what they need and what mends them."""
    for kind, sql in statements(_SQL).items():
        if kind not in _PREPARED:
            head = head_of(sql, ("needs", "severity", "mends", "key"), kind)
            yield AuditCheck.of_sql(kind, sql, head)


def _common_part(one: str, other: str) -> float:
    """Length of the longest text that is in both names, over the shorter one's."""
    common = difflib.SequenceMatcher(None, one, other).find_longest_match().size
    return common / max(min(len(one), len(other)), 1)


@contextmanager
def _asked(answers: Answers) -> Iterator[Callable[[str], Iterator[Found]]]:
    """What a check of `recording.sql` finds over the answers, by its kind."""
    texts = ("text", "error", "reference", "served_model", "sample", "split", "further_columns",
             "further_scores")  # fmt: skip
    figures = ("score", "cost_usd", "prompt_tokens", "completion_tokens", "latency_s")
    made: dict[str, Any] = {name: answers.texts(name) for name in texts}
    made |= {name: pa.array(answers.numbers(name), from_pandas=True) for name in figures}
    made |= {name: getattr(answers, name) for name in ("arm", "suite", "question", "cell")}
    made |= {
        "row": np.arange(len(answers)),
        "text_code": answers.equal("text"),
        "modes": np.full(len(answers), rows.are_modes(answers) is not None),
        "asked": rows.groups_of(answers)[answers.question],
        "arm_name": answers.texts("arm"),
        "suite_name": pc.fill_null(answers.texts("suite"), ""),
        "question_name": answers.texts("question"),
        "length": pa.array(answers.lengths("text"), from_pandas=True),
        "prompt_length": pa.array(answers.lengths("prompt"), from_pandas=True),
        "free": answers.free_rows,
        "failed": errors.failed(answers),
        "trimmed": pc.utf8_length(pc.utf8_trim_whitespace(answers.texts("text"))),
        **errors.of_status(answers),
    }
    with runner(_SQL, {"a": pa.table(made)}) as run:
        run.connection.create_function("same_model", same_model, ["VARCHAR"] * 2, "BOOLEAN")
        run.connection.create_function("repr", repr, ["VARCHAR"], "VARCHAR")
        run.connection.create_function("is_row_number", rows.is_row_number, ["VARCHAR"], "BOOLEAN")
        run.connection.create_function("common_part", _common_part, ["VARCHAR"] * 2, "DOUBLE")
        run.connection.execute(run.statements[_PREPARED[0]])
        run.keep(*_PREPARED[1:])

        def findings(kind: str) -> Iterator[Found]:
            for some in run.table(kind).to_batches(1):
                item = dict(zip(some.schema.names, some.columns, strict=True))
                rows = item.pop("rows").flatten().to_numpy()
                yield Found(rows=rows, **{name: values[0].as_py() for name, values in item.items()})

        yield findings


_SCORE = ("score",)

_RECORDED = "collect.recorded[].fields"
_SQL = Path(__file__).with_name("recording.sql")
#: What its checks are made from: macros, and tables that several of them read.
_PREPARED = ("macros", "zeros", "limits", "rest", "contradictions", "unlike", "marked")

CHECKS = (
    *_written_in_sql(),
    AuditCheck("price_mismatch", rows.prices, ("cost_usd", "completion_tokens"), "doubt", "cost",
          "pool.models[].price_in, price_out"),
    AuditCheck("odd_cost", rows.odd_costs, ("cost_usd", "suite"), "doubt", "cost",
          f"{_RECORDED}.cost_usd"),
    AuditCheck("odd_cell", anomalies, ("score", "suite"), "doubt", "score",
          "sources[].exclude"),
    AuditCheck("arms_swapped", swapped_arms, (), "doubt", "score",
          f"{_RECORDED}.model"),
    AuditCheck("broken_grader", broken_graders, ("score", "suite"), "doubt", "score",
          "sources[].scorer"),
    AuditCheck("scores_copied", exchanges.same_scores, _SCORE, "doubt", "nothing",
          f"{_RECORDED}.model"),
    AuditCheck("ids_misaligned", exchanges.misaligned, _SCORE, "doubt", "nothing",
          f"{_RECORDED}.query: an id that is of the question, not of the row"),
    AuditCheck("made_of_others", rows.made_of_others, _SCORE, "doubt", "nothing", "pool.models"),
    AuditCheck("scores_at_random", rows.at_random, _SCORE, "doubt", "score",
          f"{_RECORDED}.query: an id that is of the question, not of the row"),
    AuditCheck("modes_as_questions", rows.modes, (), "grave", "nothing",
          "sources[].fields.group"),
    AuditCheck("same_opening", rows.same_opening, ("prompt",), "note", "nothing",
          "sources[].fields.question: the question alone; the whole text in .prompt"),
    AuditCheck("missing_not_at_random", rows.not_at_random, _SCORE, "doubt", "nothing",
          "collect.coverage"),
    AuditCheck("undecided_out_of_line", rows.undecided, _SCORE, "doubt", "nothing",
          "label: a scorer that reads these answers, or `unreadable: incorrect`"),
    AuditCheck("disjoint_arms", rows.disjoint, _SCORE, "doubt", "nothing", "collect.coverage"),
    AuditCheck("few_answers", rows.few_answers, _SCORE, "doubt", "nothing", "collect.coverage"),
)  # fmt: skip


# The audit: every check that a recording has the columns for, the gravest effect first.
#
# audit = audit_recording(table)
# audit.verdict, audit.findings

Verdict = Literal["clean", "doubtful", "defective"]


@dataclass(frozen=True)
class RecordingAudit:
    """What an audit found.

    Attributes:
        answers: what was audited.
        looked_at: numbers of what was read: answers, arms, questions, suites.
        not_checked: kind → the column that the source lacks for it.
    """

    answers: Answers = field(repr=False)
    findings: tuple[AuditFinding, ...]
    looked_at: dict[str, int]
    not_checked: dict[str, str]

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.findings)


def verdict_of(findings: Iterable[AuditFinding]) -> Verdict:
    """`defective` with a grave finding, `doubtful` with a doubt, else `clean`."""
    verdict = {finding.severity for finding in findings}
    return "defective" if "grave" in verdict else "doubtful" if "doubt" in verdict else "clean"


def audit_recording(
    table: pa.Table, *, free: Iterable[str] = (), own: Iterable[AuditCheck] = ()
) -> RecordingAudit:
    """Findings over a recording, those that change the ranking most first.

    Args:
        table: `RECORDING`.
        free: arms whose price is stated as 0, so that a cost of 0 is one.
        own: further checks, of `own.checks_in`.
    """
    answers = Answers.of(table, free)
    findings: list[AuditFinding] = []
    lacking: dict[str, str] = {}
    with _asked(answers) as asked:
        for check in (*CHECKS, *own) if len(answers) else ():
            missing = next((name for name in check.needs if not answers.has(name)), None)
            if missing is not None:
                lacking[check.kind] = missing
                continue
            results = check.find(answers) if check.find else asked(check.kind)
            findings += [_finding(answers, check, *some) for some in by_severity(results)]
    looked_at = {
        "answers": len(answers),
        "arms": len(answers.arms),
        "questions": answers.n_questions,
        "suites": len([name for name in answers.suites if name]),
        "scored": int(np.sum(~np.isnan(answers.score))),
    }
    order = {"grave": 0, "doubt": 1, "note": 2}
    # What a benchmark may choose, and what is no defect, comes last.
    findings.sort(key=lambda item: (item.severity == "note", -item.swaps, order[item.severity],
                                -item.moved, -item.count, item.kind))  # fmt: skip
    return RecordingAudit(answers, tuple(findings), looked_at, lacking)


def _finding(answers: Answers, check: AuditCheck, *some: Found) -> AuditFinding:
    """What one check found, as one finding: several of one severity are one cause."""
    result = some[0] if len(some) == 1 else together(some)
    says, swaps, moved = effect(answers, result, check.mends)
    each = max(1, SHOWN // len(some))  # the first of each part in turn
    shown = [int(row) for item in some for row in item.rows[:each]][:SHOWN]
    parts = [{"about": item.about, "says": item.says, "count": len(item.rows)} for item in some]
    return AuditFinding(
        kind=check.kind,
        about=result.about,
        says=result.says,
        count=len(result.rows),
        rows=tuple(answers.place(row) for row in shown),
        effect=says,
        severity=result.severity or check.severity,
        swaps=swaps,
        moved=moved,
        key=check.key,
        parts=tuple(parts) if len(some) > 1 else (),
    )


# The leaderboard with what missing answers leave open, and as policies would have it.


def leaderboard(answers: Answers) -> list[dict[str, Any]]:
    """Arms by the lower bound of their accuracy, which counts missing answers as wrong.

    A row is arm, scored and asked questions, accuracy, `low` and `high` (missing ones wrong, or
    right), `imputed` (missing ones by their difficulty), `without_faults` (errors of the
    infrastructure and ungraded answers left out), and the places by accuracy and without faults.
    """
    if not len(answers) or np.isnan(answers.score).all():
        return []
    result = answers.cached("coverage", coverage)
    mended = coverage(answers, np.where(not_graded(answers), np.nan, answers.score))
    places = [_places(values) for values in (result.accuracy, mended.accuracy)]
    order = np.argsort(-np.nan_to_num(result.low, nan=-1), kind="stable")
    shares = {name: getattr(result, name) for name in ("accuracy", "low", "high", "imputed")}
    shares["without_faults"] = mended.accuracy
    return [
        {
            "arm": answers.arms[a],
            "scored": int(result.n[a]),
            "asked": int(result.of[a]),
            **{name: None if np.isnan(v[a]) else float(v[a]) for name, v in shares.items()},
            "place": places[0][a],
            "place_without_faults": places[1][a],
        }
        for a in order
    ]


def _places(values: np.ndarray) -> list[int | None]:
    return [None if np.isnan(value) else int((values > value).sum()) + 1 for value in values]
