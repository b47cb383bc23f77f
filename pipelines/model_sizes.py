"""Published sizes of models whose names do not state them (`model_sizes.yaml`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.schemas.recipe.pool import Pool


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
