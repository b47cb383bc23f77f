"""Addresses of providers, which a recipe may leave to the environment."""

from __future__ import annotations

import os
import re

from pipelines.errors import RecipeError
from schemas.recipe import Pool


def with_addresses(pool: Pool) -> Pool:
    """The pool with `$NAME` in providers' addresses read from the environment.

    Raises:
        RecipeError: a variable is not set.
    """
    providers = []
    for provider in pool.providers:
        for name in re.findall(r"\$\{?(\w+)\}?", provider.base_url):
            if name not in os.environ:
                raise RecipeError(
                    f"the address of provider {provider.name!r} needs the environment variable "
                    f"{name}, which is not set",
                    where=f"pool.providers, {provider.name}",
                    next_step=f"export {name}=https://… and run the same command",
                )
        address = os.path.expandvars(provider.base_url)
        providers.append(provider.model_copy(update={"base_url": address}))
    return pool.model_copy(update={"providers": providers})
