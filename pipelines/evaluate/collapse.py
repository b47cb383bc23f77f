"""Do the reference routers learn to tell queries apart, or do they collapse to one model?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.evaluate.baselines import best_single
from pipelines.evaluate.bootstrap import Draws, interval, p_value
from pipelines.evaluate.core import Core
from pipelines.evaluate.plateau import selection_entropy, selection_profile
from pipelines.evaluate.selection import at_choice, best, mean_costs
from pipelines.evaluate.significance import holm
from pipelines.routers import ROUTERS

#: Routers whose collapse the certificate reports.
REFERENCE = ("kmeans", "knn", "mf", "mlp")


@dataclass(frozen=True)
class Collapse:
    """One reference router on the test questions, asked without regard to cost.

    Attributes:
        accuracy: mean score of its choices.
        gain: accuracy minus that of the single model that is best on the train
            questions, with a paired interval and a Holm-corrected p-value.
        top_model, top_share: the model it asks most, and how often.
        entropy: selection entropy over log m; 0 is collapse.
    """

    router: str
    accuracy: float
    gain: float
    gain_low: float
    gain_high: float
    p_adjusted: float
    top_model: str
    top_share: float
    entropy: float


def reference_collapse(
    core: Core,
    scheme: str,
    *,
    routers: Sequence[str] = REFERENCE,
    resamples: int = 10_000,
    seed: int = 0,
) -> list[Collapse]:
    """Fit reference routers on train, choose on validation, look at test.

    Raises:
        BadInput: the scheme lacks train or test questions, or there are no embeddings.
    """
    train = core.training(scheme)
    test = core.take(core.rows(scheme, "test"))
    usable = np.flatnonzero(~np.all(np.isnan(test.labels), axis=1))
    test = test.take(usable)
    available = ~np.isnan(test.labels)
    price = mean_costs(train.costs["usd"]) if "usd" in train.costs else np.zeros(core.n_models)
    single = best_single(train.labels, price)
    columns, choices = [], []
    for name in routers:
        router = ROUTERS.get(name)()
        router.fit(train)
        choice = best(router.scores(test.queries()), available, price)
        choices.append(choice)
        columns.append(at_choice(test.labels, choice))
    scores = np.stack(columns, axis=1)
    gains = scores - test.labels[:, [single]]
    replicates = Draws(test.n_queries, resamples, seed).means(gains)
    adjusted = holm([p_value(replicates[:, k]) for k in range(len(routers))])
    found = []
    for k, name in enumerate(routers):
        low, high = interval(replicates[:, k])
        profile = selection_profile(choices[k], core.n_models)
        found.append(
            Collapse(
                router=name,
                accuracy=float(scores[:, k].mean()),
                gain=float(np.nanmean(gains[:, k])),
                gain_low=low,
                gain_high=high,
                p_adjusted=adjusted[k],
                top_model=core.model_ids[int(np.argmax(profile))],
                top_share=float(profile.max()),
                entropy=selection_entropy(profile),
            )
        )
    return found
