"""What a recipe needs around it: files and servers behind environment variables that are not set.

A recipe may leave a path or an address to the environment (`${NAME}`). Where the
variable is not set and somebody registered a maker for it, the maker is entered for
as long as the recipe is worked on, e.g. a local server that plays a provider.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from routeyard.pipelines.collect.known_answers import providers_in
from routeyard.pipelines.common.files import names
from routeyard.pipelines.common.registry import Registry
from routeyard.schemas.recipe import Recipe

#: Variable → function (workspace folder) → context manager that gives the variable's value.
MAKERS = Registry(
    kind="fixture",
    group="routeyard.fixtures",
    builtin={
        "ROUTEYARD_DEMO_BANK": "routeyard.flows.demo.serve:bank_file",
        "ROUTEYARD_DEMO_URL": "routeyard.flows.demo.serve:served_pool",
        "ROUTEYARD_HOPS": "routeyard.flows.demo.serve:hops_file",
        "ROUTEYARD_HOPS_URL": "routeyard.flows.demo.serve:served_agents",
        "ROUTEYARD_PICTURES": "routeyard.flows.demo.serve:picture_folder",
        "ROUTEYARD_PICTURES_URL": "routeyard.flows.demo.serve:served_eyes",
        "ROUTEYARD_REAL_URL": "routeyard.flows.demo.real.served:served_model",
    },
)


@contextmanager
def fixtures(recipe: Recipe, root: Path, *, serve: bool = True) -> Iterator[None]:
    """Make what the recipe's variables point to; one that is set is used as it is.

    Args:
        serve: Also make what providers' addresses name; a plan asks nothing and needs none.
    """
    texts = [str(source.path or "") for source in (*recipe.sources, *recipe.compared_with)]
    if serve:
        texts += [provider.base_url for provider in providers_in(recipe)]
    wanted = {name: None for text in texts for name in names(text)}
    with ExitStack() as made:
        for name in wanted:
            if not os.environ.get(name) and name in MAKERS.targets:
                os.environ[name] = made.enter_context(MAKERS.get(name)(root))
                made.callback(os.environ.pop, name, None)
        yield
