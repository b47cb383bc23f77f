"""The evaluation core: a release as matrices.

Everything the metrics, routers and the certificate need, in one frozen object:
label matrix, cost matrices, embeddings, tasks, splits. `reading.from_tables`
makes it, with queries in order of their ids and models best on train first (`ranking.ranked`),
so that neither the order of rows in a release nor the names of models change anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints, Names, Vectors
from routeyard.pipelines.errors import BadInput, few
from routeyard.pipelines.matrix.costs import priced, unpriced
from routeyard.pipelines.matrix.examples import Arms, Examples, Queries, rows_of
from routeyard.pipelines.matrix.memmap import take_rows
from routeyard.pipelines.matrix.row_blocks import by_rows, every, sums_of

#: Cost measures and their units.
MEASURES: Mapping[str, str] = {
    "usd": "USD per query",
    "tokens": "tokens per query",
    "latency": "s per query",
    "params": "10^9 parameters",
}


def first_measure(known: Mapping[str, object], asked: str | None = None) -> str | None:
    """The cost measure asked for, else the first of `MEASURES` that is known, else None.

    Raises:
        BadInput: the measure asked for is not known.
    """
    if asked is not None and asked not in known:
        raise BadInput(
            f"the release knows no cost measure {asked!r} for every model",
            next_step=f"known: {', '.join(known) or 'none'}",
        )
    return asked or next((name for name in MEASURES if name in known), None)


def complete_measure(costs: Mapping[str, Floats]) -> str | None:
    """The first of `MEASURES` with a cost of every model, else None: unknown is not free."""
    whole = (
        name
        for name in MEASURES
        if name in costs and np.all(sums_of(lambda part: ~np.isnan(part), costs[name]) > 0)
    )
    return next(whole, None)


#: Fields of `Core` with an entry for each query, but for `correct`, which may be `labels` itself.
PER_QUERY = (
    *Queries.PER_QUERY, "labels", "costs", "part_costs", "domains", "splits", "groups", "samples",
    "metadata", "sources", "options",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Core:
    """n queries × m models.

    Attributes:
        query_ids: n ids, sorted.
        model_ids: m ids, best first as `reading.from_tables` orders them.
        labels: Y, (n, m) scores in [0, 1]; NaN is missing, never wrong.
        costs: measure → (n, m), units in `MEASURES`; NaN is unknown, never
            free. A measure nobody knows anything of, or not of every model, is absent.
        part_costs: the same of measures that are known of some models only.
        tasks: (n,) task of each query.
        domains: (n,) domain of each query.
        splits: scheme → (n,) `train`, `validation`, `test` or empty.
        unseen: scheme → models a router may not see while it trains.
        groups: (n,) number of the near-duplicate group of each query.
        embeddings: (n, d) float32 of unit norm, or None.
        encoder: what made them.
        samples: (n, m, s) score of every sample, or None when there is one of each.
        contested: share of decided labels whose verdicts disagree; None without any.
        unreadable: share of labels, decided or not, that no scorer could read.
        prompts: n prompts.
        questions: n questions with their options, without our instruction, or none.
        correct: (n, m) the label policy's decision, 1 right and 0 wrong, NaN where
            there is no label: `labels.correct`, whose threshold the recipe
            sets. None only where `labels` is 0 and 1 throughout.
        sources: (n,) dataset of each query, or None when not known.
        options: (n,) number of options of each query, 0 where it is open;
            None when not known.
        metadata: n JSON objects that the sources say of their questions, or none.
        kinds: model → `real` or `pseudo_specialist`; unnamed models are real.
        duplicates_known: whether anybody looked for near-duplicates, which `groups` are.
        signals, hidden, hidden_of, descriptors, arms: as in `Queries` and `Examples`.
    """

    query_ids: Sequence[str]
    model_ids: tuple[str, ...]
    labels: Floats
    costs: Mapping[str, Floats]
    tasks: Names
    domains: Names
    splits: Mapping[str, Names]
    groups: Ints
    part_costs: Mapping[str, Floats] = field(default_factory=dict)
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    embeddings: Vectors | None = None
    encoder: str | None = None
    samples: Floats | None = None
    contested: float | None = None
    unreadable: float | None = None
    prompts: Sequence[str] = ()
    questions: Sequence[str] = ()
    correct: Floats | None = None
    sources: Names | None = None
    options: Ints | None = None
    metadata: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    duplicates_known: bool = False
    signals: Mapping[str, Floats] = field(default_factory=dict)
    hidden: Vectors | None = None
    hidden_of: str = ""
    descriptors: Mapping[str, Vectors] = field(default_factory=dict)
    arms: Arms | None = None

    @cached_property
    def lacking(self) -> dict[str, tuple[str, ...]]:
        """Measure of `part_costs` → the models it is not known of."""
        return {name: unpriced(c, self.model_ids) for name, c in self.part_costs.items()}

    @property
    def no_cost(self) -> str:
        """Why a figure that needs the cost of every model is not known."""
        named = "; ".join(f"{name}: not of {few(who)}" for name, who in self.lacking.items())
        why = "no cost measure is known for every model of the pool"
        return f"{why} ({named})" if named else why

    def priced(self, measure: str) -> tuple[Ints, Ints]:
        """(m,) labelled answers of each model whose cost is known, and its labelled answers."""
        both = sums_of(lambda y, c: ~np.isnan(y) & ~np.isnan(c), self.labels, self.costs[measure])
        return both, sums_of(lambda y: ~np.isnan(y), self.labels)

    def part_priced(self, measure: str) -> str:
        """Sentence on how many labelled answers have a known cost; empty where all have."""
        both, labelled = (int(counts.sum()) for counts in self.priced(measure))
        share = f"{both / max(labelled, 1):.1%}"
        words = f"known of {both:,} of {labelled:,} labelled answers ({share})"
        return words if both < labelled else ""

    @cached_property
    def decided(self) -> Floats:
        """(n, m) 1 right, 0 wrong, NaN without a label.

        Raises:
            BadInput: labels are between 0 and 1 and there is no column `correct`.
        """
        if self.correct is self.labels:
            return self.labels
        if self.correct is not None:
            told = by_rows(lambda y, c: np.where(np.isnan(y), np.nan, c), self.labels, self.correct)
            return np.asarray(told)
        if not every(lambda y: np.isnan(y) | (y == 0) | (y == 1), self.labels):
            raise BadInput(
                "labels are between 0 and 1, and nothing says which of them are right",
                next_step="hand the decisions over: Core(correct=…), or labels with a "
                "column 'correct'",
            )
        return self.labels

    @property
    def chance(self) -> Floats:
        """(n,) accuracy of guessing: one over the number of options, 0 for open questions."""
        if self.options is None:
            return np.zeros(self.n_queries)
        return np.where(self.options > 1, 1 / np.maximum(self.options, 1), 0.0)

    def clusters(self, by: str | None) -> Ints | None:
        """(n,) group of each query for a clustered bootstrap; None for single queries.

        Raises:
            BadInput: `by` is neither None, `duplicates` nor `task`.
        """
        if by is None:
            return None
        if by == "duplicates":
            return self.groups
        if by == "task":
            return np.unique(self.tasks, return_inverse=True)[1].astype(np.int64)
        raise BadInput(f"cannot cluster by {by!r}", next_step="known: duplicates, task")

    @property
    def n_queries(self) -> int:
        return len(self.query_ids)

    @property
    def n_models(self) -> int:
        return len(self.model_ids)

    @property
    def coverage(self) -> float:
        """Share of (query, model) pairs with a label."""
        known = int(sums_of(lambda y: ~np.isnan(y), self.labels).sum())
        return known / self.labels.size if self.labels.size else 0.0

    def rows(self, scheme: str, split: str) -> Ints:
        """Positions of the queries in one split.

        Raises:
            BadInput: the scheme does not exist or the split is empty.
        """
        if scheme not in self.splits:
            raise BadInput(
                f"there is no split scheme {scheme!r}",
                next_step=f"known schemes: {', '.join(sorted(self.splits)) or 'none'}",
            )
        found = np.flatnonzero(self.splits[scheme] == split)
        if not len(found):
            raise BadInput(
                f"split {split!r} of scheme {scheme!r} holds no query",
                next_step="give the recipe's `split` shares that leave some for it",
            )
        return found

    def take(self, rows: Ints) -> Core:
        """The same release, only these queries, in this order."""
        if len(rows) == self.n_queries and np.array_equal(rows, np.arange(len(rows))):
            return self
        own = {name: rows_of(getattr(self, name), rows) for name in PER_QUERY}
        labels = own["labels"]
        own["correct"] = self._also(labels, lambda correct: take_rows(correct, rows))
        return replace(self, **own)

    def labelled(self) -> Core:
        """The same release, only the queries with a label of any model."""
        known = by_rows(lambda y: ~np.all(np.isnan(y), axis=1), self.labels)
        return self.take(np.flatnonzero(known))

    def place(self, model: str) -> int:
        """Column of a model.

        Raises:
            BadInput: the release has no such model.
        """
        if model not in self.model_ids:
            raise BadInput(
                f"model {model!r} is not in the release",
                next_step=f"known models: {', '.join(self.model_ids)}",
            )
        return self.model_ids.index(model)

    def _also(self, labels: Floats, part: Callable[[Floats], Floats]) -> Floats | None:
        """A part of `correct`; where that is `labels` itself, it is kept in memory once."""
        if self.correct is self.labels:
            return labels
        return None if self.correct is None else part(self.correct)

    def with_models(self, keep: tuple[str, ...]) -> Core:
        """The same release, only these models, in this order.

        A measure that is known of all of them is no longer one of `part_costs`.
        """
        at = np.array([self.model_ids.index(name) for name in keep], dtype=np.int64)

        def some(values: Floats) -> Floats:
            return np.asarray(by_rows(lambda part: part[:, at], values))

        labels = some(self.labels)
        part = {name: some(cost) for name, cost in self.part_costs.items()}
        whole = {name: cost for name, cost in part.items() if priced(cost).all()}
        return replace(
            self,
            model_ids=keep,
            labels=labels,
            costs={name: some(cost) for name, cost in self.costs.items()} | whole,
            part_costs={name: cost for name, cost in part.items() if name not in whole},
            samples=None if self.samples is None else self.samples[:, at],
            correct=self._also(labels, some),
            signals={name: values[:, at] for name, values in self.signals.items()},
            descriptors={kind: vectors[at] for kind, vectors in self.descriptors.items()},
            arms=None if self.arms is None else self.arms.take(at),
        )

    def queries(self) -> Queries:
        """What a router may see of these queries when it chooses."""
        return Queries(
            self.query_ids, self.tasks, self.embeddings, self.prompts,
            self.signals, self.hidden, self.hidden_of, self.questions,
        )  # fmt: skip

    def examples(self, validation: Examples | None = None) -> Examples:
        """What a router may see of these queries when it trains."""
        given = (self.labels, self.costs, validation, self.descriptors, self.arms)
        return Examples(self.queries(), self.model_ids, *given)

    def training(self, scheme: str) -> Examples:
        """Train questions of a scheme, with its validation questions if it has any."""
        has_validation = bool(np.any(self.splits[scheme] == "validation"))
        held = self.take(self.rows(scheme, "validation")).examples() if has_validation else None
        return self.take(self.rows(scheme, "train")).examples(held)
