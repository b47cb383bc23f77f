"""CSCR: contrastive routing over the spectrum of costs, and its plain contrastive twin."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.routers.base import Examples, listed
from routeyard.pipelines.routers.contrastive.losses import (
    bands_of,
    cheapest_positive,
    cost_spectrum,
    info_nce,
    temperatures,
)
from routeyard.pipelines.routers.contrastive.space import DescriptorRouter
from routeyard.pipelines.routers.networks.trained import TrainingBatch


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

    def fit(self, train: Examples) -> CSCR:
        super().fit(train)
        return self

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
