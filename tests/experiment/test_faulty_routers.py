"""What is wrong with a router of someone's own is said in words, and is never a row of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.experiment import made, own
from routeyard.pipelines.evaluate.fit import Fit
from tests.evaluate.metrics.test_registry import awkward
from tests.support.worded_release import worded_release

MINE = """
class Mine:
    name = "mine"
    def fit(self, train): self.m = len(train.model_ids)
    def scores(self, queries): return {}
"""


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ("[[float('nan')] * self.m] * len(queries)", "are not finite"),
        ("[1.0] * len(queries)", "have shape"),
        ("[['a'] * self.m] * len(queries)", "are no table of numbers"),
        ("[[1.0] * (1 + i % 2) for i in range(len(queries))]", "are no table of numbers"),
        ("None", "have shape"),
    ],
)
def test_scores_that_are_none_are_named(tmp_path: Path, scores: str, says: str) -> None:
    (tmp_path / "mine.py").write_text(MINE.format(scores))
    core = awkward(0, 12, 3)
    fit = Fit(own(f"{tmp_path / 'mine.py'}:Mine"), core.training("dense"))
    with pytest.raises(BadInput, match=f"router 'mine' {says}") as caught:
        fit.scores(core.take(core.rows("dense", "test")).queries())
    assert "12 × 3 finite numbers" in str(caught.value.next_step)


def test_code_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "open.py").write_text("class Mine:\n def fit(self,\n")
    with pytest.raises(BadInput, match=r"cannot be imported: '\(' was never closed") as caught:
        own(f"{tmp_path / 'open.py'}:Mine")
    assert "open.py" in str(caught.value.where)
    needs = MINE.format("1").replace('"mine"\n', '"mine"\n    def __init__(self, k): pass\n')
    (tmp_path / "needs.py").write_text(needs)
    with pytest.raises(BadInput, match="its constructor needs 'k'"):
        made(own(f"{tmp_path / 'needs.py'}:Mine"))


def test_a_zoo_says_who_was_refused_and_ends_where_all_were(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    release = worded_release(tmp_path / "toy" / "1.0.0")
    Path("mine.py").write_text(MINE.format("[[float('nan')] * self.m] * len(queries)"))
    command = ["zoo", "run", str(release), "--encoders", "tfidf", "--out", "z", "--no-report"]
    command += ["--splits", "0", "--cache", "cache", "--own", "mine.py:Mine"]
    assert run([*command, "--routers", "random"]) == 0
    told = capsys.readouterr()
    assert "mine with tfidf: the scores of router 'mine' are not finite" in told.err
    assert "| random |" in told.out
    # Routers that need signals refuse this release too: an empty table is no result.
    assert run([*command, "--routers", "margin"]) == 2
    assert "no router could be fitted" in capsys.readouterr().err
