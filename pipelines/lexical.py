"""A lexical encoder that needs no weights: TF-IDF of words and word pairs, then SVD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.effort import one_thread_each

#: What the encoder is called.
NAME = "tfidf"
DIMENSIONS = 256
#: Words of any length and single signs: formulas and code are made of both.
WORDS = r"(?u)\b\w+\b|[^\w\s]"


@dataclass(frozen=True, eq=False)
class Lexical:
    """A fitted lexical encoder: words and pairs, their weights, and the axes of the SVD.

    Attributes:
        words: the vocabulary, in column order.
        idf: (words,) inverse document frequencies.
        axes: (d, words) right singular vectors.
        mean: (d,) direction of a text that shares no word.
    """

    words: tuple[str, ...]
    idf: Floats
    axes: Vectors
    mean: Floats

    def encode(self, texts: Sequence[str]) -> Vectors:
        """(n, d) unit vectors."""
        words = _vectorizer(vocabulary=list(self.words))
        words.idf_ = self.idf
        return self.placed(words.transform(texts))

    def placed(self, weights: Any) -> Vectors:
        """(n, d) unit vectors of texts whose words are weighed: (n, words), sparse."""
        found = weights @ self.axes.T.astype(np.float64)
        length = np.linalg.norm(found, axis=1, keepdims=True)
        unit = np.where(length > 1e-9, found / np.maximum(length, 1e-9), self.mean)
        return np.asarray(unit, dtype=np.float32)


def fitted(texts: Sequence[str], *, dimensions: int = DIMENSIONS) -> Lexical:
    """The encoder of these texts; d is smaller than `dimensions` where they hold less.

    Raises:
        BadInput: they hold no words.
    """
    return _fitted(texts, dimensions)[0]


def _fitted(texts: Sequence[str], dimensions: int = DIMENSIONS) -> tuple[Lexical, Any]:
    """The encoder of these texts, and their weights: (n, words), sparse.

    The axes are found on one thread: their last digits depend on how many share the sums.
    """
    from sklearn.decomposition import TruncatedSVD

    words = _vectorizer(max_features=50_000, min_df=2 if len(texts) > 50 else 1)
    try:
        counts = words.fit_transform(texts)
    except ValueError as error:  # no question, or none with a word of another
        raise BadInput(
            f"the {len(texts):,} train questions hold no words to learn an encoder from",
            where=f"encoder {NAME}",
            next_step="name another encoder, or a split scheme with train questions",
        ) from error
    names = tuple(words.get_feature_names_out().tolist())
    d = min(dimensions, counts.shape[0] - 1, counts.shape[1] - 1)
    if d < 1:
        axes = np.ones((1, len(names)), dtype=np.float32)
    else:
        # Texts that are all alike: 0 / 0.
        with one_thread_each(), np.errstate(divide="ignore", invalid="ignore"):
            svd = TruncatedSVD(d, algorithm="randomized", n_iter=4, random_state=0).fit(counts)
        axes = svd.components_.astype(np.float32)
    mean = np.asarray(counts.mean(axis=0)).ravel() @ axes.T.astype(np.float64)
    mean = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return Lexical(names, words.idf_, axes, mean), counts


def tfidf(texts: Sequence[str], fit_on: Bools) -> Vectors:
    """(n, d) unit vectors of texts; vocabulary and axes come from the texts in `fit_on`.

    Args:
        fit_on: (n,) the train texts: the others must not shape the space.
    """
    train = [text for text, use in zip(texts, fit_on, strict=True) if use]
    others = [text for text, use in zip(texts, fit_on, strict=True) if not use]
    encoder, counts = _fitted(train)
    found = np.empty((len(texts), len(encoder.mean)), dtype=np.float32)
    found[fit_on] = encoder.placed(counts)
    if others:
        found[~fit_on] = encoder.encode(others)
    return found


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORDS, **options)
