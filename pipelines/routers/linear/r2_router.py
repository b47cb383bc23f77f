"""R2-Router: quality of every model at every output budget, and what that answer would cost."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.routers.base import Examples, Queries, listed, usable
from routeyard.pipelines.routers.linear.ridge import Ridge, solved

#: Tokens of a word, and of a prompt that is not handed over, as the published code takes them.
TOKENS_PER_WORD, TOKENS = 1.3, 100


@listed
class R2Router(Ridge):
    """R2-Router (Xue et al., arXiv 2602.02823; UCF-ML-Research/R2-Router).

    Task: expected quality of each arm, which is a model with an output budget: one ridge
    regression for each arm on the questions' embeddings, clipped to [0, 1], so that a
    model's arms trace how its quality grows with the length of its answer. Rule: of all
    arms argmax (1−λ)·q̂ − λ·ĉ, which is each model at its best budget and then the best
    model; ĉ in dollars, not scaled: tokens of the prompt × price + tokens of the answer × price.
    An arm with a budget is taken to use all of it; of one without, the code regresses the
    tokens of its answers, and here their dollars, which is the same but for the price.

    `weight` is λ. With 0 scores are the qualities, and selection rules weigh the costs of train
    against them; else scores are the values of the rule. The arms are those of the pool:
    entries of one `endpoint_model` with `parameters: {max_tokens: …}`.
    """

    name = "r2-router"

    def __init__(self, alpha: float = 10.0, weight: float = 0.0):
        super().__init__(alpha)
        self.weight = weight
        if weight:
            self.scale = "strength"  # quality less dollars

    def fit(self, train: Examples) -> R2Router:
        arms = train.arms
        if arms is None or np.isnan(arms.budget).all():
            raise BadInput(
                "this router chooses a model and an output budget, and the pool has no model with "
                "several budgets",
                where="pool.models",
                next_step="list a model several times: one 'endpoint_model', each entry with "
                "'parameters: {max_tokens: …}'",
            )
        train = usable(train)
        super().fit(train)
        self._budget, self._price_in, self._price_out = arms.budget, arms.price_in, arms.price_out
        self._dollars = np.zeros((self._weights.shape[0] + 1, len(train.model_ids)))
        if self.weight:
            self._learn_dollars(train)
        return self

    def _learn_dollars(self, train: Examples) -> None:
        by_price = ~np.isnan(self._budget + self._price_in + self._price_out)
        paid = train.costs.get("usd")
        lacking = ~by_price if paid is None else ~by_price & np.isnan(paid).all(axis=0)
        if lacking.any():
            raise BadInput(
                f"nothing says what {train.model_ids[int(np.argmax(lacking))]!r} costs in dollars: "
                "neither its prices with an output budget nor its answers",
                where="pool.models",
                next_step="give price_in, price_out and price_date, or weigh costs by selection "
                "rules (weight=0)",
            )
        if paid is not None:
            weights, level = solved(train.queries.vectors(), paid, self.alpha)
            self._dollars = np.vstack([weights, level])

    def scores(self, queries: Queries) -> Floats:
        quality = super().scores(queries)
        if not self.weight:
            return quality
        return (1 - self.weight) * quality - self.weight * self.costs(queries)

    def costs(self, queries: Queries) -> Floats:
        """(n, m) dollars that each arm is expected to cost."""
        texts = queries.questions or queries.prompts
        words = np.array([len(text.split()) for text in texts], dtype=np.float64)
        tokens = np.maximum(1, np.floor(TOKENS_PER_WORD * words))
        if not len(texts):
            tokens = np.full(len(queries), float(TOKENS))
        by_price = tokens[:, None] * self._price_in + self._budget * self._price_out
        learnt = np.maximum(0.0, queries.vectors() @ self._dollars[:-1] + self._dollars[-1])
        return np.where(np.isnan(by_price), learnt, by_price)
