"""The training loop: gradients, batches, what is kept, and a run that was stopped."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from routeyard.extensions.tuning import training as checkpoint
from routeyard.extensions.tuning.encoder import Encoder, TuningSettings, batches
from routeyard.extensions.tuning.training import HEADS, head_of, registered, tune
from routeyard.extensions.tuning.tune import read
from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.routers.base import Examples

QUICK = TuningSettings(epochs=2, batch=16, micro=16, encoder_rate=1e-3, tokens=32, save_every=3)


@pytest.fixture(scope="module")
def train(release: Path, still: Path) -> Examples:
    """Train and validation questions with the untouched encoder's vectors."""
    core, scheme = read(read_release(release), None)
    encoder = Encoder(str(still), 32)
    vectors = encoder.vectors(encoder.ids(core.prompts))
    return replace(core, embeddings=vectors).training(scheme)


def few(train: Examples, n: int = 48) -> Examples:
    held = train.validation
    assert held is not None
    return replace(train.take(np.arange(n)), validation=held.take(np.arange(24)))


def trained(
    router: str, weights: Path, train: Examples, place: Path, settings: TuningSettings, **how: Any
) -> tuple[Any, Encoder, checkpoint.Progress]:
    head, encoder = head_of(router, 7), Encoder(str(weights), settings.tokens)
    done = tune(head, encoder, train, settings, place, fingerprint="f", **how)
    return head, encoder, done


def weights_of(encoder: Encoder, head: Any) -> dict[str, np.ndarray]:
    both = {"e": encoder.model, "h": head.network}
    return {
        f"{k}.{name}": value.detach().numpy().copy()
        for k, part in both.items()
        for name, value in part.state_dict().items()
    }


@pytest.mark.parametrize("router", HEADS)
def test_every_head_moves_its_encoder(
    router: str, tiny: Path, train: Examples, tmp_path: Path
) -> None:
    head, encoder, done = trained(
        router, tiny, few(train), tmp_path / "c", replace(QUICK, epochs=1)
    )
    before = Encoder(str(tiny), 32).model.state_dict()
    moved = [
        name
        for name, value in encoder.model.state_dict().items()
        if not np.array_equal(value.numpy(), before[name].numpy())
    ]
    assert any("layer.0.attention" in name for name in moved)
    assert any("word_embeddings" in name for name in moved)
    # What is kept is what routed best on validation, and it is the zoo's own router.
    assert done.best_step == done.looks[int(np.argmax([x["accuracy"] for x in done.looks]))]["step"]
    held = train.validation
    assert held is not None
    x = encoder.vectors(encoder.ids(held.queries.prompts))
    scores = registered(head).scores(replace(held.queries, embeddings=x))
    assert scores.shape == held.labels.shape
    assert np.isfinite(scores).all()


def test_the_gradient_of_a_weight_is_the_slope_of_the_loss(still: Path, train: Examples) -> None:
    import torch

    small = few(train, 8)
    head, encoder = head_of("p2l", 0), Encoder(str(still), 32)
    network = head.begin((encoder.size,), small)
    ids = encoder.ids(small.queries.prompts)
    batch = head.batch(small, np.zeros((8, 0), np.float32), head.targets(small))

    def loss() -> Any:
        return head.loss(network, replace(batch, x=encoder.forward(ids)))

    loss().backward()
    weight = dict(encoder.model.named_parameters())
    name = next(n for n in weight if n.endswith("layer.0.intermediate.dense.weight"))
    assert weight[name].grad is not None
    # Along its own direction: a single weight's slope drowns in float32.
    way = weight[name].grad / weight[name].grad.norm()
    step, ends = 0.02, []
    with torch.no_grad():
        for sign in (1, -2):
            weight[name].add_(way, alpha=sign * step)
            ends.append(float(loss()))
    slope = (ends[0] - ends[1]) / (2 * step)
    assert slope == pytest.approx(float(weight[name].grad.norm()), rel=0.03)


@pytest.mark.parametrize("change", [{"micro": 4}, {"checkpointing": True}], ids=str)
def test_pieces_and_recomputed_activations_change_no_weight(
    change: dict[str, Any], still: Path, train: Examples, tmp_path: Path
) -> None:
    # Every cell known and batches of one size: else a mean over pieces is not that of the whole.
    whole = few(train)
    whole = replace(whole, labels=np.nan_to_num(whole.labels))
    ends = []
    for k, settings in enumerate((QUICK, replace(QUICK, **change))):
        head, encoder, _ = trained("mlp", still, whole, tmp_path / str(k), settings)
        ends.append(weights_of(encoder, head))
    for name, value in ends[0].items():
        np.testing.assert_allclose(value, ends[1][name], atol=2e-4, err_msg=name)


def test_products_in_bf16_leave_weights_in_float32(
    still: Path, train: Examples, tmp_path: Path
) -> None:
    ends = []
    for precision in ("float32", "bf16"):
        settings = replace(QUICK, epochs=1, precision=precision)
        head, encoder, done = trained("p2l", still, few(train), tmp_path / precision, settings)
        ends.append(weights_of(encoder, head))
        assert done.ended
    assert {value.dtype for value in ends[1].values()} == {np.dtype("float32")}
    gaps = [float(np.abs(ends[0][n] - ends[1][n]).max()) for n in ends[0]]
    assert 0 < max(gaps) < 0.05


class Stopped(Exception):
    pass


