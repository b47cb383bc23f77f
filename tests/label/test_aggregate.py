"""Aggregation: small verdict tables in, labels out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from routeyard.pipelines.label.policies import decide, open_steps
from routeyard.schemas import QUERIES, RESPONSES, VERDICTS
from routeyard.schemas.recipe import Label, Policy
from routeyard.schemas.statuses import ANSWERLESS
from tests.support.label_tables import answer, question, verdict


def queries(*scorers: str, task: str = "t") -> pa.Table:
    return QUERIES.from_rows(
        question(i, question="?", references=["1"], scorer=scorer, task=task)
        for i, scorer in enumerate(scorers)
    )


def without_q(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "q"}


def responses(*rows: dict[str, Any]) -> pa.Table:
    return RESPONSES.from_rows(
        answer(row.get("q", 0)) | {"text": "x"} | without_q(row) for row in rows
    )


def verdicts(*rows: tuple[Any, ...]) -> pa.Table:
    """(scorer, outcome[, more columns]) rows."""
    return VERDICTS.from_rows(
        verdict(more.get("q", 0), scorer, outcome, **without_q(more))
        for scorer, outcome, more in ((*row, {})[:3] for row in rows)
    )


def label(policy: Policy, *rows: tuple[Any, ...], scorer: str = "numeric") -> dict[str, Any]:
    table = decide(queries(scorer), responses({}), verdicts(*rows), policy=Label(default=policy))
    (row,) = table.to_pylist()
    return row


THEN = ["xverify:v", "judge:j"]
VERIFIED = Policy(then=THEN)
MAJORITY = Policy(rule="majority", then=THEN)
UNANIMOUS = Policy(rule="unanimous", then=THEN)
WRONG = Policy(unreadable="incorrect")
POLICIES = {
    "rule": Policy(),
    "wrong": WRONG,
    "verified": VERIFIED,
    "always": Policy(then=THEN, escalate_on="not_correct"),
    "majority": MAJORITY,
    "weighed": Policy(rule="dawid_skene", then=THEN),
    "unanimous": UNANIMOUS,
}
#: Who said what, each with a sign: correct, incorrect, cannot tell, an error.
SIGNS = {"+": "correct", "-": "incorrect", "?": "abstain", "!": "error"}
WHO = {"n": "numeric", "v": "xverify:v", "j": "judge:j", "ada": "human:ada", "bob": "human:bob"}
#: policy | who said what | correct | decided by | contested
DECIDED = """
rule      | n+           | True  | numeric     | no
rule      | n-           | False | numeric     | no
# "cannot tell" is no wrong answer, unless the recipe says so
rule      | n?           | None  | unreadable  | no
wrong     | n?           | False | unreadable  | no
# trap: an error or a verdict that was never filed is not "wrong"
rule      | n!           | None  | None        | no
rule      |              | None  | None        | no
# the verifier is asked only where the rule abstains
verified  | n- v+        | False | numeric     | contested
verified  | n? v+        | True  | xverify:v   | no
# trap: a verifier that has not been asked yet must not read as "unreadable"
verified  | n?           | None  | None        | no
verified  | n? v!        | None  | None        | no
# trap: a rule's error may not be papered over by a later step
verified  | n! v+        | None  | None        | no
always    | n+           | True  | numeric     | no
always    | n- v+        | True  | xverify:v   | contested
always    | n- v- j+     | True  | judge:j     | contested
# the last step that said anything decides, not the last step
always    | n- v? j?     | False | numeric     | no
# trap: the judge outage after two misses leaves the label open
always    | n- v- j!     | None  | None        | no
majority  | n- v+ j+     | True  | majority    | contested
majority  | n? v+ j-     | None  | None        | contested
majority  | n+ v+ j!     | None  | None        | no
unanimous | n+ v? j+     | True  | unanimous   | no
unanimous | n+ v- j+     | None  | None        | contested
unanimous | n? v? j?     | None  | unreadable  | no
weighed   | n+ v+ j+     | True  | dawid_skene | no
# trap: an outage is no vote
weighed   | n+ v+ j!     | None  | None        | no
weighed   | n? v? j?     | None  | unreadable  | no
# a person decides over everyone, also over an error
rule      | n+ ada-      | False | human:ada   | contested
rule      | n! ada+      | True  | human:ada   | no
rule      | n+ ada- bob+ | None  | None        | contested
rule      | n+ ada?      | True  | numeric     | no
"""


@pytest.mark.parametrize("line", [one for one in DECIDED.split("\n") if one and one[0] != "#"])
def test_policy(line: str) -> None:
    policy, said, correct, decided_by, contested = (cell.strip() for cell in line.split("|"))
    row = label(POLICIES[policy], *((WHO[one[:-1]], SIGNS[one[-1]]) for one in said.split()))
    assert (str(row["correct"]), str(row["decided_by"])) == (correct, decided_by)
    assert row["contested"] == (contested == "contested")
    assert (row["score"] is None) == (correct == "None")


def test_an_answer_given_twice_differently_is_contested_though_one_rule_decided() -> None:
    row = label(Policy(), ("numeric", "correct", {"conflict": True}))
    assert (row["correct"], row["decided_by"], row["contested"]) == (True, "numeric", True)


@pytest.mark.parametrize(("scorer", "asks"), [("em", True), ("f1", True), ("numeric", False)])
def test_open_questions_ask_the_judge_when_the_rule_says_incorrect(scorer: str, asks: bool) -> None:
    policy = Policy(then=["judge:j"])
    row = label(policy, (scorer, "incorrect"), ("judge:j", "correct"), scorer=scorer)
    assert row["correct"] is asks


def test_a_family_stands_for_its_scorers() -> None:
    policy = Policy(rule="majority", then=["judge"])
    rows = [("numeric", "incorrect"), ("judge:a", "correct"), ("judge:b", "correct")]
    assert label(policy, *rows)["correct"] is True


def test_the_newest_version_counts() -> None:
    # trap: as text, "1.10" sorts before "1.9"
    old = ("numeric", "incorrect", {"scorer_version": "1.9"})
    new = ("numeric", "correct", {"scorer_version": "1.10"})
    assert label(Policy(), new, old)["correct"] is True
    assert label(Policy(), new, old)["contested"] is False


def test_threshold_of_a_task_reads_the_graded_score() -> None:
    graded = ("f1", "incorrect", {"score": 0.4})
    loose = label(Policy(threshold=0.4), graded, scorer="f1")
    strict = label(Policy(threshold=0.41), graded, scorer="f1")
    assert (loose["correct"], loose["score"]) == (True, 0.4)
    assert (strict["correct"], strict["score"]) == (False, 0.4)


@pytest.mark.parametrize(
    ("policy", "samples", "score", "correct", "n", "by"),
    [
        # what nobody could read enters neither numerator nor denominator: n_samples says so
        (Policy(), "n+ | n+ | n? | n! | failed", 1.0, True, 2, "numeric"),
        # the scorer's error and the failed call do neither, where the unreadable is wrong
        (WRONG, "n+ | n+ | n? | n! | failed", 2 / 3, True, 3, "numeric+unreadable"),
        (WRONG.model_copy(update={"threshold": 0.7}), "n+ | n+ | n?", 2 / 3, False, 3,
         "numeric+unreadable"),
        # half is no right answer, and all deciders are named in order
        (Policy(), "n+ | n+ ada-", 0.5, False, 2, "human:ada+numeric"),
        # the highest threshold of those who decided holds for the mean
        (Policy(threshold=0.75, unreadable="incorrect"), "n? | n+ | n+ | n+", 0.75, True, 4,
         "numeric+unreadable"),
        (Policy(threshold=0.76, unreadable="incorrect"), "n? | n+ | n+ | n+", 0.75, False, 4,
         "numeric+unreadable"),
        (Policy(threshold=1.0), "n+ | n+", 1.0, True, 2, "numeric"),
        # trap: people set no threshold, and none is not a threshold of nought
        (Policy(), "ada- | ada-", 0.0, False, 2, "human:ada"),
        (Policy(), "ada+ | ada-", 0.5, False, 2, "human:ada"),
    ],
)  # fmt: skip
def test_several_samples_give_the_mean(
    policy: Policy, samples: str, score: float, correct: bool, n: int, by: str
) -> None:
    rows, said = [], []
    for sample, told in enumerate(samples.split(" | ")):
        failed = {"status": "error", "text": None} if told == "failed" else {}
        rows.append({"sample": sample} | failed)
        heard = told.split() if not failed else []
        said += [(WHO[one[:-1]], SIGNS[one[-1]], {"sample": sample}) for one in heard]
    for policies in (Label(default=policy), Label(tasks={"t": policy})):
        made = decide(queries("numeric"), responses(*rows), verdicts(*said), policy=policies)
        (row,) = made.to_pylist()
        assert (row["score"], row["correct"], row["n_samples"]) == (score, correct, n)
        assert row["decided_by"] == by
        assert row["contested"] == ("ada" in samples and "n" in samples)


@pytest.mark.parametrize(
    ("outcomes", "correct"),
    [
        # Trap: a grade of 0.667 beside each reached 0.5, and two wrong samples made a right label.
        (("incorrect", "incorrect"), False),
        (("correct", "incorrect", "incorrect"), False),
        (("correct", "incorrect"), False),  # half is not enough, as for scores of 0 and 1
        (("correct", "correct", "incorrect"), True),
    ],
)
def test_without_a_threshold_the_outcomes_of_samples_count_and_not_their_grades(
    outcomes: tuple[str, ...], correct: bool
) -> None:
    grade = {"correct": 1.0, "incorrect": 2 / 3}
    texts = responses(*({"sample": i} for i in range(len(outcomes))))
    filed = verdicts(
        *(
            ("superglue_record", said, {"sample": i, "score": grade[said]})
            for i, said in enumerate(outcomes)
        )
    )
    (row,) = decide(queries("superglue_record"), texts, filed).to_pylist()
    assert (row["correct"], row["n_samples"]) == (correct, len(outcomes))
    assert row["score"] == pytest.approx(sum(grade[said] for said in outcomes) / len(outcomes))
    # A threshold that the recipe states holds for the mean of the grades.
    stated = Label(default=Policy(threshold=0.6))
    assert decide(queries("superglue_record"), texts, filed, policy=stated)["correct"][0].as_py()


def test_a_failed_call_has_a_row_of_nulls_and_an_absent_pair_none() -> None:
    table = decide(
        queries("numeric", "numeric"),
        responses({"q": 0, "status": "error", "text": None, "error": "down"}),
        # trap: a verdict on a call that failed (an older attempt) must not count
        verdicts(("numeric", "incorrect")),
    )
    (row,) = table.to_pylist()
    assert row["query_id"] == f"q{0:020x}"
    assert (row["score"], row["correct"], row["decided_by"], row["n_samples"]) == (None,) * 3 + (0,)


@pytest.mark.parametrize(
    ("policy", "correct", "by"),
    [
        (Policy(), True, "given"),
        (Policy(trust="given"), True, "given"),
        (Policy(trust="rules"), False, "numeric"),
        # trap: a judge who was asked about a rule's misses decides nothing over grades
        (VERIFIED, True, "given"),
        # a policy that lists `given` says itself when grades count
        (Policy(then=["given"], escalate_on="not_correct"), True, "given"),
        (Policy(then=["given"]), False, "numeric"),
    ],
)
def test_grades_of_a_recording_are_the_labels_until_the_recipe_says_otherwise(
    policy: Policy, correct: bool, by: str
) -> None:
    both = label(policy, ("given", "correct"), ("numeric", "incorrect"))
    assert (both["correct"], both["decided_by"], both["contested"]) == (correct, by, True)
    alone = label(policy, ("given", "correct"))
    assert (alone["correct"], alone["decided_by"]) == (True, "given")


def test_an_answer_that_its_source_left_ungraded_is_undecided_among_graded_ones() -> None:
    asked, texts = (
        queries("numeric", "numeric"),
        responses({"q": 0}, {"q": 1, "status": "ungraded"}),
    )
    filed = verdicts(("given", "correct"), ("numeric", "correct"), ("numeric", "correct", {"q": 1}))
    assert decide(asked, texts, filed)["correct"].to_pylist() == [True, None]
    rules = Label(default=Policy(trust="rules"))
    assert decide(asked, texts, filed, policy=rules)["correct"].to_pylist() == [True, True]


@pytest.mark.parametrize(
    ("status", "label_by"),
    [
        ("ok", (None, "unreadable")),
        ("truncated", (False, "truncated")),
        ("refused", (False, "refused")),
        ("empty", (False, "empty")),
        ("ungraded", (None, "unreadable")),
        ("error", (None, None)),
        ("timeout", (None, None)),
        ("unanswered", (None, None)),
    ],
)
def test_what_nobody_could_read_is_labelled_by_its_status(
    status: str, label_by: tuple[bool | None, str | None]
) -> None:
    text = {"empty": ""}.get(status, None if status in ANSWERLESS else "x")
    row = {"status": status, "text": text}
    (made,) = decide(
        queries("numeric"), responses(row), verdicts(("numeric", "abstain"))
    ).to_pylist()
    assert (made["correct"], made["decided_by"]) == label_by
    read = decide(queries("numeric"), responses(row), verdicts(("numeric", "correct")))
    # A right answer before the cut is a right answer; where nothing came there is none.
    assert read["correct"].to_pylist() == [None if status in ANSWERLESS else True]


def test_no_rule_leaves_it_to_the_judge() -> None:
    row = label(Policy(then=["judge:j"]), ("judge:j", "correct", {"score": 0.75}), scorer="none")
    assert (row["score"], row["decided_by"]) == (0.75, "judge:j")


def test_no_responses_no_labels() -> None:
    assert decide(queries("numeric"), RESPONSES.empty(), VERDICTS.empty()).num_rows == 0


def test_order_of_the_input_does_not_matter() -> None:
    asked = queries(*["numeric"] * 5)
    texts = responses(*({"q": i, "model_id": m} for i in range(5) for m in "ba"))
    filed = verdicts(
        *(
            ("numeric", "correct" if i % 2 else "incorrect", {"q": i, "model_id": m})
            for i in range(5)
            for m in "ab"
        )
    )
    forward = decide(asked, texts, filed)
    backward = decide(asked, texts.take(list(range(9, -1, -1))), filed.take(list(range(9, -1, -1))))
    assert forward.equals(backward)
    assert forward["query_id"].to_pylist() == sorted(forward["query_id"].to_pylist())


def test_what_a_person_decided_is_not_asked_again() -> None:
    rows = [("numeric", "abstain"), ("human:ada", "correct")]
    policy = Label(default=VERIFIED)
    asked, texts = queries("numeric"), responses({})
    assert open_steps(asked, texts, verdicts(*rows), policy=policy) == {}
    left = open_steps(asked, texts, verdicts(rows[0]), policy=policy)
    assert left == {"xverify:v": [(f"q{0:020x}", "m", 0)]}


def test_a_vote_wants_all_who_have_not_spoken() -> None:
    """trap: a voter who said anything is not paid again, one who erred is"""
    rows = [("numeric", "correct"), ("xverify:v", "error")]
    left = open_steps(
        queries("numeric"), responses({}), verdicts(*rows), policy=Label(default=MAJORITY)
    )
    assert {*left} == {"judge:j", "xverify:v"}
    said = [("numeric", "correct"), ("xverify:v", "abstain"), ("judge:j", "incorrect")]
    assert (
        open_steps(
            queries("numeric"), responses({}), verdicts(*said), policy=Label(default=MAJORITY)
        )
        == {}
    )


def test_a_person_who_abstains_decides_nothing() -> None:
    rows = [("numeric", "abstain"), ("human:ada", "abstain")]
    left = open_steps(
        queries("numeric"), responses({}), verdicts(*rows), policy=Label(default=VERIFIED)
    )
    assert {*left} == {"xverify:v"}


def test_what_is_wanted_is_listed_in_order_over_tasks_and_rules() -> None:
    asked = pa.concat_tables([queries("numeric", "em", task="a"), queries("mcq", task="b")])
    ids = [f"q{i:020x}" for i in range(3)]
    asked = asked.set_column(0, "query_id", pa.array(ids)).cast(QUERIES.schema)
    filed = verdicts(
        ("numeric", "abstain"),
        ("em", "incorrect", {"q": 1}),
        ("mcq", "abstain", {"q": 2}),
    )
    policy = Label(default=Policy(then=["judge:j"]), tasks={"b": Policy()})
    left = open_steps(asked, responses({"q": 2}, {"q": 1}, {"q": 0}), filed, policy=policy)
    # task b asks no judge; `em` asks one also where it says incorrect
    assert left == {"judge:j": [(ids[0], "m", 0), (ids[1], "m", 0)]}
    table = decide(asked, responses({"q": 2}, {"q": 1}, {"q": 0}), filed, policy=policy)
    assert table["decided_by"].to_pylist() == [None, None, "unreadable"]


def test_the_score_of_a_vote_is_the_mean_of_those_who_won() -> None:
    rows = [
        ("numeric", "correct", {"score": 1.0}),
        ("xverify:v", "incorrect", {"score": 0.25}),
        ("judge:j", "correct", {"score": 0.75}),
    ]
    assert label(MAJORITY, *rows)["score"] == 0.875
    rows[0] = ("numeric", "incorrect", {"score": 0.0})
    assert label(MAJORITY, *rows)["score"] == 0.125
    # one voter is no majority: it stands for itself
    alone = label(Policy(rule="majority"), ("numeric", "correct"))
    assert (alone["decided_by"], alone["score"]) == ("numeric", 1.0)


def test_two_people_of_three_decide_and_the_first_of_them_is_named() -> None:
    rows = [("human:ada", "incorrect"), ("human:bob", "correct"), ("human:cem", "correct")]
    row = label(Policy(), ("numeric", "incorrect"), *rows)
    assert (row["correct"], row["score"], row["decided_by"]) == (True, 1.0, "human:bob")
    assert row["contested"]


def test_votes_of_one_response_do_not_count_for_another() -> None:
    said = {0: ("correct", "incorrect", "correct"), 1: ("incorrect", "incorrect", "correct")}
    said[2] = ("abstain", "correct", "abstain")
    voters = ("numeric", "xverify:v", "judge:j")
    filed = verdicts(
        *((voters[i], what, {"q": q}) for q, given in said.items() for i, what in enumerate(given))
    )
    asked, texts = queries(*["numeric"] * 3), responses(*({"q": q} for q in said))
    for policy, correct in ((MAJORITY, [True, False, True]), (UNANIMOUS, [None, None, True])):
        table = decide(asked, texts, filed, policy=Label(default=policy))
        assert table["correct"].to_pylist() == correct
        assert table["contested"].to_pylist() == [True, True, False]


def test_the_verifiers_and_judges_of_a_recipe_are_wanted_before_any_has_spoken() -> None:
    served = {"provider": {"name": "p", "base_url": "http://127.0.0.1:1/v1"}}
    policy = Label.model_validate(
        {
            "verifiers": [served | {"name": "v"}],
            "judges": [served | {"name": "j"}],
            "default": {"rule": "majority", "then": ["xverify", "judge"]},
        }
    )
    left = open_steps(queries("numeric"), responses({}), verdicts(), policy=policy)
    assert {*left} == {"numeric", "xverify:v", "judge:j"}


def test_the_threshold_of_a_task_holds_for_the_mean_of_votes() -> None:
    texts = responses({"sample": 0}, {"sample": 1})
    filed = verdicts(
        *((name, "correct", {"sample": 0}) for name in ("numeric", "xverify:v", "judge:j")),
        *(
            (name, "incorrect", {"sample": 1, "score": 0.2})
            for name in ("numeric", "xverify:v", "judge:j")
        ),
    )
    for threshold, correct in ((0.6, True), (0.7, False)):
        policy = Label(default=MAJORITY.model_copy(update={"threshold": threshold}))
        (row,) = decide(queries("numeric"), texts, filed, policy=policy).to_pylist()
        assert (row["score"], row["correct"]) == (0.6, correct)


def test_a_table_may_have_any_number_of_deciders() -> None:
    n = 70
    told = verdicts(*((f"human:person{i}", "correct", {"q": i}) for i in range(n)))
    labels = decide(queries(*["numeric"] * n), responses(*({"q": i} for i in range(n))), told)
    assert labels["decided_by"].to_pylist() == [f"human:person{i}" for i in range(n)]
