"""Text footprint: which words a model's answers begin with, for models without log-probabilities.

CSCR's logit footprint (equation 2) is the mean probability of the K most frequent tokens over
N probes and T steps. Of a released answer only the token that was drawn is known: its
one-hot vector has that probability as its mean, so the counts over probes and steps
estimate the same vector. Tokens are words and single marks, since texts of many
vocabularies have no tokens in common.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.signals.footprint import descriptor
from routeyard.schemas import DESCRIPTORS

KIND = "text_footprint"
_TOKEN = re.compile(r"\w+|[^\w\s]")


def text_footprints(
    texts: Mapping[str, Sequence[str | None]],
    probes: Sequence[str],
    *,
    k: int = 256,
    steps: int | None = None,
) -> pa.Table:
    """`descriptors` rows of kind `text_footprint`, vectors of shape (k,), unit norm.

    Args:
        texts: per model, its answer to each probe; None where missing. A probe that
            some model did not answer is dropped for all, or the footprint would tell who
            was asked what; the metadata name it.
        steps: words from the beginning of an answer that count (T); None: all of them.
            Ten words (the paper's T) are often the same set phrase for every probe.

    Raises:
        BadInput: no probe is answered by all models, or a model's answers hold none of the
            frequent words.
    """
    kept = [
        i for i in range(len(probes)) if all(answers[i] is not None for answers in texts.values())
    ]
    if not kept:
        raise BadInput(
            "no probe is answered by every model",
            where=", ".join(f"{n}: {sum(t is not None for t in a)}" for n, a in texts.items()),
            next_step="leave out models without answers: --model NAME for those that count",
        )
    counts = {
        model: Counter(
            token for i in kept for token in _TOKEN.findall((answers[i] or "").lower())[:steps]
        )
        for model, answers in texts.items()
    }
    overall: Counter[str] = Counter()
    for found in counts.values():
        overall.update(found)
    tokens = sorted(overall, key=lambda token: (-overall[token], token))[:k]
    rows = []
    for model, found in sorted(counts.items()):
        vector = np.array([found.get(token, 0) for token in tokens], dtype=np.float64)
        norm = float(np.linalg.norm(vector))
        if not norm:
            raise BadInput(
                f"the answers of {model!r} hold no word to describe it by",
                where=f"{len(kept)} probes",
                next_step="leave it out with --model NAME for those that count",
            )
        metadata = {
            "probes": [probes[i] for i in kept],
            "dropped_probes": sorted(set(probes) - {probes[i] for i in kept}),
            "steps_per_probe": steps,
            "tokens": tokens,
            "words": found.total(),
            "covered": sum(found.get(token, 0) for token in tokens) / found.total(),
        }
        rows.append(descriptor(model, KIND, vector / norm, metadata))
    return DESCRIPTORS.from_rows(rows)
