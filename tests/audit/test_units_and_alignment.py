"""Defects of whole arms: other units, other questions, other arms' scores, verdicts by length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.audit.planted import (
    ARMS,
    QUESTIONS,
    SUITES,
    Columns,
    audited,
    honest,
    kinds,
    large,
    of,
    planted,
)


def one_row_off(columns: Columns) -> None:
    columns["score"][of(columns, "copper")] = np.roll(columns["score"][of(columns, "copper")], 1)


def one_suite_off(columns: Columns) -> None:
    rows = of(columns, "copper", "chess")
    columns["score"][rows] = np.roll(columns["score"][rows], -2)


def right_is_wrong(columns: Columns) -> None:
    rows = of(columns, "delta")
    columns["score"][rows] = 1 - columns["score"][rows]


def in_another_order(columns: Columns) -> None:
    """Half of the arms have the rows of each suite in one other order."""
    order = np.random.default_rng(1).permutation(300)
    for arm in ARMS[3:]:
        for suite in SUITES:
            rows = of(columns, arm, suite)
            columns["score"][rows] = columns["score"][rows][order]


def nearly_a_copy(columns: Columns) -> None:
    rows, rng = of(columns, "birch"), np.random.default_rng(2)
    columns["score"][rows] = columns["score"][of(columns, "ember")]
    some = rng.choice(rows, len(rows) // 33, replace=False)
    columns["score"][some] = 1 - columns["score"][some]


@pytest.mark.parametrize("seed", range(5))
def test_arms_of_one_set_of_questions_are_clean(seed: int) -> None:
    assert audited(large(seed)).verdict == "clean"


@pytest.mark.parametrize(
    ("kind", "plant", "about", "says"),
    [
        ("ids_misaligned", one_row_off, "copper", "they are one row before the question"),
        ("ids_misaligned", one_suite_off, "copper on chess", "they are 2 rows behind the question"),
        ("ids_misaligned", right_is_wrong, "delta", "right and wrong are exchanged"),
        ("ids_misaligned", in_another_order, "delta", "rows that are in another order"),
        ("scores_copied", nearly_a_copy, "birch and ember", "of one are stored under the other"),
    ],
)
def test_scores_of_other_questions_and_other_arms_are_named(
    kind: str, plant: Callable[[Columns], None], about: str, says: str
) -> None:
    assert len(kinds(planted(plant, kind, about, says))) == 1


def test_groups_in_another_order_stop_a_release() -> None:
    columns = large()
    in_another_order(columns)
    assert audited(columns).verdict == "defective"


def dear(columns: Columns) -> None:
    columns["cost_usd"][of(columns, "delta")] *= 1000


def cheap(columns: Columns) -> None:
    columns["cost_usd"][of(columns, "anchor")] /= 1000


def milliseconds(columns: Columns) -> None:
    columns["latency_s"][of(columns, "ember")] *= 1000


def exchanged_counts(columns: Columns) -> None:
    per_question = np.random.default_rng(0).integers(40, 900, QUESTIONS * len(SUITES))
    columns["prompt_tokens"] = np.tile(per_question, len(ARMS)).astype(float)
    columns["cost_usd"] = (columns["prompt_tokens"] + columns["completion_tokens"]) * 1e-6
    rows = of(columns, "birch")
    prompt = columns["prompt_tokens"][rows].copy()
    columns["prompt_tokens"][rows] = columns["completion_tokens"][rows]
    columns["completion_tokens"][rows] = prompt


def suite_in_hundredths(columns: Columns) -> None:
    columns["score"][columns["suite"] == "chess"] *= 0.01


def arm_in_tenths(columns: Columns) -> None:
    columns["score"][of(columns, "flint")] *= 0.1


def long_is_right(columns: Columns) -> None:
    size = np.array([len(one) for one in columns["text"]])
    for arm in ARMS:
        rows = of(columns, arm, "drama")
        columns["score"][rows] = (size[rows] > np.median(size[rows])).astype(float)


def timed_out(columns: Columns) -> None:
    rows = np.random.default_rng(4).choice(of(columns, "birch"), 20, replace=False)
    columns["latency_s"][rows] = 30.0 + np.arange(20) / 100
    columns["score"][rows] = 0.0


@pytest.mark.parametrize(
    ("kind", "plant", "about"),
    [
        ("other_unit", dear, "delta"),
        ("other_unit", cheap, "anchor"),
        ("other_unit", milliseconds, "ember"),
        ("tokens_exchanged", exchanged_counts, "birch"),
        ("score_scale", suite_in_hundredths, "chess"),
        ("score_scale", arm_in_tenths, "flint"),
        ("verdict_by_length", long_is_right, "drama"),
        ("timed_out", timed_out, "birch"),
    ],
)
def test_what_is_measured_otherwise_is_named(
    kind: str, plant: Callable[[Columns], None], about: str
) -> None:
    columns = honest()
    plant(columns)
    assert about in kinds(audited(columns)).get(kind, set()), kinds(audited(columns))
