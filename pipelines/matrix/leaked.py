"""Test questions that are also in train: with the same words, or as near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Bools, Ints
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.texts import parts_of, some
from routeyard.schemas.leaks import marks_of
from routeyard.schemas.withheld import WITHHELD


def verbatim(core: Core, test: Ints, train: Ints) -> Bools:
    """(t,) test questions with the words of a train question, whatever their case and space.

    A withheld text is like no other; `withheld` says whether there are any.
    """
    known = _marks(some(core.prompts, train))
    said = known.filter(pc.invert(pc.is_in(known, value_set=_marks([WITHHELD]))))
    return np.asarray(pc.is_in(_marks(some(core.prompts, test)), value_set=said), dtype=bool)


def withheld(core: Core, rows: Ints) -> bool:
    """Whether the text of some of these questions is withheld."""
    return (
        any(text == WITHHELD for text in some(core.prompts, rows)) if len(core.prompts) else False
    )


def near(core: Core, test: Ints, train: Ints) -> Bools | None:
    """(t,) test questions in a group of near-duplicates with a train question, as the
    release's `duplicates` has it; None when nobody looked for any."""
    if not core.duplicates_known:
        return None
    return np.isin(core.groups[test], core.groups[train])


def leaked(core: Core, scheme: str, test: Ints) -> Bools:
    """(t,) these questions, those that are in train in either way."""
    train = np.flatnonzero(core.splits[scheme] == "train")
    alike = near(core, test, train)
    found = np.zeros(len(test), dtype=bool) if alike is None else alike
    return found | verbatim(core, test, train) if len(core.prompts) else found


def _marks(texts: Sequence[str]) -> pa.Array:
    """16 bytes for each text: the texts of all train questions need not be held."""
    return pa.concat_arrays([marks_of(part) for part in parts_of(texts)])
