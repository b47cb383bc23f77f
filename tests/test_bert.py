"""The packaged encoder by torch alone gives sentence-transformers' vectors, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from routeyard.pipelines import encoders
from routeyard.pipelines.bert import BertEncoder

TEXTS = [
    "",
    "   ",
    "What is 2 + 3?",
    " [SEP] a [MASK]b [CLS] ",
    "é à ﬁ 漢字 🙂",
    "A\n\nB\tC\x00\u200b",
    "word " * 400,
    "x" * 3000,
    *(f"Is {'the number ' * n}{n} even?" for n in range(40)),
]


@pytest.mark.parametrize("name", list(encoders.PACKAGED))
def test_vectors_and_cuts_are_those_of_the_library(name: str) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        ours, theirs = encoders._made(name), encoders._Library(encoders.loaded(name))
        assert isinstance(ours, BertEncoder)
        assert ours.max_seq_length == theirs.max_seq_length
        for size in (1, 3, 8):
            assert np.array_equal(ours.encode(TEXTS, size), theirs.encode(TEXTS, size))
    finally:
        torch.set_num_threads(threads)
    for text in TEXTS:
        assert list(map(tuple, ours.offsets(text))) == list(map(tuple, theirs.offsets(text)))
