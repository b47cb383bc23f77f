"""xVerify and judges against a real server on loopback, outages included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.label.judges import (
    PLACES,
    alternatives,
    ask_verifiers_and_judges,
    judge,
    least_certain_first,
    load_template,
    rating_in,
    verdict_in,
    verify,
    winners_in,
)
from routeyard.pipelines.label.policies import decide, open_steps
from routeyard.schemas import QUERIES, RESPONSES, VERDICTS
from routeyard.schemas.recipe import Judge, Label, Policy, Verifier
from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Provider
from tests.label.loopback_judge import serving
from tests.support.label_tables import answer, qid, question, verdict

ONCE = Retry(attempts=1, first_wait_s=0, pause_after=1000)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def queries(n: int, scorer: str = "numeric") -> pa.Table:
    return QUERIES.from_rows(question(i, question=f"what is {i}?", scorer=scorer) for i in range(n))


def responses(n: int, *models: str) -> pa.Table:
    return RESPONSES.from_rows(
        answer(i, model, text=f"{model} says {i}") for i in range(n) for model in models
    )


def verifier(url: str, **changes: Any) -> Verifier:
    return Verifier(
        name="x", provider=Provider(name="p", base_url=url), **{"retry": ONCE} | changes
    )


def judging(url: str, kind: Any, **changes: Any) -> Judge:
    provider = Provider(name="p", base_url=url)
    return Judge(name="j", kind=kind, provider=provider, **{"retry": ONCE} | changes)


REPLIES = yaml.safe_load(Path(__file__).with_name("verifier_replies.yaml").read_text("utf-8"))


@pytest.mark.parametrize(
    ("text", "expected"), [(text, said) for said, texts in REPLIES.items() for text in texts]
)
def test_recorded_replies(text: str, expected: str) -> None:
    assert (verdict_in(text) or "none") == expected


def test_a_reply_of_brackets_is_read_in_linear_time() -> None:
    assert verdict_in("[" * 50_000) is None
    assert verdict_in("<think>" * 50_000 + "judgement " * 5_000) is None


#: The places that xVerify's own prompt has; its words are theirs and not repeated here.
OWN = 'Judge it.\nQuestion: """{question}"""\nOutput sentence: """{output}"""\nRight: {answer}\n'


def test_the_prompt_of_an_xverify_model_is_a_file_with_its_own_places(tmp_path: Path) -> None:
    (path := tmp_path / "prompt.txt").write_text(OWN)
    template = load_template("verification", str(path), names=frozenset(PLACES))
    filled = template.fill(
        {"question": "Q?", "answer": 'A """ {answer}', "references": alternatives(["R"])}
    )
    assert filled == (
        'Judge it.\nQuestion: """Q?"""\nOutput sentence: """A \'\'\' {answer}"""\nRight: R\n'
    )
    (other := tmp_path / "other.txt").write_text(OWN + "!")
    assert load_template("verification", str(other), names=frozenset(PLACES)).version != (
        template.version
    )


def test_references_are_alternatives_and_thoughts_are_left_out(ledger: SqliteLedger) -> None:
    asked = queries(1).to_pylist()
    asked[0]["references"] = ["New York", "NYC"]
    said = responses(1, "m").to_pylist()
    said[0]["text"] = "<think>Boston? NYC!</think>It is NYC."
    with serving(lambda prompt, _: "Judgement: Correct") as server:
        filed = verify(
            QUERIES.from_rows(asked), RESPONSES.from_rows(said), verifier(server.url), ledger,
            run="r",
        )  # fmt: skip
    prompt = server.prompts[0]
    assert "any one of these 2 alternatives:\n1. New York\n2. NYC" in prompt
    assert "Boston" not in prompt
    assert filed.verdicts.column("outcome").to_pylist() == ["correct"]


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({"name": "xVerify-9B-C"}, True),
        ({"name": "small", "endpoint_model": "IAAR-Shanghai/xVerify-0.5B-I"}, True),
        ({"name": "xVerify-9B-C", "template": "verification"}, True),
        ({"name": "xVerify-9B-C", "template": "Theirs {{question}} {{answer}}"}, False),
        ({"name": "small"}, False),
    ],
)
def test_an_xverify_model_without_its_prompt_is_warned_about(
    changes: dict[str, str], warned: bool
) -> None:
    one = Verifier.model_validate({"provider": Provider(name="p", base_url="http://x")} | changes)
    assert bool(one.foreign_prompt) == warned
    assert len(Label(verifiers=[one]).foreign_prompts) == warned


