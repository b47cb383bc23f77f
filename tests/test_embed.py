"""The cache of vectors: what was damaged is computed again, and a killed process leaves nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines import embed as module
from routeyard.pipelines.embed import embed


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that the encoder was given."""
    given: list[str] = []

    def load(encoder: str, batch_size: int):
        def encode(texts: list[str]):
            given.extend(texts)
            vectors = np.array([[len(text), 1.0] for text in texts], dtype=np.float32)
            return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), [None] * len(texts)

        return encode

    monkeypatch.setattr(module.encoders, "load", load)
    return given


def run(folder: Path) -> pa.Table:
    names = ["a", "bb", "ccc"]
    queries = pa.table({"query_id": names, "question": names, "choices": [[]] * 3})
    return embed(queries, encoder="e", cache=folder)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(np.float32(1 / np.sqrt(2)).tobytes())] ^= 64
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [_flip, lambda path: path.write_bytes(path.read_bytes()[:100]), Path.unlink],
    ids=["flipped", "cut", "gone"],
)
def test_a_damaged_file_is_made_again(tmp_path: Path, asked: list[str], damage) -> None:
    first = run(tmp_path)
    (path,) = tmp_path.rglob("*.parquet")
    damage(path)
    assert run(tmp_path) == first
    assert len(asked) == 6
    assert run(tmp_path) == first
    assert len(asked) == 6


def test_a_file_without_a_checksum_is_read(tmp_path: Path, asked: list[str]) -> None:
    # Older versions wrote none.
    first = run(tmp_path)
    next(tmp_path.rglob("*.sha256")).unlink()
    assert run(tmp_path) == first
    assert len(asked) == 3


def test_what_a_killed_process_left_is_swept(tmp_path: Path, asked: list[str]) -> None:
    run(tmp_path)
    (path,) = tmp_path.rglob("*.parquet")
    from routeyard.pipelines.io.staging import beside

    left = beside(path)
    left = left.with_name(left.name.rpartition(".")[0] + f".{2**22 - 3}")
    left.write_bytes(b"half")
    path.unlink()
    run(tmp_path)
    assert not left.exists()
