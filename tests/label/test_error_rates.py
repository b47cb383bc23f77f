"""Measured error rates: kinds of answers, borrowed counts, and the accuracy behind the labels."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.answers.error_rates import tabulate
from routeyard.pipelines.label import error_rates
from routeyard.pipelines.label.error_rates import (
    COLUMNS,
    OUTCOMES,
    Kind,
    Rates,
    corrected_accuracy,
    kind_of,
    label_errors,
    p_correct,
    rates,
)
from routeyard.pipelines.label.policies import dawid_skene
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.schemas.release import wilson

KIND = Kind("open question", "name", "short", "Latin")


def _file(folder: Path, rows: list[tuple[str, Kind, str, bool, int]]) -> Path:
    """A table of (scorer, kind, outcome, right, how often)."""
    judged = (
        ("set", "people", scorer, kind, outcome, right)
        for scorer, kind, outcome, right, n in rows
        for _ in range(n)
    )
    table = tabulate(judged)
    path = folder / "rates.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


@pytest.mark.parametrize(
    ("scorer", "reference", "choices", "output", "kind"),
    [
        ("contains", "Paris", (), "Paris", ("open question", "name", "short", "Latin")),
        ("contains", "May 16, 2018", (), "x" * 61, ("open question", "date", "sentences", "Latin")),
        ("numeric", "18", (), "x" * 401, ("mathematics", "number", "long", "Latin")),
        ("mcq", "A", ("x", "y"), "选项A正确", ("multiple choice", "option", "short", "Cjk")),
        ("literal", "[1, 2]", (), "[1, 2]", ("program output", "literal", "short", "None")),
        ("auto", "\\frac{1}{2}", (), "0.5", ("mathematics", "expression", "short", "None")),
        ("em", "the frontal lobe", (), "лоб", ("open question", "phrase", "short", "Cyrillic")),
    ],
)
def test_kinds(
    scorer: str, reference: str, choices: tuple[str, ...], output: str, kind: tuple[str, ...]
) -> None:
    assert kind_of(scorer, (reference,), choices, output) == Kind(*kind)


def test_a_kind_with_few_answers_borrows_those_of_a_coarser_one(tmp_path: Path) -> None:
    other = KIND._replace(length="long")
    path = _file(
        tmp_path,
        [
            ("contains", KIND, "correct", True, 50),
            ("contains", other, "correct", True, 180),
            ("contains", other, "correct", False, 20),
        ],
    )
    found = rates("contains", KIND, file=path)
    assert found is not None
    assert (found.kind, found.judged) == (("open question", "name"), 250)
    # 30 answers are enough for a probability: those of the kind itself
    assert p_correct("contains", "correct", KIND, file=path) == pytest.approx(51 / 52)
    # nothing is borrowed from another task, and unknown is not a number
    assert rates("contains", KIND._replace(task="mathematics"), file=path) is None
    assert p_correct("contains", "incorrect", KIND, file=path) is None
    assert p_correct("em", "correct", KIND, file=path) is None


def test_counts_of_an_earlier_version_are_not_used(tmp_path: Path) -> None:
    path = _file(tmp_path, [("contains", KIND, "correct", True, 300)])
    text = path.read_text().replace(f",{SCORERS.get('contains').version},", ",0,")
    (stale := tmp_path / "stale.csv").write_text(text)
    assert rates("contains", KIND, file=path) is not None
    assert rates("contains", KIND, file=stale) is None


def test_the_corrected_accuracy_finds_the_planted_one() -> None:
    # Sensitivity 0.9, specificity 0.8, 60 % right: 0.6 * 0.9 + 0.4 * 0.2 are labelled right.
    measured = Rates(((900, 200), (100, 800), (0, 0)))
    found = corrected_accuracy(6200, 10_000, measured)
    assert found is not None
    assert found.accuracy == pytest.approx(0.6)
    assert found.low < 0.6 < found.high
    # the interval holds the rates' own error: simulated, it covers the truth in 95 of 100
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(500):
        hits, rejected = rng.binomial(1000, 0.9), rng.binomial(1000, 0.8)
        labelled = rng.binomial(2000, 0.62)
        drawn = Rates(((hits, 1000 - rejected), (1000 - hits, rejected), (0, 0)))
        one = corrected_accuracy(int(labelled), 2000, drawn)
        assert one is not None
        covered += one.low <= 0.6 <= one.high
    assert 0.92 <= covered / 500 <= 0.98


def test_no_correction_where_the_rates_say_nothing() -> None:
    few = Rates(((90, 20), (10, 79), (0, 0)))
    assert few.judged == 199
    assert corrected_accuracy(60, 100, few) is None
    weak = Rates(((700, 300), (300, 700), (0, 0)))  # 0.7 + 0.7
    assert corrected_accuracy(60, 100, weak) is None
    assert corrected_accuracy(60, 100, None) is None
    bounded = corrected_accuracy(0, 100, Rates(((900, 200), (100, 800), (0, 0))))
    assert bounded is not None
    assert (bounded.accuracy, bounded.low) == (0, 0)


def test_wilson_has_the_published_value() -> None:
    # Newcombe 1998, table I: 81 of 263.
    assert wilson(81, 263)[1:] == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_expected_wrong_labels_and_corrected_accuracies(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [{"query_id": f"q{n}", "scorer": "contains", "references": ["Paris"], "choices": None}
             for n in range(100)]  # fmt: skip
    answered = [{"query_id": f"q{n}", "model_id": "m", "text": "Paris"} for n in range(100)]
    labels = [
        {"query_id": f"q{n}", "model_id": "m", "decided_by": "contains" if n else "human:ann",
         "correct": n < 80}
        for n in range(100)
    ]  # fmt: skip
    tables = [pa.Table.from_pylist(rows) for rows in (asked, answered, labels)]
    found = label_errors(*tables)
    kind = kind_of("contains", ["Paris"], [], "Paris")
    yes, no = (p_correct("contains", outcome, kind) for outcome in OUTCOMES[:2])
    assert yes is not None
    assert no is not None
    assert found["expected_wrong"] == pytest.approx(79 * (1 - yes) + 20 * no, abs=0.05)
    assert (found["covered"], found["unknown"]) == (99, 0)  # a person's verdict is the truth
    labelled, corrected, low, high = found["corrected"]["m"]
    assert labelled == pytest.approx(79 / 99, abs=1e-5)
    assert low < corrected < high

    monkeypatch.setattr(error_rates, "ENOUGH", 10**9)
    unknown = label_errors(tables[0], tables[1], tables[2].set_column(
        2, "decided_by", pa.array(["judge:someone"] * 100)))  # fmt: skip
    assert (unknown["covered"], unknown["unknown"], unknown["corrected"]) == (0, 100, {})
    assert unknown["expected_wrong"] is None


def test_the_packaged_table_has_the_documented_columns() -> None:
    with error_rates.FILE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    counts = [f"{one}_{truth}" for one in OUTCOMES for truth in ("right", "wrong")]
    assert list(rows[0]) == [*COLUMNS, *counts]
    contains = [row for row in rows if row["scorer"] == "contains"]
    assert sum(int(row[name]) for row in contains for name in counts) == 15_098


def _planted(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Truth, and verdicts of two good scorers and three poor ones that call most things right."""
    truth = rng.random(n) < 0.5
    sensitivity, specificity = (0.95, 0.95, 0.9, 0.9, 0.9), (0.95, 0.9, 0.3, 0.3, 0.3)
    verdicts = np.array([
        np.where(rng.random(n) < np.where(truth, yes, 1 - no), 1, 2)
        for yes, no in zip(sensitivity, specificity, strict=True)
    ])  # fmt: skip
    verdicts[0, rng.random(n) < 0.2] = 0
    return truth, verdicts


def test_dawid_skene_weighs_scorers_by_their_errors() -> None:
    truth, verdicts = _planted(np.random.default_rng(3), 3000)
    right = dawid_skene(verdicts) > 0.5
    majority = (verdicts == 1).sum(axis=0) > (verdicts == 2).sum(axis=0)
    assert (majority == truth).mean() < 0.85
    assert (right == truth).mean() > 0.94
    # no row decides by where it stands
    order = np.random.default_rng(4).permutation(3000)
    assert np.array_equal(dawid_skene(verdicts[:, order]), dawid_skene(verdicts)[order])
    assert dawid_skene(np.zeros((3, 0), int)).shape == (0,)
    assert dawid_skene(np.array([[0], [0]])) == pytest.approx(0.5)
