"""When a small agent should hand over: what can be seen of a trajectory after each of its steps."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats, Ints

_WORD = re.compile(r"\w{3,}")
#: Seen after a step: its number, tokens of prompt and reply (log), share of the question's words
#: in what was found so far, new passages' characters (log), whether the search was a repeat.
FEATURES = 6


def relays(steps: pa.Table, small: str, large: str) -> dict[int, str]:
    """Steps that the small model takes before the large one → member of the pool that does so."""
    found: dict[int, str] = {}
    acted: dict[str, dict[tuple[str, int], list[str]]] = {}
    for row in steps.select(["query_id", "model_id", "sample", "step", "acted_by"]).to_pylist():
        of = acted.setdefault(row["model_id"], {}).setdefault((row["query_id"], row["sample"]), [])
        of.append(row["acted_by"])
    for member, trajectories in sorted(acted.items()):
        over = [actors for actors in trajectories.values() if large in actors]
        firsts = {actors.index(large) for actors in over}
        if member in (small, large) or len(firsts) != 1 or firsts == {0}:
            continue
        if all(set(actors[: actors.index(large)]) == {small} for actors in over):
            found[min(firsts)] = member
    return found


def states(
    steps: pa.Table, small: str, ids: Sequence[str], prompts: Sequence[str]
) -> dict[int, Floats]:
    """Steps taken → (n, FEATURES) of the small model's first samples; NaN where it had ended."""
    of: dict[str, list[Mapping[str, Any]]] = {}
    for row in steps.sort_by([("query_id", "ascending"), ("step", "ascending")]).to_pylist():
        if row["model_id"] == small and row["sample"] == 0:
            of.setdefault(row["query_id"], []).append(row)
    longest = max((len(rows) for rows in of.values()), default=0)
    made = {k: np.full((len(ids), FEATURES), np.nan) for k in range(1, longest)}
    for at, (query, prompt) in enumerate(zip(ids, prompts, strict=True)):
        asked, seen, queries = set(_words(prompt)), set[str](), set[str]()
        for k, row in enumerate(of.get(query, [])[:-1], 1):
            text = " ".join(row["found"])
            seen |= set(_words(text))
            again = bool(queries & set(row["queries"]))
            queries |= set(row["queries"])
            made[k][at] = (
                k,
                math.log1p(row["prompt_tokens"] or 0),
                math.log1p(row["completion_tokens"] or 0),
                len(asked & seen) / max(len(asked), 1),
                math.log1p(len(text)),
                again,
            )
    return made


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def handed(
    made: Mapping[int, Floats], train: Ints, right: Floats, members: Mapping[int, int], small: int
) -> Ints:
    """Which member each question is given to, for a row of thresholds, int64 [thresholds, n].

    A logistic regression on the train questions' states says how likely the small model still is
    to be right; the large one takes over at the first step at which that is below the threshold.

    Args:
        right: (n,) whether the small model's own trajectory was right.
        members: Steps taken → column of the relay that hands over there.
    """
    chances = _chances(made, train, right, members)
    every = np.concatenate([c[~np.isnan(c)] for c in chances.values()] or [np.zeros(0)])
    thresholds = np.unique(np.concatenate([[0.0], np.quantile(every, np.linspace(0, 1, 21)), [1.1]])
                           if len(every) else np.array([0.0]))  # fmt: skip
    n = len(right)
    chosen = np.full((len(thresholds), n), small, dtype=np.int64)
    for row, threshold in enumerate(thresholds):
        open_ = np.ones(n, bool)
        for k in sorted(members):
            with np.errstate(invalid="ignore"):
                hands = open_ & (chances[k] < threshold)
            chosen[row, hands] = members[k]
            open_ &= ~hands
    return chosen


def _chances(
    made: Mapping[int, Floats], train: Ints, right: Floats, members: Mapping[int, int]
) -> dict[int, Floats]:
    """Steps taken → (n,) chance that the small model will be right; NaN where it had ended."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    chances = {k: np.full(len(right), np.nan) for k in members}
    seen = [(k, at) for k in members if k in made for at in train
            if not np.isnan(made[k][at]).any() and not np.isnan(right[at])]  # fmt: skip
    if not seen:
        return chances
    x = np.stack([made[k][at] for k, at in seen])
    y = np.array([right[at] > 0.5 for _, at in seen])
    fitted = None
    if y.any() and not y.all():
        fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    for k in chances.keys() & made.keys():
        rows = np.flatnonzero(~np.isnan(made[k]).any(axis=1))
        if len(rows):
            known = y.mean() if fitted is None else fitted.predict_proba(made[k][rows])[:, 1]
            chances[k][rows] = known
    return chances
