"""What is labelled correct of weak, cut-off and wrong answers: everything, to be read by hand.

A reader that picks numbers from rambling is right too often where a model is right almost
never. Three populations of real GSM8K answers in which fewer than one in ten should count:

- `hard`: answers of all models to the questions that fewer than a tenth of the models answer
  rightly, by the stored labels;
- `cut`: answers (JSON, ZeroEval) cut at a seeded point before their end and marked as
  truncated, of which only what was explicitly committed to before the cut may count;
- `cut_prose`: the same of RouteLLM's answers, which are prose;
- `cut_unsaid`: these again, and nobody says that they were cut;
- `answers`: a weak model's own, from a JSON Lines file with `row` (line of the GSM8K test
  set), `text` and `truncated`.

Each answer that `numeric` (or `--scorer`) labels correct is written to `OUT/weak_correct.csv`
with what was read and its surroundings. `doubtful` counts those of truncated answers in which
no mark says what the answer is: these have to be none.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import DATA_HINT
from routeyard.pipelines.label.scorers import SCORERS, symbolic
from routeyard.pipelines.label.scorers.reading import TRUST
from routeyard.pipelines.label.scorers.scorer import ScoreResult, ScoringInput

#: A question that fewer than this share of the models answer rightly is hard.
HARD = 0.1
#: A response is cut between these shares of its length.
CUT = (0.2, 0.95)
_AROUND = 120


class Answer(NamedTuple):
    population: str
    question: str
    reference: str
    model: str
    text: str
    truncated: bool
    #: What the source says of the whole answer; None where it says nothing.
    stored: bool | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the answers")
    parser.add_argument("--answers", type=Path, help="JSON Lines of a weak model on GSM8K")
    parser.add_argument("--scorer", default="numeric", choices=["numeric", "math", "auto"])
    parser.add_argument("--cut", type=int, default=6_000, help="responses that are cut")
    parser.add_argument("--seed", type=int, default=9)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = os.environ.get("ROUTEYARD_DATA")
    if not folder:
        raise SourceError("ROUTEYARD_DATA is not set", next_step=DATA_HINT)
    data = Path(folder)
    found = [*recorded(data / "zeroeval_gsm", arguments.cut, arguments.seed)]
    found += prose(data, arguments.seed)
    if arguments.answers is not None:
        found += weak_model(data / "gsm8k", arguments.answers)
    figures, rows = measure(found, SCORERS.get(arguments.scorer).read)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "weak_correct.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    symbolic.close()
    return figures


COLUMNS = ("population", "model", "reference", "stored", "reason", "read", "question")


def measure(
    found: list[Answer], read: Callable[[ScoringInput, str], ScoreResult]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Figures per population, and a row for each answer that is labelled correct."""
    figures: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for one in found:
        reading = read(
            ScoringInput(one.question, (one.reference,), truncated=one.truncated), one.text
        )
        counts = figures.setdefault(
            one.population,
            {"answers": 0, "labelled_correct": 0, "stored_as_wrong": 0, "doubtful": 0},
        )
        counts["answers"] += 1
        if reading.outcome != "correct":
            continue
        counts["labelled_correct"] += 1
        counts["stored_as_wrong"] += one.stored is False
        marked = any(f"{row.kind}: " in reading.reason for row in TRUST)
        counts["doubtful"] += one.truncated and not marked
        start, end = reading.span or (0, 0)
        rows.append(
            {
                "population": one.population,
                "model": one.model,
                "reference": one.reference,
                "stored": "" if one.stored is None else one.stored,
                "reason": reading.reason,
                "read": one.text[max(0, start - _AROUND) : end + _AROUND],
                "question": one.question,
            }
        )
    for counts in figures.values():
        counts["accuracy"] = round(counts["labelled_correct"] / counts["answers"], 4)
    return figures, rows


def recorded(data: Path, cut: int, seed: int) -> Iterator[Answer]:
    """The populations `hard` and `cut` of ZeroEval's recordings."""
    import pandas as pd

    keys = ["query_id", "model"]
    queries: Any = pd.read_parquet(data / "queries.parquet").set_index("query_id")
    responses = pd.read_parquet(data / "responses.parquet").astype(dict.fromkeys(keys, str))
    labels = pd.read_parquet(data / "upstream_labels.parquet").astype(dict.fromkeys(keys, str))
    both: Any = responses.merge(labels, on=keys, validate="one_to_one")
    share = both.groupby("query_id").correct.mean()
    hard = set(share[share < HARD].index)
    for row in both.itertuples():
        if row.query_id in hard:
            gold = queries.gold_answer[row.query_id].lstrip("# ")
            question = queries.question[row.query_id]
            yield Answer("hard", question, gold, row.model, row.output, False, bool(row.correct))
    draw = random.Random(seed)
    for row in both.sample(n=min(cut, len(both)), random_state=seed).itertuples():
        gold = queries.gold_answer[row.query_id].lstrip("# ")
        text = row.output[: int(len(row.output) * draw.uniform(*CUT))]
        question = queries.question[row.query_id]
        yield Answer("cut", question, gold, row.model, text, True, bool(row.correct))


def prose(data: Path, seed: int) -> Iterator[Answer]:
    """The populations `cut_prose` and `cut_unsaid` of RouteLLM's two models."""
    import pandas as pd

    gold = _gold(data / "gsm8k")
    draw = random.Random(seed)
    rows: Any = pd.read_parquet(data / "routellm" / "gsm8k.parquet")
    for row in rows.itertuples():
        text = row.response[: int(len(row.response) * draw.uniform(*CUT))]
        question, wanted = gold[row.row]
        stored = bool(row.correct)
        yield Answer("cut_prose", question, wanted, row.model, text, True, stored)
        yield Answer("cut_unsaid", question, wanted, row.model, text, False, stored)


def _gold(data: Path) -> list[tuple[str, str]]:
    """Question and answer of each line of the GSM8K test set."""
    lines = (data / "test.jsonl").read_text(encoding="utf-8").splitlines()
    tests = [json.loads(line) for line in lines]
    return [(one["question"], one["answer"].rpartition("#### ")[2]) for one in tests]


def weak_model(data: Path, path: Path) -> Iterator[Answer]:
    """A weak model's answers to the GSM8K test set, as a file holds them."""
    gold = _gold(data)
    for line in path.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        question, wanted = gold[said["row"]]
        text, truncated = said["text"], said["truncated"]
        yield Answer("answers", question, wanted, path.stem, text, truncated, None)
