"""Contract of `models`: one member of the pool."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

MODELS = Contract(
    "models",
    "One member of the pool.",
    key=("model_id",),
    columns=columns(
        model_id="string: name used everywhere in the release",
        provider="string?: who serves it",
        family="string?: model family",
        params_b="float64? [10^9]: parameters",
        price_in="float64? [USD per 10^6 tokens]: price of prompt tokens",
        price_out="float64? [USD per 10^6 tokens]: price of completion tokens",
        price_date="string?: day the price was read (ISO 8601)",
        price_source="string?: where the price was read",
        context_window="int64? [tokens]: longest prompt plus completion",
        kind=(
            "string: what kind of member it is",
            {
                "real": "it was asked, or its answers were recorded",
                "pseudo_specialist": "its answers are stated by the recipe, to see whether a "
                "router finds a specialist",
            },
        ),
        simulated="bool: true when a program stands in for the model",
    ),
    rules=rules(
        prices_not_negative="coalesce(price_in, 0) >= 0 AND coalesce(price_out, 0) >= 0",
        price_has_date="(price_in IS NULL AND price_out IS NULL) OR price_date IS NOT NULL",
    ),
)
