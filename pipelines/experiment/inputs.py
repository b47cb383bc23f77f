"""What every cell reads: labels, costs, splits, texts and one encoder's vectors, as files.

Threads and the processes of a cluster read the same files, so a cell's figures
cannot depend on where it ran. Arrays are safetensors, words are JSON: nothing is
ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.arrays import Bools, Ints
from routeyard.pipelines.experiment.splits import order, with_validation
from routeyard.pipelines.experiment.splits import redrawn as splits_of
from routeyard.pipelines.io.staging import replacing
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.examples import Arms, Examples, Queries
from routeyard.pipelines.matrix.leaked import leaked
from routeyard.pipelines.matrix.row_blocks import every


@dataclass(frozen=True)
class CellInputs:
    """The files' paths, and what they hold.

    Attributes:
        folder: of the files.
        scheme: split scheme of the cells.
        data: hash of labels, costs, tasks and splits.
        vectors: encoder → hash of its vectors.
        texts: hash of prompts and questions.
        carved: whether validation had to be taken from train.
        redrawn: names of the files of other draws of the split.
    """

    folder: Path
    scheme: str
    data: str
    vectors: dict[str, str]
    texts: str
    carved: bool = False
    redrawn: tuple[str, ...] = ()


def write(
    folder: Path,
    core: Core,
    scheme: str,
    vectors: dict[str, NDArray[np.float32]],
    splits: int = 0,
) -> CellInputs:
    """The bench of a core under `folder`; what is there already is not written again.

    Args:
        splits: how many draws of the split are written beside the core's own.
    """
    core, carved = with_validation(core, scheme)
    arrays, words, data = _contents(core, scheme)
    _save(folder / f"data-{data}.safetensors", arrays)
    _text(folder / f"data-{data}.json", words)
    said = json.dumps(
        {
            "prompts": list(core.prompts),
            "questions": list(core.questions),
            "duplicates_known": core.duplicates_known,
        }
    )
    texts = _hash({}, said)
    _text(folder / f"texts-{texts}.json", said)
    hashes = {}
    for encoder, matrix in vectors.items():
        hashes[encoder] = _hash({"vectors": matrix}, "")
        _save(folder / f"vectors-{hashes[encoder]}.safetensors", {"vectors": matrix})
    redrawn = []
    for one in splits_of(core, scheme, splits):
        drawn = json.dumps(one.splits[scheme].tolist())
        redrawn.append(f"split-{_hash({}, drawn)}.json")
        _text(folder / redrawn[-1], drawn)
    return CellInputs(folder, scheme, data, hashes, texts, carved, tuple(redrawn))


def hash_of(core: Core, scheme: str) -> str:
    """What `CellInputs.data` is for a core: equal labels, costs, tasks and splits, equal hash."""
    return _contents(with_validation(core, scheme)[0], scheme)[2]


def _contents(core: Core, scheme: str) -> tuple[dict[str, NDArray[Any]], str, str]:
    """Arrays, words and their hash; the core has validation questions."""
    arrays: dict[str, NDArray[Any]] = {
        "labels": core.labels,
        **{f"cost.{k}": v for k, v in sorted(core.costs.items())},
        **{f"part_cost.{k}": v for k, v in sorted(core.part_costs.items())},
        **{f"signal.{k}": v for k, v in sorted(core.signals.items())},
        **{f"descriptor.{k}": v for k, v in sorted(core.descriptors.items())},
    }
    if core.hidden is not None:
        arrays["hidden"] = core.hidden
    if core.arms is not None:
        arrays |= {f"arms.{name}": value for name, value in vars(core.arms).items()}
    if core.correct is not None and not every(_decision, core.labels):
        arrays["correct"] = core.correct
    words = {
        "query_ids": list(core.query_ids),
        "model_ids": core.model_ids,
        "tasks": core.tasks.tolist(),
        "domains": core.domains.tolist(),
        "split": core.splits[scheme].tolist(),
        "groups": core.groups.tolist(),
        "scheme": scheme,
        "hidden_of": core.hidden_of,
    }
    text = json.dumps(words)
    return arrays, text, _hash(arrays, text)


@dataclass(frozen=True, eq=False)
class Ground:
    """What every cell on one bench with one encoder learns from and is asked.

    Attributes:
        core: all questions; its one split scheme says which are which.
        validation, test: questions with a label; `asked_before` and `asked` without them.
        order: (m,) models, best on train first.
    """

    core: Core
    train: Examples
    validation: Core
    test: Core
    asked_before: Queries
    asked: Queries
    order: Ints

    @cached_property
    def clean(self) -> Bools:
        """(t,) questions of `test` that are not also in train."""
        rows = np.flatnonzero(np.isin(self.core.query_ids, self.test.query_ids))
        return ~leaked(self.core, next(iter(self.core.splits)), rows)


_READING = Lock()


def ground(folder: Path, data: str, vectors: str, texts: str, redrawn: str = "") -> Ground:
    """The ground of a bench's cells, the same objects for every cell of a process.

    Args:
        redrawn: file of another draw of the split; empty for the bench's own.
    """
    with _READING:  # two cells that begin together wait for one reading
        return _ground(folder, data, vectors, texts, redrawn)


@lru_cache(maxsize=4)
def _ground(folder: Path, data: str, vectors: str, texts: str, redrawn: str) -> Ground:
    core = read(folder, data, vectors, texts)
    scheme = next(iter(core.splits))
    if redrawn:
        core = on_draw(core, folder / redrawn)
    held, test = (core.take(core.rows(scheme, one)).labelled() for one in ("validation", "test"))
    asked = (held.queries(), test.queries())
    return Ground(core, core.training(scheme), held, test, *asked, order(core, scheme))


def on_draw(core: Core, drawn: Path) -> Core:
    """The core of a bench with another draw of its split."""
    split = np.array(json.loads(drawn.read_text()), dtype=np.str_)
    return replace(core, splits=dict.fromkeys(core.splits, split))


@lru_cache(maxsize=4)
def read(folder: Path, data: str, vectors: str, texts: str = "") -> Core:
    """The core of a bench with one encoder's vectors and with texts; empty: without them."""
    from safetensors.numpy import load_file

    arrays = load_file(folder / f"data-{data}.safetensors")
    words = json.loads((folder / f"data-{data}.json").read_text())
    said: dict[str, Any] = {}
    if texts:
        said = json.loads((folder / f"texts-{texts}.json").read_text())
    found = None
    if vectors:
        found = load_file(folder / f"vectors-{vectors}.safetensors")["vectors"]
    return Core(
        query_ids=tuple(words["query_ids"]),
        model_ids=tuple(words["model_ids"]),
        labels=arrays["labels"],
        costs=_named(arrays, "cost."),
        part_costs=_named(arrays, "part_cost."),
        tasks=np.array(words["tasks"], dtype=np.str_),
        domains=np.array(words["domains"], dtype=np.str_),
        splits={words["scheme"]: np.array(words["split"], dtype=np.str_)},
        groups=np.array(words["groups"], dtype=np.int64),
        # Labels of 0 and 1 are decisions; only graded ones have others beside them.
        correct=arrays.get("correct"),
        embeddings=found,
        prompts=tuple(said.get("prompts", ())),
        questions=tuple(said.get("questions", ())),
        duplicates_known=bool(said.get("duplicates_known")),
        signals=_named(arrays, "signal."),
        hidden=arrays.get("hidden"),
        hidden_of=words["hidden_of"],
        descriptors=_named(arrays, "descriptor."),
        arms=Arms(**arms) if (arms := _named(arrays, "arms.")) else None,
    )


def _decision(labels: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where a label is 0, 1 or missing, and so says itself what is right."""
    return np.asarray(np.isnan(labels) | (labels == 0) | (labels == 1))


def _named(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _hash(arrays: Mapping[str, NDArray[Any]], words: str) -> str:
    hashed = hashlib.sha256(words.encode())
    for name, array in arrays.items():
        whole = np.ascontiguousarray(array)
        hashed.update(f"{name}:{whole.shape}:{whole.dtype}".encode())
        hashed.update(whole.tobytes())
    return hashed.hexdigest()[:16]


def _save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    from safetensors.numpy import save_file

    if not path.is_file():
        with replacing(path) as unfinished:
            save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, unfinished)


def _text(path: Path, text: str) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(text)
