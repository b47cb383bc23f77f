"""How large a transformer is, from its configuration alone: before any weight is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.errors import SourceError


def parameters_of(place: str, *, causal: bool = False) -> int:
    """Parameters of a model: a folder or a hub id; only its configuration is read.

    Args:
        causal: a language model with a head, not an encoder.

    Raises:
        SourceError: it is missing.
    """
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(place, local_files_only=Path(place).is_dir())
        with torch.device("meta"):
            model = (AutoModelForCausalLM if causal else AutoModel).from_config(config)
    except (OSError, ValueError, KeyError) as error:
        raise SourceError(
            f"{place!r} cannot be loaded: no configuration that transformers reads: {error}",
            where=place,
            next_step="name a folder with config, weights and tokenizer, or a hub id",
        ) from error
    return sum(p.numel() for p in model.parameters())


Ids = NDArray[np.int32]


def tokenised(tokenizer: Any, texts: Sequence[str], tokens: int) -> list[Ids]:
    """Token ids of each text, cut at `tokens`, special tokens among them."""
    ids: list[Ids] = []
    for first in range(0, len(texts), 1024):
        some = tokenizer(list(texts[first : first + 1024]), truncation=True, max_length=tokens)
        ids += [np.array(item, dtype=np.int32) for item in some["input_ids"]]
    return ids
