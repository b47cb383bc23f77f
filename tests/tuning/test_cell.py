"""What a cell is called, what it learns from and compares with, and how large its encoder is."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from routeyard.extensions.tuning.encoder import encoder_parameters
from routeyard.extensions.tuning.training import TuningCell, drawn
from routeyard.extensions.tuning.tune import Grid, read
from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.evaluate.studies.study import data_identity, whole


def test_a_smaller_draw_lies_in_a_larger_one(release: Path) -> None:
    core, scheme = read(read_release(release), None)
    few, more = (set(drawn(core, scheme, n).queries.query_ids) for n in (50, 120))
    assert (len(few), len(more)) == (50, 120)
    assert few < more
    held = drawn(core, scheme, 50).validation
    assert held is not None
    assert len(held.labels) == 60


def test_amounts_of_data_compare_and_other_tests_do_not(release: Path) -> None:
    core, scheme = read(read_release(release), None)
    split = core.splits[scheme].copy()
    # Half the train questions left out: another training, the same test.
    split[np.flatnonzero(split == "train")[::2]] = ""
    less = replace(core, splits={scheme: split})
    assert whole(less, scheme) != whole(core, scheme)
    assert data_identity(less, scheme) == data_identity(core, scheme)
    row = core.rows(scheme, "test")[0]
    labels = core.labels.copy()
    labels[row, 0] = 1 - labels[row, 0]
    assert data_identity(replace(core, labels=labels), scheme) != data_identity(core, scheme)


def test_a_grid_is_every_combination_with_the_neighbours_once_for_each_amount() -> None:
    grid = Grid(("mlp", "p2l"), ("e",), (30, 0, 500), ("frozen", "tuned"), (1, 2))
    cells = grid.cells("e", 200)
    assert len(cells) == len(set(cells)) == 2 * (1 + 2 * 2 * 2)  # more than there are is all
    assert {c.rows for c in cells} == {30, 200}
    assert [c.router for c in cells if c.router == "knn"] == ["knn"] * 2
    assert TuningCell("mlp", "a/b-c/", 30, True, 7).name == "mlp-b-c-30-tuned-7"
    assert TuningCell("mlp", "smollm2#last", 30, False, 7).name == "mlp-smollm2_last-30-frozen-7"


@pytest.mark.slow
def test_a_cell_leaves_no_encoder_in_memory(release: Path, tiny: Path, tmp_path: Path) -> None:
    import weakref

    from routeyard.extensions.tuning.encoder import TuningSettings
    from routeyard.extensions.tuning.tune import tune
    from routeyard.pipelines.common import encoders

    core, scheme = read(read_release(release), None)
    made: list[weakref.ref[Any]] = []
    load = encoders.loaded

    def loaded(name: str) -> Any:
        found = load(name)
        made.append(weakref.ref(found))
        return found

    grid = Grid(("mlp",), (str(tiny),), (30,), ("tuned",), (1, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoders, "loaded", loaded)
        gc.disable()
        try:
            tune(core, scheme, grid, TuningSettings(epochs=1, tokens=8), tmp_path)
            # One for the frozen vectors and one a cell; those of the cells are gone.
            assert len(made) == 3
            assert [one() for one in made[1:]] == [None, None]
        finally:
            gc.enable()


def test_means_are_over_the_routers_that_have_every_place() -> None:
    from routeyard.papers.routing_plateau.studies import _common

    one = np.ones(3)
    plain, tuned, large = (1, "e", 9, False), (1, "e", 9, True), (2, "f", 9, False)
    whole = {"knn": {plain: one}, "mlp": {plain: one, tuned: one}, "p2l": {plain: one}}
    assert _common(whole) == (["mlp"], [plain, tuned])
    # None has all: what they share.
    apart = {"mlp": {plain: one, tuned: one}, "p2l": {plain: one, large: one}}
    assert _common(apart) == (["mlp", "p2l"], [plain])


def test_parameters_are_those_of_the_weights(tiny: Path) -> None:
    from safetensors.numpy import load_file

    arrays = load_file(tiny / "model.safetensors")
    assert encoder_parameters(str(tiny)) == sum(a.size for a in arrays.values())
    assert encoder_parameters("minilm") == pytest.approx(22.7e6, rel=0.01)


def test_what_is_no_encoder_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no configuration"):
        encoder_parameters(str(tmp_path))
