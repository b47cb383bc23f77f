"""Hub datasets through the `datasets` library, always at a recorded commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from routeyard.pipelines.errors import SourceError

_COMMIT = re.compile(r"[0-9a-f]{40}")


def is_commit(revision: str) -> bool:
    """Whether a revision is a full commit, which never moves."""
    return _COMMIT.fullmatch(revision) is not None


def resolve(hub_id: str, revision: str | None, *, where: str) -> str:
    """Commit (40 hex digits) that `revision` names; the default branch when None.

    A branch or tag moves; a commit does not, so only commits are recorded.

    Raises:
        SourceError: the hub cannot be reached or does not know the dataset.
    """
    if revision and is_commit(revision):
        return revision
    from huggingface_hub import HfApi

    try:
        sha = HfApi().dataset_info(hub_id, revision=revision).sha
    except Exception as error:  # the client raises many kinds, none of them ours
        raise _unreachable(hub_id, error, where) from error
    if not sha:
        raise _unreachable(hub_id, ValueError("the hub gave no commit"), where)
    return sha


def rows(
    hub_id: str,
    *,
    config: str | None,
    split: str,
    revision: str,
    streaming: bool,
    where: str,
) -> Iterator[dict[str, Any]]:
    """Rows of one split at one commit, in dataset order, streamed or downloaded.

    Several configs or splits are written `a|b`; their rows follow each other
    and carry the config as `_config`.
    """
    from datasets import load_dataset

    for one_config in (config or "").split("|"):
        for one_split in re.split(r"[|+]", split):
            try:
                dataset = load_dataset(
                    hub_id,
                    one_config or None,
                    split=one_split,
                    revision=revision,
                    streaming=streaming,
                )
                for row in _as_stored(dataset):
                    yield {**row, "_config": one_config, "_split": one_split}
            except Exception as error:  # as above: whatever the library raises, say where
                raise _unreachable(hub_id, error, where) from error


def _as_stored(dataset: Any) -> Any:
    """The rows with images as bytes and path: decoding them is neither needed nor safe."""
    from datasets import Image

    for name, feature in (dataset.features or {}).items():
        if isinstance(feature, Image):
            dataset = dataset.cast_column(name, Image(decode=False))
    return dataset


def _unreachable(hub_id: str, error: Exception, where: str) -> SourceError:
    return SourceError(
        f"the dataset {hub_id!r} cannot be loaded: {type(error).__name__}: {error}",
        where=where,
        next_step="check hub_id, config, split and revision; a gated dataset needs HF_TOKEN",
    )
