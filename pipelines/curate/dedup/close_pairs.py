"""Candidate pairs within a radius: space is halved until all against all is cheap.

Each half keeps its own points (its core) and, of the other side, what is within
the radius of the cut (its border); only the lower half gets the upper one's border,
so that a pair across a cut meets once. The halves are compared by matrix products,
which beat a k-d tree's point by point descent on tens of dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from routeyard.pipelines.arrays import Array, Bools, Ints, Vectors

#: Points of a core that are no longer halved.
CORE = 384
#: A cut must save at least this share of the comparisons.
SAVING = 0.1
#: Rows and columns of one matrix product.
TILE = 2_048
#: Rounding of squared distances between float32 points of norm at most 2.
SLACK = 2e-5


#: Share of a tile's pairs from which the whole tile is looked at more closely: a matrix
#: product takes about this share of the time per pair that single pairs take.
DENSE = 1 / 32

#: Rows, rows and which of their pairs are candidates → those that are still to be given,
#: both bool [rows, rows].
Closer = Callable[[Ints, Ints, Bools], Bools]


def close_pairs(
    points: Vectors, radius: float, closer: Closer | None = None
) -> Iterator[tuple[Ints, Ints]]:
    """Every pair of rows within `radius`, each once, and perhaps a few beyond it.

    No pair is missed; pairs whose squared distance exceeds radius² by less than
    about 2·`SLACK` may be given too, so the caller decides each. Memory stays
    near that of `points`, however dense they are.

    Args:
        points: (n, k) float32 of norm at most 2.
        radius: Euclidean, at least 0.
        closer: Looks at tiles in which many points crowd, as many copies of one text do,
            before any of their pairs is counted out, and says which pairs to give.

    Yields:
        (m,) and (m,) row numbers of at most `TILE`² pairs, in no order.
    """
    reach = float(np.sqrt(radius * radius + SLACK))
    # ⟨a, b⟩ − ‖a‖²/2 − ‖b‖²/2 = −‖a − b‖²/2, as one product of k + 2 columns.
    half = np.einsum("ij,ij->i", points, points) / 2
    extended = np.column_stack([points, half, np.ones_like(half)])
    everyone = np.arange(len(points), dtype=np.int64)
    waiting = [(everyone, everyone[:0])]
    while waiting:
        core, border = waiting.pop()
        halves = _halves(points, reach, core, border)
        if halves:
            waiting += halves
        else:
            yield from _compare(extended, reach, core, border, closer)


def _halves(points: Vectors, reach: float, core: Ints, border: Ints) -> list[tuple[Ints, Ints]]:
    """Both sides of a cut through the core's widest component; none if it saves too little."""
    if len(core) <= CORE:
        return []
    sample = points[core[:: len(core) // CORE]]
    component = points[:, int(sample.var(axis=0).argmax())]
    inside, outside = component[core], component[border]
    cut = np.partition(inside, len(inside) // 2)[len(inside) // 2]
    above = inside > cut
    lower, upper = core[~above], core[above]
    across = core[above & (inside <= cut + reach)]
    below = np.concatenate([across, border[outside <= cut + reach]])
    beyond = border[outside >= cut - reach]
    work = len(lower) * (len(lower) + len(below)) + len(upper) * (len(upper) + len(beyond))
    if work > (1 - SAVING) * len(core) * (len(core) + len(border)):
        return []
    return [(upper, beyond), (lower, below)]


def _compare(
    extended: Array, reach: float, core: Ints, border: Ints, closer: Closer | None
) -> Iterator[tuple[Ints, Ints]]:
    """Pairs within the core, and between core and border, tile by tile."""
    rows = np.concatenate([core, border])
    right = extended[rows]
    left = right[: len(core)].copy()
    left[:, -2:] = -1 * left[:, -1:-3:-1]  # −1 meets ‖b‖²/2, −‖a‖²/2 meets 1
    bound = np.float32(-reach * reach / 2)
    for i in range(0, len(core), TILE):
        for j in range(i, len(rows), TILE):
            near = left[i : i + TILE] @ right[j : j + TILE].T >= bound
            if i == j:
                near = np.triu(near, 1)
            if closer is not None and np.count_nonzero(near) > DENSE * near.size:
                near = closer(rows[i : i + len(near)], rows[j : j + TILE], near)
            a, b = np.divmod(np.flatnonzero(near), near.shape[1])
            yield rows[a + i], rows[b + j]
