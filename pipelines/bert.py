"""A BERT encoder by torch alone: the vectors of sentence-transformers, bit for bit.

Importing sentence-transformers takes 4 CPU-seconds more than torch, as many as embedding 250
questions. BERT's layers (Devlin et al. 2019, arXiv:1810.04805), the mean of the last hidden states
and unit vectors need none of it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from routeyard.pipelines.arrays import Array


class BertEncoder:
    """A BERT whose last hidden states are averaged, on the CPU.

    Args:
        folder: Of sentence-transformers' layout: float32 weights, a tokenizer of one file.

    Attributes:
        max_seq_length: Tokens after which a text is cut.
    """

    def __init__(self, folder: Path) -> None:
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        window = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        self.max_seq_length: int = window["max_seq_length"]
        self._weights = load_file(folder / "model.safetensors")
        self._layers: int = settings["num_hidden_layers"]
        self._heads: int = settings["num_attention_heads"]
        self._eps: float = settings["layer_norm_eps"]
        self._tokens = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokens.enable_truncation(self.max_seq_length)
        self._tokens.no_padding()

    def encode(self, texts: list[str], batch_size: int) -> Array:
        """float32 unit vectors [texts, dimensions]; long texts first, so that little is padded."""
        order = np.argsort([-len(text) for text in texts])
        found: list[torch.Tensor] = [torch.empty(0)] * len(texts)
        with torch.inference_mode():
            for start in range(0, len(texts), batch_size):
                rows = order[start : start + batch_size]
                vectors = self._encoded([texts[row] for row in rows])
                for row, vector in zip(rows, vectors, strict=True):
                    found[row] = vector
            return np.asarray(torch.stack(found).numpy())

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """(start, stop) in the text of each token before the cut."""
        found: list[tuple[int, int]] = self._tokens.encode(text).offsets
        return found

    def _encoded(self, texts: list[str]) -> torch.Tensor:
        ids = [one.ids for one in self._tokens.encode_batch([text.strip() for text in texts])]
        length = max(map(len, ids))
        padded = torch.tensor([one + [0] * (length - len(one)) for one in ids])
        there = torch.tensor([[1] * len(one) + [0] * (length - len(one)) for one in ids])
        states = self._hidden(padded, None if there.all() else there.bool()[:, None, None, :])
        mask = there.unsqueeze(-1).to(states.dtype)
        total = (states * mask).sum(dim=1)
        mean = total / torch.clamp(mask.sum(dim=1), min=1e-9)
        # Twice, as its last module and `encode` do: the second changes last bits.
        return functional.normalize(functional.normalize(mean, p=2, dim=1), p=2, dim=1)

    def _hidden(self, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """(texts, tokens, dimensions) last hidden states."""
        weights = self._weights
        states = functional.embedding(ids, weights["embeddings.word_embeddings.weight"])
        states = states + weights["embeddings.token_type_embeddings.weight"][0]
        states = states + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        states = self._normal("embeddings", states)
        if mask is not None:
            mask = mask.expand(-1, -1, ids.shape[1], -1)
        for layer in range(self._layers):
            at = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(f"{at}.attention.self.{name}", states)
                .view(*ids.shape, self._heads, -1)
                .transpose(1, 2)
                for name in ("query", "key", "value")
            )
            heard = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            heard = heard.transpose(1, 2).contiguous().reshape(*ids.shape, -1)
            out = self._linear(f"{at}.attention.output.dense", heard)
            states = self._normal(f"{at}.attention.output", out + states)
            inner = functional.gelu(self._linear(f"{at}.intermediate.dense", states))
            states = self._normal(
                f"{at}.output", self._linear(f"{at}.output.dense", inner) + states
            )
        return states

    def _linear(self, name: str, states: torch.Tensor) -> torch.Tensor:
        return functional.linear(
            states, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        )

    def _normal(self, name: str, states: torch.Tensor) -> torch.Tensor:
        weight, bias = (self._weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
        return functional.layer_norm(states, (states.shape[-1],), weight, bias, self._eps)
