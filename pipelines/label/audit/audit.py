"""What is wrong, or may be, with the labels of a benchmark.

Every check is a query over verdicts and labels; what it finds is a list of
findings with the rows behind them. Nothing is changed: a finding is for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from routeyard.pipelines.label.audit import noise, texts
from routeyard.pipelines.label.audit.agreement import cohen_kappa
from routeyard.pipelines.label.audit.questions import question
from routeyard.pipelines.label.audit.thresholds import by_policy
from routeyard.pipelines.label.audit.wrong_keys import wrong_keys
from routeyard.pipelines.label.verdict_matrix import newest
from routeyard.schemas.recipe.label import Label

#: Answers of a model below which no share is judged.
LEAST = 20
_WRONG_KEY = (
    "{agreeing} of {answered} models say {consensus!r}, the reference {references!r}: wrong with "
    "probability {probability:.2f}"
)
#: Kind of a finding → the table whose rows it is about, the column that names what, and what it
#: says of a row.
_SAYS = {
    "unreadable_model": (
        "abstentions", "model_id", "{share:.1%} of its {answers:,} answers could not be read",
    ),
    "conflicting_run": (
        "conflicts", "model_id", "{share:.1%} of its answers commit to several different answers "
        "(median model {median_share:.1%}): neither the first nor the last can be trusted",
    ),
    "constant_fill_in": (
        "fill_ins", "model_id", "where its text holds no answer ({unreadable:,} times) stored "
        "labels are right {right_at_fill_in:.0%} of the time when the reference is {fill_in!r}, "
        "{right_elsewhere:.0%} otherwise: a constant was filled in",
    ),
    "suspect_gold": ("suspect_gold", "query_id", _WRONG_KEY),
    "doubtful_question": (
        "suspect_gold", "query_id", _WRONG_KEY + "; no answer has half of the models, so the "
        "question may be at fault",
    ),
    "stored_labels_differ": (
        "stored_accuracy", "model_id", "{differ:,} of {answers:,} stored labels differ from the "
        "regrade: {stored:.1%} as stored, {regraded:.1%} regraded ({read_right:,} read as right "
        "and stored as wrong, {read_wrong:,} the reverse)",
    ),
    "duplicate_conflict": (
        "duplicate_conflicts", "group_id", "{questions} near-duplicates with {conflict}",
    ),
}  # fmt: skip
#: Which rows of the table are findings, where not all are.
_DOUBTFUL: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "unreadable_model": lambda row: row["answers"] >= LEAST and row["share"] >= 0.5,
    # Often in itself, and beside the other models.
    "conflicting_run": lambda row: (
        row["answers"] >= LEAST and row["share"] >= max(0.05, 4 * row["median_share"])
    ),
    "suspect_gold": lambda row: not row["apart"],
    "doubtful_question": lambda row: row["apart"],
    "stored_labels_differ": lambda row: row["differ"] > 0,
}


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
    policy: Label | None = None,
) -> Audit:
    """Look for labels that should not be trusted.

    Args:
        duplicates: Near-duplicate groups, where they were looked for.
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

        connection.register("confusion", confusion := ask("confusion"))
        tables = {
            "confusion": confusion,
            "abstentions": ask("abstentions"),
            "conflicts": ask("conflicts"),
            "fill_ins": _beyond_chance(ask("fill_ins", LEAST)),
            "stored_labels": ask("stored"),
            "stored_accuracy": ask("stored_accuracy"),
        }
        connection.register("said", said := ask("said"))
        connection.register("wrong", wrong_keys(said))
        tables["suspect_gold"] = ask("suspect")
        connection.register("texts", responses.select(["query_id", "model_id", "sample", "text"]))
        behind, doubts = texts.look(connection)
        tables |= behind
        if duplicates is not None:
            connection.register("duplicates", duplicates)
            tables["duplicate_conflicts"] = ask("duplicates")
        tables["agreement"] = _agreement(ask("agreement"))
    tables["accuracy"] = noise.intervals(labels, tables["suspect_gold"])
    return Audit(_findings(tables) + [LabelDoubt(*one) for one in doubts], tables)


_AGREEMENT = pa.schema(
    [
        *((name, pa.string()) for name in ("task", "scorer_a", "scorer_b")),
        ("n", pa.int64()),
        *((name, pa.float64()) for name in ("agree", "kappa", "alpha_all")),
    ]
)


def _agreement(pairs: pa.Table) -> pa.Table:
    """Cohen's κ per task and pair of scorers, from how often both, one or neither say right."""
    rows = pairs.to_pylist()
    for row in rows:
        cells = [row[name] for name in ("both", "first", "second", "none")]
        row |= {"n": sum(cells), "agree": (cells[0] + cells[3]) / sum(cells)}
        row["kappa"] = cohen_kappa(*cells)
    return pa.Table.from_pylist(rows, schema=_AGREEMENT)


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


def _findings(tables: Mapping[str, pa.Table]) -> list[LabelDoubt]:
    return [
        LabelDoubt(kind, row[about], says.format(**_shown(row)), row.get("probability"))
        for kind, (table, about, says) in _SAYS.items()
        if table in tables
        for row in tables[table].to_pylist()
        if kind not in _DOUBTFUL or _DOUBTFUL[kind](row)
    ]


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """The values as a sentence has them: lists joined, and texts cut."""
    texts = {name: "; ".join(one) if isinstance(one, list) else one for name, one in row.items()}
    return {name: one[:60] if isinstance(one, str) else one for name, one in texts.items()}
