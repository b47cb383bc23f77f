"""Entry points of other packages that are wrong are named: by `get`, and all by `doctor`."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

import pytest

from routeyard.flows.doctor import REGISTRIES, added, registries
from routeyard.pipelines.common.errors import BadInput, UnknownName
from routeyard.pipelines.common.registry import Registry

ROOT = Path(__file__).parents[1]
POINTS = """
[routeyard.scorers]
broken = hexpack.nowhere:SCORER
lacking = hexpack:NOTHING
other = hexpack:MISNAMED
numeric = hexpack:SCORER
fine = hexpack:SCORER
[routeyard.router]
mine = hexpack:SCORER
"""


@pytest.fixture
def scorers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The scorers' registry as it is with a package installed whose entry points are wrong."""
    about = tmp_path / "hexpack-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hexpack\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    (tmp_path / "hexpack.py").write_text(
        "class Part:\n    def __init__(self, name):\n        self.name = name\n"
        "SCORER, MISNAMED = Part('fine'), Part('another')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert any(one.metadata["Name"] == "hexpack" for one in distributions(name="hexpack"))
    found = registries()["routeyard.scorers"]
    return Registry(found.kind, found.group, found.builtin)


@pytest.mark.extensions
def test_what_is_wrong_is_named_with_package_group_and_next_step(scorers: Registry) -> None:
    assert scorers.get("fine").name == "fine"
    for name, says in (
        ("broken", "cannot be imported: No module named 'hexpack.nowhere'"),
        ("lacking", "cannot be imported: module 'hexpack' has no attribute 'NOTHING'"),
        ("other", "calls itself 'another'"),
    ):
        with pytest.raises(BadInput, match=says) as caught:
            scorers.get(name)
        assert "entry point" in str(caught.value)
        assert "routeyard.scorers" in str(caught.value)
    # what is ours cannot be replaced
    assert scorers.get("numeric").read.__module__ == "routeyard.pipelines.label.scorers.numeric"
    with pytest.raises(UnknownName, match="where a package adds it, install that package here"):
        scorers.get("hexadecimal")


@pytest.mark.extensions
def test_doctor_lists_what_works_and_what_does_not(
    scorers: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = registries() | {"routeyard.scorers": scorers}
    monkeypatch.setattr("routeyard.flows.doctor.registries", lambda: known)
    works, wrong = added()
    assert works == ["scorer fine of hexpack"]
    words = "\n".join(wrong)
    assert "numeric of hexpack: scorer 'numeric' is ours and stays ours" in words
    assert "mine of hexpack: no group 'routeyard.router'" in words
    assert "broken of hexpack" in words
    assert "other of hexpack" in words


@pytest.mark.extensions
def test_a_router_of_another_package_has_both_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "hexroutes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hexroutes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[routeyard.routers]\nhalf = hexroutes:Half\nwhole = hexroutes:Whole\n"
    )
    (tmp_path / "hexroutes.py").write_text(
        "class Half:\n    name = 'half'\n    def fit(self, train): ...\n"
        "class Whole(Half):\n    name = 'whole'\n    def scores(self, queries): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    ours = registries()["routeyard.routers"]
    routers = Registry(ours.kind, ours.group, ours.builtin, ours.methods)
    # Trap: doctor and the zoo's list took it, and an evaluation ended in an AttributeError.
    with pytest.raises(BadInput, match="'half' of another package has no method 'scores'"):
        routers.get("half")
    monkeypatch.setattr("routeyard.flows.doctor.registries", lambda: {"routeyard.routers": routers})
    works, wrong = added()
    assert works == ["router whole of hexroutes"]
    assert any("has no method 'scores'" in one for one in wrong)


@pytest.mark.extensions
def test_every_registry_and_group_is_known_and_documented() -> None:
    made = {
        f"routeyard.{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}".removesuffix(
            ".__init__"
        )
        for room in ("pipelines", "papers", "flows")
        for path in (ROOT / room).rglob("*.py")
        if "= Registry(" in path.read_text()
    }
    assert made == {path.partition(":")[0] for path in REGISTRIES}
    for page in ("CONTRIBUTING.md", "docs/python.md"):
        text = (ROOT / page).read_text()
        assert [group for group in registries() if f"`{group}`" not in text] == [], page
