"""The lexical encoder: the same vectors however many threads share its sums."""

import numpy as np
import sklearn.decomposition  # noqa: F401  (a limit holds for the libraries that are loaded)
from threadpoolctl import threadpool_limits

from routeyard.pipelines.lexical import fitted, tfidf


def test_vectors_do_not_depend_on_the_number_of_threads() -> None:
    drawn = np.random.default_rng(0).zipf(1.3, size=(3_000, 40)) % 5_000
    texts = [" ".join(f"w{word}" for word in row) for row in drawn]
    train = np.arange(len(texts)) % 3 > 0
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(tfidf(texts, train))
    assert np.array_equal(*found)
    learnt = [text for text, use in zip(texts, train, strict=True) if use]
    assert np.array_equal(found[0], fitted(learnt).encode(texts))  # counted once or twice
