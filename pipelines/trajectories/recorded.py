"""What recorded steps cost by their own token classes, and whether the cache rules predict it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.trajectories.arrays import Trajectories
from routeyard.pipelines.trajectories.caches import ArmPrice
from routeyard.pipelines.trajectories.daily import Periods, in_force
from routeyard.pipelines.trajectories.replay import replay


@dataclass(frozen=True, slots=True)
class UsageCost:
    """USD of the steps whose token classes and prices are known.

    Attributes:
        usd: With each class at its own price.
        fresh: The same steps with all prompt tokens at the price of fresh ones.
        recorded: What the log itself says of these steps, where it says it of all of them.
        known, steps: How many steps that is, and of how many.
    """

    usd: float
    fresh: float
    recorded: float | None
    known: int
    steps: int

    def lines(self) -> Iterator[str]:
        """The cost in words."""
        if not self.known:
            yield "recorded usage: cached tokens or prices are unknown, so its cost is unknown"
            return
        more = "" if self.recorded is None else f"; the log itself says {self.recorded:.6g}"
        yield (
            f"recorded usage: {self.usd:.6g} USD with cached tokens at their own price, "
            f"{self.fresh:.6g} if all were fresh ({self.known:,} of {self.steps:,} steps{more})"
        )


def usage_cost(steps: Trajectories, periods: Periods) -> UsageCost:
    """What the recorded token classes cost at the prices in force; tokens of an unknown class
    leave a step unknown, as does a prompt of fewer tokens than its cached ones.

    A rule without premium has no writes: they cost as fresh tokens do.
    """
    usd, fresh = np.full((2, len(steps)), np.nan)
    for prices, inside in in_force(steps, periods):
        for out, found in zip((usd, fresh), _usage_usd(steps, prices), strict=True):
            out[inside] = found[inside]
    known = ~np.isnan(usd)
    told = steps.cost[known]
    return UsageCost(
        float(usd[known].sum()),
        float(fresh[known].sum()),
        None if not len(told) or np.isnan(told).any() else float(told.sum()),
        int(known.sum()),
        len(steps),
    )


def _usage_usd(steps: Trajectories, prices: Mapping[str, ArmPrice]) -> tuple[Floats, Floats]:
    """(n,) USD of each step by its own token classes, and if all of its prompt were fresh."""
    rows = [prices.get(name, ArmPrice(None, None)) for name in steps.arms]

    def price(values: list[float | None]) -> Floats:
        column = np.array([np.nan if one is None else one for one in values], dtype=np.float64)
        return np.asarray(column[steps.arm])

    # A log of a provider that charges nothing for writes does not count them.
    write = np.nan_to_num(steps.write)
    rest = steps.prompt - steps.read - write
    input_, output = price([one.input for one in rows]), price([one.output for one in rows])
    charged = [
        (rest, input_), (steps.read, price([one.read for one in rows])),
        (write, price([one.write for one in rows])), (steps.completion, output),
    ]  # fmt: skip
    usd = np.sum([np.where(n == 0, 0.0, n * p) for n, p in charged], axis=0) / 1e6
    longest = price([np.inf if one.up_to is None else one.up_to for one in rows])
    usd = np.where((steps.prompt > longest) | (rest < 0), np.nan, usd)
    return usd, np.asarray((steps.prompt * input_ + steps.completion * output) / 1e6)


@dataclass(frozen=True, slots=True)
class CacheCheck:
    """Cached tokens that the rules predict for the recorded arms, and those that were recorded.

    Attributes:
        later: Steps that follow another of their trajectory; only these can be predicted.
    """

    predicted: float
    recorded: float
    steps: int
    later: int

    def line(self) -> str:
        """The comparison in one sentence."""
        if not self.later:
            return (
                f"check: the log has {self.recorded:,.0f} cached tokens in {self.steps:,} steps; "
                "the rules cannot be compared with it, as no call follows another of its session"
            )
        off = (
            f"{self.predicted / self.recorded - 1:+.1%}" if self.recorded else "none were recorded"
        )
        return (
            f"check: the rules predict {self.predicted:,.0f} cached tokens for the recorded arms, "
            f"the log has {self.recorded:,.0f} in {self.steps:,} steps ({off})"
        )


def cache_check(steps: Trajectories, prices: Mapping[str, ArmPrice]) -> CacheCheck | None:
    """The rules against the log; None where no step says how much was read from a cache."""
    known = ~np.isnan(steps.read)
    if not known.any():
        return None
    predicted = replay(steps, steps.arm, prices, steps.arms, shared=False).read_most
    later = np.diff(steps.trajectory, prepend=-1) == 0
    return CacheCheck(
        float(predicted[known].sum()), float(steps.read[known].sum()), int(known.sum()),
        int((later & known).sum()),
    )  # fmt: skip
