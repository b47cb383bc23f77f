"""Pairs, their winners, and what the rule reports."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.common.errors import BadInput, RecipeError
from routeyard.pipelines.common.usage import sequence_logprob, tokens
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.preference import (
    delta,
    preference,
    record,
    tau_sweep,
    token_signals,
    winner_by_entropy,
    winner_by_score,
)
from routeyard.schemas import CONTRACTS, LABELS, MODELS, QUERIES, RESPONSES, VERDICTS

Q = [f"q{i:020x}" for i in range(8)]


def queries(n=len(Q)):
    return QUERIES.from_rows(
        {
            "query_id": Q[i],
            "source": "s",
            "source_id": str(i),
            "task": "t",
            "domain": "math",
            "question": f"question {i}",
            "prompt": f"question {i}\n\nAnswer: N",
            "choices": [],
            "references": ["1"],
            "scorer": "numeric",
            "metadata": "{}",
        }
        for i in range(n)
    )


def models():
    return MODELS.from_rows(
        {"model_id": name, "kind": "real", "simulated": False} for name in ("big", "small")
    )


def answers(spec, logprob=None):
    """{(query number, model): [answer, …]} as responses and verdicts; None is unreadable."""
    responses, verdicts = [], []
    for (i, model), values in spec.items():
        for sample, value in enumerate(values):
            key = {"query_id": Q[i], "model_id": model, "sample": sample}
            text = f"Answer: {value}" if value is not None else f"hm {sample}"
            entry = {"token": text, "logprob": logprob, "top": []}
            responses.append(
                key
                | {
                    "text": text,
                    "status": "ok",
                    "attempts": 1,
                    "logprobs": None if logprob is None else json.dumps([entry]),
                }
            )
            outcome = "abstain" if value is None else "correct" if value == "1" else "incorrect"
            verdicts.append(
                key
                | {
                    "scorer": "numeric",
                    "scorer_version": "1",
                    "outcome": outcome,
                    "score": None if value is None else float(value == "1"),
                    "extracted": value,
                    "conflict": False,
                    "reason": "",
                }
            )
    return RESPONSES.from_rows(responses), VERDICTS.from_rows(verdicts)


def labels(rows):
    return LABELS.from_rows(
        {
            "query_id": Q[i],
            "model_id": model,
            "score": None if correct is None else float(correct),
            "correct": correct,
            "decided_by": None if correct is None else "numeric",
            "contested": False,
            "n_samples": 1,
        }
        for (i, model), correct in rows.items()
    )


def tables(spec, logprob=None, **more):
    responses, verdicts = answers(spec, logprob)
    return {
        "queries": queries(),
        "models": models(),
        "responses": responses,
        "verdicts": verdicts,
    } | more


SPEC = {
    (0, "big"): ["1", "1", "1", "1"], (0, "small"): ["1", "2", "1", "2"],
    (1, "big"): ["1", "2", "3", "4"], (1, "small"): ["5", "5", "5", "5"],
    (2, "big"): ["1", "1", "1", "1"], (2, "small"): ["1", "1", "1", "1"],
    (3, "big"): ["1", "2", "1", "2"], (3, "small"): ["3", "4", "3", "4"],
    (4, "big"): ["1", "1"],
    (5, "big"): ["1", "1"], (5, "small"): ["1"],
}  # fmt: skip


def run(spec=SPEC, logprob=None, more=(), **parameters):
    given_ = {"strong": "big", "weak": "small", "backend": "equality"} | parameters
    return preference(tables(spec, logprob, **dict(more)), **given_)


def winners(curated):
    found = {}
    for row in curated.added["preferences"].to_pylist():
        side = "tie"
        if row["winner_model_a"]:
            side = row["model_a"]
        elif row["winner_model_b"]:
            side = row["model_b"]
        found[row["query_id"]] = (side, row["delta"])
    return found


def test_the_surer_model_wins():
    found = winners(run())
    assert found[Q[0]] == ("big", None)  # SE_strong is 0: no δ, strong wins
    assert found[Q[1]] == ("small", 1.0)
    assert found[Q[2]] == ("tie", None)  # both certain
    assert found[Q[3]] == ("tie", 0.0)
    assert set(found) == set(Q[:4])


def test_a_missing_entropy_makes_no_pair_and_says_why():
    curated = run()
    reasons = {row["key"].split("|")[0]: row["reason"] for row in curated.removed.to_pylist()}
    # One sample always agrees with itself: entropy 0 of it would be invented certainty.
    assert reasons == {
        Q[4]: "no_response", Q[5]: "too_few_samples", Q[6]: "no_response", Q[7]: "no_response",
    }  # fmt: skip
    pairs = curated.added["preferences"].num_rows
    assert pairs + curated.removed.num_rows == curated.kept["queries"].num_rows == len(Q)
    assert curated.figures["no_pair"] == {"no_response": 3, "too_few_samples": 1}


def test_entropies_are_compared_over_as_many_samples_of_each():
    # Three different answers reach ln 3, two reach ln 2: both models are as unsure as they can be.
    spec = {(0, "big"): ["1", "2", "3"], (0, "small"): ["5", "6"]}
    curated = run(spec, estimator="discrete")
    (row,) = curated.added["preferences"].to_pylist()
    assert row["winner_tie"]
    assert row["se_a"] == row["se_b"] == pytest.approx(math.log(2))
    # What was measured over all samples stays in its own table.
    told = {r["model_id"]: r["n_samples"] for r in curated.added["entropies"].to_pylist()}
    assert told == {"big": 3, "small": 2}


def test_failed_and_truncated_responses_are_no_samples():
    given_ = tables(SPEC)
    rows = given_["responses"].to_pylist()
    for row in rows:
        if row["query_id"] == Q[0] and row["model_id"] == "small" and row["sample"] in (1, 3):
            row["status"] = "truncated"
    given_["responses"] = RESPONSES.from_rows(rows)
    curated = preference(given_, strong="big", weak="small", backend="equality")
    assert winners(curated)[Q[0]] == ("tie", None)


def test_swap_is_seeded_stable_and_changes_no_winner():
    first, again, other = run(seed=1), run(seed=1), run(seed=7)
    assert first.added["preferences"].equals(again.added["preferences"])
    assert winners(first) == winners(other)
    sides = [
        record(
            {"query_id": f"q{i}", "prompt": "p"},
            ("big", "small"),
            "ab",
            "strong",
            basis="x",
            seed=0,
        )
        for i in range(400)
    ]
    share = sum(row["model_a"] == "big" for row in sides) / len(sides)
    assert 0.4 < share < 0.6
    for row in sides:
        big_first = row["model_a"] == "big"
        assert row["winner_model_a"] == int(big_first)
        assert row["response_a"] == ("a" if big_first else "b")


def test_estimators_are_never_mixed_in_a_pair():
    # −log p of one model against cluster frequencies of the other compares nothing.
    given_ = tables(SPEC, logprob=-2.0)
    rows = given_["responses"].to_pylist()
    for row in rows:
        if row["model_id"] == "small" and row["query_id"] != Q[0]:
            row["logprobs"] = None
    given_["responses"] = RESPONSES.from_rows(rows)
    curated = preference(given_, strong="big", weak="small", backend="equality")
    by_query = {row["query_id"]: row for row in curated.added["preferences"].to_pylist()}
    assert by_query[Q[0]]["estimator"] == "sequence_probability"
    assert {by_query[q]["estimator"] for q in Q[1:4]} == {"discrete"}
    assert curated.figures["estimators"] == {"discrete": 3, "sequence_probability": 1}
    fixed = preference(
        given_, strong="big", weak="small", backend="equality", estimator="rao_blackwell"
    )
    assert fixed.figures["no_pair"]["no_entropy"] == 3


def test_all_estimators_are_rows():
    table = run(logprob=-2.0, length_normalised=True).added["entropies"]
    rows = [r for r in table.to_pylist() if (r["query_id"], r["model_id"]) == (Q[0], "small")]
    found = {row["estimator"]: row for row in rows}
    assert set(found) == {
        "sequence_probability", "sequence_probability_renormalised", "rao_blackwell", "discrete",
    }  # fmt: skip
    # Two distinct texts, each e^-2, two clusters: the paper's raw form is 2 nat.
    assert found["sequence_probability"]["semantic_entropy"] == pytest.approx(2.0)
    assert found["rao_blackwell"]["semantic_entropy"] == pytest.approx(math.log(2))
    assert found["discrete"]["length_normalised"] is None
    assert found["rao_blackwell"]["length_normalised"] is True
    assert CONTRACTS["entropies"].check(table)


def test_pairs_from_correctness_and_judge_take_the_same_form():
    label_rows = {
        (0, "big"): True, (0, "small"): False, (1, "big"): False, (1, "small"): True,
        (2, "big"): True, (2, "small"): True, (3, "big"): None, (3, "small"): True,
    }  # fmt: skip
    given_ = tables(SPEC, labels=labels(label_rows))
    judged = [
        {
            "query_id": Q[0], "model_id": model, "sample": 0, "scorer": "judge:j",
            "scorer_version": "1", "outcome": outcome, "score": score, "conflict": False,
            "reason": "text",
        }
        for model, outcome, score in (("big", "incorrect", 0.2), ("small", "correct", 0.9))
    ]  # fmt: skip
    given_["verdicts"] = pa.concat_tables([given_["verdicts"], VERDICTS.from_rows(judged)])
    curated = preference(
        given_,
        strong="big",
        weak="small",
        backend="equality",
        basis=["semantic_entropy", "correctness", "judge"],
    )
    found = {}
    for row in curated.added["preferences"].to_pylist():
        side = "tie"
        if not row["winner_tie"]:
            side = row["model_a"] if row["winner_model_a"] else row["model_b"]
        found[row["query_id"], row["basis"]] = side
    assert found[Q[0], "correctness"] == "big"
    assert found[Q[0], "judge:j"] == "small"
    assert found[Q[1], "correctness"] == "small"
    assert found[Q[2], "correctness"] == "tie"
    # An undecided label is not a wrong answer.
    assert (Q[3], "correctness") not in found
    assert curated.figures["pairs_by_basis"]["judge:j"]["weak_wins"] == 1
    assert len(found) + curated.removed.num_rows == 3 * len(Q)


def test_tau_sweep_agrees_with_correctness_where_one_model_is_right():
    pairs = [
        (1.0, 0.5, False, True),  # δ = 0.5, weak wins and is right
        (1.0, 1.3, False, True),  # δ = 0.3, strong wins and is wrong
        (1.0, 1.05, True, False),  # δ = 0.05
        (0.0, 1.0, True, True),  # decided at any τ, but both are right
        (0.0, 0.0, None, True),
    ]
    rows = {row["tau"]: row for row in tau_sweep(pairs, [0.4, 0.0, 0.1])}
    assert list(rows) == [0.0, 0.1, 0.4]
    assert [rows[t]["ties"] for t in rows] == [1, 2, 3]
    assert [rows[t]["comparable"] for t in rows] == [3, 2, 1]
    assert [rows[t]["agreement"] for t in rows] == [pytest.approx(2 / 3), 0.5, 1.0]
    assert tau_sweep([], [0.1])[0]["agreement"] is None


@settings(deadline=None)
@given(se=st.tuples(st.floats(0, 50), st.floats(0, 50)), tau=st.floats(0, 3))
def test_winner_rule(se, tau):
    strong, weak = se
    winner = winner_by_entropy(strong, weak, tau)
    gap = delta(strong, weak)
    if strong == weak:
        assert winner == "tie"
    elif gap is None:
        assert winner == ("strong" if strong < weak else "weak")
    else:
        assert (winner == "tie") == (gap <= tau)
        assert winner in ("tie", "strong" if strong < weak else "weak")


def test_scores_tie_when_equal():
    assert winner_by_score(1, 1) == "tie"
    assert winner_by_score(0, 1) == "weak"


def test_signals_of_the_weak_model():
    top = [["a", math.log(0.5)], ["b", math.log(0.3)]]
    entry = {"token": "a", "logprob": math.log(0.5), "top": top}
    signals = token_signals(tokens(json.dumps([entry, entry])))
    expected = -(0.5 * math.log(0.5) + 0.3 * math.log(0.3) + 0.2 * math.log(0.2))
    assert signals["entropy"] == pytest.approx(expected)
    assert signals["margin"] == pytest.approx(0.2)
    assert signals["max_logit"] == pytest.approx(math.log(0.5))
    assert signals["perplexity"] == pytest.approx(2.0)
    assert signals["unreturned_mass"] == pytest.approx(0.2)
    # Without alternatives nothing but the perplexity is known; none of the others is 0.
    bare = token_signals(tokens(json.dumps([{"token": "a", "logprob": -1.0, "top": []}])))
    assert [name for name, value in bare.items() if value is not None] == ["perplexity"]

    curated = run(logprob=-1.0, assess=lambda items: [0.25] * len(items))
    table = curated.added["signals"]
    assert set(table.column("model_id").to_pylist()) == {"small"}
    assert set(table.column("self_assessment").to_pylist()) == {0.25}
    assert "signals" not in run().added


def test_logprobs_that_are_not_what_the_contract_says():
    assert tokens(None) is None
    assert sequence_logprob(()) is None
    # Some servers write -inf (or null) for what they did not compute.
    assert sequence_logprob(tokens('[{"token": "a", "logprob": -Infinity}]')) is None
    two = tokens('[{"token": "a", "logprob": -1}, {"token": "b", "logprob": -3.0, "top": null}]')
    assert sequence_logprob(two) == -4
    assert sequence_logprob(two, length_normalised=True) == -2
    for bad in ("{", "3", '[{"token": "a"}]', '[{"token": "a", "logprob": null}]', "[4]"):
        with pytest.raises(BadInput, match="logprobs"):
            tokens(bad, where="query q")


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"strong": "bog"}, "no model 'bog'"),
        ({"weak": "big"}, "both 'big'"),
        ({"tau": -0.1}, "tau is -0.1"),
        ({"tau": math.nan}, "tau is nan"),
        ({"estimator": "discreet"}, "no estimator"),
        ({"basis": "vibes"}, "no basis"),
        ({"basis": "correctness"}, "needs the table 'labels'"),
        ({"basis": "judge"}, "0 judges"),
        ({"backend": "equivalence"}, "no entailment backend"),
    ],
)
def test_refuses_with_a_next_step(parameters, says):
    with pytest.raises(RecipeError, match=says) as caught:
        run(**parameters)
    assert caught.value.next_step


def test_rule_is_listed():
    assert RULES.get("preference").apply is preference
