"""What is wrong, or may be, with the labels of a benchmark.

Every check is a query over verdicts and labels; what it finds is a list of
findings with the rows behind them. Nothing is changed: a finding is for a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import pyarrow as pa

from routeyard.pipelines.label.audit import noise, texts
from routeyard.pipelines.label.audit.agreement import cohen_kappa, krippendorff_alpha
from routeyard.pipelines.label.audit.questions import question
from routeyard.pipelines.label.audit.thresholds import by_policy
from routeyard.pipelines.label.audit.wrong_keys import wrong_keys
from routeyard.pipelines.label.verdict_matrix import newest
from routeyard.schemas.recipe.label import Label


@dataclass(frozen=True, slots=True)
class LabelDoubt:
    """One thing to look at: `kind` for machines, `says` for people; `probability` that it is
    so, where one can be computed."""

    kind: str
    about: str
    says: str
    probability: float | None = None


@dataclass(frozen=True)
class Audit:
    """Findings, and the tables they rest on (each sorted; empty when nothing was found)."""

    findings: list[LabelDoubt]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)


def audit(
    queries: pa.Table,
    responses: pa.Table,
    verdicts: pa.Table,
    labels: pa.Table,
    duplicates: pa.Table | None = None,
    *,
    least: float = 0.1,
    unreadable: float = 0.5,
    conflicting: float = 0.05,
    conflict_ratio: float = 4.0,
    min_answers: int = 20,
    policy: Label | None = None,
) -> Audit:
    """Look for labels that should not be trusted.

    Args:
        duplicates: Near-duplicate groups, where they were looked for.
        least: Probability of being wrong from which a reference is a finding.
        unreadable: Share of abstentions from which a model is a finding.
        conflicting: Share of texts that commit to several answers from which, and
            `conflict_ratio`: multiple of the median model's share from which, a
            run is a finding.
        min_answers: Answers below which no share is judged.
        policy: The recipe's; its thresholds say which grades are right, here as in `aggregate`.

    Tables: `agreement` and `confusion` (task, scorer pairs), `abstentions`,
    `conflicts` (model_id), `suspect_gold`, `fill_ins`, `duplicate_conflicts`,
    `stored_labels` (a regrade differs), `stored_accuracy`, `accuracy` (with
    label-noise interval), and of the stored texts `texts` (those that are no answers, by kind),
    `readable` (accuracy without them) and `both_ways`.
    """
    import duckdb

    current = newest(verdicts)
    if policy is not None:
        current = by_policy(current, queries, policy)
    with duckdb.connect() as connection:
        for name, table in (("queries", queries), ("verdicts", current), ("labels", labels)):
            connection.register(name, table)
        columns = ["query_id", "model_id", "sample", "graded_against"]
        connection.register("responses", responses.select(columns))

        def ask(name: str, *values: object) -> pa.Table:
            return connection.sql(question(name), params=list(values)).to_arrow_table()

        tables = {
            "confusion": ask("confusion"),
            "abstentions": ask("abstentions"),
            "conflicts": ask("conflicts"),
            "fill_ins": _beyond_chance(ask("fill_ins", min_answers)),
            "stored_labels": ask("stored"),
            "stored_accuracy": ask("stored_accuracy"),
        }
        connection.register("said", said := ask("said"))
        connection.register("wrong", wrong_keys(said, least=least))
        tables["suspect_gold"] = ask("suspect")
        connection.register("texts", responses.select(["query_id", "model_id", "sample", "text"]))
        behind, doubts = texts.look(connection)
        tables |= behind
        if duplicates is not None:
            connection.register("duplicates", duplicates)
            tables["duplicate_conflicts"] = ask("duplicates")
    tables["agreement"] = _agreement(queries, current)
    tables["accuracy"] = noise.intervals(labels, tables["suspect_gold"])
    found = _findings(tables, unreadable, conflicting, conflict_ratio, min_answers)
    found += [LabelDoubt(*one) for one in doubts]
    return Audit(found, tables)


def _agreement(queries: pa.Table, current: pa.Table) -> pa.Table:
    """Cohen's κ per task and pair of scorers; Krippendorff's α over all of a task's."""
    import duckdb
    import numpy as np

    rows: list[dict[str, Any]] = []
    with duckdb.connect() as connection:
        connection.register("verdicts", current)
        connection.register("queries", queries.select(["query_id", "task"]))
        wide = connection.sql(question("agreement")).to_arrow_table()
    tasks = wide.column("task").to_pylist()
    scorers, rights = wide.column("scorers").to_pylist(), wide.column("rights").to_pylist()
    for task in sorted(set(tasks)):
        units = [
            dict(zip(s, r, strict=True))
            for t, s, r in zip(tasks, scorers, rights, strict=True)
            if t == task
        ]
        names = sorted({name for unit in units for name in unit})
        ratings = np.array([[unit.get(name, np.nan) for unit in units] for name in names], float)
        alpha = krippendorff_alpha(ratings)
        for (a, ours), (b, theirs) in combinations(zip(names, ratings, strict=True), 2):
            both = ~np.isnan(ours) & ~np.isnan(theirs)
            if not both.any():
                continue
            left, right = ours[both], theirs[both]
            yes = (left > 0, right > 0)
            cells = [int((x & y).sum()) for x, y in product(*((side, ~side) for side in yes))]
            row = (
                task,
                a,
                b,
                both.sum(),
                (left == right).mean(),
                cohen_kappa(*cells),
                _known(alpha),
            )
            rows.append(dict(zip(_AGREEMENT.names, row, strict=True)))
    return pa.Table.from_pylist(rows, schema=_AGREEMENT)


