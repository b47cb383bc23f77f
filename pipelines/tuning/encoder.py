"""A sentence encoder that gradients flow through: token ids in, unit vectors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines import encoders

Ids = NDArray[np.int32]

#: Texts that are encoded at once where nothing is learned.
AT_ONCE = 64


class Encoder:
    """Weights of a folder, a hub id or a packaged name, with their own pooling.

    Attributes:
        model: sentence-transformers' module.
        tokens: tokens that are read of a text, at most the encoder's own window.
        size: length of a vector.
    """

    def __init__(self, name: str, tokens: int):
        import torch

        # Parts that a folder has no weights for, such as a pooler nobody reads, are drawn.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.model = encoders.loaded(encoders.full_name(name).removesuffix(encoders.OPENVINO))
        self.tokens = min(tokens, self.model.max_seq_length or tokens)
        # So that what is saved reads as much of a text as was trained on.
        self.model.max_seq_length = self.tokens
        self.size = int(self.model[0].get_embedding_dimension())
        #: What the forward pass runs in: bf16 on request.
        self.autocast: Callable[[], AbstractContextManager[Any]] = nullcontext

    def ids(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of each text, cut at `tokens`."""
        return tokenised(self.model.tokenizer, texts, self.tokens)

    def forward(self, ids: Sequence[Ids]) -> Any:
        """(b, d) float32 unit vectors on the CPU, where heads are."""
        import torch

        tokenizer = self.model.tokenizer
        longest = max(len(one) for one in ids)
        padded = np.full((len(ids), longest), tokenizer.pad_token_id or 0, dtype=np.int64)
        mask = np.zeros_like(padded)
        for row, one in enumerate(ids):
            at = (
                slice(longest - len(one), None)
                if tokenizer.padding_side == "left"
                else slice(len(one))
            )
            padded[row, at], mask[row, at] = one, 1
        device = next(self.model.parameters()).device
        features = {
            "input_ids": torch.from_numpy(padded).to(device),
            "attention_mask": torch.from_numpy(mask).to(device),
        }
        with self.autocast():
            found = self.model(features)["sentence_embedding"]
        return torch.nn.functional.normalize(found.float(), dim=1).cpu()

    def vectors(
        self, ids: Sequence[Ids], on_progress: Callable[[int, int], None] | None = None
    ) -> NDArray[np.float32]:
        """(n, d) vectors without gradients; texts of one length go together."""
        import torch

        order = np.argsort([len(one) for one in ids], kind="stable")
        out = np.empty((len(ids), self.size), dtype=np.float32)
        self.model.eval()
        with torch.no_grad():
            for first in range(0, len(order), AT_ONCE):
                rows = order[first : first + AT_ONCE]
                out[rows] = self.forward([ids[row] for row in rows]).numpy()
                if on_progress:
                    on_progress(first + len(rows), len(order))
        return out

    def save(self, folder: Path) -> None:
        """A folder that sentence-transformers reads: safetensors and JSON."""
        self.model.cpu()
        self.model.save(str(folder), create_model_card=False, safe_serialization=True)


def tokenised(tokenizer: Any, texts: Sequence[str], tokens: int) -> list[Ids]:
    """Token ids of each text, cut at `tokens`, special tokens among them."""
    found: list[Ids] = []
    for first in range(0, len(texts), 1024):
        some = tokenizer(list(texts[first : first + 1024]), truncation=True, max_length=tokens)
        found += [np.array(one, dtype=np.int32) for one in some["input_ids"]]
    return found
