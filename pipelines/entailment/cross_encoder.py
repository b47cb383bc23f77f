"""Entailment by a natural-language-inference cross-encoder (the DeBERTa-MNLI family).

As in Kuhn et al. 2023: each answer is read behind its question, and premise
entails hypothesis when `entailment` is the most probable of the model's labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from routeyard.pipelines.equivalence_types import Pair
from routeyard.pipelines.errors import BadInput


class CrossEncoderEntailment:
    """A sentence-transformers `CrossEncoder` with an `entailment` label.

    Args:
        model: Local folder or hub id.
        reads: `text` compares whole responses, `answer` what the scorers extracted.
        with_question: Put the question before premise and hypothesis.
        max_length: Tokens of a pair; what is longer is cut, and counted in `truncated`.
        device: `cpu`, `cuda`, …; None lets the library choose.

    Raises:
        BadInput: the model cannot be loaded, or none of its labels is `entailment`.
    """

    symmetric = False

    def __init__(
        self,
        model: str,
        *,
        reads: Literal["answer", "text"] = "text",
        with_question: bool = True,
        batch_size: int = 32,
        max_length: int | None = None,
        device: str | None = None,
    ):
        from sentence_transformers import CrossEncoder

        local = Path(model).is_dir()
        try:
            self._encoder = CrossEncoder(
                model, local_files_only=local, max_length=max_length, device=device
            )
        except (OSError, ValueError, KeyError) as error:
            raise BadInput(
                f"the cross-encoder {model!r} cannot be loaded: {error}",
                where="entailment backend 'cross_encoder'",
                next_step="name a local folder with config, weights and tokenizer, or a hub id",
            ) from error
        self.name = f"cross_encoder:{Path(model).name if local else model}"
        self.reads: Literal["answer", "text"] = reads
        self.truncated = 0
        self._with_question = with_question
        self._batch_size = batch_size
        self._label = entailment_label(self._encoder.config.id2label, where=model)

    def canonical(self, scorer: str, answer: str) -> None:
        return None

    def key(self, pair: Pair) -> Hashable:
        return self._texts(pair)

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        texts = [self._texts(pair) for pair in pairs]
        self.truncated += self._too_long(texts)
        # Two labels or more: scores of shape (pairs, labels), sorted by length inside.
        scores = self._encoder.predict(
            texts, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
        )
        return [bool(row.argmax() == self._label) for row in scores.reshape(len(texts), -1)]

    def _texts(self, pair: Pair) -> tuple[str, str]:
        if not self._with_question:
            return pair.premise, pair.hypothesis
        return f"{pair.question} {pair.premise}", f"{pair.question} {pair.hypothesis}"

    def _too_long(self, texts: Sequence[tuple[str, str]]) -> int:
        tokenizer: Any = self._encoder.tokenizer
        limit = tokenizer.model_max_length
        # A token has at least one character: short texts need no counting.
        candidates = [pair for pair in texts if len(pair[0]) + len(pair[1]) + 4 > limit]
        if not candidates:
            return 0
        lengths = tokenizer(candidates, truncation=False, verbose=False)["input_ids"]
        return sum(len(ids) > limit for ids in lengths)


def entailment_label(id2label: Mapping[int, str], *, where: str) -> int:
    """Index of the label `entailment`; its place differs between published models."""
    for number, label in id2label.items():
        if str(label).strip().casefold() in ("entailment", "entail", "entails"):
            return int(number)
    raise BadInput(
        f"none of the model's labels is 'entailment': {', '.join(map(str, id2label.values()))}",
        where=where,
        next_step="use a model trained on MNLI whose config names its labels (id2label)",
    )
