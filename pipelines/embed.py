"""Sentence embeddings of questions, computed once per encoder and text.

Encoders truncate: texts beyond the window are embedded by their beginning
only. `seen_chars` says where the encoder stopped reading, so that a rule can
compare what it did not see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines import encoders
from routeyard.pipelines.arrays import Array
from routeyard.pipelines.io.files import sha256
from routeyard.pipelines.io.staging import replacing
from routeyard.schemas import EMBEDDINGS
from routeyard.schemas.images import marks_last

#: Texts per cache file: what an interrupted run embeds again at most.
CHUNK = 512


def text_of(question: str, choices: Sequence[str]) -> str:
    """What is embedded: the question and its options, without instructions.

    Options belong to it: "Which of these is true?" is another question with
    other options.
    """
    return marks_last("\n".join([question, *choices]))[0]


def unseen_of(question: str, choices: Sequence[str]) -> str:
    """Marks of the question's images, which an encoder of texts does not see."""
    return marks_last("\n".join([question, *choices]))[1]


def embed(
    queries: pa.Table,
    *,
    encoder: str,
    cache: Path,
    batch_size: int = 8,
    on_progress: Callable[[int, int], None] | None = None,
) -> pa.Table:
    """`embeddings` of all queries; only texts that the cache lacks are computed.

    Args:
        encoder: A folder, a hub id, or a name in `encoders.PACKAGED`.
        cache: Folder of the cache; one sub-folder per encoder and precision.
        on_progress: Called with (done, wanted) texts.

    Returns:
        EMBEDDINGS table, float32 unit vectors, in query order.
    """
    texts = lacking(queries, encoder=encoder, cache=cache)
    fill(texts, encoder=encoder, cache=cache, batch_size=batch_size, on_progress=on_progress)
    known = _read(_folder(cache, encoder))
    found = []
    columns = (queries.column(name).to_pylist() for name in ("question", "choices"))
    for question, choices in zip(*columns, strict=True):
        text = text_of(question, choices)
        vector, seen = known[_key(text)]
        if seen is None and unseen_of(question, choices):
            seen = len(text)
        found.append((vector, seen))
    return _table(queries.column("query_id"), _name(encoder), found)


def lacking(queries: pa.Table, *, encoder: str, cache: Path) -> pa.Table:
    """Texts that the cache lacks, in the order to embed them: columns `key`, `text`.

    By length: batches need little padding. By key after that: the same batches,
    so the same last bits, whatever order the questions came in.
    """
    known = set(_keys(_folder(cache, encoder)))
    todo = {key: text for text in _texts(queries) if (key := _key(text)) not in known}
    ordered = sorted(todo, key=lambda key: (len(todo[key]), key))
    columns = {"key": ordered, "text": [todo[key] for key in ordered]}
    return pa.table(columns, schema=pa.schema([("key", pa.string()), ("text", pa.string())]))


def fill(
    texts: pa.Table,
    *,
    encoder: str,
    cache: Path,
    batch_size: int = 8,
    shard: tuple[int, int] = (1, 1),
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Embed what `lacking` listed, a cache file per `CHUNK` texts; returns how many were.

    Args:
        shard: (k, n) makes the files k, k + n, k + 2n, … of the list. Files are cut
            the same for every n, and one that is there is not made again, so neither
            shards nor kills change a bit of any vector.
        on_progress: Called with (done, wanted) texts of this shard.
    """
    folder = _folder(cache, encoder)
    folder.mkdir(parents=True, exist_ok=True)
    first, step = (shard[0] - 1) * CHUNK, shard[1] * CHUNK
    chunks = [texts.slice(start, CHUNK) for start in range(first, len(texts), step)]
    wanted = sum(len(chunk) for chunk in chunks)
    encode: encoders.Encode | None = None
    made = done = 0
    for chunk in chunks:
        keys = chunk.column("key").to_pylist()
        if not _file(folder, keys).is_file():
            encode = encode or encoders.load(encoder, batch_size)
            vectors, seen = encode(chunk.column("text").to_pylist())
            _write(folder, keys, vectors, seen)
            made += len(keys)
        done += len(keys)
        if on_progress:
            on_progress(done, wanted)
    return made


def _name(encoder: str) -> str:
    """Encoder and precision, as the `encoder` column says it."""
    return f"{encoder}:float32"


def _folder(cache: Path, encoder: str) -> Path:
    name = _name(encoder).replace("/", "_").replace(":", "-")
    if Path(encoders.unpooled(encoder)[0]).is_dir():
        # A folder keeps its name when it is trained again; its vectors are others.
        name += f"-{encoders.weights_hash(encoder)}"
    return cache / name


def _texts(queries: pa.Table) -> list[str]:
    questions = queries.column("question").to_pylist()
    choices = queries.column("choices").to_pylist()
    return [text_of(q, c) for q, c in zip(questions, choices, strict=True)]


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _table(ids: Any, name: str, found: Sequence[tuple[Any, int | None]]) -> pa.Table:
    """EMBEDDINGS in query order."""
    matrix = np.vstack([vector for vector, _ in found]) if found else np.zeros((0, 1), np.float32)
    offsets = np.arange(0, matrix.size + 1, matrix.shape[1], dtype=np.int32)
    table = pa.table(
        {
            "query_id": ids,
            "encoder": pa.array([name] * len(found), pa.string()),
            "seen_chars": pa.array([seen for _, seen in found], pa.int64()),
            "vector": pa.ListArray.from_arrays(offsets, pa.array(matrix.ravel(), pa.float32())),
        }
    )
    return EMBEDDINGS.check(table, where="embeddings")


def _read(folder: Path) -> dict[str, tuple[Any, int | None]]:
    known: dict[str, tuple[Any, int | None]] = {}
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path)
        lists = table.column("vector").combine_chunks()
        matrix = lists.flatten().to_numpy().reshape(len(table), -1)
        seen = table.column("seen_chars").to_pylist()
        known.update(
            zip(table.column("key").to_pylist(), zip(matrix, seen, strict=True), strict=True)
        )
    return known


def _keys(folder: Path) -> list[str]:
    """Keys of all texts in the cache; a file that was damaged is removed, and made again."""
    keys: list[str] = []
    for path in sorted(folder.glob("*.parquet")):
        if not _intact(path):
            path.unlink(missing_ok=True)
            continue
        keys += pq.read_table(path, columns=["key"])[0].to_pylist()
    return keys


def _intact(path: Path) -> bool:
    """Whether a cache file is what was written."""
    try:
        return path.with_suffix(".sha256").read_text(encoding="ascii") == sha256(path)
    except (OSError, ValueError):
        return False


def _file(folder: Path, keys: list[str]) -> Path:
    name = hashlib.sha256("".join(keys).encode()).hexdigest()[:16]
    return folder / f"{name}.parquet"


def _write(folder: Path, keys: list[str], vectors: Array, seen: list[int | None]) -> None:
    table = pa.table(
        {
            "key": keys,
            "seen_chars": pa.array(seen, pa.int64()),
            "vector": pa.array(list(vectors), pa.list_(pa.float32())),
        }
    )
    path = _file(folder, keys)
    with replacing(path) as unfinished:
        pq.write_table(table, unfinished)
        # First: a file that is there has its checksum, whenever this process is killed.
        with replacing(path.with_suffix(".sha256")) as checksum:
            checksum.write_text(sha256(unfinished), encoding="ascii")