def test_verdicts_parameters_and_keep_alive(ledger: SqliteLedger) -> None:
    with serving(lambda prompt, _: "Correct" if "good" in prompt else "[incorrect]") as server:
        filed = verify(
            queries(30), responses(30, "good", "bad"), verifier(server.url), ledger, run="r"
        )
    outcomes = {(r["model_id"], r["outcome"]) for r in filed.verdicts.to_pylist()}
    assert outcomes == {("good", "correct"), ("bad", "incorrect")}
    assert filed.verdicts.num_rows == len(server.prompts) == 60
    body = server.bodies[0]
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.1, 0.7, 2048)
    # 60 requests over the pool's 8 connections
    assert len(server.connections) <= 8


def test_an_outage_invents_no_verdict_and_the_next_run_resumes(ledger: SqliteLedger) -> None:
    down = True

    def says(prompt: str, before: int) -> str | int:
        return (
            503 if down and int(prompt.split("what is ")[1].split("?")[0]) % 3 == 0 else "Correct"
        )

    with serving(says) as server:
        first = verify(queries(30), responses(30, "m"), verifier(server.url), ledger, run="1")
        errors = [r for r in first.verdicts.to_pylist() if r["outcome"] == "error"]
        assert len(errors) == server.failures == first.figures["failed"] == 10
        assert {r["score"] for r in errors} == {None}
        down = False
        again = verify(queries(30), responses(30, "m"), verifier(server.url), ledger, run="2")
        # only what failed was asked again
        assert len(server.prompts) == 40
        assert again.figures["asked"] == 10
        assert set(again.verdicts["outcome"].to_pylist()) == {"correct"}
        third = verify(queries(30), responses(30, "m"), verifier(server.url), ledger, run="3")
        assert (third.figures["asked"], len(server.prompts)) == (0, 40)
        assert third.verdicts.equals(again.verdicts)


def test_a_server_that_is_gone_stops_the_run_instead_of_asking_on(ledger: SqliteLedger) -> None:
    with serving(lambda prompt, _: "Correct") as server:
        url = server.url
    gone = verifier(url, retry=Retry(attempts=1, first_wait_s=0, pause_after=5), concurrency=1)
    filed = verify(queries(50), responses(50, "m"), gone, ledger, run="r")
    assert filed.figures["stopped"].startswith("5 pairs in a row failed, last with connection")
    assert set(filed.verdicts["outcome"].to_pylist()) == {"error"}
    # what was never asked has no verdict, not a wrong one
    assert filed.verdicts.num_rows == 5


def test_unreadable_answers_are_asked_again_then_stand_as_errors(ledger: SqliteLedger) -> None:
    patient = {"retry": Retry(attempts=3, first_wait_s=0)}

    def says(prompt: str, before: int) -> str | int:
        return "maybe" if "what is 0?" in prompt or before < 2 else "Incorrect"

    with serving(says) as server:
        filed = verify(
            queries(2), responses(2, "m"), verifier(server.url, **patient), ledger, run="r"
        )
    assert filed.verdicts["outcome"].to_pylist() == ["error", "incorrect"]
    assert "maybe" in filed.verdicts["reason"][0].as_py()
    assert len(server.prompts) == 6


def test_equal_answers_are_asked_once_and_no_model_is_named(
    ledger: SqliteLedger,
) -> None:
    texts = responses(1, "first-model", "second-model").to_pylist()
    same = RESPONSES.from_rows({**row, "text": "zero"} for row in texts)
    prices = {"price_in": 1.0, "price_out": 2.0}
    with serving(lambda prompt, _: "Correct") as server:
        filed = verify(queries(1), same, verifier(server.url, **prices), ledger, run="r")
    assert filed.verdicts["outcome"].to_pylist() == ["correct", "correct"]
    assert len(server.prompts) == 1
    assert "-model" not in server.prompts[0]
    # what the one call cost is counted once: 100 prompt and 10 completion tokens
    assert sorted(filed.verdicts["cost_usd"].to_pylist()) == [0.0, pytest.approx(120e-6)]


