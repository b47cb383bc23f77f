"""What a person sees in a notebook: short forms, cards, and the notebook in `docs/`."""

from __future__ import annotations

import inspect
import json
import os
import pydoc
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import routeyard
from routeyard.flows.console import BuildPlan, BuildResult
from routeyard.schemas.text import html_card

ROOT = Path(__file__).parents[2]
#: Runs cells as a notebook does: the value of a cell's last expression is shown as HTML or text.
RUN = """
import ast, json, sys
names = {}
from pathlib import Path
for cell in json.loads(Path(sys.argv[1]).read_text())["cells"]:
    if cell["cell_type"] != "code":
        continue
    body = ast.parse("".join(cell["source"])).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        shown = getattr(value, "_repr_html_", value.__repr__)() if value is not None else ""
        assert len(shown) < 20_000, shown[:500]
        print(type(value).__name__, len(shown))
"""


def test_the_notebook_runs_without_a_warning(demo_yard: Path, tmp_path: Path) -> None:
    (tmp_path / "yard").symlink_to(demo_yard)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, str(ROOT / "docs" / "notebook.ipynb")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    shown = {line.split()[0] for line in done.stdout.splitlines()}
    assert {
        "OpenRelease",
        "ReleaseTable",
        "Matrix",
        "AuditPage",
        "Evaluation",
        "BuildPlan",
    } <= shown


def test_help_names_every_setting_with_its_default() -> None:
    text = pydoc.plain(pydoc.render_doc(routeyard.evaluate))
    listed = inspect.signature(routeyard.evaluate).parameters
    base = routeyard.EvaluationSettings()
    for one in fields(base):
        assert listed[one.name].default == getattr(base, one.name)
        assert f"    {one.name}: " in text, one.name
    for unit in ("USD per hour", "Seconds it takes", "Number of bootstrap", "0 to 1"):
        assert unit in text
    assert {"scheme", "measure", "resamples", "seed", "cluster"} <= set(
        inspect.signature(routeyard.certify).parameters
    )


def test_a_card_takes_no_markup_from_a_stranger() -> None:
    nasty = "<script>alert(1)</script>"
    rows = [{nasty: nasty, "n": 1234}] * 20
    shown = html_card(nasty, {nasty: nasty, "none": None}, rows)
    assert "<script" not in shown
    assert "1,234" in shown
    assert "8 more rows" in shown
    assert "none" not in shown


def test_results_of_plan_and_build_are_short_and_typed() -> None:
    plan = BuildPlan(
        benchmark="b", version="1.0.0", queries=10, models_in_pool=2, simulated=2, calls=20,
        estimated_usd=0.5, models=[{"model_id": "m<1>"}], notes=["n"],
    )  # fmt: skip
    assert (plan.queries, plan.calls, plan.estimated_usd) == (10, 20, 0.5)
    assert (
        repr(plan)
        == "plan of b 1.0.0: questions 10, models 2, calls 20, cost simulated $0.5000, notes 1"
    )
    assert "m&lt;1&gt;" in plan._repr_html_()
    assert json.loads(json.dumps(plan)) == plan
    stage = {"fingerprint": "f", "reused": True, "figures": {}}
    built = BuildResult(stages={"ingest": stage}, release={"path": "r/b/1.0.0"})
    assert built.release == Path("r/b/1.0.0")
    assert repr(built) == "build of b 1.0.0: release r/b/1.0.0, stages 1, reused 1"
    assert BuildResult(stages={}).release is None


def test_a_release_is_short_and_its_tables_are_attributes(demo_release: Path) -> None:
    with routeyard.open_release(demo_release) as release:
        assert len(repr(release)) < 300
        assert len(release._repr_html_()) < 5_000
        assert "labels" in dir(release)
        labels = release.labels
        assert labels.to_arrow().num_rows == len(labels) == len(labels.to_pandas())
        assert repr(labels).startswith(f"labels: {len(labels):,} rows; query_id, model_id")
        with pytest.raises(AttributeError, match="did you mean 'labels'"):
            _ = release.lables
        tokens = release.matrix("completion_tokens")
        assert tokens.measure == "completion_tokens"
        assert tokens.to_pandas().shape == tokens.values.shape
        assert f"{tokens.missing:,} missing" in repr(tokens)
        with pytest.raises(routeyard.UnknownName, match=r"did you mean 'score'.*cost_usd"):
            release.matrix("scor")
