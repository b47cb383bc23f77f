"""A dense slice asked of the whole pool, and the sparse extension around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from routeyard.pipelines.common.arrays import dense_rows
from routeyard.pipelines.curate.rule import Curated, Rule, refused
from routeyard.pipelines.curate.split import (
    ids_of,
    places_of,
    split,
    splits_table,
    with_duplicates,
    with_splits,
)


def dense_sparse(
    tables: Mapping[str, pa.Table],
    *,
    slice_share: float | None = 0.1,
    validation: int = 3000,
    test: int = 5000,
    stratify: bool = True,
    seed: int = 0,
) -> Curated:
    """Schemes `dense` and `sparse`: a slice asked of all models, and the rest.

    A seeded slice (10 % of 300,000 prompts are 30,000) holds validation, test and
    the dense train set. The complement is the sparse train extension, with the
    same validation and test.

    Args:
        slice_share: Share drawn for the slice. null takes the questions that the
            sources mark with `dense`; then `sparse` trains on all questions outside
            validation and test, 302,371 of Nine-by-300k (the routing-plateau paper,
            Table 8), and `dense` is the split that a recipe of the slice alone makes.
    """
    queries = tables["queries"]
    part = partial(split, duplicates=tables.get("duplicates"), stratify=stratify, seed=seed)
    if slice_share is None:
        return _marked(tables, part, validation, test)
    n = len(queries)
    room = slice_share * n
    if not 0 < slice_share < 1 or validation + test >= room:
        raise refused(
            "dense_sparse",
            f"a slice of {slice_share:g} of {n} queries ({int(room)}) cannot hold validation "
            f"({validation}), test ({test}) and a train set",
            "raise slice_share or lower validation and test",
        )
    shares: dict[str, Any] = {"validation": validation / n, "test": test / n}
    place = places_of(part(queries, scheme="dense", train=1 - sum(shares.values()), **shares))
    rest = queries.filter(pa.array([place[q] == "train" for q in ids_of(queries)]))
    # Among what is left, the dense train set is a seeded share as well.
    share = (room - validation - test) / max(1, len(rest))
    cut = part(rest, scheme="dense-slice", train=1 - share, validation=0.0, test=share)
    inside = places_of(cut)
    held = [(query, name) for query, name in place.items() if name != "train"]
    rows = {"dense": [*held], "sparse": [*held]}
    for query, name in inside.items():
        rows["dense" if name == "test" else "sparse"].append((query, "train"))
    return with_splits(tables, splits_table(rows))


def _marked(
    tables: Mapping[str, pa.Table], part: Callable[..., pa.Table], validation: int, test: int
) -> Curated:
    queries = tables["queries"]
    inside = queries.filter(pa.array(dense_rows(queries)))
    if not len(inside):
        raise refused(
            "dense_sparse",
            "no question is marked as the dense slice",
            "give sources 'dense: n', or the rule a 'slice_share'",
        )
    train = max(2, len(inside))
    dense = part(inside, scheme="dense", train=train, validation=validation, test=test)
    held = {query: name for query, name in places_of(dense).items() if name != "train"}
    # A question outside the slice that is a twin of one held out would leak.
    closed = with_duplicates(queries, tables.get("duplicates"), set(held))
    rest = [(query, "train") for query in ids_of(queries) if query not in closed]
    sparse = splits_table({"sparse": [*held.items(), *rest]})
    figures = {"slice": len(inside), "left_out_as_duplicates": len(closed) - len(held)}
    return with_splits(tables, pa.concat_tables([dense, sparse]), figures)


RULE = Rule("dense_sparse", dense_sparse, reads=("duplicates",))
