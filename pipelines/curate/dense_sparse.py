"""A dense slice asked of the whole pool, and the sparse extension around it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pipelines.curate.rule import Curated, Rule
from pipelines.curate.split import ids_of, split, splits_table, units_of, with_splits
from pipelines.dense_slice import dense_rows
from pipelines.errors import RecipeError


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
    if slice_share is None:
        return _marked(tables, validation, test, stratify, seed)
    n = len(queries)
    room = slice_share * n
    if not 0 < slice_share < 1 or validation + test >= room:
        raise RecipeError(
            f"a slice of {slice_share:g} of {n} queries ({int(room)}) cannot hold validation "
            f"({validation}), test ({test}) and a train set",
            where="curate: dense_sparse",
            next_step="raise slice_share or lower validation and test",
        )
    shares = (validation / n, test / n)
    parts = split(
        queries,
        tables.get("duplicates"),
        scheme="dense",
        train=1 - sum(shares),
        validation=shares[0],
        test=shares[1],
        stratify=stratify,
        seed=seed,
    )
    where = dict(zip(*(parts.column(c).to_pylist() for c in ("query_id", "split")), strict=True))
    rest = queries.filter(pa.array([where[q] == "train" for q in ids_of(queries)]))
    # Among what is left, the dense train set is a seeded share as well.
    share = (room - validation - test) / max(1, len(rest))
    cut = split(
        rest,
        tables.get("duplicates"),
        scheme="dense-slice",
        train=1 - share,
        validation=0.0,
        test=share,
        stratify=stratify,
        seed=seed,
    )
    inside = dict(zip(*(cut.column(c).to_pylist() for c in ("query_id", "split")), strict=True))
    rows: dict[str, list[tuple[str, str]]] = {"dense": [], "sparse": []}
    for query in ids_of(queries):
        if where[query] != "train":
            rows["dense"].append((query, where[query]))
            rows["sparse"].append((query, where[query]))
        else:
            rows["dense" if inside[query] == "test" else "sparse"].append((query, "train"))
    return with_splits(tables, splits_table(rows))


def _marked(
    tables: Mapping[str, pa.Table], validation: int, test: int, stratify: bool, seed: int
) -> Curated:
    queries = tables["queries"]
    inside = queries.filter(pa.array(dense_rows(queries)))
    if not len(inside):
        raise RecipeError(
            "no question is marked as the dense slice",
            where="curate: dense_sparse",
            next_step="give sources 'dense: n', or the rule a 'slice_share'",
        )
    dense = split(
        inside,
        tables.get("duplicates"),
        scheme="dense",
        train=max(2, len(inside)),
        validation=validation,
        test=test,
        stratify=stratify,
        seed=seed,
    )
    held = {row["query_id"]: row["split"] for row in dense.to_pylist() if row["split"] != "train"}
    # A question outside the slice that is a twin of one held out would leak.
    leaking = {
        member
        for unit in units_of(queries, tables.get("duplicates"), "sparse")
        if held.keys() & set(unit.members)
        for member in unit.members
    }
    rest = [(query, "train") for query in ids_of(queries) if query not in leaking]
    sparse = splits_table({"sparse": [*held.items(), *rest]})
    figures = {"slice": len(inside), "left_out_as_duplicates": len(leaking) - len(held)}
    return with_splits(tables, pa.concat_tables([dense, sparse]), figures)


RULE = Rule("dense_sparse", dense_sparse, reads=("duplicates",))
