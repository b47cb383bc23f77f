"""Fitted routers on disk: arrays as safetensors, everything else as JSON; never a pickle.

Its attributes are written: numbers, words, arrays, networks, and tuples, lists and dicts of them. A
router with networks makes an empty one for loading (`blank`). Anything else is refused, not
guessed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.common.arrays import Array, Floats
from routeyard.pipelines.common.errors import BadInput, RouteyardError, Unsafe
from routeyard.pipelines.common.untrusted import regular
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import Router

FORMAT = 1
_WORDS, _ARRAYS = "router.json", "router.safetensors"
#: What reading a stranger's folder can raise: any value may be anywhere.
SURPRISES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError,
    RecursionError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
#: Encoder of a router whose own encoder was trained and is in its folder, under this name.
TUNED = "./encoder"
#: What such a folder may hold: weights as arrays, words and numbers.
_PLAIN = (".safetensors", ".json", ".txt", ".model", ".md")
#: And what it may be made of; other modules import what their settings name.
_MODULES = ("Transformer", "Pooling", "Normalize", "Dense")


def save(
    router: Any,
    folder: Path,
    *,
    setting: Mapping[str, Any],
    model_ids: tuple[str, ...],
    encoder: str,
    encoder_hash: str,
    price: Floats | None = None,
    price_in: str | None = None,
) -> None:
    """Write a fitted router of the registry into a folder.

    Args:
        setting: keyword arguments its class was called with, the seed among them.
        encoder, encoder_hash: what made the vectors it was fitted on.
        price: (m,) mean cost per question, for choices that weigh it; by which measure.

    Raises:
        BadInput: it is no registered router, or holds something that cannot be written.
    """
    from safetensors.numpy import save_file

    name = getattr(router, "name", "")
    if name not in ROUTERS.targets or type(router) is not ROUTERS.get(name):
        raise BadInput(
            f"{type(router).__name__} is no registered router, so it could not be loaded again",
            next_step="register it through the entry point group routeyard.routers",
        )
    arrays: dict[str, Array] = {}
    state = _packed(vars(router), "state", arrays)
    if price is not None:
        arrays["price"] = np.ascontiguousarray(price, dtype=np.float64)
    words = {
        "format": FORMAT,
        "router": name,
        "setting": _packed(dict(setting), "setting", arrays),
        "model_ids": list(model_ids),
        "encoder": encoder,
        "encoder_hash": encoder_hash,
        "price_in": price_in if price is not None else None,
        "state": state,
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(arrays or {"empty": np.zeros(1)}, folder / _ARRAYS)
    (folder / _WORDS).write_text(json.dumps(words, indent=1) + "\n", encoding="utf-8")


def is_saved(folder: Path) -> bool:
    return (folder / _WORDS).is_file()


def tuned_encoder(folder: Path) -> Path:
    """The encoder in a saved router's folder.

    Raises:
        BadInput: it is missing, or it holds files that could run code, such as pickles.
    """
    place = folder / TUNED
    files = [path for path in sorted(place.rglob("*")) if not path.is_dir()]
    if not files:
        raise BadInput("the saved router lacks its encoder", where=str(place))
    for path in files:
        if path.suffix not in _PLAIN or path.is_symlink():
            raise Unsafe(
                f"an encoder of a saved router holds {path.name!r}, which is neither "
                "safetensors nor text",
                where=str(path),
                next_step="do not use it; train the router again with `routeyard zoo tune`",
            )
    try:
        modules = json.loads((place / "modules.json").read_text(encoding="utf-8"))
        kinds = [(str(module["type"]), str(module["path"])) for module in modules]
    except SURPRISES as error:
        raise BadInput(f"the saved encoder cannot be read: {error}", where=str(place)) from error
    for kind, part in kinds:
        known = kind.startswith("sentence_transformers.") and kind.rpartition(".")[2] in _MODULES
        if not known or not (place / part).resolve().is_relative_to(place.resolve()):
            raise Unsafe(
                f"an encoder of a saved router names its own code or files: {kind!r}, {part!r}",
                where=str(place / "modules.json"),
                next_step="do not use it; train the router again with `routeyard zoo tune`",
            )
    return place


def load(folder: Path) -> tuple[Router, dict[str, Any]]:
    """(router, its words: model_ids, encoder, encoder_hash, price, price_in).

    Raises:
        BadInput: files are missing or broken, or of another format.
        UnknownName: the router is not registered here.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        words = json.loads((folder / _WORDS).read_text(encoding="utf-8"))
        regular(folder / _ARRAYS)
        arrays = load_file(folder / _ARRAYS)
        if words["format"] != FORMAT:
            raise ValueError(f"format {words['format']}, this version reads {FORMAT}")
        made = ROUTERS.get(words["router"], where=str(folder))
        router = made(**_unpacked(words["setting"], arrays))
        vars(router).update(_state(router, _unpacked(words["state"], arrays)))
        for attribute, value in list(vars(router).items()):
            vars(router)[attribute] = _with_network(router, value)
        if not all(isinstance(word, str) for word in words["model_ids"]):
            raise ValueError("'model_ids' does not hold names")
        if not all(isinstance(words[item], str) for item in ("encoder", "encoder_hash")):
            raise ValueError("it does not name its encoder")
        words["price"] = price = arrays.get("price")
        if price is not None and price.shape != (len(words["model_ids"]),):
            raise ValueError("'price' is not one number for each model")
    except RouteyardError:
        raise
    except (*SURPRISES, SafetensorError) as error:
        said = str(error)[:300] or type(error).__name__
        raise BadInput(
            f"this is no saved router: {said}",
            where=str(folder),
            next_step="save it again with `routeyard route RELEASE --save FOLDER`",
        ) from error
    return router, words


