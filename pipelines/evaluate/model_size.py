"""How large a transformer is, from its configuration alone: before any weight is loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.errors import SourceError

#: What Python, torch and the data take beside a model.
BASE_BYTES = 800e6
#: Vectors of the hidden size, and of the inner size, that a layer makes of a token: inputs and
#: outputs of its products, norms, dropouts and the activation.
KEPT_HIDDEN, KEPT_INNER = 14, 3
#: Of a head's attention matrix: scores, softmax, dropout.
KEPT_ATTENTION = 3
#: Share of a plain product's speed that a model reaches.
REACHED = 0.4
#: Bytes of a number, by the name of its type.
WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2, "bf16": 2}


@dataclass(frozen=True)
class Size:
    """Attributes:
    parameters: all; `embedding` of them are word vectors, which cost no product.
    layers, hidden, inner, heads: of the transformer.
    vocabulary: word pieces; a causal model gives each a logit.
    """

    parameters: int
    embedding: int
    layers: int
    hidden: int
    inner: int
    heads: int
    vocabulary: int

    def layer(self, rows: int, tokens: int) -> int:
        """Numbers that one layer makes of a batch."""
        each = KEPT_HIDDEN * self.hidden + KEPT_INNER * self.inner
        return rows * tokens * each + KEPT_ATTENTION * rows * self.heads * tokens**2

    def reading(self, rows: int, tokens: int, dtype: str, *, causal: bool = False) -> float:
        """Bytes at the peak of reading a batch of texts; an estimate from above.

        Args:
            causal: logits of every token and states of every layer are made as well.
        """
        width = WIDTH.get(dtype, 4)
        numbers = self.layer(rows, tokens)
        if causal:
            numbers += rows * tokens * (self.vocabulary + (self.layers + 1) * self.hidden)
        return BASE_BYTES + width * (self.parameters + numbers)

    def flops(self, lengths: Sequence[int]) -> float:
        """Multiplications and additions of one pass forward over texts of these lengths."""
        own = 2 * (self.parameters - self.embedding)
        return sum(own * n + 4 * self.layers * self.hidden * n * n for n in lengths)


def model_size_of(place: str, *, causal: bool = False) -> Size:
    """The size of a model: a folder or a hub id; only its configuration is read.

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
    words: Any = config.get_text_config()
    hidden = int(words.hidden_size)
    return Size(
        sum(p.numel() for p in model.parameters()),
        model.get_input_embeddings().weight.numel(),
        int(words.num_hidden_layers),
        hidden,
        int(getattr(words, "intermediate_size", None) or 4 * hidden),
        int(words.num_attention_heads),
        int(words.vocab_size),
    )


def speed(device: str, dtype: str, threads: int | None = None) -> float:
    """Multiplications and additions a second that a model reaches here, about.

    A few plain products are timed; a model reaches `REACHED` of that.

    Args:
        threads: of the CPU; as torch has them by default.
    """
    import torch

    kind = {"bf16": torch.bfloat16}.get(dtype, getattr(torch, dtype, torch.float32))
    n = 1024 if device == "cpu" else 8192
    had = torch.get_num_threads()
    torch.set_num_threads(threads or had)
    try:
        a = torch.ones(n, n, dtype=kind, device=device)
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            float((a @ a)[0, 0])  # reading a number waits for the device
            best = min(best, time.perf_counter() - began)
    finally:
        torch.set_num_threads(had)
    return REACHED * 2 * n**3 / best


def memory_of(device: str) -> float:
    """Bytes of memory of the machine, or of the accelerator."""
    import torch

    if device != "cpu":
        return float(torch.cuda.mem_get_info()[1])
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


Ids = NDArray[np.int32]


def tokenised(tokenizer: Any, texts: Sequence[str], tokens: int) -> list[Ids]:
    """Token ids of each text, cut at `tokens`, special tokens among them."""
    found: list[Ids] = []
    for first in range(0, len(texts), 1024):
        some = tokenizer(list(texts[first : first + 1024]), truncation=True, max_length=tokens)
        found += [np.array(one, dtype=np.int32) for one in some["input_ids"]]
    return found
