"""`routeyard try`: from answers to a page, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routeyard.flows.cli import run
from routeyard.flows.cli.start import digest


def _answers(path: Path, questions: int = 60) -> Path:
    """Three models; `b` is right on every second question, `a` and `c` on the others."""
    rows = ["question,reference,model,answer,cost"]
    for n in range(questions):
        for model, right, cost in (
            ("a", n % 2 == 0, 0.001),
            ("b", n % 2 == 1, 0.002),
            ("c", n % 3 == 0, 0.0005),
        ):
            rows.append(
                f"What is {n} plus {n}?,{2 * n},{model},The answer is {2 * n + (not right)}.,{cost}"
            )
    path.write_text("\n".join(rows) + "\n")
    return path


def test_answers_become_a_page_and_a_recipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = _answers(tmp_path / "answers.csv")
    words = ["try", str(answers), "--workspace", str(tmp_path / "yard"), "--no-open", "--json"]
    assert run(words) == 0
    told = json.loads(capsys.readouterr().out)
    page = Path(told["page"]).read_text()
    # Nothing in the words of a question tells odd from even: the router always asks one model.
    # The sentence is about a router that looks at questions, and says how it was chosen.
    assert " on the validation questions, answer" in page
    assert "Encoder of the questions: tfidf, for " in page
    assert Path(told["recipe"]).read_text().startswith("# Written by `routeyard init`")
    assert Path(told["audit"]["page"]).is_file()
    assert {row["router"] for row in told["ranking"]} >= {"knn", "best-generalist"}
    # Nothing of what other answers gave is shown for these.
    before = digest(answers)
    _answers(answers, 61)
    assert digest(answers) != before


def test_the_page_is_the_releases_own_beside_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from routeyard.flows.cli.start import page_of
    from routeyard.pipelines.common.errors import BadInput

    def refuse(*given: object, **how: object) -> None:
        raise BadInput("no test questions")

    pages = tmp_path / "pages"
    monkeypatch.setattr("routeyard.flows.evaluation.evaluate.evaluate_into", refuse)
    monkeypatch.setattr("routeyard.flows.site.write", lambda *given, **how: pages / "index.html")
    for name in "abc":
        (pages / name / "1.0.0").mkdir(parents=True)
        (pages / name / "1.0.0" / "index.html").touch()
    # Trap: the first page that the file system listed was opened.
    for name in "abc":
        page, ranking = page_of(tmp_path / "releases" / name / "1.0.0", tmp_path)
        assert page == pages / name / "1.0.0" / "index.html"
        assert ranking == []