def test_a_budget_is_not_overrun(ledger: SqliteLedger) -> None:
    prices = {"price_in": 1.0, "price_out": 1.0, "budget_usd": 0.01, "max_tokens": 100}
    with serving(lambda prompt, _: "Correct") as server:
        filed = verify(
            queries(200), responses(200, "m"), verifier(server.url, **prices), ledger, run="r"
        )
    assert filed.figures["stopped"].startswith("the budget is reached: 0.01 USD")
    assert "raise 'budget_usd of xverify:x'" in filed.figures["stopped"]
    assert 0 < filed.verdicts.num_rows == len(server.prompts) < 200
    assert sum(filed.verdicts["cost_usd"].to_pylist()) <= 0.01
    free = verifier("http://127.0.0.1:1/v1", budget_usd=1.0)
    with pytest.raises(BadInput, match="no price"):
        verify(queries(1), responses(1, "m"), free, ledger, run="r")


def test_templates(tmp_path: Path) -> None:
    names = frozenset({"question", "answer"})
    file = tmp_path / "mine.txt"
    file.write_text("Q {{question}} A {{ answer }}")
    template = load_template("verification", str(file), names=names)
    # trap: an answer that holds a placeholder must not be filled in turn
    assert template.fill({"question": "?", "answer": "{{question}}"}) == "Q ? A {{question}}"
    assert template.version != load_template("verification", None, names=names).version
    for broken in ("no placeholder", "{{answer}} {{solution}}"):
        file.write_text(broken)
        with pytest.raises(BadInput):
            load_template("verification", str(file), names=names)
    with pytest.raises(BadInput):
        load_template("verification", str(tmp_path / "none.txt"), names=names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Good. [[7]]", 7), ("[[10]]", 10), ("first [[2]], then [[ 9 ]]", 9)]
    + [("[[7.5]]", 7.5), ("Short, then Rating: [5]", 5), ("Rating: [[5]]", 5)]
    + [(text, None) for text in ("7", "[[0]]", "[[11]]", "[[7/10]]", "[[seven]]", "[[" * 9999)],
)
def test_ratings(text: str, expected: float | None) -> None:
    assert rating_in(text) == expected


def test_ratings_from_zero_and_the_numbered_form_of_winners() -> None:
    # 0 to 10, as RouterXBench grades open-ended answers: its lowest grade is a grade.
    assert rating_in("[[0]]", lowest=0) == 0
    assert rating_in("[[10.5]]", lowest=0) is None
    assert winners_in("LLM 1 and LLM 3", 3) == {0, 2}
    assert winners_in("LLM 4", 3) is None
    assert winners_in("none of them", 3) is None


def test_rating_and_relative_judges(ledger: SqliteLedger) -> None:
    points = {"small": "[[4]]", "equal": "[[8]]", "strong": "[[8]]"}

    def says(prompt: str, _: int) -> str | int:
        return next(points[m] for m in points if f"{m} says" in prompt)

    with serving(says) as server:
        rated = judge(
            queries(1), responses(1, *points), judging(server.url, "rating"), ledger, run="r"
        )
        relative = judging(server.url, "relative", reference_model="strong")
        compared = judge(queries(1), responses(1, *points), relative, ledger, run="r")
        # the ratings were there already
        assert len(server.prompts) == 3
    by_model = {r["model_id"]: r for r in rated.verdicts.to_pylist()}
    assert by_model["small"]["score"] == pytest.approx(3 / 9)
    assert [by_model[m]["outcome"] for m in points] == ["incorrect", "correct", "correct"]
    outcomes = {r["model_id"]: r["outcome"] for r in compared.verdicts.to_pylist()}
    assert outcomes == {"small": "incorrect", "equal": "correct", "strong": "correct"}


def test_a_relative_judge_without_the_reference_has_no_verdict(ledger: SqliteLedger) -> None:
    with serving(lambda prompt, _: 500 if "strong says" in prompt else "[[9]]") as server:
        by = judging(server.url, "relative", reference_model="strong")
        filed = judge(queries(1), responses(1, "small", "strong"), by, ledger, run="r")
    assert filed.verdicts["outcome"].to_pylist() == ["error", "error"]


def _listed(prompt: str) -> list[str]:
    parts = prompt.split('<answer letter="')[1:]
    return [part.split("\n")[1].split(" says")[0] for part in parts]


