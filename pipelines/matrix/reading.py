"""Reading: the evaluation core of a release's tables."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Floats, Ints, Names
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.row_groups import column_batches, positions_within
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.costs import costs_of, priced
from routeyard.pipelines.matrix.dense import codes, dense, read_outcomes
from routeyard.pipelines.matrix.embeddings import (
    encoder_vectors,
    first_encoder,
    width_of,
)
from routeyard.pipelines.matrix.examples import Arms
from routeyard.pipelines.matrix.memmap import allocate
from routeyard.pipelines.matrix.memory_check import check_fits
from routeyard.pipelines.matrix.model_order import best_first, not_test
from routeyard.pipelines.matrix.model_signals import descriptors_of, signals_of, states_of
from routeyard.pipelines.matrix.question_columns import names_of, read_asked
from routeyard.schemas import SPLITS, StoredTable
from routeyard.schemas.stored import TableStore

#: Tables that are read from disk part by part.
_IN_PARTS = ("queries", "splits", "outcomes", "verdicts", "embeddings")


def from_tables(
    queries: pa.Table | StoredTable,
    models: pa.Table,
    labels: pa.Table | None = None,
    responses: pa.Table | None = None,
    embeddings: pa.Table | StoredTable | None = None,
    splits: pa.Table | StoredTable | None = None,
    duplicates: pa.Table | None = None,
    *,
    outcomes: pa.Table | StoredTable | None = None,
    verdicts: pa.Table | StoredTable | None = None,
    model_splits: pa.Table | None = None,
    signals: pa.Table | None = None,
    entropies: pa.Table | None = None,
    hidden_states: pa.Table | None = None,
    descriptors: pa.Table | None = None,
    encoder: str | None = None,
) -> Core:
    """Core of a release or of staged tables (contracts in `schemas`).

    Args:
        labels: the label matrix in long form; rows of queries or models that
            are not in their tables are ignored.
        responses: tokens, latency and dollars; without them only the `params`
            measure can exist.
        outcomes: labels and costs in one; where they are given, `labels` and `responses`
            are not read. A table on disk is read a row group at a time.
        encoder: which embeddings to take when there are several; by default
            the first name in order.
        verdicts: needed for the oracle's correction for sampling noise, when
            responses were sampled more than once.
        signals, entropies, hidden_states, descriptors: what models show of
            themselves, for the routers that read it (`shown`).

    Raises:
        BadInput: no query or no model is left, or embeddings are incomplete.
    """
    query_ids, asked = read_asked(queries)
    model_ids = pa.array(sorted(models.column("model_id").to_pylist()), pa.string())
    n, m = len(query_ids), len(model_ids)
    if not n or not m:
        raise BadInput(
            f"nothing to evaluate: {n} queries and {m} models",
            next_step="look at `removals` for what took them away",
        )
    paid = None
    if outcomes is not None:
        decided, paid = read_outcomes(outcomes, query_ids, model_ids)
    elif labels is not None:
        decided = _of_labels(labels, query_ids, model_ids)
    else:
        raise BadInput("nothing to evaluate: there are neither labels nor outcomes")
    costs = costs_of(models, responses, paid, query_ids, model_ids)
    found = _splits(splits, query_ids)
    every, model_ids = best_first(decided, costs, model_ids, not_test(found, n))
    names = tuple(model_ids.to_pylist())
    hidden, hidden_of = states_of(hidden_states, query_ids)
    return Core(
        **asked,
        **decided,
        model_ids=names,
        costs={name: cost for name, cost in every.items() if priced(cost).all()},
        part_costs={name: cost for name, cost in every.items() if not priced(cost).all()},
        splits=found,
        groups=_groups(duplicates, query_ids),
        duplicates_known=duplicates is not None,
        unseen=_unseen(model_splits, names),
        embeddings=encoder_vectors(embeddings, query_ids, encoder),
        encoder=encoder or first_encoder(embeddings),
        samples=_samples(verdicts, outcomes if labels is None else labels, query_ids, model_ids),
        kinds=_kinds(models),
        signals=signals_of(signals, entropies, query_ids, model_ids),
        hidden=hidden,
        hidden_of=hidden_of,
        descriptors=descriptors_of(descriptors, model_ids),
        arms=_arms(models, names),
    )


def core_of(tables: Mapping[str, pa.Table], *, whole: bool = True) -> Core:
    """Core of a release's tables by name; those that an evaluation does not read are ignored.

    Queries, splits, outcomes, verdicts and embeddings on disk are read from there, part
    by part; of `queries` only the columns of `asked` are read.

    Args:
        whole: as in `check_fits`; an evaluation and a certificate work on blocks of questions.

    Raises:
        BadInput: as `from_tables`.
        OutOfMemory: there is not memory enough.
    """
    names = set(inspect.signature(from_tables).parameters) - {"encoder"}
    if "outcomes" in tables:
        names -= {"responses", "labels"}  # the largest tables
    given: dict[str, Any] = {}
    for name in sorted(names & set(tables)):
        on_disk = None
        if name in _IN_PARTS and isinstance(tables, TableStore):
            on_disk = cast(TableStore, tables).stored(name)
        given[name] = tables[name] if on_disk is None else on_disk
    if isinstance(given["queries"], StoredTable):
        vectors = given.get("embeddings")
        width = width_of(vectors) if isinstance(vectors, StoredTable) else 0
        check_fits(given["queries"].num_rows, given["models"].num_rows, width, whole=whole)
    return from_tables(**given)


def _of_labels(labels: pa.Table, query_ids: pa.Array, model_ids: pa.Array) -> dict[str, Any]:
    """The fields of `Core` that `labels` holds: what `read_outcomes` finds, without costs."""
    shape = (len(query_ids), len(model_ids))
    rows = codes(labels.column("query_id"), query_ids)
    columns = codes(labels.column("model_id"), model_ids)
    decided = labels.filter(pc.is_valid(labels.column("score")))
    correct = None
    if "correct" in labels.column_names:
        correct = dense(rows, columns, labels.column("correct").cast(pa.int8()), shape)
    unreadable = pc.equal(labels.column("decided_by"), "unreadable")
    return {
        "labels": dense(rows, columns, labels.column("score"), shape),
        "correct": correct,
        "contested": pc.mean(decided.column("contested")).as_py(),
        "unreadable": pc.mean(unreadable).as_py(),
    }


def _kinds(models: pa.Table) -> dict[str, str]:
    if "kind" not in models.column_names:
        return {}
    return dict(zip(*(models.column(c).to_pylist() for c in ("model_id", "kind")), strict=True))


#: Columns of `models` that say how an arm is asked, beside its output budget.
_AXES = ("effort", "prompt_form", "tools")


def _arms(models: pa.Table, names: tuple[str, ...]) -> Arms | None:
    """Models as arms; None where no member of the pool is an arm of a model."""
    if not {"base_model", "output_budget"} <= set(models.column_names):
        return None  # of an earlier release
    rows = {row["model_id"]: row for row in models.to_pylist()}
    axes = ("output_budget", *(one for one in _AXES if one in models.column_names))
    if not any(row["base_model"] and any(row[axis] for axis in axes) for row in rows.values()):
        return None
    asked = [(rows[name]["provider"], rows[name]["base_model"] or name) for name in names]

    def column(key: str, per: float = 1.0) -> Floats:
        found = np.array([rows[name][key] for name in names], dtype=np.float64)
        return np.asarray(found / per)

    return Arms(
        np.array([asked.index(one) for one in asked], dtype=np.float64),
        column("output_budget"), column("price_in", 1e6), column("price_out", 1e6),
    )  # fmt: skip


def _splits(splits: pa.Table | StoredTable | None, query_ids: pa.Array) -> dict[str, Names]:
    found: dict[str, Names] = {}
    if splits is None:
        return found
    if isinstance(splits, StoredTable):
        SPLITS.conform(splits.schema.empty_table(), where=str(splits.path))
    for part in column_batches(splits, ["scheme", "query_id", "split"]):
        at = positions_within(part.column("query_id"), query_ids)
        schemes, names = (names_of([part.column(k)]) for k in ("scheme", "split"))
        for scheme in np.unique(schemes).tolist():
            if scheme not in found:
                found[scheme] = allocate((len(query_ids),), "<U10")
                found[scheme][:] = ""
            here = (schemes == scheme) & (at >= 0)
            found[scheme][at[here]] = names[here]
    return dict(sorted(found.items()))


def _groups(duplicates: pa.Table | None, query_ids: pa.Array) -> Ints:
    """Group number per query; several encoders or thresholds: the first in order counts."""
    groups = np.arange(len(query_ids), dtype=np.int64)
    if duplicates is None or not duplicates.num_rows:
        return groups
    kinds = (duplicates.column(name).to_pylist() for name in ("encoder", "threshold"))
    encoder, threshold = min(zip(*kinds, strict=True))
    part = duplicates.filter(
        (pc.field("encoder") == encoder) & (pc.field("threshold") == threshold)
    )
    at = codes(part.column("query_id"), query_ids)
    names = np.unique(
        np.array(part.column("group_id").to_pylist(), dtype=np.str_), return_inverse=True
    )[1]
    # Numbers of groups start past those of the queries that are in none.
    groups[at[at >= 0]] = len(groups) + names[at >= 0]
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _unseen(model_splits: pa.Table | None, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    if model_splits is not None:
        for row in model_splits.to_pylist():
            found.setdefault(row["scheme"], [])
            if row["split"] == "unseen" and row["model_id"] in names:
                found[row["scheme"]].append(row["model_id"])
    return {scheme: tuple(sorted(models)) for scheme, models in sorted(found.items())}


def _samples(
    verdicts: pa.Table | StoredTable | None,
    labels: pa.Table | StoredTable | None,
    query_ids: pa.Array,
    model_ids: pa.Array,
) -> Floats | None:
    """(n, m, s) score per sample by the scorer that decided the label."""
    if verdicts is None or labels is None or not verdicts.num_rows:
        return None
    if not pc.any(pc.greater(_some(verdicts, ["sample"]).column(0), 0)).as_py():
        return None  # one answer each, as in most releases: the ids need not be read
    decided = _some(labels, ["query_id", "model_id", "decided_by"])
    decided = decided.rename_columns(["query_id", "model_id", "scorer"])
    wanted = ["query_id", "model_id", "scorer", "sample", "score"]
    judged = _some(verdicts, wanted).join(
        decided, keys=["query_id", "model_id", "scorer"], join_type="left semi"
    )
    if not judged.num_rows:
        return None
    sample = judged.column("sample").to_numpy().astype(np.int64)
    n_samples = int(sample.max()) + 1
    if n_samples < 2:
        return None
    rows = codes(judged.column("query_id"), query_ids)
    columns = codes(judged.column("model_id"), model_ids)
    m = len(model_ids)
    cell = np.where(columns >= 0, columns * n_samples + sample, -1)
    flat = dense(rows, cell, judged.column("score"), (len(query_ids), m * n_samples))
    return flat.reshape(len(query_ids), m, n_samples)


def _some(table: pa.Table | StoredTable, columns: list[str]) -> pa.Table:
    return table.read(columns) if isinstance(table, StoredTable) else table.select(columns)
