"""The grid of trainings of `zoo tune`: routers × encoders × amounts of data × ways × seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.tuning.cell import REFERENCE, TuningCell
from routeyard.pipelines.tuning.heads import HEADS, head_of


@dataclass(frozen=True)
class Grid:
    """Attributes:
    amounts: numbers of train questions; 0 is all there are.
    ways: `frozen`, `tuned` or both.
    """

    routers: tuple[str, ...]
    encoders: tuple[str, ...]
    amounts: tuple[int, ...]
    ways: tuple[str, ...]
    seeds: tuple[int, ...]

    def cells(self, encoder: str, available: int) -> list[TuningCell]:
        """The cells of one encoder: frozen ones first, the neighbours' reference among them."""
        rows = sorted({min(n, available) if n else available for n in self.amounts})
        found = []
        for n in rows:
            if "frozen" in self.ways:
                found.append(TuningCell(REFERENCE, encoder, n, False, self.seeds[0]))
            for way in self.ways:
                found += [
                    TuningCell(router, encoder, n, way == "tuned", seed)
                    for router in self.routers
                    for seed in self.seeds
                ]
        return found


def grid_of(
    *,
    routers: Sequence[str] | None,
    encoders: Sequence[str],
    rows: Sequence[str],
    ways: Sequence[str],
    seeds: Sequence[str],
) -> Grid:
    """The grid of options as text: `all` rows, numbers as digits; None for all routers.

    Raises:
        UnknownName: there is no such router.
        BadInput: a way or a number cannot be read, or nothing would be trained.
    """
    names = list(HEADS) if routers is None else list(routers)
    for name in names:
        head_of(name, 0)
    if not ways or set(ways) - {"frozen", "tuned"}:
        raise BadInput(f"expected frozen, tuned or both; got {','.join(ways)!r}", where="--ways")
    try:
        amounts = tuple(0 if word == "all" else int(word) for word in rows)
        drawn = tuple(int(word) for word in seeds)
    except ValueError as error:
        raise BadInput(f"--rows and --seeds are numbers: {error}") from error
    if not (names and encoders and amounts and drawn):
        raise BadInput("the grid is empty", next_step="name routers, encoders, rows and seeds")
    if min(amounts) < 0:
        raise BadInput("a number of train questions is negative", next_step="--rows all")
    return Grid(tuple(names), tuple(encoders), amounts, tuple(ways), drawn)
