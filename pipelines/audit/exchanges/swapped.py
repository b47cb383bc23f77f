"""Suites on which two arms' answers have changed places."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from routeyard.pipelines.audit.answers import Answers, Floats, counts, means, sums
from routeyard.pipelines.audit.cells import FEWEST
from routeyard.pipelines.audit.exchanges.fingerprints import correlations, evidence, falls
from routeyard.pipelines.audit.exchanges.signs import occurrences
from routeyard.pipelines.audit.exchanges.styles import levels, style_falls, styles

#: Signs whose share of a text tells one model's style from another's.
_SIGNS = ("\n", "*", "#", "\\", "`", ",", ":", "I ")
#: By how much an exchange betters the fit at least, by how many times what the next best one
#: betters it, and exchanges of one recording at most: more of them are no exchanges.
GAIN, TIMES, MOST = 24.0, 1.8, 3
#: Suites from which figures alone tell an arm from another; with texts fewer do.
SUITES = 5
#: Log-likelihood ratio of an exchange by scores alone, by how many times it is above any other, and
#: arms that tell such an exchange from an odd arm.
LIKELIER, RIVAL, ARMS, MOST_ARMS = 4.0, 1.3, 10, 400
#: The largest ratios on other suites fall off exponentially: how many of them give their spread,
#: and by how many spreads the largest is exceeded with a probability of 0.01.
TAIL, UNLIKELY = 20, 4.6
#: Stretches of a file without suites.
BLOCKS = 8
#: Cap of a squared deviation, so that one measure alone decides nothing.
CAP = 25.0

#: (measures, arms, suites)
Cube = NDArray[np.float64]


def exchanged(answers: Answers) -> list[tuple[int, int, int]]:
    """(arm, arm, suite) whose exchange makes all that is measured of them fit far better.

    Measured are accuracy, length and signs of texts, tokens, cost, price and latency. Without the
    suite's own level, an arm's cells are alike over suites; so are its correlations with other
    arms, and the words its texts open and close with. A cell
    that is nearer to another arm's other cells, while that arm's is nearer to its own, has changed
    places with it. Where nothing but scores is known, those of enough arms tell it (`evidence`).
    """
    if len(answers.arms) < 3 or len(answers.suites) < (3 if answers.has("text") else SUITES):
        return []
    if any(answers.has(name) for name in ("text", "completion_tokens", "cost_usd", "latency_s")):
        return _by_gains(gains_of(answers))
    return _by_scores(answers) if ARMS <= len(answers.arms) <= MOST_ARMS else []


def _by_scores(answers: Answers) -> list[tuple[int, int, int]]:
    """(arm, arm, suite) of the exchange that scores alone make far likelier than any other.

    An arm that is only odd on a suite fits several others there, none of them far better. Two arms
    whose scores are alike on the other suites cannot be told apart: little evidence is expected.
    Of made matrices whose arms are known, 3 in 100 honest ones have a finding. Of 210 exchanges
    that move an accuracy of 19 models on 38 tasks (Open LLM Leaderboard) by 10 points or more, 65 %
    are found and 2 % wrongly; of the 57 with an expected log-likelihood ratio of ln(N / 0.05) =
    11.8, N the number of possible exchanges, 96 %; of the 40 below 4, 2 %.
    """
    ratio = np.triu(evidence_of_scores(answers), 1)
    s, a, b = (int(x) for x in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
    best, rest = float(ratio[s, a, b]), ratio.copy()
    rest[s, a, b] = 0
    rival = float(rest.max())
    rest[s] = 0  # the exchange makes others of its suite likelier too
    tail = np.sort(rest[rest > 0])[::-1][: TAIL + 1]
    spread = float(np.mean(tail[:-1] - tail[-1])) if len(tail) > 5 else 1.0
    beyond = float(tail[0]) + UNLIKELY * spread if len(tail) else 0.0
    return [(a, b, s)] if best >= max(LIKELIER, RIVAL * rival, beyond) else []


def evidence_of_scores(answers: Answers) -> Floats:
    """(suites, arms, arms) log-likelihood ratio that two arms' scores there changed places."""
    cube, noise = _measured(answers)
    return evidence(answers, cube[0], noise[0])


def _by_gains(gains: NDArray[np.float64]) -> list[tuple[int, int, int]]:
    """(arm, arm, suite) of exchanges that better the fit far more than the next best one."""
    told: list[tuple[float, tuple[int, int, int]]] = []
    seen: set[tuple[int, int]] = set()
    for k in np.argsort(-gains, axis=None, kind="stable")[:200]:
        s, a, b = (int(x) for x in np.unravel_index(k, gains.shape))
        # With few suites one exchange makes the pair's other suites look exchanged too.
        if gains[s, a, b] > 0 and not seen & {(-1 - a, b), (s, a), (s, b)}:
            seen |= {(-1 - a, b), (s, a), (s, b)}
            told.append((float(gains[s, a, b]), (a, b, s)))
    rest = [gain for gain, _ in told[1:]] + [0.0]
    for k, (gain, _) in enumerate(told[:MOST]):
        if gain >= max(GAIN, TIMES * rest[k]):
            return [one for _, one in told[: k + 1]]
    return []


