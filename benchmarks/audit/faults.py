"""Faults put into honest matrices: each takes a recording and says what an audit should name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.audit.traces import KEPT, cells_of, graded_alike, tellable
from routeyard.pipelines.audit.answers import Answers
from routeyard.schemas.contracts import RECORDING

Rng = np.random.Generator


@dataclass(frozen=True)
class Injected:
    """A recording with a fault: kinds that name it, and names that the finding must hold."""

    table: pa.Table
    kinds: tuple[str, ...]
    about: tuple[str, ...]
    how: str


def replaced(table: pa.Table, **columns: object) -> pa.Table:
    """The recording with other values in some columns; NaN is null."""
    for name, values in columns.items():
        kind = RECORDING.field(name).type
        made = pa.array(values, kind, from_pandas=True)
        table = table.set_column(table.column_names.index(name), name, made)
    return table


def objects(table: pa.Table, name: str) -> np.ndarray:
    """A column as Python values, to be changed."""
    return np.array(table.column(name).to_pylist(), dtype=object)


def _arm(answers: Answers, rng: Rng, least: int = 60) -> int:
    number = np.bincount(answers.arm[~np.isnan(answers.score)], minlength=len(answers.arms))
    return int(rng.choice(np.flatnonzero(number >= least)))


def _part(answers: Answers, arm: int, rng: Rng, share: float) -> tuple[np.ndarray, str]:
    """Rows of an arm: some at random, a stretch of the file, or one suite."""
    rows = np.flatnonzero(answers.arm == arm)
    how = rng.choice(["random", "stretch", *(["suite"] if answers.has("suite") else [])])
    count = max(10, int(share * len(rows)))
    if how == "stretch":
        start = int(rng.integers(0, len(rows) - count + 1))
        return rows[start : start + count], how
    if how == "suite":
        suites, sizes = np.unique(answers.suite[rows], return_counts=True)
        wanted = suites[sizes >= 10]
        if len(wanted):
            return rows[answers.suite[rows] == rng.choice(wanted)], how
    return np.sort(rng.choice(rows, count, replace=False)), "random"


def costs_zeroed(table: pa.Table, rng: Rng) -> Injected:
    """An arm's costs are 0: all of them, or a fifth."""
    answers = Answers.of(table)
    arm = _arm(answers, rng)
    rows, how = _part(answers, arm, rng, 0.2)
    if rng.random() < 0.5:
        rows, how = np.flatnonzero(answers.arm == arm), "whole arm"
    cost = answers.numbers("cost_usd").copy()
    cost[rows] = 0.0
    return Injected(
        replaced(answers.table, cost_usd=cost), ("zero_cost",), (answers.arms[arm],), how
    )


def suite_regraded(table: pa.Table, rng: Rng) -> Injected:
    """A suite's grades are another grader's: of one arm or of all, nearly none right, or turned."""
    answers = Answers.of(table)
    score = answers.score.copy()
    cells = cells_of(answers)
    how = str(rng.choice(["one arm fails", "one arm fails", "all arms fail", "turned round"]))
    if how == "one arm fails":
        best = [cell for cell, p in cells.items() if p >= 0.5]
        a, s = best[int(rng.integers(len(best)))]
        rows = np.flatnonzero((answers.arm == a) & (answers.suite == s))
        about: tuple[str, ...] = (answers.arms[a], answers.suites[s])
    else:
        s = int(rng.choice(graded_alike(cells, turned=how == "turned round")))
        rows, about = np.flatnonzero(answers.suite == s), (answers.suites[s],)
    if how == "turned round":
        score[rows] = 1 - np.clip(score[rows], 0, 1)
    else:
        score[rows] = np.where(rng.random(len(rows)) < 1 - KEPT, 0.0, score[rows])
    kinds = ("odd_cell",) if how == "one arm fails" else ("broken_grader",)
    return Injected(replaced(answers.table, score=score), kinds, about, how)


def arms_swapped(table: pa.Table, rng: Rng) -> Injected:
    """Two arms' answers to one suite have changed places."""
    answers = Answers.of(table)
    cells = cells_of(answers)
    number = answers.score.size / max(1, len(answers.arms) * len(answers.suites))
    styled = answers.has("text") and len(answers.suites) >= 4
    if not styled and (len(answers.arms) < 15 or number < 200):
        raise ValueError("too little is recorded to tell the columns of a few arms apart")
    # Columns that are nearly equal there are exchanged without a trace, and without an effect.
    pairs = [
        (a, b, s)
        for (a, s) in cells
        for b in range(a + 1, len(answers.arms))
        if (b, s) in cells and abs(cells[a, s] - cells[b, s]) > 0.1
    ]
    if not styled:
        pairs = tellable(answers, pairs)
    a, b, s = pairs[int(rng.integers(len(pairs)))]
    arm = answers.arm.copy()
    here = answers.suite == s
    arm[here & (answers.arm == a)], arm[here & (answers.arm == b)] = b, a
    names = np.array(answers.arms, dtype=object)[arm]
    about = (answers.arms[a], answers.arms[b], answers.suites[s])
    return Injected(replaced(answers.table, arm=names), ("arms_swapped",), about, "one suite")


def tokens_capped(table: pa.Table, rng: Rng) -> Injected:
    """An arm's answers stop at a limit of tokens, which 3 to 30 % of them reach."""
    answers = Answers.of(table)
    arm = _arm(answers, rng)
    rows = np.flatnonzero(answers.arm == arm)
    tokens = answers.numbers("completion_tokens").copy()
    limit = np.floor(np.nanquantile(tokens[rows], 1 - rng.uniform(0.03, 0.3)))
    tokens[rows] = np.where(tokens[rows] > limit, limit, tokens[rows])
    made = replaced(answers.table, completion_tokens=tokens)
    return Injected(made, ("tokens_capped",), (answers.arms[arm],), f"at {limit:.0f}")


