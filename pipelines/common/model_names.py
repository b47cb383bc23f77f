"""Names under which providers serve a model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from routeyard.pipelines.common.files import read_text
from routeyard.schemas.recipe.pool import Pool

_DATED = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{4}|-latest)?")


def same_model(asked: str, served: str) -> bool:
    """Whether the served name is the asked one, give or take vendor prefix and date.

    `openai/gpt-4o` is served as `gpt-4o-2024-08-06`; `gpt-4o-mini` is another model.
    """
    a, b = (name.lower().rsplit("/", 1)[-1].split(":", 1)[0] for name in (asked, served))
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    if not longer.startswith(shorter):
        return False
    return _DATED.fullmatch(longer[len(shorter) :]) is not None


# Published sizes of models whose names do not state them (`model_sizes.yaml`).


@dataclass(frozen=True)
class PublishedSize:
    """A size as somebody published it.

    Attributes:
        params_b: All parameters in 10^9, of several experts too.
        source: Where it was read.
        read: Day on which it was read (ISO 8601).
    """

    params_b: float
    source: str
    read: str

    @property
    def words(self) -> str:
        """Source and day in one line."""
        return f"{self.source} (read {self.read})"


def published_size(model: str) -> PublishedSize | None:
    """The published size of a model by its exact name, `owner/name` or `owner__name`; None unknown.

    >>> published_size("microsoft__phi-2").params_b, published_size("phi-2")
    (2.7, None)
    """
    return _sizes().get(model.replace("__", "/"))


def with_published_sizes(pool: Pool) -> Pool:
    """The pool with published sizes where a real model states none."""
    found = {
        model.model_id: known
        for model in pool.models
        if model.params_b is None and not model.simulated
        and (known := published_size(model.endpoint_model or model.model_id))
    }  # fmt: skip
    if not found:
        return pool
    models = [
        model.model_copy(update={"params_b": known.params_b, "params_source": known.words})
        if (known := found.get(model.model_id)) else model
        for model in pool.models
    ]  # fmt: skip
    return pool.model_copy(update={"models": models})


@cache
def _sizes() -> dict[str, PublishedSize]:
    path = Path(__file__).with_name("model_sizes.yaml")
    rows = read_text(path.read_text(encoding="utf-8"), where=str(path))
    return {
        model: PublishedSize(float(row["params_b"]), row["source"], str(row["read"]))
        for row in rows
        for model in row["models"]
    }
