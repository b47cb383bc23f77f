"""Power: which difference these questions can show, and how many a difference needs."""

from __future__ import annotations

import math

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.matrix.ranking import ranked

#: Models that are compared, error of the first kind, power, share of questions one of two is right
#: on alone; the last is on the large side of what the routing plateau paper finds between routers
#: (its Table 4), so it errs on the safe side.
TOP, LEVEL, POWER, DISCORDANT = 5, 0.05, 0.8, 0.2


#: z₁₋α/₂ + z_power, as `scipy.special.ndtri` gives them: its import takes longer than the rest.
_Z = 1.959963984540054 + 0.8416212335729143


def resolvable_difference(labels: Floats) -> float | None:
    """Smallest detectable difference in accuracy: a paired test on these queries finds it with
    that power.

    (z₁₋α/₂ + z_power)·√(σ²/n), where σ² is the variance of the difference
    between two models on a query, averaged over pairs of the `TOP` most
    accurate models (Card et al., 2020, With Little Power Comes Great
    Responsibility, in its normal approximation).

    >>> y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 100, float)
    >>> round(resolvable_difference(y), 4)
    0.0991
    """
    order = ranked(labels)[:TOP]
    found = []
    for i, a in enumerate(order):
        for b in order[i + 1 :]:
            difference = labels[:, a] - labels[:, b]
            known = difference[~np.isnan(difference)]
            if len(known) > 1:
                found.append(float(np.var(known)) / len(known))
    if not found:
        return None
    return _Z * math.sqrt(float(np.mean(found)))


def questions_needed(difference: float) -> int:
    """Test questions on which a paired test finds a difference in accuracy with that power.

    n = (z₁₋α/₂ + z_power)²·(δ − d²)/d²: the variance of the difference of two
    0/1 scores is δ − d², δ the share of questions that only one of the two gets
    right. The inverse of `resolvable_difference`, for planning.

    Args:
        difference: d, a share (0.02 for two points).

    Raises:
        BadInput: the difference is not above 0, or above the discordant share.

    >>> questions_needed(0.02), questions_needed(0.05)
    (3917, 621)
    """
    if not 0 < difference <= DISCORDANT:
        raise BadInput(
            f"a difference of {difference:g} cannot come from {DISCORDANT:g} of the questions",
            next_step=f"give a share above 0 and at most {DISCORDANT:g}",
        )
    return math.ceil(_Z**2 * (DISCORDANT - difference**2) / difference**2)


def difference_shown(questions: int) -> float:
    """Smallest detectable difference in accuracy on so many questions, as a share.

    >>> round(difference_shown(621), 3)
    0.05
    """
    z = _Z
    # d² = z²(δ − d²)/n, solved for d.
    return math.sqrt(z**2 * DISCORDANT / (questions + z**2)) if questions > 0 else math.inf
