"""Styles of arms: the words with which their answers open and close, compared over suites.

A model opens and closes its answers with its own words, whatever it is asked. Over what a
suite's questions bring, an arm's shares of such words are alike on every suite.
"""

from __future__ import annotations

import re
from itertools import chain, pairwise
from zlib import crc32

import numpy as np
import pyarrow as pa

from routeyard.pipelines.audit.answers import Answers, Floats

#: Texts of a cell that are looked at, fewest of them, and characters of each at its two ends.
TEXTS, FEWEST, OPENING, CLOSING = 60, 8, 300, 150
#: Words are counted in so many bins.
BINS = 512
#: What a typical distance is worth, in squared deviations, and the most that styles count.
COUNTS, MOST = 25.0, 60.0
_WORD = re.compile(r"[^\W\d_]+|[^\w\s]|\n")


def styles(answers: Answers) -> Floats | None:
    """(arms, suites, bins) share of the texts that hold a word; NaN where a cell has too few.

    None where there are no texts.
    """
    if not answers.has("text"):
        return None
    arms, suites = len(answers.arms), len(answers.suites)
    found = np.full((arms * suites, BINS), np.nan)
    rows = np.flatnonzero(answers.lengths("text") > 0)
    order = rows[np.argsort(answers.cell[rows], kind="stable")]
    cells, starts = np.unique(answers.cell[order], return_index=True)
    bins = _Bins()
    for cell, own in zip(cells, np.split(order, starts[1:]), strict=True):
        if len(own) < FEWEST:
            continue
        some = own[:: max(1, len(own) // TEXTS)][:TEXTS]
        texts = answers.texts("text").take(pa.array(some)).to_pylist()
        held = chain.from_iterable(set(map(bins.__getitem__, _marked(text))) for text in texts)
        number = np.bincount(np.fromiter(held, np.int64), minlength=BINS)
        found[cell] = np.arcsin(np.sqrt((number + 0.5) / (len(texts) + 1)))
    return found.reshape(arms, suites, BINS)


class _Bins(dict[str, int]):
    """Bin of each word; most words recur."""

    def __missing__(self, word: str) -> int:
        self[word] = found = crc32(word.encode("utf-8", "surrogatepass")) % BINS
        return found


def _marked(text: str) -> list[str]:
    """Words, signs and pairs of words at both ends of a text."""
    opening, closing = text[:OPENING].lower(), text[-CLOSING:].lower()
    first, last = _WORD.findall(opening), _WORD.findall(closing)
    pairs = [f"{a} {b}" for a, b in pairwise(first[:12])]
    return [*first, *pairs, *(f"… {word}" for word in last)]


def levels(made: Floats) -> Floats:
    """(arms, suites, bins) styles less what a suite's questions bring."""
    return made - _median(made, 0)


def style_falls(level: Floats, s: int) -> Floats:
    """(arms, arms) by how much arm a's style on suite s is nearer to arm b's than to its own.

    Args:
        level: see `levels`.
    """
    own = _median(np.delete(level, s, axis=1), 1)[:, 0]
    here = level[:, s]
    known = ~np.isnan(here[:, 0]) & ~np.isnan(own[:, 0])
    fall = np.zeros((len(level), len(level)))
    k = np.flatnonzero(known)
    if len(k) < 3:
        return fall
    x, y = here[k], own[k]
    off = np.square(x).sum(1)[:, None] + np.square(y).sum(1)[None, :] - 2 * x @ y.T
    mine = np.diag(off)
    typical = max(float(np.median(mine)), 1e-9)
    fall[np.ix_(k, k)] = np.clip(COUNTS * (mine[:, None] - off) / typical, -MOST, MOST)
    return fall


def _median(values: Floats, axis: int) -> Floats:
    """`np.nanmedian` with its axis kept, which calls Python for every line of a short axis."""
    known = np.sum(~np.isnan(values), axis=axis, keepdims=True)
    ordered = np.sort(values, axis=axis)  # unknown ones last
    middle = (
        np.take_along_axis(ordered, at, axis) for at in (np.maximum(known - 1, 0) // 2, known // 2)
    )
    return np.asarray(sum(middle) / 2)
