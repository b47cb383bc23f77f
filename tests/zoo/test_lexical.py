"""The lexical encoder: the same vectors however many threads share its sums, and kept."""

from pathlib import Path

import numpy as np
import pytest
import sklearn.decomposition  # noqa: F401  (a limit holds for the libraries that are loaded)
from threadpoolctl import threadpool_limits

from routeyard.flows.evaluation.released import kept_tfidf
from routeyard.pipelines.common.encoders import fitted, tfidf


def test_vectors_do_not_depend_on_the_number_of_threads() -> None:
    drawn = np.random.default_rng(0).zipf(1.3, size=(1_000, 40)) % 5_000
    texts = [" ".join(f"w{word}" for word in row) for row in drawn]
    train = np.arange(len(texts)) % 3 > 0
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(tfidf(texts, train))
    assert np.array_equal(*found)
    learnt = [text for text, use in zip(texts, train, strict=True) if use]
    assert np.array_equal(found[0], fitted(learnt).encode(texts))  # counted once or twice


def test_vectors_are_kept_in_the_cache_until_a_text_or_the_split_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(texts: list[str], fit_on: np.ndarray) -> np.ndarray:
        made.append(len(texts))
        return tfidf(texts, fit_on)

    monkeypatch.setattr("routeyard.flows.evaluation.released.tfidf", counted)
    texts = [f"how many apples are {k} and {k % 7} pears" for k in range(60)]
    train = np.arange(60) % 3 > 0
    first = kept_tfidf(texts, train, tmp_path)
    assert np.array_equal(first, kept_tfidf(texts, train, tmp_path))
    assert len(made) == 1
    assert np.array_equal(first, tfidf(texts, train))
    kept_tfidf([*texts[:-1], "another question"], train, tmp_path)
    kept_tfidf(texts, ~train, tmp_path)
    assert len(made) == 3
    for file in tmp_path.glob("tfidf-*.safetensors"):  # a damaged file is made again
        file.write_bytes(file.read_bytes()[:100])
    assert np.array_equal(first, kept_tfidf(texts, train, tmp_path))
    assert len(made) == 4
    (tmp_path / "file").write_text("no folder")
    assert np.array_equal(first, kept_tfidf(texts, train, tmp_path / "file"))
