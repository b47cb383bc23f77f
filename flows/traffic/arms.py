"""`routeyard arms`: what more effort, a longer answer or more samples gain, lose and cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from routeyard.flows.traffic.reading import with_ends
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.axes import AxisStep, axis_steps

#: Tasks with questions that flip back, shown for each step.
SHOWN = 5


@dataclass(frozen=True)
class ArmsReport:
    """Steps along the axes of a release's arms.

    Attributes:
        cannot: What the release cannot tell of them, one sentence each.
    """

    steps: list[AxisStep]
    cannot: list[str]

    def data(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self) | {"monotone": {" ".join(k): v for k, v in self._monotone().items()}}

    def lines(self) -> Iterator[str]:
        """The report for people."""
        for line, said in self._monotone().items():
            model, axis, fixed = line
            yield f"{model}, {axis}{f' ({fixed})' if fixed else ''}: {said}"
            for one in self.steps:
                if (one.model, one.axis, one.fixed) == line:
                    yield from _step(one)
        yield from self.cannot

    def _monotone(self) -> dict[tuple[str, str, str], str]:
        """(model, axis, other axes) → whether more is better all along."""
        lines: dict[tuple[str, str, str], list[AxisStep]] = {}
        for one in self.steps:
            lines.setdefault((one.model, one.axis, one.fixed), []).append(one)
        found = {}
        for line, steps in lines.items():
            rises = [one.rises for one in steps]
            falls = [" → ".join(one.names) for one in steps if one.rises is False]
            if falls:
                found[line] = f"more is not always better: it falls from {', '.join(falls)}"
            elif all(rises):
                found[line] = "more is better at every step"
            else:
                unclear = [" → ".join(one.names) for one in steps if one.rises is None]
                found[line] = f"whether more is better is unknown from {', '.join(unclear)}"
        return found


def _step(one: AxisStep) -> Iterator[str]:
    cost = "cost unknown" if one.cost is None else f"{with_ends(one.cost)} USD a question"
    point = "" if one.per_point is None else f", {with_ends(one.per_point)} USD a right answer"
    yield (
        f"  {one.names[0]} → {one.names[1]}: {one.less:.3f} → {one.more:.3f} "
        f"(gain {with_ends(one.gain)}), {one.gained:.1%} gained, {one.flipped_back:.1%} flip "
        f"back; {cost}{point}; {one.questions:,} questions"
    )
    shown = [f"{task} {count} ({', '.join(ids)})" for task, (count, ids) in one.back.items()]
    if shown:
        more = f"; {len(shown) - SHOWN} more tasks" if len(shown) > SHOWN else ""
        yield f"    flip back: {'; '.join(shown[:SHOWN])}{more}"


def arms_report(release: Path, *, resamples: int = 2_000) -> ArmsReport:
    """Each step along each axis of the arms of a release's pool.

    Raises:
        BadInput: the pool has no arms.
    """
    from routeyard.flows.evaluation.released import read_release
    from routeyard.pipelines.matrix.reading import core_of

    tables = read_release(release)
    core = core_of(tables.without("embeddings"))
    steps = axis_steps(tables["models"].to_pylist(), core, resamples=resamples, seed=0)
    if not steps:
        raise BadInput(
            "no two members of the pool are one model asked with less and with more effort, output "
            "or samples",
            where=str(release),
            next_step="declare axes in the pool, such as `axes: {effort: [low, medium, high]}`",
        )
    cannot = []
    if core.samples is None:
        cannot.append(
            "One answer of each arm: a question that flips back may do so by chance; ask for "
            "`samples` to tell."
        )
    if any(one.cost is None for one in steps):
        cannot.append("Costs are not known of every answer: state prices, cached tokens included.")
    return ArmsReport(steps, cannot)
