"""`bartscore`: exp(BARTScore), the mean token likelihood of the reference given the output.

Yuan, Neubig & Liu 2021, with uniform weights, direction hypothesis →
reference: exp(1/m · Σ log p(y_t | y_<t, output)), which lies in (0, 1]; the
best of several references counts. An optional extra: it needs a
sequence-to-sequence model, given as the scorer's option `model` (a local
folder, or a hub id where the hub may be reached) in the recipe. Slow: one
forward pass per reference, on the CPU unless the option `device` says `cuda`,
`mps` or `auto`; use `given` for sources that carry the score.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.machine import device_of
from routeyard.pipelines.label.scorers.graded import BARE_TEXT
from routeyard.pipelines.label.scorers.reading import whole_answer
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

DEFAULT_MODEL = "facebook/bart-large-cnn"
#: exp(-3): references at a mean of e³ ≈ 20 equally likely words per token.
THRESHOLD = 0.05
LONGEST = 1024


@lru_cache(maxsize=1)
def _model(name: str, device: str) -> tuple[Any, Any]:
    try:
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForSeq2SeqLM.from_pretrained(name)
    except (ImportError, OSError, ValueError) as error:
        raise BadInput(
            f"the BARTScore model {name!r} cannot be loaded: {str(error).splitlines()[0]}",
            where="scorer bartscore",
            next_step="name a local model folder as the scorer's option `model`",
        ) from error
    return tokenizer, model.eval().to(device)


def bartscore(
    output: str, reference: str, model: str = DEFAULT_MODEL, device: str = "cpu"
) -> float:
    """Mean log likelihood per token of the reference given the output, natural log, ≤ 0."""
    import torch

    tokenizer, network = _model(model, device)
    limit = min(LONGEST, getattr(network.config, "max_position_embeddings", LONGEST))
    source = tokenizer(output, return_tensors="pt", truncation=True, max_length=limit)
    target = tokenizer(reference, return_tensors="pt", truncation=True, max_length=limit)
    with torch.inference_mode():
        loss = network(
            input_ids=source["input_ids"].to(device),
            attention_mask=source["attention_mask"].to(device),
            labels=target["input_ids"].to(device),
        ).loss
    return -float(loss)


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Scores the whole output against every reference."""
    wanted = [reference for reference in asked.references if reference.strip()]
    if not wanted:
        return ScoreResult("error", reason="there is no reference")
    result = whole_answer(output)
    if result is None:
        return ScoreResult("abstain", reason="empty output")
    answer, span, _ = result
    model = str(asked.options.get("model", DEFAULT_MODEL))
    device = device_of(str(asked.options.get("device", "cpu")))
    best = math.exp(max(bartscore(answer, item, model, device) for item in wanted))
    on = "" if device == "cpu" else f" on {device}"
    reason = f"exp(BARTScore) {best:.4f}, threshold {THRESHOLD:g}, model {model}{on}"
    return ScoreResult.of(best >= THRESHOLD, answer, span, reason, score=min(best, 1.0))


SCORER = Scorer("bartscore", "5", read, threshold=THRESHOLD, instruction=BARE_TEXT)
