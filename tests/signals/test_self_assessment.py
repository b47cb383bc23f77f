"""A model's word on its own answer is read, wherever in the reply it stands."""

from __future__ import annotations

import json
import math

import pytest

from routeyard.pipelines.evaluate.signals import certainty


def logprobs(*tokens: tuple[str, dict[str, float]]) -> str:
    """Token log-probabilities as `responses` keeps them, from probabilities."""
    rows = []
    for token, alternatives in tokens:
        top = [[name, math.log(p)] for name, p in alternatives.items()]
        own = math.log(alternatives.get(token, 0.01))
        rows.append({"token": token, "logprob": own, "top": top})
    return json.dumps(rows)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("yes", 1.0), ("No.", 0.0), ("**Yes**", 1.0), ('"no"', 0.0),
        ("No, the answer is not right.", 0.0), ("Yes, it is correct.", 1.0),
        ("The answer is not right.", 0.0), ("The answer is right.", 1.0),
        ("The answer is wrong", 0.0), ("It isn't incorrect.", 1.0), ("It isn\u2019t correct", 0.0),
        ("", None), (None, None), ("Note that 7 is prime", None), ("nothing", None),
        ("The answer is right, and the answer is wrong", None), ("42", None), ("yesterday", None),
    ],
)  # fmt: skip
def test_what_a_reply_says(reply: str | None, says: float | None) -> None:
    assert certainty(reply) == says


def test_the_first_word_is_a_probability_where_the_server_gave_one() -> None:
    told = logprobs(("No", {"No": 0.6, "Yes": 0.3, "The": 0.1}), (",", {",": 1.0}))
    assert certainty("No, the answer is not right.", told) == pytest.approx(1 / 3)


def test_another_first_word_leaves_the_sentence_and_then_the_alternatives() -> None:
    told = logprobs(("The", {"The": 0.9, " yes": 0.02, "No": 0.06}))
    assert certainty("The answer is not right.", told) == 0.0
    assert certainty("The number 7", told) == pytest.approx(0.25)
    assert certainty("The number 7", logprobs(("The", {"The": 0.9}))) is None
