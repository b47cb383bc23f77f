"""Uniform random choice."""

from __future__ import annotations

import hashlib

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.matrix.memmap import allocate, blocks
from routeyard.pipelines.routers.base import Examples, Queries, listed


@listed
class UniformRandom:
    """Scores drawn uniformly from [0, 1) by query, so that their order is random.

    Each query's scores depend on the seed and its id alone: the same query gets
    the same choice whichever others are asked with it.
    """

    name = "random"

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, train: Examples) -> UniformRandom:
        # Scores belong to model ids, not positions: pool order must not matter.
        self._salt = [f"{self.seed}:{name}:".encode() for name in train.model_ids]
        return self

    def scores(self, queries: Queries) -> Floats:
        out = allocate((len(queries), len(self._salt)))
        for part in blocks(len(queries)):
            ids = [query.encode() for query in queries.query_ids[part]]
            for column, salt in enumerate(self._salt):
                digests = b"".join(
                    hashlib.blake2b(salt + query, digest_size=8).digest() for query in ids
                )
                out[part, column] = np.frombuffer(digests, dtype="<u8") / 2.0**64
        return out
