"""Vectors of a release's questions by the name of an encoder: shipped, lexical, or computed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from routeyard.flows.console import counter
from routeyard.flows.workspace.code import reached_code
from routeyard.pipelines.arrays import Bools, Vectors
from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.experiment.digest import feed
from routeyard.pipelines.experiment.fit import library_versions
from routeyard.pipelines.io.staging import replacing
from routeyard.pipelines.lexical import NAME as TFIDF
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.embeddings import encoder_vectors
from routeyard.pipelines.release.sealed_files import outside_releases
from routeyard.schemas import CONTRACTS


def vectors(
    tables: Mapping[str, pa.Table], core: Core, names: Sequence[str], *, scheme: str, cache: Path
) -> dict[str, Vectors]:
    """Encoder → (n, d) vectors of the core's questions; those that are missing are computed.

    A name is looked for among the release's own embeddings, then `tfidf`, then
    what `routeyard.pipelines.encoders` knows: packaged weights, a folder, a hub id.

    Raises:
        BadInput: the name is not one of these.
    """
    from routeyard.pipelines.embed import embed, text_of

    found: dict[str, Vectors] = {}
    shipped: set[str] = set()
    if "embeddings" in tables:
        shipped = set(tables["embeddings"].column("encoder").to_pylist())
    ids = pa.array(core.query_ids, pa.string())
    for name in dict.fromkeys(names):
        own = shipped_name(name, shipped)
        if own is not None:
            loaded = encoder_vectors(tables["embeddings"], ids, own)
            assert loaded is not None
            found[name] = loaded
        elif name == TFIDF:
            rows = {q: k for k, q in enumerate(tables["queries"].column("query_id").to_pylist())}
            questions = tables["queries"].column("question").to_pylist()
            choices = tables["queries"].column("choices").to_pylist()
            texts = [text_of(questions[rows[q]], choices[rows[q]] or []) for q in core.query_ids]
            every = np.ones(len(texts), dtype=bool)  # without a split all may shape the space
            train = core.splits[scheme] == "train" if scheme else every
            found[name] = kept_tfidf(texts, train, cache)
        else:
            full = known_name(name, shipped)
            outside_releases(cache)
            with counter("embed", "questions") as advance:
                table = embed(tables["queries"], encoder=full, cache=cache, on_progress=advance)
            loaded = encoder_vectors(table, ids, f"{full}:float32")
            assert loaded is not None
            found[name] = loaded
    return found


def known_name(name: str, shipped: Collection[str] = ()) -> str:
    """The full name of an encoder that can be computed.

    Raises:
        BadInput: no encoder has this name.
    """
    from routeyard.pipelines import encoders

    full = encoders.full_name(name)
    if not encoders.known(full):
        every = [TFIDF, *encoders.ALIASES, *encoders.names(), *sorted(shipped)]
        raise BadInput(
            f"there is no encoder {name!r}",
            next_step=did_you_mean(name, every)
            + "; or name a folder of weights or a hub id (owner/name)",
        )
    return full


def shipped_name(name: str, shipped: Collection[str]) -> str | None:
    """How a release calls its embeddings by an encoder of this name; None where it has none."""
    from routeyard.pipelines import encoders

    full = encoders.full_name(name)
    # Vectors of another backend are the same to 1e-6 in cosine.
    either = (f"{full}:float32", f"{full}{encoders.OPENVINO}:float32")
    return next((one for one in (name, full, *either) if one in shipped), None)


def kept_tfidf(texts: Sequence[str], train: Bools, cache: Path) -> Vectors:
    """(n, d) TF-IDF vectors, kept in the cache under a hash of all that decides them."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file, save_file

    from routeyard.pipelines.lexical import tfidf

    code = reached_code("routeyard.pipelines.lexical")
    hashed = hashlib.sha256()
    feed(hashed, [code, *library_versions()])
    feed(hashed, np.asarray(train))
    feed(hashed, texts)
    file = cache / f"{TFIDF}-{hashed.hexdigest()[:24]}.safetensors"
    with suppress(OSError, SafetensorError, KeyError):  # not kept, or damaged
        kept: Vectors = load_file(file)["vectors"]
        return kept
    found = tfidf(texts, train)
    outside_releases(cache)
    # A cache that cannot be written keeps nothing.
    with suppress(OSError), replacing(file) as unfinished:
        save_file({"vectors": found}, unfinished)
    return found


def lexical(tables: Mapping[str, pa.Table], core: Core, scheme: str, cache: Path) -> pa.Table:
    """`embeddings` of all questions by TF-IDF, fitted on the train questions of a scheme."""
    found = vectors(tables, core, [TFIDF], scheme=scheme, cache=cache)[TFIDF]
    n, d = found.shape
    offsets = pa.array(np.arange(0, n * d + 1, d, dtype=np.int32))
    columns = {
        "query_id": pa.array(core.query_ids, pa.string()),
        "encoder": pa.repeat(TFIDF, n),
        "vector": pa.ListArray.from_arrays(offsets, found.astype(np.float32).ravel()),
        "seen_chars": pa.nulls(n, pa.int64()),
    }
    contract = CONTRACTS["embeddings"]
    return contract.conform(pa.table({k: columns[k] for k in contract.column_names}))