def gains_of(answers: Answers) -> NDArray[np.float64]:
    """[suite, arm, arm] by how much an exchange betters the fit."""
    cube, noise = _measured(answers)
    found, number = correlations(answers)
    made = styles(answers)
    level = None if made is None else levels(made)
    arms, gains = len(answers.arms), []
    for s in range(len(answers.suites)):
        fall = _falls(*_deviations(cube, noise, s)) + falls(found, number, s)
        if level is not None:
            fall = fall + style_falls(level, s)
        both = (fall > 0) & (fall.T > 0)
        gains.append(np.where(both & np.triu(np.ones((arms, arms), bool), 1), fall + fall.T, 0.0))
    return np.stack(gains)


def _deviations(cube: Cube, noise: Cube, s: int) -> tuple[Cube, NDArray[np.bool_]]:
    """[measure, a, b] by how much arm a's cell on suite s is off arm b's other cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a suite that no arm has
        level = cube - np.nanmedian(cube, axis=1, keepdims=True)
        own = np.nanmedian(np.delete(level, s, axis=2), axis=2)
        left = level - np.nanmedian(level, axis=2, keepdims=True)
        common = np.nanquantile(np.abs(left), 0.75, axis=(1, 2)) / 1.15
        here = np.nanquantile(np.abs(left[:, :, s]), 0.6, axis=1) / 0.84
    spread = np.sqrt(np.fmax(common, 0.75 * here)[:, None] ** 2 + noise[:, :, s] ** 2 + 1e-12)
    off = (level[:, :, s][:, :, None] - own[:, None, :]) / spread[:, :, None]
    return off, np.isfinite(off)


def _falls(off: Cube, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(a, b) by how much a's cell is nearer to b's other cells than to its own."""
    usable = known & np.swapaxes(known, 1, 2)
    diagonal = np.arange(off.shape[1])
    squares = np.minimum(np.square(np.where(known, off, 0.0)), CAP)
    own = squares[:, diagonal, diagonal][:, :, None]
    return np.asarray(np.where(usable, own - squares, 0.0).sum(axis=0))


def in_blocks(answers: Answers) -> Answers:
    """The answers with stretches of the file as suites, where the source has none.

    Two files of one model each, cut into the same stretches, are exchanged by stretches.
    """
    if answers.has("suite") or answers.n_questions < 2 * BLOCKS * FEWEST:
        return answers
    order = np.argsort(answers.first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    size = -(-len(order) // BLOCKS)
    names = np.array([f"questions {k * size + 1:,} to {(k + 1) * size:,}" for k in range(BLOCKS)])
    made = pa.array(names[rank[answers.question] // size].tolist(), pa.string())
    at = answers.table.column_names.index("suite")
    blocked = Answers.of(answers.table.set_column(at, "suite", made), answers.free)
    return blocked if np.array_equal(blocked.arm, answers.arm) else answers


def _measured(answers: Answers) -> tuple[Cube, Cube]:
    """The measures of every cell, and their standard errors."""
    shape = (len(answers.arms), len(answers.suites))
    size = shape[0] * shape[1]
    score = np.clip(answers.score, 0, 1)
    n = counts(answers.cell, size, ~np.isnan(score))
    smooth = (sums(answers.cell, score, size) + 0.5) / (n + 1)
    logit = np.where(n >= FEWEST, np.log(smooth / (1 - smooth)), np.nan)
    tables, noises = [logit], [1 / np.sqrt((n + 1) * smooth * (1 - smooth))]
    for values in _measures(answers):
        known = counts(answers.cell, size, ~np.isnan(values))
        mean = means(answers.cell, values, size)
        square = means(answers.cell, np.square(values), size) - np.square(mean)
        tables.append(np.where(known >= FEWEST, mean, np.nan))
        noises.append(np.sqrt(np.maximum(square, 0) / np.maximum(known, 1)))
    # A table of nothing says nothing, and accuracies are kept so that there is one.
    whole = [k for k, table in enumerate(tables) if k == 0 or np.isfinite(table).any()]
    return tuple(np.stack([made[k].reshape(shape) for k in whole]) for made in (tables, noises))  # type: ignore[return-value]


def _measures(answers: Answers) -> Iterator[Floats]:
    """(n,) each measure of an answer beside its score, on a scale on which arms and suites add."""
    for name in ("completion_tokens", "cost_usd", "latency_s"):
        if answers.has(name):
            yield _log(answers.numbers(name))
    if answers.has("cost_usd") and answers.has("completion_tokens"):
        prompt = np.nan_to_num(answers.numbers("prompt_tokens"))
        yield _log(answers.numbers("cost_usd")) - _log(
            prompt + answers.numbers("completion_tokens")
        )
    if answers.has("text"):
        length = answers.lengths("text")
        yield _log(length)
        texts = answers.texts("text")
        for number in occurrences(texts, _SIGNS):
            yield np.sqrt(number / np.maximum(length, 1))


def _log(values: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.log(np.where(values > 0, values, np.nan)))
