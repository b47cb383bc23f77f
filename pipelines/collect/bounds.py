"""A budget that cannot be kept is refused before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.errors import RecipeError, did_you_mean
from schemas.recipe.collect import Collect
from schemas.recipe.pool import Model


def check_names(models: Iterable[Model], collect: Collect) -> None:
    """Every model that the budget bounds is one of the pool.

    Raises:
        RecipeError: one is not, so its bound would bind nobody.
    """
    known = [model.model_id for model in models]
    for model_id in sorted(set(collect.budget.models) - set(known)):
        raise RecipeError(
            f"the budget bounds the model {model_id!r}, which the pool does not have",
            where="collect.budget.models",
            next_step=did_you_mean(model_id, known),
        )


def check_model(model: Model, collect: Collect) -> None:
    """A hard budget needs a worst case, and that needs prices and a token limit."""
    if not collect.budget.is_set:
        return
    where = f"pool.models, {model.model_id}"
    if model.price_in is None or model.price_out is None:
        raise RecipeError(
            f"a budget is set, and the price of {model.model_id!r} is not known",
            where=where,
            next_step="give 'price_in', 'price_out' and 'price_date', or take the budget away",
        )
    limits = (*collect.parameters, *model.parameters)
    if (
        collect.max_tokens is None
        and model.context_window is None
        and not {"max_tokens", "max_completion_tokens"} & set(limits)
    ):
        raise RecipeError(
            f"a budget is set, and the longest answer of {model.model_id!r} is not known",
            where=where,
            next_step="set 'collect.max_tokens' or the model's 'context_window'",
        )
