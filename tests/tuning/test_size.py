"""The size of an encoder is read from its configuration, before weights are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from routeyard.extensions.tuning.encoder import encoder_parameters
from routeyard.pipelines.common.errors import SourceError


def test_parameters_are_those_of_the_weights(tiny: Path) -> None:
    from safetensors.numpy import load_file

    arrays = load_file(tiny / "model.safetensors")
    assert encoder_parameters(str(tiny)) == sum(a.size for a in arrays.values())
    assert encoder_parameters("minilm") == pytest.approx(22.7e6, rel=0.01)


def test_what_is_no_encoder_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no configuration"):
        encoder_parameters(str(tmp_path))
