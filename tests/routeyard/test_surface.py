"""The public surface: every name is there, typed, documented, and costs nothing to import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import routeyard

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=[pytest.mark.extensions] if one == "reproduce" else [])
        for one in routeyard.__all__
    ],
)
def test_every_name_of_the_surface_is_there(name: str) -> None:
    found = getattr(routeyard, name)
    if callable(found) and name != "metrics":
        assert found.__doc__, f"routeyard.{name} says nothing of itself"


def test_the_surface_is_what_is_written_and_what_is_listed() -> None:
    # Each name once, in the stub that type checkers read too.
    stub = (ROOT / "routeyard" / "__init__.pyi").read_text()
    names = re.findall(r"(?: as |^)([A-Za-z]\w*)(?: = _\w+)?$", stub, re.M)
    assert len(names) == len(set(names))
    assert routeyard.__all__ == [*names, "metrics", "__version__"]
    # `from routeyard import *` and dir() show the same names.
    assert set(routeyard.__all__) <= set(dir(routeyard))
    with pytest.raises(AttributeError, match="no attribute 'open_relase'"):
        _ = routeyard.open_relase


def test_the_surface_is_documented() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    for name in routeyard.__all__:
        assert f"`{name}`" in page, f"docs/python.md does not say what routeyard.{name} is"


def test_importing_it_imports_nothing_else() -> None:
    code = (
        "import sys; before = set(sys.modules); import routeyard; "
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}; "
        "sys.exit(repr(new) if new - set(sys.stdlib_module_names) - {'routeyard'} else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_newcomer_gets_far_with_it(demo_release: Path, tmp_path: Path) -> None:
    class Cheapest:
        name = "mine"

        def fit(self, train: routeyard.Examples) -> None:
            self.mean = train.labels.mean(axis=0)

        def scores(self, queries: routeyard.Queries) -> object:
            import numpy as np

            return np.tile(self.mean, (len(queries), 1))

    with routeyard.open_release(demo_release) as release:
        assert release.arrow("labels").num_rows
    done = routeyard.evaluate(
        demo_release,
        {"mine": Cheapest, "mine again": Cheapest(), "a floor": "random"},
        resamples=100,
        pair_routers=False,
    )
    assert {"mine", "mine again", "a floor"} <= set(done.metrics.column("router").to_pylist())
    assert routeyard.score("So it is 18. #### 18", "18", scorer="numeric").outcome == "correct"
    assert routeyard.load_recipe("demo").name == "demo"
    assert routeyard.plan("demo", tmp_path)["queries"] > 100
    with pytest.raises(routeyard.UnknownName, match="did you mean 'numeric'"):
        routeyard.score("18", "18", scorer="numerik")
