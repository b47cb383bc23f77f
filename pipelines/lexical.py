"""A lexical encoder that needs no weights: TF-IDF of words and word pairs, then SVD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: What the encoder is called.
NAME = "tfidf"
DIMENSIONS = 256
#: Words of any length and single signs: formulas and code are made of both.
WORDS = r"(?u)\b\w+\b|[^\w\s]"


def tfidf(
    texts: Sequence[str], fit_on: NDArray[np.bool_], *, dimensions: int = DIMENSIONS
) -> NDArray[np.float32]:
    """(n, d) unit vectors of texts; vocabulary and axes come from the texts in `fit_on`.

    A text that shares no word with them gets the mean direction, so that every
    vector has unit length. d is smaller than `dimensions` where the texts hold less.

    Args:
        fit_on: (n,) the train texts: the others must not shape the space.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    train = [text for text, use in zip(texts, fit_on, strict=True) if use]
    words = TfidfVectorizer(
        ngram_range=(1, 2),
        sublinear_tf=True,
        max_features=50_000,
        min_df=2 if len(train) > 50 else 1,
        token_pattern=WORDS,
    )
    counts = words.fit_transform(train)
    d = max(1, min(dimensions, counts.shape[0] - 1, counts.shape[1] - 1))
    if min(counts.shape) < 2:
        return np.ones((len(texts), 1), dtype=np.float32)
    axes = TruncatedSVD(d, algorithm="randomized", n_iter=4, random_state=0).fit(counts)
    found = axes.transform(words.transform(texts))
    length = np.linalg.norm(found, axis=1, keepdims=True)
    mean = found[fit_on].mean(axis=0)
    mean = mean / max(float(np.linalg.norm(mean)), 1e-12)
    unit = np.where(length > 1e-9, found / np.maximum(length, 1e-9), mean)
    return np.asarray(unit, dtype=np.float32)