def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    tiny: Path, train: Examples, tmp_path: Path
) -> None:
    """Dropout, the head's noise and random negatives: every generator goes on where it was."""
    small = few(train, 56)  # four batches an epoch, the last one short
    seen: list[int] = []

    def stop_at(last: int) -> Any:
        def advance(done: int, wanted: int) -> None:
            seen.append(done)
            if len(seen) == last:
                raise Stopped

        return advance

    head, encoder, done = trained("routerdc", tiny, small, tmp_path / "whole", QUICK)
    for last in (2, 3):  # before the first checkpoint (of step 3), and between two
        seen.clear()
        with pytest.raises(Stopped):
            trained(
                "routerdc", tiny, small, tmp_path / "parts", QUICK, on_progress=stop_at(last + 1)
            )
    again, other, late = trained("routerdc", tiny, small, tmp_path / "parts", QUICK)
    assert late.looks == done.looks
    assert (late.best, late.best_step, late.step) == (done.best, done.best_step, done.step)
    ends = weights_of(encoder, head), weights_of(other, again)
    for name, value in ends[0].items():
        np.testing.assert_array_equal(value, ends[1][name], err_msg=name)
    # Started again when it was over: nothing is trained, the same weights come back.
    third, same, _ = trained("routerdc", tiny, small, tmp_path / "parts", QUICK)
    for name, value in weights_of(same, third).items():
        np.testing.assert_array_equal(value, ends[0][name], err_msg=name)


def test_a_checkpoint_of_other_settings_or_a_torn_one_is_not_used(
    tiny: Path, train: Examples, tmp_path: Path
) -> None:
    small, place = few(train), tmp_path / "c"
    trained("mlp", tiny, small, place, QUICK)
    assert checkpoint.newest(place, "f") is not None
    assert checkpoint.newest(place, "other") is None
    folder = next(place.glob("step-*"))
    # A whole one that is older stands in for a torn one.
    older = place / "step-00000001"
    shutil.copytree(folder, older)
    (folder / "state.safetensors").write_bytes(b"torn")
    found = checkpoint.newest(place, "f")
    assert found is not None
    assert found[0].ended
    (older / "state.json").write_text("{")
    assert checkpoint.newest(place, "f") is None


def test_no_progress_on_validation_ends_it(tiny: Path, train: Examples, tmp_path: Path) -> None:
    head, encoder = head_of("mlp", 7), Encoder(str(tiny), 32)
    head.settings["learning_rate"] = 0.0
    settings = replace(QUICK, epochs=9, encoder_rate=0.0, patience=2)
    done = tune(head, encoder, few(train), settings, tmp_path / "c", fingerprint="f")
    assert len(done.looks) == 3
    assert done.best_step == done.looks[0]["step"]


def test_head_first_begins_where_the_frozen_router_ends(
    still: Path, train: Examples, tmp_path: Path
) -> None:
    small = few(train)
    frozen = head_of("mess-plus", 7).fit(small)
    held = small.validation
    assert held is not None
    said = frozen.look(frozen.network, frozen.batch(held, held.queries.vectors()))
    settings = replace(QUICK, head_first=True, encoder_rate=0.0)
    _, _, done = trained("mess-plus", still, small, tmp_path / "c", settings)
    assert done.looks[0]["step"] == 0
    assert done.looks[0]["accuracy"] == pytest.approx(said[0])
    assert done.looks[0]["error"] == pytest.approx(-said[1], abs=1e-5)


def test_without_validation_nothing_is_trained(tiny: Path, train: Examples, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="validation"):
        trained("mlp", tiny, replace(train, validation=None), tmp_path / "c", QUICK)
    with pytest.raises(BadInput, match="no head"):
        head_of("knn", 0)


def test_batches_hold_each_row_once_and_little_padding() -> None:
    draw = np.random.default_rng(0)
    ids = [np.zeros(n, np.int32) for n in draw.integers(1, 60, 1000)]
    epoch = batches(ids, 16, 3, 0)
    assert sorted(np.concatenate(epoch).tolist()) == list(range(1000))
    for one, other in zip(epoch, batches(ids, 16, 3, 0), strict=True):
        np.testing.assert_array_equal(one, other)
    assert any(not np.array_equal(a, b) for a, b in zip(epoch, batches(ids, 16, 3, 1), strict=True))
    lengths = np.array([len(one) for one in ids])
    padded = sum(len(rows) * lengths[rows].max() for rows in epoch)
    assert padded < 1.15 * lengths.sum()
    # Not from short to long: the order of the batches is drawn.
    assert abs(np.corrcoef([lengths[rows].mean() for rows in epoch], range(len(epoch)))[0, 1]) < 0.5


def test_vectors_are_those_of_the_zoo(tiny: Path, train: Examples) -> None:
    from routeyard.pipelines.common import encoders

    texts = list(train.queries.prompts[:40])
    encoder = Encoder(str(tiny), 32)
    there = encoders.load(str(tiny), 8)(texts)[0]
    np.testing.assert_allclose(encoder.vectors(encoder.ids(texts)), there, atol=1e-6)


def test_a_folder_that_was_trained_again_is_embedded_again(
    tiny: Path, release: Path, tmp_path: Path
) -> None:
    from safetensors.numpy import load_file, save_file

    from routeyard.pipelines.common.encoders import embed

    folder, queries = tmp_path / "encoder", read_release(release)["queries"].slice(0, 8)
    shutil.copytree(tiny, folder)

    def vectors() -> list[list[float]]:
        table = embed(queries, encoder=str(folder), cache=tmp_path / "cache")
        return table.column("vector").to_pylist()

    first = vectors()
    assert vectors() == first
    weights = load_file(folder / "model.safetensors")
    name = next(n for n in weights if n.endswith("word_embeddings.weight"))
    save_file({**weights, name: weights[name][::-1].copy()}, folder / "model.safetensors")
    assert vectors() != first
