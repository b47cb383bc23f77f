"""Dedup over shards and parts equals one search; the storage may be any that fsspec opens."""

from __future__ import annotations

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.tasks.dedup_shards import read_vectors, run_dedup_shards
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.curate.search import near_duplicate_pairs


@pytest.fixture
def vectors():
    draw = np.random.default_rng(3)
    base = draw.normal(size=(900, 16)).astype(np.float32)
    close = base[:300] + draw.normal(scale=0.008, size=(300, 16)).astype(np.float32)
    return np.concatenate([base, close, base[100:150]])[draw.permutation(1250)]


def shards_of(vectors, folder, count):
    addresses = []
    for i, part in enumerate(np.array_split(vectors, count)):
        table = pa.table(
            {"vector": pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), part.shape[1])}
        )
        addresses.append(f"{folder}/{i}.parquet")
        with fsspec.open(addresses[-1], "wb", auto_mkdir=True) as file:
            pq.write_table(table, file)
    return addresses


@pytest.mark.parametrize("storage", ["folder", "memory"])
def test_shards_and_parts_give_what_one_search_gives(vectors, tmp_path, storage):
    root = str(tmp_path) if storage == "folder" else f"memory://{tmp_path.name}"
    shards = shards_of(vectors, f"{root}/in", 4)
    found = run_dedup_shards(shards, f"{root}/out", parts=7)
    whole = near_duplicate_pairs(vectors, 0.999)
    assert len(whole.left) > 100
    for name in ("first", "left", "right", "similarity"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))


def test_a_column_of_other_things_is_refused(tmp_path):
    pq.write_table(pa.table({"vector": [[1.0], [1.0, 2.0]]}), tmp_path / "odd.parquet")
    with pytest.raises(BadInput, match="vectors of one width"):
        read_vectors(str(tmp_path / "odd.parquet"))
