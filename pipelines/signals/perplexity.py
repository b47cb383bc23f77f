"""Perplexity fingerprint: how surprising a model's answers are to one small public LM.

Cost-spectrum contrastive routing (CSCR), for models behind an API: the mean
negative log-likelihood of the greedy answer to each of N probes under a
shared language model, mean-centred to unit variance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.signals.footprint import descriptor
from routeyard.pipelines.signals.local_model import LocalModel
from routeyard.schemas import DESCRIPTORS

KIND = "perplexity_fingerprint"


def negative_log_likelihoods(
    local: LocalModel, texts: Sequence[str], *, batch_size: int = 16
) -> npt.NDArray[np.float64]:
    """Mean negative log-likelihood per token (nat) of each text under `local`.

    The first token is scored behind the model's beginning-of-text token, where
    it has one (GPT-2's end of text serves as one).

    Returns:
        float64 of shape (len(texts),); NaN for a text without a token to score.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    result = np.full(len(texts), np.nan)
    tokenizer = local.tokenizer
    start = next(
        (i for i in (tokenizer.bos_token_id, tokenizer.eos_token_id) if i is not None), None
    )
    head = [] if start is None else [start]
    ids = [
        (head + tokenizer(text, add_special_tokens=False)["input_ids"])[: local.max_length]
        for text in texts
    ]
    scored = sorted((i for i in range(len(ids)) if len(ids[i]) > 1), key=lambda i: (len(ids[i]), i))
    for begin in range(0, len(scored), batch_size):
        batch = scored[begin : begin + batch_size]
        rows = [torch.tensor(ids[i], device=local.device) for i in batch]
        padded = pad_sequence(rows, batch_first=True, padding_value=tokenizer.pad_token_id)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        with torch.inference_mode():
            logits = local.model(input_ids=padded, attention_mask=mask).logits[:, :-1].float()
            losses = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), padded[:, 1:], reduction="none"
            )
            kept = mask[:, 1:]
            means = (losses.double() * kept).sum(1) / kept.sum(1)
        result[batch] = means.cpu().numpy()
    return result


def perplexity_fingerprints(
    nll: Mapping[str, npt.NDArray[np.float64]], probes: Sequence[str], language_model: str
) -> pa.Table:
    """`descriptors` rows of kind `perplexity_fingerprint`.

    Args:
        nll: Per model, float of shape (N,) in the order of `probes`; NaN where
            the model has no answer. Such a probe is dropped for all models,
            since vectors of one kind must have the same axes; the metadata name it.

    Returns:
        Vectors of shape (N − dropped,), mean 0, variance 1 (population). A model
        that is equally surprising everywhere has no direction: all zeros, and
        `constant` in its metadata.

    Raises:
        BadInput: fewer than two probes are answered by every model.
    """
    names = sorted(nll)
    matrix = np.array([nll[name] for name in names], dtype=np.float64).reshape(len(names), -1)
    answered: npt.NDArray[np.bool_] = np.asarray(~np.isnan(matrix).any(axis=0))
    if answered.sum() < 2:
        raise BadInput(
            f"only {int(answered.sum())} of {len(probes)} probes are answered by every model",
            where=", ".join(f"{n}: {int((~np.isnan(nll[n])).sum())} answered" for n in names),
            next_step="collect the probes' answers again, or leave out the model that has none",
        )
    kept = [probe for probe, whole in zip(probes, answered.tolist(), strict=True) if whole]
    rows = []
    for name, values in zip(names, matrix[:, answered], strict=True):
        spread = float(values.std())
        constant = spread <= 1e-12 * max(1.0, abs(float(values.mean())))
        vector = np.zeros_like(values) if constant else (values - values.mean()) / spread
        metadata = {
            "probes": kept,
            "dropped_probes": sorted(set(probes) - set(kept)),
            "language_model": language_model,
            "mean_nll": float(values.mean()),
            "std_nll": spread,
            "constant": constant,
        }
        rows.append(descriptor(name, KIND, vector, metadata))
    return DESCRIPTORS.from_rows(rows)
