"""Every pair without a label has a cause in words, an example and a next step."""

from __future__ import annotations

import pyarrow as pa

from routeyard.datacards.card import causes, sentence
from routeyard.schemas.questions import looked_for_duplicates


def tables(**changes: pa.Table) -> dict[str, pa.Table]:
    """Two models, four questions: one labelled, one scorer error, one failed call, one unasked."""
    ids, models = ["q1", "q2", "q3", "q4"], ["m", "n"]
    pairs = [(q, m) for q in ids for m in models]
    asked = [(q, m) for q, m in pairs if q != "q4"]
    judged = [(q, m) for q, m in pairs if q in ("q1", "q2")]
    return {
        "queries": pa.table({"query_id": ids, "scorer": ["mcq"] * 4}),
        "models": pa.table({"model_id": [*models, "pseudo"], "kind": ["real", "real", "ps"]}),
        "labels": pa.table(
            {
                "query_id": [q for q, _ in asked],
                "model_id": [m for _, m in asked],
                "score": pa.array([1.0 if q == "q1" else None for q, _ in asked]),
            }
        ),
        "responses": pa.table(
            {
                "query_id": [q for q, _ in asked],
                "model_id": [m for _, m in asked],
                "status": ["error" if q == "q3" else "ok" for q, _ in asked],
            }
        ),
        "verdicts": pa.table(
            {
                "query_id": [q for q, _ in judged],
                "model_id": [m for _, m in judged],
                "scorer": ["mcq"] * len(judged),
                "outcome": ["correct" if q == "q1" else "error" for q, _ in judged],
                "reason": ["" if q == "q1" else "no letter 'Z'" for q, _ in judged],
            }
        ),
        **changes,
    }


def test_each_pair_has_one_cause() -> None:
    found = causes(tables())
    assert {row["cause"]: (row["questions"], row["models"], row["pairs"]) for row in found} == {
        "scorer error": (1, 2, 2),
        "the call failed": (1, 2, 2),
        "no response": (1, 2, 2),
    }
    said = sentence(next(row for row in found if row["cause"] == "scorer error"))
    assert "2 pairs without a label: scorer error of 'mcq'" in said
    assert "1 questions x 2 models, e.g. q2: no letter 'Z'" in said
    assert all(row["next"] for row in found)


def test_nothing_is_said_of_what_is_labelled_or_cannot_be_told() -> None:
    whole = tables()
    ids = [(q, m) for q in ("q1", "q2", "q3", "q4") for m in ("m", "n")]
    labels = pa.table(
        {
            "query_id": [q for q, _ in ids],
            "model_id": [m for _, m in ids],
            "score": [0.0] * len(ids),
        }
    )
    assert causes(whole | {"labels": labels}) == []
    del whole["verdicts"]
    assert causes(whole) == []


def test_duplicates_count_as_looked_for_only_by_the_rule() -> None:
    assert looked_for_duplicates({"curate": [{"rule": "dedup", "parameters": {}}]})
    assert not looked_for_duplicates({"curate": [{"rule": "prune"}]})
    assert not looked_for_duplicates({})


def test_what_was_not_recorded_is_no_matter_of_asking() -> None:
    made = tables()
    hashes = pa.nulls(made["responses"].num_rows, pa.string())
    responses = made["responses"].append_column("request_hash", hashes)
    (row,) = (r for r in causes(made | {"responses": responses}) if "answer" in r["cause"])
    assert row["cause"] == "no recorded answer"
    assert "collect.recorded" in row["next"]
    assert "plan" not in row["next"]
    asked = hashes.fill_null("h")
    responses = made["responses"].append_column("request_hash", asked)
    assert "no response" in {r["cause"] for r in causes(made | {"responses": responses})}
