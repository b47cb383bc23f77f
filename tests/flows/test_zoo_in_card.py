"""A release's card carries its zoo table, and none that was measured on something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routeyard.flows.build import run_build
from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import BadInput, GateFailed
from tests.support.small_recorded import RECIPE, write


def test_the_table_is_in_the_card_and_belongs_to_the_labels(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    yard = tmp_path / "yard"
    out = tmp_path / "zoo"
    command = ["zoo", "run", str(yard / "releases/small/1.0.0"), "--out", str(out), "--no-report"]
    assert run([*command, "--routers", "best-generalist,task-map", "--encoders", "tfidf"]) == 0
    carried = {**RECIPE["release"], "zoo": "zoo/zoo.json"}
    recipe = write(tmp_path, release=carried, version="1.1.0")
    release = Path(run_build(str(recipe), str(yard), jobs=1, until="release")["release"]["path"])
    card = (release / "README.md").read_text(encoding="utf-8")
    rows = json.loads((out / "zoo.json").read_text(encoding="utf-8"))["rows"]
    for row in rows:
        accuracy = f"{100 * row['mean']:.2f} ± {100 * row['sd']:.2f}"
        assert f"| {row['router']} | {row['encoder']} | {accuracy} | {row['seeds']} |" in card
    assert len(rows) == 2
    # The card is rendered again from the manifest; no path of this machine stands in it.
    assert run(["verify", str(release)]) == 0
    assert str(tmp_path) not in (release / "manifest.json").read_text(encoding="utf-8")
    capsys.readouterr()
    # Another split is another benchmark: its zoo is not this one's.
    other = {"train": 0.25, "validation": 0.25, "test": 0.5}
    recipe = write(tmp_path, release=carried, version="1.2.0", split=other)
    with pytest.raises(GateFailed, match="measured on other labels, costs or splits"):
        run_build(str(recipe), str(yard), jobs=1, until="release")
    (tmp_path / "zoo" / "zoo.json").write_text('{"rows": 3}', encoding="utf-8")
    with pytest.raises(BadInput, match=r"no zoo\.json"):
        run_build(str(recipe), str(yard), jobs=1, until="release")