_AGREEMENT = pa.schema(
    [
        *((name, pa.string()) for name in ("task", "scorer_a", "scorer_b")),
        ("n", pa.int64()),
        *((name, pa.float64()) for name in ("agree", "kappa", "alpha_all")),
    ]
)


def _known(value: float) -> float | None:
    return None if value != value else value


def _beyond_chance(fill_ins: pa.Table, level: float = 0.001) -> pa.Table:
    """Fill-ins that chance does not explain: the right labels among the unreadable answers
    fall on one letter's questions more often than a random draw of as many would
    (hypergeometric upper tail, times the letters that were tried).
    """
    from scipy.stats import hypergeom

    chance = []
    for row in fill_ins.to_pylist():
        right = round(row["right_at_fill_in"] * row["at_fill_in"])
        tail = hypergeom.sf(right - 1, row["unreadable"], row["right_in_all"], row["at_fill_in"])
        chance.append(min(1.0, float(tail) * row["letters"]))
    tested = fill_ins.drop_columns(["letters"]).append_column(
        "p_adjusted", pa.array(chance, pa.float64())
    )
    return tested.filter(pa.array([p < level for p in chance], pa.bool_()))


def _findings(
    tables: Mapping[str, pa.Table],
    unreadable: float,
    conflicting: float,
    conflict_ratio: float,
    min_answers: int,
) -> list[LabelDoubt]:
    found: list[LabelDoubt] = []
    for row in tables["abstentions"].to_pylist():
        if row["answers"] >= min_answers and row["share"] >= unreadable:
            says = f"{row['share']:.1%} of its {row['answers']:,} answers could not be read"
            found.append(LabelDoubt("unreadable_model", row["model_id"], says))
    for row in tables["conflicts"].to_pylist():
        bar = max(conflicting, conflict_ratio * row["median_share"])
        if row["answers"] >= min_answers and row["share"] >= bar:
            says = (
                f"{row['share']:.1%} of its answers commit to several different answers (median "
                f"model {row['median_share']:.1%}): neither the first nor the last can be trusted"
            )
            found.append(LabelDoubt("conflicting_run", row["model_id"], says))
    for row in tables["fill_ins"].to_pylist():
        says = (
            f"where its text holds no answer ({row['unreadable']:,} times) stored labels are right "
            f"{row['right_at_fill_in']:.0%} of the time when the reference is {row['fill_in']!r}, "
            f"{row['right_elsewhere']:.0%} otherwise: a constant was filled in"
        )
        found.append(LabelDoubt("constant_fill_in", row["model_id"], says))
    for row in tables["suspect_gold"].to_pylist():
        says = (
            f"{row['agreeing']} of {row['answered']} models say {row['consensus'][:60]!r}, "
            f"the reference {'; '.join(row['references'])[:60]!r}: wrong with probability "
            f"{row['probability']:.2f}"
        )
        if row["apart"]:
            says += "; no answer has half of the models, so the question may be at fault"
        kind = "doubtful_question" if row["apart"] else "suspect_gold"
        found.append(LabelDoubt(kind, row["query_id"], says, row["probability"]))
    for row in tables["stored_accuracy"].to_pylist():
        if row["differ"]:
            says = (
                f"{row['differ']:,} of {row['answers']:,} stored labels differ from the regrade: "
                f"{row['stored']:.1%} as stored, {row['regraded']:.1%} regraded "
                f"({row['read_right']:,} read as right and stored as wrong, "
                f"{row['read_wrong']:,} the reverse)"
            )
            found.append(LabelDoubt("stored_labels_differ", row["model_id"], says))
    for row in tables.get("duplicate_conflicts", pa.table({})).to_pylist():
        several = row["different_references"]
        what = f"{several} different references" if several > 1 else "labels that contradict"
        says = f"{row['questions']} near-duplicates with {what}"
        found.append(LabelDoubt("duplicate_conflict", row["group_id"], says))
    return found
