"""Labels that must not become a release: too many undecided, or grades that a rule contradicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from routeyard.pipelines.label.audit.agreement import cohen_kappa
from routeyard.pipelines.label.audit.questions import question
from routeyard.pipelines.label.audit.thresholds import by_policy
from routeyard.pipelines.label.policies import trusts_grades
from routeyard.pipelines.label.verdict_matrix import newest
from routeyard.pipelines.scorers.scorer import GIVEN
from routeyard.schemas.recipe import Label
from routeyard.schemas.statuses import ANSWERLESS

#: Answers of one model on a task from which its shares are judged.
LEAST = 100
#: Share of undecided answers that stops a release when it is surely larger.
UNDECIDED = 0.1
#: Change of a model's accuracy that stops a release while nobody has said whose labels count.
MOVED = 0.05
#: Tasks whose agreement is listed, the least first.
_SHOWN = 5


@dataclass(frozen=True)
class LabelGates:
    """What stops a release, each with the way out; and what to report about the labels."""

    stops: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def label_gates(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, labels: pa.Table, policy: Label
) -> LabelGates:
    """Gates over the labels of a build, per task and model.

    * Undecided: the share of answers without a label has a one-sided 95 % lower bound
      (Clopper and Pearson 1934) above 10 %, on a task with at least 100 answers of the
      model. Calls without an answer, and answers that their source left ungraded, do not count.
    * Grades: a recording carries grades, no policy says whose labels count (`trust`), and the
      rule would move a model's accuracy on a task of at least 100 graded answers by at least
      5 points, with a paired 95 % interval that excludes 0.

    Args:
        queries, responses, verdicts, labels: contract form.
        policy: Label section of the recipe.
    """
    import duckdb

    found = LabelGates()
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("queries", queries.select(["query_id", "task", "scorer", "references"]))
        connection.register("labels", labels)
        kept = responses.select(["query_id", "model_id", "status"])
        connection.register("responses", kept)
        connection.register("answerless", pa.table({"status": [*ANSWERLESS, "ungraded"]}))
        _undecided(connection.sql(question("undecided")).to_arrow_table().to_pylist(), found)
        if GIVEN in verdicts.column("scorer").unique().to_pylist():
            connection.register("verdicts", by_policy(newest(verdicts), queries, policy))
            connection.execute(question("graded"))
            rows = connection.sql(question("regraded")).to_arrow_table().to_pylist()
            _grades(rows, policy, connection, found)
    return found


def _undecided(rows: Sequence[dict[str, Any]], found: LabelGates) -> None:
    open_ = [row for row in rows if row["undecided"]]
    if not open_:
        return
    from scipy.special import betaincinv  # `scipy.stats` takes a second to import

    for row in open_:
        n, k = row["answers"], row["undecided"]
        row["share"], row["low"] = k / n, float(betaincinv(k, n - k + 1, 0.05))
    many = [row for row in open_ if row["answers"] >= LEAST and row["low"] > UNDECIDED]
    for task, of_task in _by_task(many):
        first = of_task[0]
        more = f"; and {len(of_task) - 1} more of its models" if len(of_task) > 1 else ""
        found.stops.append(
            {
                "what": f"expected a label for nearly every answer of task {task!r}; of model "
                f"{first['model_id']!r} {first['undecided']:,} of {first['answers']:,} answers are "
                f"undecided ({first['share']:.1%}, at least {first['low']:.1%} with 95 % "
                f"confidence, most often by scorer {first['scorer']!r}){more}",
                "next_step": "choose another 'scorer' for its source; or name a verifier or judge "
                "under label.default.then; or count what cannot be read as wrong, which the card "
                f"says: label: {{tasks: {{{task!r}: {{unreadable: incorrect}}}}}}",
            }
        )
    worst = max(open_, key=lambda row: (row["share"], row["answers"], row["model_id"]))
    found.notes.append(
        f"{sum(row['undecided'] for row in open_):,} of "
        f"{sum(row['answers'] for row in rows):,} answers are undecided, which leaves accuracies "
        f"between bounds; most of model {worst['model_id']!r} on task {worst['task']!r} "
        f"({worst['undecided']:,} of {worst['answers']:,}, {worst['share']:.1%})"
    )


def _grades(
    rows: Sequence[dict[str, Any]], policy: Label, connection: Any, found: LabelGates
) -> None:
    agreed = []
    for task, of_task in _by_task(rows):
        of = policy.policy_of(task)
        cells = [sum(row[name] for row in of_task) for name in ("both", "given", "rule", "none")]
        n, scorer = sum(cells), of_task[0]["scorer"]
        if not n:
            continue
        kappa = cohen_kappa(*cells)
        whose = "the grades" if trusts_grades(of) else "those of the rule"
        share = (cells[0] + cells[3]) / n
        agreed.append(
            (
                share,
                f"task {task!r}: grades of the recording and rule {scorer!r} agree on {share:.1%} "
                f"of {n:,} answers (κ {'undefined' if kappa is None else f'{kappa:.2f}'}); the "
                f"labels are {whose}",
            )
        )
        moved = [row for row in of_task if _moves(row)]
        if moved and of.trust is None and trusts_grades(of):
            worst = max(moved, key=lambda row: (abs(row["change"]), row["model_id"]))
            found.stops.append(_contradiction(task, scorer, worst, len(moved), connection))
    agreed.sort()
    found.notes.extend(note for _, note in agreed[:_SHOWN])
    if len(agreed) > _SHOWN:
        found.notes.append(
            f"grades and rules agree on at least {agreed[_SHOWN][0]:.1%} of the answers of "
            f"{len(agreed) - _SHOWN} more tasks"
        )


def _contradiction(
    task: str, scorer: str, worst: dict[str, Any], models: int, connection: Any
) -> dict[str, str]:
    """What stops the release: the model that the rule would move most, with three examples."""
    shown = connection.sql(question("graded_examples"), params=[task, worst["model_id"]])
    examples = "; ".join(
        f"{row['query_id']}: read {row['extracted']!r} for {row['reference']!r}, "
        f"{row['regraded']} by rule, {row['given']} as graded"
        for row in shown.to_arrow_table().to_pylist()
    )
    more = f" and of {models - 1} more models" if models > 1 else ""
    return {
        "what": f"the recording's grades of task {task!r} and rule {scorer!r} contradict each "
        f"other: of model {worst['model_id']!r} {worst['graded_right']:.1%} are right as graded "
        f"and {worst['rule_right']:.1%} by the rule ({worst['change']:+.1%}, 95 % interval "
        f"{worst['low']:+.1%} to {worst['high']:+.1%}){more}: {examples}",
        "next_step": "look at the examples and write whose labels count: label: {tasks: "
        f"{{{task!r}: {{trust: given}}}}}} keeps the recording's, 'trust: rules' takes the rule's; "
        "or choose a 'scorer' that reads these answers",
    }


def _moves(row: dict[str, Any]) -> bool:
    """Whether a model's accuracy surely differs by `MOVED` or more; fills in the interval."""
    n = row["both"] + row["given"] + row["rule"] + row["none"]
    if row["answers"] < LEAST or n < 2:
        return False
    change = (row["rule"] - row["given"]) / n
    spread = ((row["rule"] + row["given"]) / n - change**2) * n / (n - 1)
    reach = 1.96 * (max(spread, 0.0) / n) ** 0.5
    row |= {"change": change, "low": change - reach, "high": change + reach}
    row |= {"graded_right": (row["both"] + row["given"]) / n}
    row |= {"rule_right": (row["both"] + row["rule"]) / n}
    return bool(abs(change) >= MOVED and (row["low"] > 0 or row["high"] < 0))


def _by_task(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Rows of each task by name, those with the largest share of undecided answers first."""
    for task in sorted({row["task"] for row in rows}):
        of_task = [row for row in rows if row["task"] == task]
        yield task, sorted(of_task, key=lambda row: (-row.get("share", 0.0), row["model_id"]))
