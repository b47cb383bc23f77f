"""The training loop: an encoder and a head, end to end, the same on a CPU and on a GPU.

Plateau study, arXiv 2606.07587, section 6 and appendix E.4: the losses of the frozen
heads, validation once an epoch, the checkpoint that routes best there is kept. What the
paper leaves open (rates, batch, warm-up, epochs) is a setting. Every random draw is of a
generator whose state is in the checkpoint, so a run that was killed goes on to the same
figures as one that was not; on a CPU with one thread, to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.fit import fit
from routeyard.pipelines.routers.base import Examples, usable
from routeyard.pipelines.routers.networks.trained import Trained
from routeyard.pipelines.tuning import checkpoint
from routeyard.pipelines.tuning.checkpoint import Progress
from routeyard.pipelines.tuning.encoder import Encoder
from routeyard.pipelines.tuning.settings import (
    TuningSettings,
    accelerator_of,
    batches,
    drawing,
    pieces,
    schedule,
)


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
        found = checkpoint.newest(place, fingerprint)
        if found is not None:
            run.restore(*found)
        run.to_the_end(accelerator, on_progress)
        best = checkpoint.load_best(place, run.progress.best_step)
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

    @property
    def steps(self) -> int:
        return self.per_epoch * self.s.epochs

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
                checkpoint.save(self.place, p, self.fingerprint, self._tensors())

    def _step(self, rows: Ints, accelerator: Any) -> None:
        import torch

        self.encoder.model.train()
        self.network.train()
        share = schedule(self.progress.step, self.steps, self.s.warmup)
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * share
        self.optimiser.zero_grad()
        total = 0.0
        for piece in pieces(rows, self.s.micro):
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
            checkpoint.save_best(self.place, p.step, self._weights())
        else:
            p.waited += 1
        p.ended = p.waited >= self.s.patience or p.step >= self.steps

    def _weights(self) -> dict[str, Any]:
        parts = {"encoder.": self.encoder.model, "head.": self.network}
        return {pre + k: v for pre, part in parts.items() for k, v in part.state_dict().items()}

    def _tensors(self) -> dict[str, Any]:
        """All that the next step depends on, as named tensors."""
        import torch

        found = self._weights()
        for k, state in self.optimiser.state_dict()["state"].items():
            found |= {f"optimiser.{k}.{name}": value for name, value in state.items()}
        found["random.torch"] = torch.get_rng_state()
        found["random.noise"] = self.noise.get_state()
        if self.s.device != "cpu":
            found["random.device"] = torch.cuda.get_rng_state()
        return found

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
