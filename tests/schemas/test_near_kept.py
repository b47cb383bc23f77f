"""Near-equal texts are looked for once, though another search is made in between."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.schemas import questions as near


def test_two_searches_in_turn_are_made_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    joined = near._joined

    def counted(texts: list[str], groups: near.Codes) -> near.Codes:
        made.append(texts[0])
        return joined(texts, groups)

    monkeypatch.setattr(near, "_FOUND", {})
    monkeypatch.setattr(near, "_joined", counted)
    asked = ["Which of the two sides is longer here?", "Where is the river?"]
    for texts in (asked, asked[::-1], asked, asked[::-1]):
        near.same_question(texts, np.arange(2))
    assert made == asked
    for other in ("a", "b"):
        near.same_question([other], np.arange(1))
    near.same_question(asked, np.arange(2))
    assert made == [*asked, "a", "b", asked[0]]
