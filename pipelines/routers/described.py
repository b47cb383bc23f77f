"""What a registered router declares about itself, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import architectures_of, traits_of


def described(name: str) -> dict[str, Any]:
    """Name, traits and settings of a router, as JSON holds them.

    Raises:
        UnknownName: there is no such router.
    """
    made = ROUTERS.get(name)
    traits = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(traits_of(made)).items()}
    return {"name": name, **traits, "architectures": [dict(one) for one in architectures_of(made)]}
