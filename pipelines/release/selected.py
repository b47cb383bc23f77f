"""Rows of a release, selected by split or by what decided them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.release.reader import OpenRelease


def of_split(release: OpenRelease, table: pa.Table, split: str | None) -> pa.Table:
    """Rows of a table whose query is in `split` (train, validation or test); all for None."""
    if split is None:
        return table
    splits = release.arrow("splits")
    wanted = splits.filter(pc.equal(splits["split"], split)).column("query_id")
    return table.filter(pc.is_in(table["query_id"], value_set=wanted.combine_chunks()))


def queries_of(release: OpenRelease, split: str | None = None) -> pa.Table:
    """The queries of a release, or of one of its splits.

    Raises:
        BadInput: the release has none.
    """
    found = of_split(release, release.arrow("queries"), split)
    if not found.num_rows:
        raise BadInput(
            f"the release has no queries of split {split!r}" if split else "no queries",
            where=str(release.path),
            next_step="use train, validation or test",
        )
    return found


def preference_pairs(
    release: OpenRelease, *, basis: str | None = None, split: str | None = None
) -> pa.Table:
    """Preference pairs of a release that were decided by `basis`, of the queries of `split`.

    Raises:
        BadInput: the release has none.
    """
    if "preferences" not in release.tables:
        raise BadInput(
            "the release has no preference pairs",
            where=str(release.path),
            next_step="add the curation rule 'preference' to its recipe and build again",
        )
    pairs = of_split(release, release.arrow("preferences"), split)
    return pairs if basis is None else pairs.filter(pc.equal(pairs["basis"], basis))
