"""Axes of a pool's entry: which members they make, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from routeyard.pipelines.common.pool import models_table
from routeyard.schemas.recipe.pool import Pool


def pool(**model: Any) -> Pool:
    return Pool.model_validate({"models": [{"model_id": "a", **model}]})


def test_plain_values_set_what_their_axis_is_about() -> None:
    axes = {"effort": ["low", "high"], "output_budget": [10, 20], "samples": [3]}
    made = pool(axes=axes, parameters={"top_p": 0.9}, price_in=1.0, price_date="2026-11-01").models
    assert [one.model_id for one in made] == [
        "a-low-10-3", "a-low-20-3", "a-high-10-3", "a-high-20-3",
    ]  # fmt: skip
    last = made[-1]
    assert last.parameters == {"top_p": 0.9, "reasoning_effort": "high", "max_tokens": 20}
    assert (last.endpoint_model, last.samples, last.price_in) == ("a", 3, 1.0)
    rows = {row["model_id"]: row for row in models_table(pool(axes=axes)).to_pylist()}
    row = rows["a-high-20-3"]
    assert (row["base_model"], row["effort"], row["effort_level"]) == ("a", "high", 1)
    assert (row["output_budget"], row["samples"]) == (20, 3)


def test_values_by_name_set_keys_of_a_model() -> None:
    efforts = {
        "low": {"parameters": {"max_tokens": 8}},
        "high": {"prompt": "Think. {{ prompt }}", "parameters": {"max_tokens": 90}},
    }
    tools = {"none": {}, "web": {"parameters": {"tool_choice": "auto"}}}
    made = pool(axes={"effort": efforts, "tools": tools}).models
    assert [(one.prompt is not None, one.parameters.get("max_tokens")) for one in made] == [
        (False, 8), (False, 8), (True, 90), (True, 90),
    ]  # fmt: skip
    assert made[1].parameters["tool_choice"] == "auto"
    rows = models_table(pool(axes={"effort": efforts, "tools": tools})).to_pylist()
    assert {(row["effort"], row["tools"]) for row in rows} == {
        ("low", "none"), ("low", "web"), ("high", "none"), ("high", "web"),
    }  # fmt: skip


def test_a_pool_with_arms_reads_itself() -> None:
    made = pool(axes={"effort": ["low", "high"]})
    again = Pool.model_validate(made.model_dump(mode="json", exclude_unset=True))
    assert again == made


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ({"tools": ["web"]}, "a value of the axis 'tools' is a mapping"),
        ({"effort": {"low": {"model_id": "b"}}}, "an axis cannot set 'model_id'"),
        ({"effort": []}, "the axis 'effort' has no value"),
        ({"effort": ["low", "low"]}, "is in the pool twice"),
        ({"output_budget": list(range(1, 1002))}, "its axes make 1,001 arms"),
        ({"speed": ["fast"]}, "Input should be 'effort'"),
        ({"effort": {"low": {"temperature": 0}}}, "unknown key 'temperature'"),
        (
            {"effort": ["low"], "prompt": {"p": {"parameters": {"reasoning_effort": "x"}}}},
            "the axes 'effort' and 'prompt' both set 'parameters.reasoning_effort'",
        ),
    ],
)
def test_what_cannot_be_set_is_named(axes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        pool(axes=axes)
