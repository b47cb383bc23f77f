"""The eight trainable heads of the plateau study, as the zoo has them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.routers.base import traits_of
from routeyard.pipelines.routers.factors.embedllm import EmbedLLM
from routeyard.pipelines.routers.gradient import masked_cross_entropy
from routeyard.pipelines.routers.networks.cp_router import CPRouter
from routeyard.pipelines.routers.networks.equirouter import EquiRouter
from routeyard.pipelines.routers.networks.mess_plus import MessPlus
from routeyard.pipelines.routers.networks.mlp import MLP, layers
from routeyard.pipelines.routers.networks.p2l import PromptToLeaderboard
from routeyard.pipelines.routers.networks.routerdc import RouterDC
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch
from routeyard.pipelines.routers.networks.zooter import Zooter


class SharedMLP(Trained):
    """The study's `mlp_cn`: the network and loss of `mlp`, in the loop of the other seven."""

    name = "mlp"
    traits = traits_of(MLP)
    defaults: ClassVar[dict[str, Any]] = {"width": 256}

    def build(self, inputs: int, start: Vectors) -> Any:
        return layers(inputs, self.settings["width"], start)()

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        return masked_cross_entropy(network(batch.x), batch.y, batch.known)

    def registered(self) -> MLP:
        """The same network as the zoo's `mlp`, which can be saved and loaded."""
        shape = np.array([self._network[0].in_features, self.settings["width"]])
        return MLP(seed=self.seed).restore({**self.arrays(), "shape": shape})


#: Router → head, in the study's order (section 6.1: classifier heads, contrastive, pairs,
#: cascades, distilled, simple head).
HEADS: dict[str, type[Trained]] = {
    "mlp": SharedMLP,
    "embedllm": EmbedLLM,
    "routerdc": RouterDC,
    "p2l": PromptToLeaderboard,
    "cp-router": CPRouter,
    "mess-plus": MessPlus,
    "zooter": Zooter,
    "equirouter": EquiRouter,
}


def head_of(router: str, seed: int) -> Trained:
    """A fresh head with its defaults.

    Raises:
        BadInput: the router has no trainable encoder.
    """
    if router not in HEADS:
        raise BadInput(
            f"router {router!r} has no head that an encoder could be trained through",
            next_step=did_you_mean(router, list(HEADS)),
        )
    return HEADS[router](seed=seed)


def registered(head: Trained) -> Any:
    """The fitted head as the zoo's router of its name."""
    return head.registered() if isinstance(head, SharedMLP) else head
