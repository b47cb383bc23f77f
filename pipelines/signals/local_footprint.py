"""Greedy steps of a local model, with the whole distribution at each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from routeyard.pipelines.signals.footprint import Trace
from routeyard.pipelines.signals.local_model import LocalModel


def trace_local(
    local: LocalModel, prompts: Sequence[str], *, steps: int = 10, batch_size: int = 16
) -> Trace:
    """Trace of a local model: nothing is unreturned, every token has its probability.

    A step at which the model ends its answer is not counted, as servers do
    not return one.
    """
    import torch
    from transformers import GenerationConfig

    texts = [local.prompt(prompt) for prompt in prompts]
    vocabulary = int(local.model.get_output_embeddings().weight.shape[0])
    total = np.zeros(vocabulary, dtype=np.float64)
    chosen = np.zeros(vocabulary, dtype=np.int64)
    ends = _ends(local)
    greedy = GenerationConfig(
        do_sample=False,
        max_new_tokens=steps,
        eos_token_id=ends or None,
        pad_token_id=local.tokenizer.pad_token_id,
        return_dict_in_generate=True,
        output_logits=True,
    )
    for indices in local.batches(texts, batch_size):
        encoded = local.encode([texts[i] for i in indices], side="left", prompted=True)
        with torch.inference_mode():
            made = local.model.generate(**encoded, generation_config=greedy)
        generated = made.sequences[:, encoded["input_ids"].shape[1] :].cpu().numpy()
        running = np.ones(len(indices), dtype=bool)
        for step, logits in enumerate(made.logits):
            running &= ~np.isin(generated[:, step], ends)
            if not running.any():
                break
            p = torch.softmax(logits.double(), dim=-1).cpu().numpy()
            total += p[running].sum(axis=0)
            np.add.at(chosen, generated[running, step], 1)
    seen = int(chosen.sum())
    strings = [token_string(local, i) for i in range(vocabulary)]
    mass: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for string, value, count in zip(strings, total.tolist(), chosen.tolist(), strict=True):
        mass[string] = mass.get(string, 0.0) + value
        if count:
            counts[string] += count
    return Trace(seen, dict(counts), mass, dict.fromkeys(mass, seen), 0.0)


def token_string(local: LocalModel, token: int) -> str:
    """A token as servers spell it: decoded text, its leading space kept."""
    text = str(local.tokenizer.decode([token]))
    piece = local.tokenizer.convert_ids_to_tokens(token)
    # SentencePiece decoders drop the space in front of the first word.
    if isinstance(piece, str) and piece.startswith("▁") and not text.startswith(" "):
        return " " + text
    return text


def _ends(local: LocalModel) -> list[int]:
    configured = local.model.generation_config.eos_token_id
    ids = configured if isinstance(configured, list) else [configured]
    return sorted({i for i in (*ids, local.tokenizer.eos_token_id) if i is not None})
