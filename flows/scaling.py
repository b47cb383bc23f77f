"""A recipe at another scale: every count of questions shrinks in proportion.

Sources, the dense slice, splits in counts, budgets and the counts of curation
rules shrink; models, samples, thresholds and prices stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.split import apportion
from routeyard.schemas.recipe import CurationRule, Parts, Recipe, Source, Split

#: Parameters of rules that count questions.
COUNTS_OF_RULES: Mapping[str, tuple[str, ...]] = {
    "dense_sparse": ("validation", "test"),
    "pseudo_specialists": ("min_queries",),
    "specialist_sample": ("quota", "floor"),
}


def scaled(recipe: Recipe, scale: float | None) -> Recipe:
    """The recipe with every count of questions times `scale`, in (0, 1].

    Raises:
        BadInput: the scale is outside (0, 1], or a source states no `limit`.
    """
    if scale is None or scale == 1:
        return recipe
    if not 0 < scale <= 1:
        raise BadInput(f"a scale of {scale:g} is not in (0, 1]", next_step="write 0.01 for 1 %")
    free = [source.name for source in recipe.sources if source.limit is None]
    if free:
        raise BadInput(
            f"source {free[0]!r} states no 'limit', so it cannot be scaled",
            where=f"recipe {recipe.name!r}",
            next_step="give the source a 'limit'",
        )
    changed = resized(recipe, [_source(source, scale) for source in recipe.sources])
    note = f"Built at a scale of {scale:g} of the recipe (`--scale {scale:g}`)."
    release = recipe.release.but(known_issues=[*recipe.release.known_issues, note])
    return changed.but(collect=_collect(recipe, scale), release=release)


def resized(recipe: Recipe, sources: Sequence[Source], least: int = 1) -> Recipe:
    """The recipe over other sources, all with a `limit`; splits and rules are fitted to them.

    Args:
        least: Questions of each part of a split of all sources, or a quarter of them where that
            is less.
    """
    total = sum(int(source.limit or 0) for source in sources)
    before = sum(int(source.limit or 0) for source in recipe.sources)
    scale = total / before if before else 1.0
    limits = {source.name: int(source.limit or 0) for source in sources}
    changed = recipe.but(
        sources=list(sources),
        split=_split(recipe.split, limits, least),
        curate=[_rule(rule, scale, sources) for rule in recipe.curate],
    )
    # `model_copy` counts what it sets as written; a split that was not, still is not.
    if "split" not in recipe.model_fields_set:
        changed.model_fields_set.discard("split")
    return changed


def _source(source: Source, scale: float) -> Source:
    limit = max(1, round((source.limit or 1) * scale))
    changes: dict[str, Any] = {"limit": limit}
    if source.dense is not None:
        changes["dense"] = min(limit, max(1, round(source.dense * scale)))
    return source.model_copy(update=changes)


def _split(split: Split, limits: Mapping[str, int], least: int) -> Split:
    if split.sources:
        own = {name: _fitted(source, limits.get(name, 0)) for name, source in split.sources.items()}
        return split.but(sources=own)
    if split.counts is None:
        return split
    parts = _fitted(split.counts, sum(limits.values()), least)
    return split.model_copy(update=parts.model_dump())


def _fitted(parts: Parts, room: int, least: int = 1) -> Parts:
    """The same proportions over at most `room` questions; `least`, or a quarter of them, and one
    at any rate of each that had some."""
    sizes = parts.model_dump()
    smaller = apportion(sizes, min(room, sum(sizes.values())))
    floor = max(1, min(least, room // 4))
    for name, size in sizes.items():
        most = max(smaller, key=lambda key: smaller[key])
        moved = min(floor, size) - smaller[name]
        if moved > 0 and smaller[most] - moved >= min(floor, sizes[most]):
            smaller[name], smaller[most] = smaller[name] + moved, smaller[most] - moved
    return Parts(**smaller)


def _rule(rule: CurationRule, scale: float, sources: Sequence[Source]) -> CurationRule:
    names = COUNTS_OF_RULES.get(rule.rule, ())
    parameters = {**RULES.get(rule.rule).defaults, **rule.parameters}
    changes = {
        name: max(1, round(parameters[name] * scale))
        for name in names
        if isinstance(parameters[name], int) and parameters[name]
    }
    if rule.rule == "dense_sparse" and parameters["slice_share"] is None:
        # The slice shrinks source by source: the same proportions of what it holds now.
        inside = sum(source.dense or 0 for source in sources)
        changes = {name: max(1, min(count, inside // 3)) for name, count in changes.items()}
    if not changes:
        return rule
    return rule.but(parameters={**rule.parameters, **changes})


def _collect(recipe: Recipe, scale: float) -> Any:
    budget = recipe.collect.budget
    if not budget.is_set:
        return recipe.collect
    smaller = budget.but(
        usd=None if budget.usd is None else budget.usd * scale,
        per_model_usd=None if budget.per_model_usd is None else budget.per_model_usd * scale,
        models={name: usd * scale for name, usd in budget.models.items()},
    )
    return recipe.collect.but(budget=smaller)
