"""What a registered router declares about itself, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import architectures_of, traits_of
from routeyard.pipelines.routers.listed import constants, presets_of


def described(name: str) -> dict[str, Any]:
    """Name, traits, settings and published constants of a router, as JSON holds them.

    Raises:
        UnknownName: there is no such router.
    """
    made = ROUTERS.get(name)
    traits = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(traits_of(made)).items()}
    published = {
        preset: {setting: asdict(constant) for setting, constant in constants(name, preset).items()}
        for preset in presets_of(name)[1:]
    }
    tried = [dict(item) for item in architectures_of(made)]
    return {"name": name, **traits, "architectures": tried, "presets": published}
