"""What a router is given: questions without labels, and the labelled examples it learns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints, Names, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.matrix.memmap import take_rows
from routeyard.pipelines.matrix.texts import some, together


@dataclass(frozen=True, eq=False)
class Arms:
    """m members of a pool as arms of models, each (m,).

    Attributes:
        model: number of the model that is asked; arms of one model have the same.
        budget: tokens of the longest answer; NaN without its own limit.
        price_in, price_out: USD per token; NaN unknown.
    """

    model: Floats
    budget: Floats
    price_in: Floats
    price_out: Floats

    def take(self, at: Ints) -> Arms:
        """Only these members, in this order."""
        return Arms(self.model[at], self.budget[at], self.price_in[at], self.price_out[at])


def rows_of(values: Any, rows: Ints) -> Any:
    """These rows of a field with an entry for each query; of every value where it is a mapping.

    One row that is seen n times (a matrix with a stride of 0) stays one.
    """
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: rows_of(value, rows) for name, value in values.items()}
    if not isinstance(values, np.ndarray):
        return some(values, rows)
    if values.strides[0] == 0:
        return np.broadcast_to(values[:1], (len(rows), *values.shape[1:]))
    return take_rows(values, rows)


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions without their labels.

    Attributes:
        query_ids: n ids: a tuple, or `matrix.texts.Texts` where they are very many.
        tasks: (n,) task names.
        embeddings: (n, d) float32, unit norm; None when the release has none.
        prompts: n prompts, Routeyard's instruction on the form of the answer included (which
            recorded models were never sent); empty when they were not handed over.
        signals: name → (n, m) what each model shows of itself while or after it
            answers (`margin`, `entropy`, …; `routeyard.pipelines.matrix.model_signals` names them);
            columns as in `Examples.model_ids`, NaN where nothing was shown. Known
            only of models that have been asked: a router that reads them is no
            router of unasked questions.
        hidden: (n, L, d) float32, a local model's hidden state of every layer, layer
            0 the embeddings; NaN rows for questions that were not read. None without any.
        hidden_of: the model whose states they are.
        questions: n questions, each with its options in lines below and without an
            instruction: what `embeddings` are made of. Empty when not handed over.
    """

    query_ids: Sequence[str]
    tasks: Names
    embeddings: Vectors | None = None
    prompts: Sequence[str] = ()
    signals: Mapping[str, Floats] = field(default_factory=dict)
    hidden: Vectors | None = None
    hidden_of: str = ""
    questions: Sequence[str] = ()

    #: Fields with an entry for each query.
    PER_QUERY: ClassVar = (
        "query_ids", "tasks", "embeddings", "prompts", "signals", "hidden", "questions"
    )  # fmt: skip

    def __len__(self) -> int:
        return len(self.query_ids)

    def vectors(self) -> Vectors:
        """The embeddings.

        Raises:
            BadInput: the release has none.
        """
        if self.embeddings is None:
            raise BadInput(
                "this router needs embeddings of the questions, and the release has none",
                next_step="pass --embed (from Python: embed=True) or --embeddings FILE, or release "
                "with `include_embeddings: true`",
            )
        return self.embeddings

    def signal(self, name: str) -> Floats:
        """(n, m) one of the signals, NaN where missing.

        Raises:
            BadInput: there is no such signal.
        """
        if name not in self.signals:
            raise BadInput(
                f"this router needs the signal {name!r} of the models' answers, "
                "and the release has none",
                next_step="collect with log-probabilities or samples (tables `signals` and "
                "`entropies`), or pass their file with --also FILE",
            )
        return self.signals[name]

    def states(self) -> Vectors:
        """The hidden states (n, L, d).

        Raises:
            BadInput: the release has none, or not of every question.
        """
        how = "routeyard hidden-states RELEASE --model FOLDER --out states; then --also states"
        if self.hidden is None:
            raise BadInput(
                "this router needs hidden states of the questions, and the release has none",
                next_step=how,
            )
        missing = np.isnan(self.hidden[:, 0, 0])
        if missing.any():
            raise BadInput(
                f"{int(missing.sum())} of {len(self)} questions have no hidden state, such as "
                f"{self.query_ids[int(np.argmax(missing))]}",
                next_step=f"{how} (without --split)",
            )
        return self.hidden

    def take(self, rows: Ints) -> Queries:
        """The same, only these questions, in this order."""
        return replace(
            self, **{name: rows_of(getattr(self, name), rows) for name in self.PER_QUERY}
        )

    def with_models(self, at: Ints) -> Queries:
        """The same questions, what models show of themselves only of these, in this order."""
        return replace(self, signals={name: one[:, at] for name, one in self.signals.items()})

    def followed_by(self, other: Queries) -> Queries:
        """These questions, then those; what only one side has is left out."""
        a, b = self, other
        both = a.embeddings is not None and b.embeddings is not None
        read = a.hidden is not None and b.hidden is not None and a.hidden_of == b.hidden_of
        return replace(
            a,
            query_ids=together(a.query_ids, b.query_ids),
            tasks=np.concatenate([a.tasks, b.tasks]),
            embeddings=np.concatenate([a.vectors(), b.vectors()]) if both else None,
            prompts=together(a.prompts, b.prompts) if a.prompts and b.prompts else (),
            questions=together(a.questions, b.questions) if a.questions and b.questions else (),
            signals={
                name: np.concatenate([values, b.signals[name]])
                for name, values in a.signals.items()
                if name in b.signals
            },
            hidden=np.concatenate([a.hidden, b.hidden]) if read else None,
            hidden_of=a.hidden_of if read else "",
        )


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled questions.

    Attributes:
        queries: n questions, without labels.
        model_ids: m models, the order of every column.
        labels: (n, m) float64, scores from 0 to 1; NaN where there is no label.
        costs: measure → (n, m) float64, NaN where unknown: `usd` (USD per question),
            `tokens` (per question), `latency` (seconds per question), `params` (10⁹
            parameters). A measure that is not known of every model is absent.
        validation: examples kept apart for choosing hyperparameters; None without any.
        descriptors: kind → (m, k) float32 vector that describes each model
            (`logit_footprint`, …); NaN rows for models without one.
        arms: what each model is, where some are one model with several output budgets;
            None where none are.
    """

    queries: Queries
    model_ids: tuple[str, ...]
    labels: Floats
    costs: Mapping[str, Floats] = field(default_factory=dict)
    validation: Examples | None = None
    descriptors: Mapping[str, Vectors] = field(default_factory=dict)
    arms: Arms | None = None

    def take(self, rows: Ints) -> Examples:
        """The same examples, only these questions; validation stays whole."""
        own = {name: rows_of(getattr(self, name), rows) for name in ("labels", "costs")}
        return replace(self, queries=self.queries.take(rows), **own)

    def with_models(self, at: Ints) -> Examples:
        """The same questions, only these models (positions), in this order."""
        return replace(
            self,
            queries=self.queries.with_models(at),
            model_ids=tuple(self.model_ids[k] for k in at.tolist()),
            labels=self.labels[:, at],
            costs={name: cost[:, at] for name, cost in self.costs.items()},
            validation=None if self.validation is None else self.validation.with_models(at),
            descriptors={kind: vectors[at] for kind, vectors in self.descriptors.items()},
            arms=None if self.arms is None else self.arms.take(at),
        )
