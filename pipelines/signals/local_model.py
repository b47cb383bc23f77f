"""Causal language models from a local folder or the hub, through transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import BadInput


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A loaded causal LM with its tokenizer, in evaluation mode on one device.

    `max_length` is the longest input in tokens that the model has positions for; `system` is the
    message sent before each user message.
    """

    name: str
    model: Any
    tokenizer: Any
    device: str
    max_length: int
    system: str | None = None

    def prompt(self, text: str) -> str:
        """The user message as the model expects it: through its chat template, if it has one."""
        told = [{"role": "system", "content": self.system}] if self.system else []
        if not getattr(self.tokenizer, "chat_template", None):
            return "\n\n".join([*(one["content"] for one in told), text])
        chat = [*told, {"role": "user", "content": text}]
        return str(
            self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        )

    def batches(self, texts: Sequence[str], size: int) -> Iterator[list[int]]:
        """Indices of texts in batches of similar length, which wastes little on padding."""
        order = sorted(range(len(texts)), key=lambda i: (len(texts[i]), i))
        for start in range(0, len(order), size):
            yield order[start : start + size]

    def encode(self, texts: Sequence[str], *, side: str, prompted: bool = False) -> Any:
        """Token ids and attention mask on the device, padded on `side`, cut at `max_length`.

        `prompted` texts come from `prompt`, whose chat template has placed the
        special tokens already.
        """
        self.tokenizer.padding_side = side
        special = not (prompted and getattr(self.tokenizer, "chat_template", None))
        encoded = self.tokenizer(
            list(texts),
            return_tensors="pt",
            padding=True,
            truncation=True,
            max_length=self.max_length,
            add_special_tokens=special,
            return_token_type_ids=False,
        )
        return encoded.to(self.device)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, before any cut."""
        encoded = self.tokenizer(list(texts), truncation=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]


def load(
    model: str, *, device: str | None = None, dtype: str = "float32", max_length: int | None = None
) -> LocalModel:
    """Load any causal LM; code that comes with a model is never run.

    Args:
        device: `cpu`, `cuda`, …; None takes CUDA where there is one.
        max_length: Cut inputs here; None for as many positions as the model has.

    Raises:
        BadInput: nothing that can be loaded as a causal language model is there.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    local = Path(model).is_dir()
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise BadInput(f"there is no dtype {dtype!r}", next_step="use float32, bfloat16 or float16")
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=local)
        loaded = AutoModelForCausalLM.from_pretrained(model, local_files_only=local, dtype=kind)
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(
            f"{model!r} cannot be loaded as a causal language model: {error}",
            next_step="name a folder with config, weights and tokenizer, or a hub id",
        ) from error
    # Many models carry a repetition penalty or a temperature: greedy steps must not inherit it.
    loaded.generation_config = GenerationConfig(eos_token_id=loaded.generation_config.eos_token_id)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if tokenizer.pad_token is None:
        raise BadInput(f"the tokenizer of {model!r} has no token to pad with", where=model)
    positions = int(getattr(loaded.config, "max_position_embeddings", 0) or 1 << 20)
    longest = min(positions, max_length or positions)
    name = Path(model).name if local else model
    return LocalModel(name, loaded.eval().to(device), tokenizer, device, longest)


def fingerprint(model: str) -> str:
    """Identity of a model's files: configuration content, names and sizes of the rest.

    The identity of a hub id is the id.
    """
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.is_file():
            small = file.suffix == ".json" and file.stat().st_size < 1 << 24
            data = file.read_bytes() if small else str(file.stat().st_size).encode()
            digest.update(file.name.encode() + b"\0" + hashlib.sha256(data).digest())
    return digest.hexdigest()
