"""Memory and time that reading texts with a local language model takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from routeyard.flows.console import hours, line

#: Prompts that are read at once where a command has no option for it.
AT_ONCE = 8


def report_size(
    model: str,
    texts: Sequence[str],
    *,
    dtype: str = "float32",
    device: str | None = None,
    max_length: int | None = None,
    at_once: int = AT_ONCE,
    steps: int = 0,
) -> dict[str, Any]:
    """Parameters, memory, tokens and time, printed as one line; no weights are loaded.

    Args:
        texts: what is read; `steps` tokens are written after each.

    Raises:
        SourceError: there is no such model.
    """
    import torch
    from transformers import AutoTokenizer

    from routeyard.pipelines.tuning.encoder import tokenised
    from routeyard.pipelines.tuning.model_size import memory_of, size_of, speed

    size = size_of(model, causal=True)
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    longest = max_length or 1 << 20
    lengths = [len(ids) for ids in tokenised(AutoTokenizer.from_pretrained(model), texts, longest)]
    most = max(lengths, default=1) + steps
    # A step reads its own token; what came before is kept.
    work = size.flops(lengths) + steps * len(lengths) * size.flops([1])
    seconds = work / speed(where, dtype)
    found = {
        "model": model,
        "parameters": size.parameters,
        "memory_gb": size.reading(at_once, most, dtype, causal=True) / 1e9,
        "memory_here_gb": memory_of(where) / 1e9,
        "texts": len(lengths),
        "tokens": sum(lengths) + steps * len(lengths),
        "seconds": seconds,
    }
    line(
        "model",
        f"{model}: {size.parameters / 1e6:,.1f} million parameters, about "
        f"{found['memory_gb']:.1f} GB of {found['memory_here_gb']:.1f} GB; {len(lengths):,} texts, "
        f"{found['tokens']:,} tokens, about {hours(seconds)}",
    )
    return found
