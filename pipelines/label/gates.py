"""Labels that must not become a release: too many undecided, or grades that a rule contradicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from routeyard.pipelines.label.audit.agreement import cohen_kappa
from routeyard.pipelines.label.audit.questions import answer
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
    found = LabelGates()
    asked = queries.select(["query_id", "task", "scorer", "references"])
    rows = answer(
        "undecided",
        queries=asked,
        labels=labels,
        responses=responses.select(["query_id", "model_id", "status"]),
        answerless=pa.table({"status": [*ANSWERLESS, "ungraded"]}),
    )
    _undecided(rows.to_pylist(), found)
    if GIVEN in verdicts.column("scorer").unique().to_pylist():
        current = by_policy(newest(verdicts), queries, policy)
        _grades({"queries": asked, "verdicts": current}, policy, found)
    return found


def _undecided(rows: Sequence[dict[str, Any]], found: LabelGates) -> None:
    open_ = [row for row in rows if row["undecided"]]
    if not open_:
        return
    from scipy.special import betaincinv  # `scipy.stats` takes a second to import

    for row in open_:
        n, k = row["answers"], row["undecided"]
        row["low"] = float(betaincinv(k, n - k + 1, 0.05))
    many = [row for row in open_ if row["answers"] >= LEAST and row["low"] > UNDECIDED]
    many.sort(key=lambda row: (row["task"], -row["share"], row["model_id"]))
    for task, of_task in groupby(many, key=itemgetter("task")):
        first, *others = of_task
        more = f"; and {len(others)} more of its models" if others else ""
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


def _grades(tables: Mapping[str, pa.Table], policy: Label, found: LabelGates) -> None:
    agreed = []
    rows = answer("regraded", LEAST, MOVED, **tables).to_pylist()
    for total in (row for row in rows if row["model_id"] is None):
        task, scorer, of = total["task"], total["scorer"], policy.policy_of(total["task"])
        kappa = cohen_kappa(*(total[name] for name in ("both", "given", "rule", "none")))
        whose = "the grades" if trusts_grades(of) else "those of the rule"
        share = (total["both"] + total["none"]) / total["n"]
        agreed.append(
            (
                share,
                f"task {task!r}: grades of the recording and rule {scorer!r} agree on {share:.1%} "
                f"of {total['n']:,} answers (κ {'undefined' if kappa is None else f'{kappa:.2f}'});"
                f" the labels are {whose}",
            )
        )
        moved = [row for row in rows if row["task"] == task and row["model_id"] and row["moves"]]
        if moved and of.trust is None and trusts_grades(of):
            found.stops.append(_contradiction(moved, tables))
    agreed.sort()
    found.notes.extend(note for _, note in agreed[:_SHOWN])
    if len(agreed) > _SHOWN:
        found.notes.append(
            f"grades and rules agree on at least {agreed[_SHOWN][0]:.1%} of the answers of "
            f"{len(agreed) - _SHOWN} more tasks"
        )


def _contradiction(
    moved: Sequence[dict[str, Any]], tables: Mapping[str, pa.Table]
) -> dict[str, str]:
    """What stops the release: the model that the rule would move most, with three examples."""
    worst, *others = moved
    task, scorer = worst["task"], worst["scorer"]
    examples = "; ".join(
        f"{row['query_id']}: read {row['extracted']!r} for {row['reference']!r}, "
        f"{row['regraded']} by rule, {row['given']} as graded"
        for row in answer("graded_examples", task, worst["model_id"], **tables).to_pylist()
    )
    more = f" and of {len(others)} more models" if others else ""
    return {
        "what": f"the recording's grades of task {task!r} and rule {scorer!r} contradict each "
        f"other: of model {worst['model_id']!r} {worst['graded_right']:.1%} are right as graded "
        f"and {worst['rule_right']:.1%} by the rule ({worst['change']:+.1%}, 95 % interval "
        f"{worst['low']:+.1%} to {worst['high']:+.1%}){more}: {examples}",
        "next_step": "look at the examples and write whose labels count: label: {tasks: "
        f"{{{task!r}: {{trust: given}}}}}} keeps the recording's, 'trust: rules' takes the rule's; "
        "or choose a 'scorer' that reads these answers",
    }
