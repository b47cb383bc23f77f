"""Scorers against verdicts of people and official graders, on answers from other projects.

For each set and scorer: how many answers are decided, and of `correct` and `incorrect` which share
people agree with. Reads `judged/`, `crux_sample/` and MINT's texts below ROUTEYARD_DATA. With
`--out DIR` the rows on which the two differ are written as CSV, to be read by hand.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.answers import mint
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import DATA_HINT
from routeyard.pipelines.label.scorers import SCORERS, symbolic
from routeyard.pipelines.label.scorers.reading import declines
from routeyard.pipelines.label.scorers.scorer import ScoringInput


class Judged(NamedTuple):
    """One answer, and what somebody decided about it."""

    model: str
    asked: ScoringInput
    output: str
    right: bool


#: Set → scorers that a recipe would choose for it.
SCORERS_OF: dict[str, tuple[str, ...]] = {
    "evouna_nq": ("contains", "em", "em_strict", "f1"),
    "gaokao_mcq": ("mcq", "auto"),
    "theoremqa": ("auto", "math", "numeric"),
    "mathvista": ("auto", "numeric"),
    "crux": ("literal", "auto"),
    "mint": ("auto",),
}
#: Set → its folder, where questions, answers and the upstream's labels are three files.
_UPSTREAM = {"crux": "crux_sample", "gsm8k": "zeroeval_gsm"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, help="folder for the answers that differ")
    parser.add_argument("--only", choices=[*SCORERS_OF], help="one set")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = os.environ.get("ROUTEYARD_DATA")
    if not folder:
        raise SourceError("ROUTEYARD_DATA is not set", next_step=DATA_HINT)
    found = {
        name: {
            scorer: compare(rows, scorer, name, arguments.out)
            for scorer in scorers
            if scorer in SCORERS.names()
        }
        for name, scorers in SCORERS_OF.items()
        if arguments.only in (None, name) and (rows := list(judged(Path(folder), name)))
    }
    symbolic.close()
    return found


def judged(data: Path, name: str) -> Iterator[Judged]:
    """The answers of one set that somebody decided about: nobody's verdict is no wrong answer."""
    import pandas as pd

    if name in _UPSTREAM:
        folder = data / _UPSTREAM[name]
        queries: Any = pd.read_parquet(folder / "queries.parquet")
        queries = queries.set_index("query_id")
        labels: Any = pd.read_parquet(folder / "upstream_labels.parquet")
        texts: Any = pd.read_parquet(folder / "responses.parquet")
        texts = texts.merge(labels, on=["query_id", "model"]).dropna(subset=["correct"])
        for row in texts.itertuples():
            query = queries.loc[row.query_id]
            asked = ScoringInput(str(query.question), (str(query.gold_answer),))
            yield Judged(str(row.model), asked, str(row.output), bool(row.correct))
        return
    if name == "mint":
        questions: Any = pd.read_parquet(data / "matrices" / "mint_bench_questions.parquet")
        asked_of = questions.set_index(["task", "task_id"])
        answers: Any = pd.read_parquet(data / "matrices" / "mint_bench_texts.parquet")
        for row in answers.dropna(subset=["success"]).itertuples():
            query = asked_of.loc[(row.task, row.task_id)]
            if query.reference and row.task not in mint.PROGRAMS:
                reference = json.loads(query.reference)
                said = reference if isinstance(reference, str) else json.dumps(reference)
                rules = mint.rules(row.task, said)
                asked = ScoringInput(str(query.question), (said,), metadata=rules)
                yield Judged(str(row.model), asked, str(row.last or ""), bool(row.success))
        return
    table: Any = pd.read_parquet(data / "judged" / f"{name}.parquet")
    for row in table.dropna(subset=["judged"]).itertuples():
        choices = () if row.choices is None else tuple(map(str, row.choices))
        asked = ScoringInput(str(row.question), tuple(map(str, row.references)), choices)
        yield Judged(str(row.model), asked, str(row.output), bool(row.judged))


def compare(rows: list[Judged], scorer: str, name: str, out: Path | None) -> dict[str, Any]:
    """Shares in percent: decided, agreement among decided, precision of both verdicts, recall.

    `accuracy_of_models` holds two figures per model: by the given labels, and by the scorer's
    among the answers that it decides.
    """
    read = SCORERS.get(scorer).score
    counts: Counter[tuple[str, bool]] = Counter()
    differing = []
    models: dict[str, list[tuple[bool, str]]] = {}
    for row in rows:
        result = read(row.asked, row.output)
        counts[result.outcome, row.right] += 1
        models.setdefault(row.model, []).append((row.right, result.outcome))
        if result.outcome != ("correct" if row.right else "incorrect"):
            differing.append(
                {
                    "model": row.model, "references": " | ".join(row.asked.references),
                    "judged": row.right, "ours": result.outcome, "extracted": result.extracted,
                    "reason": result.reason, "official": _official(name, row, result.outcome),
                    "question": row.asked.question[:1000],
                    "choices": " | ".join(row.asked.choices), "output": row.output[:6000],
                }
            )  # fmt: skip
    if out is not None and differing:
        out.mkdir(parents=True, exist_ok=True)
        with (out / f"{name}_{scorer}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(differing[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(differing)
    decided_otherwise = Counter(one["official"] for one in differing if one["ours"] != "abstain")
    undecided = Counter(_why_undecided(one) for one in differing if one["ours"] == "abstain")
    correct = (counts["correct", True], counts["correct", False])
    incorrect = (counts["incorrect", False], counts["incorrect", True])
    decided = sum(correct) + sum(incorrect)
    return {
        "answers": len(rows),
        "decided": _percent(decided, len(rows)),
        "agreement": _percent(correct[0] + incorrect[0], decided),
        "precision_correct": _percent(correct[0], sum(correct)),
        "precision_incorrect": _percent(incorrect[0], sum(incorrect)),
        "recall_correct": _percent(correct[0], counts["abstain", True] + correct[0] + incorrect[1]),
        **({"official_verdict_that_differs": dict(decided_otherwise)} if name == "mint" else {}),
        "undecided": dict(undecided.most_common()),
        "accuracy_of_models": {
            model: [
                _percent(sum(right for right, _ in both), len(both)),
                _percent(
                    sum(outcome == "correct" for _, outcome in both),
                    sum(outcome in ("correct", "incorrect") for _, outcome in both),
                ),
            ]
            for model, both in sorted(models.items())
        },
    }


def _official(name: str, row: Judged, outcome: str) -> str:
    if name != "mint" or outcome not in ("correct", "incorrect"):
        return ""
    return mint.fault(row.asked, row.output, outcome)


def _why_undecided(row: dict[str, Any]) -> str:
    """What an answer without a verdict is."""
    output = row["output"]
    if not output.strip():
        return "empty"
    if "in the output, as" in row["reason"]:
        return "no answer in the tag that is read"
    if re.search(r"(?m)^\s*(?:print\(|import |from \w+ import|def \w+\(|\w+ = )", output):
        return "a program"
    if declines(output):
        return "says that it cannot answer"
    return "other"


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None
