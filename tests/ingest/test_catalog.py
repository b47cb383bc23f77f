"""Every catalog entry is whole; a few are tried on rows as the datasets hold them."""

from __future__ import annotations

from collections import Counter

import pytest

from pipelines.errors import UnknownName
from pipelines.ingest.catalog import from_catalog, names
from pipelines.ingest.queries import to_queries
from pipelines.scorers import SCORERS
from schemas.recipe import Source

ROWS = {
    "mmlu": {"question": "Q", "choices": ["a", "b"], "answer": 1, "subject": "s"},
    "arc_easy": {
        "id": "1",
        "question": "Q",
        "choices": {
            "text": ["x", "y"],
            "label": ["1", "2"],
        },  # some rows count 1, 2 instead of A, B
        "answerKey": "2",
    },
    "gsm8k": {"question": "Q", "answer": "1 + 1 = 2\n#### 2"},
    "hendrycks_math": {
        "problem": "P",
        "solution": "so $\\boxed{\\frac{1}{2}}$.",
        "level": "1",
        "type": "a",
    },
    "squad": {"id": "1", "context": "C", "question": "Q", "answers": {"text": ["a", "b"]}},
    "sciq": {
        "question": "Q",
        "correct_answer": "right",
        "distractor1": "w1",
        "distractor2": "w2",
        "distractor3": "w3",
    },
    "boolq": {"passage": "P", "question": "is it", "label": 1},
    "ethics": {"input": "I", "label": 1, "_config": "commonsense"},
}


def taken(name: str, row: dict[str, object]) -> dict[str, object]:
    source = from_catalog(Source(name=name, catalog=name))
    rows, _ = to_queries(source, [row], seen=Counter(), where=name)
    return rows[0]


@pytest.mark.parametrize("name", names())
def test_every_entry_is_whole(name: str) -> None:
    source = from_catalog(Source(name="mine", catalog=name, limit=3))
    assert (source.name, source.limit) == ("mine", 3)
    assert source.hub_id or source.path
    assert source.license
    assert source.scorer in SCORERS.targets or source.scorer == "none"


@pytest.mark.parametrize(
    ("name", "references"),
    [
        ("mmlu", ["B"]),
        ("arc_easy", ["B"]),
        ("gsm8k", ["2"]),
        ("hendrycks_math", ["\\frac{1}{2}"]),
        ("squad", ["a", "b"]),
        ("boolq", ["B"]),
        ("ethics", ["B"]),
    ],
)
def test_rows_become_queries(name: str, references: list[str]) -> None:
    assert taken(name, ROWS[name])["references"] == references


def test_the_right_answer_does_not_always_stand_first() -> None:
    places = Counter()
    for number in range(40):
        query = taken("sciq", ROWS["sciq"] | {"question": f"Q{number}"})
        letter = query["references"][0]
        assert query["choices"]["ABCD".index(letter)] == "right"
        places[letter] += 1
    assert len(places) == 4


def test_an_unknown_entry_suggests_a_known_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'gsm8k'"):
        from_catalog(Source(name="x", catalog="gsm8"))
