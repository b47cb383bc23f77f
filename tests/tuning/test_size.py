"""What a training takes is said from the configuration, before weights are loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from routeyard.extensions.tuning.encoder import TuningSettings, memory
from routeyard.extensions.tuning.encoder import encoder_size_of as size_of
from routeyard.pipelines.common.errors import SourceError


def test_parameters_are_those_of_the_weights(tiny: Path) -> None:
    from safetensors.numpy import load_file

    size = size_of(str(tiny))
    arrays = load_file(tiny / "model.safetensors")
    assert size.parameters == sum(a.size for a in arrays.values())
    words = next(a for name, a in arrays.items() if name.endswith("word_embeddings.weight"))
    assert (size.embedding, size.layers, size.hidden) == (words.size, 2, 32)


def test_memory_grows_with_what_is_kept() -> None:
    size = size_of("minilm")
    assert size.parameters == pytest.approx(22.7e6, rel=0.01)
    plain = memory(size, TuningSettings())
    # Weights, gradients and moments alone are 16 bytes a parameter.
    assert plain > 16 * size.parameters
    for less in (
        replace(TuningSettings(), micro=4), replace(TuningSettings(), checkpointing=True),
        replace(TuningSettings(), tokens=32),
    ):  # fmt: skip
        assert memory(size, less) < plain
    assert memory(size, TuningSettings(), tuned=False) < plain
    # Twice the text is more than twice the work: attention grows with its square.
    assert size.flops([128]) > 2 * size.flops([64])


def test_what_is_no_encoder_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no configuration"):
        size_of(str(tmp_path))
