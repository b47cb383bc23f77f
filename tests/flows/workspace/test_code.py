"""What a stage is made of: all that it can reach, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ASKED = """
import json, sys
from routeyard.flows import workspace as code
from routeyard.flows.tasks import label
found = code.made_by(label.decide_labels, ["routeyard.pipelines.label.scorers.numeric"])
hashes = {name: code.module_hash(name) for name in sys.argv[1:]}
print(json.dumps(found | hashes | {"card": code.reached_code(code.CARD)}))
"""
#: Reads a file beside it; reads one too, but only that.
LISTED, HEALTH = "routeyard.pipelines.routers.listed", "routeyard.pipelines.curate.health"


def asked(tree: Path) -> dict[str, str]:
    words = [sys.executable, "-c", ASKED, LISTED, HEALTH]
    return dict(json.loads(subprocess.check_output(words, cwd=tree, text=True)))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    unneeded = shutil.ignore_patterns("__pycache__")
    for name in ("schemas", "pipelines", "papers", "flows", "datacards", "routeyard"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=unneeded)
    return folder


@pytest.mark.extensions
def test_what_is_out_of_reach_makes_nothing_stale_and_code_and_files_that_are_named_do(
    tree: Path,
) -> None:
    before = asked(tree)
    # Out of reach, or a file that no module names: the same.
    metering = tree / "pipelines/audit/metering.py"
    metering.write_text(metering.read_text() + "\nX = 1\n")
    (tree / "pipelines/curate/beside.yaml").write_text("a: 1\n")
    # A figure further down the imports, a file that is read and a template: another.
    shared = tree / "pipelines/common/errors.py"
    shared.write_text(shared.read_text() + "\nX = 1\n")
    listed = tree / "pipelines/routers/routers.yaml"
    listed.write_text(listed.read_text() + "\n# A comment counts: a text is not parsed.\n")
    template = tree / "datacards/templates/card.md.j2"
    template.write_text(template.read_text() + "More.\n")
    after = asked(tree)
    assert {name for name in before if before[name] != after[name]} == {
        "routeyard.pipelines.common.errors", LISTED, "card",
    }  # fmt: skip


def test_a_module_that_reads_its_own_folder_depends_on_all_of_it() -> None:
    from routeyard.flows.workspace import module_hash, reach

    # The jail's programs are read as files and started; no import shows them.
    assert "routeyard.pipelines.common.isolation.jail.host" in reach(
        frozenset({"routeyard.pipelines.label.scorers.code"})
    )
    assert "routeyard.pipelines.label.scorers.latex_equality" in reach(
        frozenset({"routeyard.pipelines.label.scorers.math"})
    )
    assert module_hash("routeyard.pipelines.common.isolation.jail.host")


STAGES = """
import sys
from pathlib import Path
from routeyard.flows.build import build
from routeyard.flows.workspace import reach
import routeyard.flows.workspace as folders

reached = set()
real = folders.made_by
def noted(make, uses=()):
    found = real(make, uses)
    reached.update(name for name in found if ":" not in name)
    return found
folders.made_by = noted
build.fn(recipe=sys.argv[1], workspace=sys.argv[2], until="certify")
of_stages = ("routeyard.schemas", "routeyard.pipelines")
loaded = {n for n in sys.modules if n.startswith(of_stages)}
print("\\n".join(sorted(loaded - reached)))
"""


def test_what_a_build_really_loads_is_within_what_was_computed(tmp_path: Path) -> None:
    from tests.support.small_recorded import write

    recipe = write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", STAGES, str(recipe), str(tmp_path / "yard")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    # What only plans, keeps and shows is loaded too, and so is what reads the recipe, whose
    # values are parameters of the fingerprint: none of it makes a table.
    beside = (
        "routeyard.pipelines.ledger",
        "routeyard.pipelines.calls",
        "routeyard.pipelines.common.staging",
        "routeyard.pipelines.curate.entailment",
        "routeyard.pipelines.collect.prices",
        "routeyard.pipelines.collect.prices",
        "routeyard.pipelines.common.pool",
    )
    # The form in which the audit looks at the tables before they become a release.
    beside += ("routeyard.pipelines.common.files", "routeyard.schemas.release")
    missed = [n for n in done.stdout.split() if not n.startswith(beside)]
    assert missed == []