def rows_of_another(table: pa.Table, rng: Rng) -> Injected:
    """A fifth of an arm's rows are another arm's rows to the same questions."""
    answers = Answers.of(table)
    if "oracle" in answers.arms:
        raise ValueError("the arms are policies over the same models")
    arm = _arm(answers, rng)
    other = arm
    while other == arm:
        other = _arm(answers, rng)
    rows, how = _part(answers, arm, rng, 0.2)
    source = {int(q): k for k, q in enumerate(answers.question) if answers.arm[k] == other}
    pairs = [
        (row, source[int(answers.question[row])])
        for row in rows
        if int(answers.question[row]) in source
    ]
    to, of = (np.array(x, dtype=np.int64) for x in zip(*pairs, strict=True))
    columns = {}
    for name in ("score", "text", "cost_usd", "prompt_tokens", "completion_tokens", "latency_s"):
        values = objects(answers.table, name)
        values[to] = values[of]
        columns[name] = values.tolist()
    if rng.random() < 0.3:
        served = np.array(answers.arms, dtype=object)[answers.arm]
        served[to] = answers.arms[other]
        columns["served_model"], how = served.tolist(), f"{how}, served model stated"
    made = replaced(answers.table, **columns)
    return Injected(made, ("copied_rows", "foreign_rows"), (answers.arms[arm],), how)


def duplicates_across_splits(table: pa.Table, rng: Rng) -> Injected:
    """Twenty train questions are in test too, under other ids and spelled otherwise."""
    answers = Answers.of(table)
    split = rng.choice(["train", "test"], answers.n_questions, p=[0.7, 0.3])
    words = objects(answers.table, "prompt")
    ids = objects(answers.table, "question")
    train = np.flatnonzero(split == "train")
    chosen = rng.choice(train, 20, replace=False)
    test = rng.choice(np.flatnonzero(split == "test"), 20, replace=False)
    how = str(rng.choice(["equal", "upper case", "spaces", "punctuation"]))
    for old, new in zip(chosen, test, strict=True):
        text = words[answers.first[old]]
        text = {"equal": text, "upper case": text.upper(), "spaces": text.replace(" ", "  "),
                "punctuation": text.rstrip(" ?.!") + " ?"}[how]  # fmt: skip
        words[answers.question == new] = text
    made = replaced(answers.table, prompt=words.tolist(), split=split[answers.question].tolist(),
                    question=ids.tolist())  # fmt: skip
    return Injected(made, ("leak",), ("split",), how)


def infrastructure(table: pa.Table, rng: Rng) -> Injected:
    """A tenth of an arm's answers are errors, counted as wrong."""
    answers = Answers.of(table)
    arm = _arm(answers, rng)
    rows, part = _part(answers, arm, rng, 0.1)
    how = str(rng.choice(["status", "error", "text", "nothing but wrong"]))
    if how == "nothing but wrong":
        # An outage: a stretch of the file, of an arm that is right elsewhere.
        right = [
            a
            for a in range(len(answers.arms))
            if np.nanmean(answers.score[answers.arm == a]) >= 0.5
        ]
        arm = int(rng.choice(right)) if right else arm
        own = np.flatnonzero(answers.arm == arm)
        count = max(40, len(own) // 10)
        start = int(rng.integers(0, max(1, len(own) - count)))
        rows, part = own[start : start + count], "stretch"
    score, text = answers.score.copy(), objects(answers.table, "text")
    score[rows] = 0.0
    columns: dict[str, object] = {"score": score}
    says = str(
        rng.choice(
            [
                "APIConnectionError",
                "InvalidRequestError",
                "HTTP 502 Bad Gateway",
                "rate_limit_exceeded",
            ]
        )
    )
    if how == "status":
        status = np.full(len(answers), "completed", dtype=object)
        status[rows] = str(rng.choice(["error", "timeout", "api_error"]))
        columns["status"] = status.tolist()
    elif how == "error":
        error = np.full(len(answers), None, dtype=object)
        error[rows] = says
        columns["error"] = error.tolist()
    elif how == "text" and answers.has("text"):
        text[rows] = str(
            rng.choice(
                [
                    "Error code: 502 - Bad Gateway",
                    "openai.RateLimitError: Error code: 429",
                    "Request timed out.",
                ]
            )
        )
        columns["text"] = text.tolist()
    elif how == "text":
        status = np.full(len(answers), None, dtype=object)
        status[rows] = "error"
        columns["status"] = status.tolist()
    kinds = ("infrastructure_errors", "failures_in_a_row")
    return Injected(
        replaced(answers.table, **columns), kinds, (answers.arms[arm],), f"{how}, {part}"
    )


#: Fault → (function, what a matrix needs for it).
FAULTS: dict[str, tuple[Callable[[pa.Table, Rng], Injected], tuple[str, ...]]] = {
    "costs zeroed": (costs_zeroed, ("cost_usd",)),
    "suites regraded": (suite_regraded, ("suite", "score")),
    "arms swapped": (arms_swapped, ("suite", "score")),
    "tokens capped": (tokens_capped, ("completion_tokens",)),
    "rows of another model": (rows_of_another, ("text",)),
    "duplicates across splits": (duplicates_across_splits, ("prompt",)),
    "infrastructure errors": (infrastructure, ("score",)),
}
