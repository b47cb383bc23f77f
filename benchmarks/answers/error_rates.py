"""Error rates of scorers per kind of answer: `pipelines/label/error_rates.csv`, docs/labels.md.

Reads the judged sets of `benchmarks judged`. A scorer is measured on the sets that it is meant for.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.answers.judged import SCORERS_OF, judged
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import DATA_HINT
from routeyard.pipelines.label.error_rates import (
    COLUMNS,
    COUNTS,
    FILE,
    OUTCOMES,
    UNRELIABLE,
    Kind,
    Rates,
    kind_of,
)
from routeyard.pipelines.label.scorers import SCORERS, symbolic
from routeyard.schemas.release import wilson

PAGE = Path(__file__).parents[2] / "docs" / "labels.md"
BEGIN, END = "<!-- error rates: begin -->", "<!-- error rates: end -->"
#: Set → what it is, and who judged it.
SETS = {
    "evouna_nq": ("EVOUNA, Natural Questions", "people"),
    "gaokao_mcq": ("GAOKAO-Bench, one option", "official extraction"),
    "theoremqa": ("TheoremQA", UNRELIABLE),
    "mathvista": ("MathVista, free form", "official rule"),
    "gsm8k": ("GSM8K (ZeroEval)", "official rule"),
    "crux": ("CRUX output prediction", "official rule"),
    "mint": ("MINT-bench", "official grader"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--write", action="store_true", help="write the table and docs/labels.md")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = os.environ.get("ROUTEYARD_DATA")
    if not folder:
        raise SourceError("ROUTEYARD_DATA is not set", next_step=DATA_HINT)
    rows = []
    for name, scorers in {**SCORERS_OF, "gsm8k": ("numeric",)}.items():
        for one in judged(Path(folder), name):
            for scorer in scorers:
                kind = kind_of(scorer, one.asked.references, one.asked.choices, one.output)
                outcome = SCORERS.get(scorer).score(one.asked, one.output).outcome
                rows.append((name, SETS[name][1], scorer, kind, outcome, one.right))
    symbolic.close()
    table = tabulate(rows)
    if arguments.write:
        with FILE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
    return {"answers": len(rows), "kinds": len(table)}


def tabulate(
    rows: Iterable[tuple[str, str, str, Kind, str, bool]],
) -> list[dict[str, str | int]]:
    """Rows of the table from (set, judged by, scorer, kind, outcome, right), sorted."""
    found: dict[tuple[str, ...], Counter[str]] = {}
    for name, by, scorer, kind, outcome, right in rows:
        version = SCORERS.get(scorer).version if scorer in SCORERS.targets else ""
        counts = found.setdefault((name, by, scorer, version, *kind), Counter())
        said = outcome if outcome in OUTCOMES else "abstain"
        counts[f"{said}_{'right' if right else 'wrong'}"] += 1
    return [
        dict(zip(COLUMNS, key, strict=True)) | {name: counts[name] for name in COUNTS}
        for key, counts in sorted(found.items())
    ]


def page(text: str, table: list[dict[str, Any]]) -> str:
    """The text with both tables between its two marks."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    lines = [*_by_set(table), "", *_by_kind(table)]
    return f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"


def _by_set(table: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| Set | Judged by | Scorer | Version | Answers | Decided | Precision of `correct` "
        "| Precision of `incorrect` | Recall of right answers |",
        "| --- | --- | --- | --- | ---: | ---: | --- | --- | --- |",
    ]
    for name, scorer in dict.fromkeys((row["set"], row["scorer"]) for row in table):
        rows = [row for row in table if (row["set"], row["scorer"]) == (name, scorer)]
        title, by = SETS[name]
        version = rows[0]["version"]
        lines.append(f"| {title} | {by} | `{scorer}` | {version} | {_cells(_sum(rows))} |")
    return lines


def _by_kind(table: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| Scorer | Task | Format of the reference | Length | Script | Answers | Decided "
        "| Precision of `correct` | Precision of `incorrect` | Recall of right answers |",
        "| --- | --- | --- | --- | --- | ---: | ---: | --- | --- | --- |",
    ]
    keys = ("scorer", *Kind._fields)
    for key in sorted({tuple(row[name] for name in keys) for row in table}):
        total = _sum([row for row in table if tuple(row[name] for name in keys) == key])
        if total.judged >= 200:
            lines.append(f"| `{key[0]}` | {' | '.join(key[1:])} | {_cells(total)} |")
    return lines


def _sum(rows: list[dict[str, Any]]) -> Rates:
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update({name: n for name, n in row.items() if isinstance(n, int)})
    a, b, c, d, e, f = (counts[name] for name in COUNTS)
    return Rates(((a, b), (c, d), (e, f)))


def _cells(total: Rates) -> str:
    right = sum(counts[0] for counts in total.counts)
    decided = total.judged - sum(total.counts[2])
    recall = wilson(total.counts[0][0], right) if right else None
    # Share of these verdicts that is true, with its 95 % interval.
    correct, incorrect = (
        wilson(true, sum(both)) if sum(both) else None
        for true, both in zip(
            (total.counts[0][0], total.counts[1][1]), total.counts[:2], strict=True
        )
    )
    shares = (correct, incorrect, recall)
    return " | ".join(
        [f"{total.judged:,}", f"{100 * decided / total.judged:.1f} %", *map(_share, shares)]
    )


def _share(found: tuple[float, float, float] | None) -> str:
    if found is None:
        return "–"
    share, low, high = (100 * one for one in found)
    return f"{share:.1f} % ({low:.1f} to {high:.1f})"
