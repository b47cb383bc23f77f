"""Hidden states of the questions, read from the weights of a model of the pool."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from routeyard.schemas.strict import Name, Strict


class HiddenStates(Strict):
    """Whose layers read the questions, and from which weights.

    Each question is read as the model is asked it: in its frame (`prompt`), with its `system`
    message, in its chat form. The release then has the table `hidden_states`, one vector for each
    question and layer.
    """

    model_id: Name
    """Model of the pool whose states they are."""
    weights: str = Field(min_length=1)
    """Folder or hub id of its weights, `smollm2` for those from the package index, or the
    environment's word for them (`$NAME`)."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Numbers that are calculated with; what is stored are 32 bits."""
    batch_size: int = Field(default=8, ge=1)
    """Prompts that are read at once."""