def test_choice_swaps_positions_and_keeps_both_orders(ledger: SqliteLedger) -> None:
    def fair(prompt: str, _: int) -> str | int:
        right = [letter for letter, who in zip("ABC", _listed(prompt), strict=True) if who != "bad"]
        return f"Because. [[{', '.join(right)}]]"

    with serving(fair) as server:
        by = judging(server.url, "choice")
        filed = judge(queries(4), responses(4, "good", "bad", "fine"), by, ledger, run="r")
        orders = [_listed(prompt) for prompt in server.prompts]
    rows = filed.verdicts.to_pylist()
    outcomes = {(r["model_id"], r["outcome"]) for r in rows}
    assert outcomes == {("good", "correct"), ("fine", "correct"), ("bad", "incorrect")}
    assert len(orders) == 8
    assert all(order[::-1] in orders for order in orders)
    assert "in order:" in rows[0]["reason"]
    assert "reversed:" in rows[0]["reason"]


def test_a_judge_that_always_takes_the_first_decides_nothing(ledger: SqliteLedger) -> None:
    with serving(lambda prompt, _: "[[A]]") as server:
        by = judging(server.url, "choice")
        filed = judge(queries(3), responses(3, "one", "two"), by, ledger, run="r")
    assert set(filed.verdicts["outcome"].to_pylist()) == {"abstain"}
    assert all(filed.verdicts["conflict"].to_pylist())


def test_winners() -> None:
    assert winners_in("so [[A, c]]", 3) == {0, 2}
    assert winners_in("[[none]]", 3) == frozenset()
    # trap: a letter past the list is not "nobody else won"
    assert winners_in("[[D]]", 3) is None
    assert winners_in("A and C", 3) is None


def test_the_court_asks_only_what_the_policy_wants(ledger: SqliteLedger) -> None:
    asked, texts = queries(3), responses(3, "m")
    filed = VERDICTS.from_rows(
        verdict(i, "numeric", outcome)
        for i, outcome in enumerate(["correct", "incorrect", "abstain"])
    )

    def says(prompt: str, _: int) -> str | int:
        return "[[1]]" if "double brackets" in prompt else "Incorrect"

    with serving(says) as server:
        policy = Label(
            default=Policy(then=["xverify:x", "judge:j"], escalate_on="not_correct"),
            verifiers=[verifier(server.url)],
            judges=[judging(server.url, "reference")],
        )
        assert list(open_steps(asked, texts, filed, policy=policy)) == ["xverify:x"]
        heard = ask_verifiers_and_judges(asked, texts, filed, policy=policy, ledger=ledger, run="r")
        assert {name: f["asked"] for name, f in heard.figures.items()} == {
            "xverify:x": 2,
            "judge:j": 2,
        }
        labels = decide(asked, texts, heard.verdicts, policy=policy)
    assert labels["decided_by"].to_pylist() == ["numeric", "judge:j", "judge:j"]
    unknown = Label(default=Policy(then=["judge:k"]), judges=policy.judges)
    with pytest.raises(BadInput, match="judge:k"):
        ask_verifiers_and_judges(asked, texts, filed, policy=unknown, ledger=ledger, run="r")


def test_within_a_budget_the_least_certain_are_asked_first(ledger: SqliteLedger) -> None:
    # Rule verdicts: an abstention says least, then `incorrect`, then `correct`.
    said = {qid(i): one for i, one in enumerate(("correct", "incorrect", "abstain"))}
    rows = [verdict(i, "contains", one) for i, one in enumerate(said.values())]
    asked = [row | {"references": ["Paris"]} for row in queries(3, "contains").to_pylist()]
    policy = Label(
        default=Policy(rule="majority", then=["xverify:x"]),
        verifiers=[
            verifier("http://127.0.0.1:1/v1", budget_usd=1, price_in=1, price_out=1, concurrency=1)
        ],
    )
    answered, filed = responses(3, "m"), VERDICTS.from_rows(rows)
    keys = open_steps(QUERIES.from_rows(asked), answered, filed, policy=policy)["xverify:x"]
    ordered = least_certain_first(QUERIES.from_rows(asked), answered, filed, keys)
    assert [said[query] for query, _, _ in ordered] == ["abstain", "incorrect", "correct"]
    with serving(lambda prompt, _: "Correct") as server:
        provider = Provider(name="p", base_url=server.url)
        policy.verifiers[0] = policy.verifiers[0].but(provider=provider)
        ask_verifiers_and_judges(
            QUERIES.from_rows(asked), answered, filed, policy=policy, ledger=ledger, run="r"
        )
    assert ["what is 2?" in server.prompts[0], "what is 0?" in server.prompts[2]] == [True, True]
