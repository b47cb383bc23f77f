"""A sentence encoder that gradients flow through: token ids in, unit vectors out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.arrays import Ints
from routeyard.pipelines.evaluate.signals import Ids, parameters_of, tokenised
from routeyard.schemas.errors import BadInput

#: Texts that are encoded at once where nothing is learned.
AT_ONCE = 64


class Encoder:
    """Weights of a folder, a hub id or a packaged name, with their own pooling.

    Attributes:
        model: sentence-transformers' module.
        tokens: tokens that are read of a text, at most the encoder's own window.
        size: length of a vector.
    """

    def __init__(self, name: str, tokens: int):
        import torch

        # Parts that a folder has no weights for, such as a pooler nobody reads, are drawn.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.model = encoders.loaded(encoders.full_name(name).removesuffix(encoders.OPENVINO))
        self.tokens = min(tokens, self.model.max_seq_length or tokens)
        # So that what is saved reads as much of a text as was trained on.
        self.model.max_seq_length = self.tokens
        self.size = int(self.model[0].get_embedding_dimension())
        #: What the forward pass runs in: bf16 on request.
        self.autocast: Callable[[], AbstractContextManager[Any]] = nullcontext

    def ids(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of each text, cut at `tokens`."""
        return tokenised(self.model.tokenizer, texts, self.tokens)

    def forward(self, ids: Sequence[Ids]) -> Any:
        """(b, d) float32 unit vectors on the CPU, where heads are."""
        import torch

        texts = {"input_ids": [item.tolist() for item in ids]}
        padded = self.model.tokenizer.pad(texts, return_tensors="pt", verbose=False)
        device = next(self.model.parameters()).device
        with self.autocast():
            result = self.model(dict(padded.to(device)))["sentence_embedding"]
        return torch.nn.functional.normalize(result.float(), dim=1).cpu()

    def vectors(
        self, ids: Sequence[Ids], on_progress: Callable[[int, int], None] | None = None
    ) -> NDArray[np.float32]:
        """(n, d) vectors without gradients; texts of one length go together."""
        import torch

        order = np.argsort([len(item) for item in ids], kind="stable")
        out = np.empty((len(ids), self.size), dtype=np.float32)
        self.model.eval()
        with torch.no_grad():
            for first in range(0, len(order), AT_ONCE):
                rows = order[first : first + AT_ONCE]
                out[rows] = self.forward([ids[row] for row in rows]).numpy()
                if on_progress:
                    on_progress(first + len(rows), len(order))
        return out


# Settings of a training, its batches and rates, its device: all but the training itself.

#: Batches whose texts are sorted by length together: little padding, and still a draw.
WINDOW = 16


@dataclass(frozen=True)
class TuningSettings:
    """Attributes:
    epochs: at most so many passes over the train questions.
    batch: questions of one optimiser step.
    micro: questions that go through the encoder at once; a batch's gradients are
        summed over its pieces (gradient accumulation). Contrastive losses see a piece.
    encoder_rate: learning rate of the encoder; the head has its own.
    warmup: share of the steps in which rates rise; then they fall to 0, both linearly.
    head_first: start from the head fitted on the frozen vectors, and look before the first
        step: what does not route better on validation is then not kept.
    patience: looks on validation without progress after which training stops.
    tokens: tokens that are read of a question.
    precision: of the encoder's products; weights stay float32.
    checkpointing: compute activations again instead of keeping them.
    save_every: steps between checkpoints; one more after each look.
    device: `cpu` or `cuda`.
    threads: of the CPU's products; one gives the same sums on every machine.
    """

    epochs: int = 3
    batch: int = 32
    micro: int = 32
    encoder_rate: float = 5e-5
    warmup: float = 0.1
    head_first: bool = False
    patience: int = 2
    tokens: int = 128
    precision: Literal["float32", "bf16"] = "float32"
    checkpointing: bool = False
    save_every: int = 100
    device: str = "cpu"
    threads: int = 1


def batches(ids: Sequence[Ids], size: int, seed: int, epoch: int) -> list[Ints]:
    """An epoch's batches of rows: each row once, texts of like length together.

    Rows are shuffled, sorted by length within windows of `WINDOW` batches, cut, and the
    batches shuffled: a function of seed and epoch alone, so no state need be kept.
    """
    draw = np.random.default_rng([seed, epoch])
    order = draw.permutation(len(ids))
    lengths = np.array([len(item) for item in ids])
    numbers: list[Ints] = []
    for first in range(0, len(order), size * WINDOW):
        window = order[first : first + size * WINDOW]
        window = window[np.argsort(lengths[window], kind="stable")]
        numbers += [window[k : k + size] for k in range(0, len(window), size)]
    return [numbers[k] for k in draw.permutation(len(numbers))]


def schedule(step: int, steps: int, warmup: float) -> float:
    """Share of the full rate: up linearly over the warm-up, then down to 0.

    >>> [round(schedule(k, 10, 0.2), 3) for k in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.125]
    """
    rise = max(1, round(steps * warmup))
    return (step + 1) / rise if step < rise else (steps - step) / max(1, steps - rise)


def accelerator_of(settings: TuningSettings) -> Any:
    """Device and precision, through accelerate.

    Raises:
        BadInput: it is not installed, or there is no such device.
    """
    import torch

    try:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState
    except ImportError as error:
        raise BadInput(
            "training an encoder needs accelerate",
            next_step="pip install -c constraints.txt '.[tune]'",
        ) from error
    if settings.device != "cpu" and not torch.cuda.is_available():
        raise BadInput(f"there is no {settings.device} device here", next_step="--device cpu")
    # Of the process, and refused for another precision: each training has its own.
    AcceleratorState._reset_state(reset_partial_state=True)
    mixed = "bf16" if settings.precision == "bf16" else "no"
    accelerator = Accelerator(mixed_precision=mixed, cpu=settings.device == "cpu")
    if accelerator.num_processes > 1:
        raise BadInput(
            "a training is one process with one device",
            next_step="start it without `accelerate launch`; cells of a grid can run side by side",
        )
    return accelerator


@contextmanager
def drawing(settings: TuningSettings, seed: int, device: Any) -> Iterator[None]:
    """Torch's generators under the seed and its threads as set; both as before afterwards."""
    import torch

    had = torch.get_num_threads()
    devices = [] if settings.device == "cpu" else [device]
    torch.set_num_threads(settings.threads)
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(had)


def encoder_parameters(name: str) -> int:
    """Parameters of an encoder by any of its names, from its configuration.

    Raises:
        SourceError: it is missing.
    """
    return parameters_of(encoders.location(encoders.unpooled(encoders.full_name(name))[0]))
