"""Routeyard from Python: everything a user imports, and nothing else.

    import routeyard

    release = routeyard.open_release("yard/releases/demo/1.0.0")
    found = routeyard.evaluate("yard/releases/demo/1.0.0", ["knn", "random"])

Each name stands in another package and is imported when it is first used, so that
`import routeyard` costs nothing. This module only says which names there are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.build import run_build as build
    from flows.evaluation.evaluate import certify, evaluate
    from flows.evaluation.route import route
    from flows.plan import plan_build as plan
    from flows.recipe import load_recipe
    from pipelines.curate.rule import Curated, Rule, removals
    from pipelines.errors import (
        BadInput,
        BudgetReached,
        ContractError,
        DiskFull,
        GateFailed,
        Permanent,
        ProviderError,
        RecipeError,
        RecordedError,
        Retryable,
        RouteyardError,
        SourceError,
        UnknownName,
        Unsafe,
        VersionExists,
    )
    from pipelines.ingest.importers.spec import (
        ImportedAnswer,
        ImportedQuestion,
        Importer,
        ImportResult,
    )
    from pipelines.metrics.spec import MetricSpec, MetricValue, Routed, Swept
    from pipelines.registry import Names
    from pipelines.release import open_release
    from pipelines.routers.base import Examples, Queries, Router, Traits, model_means, usable
    from pipelines.scorers.extraction.commitment import settle
    from pipelines.scorers.extraction.marks import committed
    from pipelines.scorers.extraction.short_answer import short_answer
    from pipelines.scorers.score_answers import score
    from pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput

    __version__: str
    #: Names of all metrics that `evaluate` knows.
    metrics: Names

#: Name → where it stands. The documentation lists the same names; a test holds both together.
_WHERE = {
    "open_release": "pipelines.release:open_release",
    "build": "flows.build:run_build",
    "plan": "flows.plan:plan_build",
    "evaluate": "flows.evaluation.evaluate:evaluate",
    "certify": "flows.evaluation.evaluate:certify",
    "route": "flows.evaluation.route:route",
    "score": "pipelines.scorers.score_answers:score",
    "load_recipe": "flows.recipe:load_recipe",
    "Router": "pipelines.routers.base:Router",
    "Examples": "pipelines.routers.base:Examples",
    "Queries": "pipelines.routers.base:Queries",
    "Scorer": "pipelines.scorers.scorer:Scorer",
    "ScoringInput": "pipelines.scorers.scorer:ScoringInput",
    "ScoreResult": "pipelines.scorers.scorer:ScoreResult",
    "Rule": "pipelines.curate.rule:Rule",
    "Curated": "pipelines.curate.rule:Curated",
    "removals": "pipelines.curate.rule:removals",
    "Traits": "pipelines.routers.base:Traits",
    "usable": "pipelines.routers.base:usable",
    "model_means": "pipelines.routers.base:model_means",
    "short_answer": "pipelines.scorers.extraction.short_answer:short_answer",
    "committed": "pipelines.scorers.extraction.marks:committed",
    "settle": "pipelines.scorers.extraction.commitment:settle",
    "MetricSpec": "pipelines.metrics.spec:MetricSpec",
    "MetricValue": "pipelines.metrics.spec:MetricValue",
    "Routed": "pipelines.metrics.spec:Routed",
    "Swept": "pipelines.metrics.spec:Swept",
    "Importer": "pipelines.ingest.importers.spec:Importer",
    "ImportResult": "pipelines.ingest.importers.spec:ImportResult",
    "ImportedQuestion": "pipelines.ingest.importers.spec:ImportedQuestion",
    "ImportedAnswer": "pipelines.ingest.importers.spec:ImportedAnswer",
    "RouteyardError": "pipelines.errors:RouteyardError",
    "BadInput": "pipelines.errors:BadInput",
    "ContractError": "pipelines.errors:ContractError",
    "RecipeError": "pipelines.errors:RecipeError",
    "UnknownName": "pipelines.errors:UnknownName",
    "SourceError": "pipelines.errors:SourceError",
    "RecordedError": "pipelines.errors:RecordedError",
    "VersionExists": "pipelines.errors:VersionExists",
    "Unsafe": "pipelines.errors:Unsafe",
    "GateFailed": "pipelines.errors:GateFailed",
    "ProviderError": "pipelines.errors:ProviderError",
    "Retryable": "pipelines.errors:Retryable",
    "Permanent": "pipelines.errors:Permanent",
    "BudgetReached": "pipelines.errors:BudgetReached",
    "DiskFull": "pipelines.errors:DiskFull",
}

__all__ = [
    "BadInput",
    "BudgetReached",
    "ContractError",
    "Curated",
    "DiskFull",
    "Examples",
    "GateFailed",
    "ImportResult",
    "ImportedAnswer",
    "ImportedQuestion",
    "Importer",
    "MetricSpec",
    "MetricValue",
    "Permanent",
    "ProviderError",
    "Queries",
    "RecipeError",
    "RecordedError",
    "Retryable",
    "Routed",
    "Router",
    "RouteyardError",
    "Rule",
    "ScoreResult",
    "Scorer",
    "ScoringInput",
    "SourceError",
    "Swept",
    "Traits",
    "UnknownName",
    "Unsafe",
    "VersionExists",
    "__version__",
    "build",
    "certify",
    "committed",
    "evaluate",
    "load_recipe",
    "metrics",
    "model_means",
    "open_release",
    "plan",
    "removals",
    "route",
    "score",
    "settle",
    "short_answer",
    "usable",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("routeyard")
    elif name == "metrics":
        found = _ours("pipelines.registry").Names(_ours("pipelines.metrics").METRICS.names())
    elif name in _WHERE:
        module, _, attribute = _WHERE[name].partition(":")
        found = getattr(_ours(module), attribute)
    else:
        raise AttributeError(f"module 'routeyard' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _ours(module: str) -> Any:
    """A module of Routeyard; says so where a folder of the user's stands in its place."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        standing = import_module(package) if error.name != package else None
        place = list(getattr(standing, "__path__", [])) or ["nowhere"]
        raise ImportError(
            f"routeyard needs its own package {package!r}, and Python finds another one: "
            f"{place[0]}\n  next:  rename that folder, or run from another directory"
        ) from error
