"""One fit of a grid: a router, an encoder, an amount of data, frozen or trained, a seed.

Its folder is named after it and holds `run.json`, written last: a cell that has one is
done. Beside it are the saved router and its scores on validation and test questions, as
a table that `evaluate` and `zoo run` take for a router. A cell that was killed has
checkpoints instead, and goes on from the newest.
"""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.extensions.tuning.encoder import (
    Encoder,
    TuningSettings,
    accelerator_of,
    batches,
    drawing,
    schedule,
)
from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.arrays import Floats, Ints, Vectors
from routeyard.pipelines.common.machine import peak_memory
from routeyard.pipelines.common.matrix import Core, Examples, some
from routeyard.pipelines.common.staging import place as put
from routeyard.pipelines.common.staging import replacing, staging, write_text
from routeyard.pipelines.evaluate.experiment import order, price, priced_in
from routeyard.pipelines.evaluate.fit import fit
from routeyard.pipelines.evaluate.metrics.selection import best
from routeyard.pipelines.evaluate.studies.study import data_identity, whole
from routeyard.pipelines.evaluate.zoo.run import hits
from routeyard.pipelines.routers import ROUTERS, saved
from routeyard.pipelines.routers.base import traits_of, usable
from routeyard.pipelines.routers.factors import EmbedLLM
from routeyard.pipelines.routers.networks import (
    MLP,
    CPRouter,
    EquiRouter,
    MessPlus,
    PromptToLeaderboard,
    RouterDC,
    Zooter,
    layers,
)
from routeyard.pipelines.routers.training import Trained
from routeyard.schemas.errors import BadInput, did_you_mean

# The eight trainable heads of the plateau study, as the zoo has them.


class SharedMLP(Trained):
    """The study's `mlp_cn`: the network and loss of `mlp`, in the loop of the other seven."""

    name = "mlp"
    traits = traits_of(MLP)
    defaults: ClassVar[dict[str, Any]] = {"width": 256}

    def build(self, inputs: int, start: Vectors) -> Any:
        return layers(inputs, self.settings["width"], start)()


#: Router → head, in the study's order (section 6.1: classifier heads, contrastive, pairs,
#: cascades, distilled, simple head).
HEADS: dict[str, type[Trained]] = {
    "mlp": SharedMLP,
    "embedllm": EmbedLLM,
    "routerdc": RouterDC,
    "p2l": PromptToLeaderboard,
    "cp-router": CPRouter,
    "mess-plus": MessPlus,
    "zooter": Zooter,
    "equirouter": EquiRouter,
}


def head_of(router: str, seed: int) -> Trained:
    """A fresh head with its defaults.

    Raises:
        BadInput: the router has no trainable encoder.
    """
    if router not in HEADS:
        raise BadInput(
            f"router {router!r} has no head that an encoder could be trained through",
            next_step=did_you_mean(router, list(HEADS)),
        )
    return HEADS[router](seed=seed)


def registered(head: Trained) -> Any:
    """The fitted head as the zoo's router of its name, which can be saved and loaded."""
    if not isinstance(head, SharedMLP):
        return head
    made = MLP(seed=head.seed)
    made.width, made._network = head.settings["width"], head.network
    return made


# Checkpoints of a training on disk: arrays as safetensors, words as JSON, never a pickle.
#
# A checkpoint is a folder that is renamed into place when it is whole, so a kill at any
# moment leaves the one before it. It holds all that the next step depends on: weights,
# moments of the optimiser, the state of every random generator.

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
        checkpoints = (target.name, best_file(place, progress.best_step).name)
        if other.name not in checkpoints:
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
            progress = Progress(**words)
            if progress.best_step >= 0 and not best_file(place, progress.best_step).is_file():
                continue
            return progress, load_file(folder / "state.safetensors")
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


