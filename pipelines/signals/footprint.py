"""Logit footprint: which tokens a model thinks of first.

Cost-spectrum contrastive routing (CSCR): over N probe prompts and T greedy
steps, the mean probability of each of the K most frequent tokens,
ℓ2-normalised. Tokens are matched as strings, since vocabularies differ.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.logprobs import Token
from routeyard.schemas import DESCRIPTORS

KIND = "logit_footprint"


@dataclass(frozen=True, slots=True)
class Trace:
    """What one model's greedy steps showed, summed over all probes.

    Attributes:
        steps: Greedy steps seen (at most N × T; an answer may end earlier).
        chosen: How often each token was the greedy one.
        mass: Token → sum of its probabilities over the steps that returned it.
        returned: Token → number of those steps.
        unreturned: Sum over steps of the probability outside what was returned.
    """

    steps: int
    chosen: Mapping[str, int]
    mass: Mapping[str, float]
    returned: Mapping[str, int]
    unreturned: float


def trace_tokens(answers: Sequence[Sequence[Token]], *, steps: int = 10) -> Trace:
    """Trace of one model from the top log-probabilities its server returned.

    Args:
        answers: Per probe, the tokens of the greedy answer; the first `steps` count.
    """
    chosen: Counter[str] = Counter()
    mass: dict[str, float] = {}
    returned: Counter[str] = Counter()
    seen, unreturned = 0, 0.0
    for answer in answers:
        for token in answer[:steps]:
            seen += 1
            chosen[token.token] += 1
            alternatives = list(token.top)
            if all(name != token.token for name, _ in alternatives):
                alternatives.append((token.token, token.logprob))
            p = [math.exp(value) for _, value in alternatives]
            for (name, _), value in zip(alternatives, p, strict=True):
                mass[name] = mass.get(name, 0.0) + value
            returned.update({name for name, _ in alternatives})
            unreturned += max(0.0, 1.0 - math.fsum(p))
    return Trace(seen, dict(chosen), mass, dict(returned), unreturned)


def frequent_tokens(traces: Mapping[str, Trace], *, k: int = 256) -> list[str]:
    """The k tokens that all models' greedy answers use most; ties in order of the string."""
    counts: Counter[str] = Counter()
    for trace in traces.values():
        counts.update(trace.chosen)
    return sorted(counts, key=lambda token: (-counts[token], token))[:k]


def footprints(
    traces: Mapping[str, Trace], probes: Sequence[str], *, k: int = 256, steps: int = 10
) -> pa.Table:
    """`descriptors` rows of kind `logit_footprint`, vectors of shape (k,), unit norm.

    A probability that was not returned cannot be told from a small one: it adds
    nothing to the mean, and the metadata say how much was not returned
    (`unreturned_mass`, mean per step) and which share of the (step, token)
    cells was (`returned_share`).

    Raises:
        BadInput: a model gave no tokens, or none of the frequent ones.
    """
    tokens = frequent_tokens(traces, k=k)
    rows = []
    for model, trace in sorted(traces.items()):
        vector = np.array([trace.mass.get(token, 0.0) for token in tokens], dtype=np.float64)
        norm = float(np.linalg.norm(vector))
        if not trace.steps or not norm:
            raise BadInput(
                f"the answers of {model!r} hold no token probabilities to describe it by",
                where=f"{len(probes)} probes, {trace.steps} steps",
                next_step="ask with top_logprobs, or use --kind perplexity_fingerprint",
            )
        cells = sum(trace.returned.get(token, 0) for token in tokens)
        metadata = {
            "probes": list(probes),
            "steps_per_probe": steps,
            "steps": trace.steps,
            "tokens": tokens,
            "unreturned_mass": trace.unreturned / trace.steps,
            "returned_share": cells / (trace.steps * len(tokens)),
            # (vector / steps) is the mean probability; its norm was divided out.
            "norm": norm / trace.steps,
        }
        rows.append(descriptor(model, KIND, vector / norm, metadata))
    return DESCRIPTORS.from_rows(rows)


def descriptor(
    model: str, kind: str, vector: Floats, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """One `descriptors` row: a vector of any width, stored as float32, and how it was made."""
    return {
        "model_id": model,
        "kind": kind,
        "vector": vector.astype(np.float32).tolist(),
        "metadata": json.dumps(metadata, ensure_ascii=False, sort_keys=True),
    }
