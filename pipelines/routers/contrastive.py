"""Routers that place questions and descriptors of models in one space."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from routeyard.pipelines.common.arrays import Floats, Ints, Vectors
from routeyard.pipelines.common.machine import torch_in_one_thread
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import mean_cost
from routeyard.pipelines.routers.listed import listed
from routeyard.pipelines.routers.training import (
    Trained,
    TrainingBatch,
    head,
    logistic_loss,
)
from routeyard.schemas.errors import BadInput

# The bank: one descriptor of unit norm per model, and the exact search for the nearest.

#: Kinds in the order in which a router takes them.
ORDER = ("logit_footprint", "perplexity_fingerprint", "text_footprint")

#: What takes the place of a similarity that was not retrieved: below every one that was,
#: also after λ·cost is taken off.
OUTSIDE = -1e4

HOW = "routeyard fingerprint RELEASE --out descriptors.parquet, then --also descriptors.parquet"


def bank_of(
    descriptors: Mapping[str, Vectors], names: Sequence[str], kind: str | None = None
) -> Vectors:
    """(m, k) unit vectors, one for each model.

    Args:
        descriptors: kind → (m, k); NaN rows for models without one.
        kind: one kind; `mixed` takes for each model the first kind of `ORDER` it has (kinds
            of one length: CSCR, section 3.1.2, sets N = K); None: the first kind that all
            models have, else mixed.

    Raises:
        BadInput: there are no descriptors, or some models have none.
    """
    if not descriptors:
        raise BadInput(
            "this router needs descriptors of the models, and the release has none", next_step=HOW
        )
    kinds = [k for k in ORDER if k in descriptors] + sorted(set(descriptors) - set(ORDER))
    if kind not in (None, "mixed", *kinds):
        raise BadInput(
            f"there are no descriptors of kind {kind!r}",
            next_step=f"known: {', '.join(kinds)}; or {HOW}",
        )
    if kind is None:
        whole = [k for k in kinds if not np.isnan(descriptors[k]).any()]
        kind = whole[0] if whole else "mixed"
    some = kinds if kind == "mixed" else [kind]
    widths = {k: descriptors[k].shape[1] for k in some}
    if len(set(widths.values())) > 1:
        said = ", ".join(f"{k}: {n}" for k, n in widths.items())
        raise BadInput(
            f"descriptors of several kinds share a space only where they are as long ({said})",
            next_step="make as many frequent tokens as probes: --tokens N --probes N",
        )
    result = descriptors[some[0]].copy()
    for other in some[1:]:
        lacks = np.isnan(result[:, 0])
        result[lacks] = descriptors[other][lacks]
    bare = np.flatnonzero(np.isnan(result).any(axis=1))
    if len(bare):
        raise BadInput(
            f"{len(bare)} of {len(names)} models have no descriptor, such as {names[bare[0]]!r}",
            next_step="`--kind perplexity_fingerprint` and `--kind text_footprint` need answers "
            f"only: {HOW}",
        )
    return unit(result)


def unit(vectors: Vectors) -> Vectors:
    """Rows of length 1; a row of zeros stays one."""
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norm > 0, norm, 1), dtype=np.float32)


def nearest_models(queries: Vectors, bank: Vectors, k: int) -> tuple[Ints, Floats]:
    """(n, k) models by falling inner product, and (n, k) the products, by a flat FAISS index.

    The index is exact (IndexFlatIP). Of equals the first in order comes first.

    Raises:
        BadInput: FAISS is not installed.
    """
    try:
        import faiss
    except ImportError as error:
        raise BadInput(
            "this router searches with FAISS", next_step="pip install -c constraints.txt '.[faiss]'"
        ) from error
    index = faiss.IndexFlatIP(bank.shape[1])
    index.add(np.ascontiguousarray(bank))
    near, at = index.search(np.ascontiguousarray(queries), min(k, len(bank)))
    order = np.lexsort((at, -near), axis=1)
    at, near = (np.take_along_axis(item, order, axis=1) for item in (at, near))
    return at.astype(np.int64), near.astype(np.float64)


# Losses and cost bands of contrastive routing, on tensors of any precision.


def bands_of(cost: Floats, n: int) -> Ints:
    """(m,) cost band of every model: k where β_k ≤ c < β_{k+1}, β the percentiles of the costs.

    CSCR (section 3.4) prints every band half-open, so that the dearest model (c = 1 = β_K)
    would be in none; here the last band holds its upper end. Where costs are equal, bands
    stay empty: a model of the same cost is in the same band.

    >>> bands_of(np.array([0.0, 0.1, 0.2, 1.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    # A percentile is interpolated: one that is a model's own cost may be off by a rounding.
    edges = np.quantile(cost, np.linspace(0, 1, n + 1)[1:-1]) - 1e-12
    return np.asarray(np.searchsorted(edges, cost, side="right"), dtype=np.int64)


def temperatures(cost: Floats, band: Ints, least: float, slope: float) -> Floats:
    """(m,) τ_k = τ_min + α·c̄_k of each model's band, c̄_k its mean cost (CSCR, equation 7)."""
    mean = np.bincount(band, weights=cost) / np.maximum(np.bincount(band), 1)
    return np.asarray(least + slope * mean[band])


def info_nce(similarity: Any, positive: Any, known: Any, temperature: float) -> Any:
    """−log Σ_positive e^{s/τ} / Σ_known e^{s/τ}, mean over rows with a positive (equation 6).

    Args:
        similarity, positive, known: (b, m); positive and known are boolean.

    Returns:
        A scalar; 0 where no row has a positive.
    """
    import torch

    free = torch.zeros(similarity.shape[1], dtype=similarity.dtype)
    terms, _ = _of_band(similarity, positive, known, free, temperature)
    return terms.mean() if len(terms) else similarity.sum() * 0


def cost_spectrum(
    similarity: Any,
    positive: Any,
    known: Any,
    cost: Any,
    band: Any,
    temperature: Any,
    gamma: float,
    *,
    penalty: Literal["inside", "outside"] = "inside",
    average: Literal["query", "band"] = "query",
) -> Any:
    """Cost-spectrum InfoNCE (CSCR, equation 8).

    For every band k with a positive, −log of Σ e^{s/τ_k} over the band's positives by
    Σ e^{(s − γ·c)/τ_k} over all models whose label is known. The numerator has no
    penalty, so the loss can be negative.

    Args:
        similarity: (b, m) cosines. positive, known: (b, m) boolean.
        cost, band, temperature: (m,) of each model.
        penalty: `inside` the temperature as equation 8 prints it, or `outside`,
            e^{s/τ_k − γ·c}, as the proof of lemma 5.3 writes it.
        average: over the bands of a query, then over queries (the text); or over the
            queries of a band, then over bands (the published code).

    Returns:
        A scalar; 0 where no row has a positive.
    """
    import torch

    parts = []
    for k in torch.unique(band).tolist():
        tau = float(temperature[band == k][0])
        less = gamma * cost if penalty == "inside" else gamma * cost * tau
        here = positive & (band == k)
        parts.append(_of_band(similarity, here, known, less, tau))
    if average == "band":
        means = [terms.mean() for terms, _ in parts if len(terms)]
        return torch.stack(means).mean() if means else similarity.sum() * 0
    total = similarity.new_zeros(len(similarity))
    n = similarity.new_zeros(len(similarity))
    for terms, rows in parts:
        total = total.index_add(0, rows, terms)
        n = n.index_add(0, rows, torch.ones_like(terms))
    some = n > 0
    return (total[some] / n[some]).mean() if some.any() else similarity.sum() * 0


def _of_band(similarity: Any, positive: Any, known: Any, less: Any, tau: float) -> tuple[Any, Any]:
    """(r,) −log of the ratio of every row with a positive, and (r,) which rows these are."""
    import torch

    rows = torch.nonzero(positive.any(dim=1))[:, 0]
    s = similarity[rows]
    good = torch.where(positive[rows], s / tau, -torch.inf).logsumexp(dim=1)
    every = torch.where(known[rows], (s - less) / tau, -torch.inf).logsumexp(dim=1)
    return every - good, rows


def cheapest_positive(positive: Any, band: Any, cost: Any) -> Any:
    """(b, m) of the positives of each band the cheapest alone, of equals the first.

    "The cheapest accurate expert within adaptive cost bands" (CSCR, abstract and the
    published code's docstring; section 3.4 and the code itself take all).
    """
    import torch

    out = torch.zeros_like(positive)
    for k in torch.unique(band).tolist():
        here = positive & (band == k)
        rows = here.any(dim=1)
        first = torch.where(here, cost.expand(here.shape), torch.inf).argmin(dim=1)
        out[rows, first[rows]] = True
    return out


# What the routers share that map questions into the space of the models' descriptors.


class DescriptorRouter(Trained):
    """Questions → two linear layers → unit vectors; scores are cosines with descriptors.

    What is learnt is the map of questions alone. A model is its descriptor and its cost, so one
    without a single label can be in the pool from the start.
    """

    defaults: ClassVar[Mapping[str, Any]] = {
        "k": 4, "width": 1.0, "descriptor": None, "right": 0.5,
        "learning_rate": 2e-3, "epochs": 20,
    }  # fmt: skip

    def fit(self, train: Examples) -> Self:
        self._bank = bank_of(train.descriptors, train.model_ids, self.settings["descriptor"])
        cost = mean_cost(train)
        raw = np.zeros(len(train.model_ids)) if cost is None else cost
        low, high = float(raw.min()), float(raw.max())
        self._cost = np.asarray((raw - low) / (high - low) if high > low else np.zeros_like(raw))
        super().fit(train)
        if cost is None and "costs" in self.traits.needs:
            self.not_as_published += ("no cost is known of every model: none is weighed",)
        return self

    def build(self, inputs: int, start: Vectors) -> Any:
        from torch import nn

        middle = max(1, round(inputs * self.settings["width"]))
        return nn.Sequential(
            nn.Linear(inputs, middle, bias=False),
            nn.ReLU(),
            nn.Linear(middle, self._bank.shape[1], bias=False),
        )

    def read(self, network: Any, x: Any) -> Any:
        import torch
        from torch.nn.functional import normalize

        bank = torch.from_numpy(self._bank).to(x.dtype)
        return normalize(network(x), dim=1) @ bank.T

    def positives(self, batch: TrainingBatch) -> tuple[Any, Any]:
        """(b, m) boolean: models that are right, models whose label is known.

        An unknown label makes a model neither a positive nor a negative.
        """
        known = batch.known > 0
        return known & (batch.y >= self.settings["right"]), known

    def placed(self, queries: Queries) -> Vectors:
        """(n, D) unit vectors of questions in the space of the descriptors."""
        import torch

        with torch_in_one_thread(), torch.no_grad():
            network = self._network(torch.from_numpy(np.ascontiguousarray(self.inputs(queries))))
        return unit(network.numpy())

    def scores(self, queries: Queries) -> Floats:
        at, near = nearest_models(self.placed(queries), self._bank, self.settings["k"])
        out = np.full((len(at), len(self._bank)), OUTSIDE)
        np.put_along_axis(out, at, near, axis=1)
        return out

    def among(self, at: Ints) -> Self:
        """The same router over some of its models, in this order."""
        other = copy.copy(self)
        other._bank, other._cost = self._bank[at], self._cost[at]
        other._shape = (*self._shape[:-1], len(at))
        return other


# CSCR: contrastive routing over the spectrum of costs, and its plain contrastive twin.


@listed
class CSCR(DescriptorRouter):
    """Cost-spectrum contrastive router (Cost-Aware Contrastive Routing, section 3).

    Task: cosine between a question, mapped by two linear layers, and a model's descriptor.
    Loss: equation 8, InfoNCE in each of K percentile bands of cost with τ_k = τ_min + α·c̄_k
    (`least`, `slope`) and the penalty γ on the cost in the denominator. Rule (section 3.5):
    the k nearest descriptors, then similarity − λ·cost; equation 9 prints argmin, the
    published code takes the argmax, which is what is meant.

    The text and the code differ, and each is a preset: int(√M) bands in the code for 5,
    averages per band before bands for per query before queries, k = 1 for 4. Equation 8 has
    the penalty inside the temperature, the proof of lemma 5.3 outside (`penalty`). The text
    takes all positives of a band, the abstract the cheapest (`positives`). γ is 0.2 in
    section 4.1 and "λ = 0.1" in appendix D.1. Section 3.4 says that dear wrong models
    contribute more to the denominator; −γ·c, as printed and as coded, makes them contribute
    less, so that at λ = 0 the dear ones are the least pushed away. Published: MiniLM's [CLS]
    vector; here the release's embeddings.
    """

    name = "cscr"

    def bands(self) -> Any:
        """(m,) cost band of every model; `bands` None: int(√M) of them."""
        n = self.settings["bands"] or max(1, int(len(self._cost) ** 0.5))
        return bands_of(self._cost, n)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        import torch

        s = self.settings
        band = self.bands()
        tau = temperatures(self._cost, band, s["least"], s["slope"])
        cost, tau = (torch.from_numpy(v).to(batch.x.dtype) for v in (self._cost, tau))
        positive, known = self.positives(batch)
        if s["positives"] == "cheapest":
            positive = cheapest_positive(positive, torch.from_numpy(band), cost)
        return cost_spectrum(
            self.read(network, batch.x), positive, known, cost, torch.from_numpy(band), tau,
            s["gamma"], penalty=s["penalty"], average=s["average"],
        )  # fmt: skip


@listed
class Contrastive(DescriptorRouter):
    """The vanilla contrastive router that CSCR is compared with (equation 6, Table 5).

    One temperature, no bands, no cost: all models that are right against all others.
    """

    name = "contrastive"

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        positive, known = self.positives(batch)
        similarity = self.read(network, batch.x)
        return info_nce(similarity, positive, known, self.settings["temperature"])


# Gates over the pool that CSCR is compared with: Soft-MoE and the parametric softmax.


@listed
class SoftMoE(DescriptorRouter):
    """Soft-MoE of CSCR's baselines (section 4.1): softmax((cos − λ·cost)/τ), argmax.

    The paper prints no loss. Here the gate's expected label is maximised, which is what
    makes the gate soft: −mean over questions of Σ_m g_m·y_m over known labels, g the
    softmax over the models whose label is known. Dividing by τ changes no argmax, so the
    score is the cosine.
    """

    name = "soft-moe"

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        known = batch.known > 0
        return -gate_value(
            self.read(network, batch.x), batch.y, known, self.settings["temperature"]
        )


def gate_value(similarity: Any, y: Any, known: Any, temperature: float) -> Any:
    """Mean over rows with a known label of Σ_m softmax(s/τ)_m·y_m over known labels."""
    import torch

    some = known.any(dim=1)
    masked = torch.where(known[some], similarity[some] / temperature, -torch.inf)
    weight = torch.softmax(masked, dim=1)
    return (weight * y[some]).sum(dim=1).mean()


@listed
class Parametric(Trained):
    """Parametric softmax gate of CSCR's baselines (section 4.1): one head per model.

    Task: softmax over models of a linear map of the embedding. Loss: −log of the mass on
    models that are right (equation 6 with a head for a descriptor). It has no place for a
    new model: the paper leaves it out of Table 2 for that.

    The published code has something else under this name, the logit W·d_m + b of a
    descriptor, which is the same for all questions: preset `code`, trained by
    cross-entropy on the labels.
    """

    name = "parametric"

    def fit(self, train: Examples) -> Self:
        self._bank = np.zeros((len(train.model_ids), 1), np.float32)
        if self.settings["of"] == "descriptors":
            self._bank = bank_of(train.descriptors, train.model_ids, self.settings["descriptor"])
        return super().fit(train)

    def build(self, inputs: int, start: Vectors) -> Any:
        from torch import nn

        if self.settings["of"] == "descriptors":
            return nn.Linear(self._bank.shape[1], 1)
        return head(inputs, start)

    def logits(self, network: Any, x: Any) -> Any:
        """(b, m) logits of the gate."""
        import torch

        if self.settings["of"] == "descriptors":
            return network(torch.from_numpy(self._bank)).T.expand(len(x), -1)
        return network(x)

    def read(self, network: Any, x: Any) -> Any:
        import torch

        return torch.softmax(self.logits(network, x), dim=1)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        logits, known = self.logits(network, batch.x), batch.known > 0
        if self.settings["of"] == "descriptors":
            return logistic_loss(logits, batch.y, batch.known)
        return info_nce(logits, known & (batch.y >= self.settings["right"]), known, 1.0)
