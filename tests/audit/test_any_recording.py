"""The audit of whatever a stranger has: columns missing, few rows, nothing but texts."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.audit.answers import AuditFinding
from routeyard.pipelines.audit.checks import audit_recording, leaderboard
from routeyard.schemas.contracts import RECORDING, recording
from tests.audit.planted import honest
from tests.support.sampled import some


@pytest.mark.parametrize("seed", some(range(60), 5))
def test_no_recording_stops_the_audit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = honest(seed)
    n = int(rng.choice([0, 1, 2, 7, 40, 300, 1800]))
    rows = np.sort(rng.choice(len(columns["arm"]), n, replace=False))
    given = {}
    for field in RECORDING:
        if field.name in ("arm", "question"):
            given[field.name] = [str(one) for one in columns[field.name][rows]]
        elif rng.random() < 0.6:
            values = columns.get(field.name)
            odd = [None, "", "error", "train", "test", "0"]
            made = list(values[rows]) if values is not None else list(rng.choice(odd, n))
            if field.name == "further_columns":
                words = rng.choice(np.array([None, "", "error", "0", "1", columns["arm"][0]]), n)
                made = [None if one == "0" else {"flag": one, "n": str(k)}
                        for k, one in enumerate(words)]  # fmt: skip
            elif field.name == "further_scores":
                made = [None if one < 0.1 else {"verdict": float(one > 0.5)}
                        for one in rng.random(n)]  # fmt: skip
            elif str(field.type) != "string":
                made = [float(one) if values is not None else 0.0 for one in made]
                made = [one if rng.random() < 0.8 else None for one in made]
            if str(field.type) == "int32":
                made = [0 if one is None else int(one) for one in made]
            given[field.name] = made
    table = recording(given)
    found = audit_recording(table)
    assert found.verdict in ("clean", "doubtful", "defective")
    assert len(leaderboard(found.answers)) <= 6


def test_an_empty_recording_is_clean_and_says_that_it_is_empty() -> None:
    found = audit_recording(recording({}))
    assert (found.verdict, found.looked_at["answers"]) == ("clean", 0)


def test_the_page_of_audits_escapes_what_strangers_wrote() -> None:
    from benchmarks.audit.page import rows

    finding = AuditFinding("odd_cell", "a|b <i>", "no *marks*", 1, (), "none", "doubt", key="key")
    line = list(rows("m", "routeyard audit m", "doubtful", [finding]))[-2]
    assert line.count("|") - line.count("\\|") == 5
    assert "<i>" not in line