def _apart(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Copies: tensors that share memory are refused by the format."""
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}


# The training loop: an encoder and a head, end to end, the same on a CPU and on a GPU.
#
# Plateau study, arXiv 2606.07587, section 6 and appendix E.4: the losses of the frozen
# heads, validation once an epoch, the checkpoint that routes best there is kept. What the
# paper leaves open (rates, batch, warm-up, epochs) is a setting. Every random draw is of a
# generator whose state is in the checkpoint, so a run that was killed goes on to the same
# figures as one that was not; on a CPU with one thread, to the last bit.


def tune(
    head: Trained,
    encoder: Encoder,
    train: Examples,
    settings: TuningSettings,
    place: Path,
    *,
    fingerprint: str,
    on_progress: Callable[[int, int], None] | None = None,
) -> Progress:
    """Train both; the head is then fitted, the encoder holds the weights it was fitted with.

    Args:
        train: `queries.prompts` are the texts the encoder reads; embeddings, of the untouched
            encoder, are read by heads whose targets need them (`targets_read_embeddings`).
        place: folder of the checkpoints, which the caller removes when the router is saved.
        fingerprint: of everything that decides the figures; a checkpoint of another is not used.
        on_progress: called with (done, wanted) train questions.

    Raises:
        BadInput: there are no labelled validation questions, or no texts.
    """
    import torch
    from safetensors.torch import load_file

    train = usable(train)
    held = train.validation
    if held is None or np.all(np.isnan(held.labels)):
        raise BadInput(
            "there are no labelled validation questions, and nothing else may stop a training",
            next_step="give the recipe's `split` a validation share",
        )
    if len(train.queries.prompts) != len(train.labels):
        raise BadInput("the train questions have no texts", next_step="hand over `prompts`")
    accelerator = accelerator_of(settings)
    with drawing(settings, head.seed, accelerator.device):
        encoder.model.to(accelerator.device)
        encoder.autocast = accelerator.autocast
        if settings.checkpointing:
            encoder.model[0].auto_model.activation_checkpointing_enable(
                activation_checkpointing_kwargs={"use_reentrant": False}
            )
        network = head.begin((encoder.size,), train)
        if settings.head_first:
            first = fit(type(head)(seed=head.seed, **head.settings), train)
            network.load_state_dict(first.network.state_dict())
        run = _Run(head, network, encoder, train, held, settings, place, fingerprint)
        result = newest(place, fingerprint)
        if result is not None:
            run.restore(*result)
        run.to_the_end(accelerator, on_progress)
        best = load_file(best_file(place, run.progress.best_step))
        encoder.model.load_state_dict(_named(best, "encoder."))
        network.load_state_dict(_named(best, "head."))
        # From here on as whoever asks the router will encode: in float32.
        encoder.autocast = nullcontext
        x = encoder.vectors(run.held_ids)
        read = replace(held, queries=replace(held.queries, embeddings=x))
        with torch.no_grad():
            head.settle(network, replace(train, validation=read))
    return run.progress


class _Run:
    """One training: its arrays, its optimiser, and its progress."""

    def __init__(
        self, head: Trained, network: Any, encoder: Encoder, train: Examples, held: Examples,
        settings: TuningSettings, place: Path, fingerprint: str,
    ):  # fmt: skip
        import torch

        self.head, self.network, self.encoder, self.held = head, network, encoder, held
        self.s, self.place, self.fingerprint = settings, place, fingerprint
        self.ids = encoder.ids(train.queries.prompts)
        self.held_ids = encoder.ids(held.queries.prompts)
        # The head's x is what the encoder makes of each step's texts; here it holds a place.
        nothing = np.zeros((len(self.ids), 0), dtype=np.float32)
        self.whole = head.batch(train, nothing, head.targets(train))
        own = head.settings
        self.rates = (settings.encoder_rate, float(own["learning_rate"]))
        decay = float(own["weight_decay"])
        self.optimiser = torch.optim.AdamW(
            [
                {"params": list(encoder.model.parameters()), "weight_decay": 0.01},
                {"params": list(network.parameters()), "weight_decay": decay},
            ]
        )
        self.noise = torch.Generator().manual_seed(head.seed)
        self.progress = Progress()
        self.per_epoch = len(batches(self.ids, settings.batch, head.seed, 0))
        self.steps = self.per_epoch * settings.epochs

    def to_the_end(self, accelerator: Any, on_progress: Callable[[int, int], None] | None) -> None:
        began, before, first = time.monotonic(), self.progress.seconds, self.progress.step
        p = self.progress
        if self.s.head_first and not p.looks:
            self._look()
        while not p.ended:
            epoch, at = divmod(p.step, self.per_epoch)
            rows = batches(self.ids, self.s.batch, self.head.seed, epoch)[at]
            self._step(rows, accelerator)
            p.step += 1
            p.seconds = before + time.monotonic() - began
            if on_progress:
                left = (self.steps - first) * self.s.batch
                on_progress((p.step - first) * self.s.batch, left)
            if p.step % self.per_epoch == 0:
                self._look()
            if p.step % self.per_epoch == 0 or p.step % self.s.save_every == 0:
                save(self.place, p, self.fingerprint, self._tensors())

    def _step(self, rows: Ints, accelerator: Any) -> None:
        import torch

        self.encoder.model.train()
        self.network.train()
        share = schedule(self.progress.step, self.steps, self.s.warmup)
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * share
        self.optimiser.zero_grad()
        total = 0.0
        for first in range(0, len(rows), self.s.micro):
            piece = rows[first : first + self.s.micro]
            batch = self.whole.take(torch.from_numpy(piece), self.noise)
            x = self.encoder.forward([self.ids[row] for row in piece])
            loss = self.head.loss(self.network, replace(batch, x=x)) * (len(piece) / len(rows))
            accelerator.backward(loss)
            total += float(loss.detach())
        for group in self.optimiser.param_groups:
            # Apart: a head's gradients are of another size than an encoder's.
            accelerator.clip_grad_norm_(group["params"], 5.0)
        self.optimiser.step()
        known, n = self.progress.losses
        self.progress.losses = (known + total, n + 1)

    def _look(self) -> None:
        """Routing accuracy on validation; the best weights are kept, no progress ends it."""
        p = self.progress
        x = self.encoder.vectors(self.held_ids)
        now = self.head.look(self.network, self.head.batch(self.held, x))
        loss, n = p.losses
        p.looks.append(
            {"step": p.step, "accuracy": now[0], "error": -now[1], "loss": loss / max(n, 1)}
        )
        p.losses = (0.0, 0)
        if now > p.best:
            p.best, p.best_step, p.waited = now, p.step, 0
            save_best(self.place, p.step, self._weights())
        else:
            p.waited += 1
        p.ended = p.waited >= self.s.patience or p.step >= self.steps

    def _weights(self) -> dict[str, Any]:
        parts = {"encoder.": self.encoder.model, "head.": self.network}
        return {pre + k: v for pre, part in parts.items() for k, v in part.state_dict().items()}

    def _tensors(self) -> dict[str, Any]:
        """All that the next step depends on, as named tensors."""
        import torch

        tensors = self._weights()
        for k, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{k}.{name}": value for name, value in state.items()}
        tensors["random.torch"] = torch.get_rng_state()
        tensors["random.noise"] = self.noise.get_state()
        if self.s.device != "cpu":
            tensors["random.device"] = torch.cuda.get_rng_state()
        return tensors

    def restore(self, progress: Progress, tensors: dict[str, Any]) -> None:
        import torch

        self.progress = progress
        self.encoder.model.load_state_dict(_named(tensors, "encoder."))
        self.network.load_state_dict(_named(tensors, "head."))
        state: dict[int, dict[str, Any]] = {}
        for name, value in _named(tensors, "optimiser.").items():
            k, _, part = name.partition(".")
            state.setdefault(int(k), {})[part] = value
        self.optimiser.load_state_dict(
            {"state": state, "param_groups": self.optimiser.state_dict()["param_groups"]}
        )
        torch.set_rng_state(tensors["random.torch"])
        self.noise.set_state(tensors["random.noise"])
        if self.s.device != "cpu":
            torch.cuda.set_rng_state(tensors["random.device"])


def _named(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


#: Fitted on frozen vectors only, as what data and encoder alone are worth (section 6.2).
REFERENCE_ROUTER = "knn"


@dataclass(frozen=True)
class TuningCell:
    """Attributes:
    encoder: as it was named.
    rows: train questions.
    tuned: whether the encoder is trained.
    """

    router: str
    encoder: str
    rows: int
    tuned: bool
    seed: int

    @property
    def name(self) -> str:
        """As its folder, and as the router that its table of scores is."""
        encoder = self.encoder.rstrip("/").rpartition("/")[2].replace("#", "_")
        how = "tuned" if self.tuned else "frozen"
        return f"{self.router}-{encoder}-{self.rows}-{how}-{self.seed}"


@dataclass(frozen=True)
class TuningInputs:
    """What the cells of one encoder share.

    Attributes:
        core: with validation questions; `prompts` are the texts that encoders read, and
            `embeddings` the untouched encoder's vectors of them.
        weights: hash of the encoder's weight files.
        parameters: of the encoder.
    """

    core: Core
    scheme: str
    weights: str
    parameters: int


def drawn(core: Core, scheme: str, rows: int) -> Examples:
    """So many train questions, by a hash of their ids: a larger draw contains a smaller one."""
    train = core.training(scheme)
    keys = [hashlib.sha256(q.encode()).hexdigest() for q in train.queries.query_ids]
    few = np.sort(np.argsort(np.array(keys))[:rows])
    return train.take(few.astype(np.int64))


def run(
    cell: TuningCell,
    bench: TuningInputs,
    settings: TuningSettings,
    out: Path,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Fit it, or go on with it, or read what it came to; the content of `run.json`."""
    folder = out / cell.name
    fingerprint = _fingerprint(cell, bench, settings)
    done = recorded(folder)
    if done is not None and done["fingerprint"] == fingerprint:
        return done
    (folder / "run.json").unlink(missing_ok=True)
    train = drawn(bench.core, bench.scheme, cell.rows)
    cpu, began = time.process_time(), time.monotonic()
    with peak_memory() as peak:
        router, core, more = _fitted(cell, bench, settings, folder, train, fingerprint, on_progress)
        validation, test = (
            float(hits(part, router.scores(part.queries()), order(core, bench.scheme)).mean())
            for part in (
                core.take(core.rows(bench.scheme, split)).labelled()
                for split in ("validation", "test")
            )
        )
    _scores(folder / f"{cell.name}.parquet", core, bench.scheme, router)
    record = {
        **asdict(cell), "fingerprint": fingerprint,
        "data": data_identity(core, bench.scheme),
        "parameters": bench.parameters, "validation": validation, "test": test,
        "seconds": time.monotonic() - began, "cpu_s": time.process_time() - cpu,
        "peak_mb": peak(), "settings": asdict(settings), **more,
    }  # fmt: skip
    write_text(folder / "run.json", json.dumps(record, indent=1) + "\n")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    if cell.tuned:
        # An encoder, its gradients and moments refer to each other in circles, and are few objects:
        # left to itself Python kept those of four cells.
        del router, core
        gc.collect()
    return record


def recorded(folder: Path) -> dict[str, Any] | None:
    """What a cell came to; None when it is not done."""
    try:
        return dict(json.loads((folder / "run.json").read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        return None


def choices(folder: Path, record: dict[str, Any], core: Core, scheme: str) -> pa.Table:
    """Rows of `tuned` of a cell that is done: its choice on every test question with a label."""
    test = core.take(core.rows(scheme, "test")).labelled()
    cell = TuningCell(*(record[k] for k in ("router", "encoder", "rows", "tuned", "seed")))
    table = pq.read_table(folder / f"{cell.name}.parquet")
    at = {q: k for k, q in enumerate(table.column("query_id").to_pylist())}
    rows = [at[q] for q in test.query_ids]
    scores = np.column_stack([table.column(m).to_numpy()[rows] for m in core.model_ids])
    chosen = best(scores, ~np.isnan(test.labels), order(core, scheme))
    n = len(rows)
    return pa.table(
        {
            "data": [record["data"]] * n, "router": [cell.router] * n,
            "encoder": [cell.encoder] * n, "parameters": [record["parameters"]] * n,
            "train_rows": [cell.rows] * n, "tuned": [cell.tuned] * n, "seed": [cell.seed] * n,
            "query_id": list(test.query_ids), "model_id": [core.model_ids[k] for k in chosen],
        }
    )  # fmt: skip


def _fitted(
    cell: TuningCell,
    bench: TuningInputs,
    settings: TuningSettings,
    folder: Path,
    train: Examples,
    fingerprint: str,
    on_progress: Callable[[int, int], None] | None,
) -> tuple[Any, Core, dict[str, Any]]:
    """(router, the core with the vectors it reads, more for the record); the router is saved."""
    core = bench.core
    place = folder / "router"
    shutil.rmtree(place, ignore_errors=True)
    setting = {"seed": cell.seed}
    encoder, weights, more = cell.encoder, bench.weights, {}
    if cell.router == REFERENCE_ROUTER:
        router, setting = fit(ROUTERS.get(REFERENCE_ROUTER)(), train), {}
    elif not cell.tuned:
        router = registered(fit(head_of(cell.router, cell.seed), train))
    else:
        head = head_of(cell.router, cell.seed)
        trained = Encoder(cell.encoder, settings.tokens)
        progress = tune(
            head, trained, train, settings, folder / "checkpoints", fingerprint=fingerprint,
            on_progress=on_progress,
        )  # fmt: skip
        rows = np.flatnonzero(np.isin(core.splits[bench.scheme], ("validation", "test")))
        vectors = np.zeros((core.n_queries, trained.size), dtype=np.float32)
        vectors[rows] = trained.vectors(trained.ids(some(core.prompts, rows)))
        core, router = replace(core, embeddings=vectors), registered(head)
        own = trained.model.cpu()
        own.save(str(place / saved.TUNED), create_model_card=False, safe_serialization=True)
        encoder, weights = saved.TUNED, encoders.weights_hash(str(place / saved.TUNED))
        more = {
            "best_step": progress.best_step, "steps": progress.step, "looks": progress.looks,
            "training_s": progress.seconds,
        }  # fmt: skip
    cost = price(core, bench.scheme)
    saved.save(
        router, place, setting=setting, model_ids=core.model_ids, encoder=encoder,
        encoder_hash=weights, price=cost if np.any(cost > 0) else None,
        price_in=priced_in(core, bench.scheme),
    )  # fmt: skip
    return router, core, more


def _scores(path: Path, core: Core, scheme: str, router: Any) -> None:
    """Scores on all validation and test questions, a column for each model."""
    rows = np.flatnonzero(np.isin(core.splits[scheme], ("validation", "test")))
    part = core.take(rows)
    scores: Floats = np.asarray(router.scores(part.queries())).astype(np.float32)
    columns = {m: scores[:, k].astype(np.float64) for k, m in enumerate(core.model_ids)}
    with replacing(path) as unfinished:
        pq.write_table(pa.table({"query_id": list(part.query_ids), **columns}), unfinished)


def _fingerprint(cell: TuningCell, bench: TuningInputs, settings: TuningSettings) -> str:
    """Of everything that decides the figures, but for the code: hours are not lost to an edit."""
    decides = {k: v for k, v in asdict(settings).items() if k not in ("save_every", "threads")}
    if not cell.tuned:
        decides = {"tokens": settings.tokens}
    words = [asdict(cell), whole(bench.core, bench.scheme), bench.weights, decides]
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()[:24]
