"""What training an encoder takes, said from its configuration before any weight is loaded."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines import encoders
from routeyard.pipelines.tuning.model_size import BASE_BYTES, WIDTH, Size
from routeyard.pipelines.tuning.model_size import size_of as size_at
from routeyard.pipelines.tuning.settings import TuningSettings

#: Bytes a parameter takes while it is trained: weight, gradient and AdamW's two moments.
TRAINED = 16
#: Bytes of the copies of a checkpoint while it is written: weights and moments.
SAVED = 12


def memory(size: Size, s: TuningSettings, *, tuned: bool = True) -> float:
    """Bytes at the peak of training an encoder, or of encoding; an estimate from above."""
    if not tuned:
        return size.reading(64, s.tokens, "float32")
    layer = size.layer(s.micro, s.tokens)
    kept = size.layers * layer
    if s.checkpointing:
        kept = layer + size.layers * s.micro * s.tokens * size.hidden
    width = WIDTH[s.precision]
    # Products of two bytes read copies of the weights.
    copies = width if width < 4 else 0
    return BASE_BYTES + (TRAINED + SAVED + copies) * size.parameters + width * kept


def size_of(name: str) -> Size:
    """The size of an encoder by any of its names.

    Raises:
        SourceError: it is missing.
    """
    return size_at(encoders.location(encoders.unpooled(encoders.full_name(name))[0]))


def tokenizer_of(name: str) -> Any:
    """An encoder's tokenizer, without its weights."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(encoders.location(encoders.full_name(name)))
