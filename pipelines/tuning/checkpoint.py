"""Checkpoints of a training on disk: arrays as safetensors, words as JSON, never a pickle.

A checkpoint is a folder that is renamed into place when it is whole, so a kill at any
moment leaves the one before it. It holds all that the next step depends on: weights,
moments of the optimiser, the state of every random generator.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from routeyard.pipelines.io.staging import place as put
from routeyard.pipelines.io.staging import replacing, staging

FORMAT = 1
_PREFIX = "step-"


@dataclass
class Progress:
    """Attributes:
    step: optimiser steps done.
    best: (routing accuracy, −squared error) of the best look on validation.
    best_step: the step after which it was; its weights are in `best-<step>.safetensors`.
    waited: looks since.
    ended: whether training is over.
    looks: every look: step, accuracy, error, mean train loss since the one before.
    losses: sum of train losses since the last look, and how many.
    seconds: on the clock so far, over all processes.
    """

    step: int = 0
    best: tuple[float, float] = (-1.0, 0.0)
    best_step: int = -1
    waited: int = 0
    ended: bool = False
    looks: list[dict[str, float]] = field(default_factory=list)
    losses: tuple[float, int] = (0.0, 0)
    seconds: float = 0.0


def save(place: Path, progress: Progress, fingerprint: str, tensors: Mapping[str, Any]) -> None:
    """Write a checkpoint under `place`; older ones, and weights nobody needs, go."""
    from safetensors.torch import save_file

    target = place / f"{_PREFIX}{progress.step:08d}"
    with staging(target) as unfinished:
        save_file(_apart(tensors), unfinished / "state.safetensors")
        words = {"format": FORMAT, "fingerprint": fingerprint, **asdict(progress)}
        (unfinished / "state.json").write_text(json.dumps(words) + "\n", encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        put(unfinished, target)
    for other in place.iterdir():
        kept = (target.name, best_file(place, progress.best_step).name)
        if other.name not in kept:
            shutil.rmtree(other) if other.is_dir() else other.unlink()


def newest(place: Path, fingerprint: str) -> tuple[Progress, dict[str, Any]] | None:
    """The last whole checkpoint of the same training; None without one.

    One of other settings, data or format is of no use and counts as none.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    for folder in sorted(place.glob(f"{_PREFIX}*"), reverse=True):
        try:
            words = json.loads((folder / "state.json").read_text(encoding="utf-8"))
            if words.pop("format") != FORMAT or words.pop("fingerprint") != fingerprint:
                continue
            words["best"], words["losses"] = tuple(words["best"]), tuple(words["losses"])
            found = Progress(**words)
            if found.best_step >= 0 and not best_file(place, found.best_step).is_file():
                continue
            return found, load_file(folder / "state.safetensors")
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            continue
    return None


def best_file(place: Path, step: int) -> Path:
    return place / f"best-{step:08d}.safetensors"


def save_best(place: Path, step: int, tensors: Mapping[str, Any]) -> None:
    """Keep the weights of the best look."""
    from safetensors.torch import save_file

    with replacing(best_file(place, step)) as unfinished:
        save_file(_apart(tensors), unfinished)


def load_best(place: Path, step: int) -> dict[str, Any]:
    from safetensors.torch import load_file

    found: dict[str, Any] = load_file(best_file(place, step))
    return found


def _apart(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Copies: tensors that share memory are refused by the format."""
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
