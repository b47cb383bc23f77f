"""Many findings of one check put together: an arm each, with one cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from routeyard.pipelines.audit.finding import Found

#: Findings of one kind and severity up to which each is listed alone, and parts that are named.
ALONE, TOLD = 2, 3


def by_severity(found: Iterable[Found]) -> Iterator[list[Found]]:
    """What a check found, each alone; of one severity together where there are many."""
    listed: dict[str | None, list[Found]] = {}
    for one in found:
        listed.setdefault(one.severity, []).append(one)
    for some in listed.values():
        if len(some) > ALONE:
            yield sorted(some, key=lambda one: -len(one.rows))
        else:
            yield from ([one] for one in some)


def together(some: Sequence[Found]) -> Found:
    """One finding about all that some are about; mending it mends each of them."""
    first = some[0]
    says = "; ".join(f"{one.about}: {one.says}" for one in some[:TOLD])
    rest = len(some) - TOLD
    rows = np.concatenate([one.rows for one in some])
    swaps = [one.swap for one in some if one.swap is not None]
    after = None
    if first.before is not None:
        after = first.before.copy()
        for one in some:
            if one.after is not None:
                after = np.where(one.after != first.before, one.after, after)
    return Found(
        about=", ".join(one.about for one in some),
        says=f"{says}; and {rest:,} more" if rest > 0 else says,
        rows=rows,
        severity=first.severity,
        swap=np.concatenate(swaps) if swaps else None,
        before=first.before,
        after=after,
    )