def _state(router: Router, state: Any) -> dict[str, Any]:
    """Attributes that were saved; none may replace a method."""
    for name in state:
        if callable(getattr(type(router), name, None)) or name.startswith("__"):
            raise ValueError(f"its state holds {name!r}, which is a method")
    return dict(state)


class _Network(dict[str, Array]):
    """The arrays of a network that is yet to be built."""


def _with_network(router: Any, value: Any) -> Any:
    """The value, with each network that it is or lists built by the router."""
    if isinstance(value, list):
        return [_with_network(router, item) for item in value]
    if not isinstance(value, _Network):
        return value
    import torch

    network = router.blank(value)
    network.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in value.items()})
    return network.eval()


def _packed(value: Any, key: str, arrays: dict[str, Array]) -> Any:
    """JSON for a value; arrays go into `arrays` and leave their key."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _packed(value.item(), key, arrays)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "US":
            return {"words": value.tolist()}
        if value.dtype.kind not in "biuf":
            raise _unwritable(key, value)
        arrays[key] = np.ascontiguousarray(value)
        return {"array": key}
    if hasattr(value, "state_dict"):
        of = {f"{key}.{k}": v.numpy() for k, v in value.state_dict().items()}
        arrays |= {k: np.ascontiguousarray(v) for k, v in of.items()}
        return {"network": f"{key}."}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_packed(v, f"{key}.{k}", arrays) for k, v in enumerate(value)]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"dict": {k: _packed(v, f"{key}.{k}", arrays) for k, v in value.items()}}
    raise _unwritable(key, value)


def _unpacked(value: Any, arrays: Mapping[str, Array]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "array":
        return arrays[inner]
    if kind == "network":
        own = {k: v for k, v in arrays.items() if k.startswith(inner)}
        return _Network({k.removeprefix(inner): v for k, v in own.items()})
    if kind == "words":
        return np.array(inner, dtype=np.str_)
    if kind == "bytes":
        return bytes.fromhex(inner)
    if kind == "dict":
        return {k: _unpacked(v, arrays) for k, v in inner.items()}
    results = [_unpacked(v, arrays) for v in inner]
    return tuple(results) if kind == "tuple" else results


def _unwritable(key: str, value: Any) -> BadInput:
    return BadInput(
        f"a router cannot be saved with a {type(value).__name__} in {key}",
        next_step="keep numbers, words, arrays and torch modules in its attributes",
    )
