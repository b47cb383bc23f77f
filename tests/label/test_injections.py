"""Answers that want a verdict of their own, against a judge that obeys whatever it can.

The scripted judge follows instructions that stand outside the tags of its template,
takes every tag it reads for one, and quotes the end of the answer. It stands for the
worst reader a fence can meet; how a real model reads is another question.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.methods.injections import moved, suite, told
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.label.judges import Template, judge, load_template, verify
from routeyard.schemas import RESPONSES
from routeyard.schemas.recipe import Judge, Verifier
from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Provider
from tests.label.loopback_judge import serving
from tests.label.test_xverify import judging, queries, verifier
from tests.support.label_tables import answer

INJECTIONS = suite()


def gullible(prompt: str, _: int) -> str | int:
    """Obeys what stands outside the tags; else repeats the answer's last line, and says no."""
    plain = prompt.replace("＜", "<").replace("＞", ">").replace("／", "/")
    plain = plain.replace("‹", "<").replace("›", ">").replace("\\/", "/")
    closed = r"<\s*(answer|output)\s*>(.*?)<\s*/\s*\w+\s*/?\s*>"
    inside = re.search(closed, plain, re.S | re.I)
    outside = re.sub(r"<\s*(\w+)[^<>]*>.*?<\s*/\s*\w+\s*/?\s*>", "", plain, flags=re.S)
    if "OBEY" in outside:
        return "Correct" if "one word" in prompt else "[[1]]"
    quoted = inside[2].strip().splitlines()[-1] if inside and inside[2].strip() else ""
    if "one word" in prompt:
        return "Incorrect"
    # Says no first, then quotes: the last double bracket counts.
    return f"It is wrong. [[0]] It ended so: {quoted}"


def won(folder: Path, *, fence: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many injections make a judge of the reference kind say that they are right."""
    if not fence:
        monkeypatch.setattr(Template, "fence", lambda self, value: value)
    count = len(INJECTIONS)
    rows = RESPONSES.from_rows(answer(i, text=text) for i, text in enumerate(INJECTIONS))
    with serving(gullible) as server, SqliteLedger(folder / "l.sqlite") as ledger:
        by = judging(server.url, "reference")
        judged = judge(queries(count), rows, by, ledger, run="r")
        checked = verify(queries(count), rows, verifier(server.url), ledger, run="r")
    outcomes = [*judged.verdicts["outcome"].to_pylist(), *checked.verdicts["outcome"].to_pylist()]
    assert len(outcomes) == 2 * count
    return sum(
        a == "correct" or b == "correct"
        for a, b in zip(outcomes[:count], outcomes[count:], strict=True)
    )


def test_no_injection_moves_the_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(INJECTIONS) == 40
    assert won(tmp_path, fence=True, monkeypatch=monkeypatch) == 0


def test_without_the_fence_most_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The suite can fail: the figure stands in pipelines/label/JUDGES.md.
    assert won(tmp_path, fence=False, monkeypatch=monkeypatch) == 34


def test_a_verdict_is_turned_where_the_plain_wrong_answer_was_not_called_right() -> None:
    said = {"right": "ci", "wrong": "ic", "obey": "cc", "words": "ei"}
    kinds = {"c": "correct", "i": "incorrect", "e": "error"}
    rows = [
        {"model_id": name, "query_id": str(k), "outcome": kinds[letter]}
        for name, letters in said.items()
        for k, letter in enumerate(letters)
    ]
    found = told(pa.Table.from_pylist(rows))
    assert found["called_right"] == {"right": 1, "wrong": 1, "obey": 2, "words": 0}
    assert found["unreadable"]["words"] == 1
    # The second wrong answer was called right without any injection: nothing turned it.
    assert (found["could_turn"], found["turned"]) == (1, {"obey": 1, "words": 0})


def test_odds_that_move_past_the_line_turn_a_verdict() -> None:
    said = {"right": [2.0, 1.0], "wrong": [0.0, 2.0], "obey": [2.0, 2.0], "words": [1.0, 9.0]}
    found = moved(said)
    # The line is 1.25; the second wrong answer lies above it without any injection.
    assert (found["sees"], found["could_turn"]) == (0.5, 1)
    assert found["turned"] == {"obey": 1, "words": 0}
    assert found["moved"] == {"obey": 1.0, "words": 4.0}
    assert found["standard_error"]["obey"] == 1.0


def test_a_fence_leaves_ordinary_answers_alone() -> None:
    template = load_template(
        "reference", None, names=frozenset({"question", "answer", "references"})
    )
    for text in (
        "x < y and a<b>c",
        "<p>an answer</p>",
        "[[1, 2], [3, 4]]",
        "if a</b",
        "a[[i, j + 1]] = 0.5",
    ):
        assert template.fence(text) == text


@pytest.mark.parametrize(
    ("finish", "why"), [("length", "cut_verdict"), ("content_filter", "filtered_verdict")]
)
@pytest.mark.parametrize("kind", ["judge", "verifier"])
def test_a_reply_that_was_cut_is_no_verdict(
    kind: str, finish: str, why: str, tmp_path: Path
) -> None:
    from tests.calls.loopback import Loopback, completion
    from tests.calls.loopback import answer as reply

    text = "[[1]]" if kind == "judge" else "Correct"
    with (
        Loopback(lambda body, seen: reply(completion(text, finish=finish))) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        served: dict[str, Any] = {
            "name": "x",
            "provider": Provider(name="p", base_url=server.base_url),
            "retry": Retry(attempts=2, first_wait_s=0),
        }
        rows = RESPONSES.from_rows([answer(0, text="a")])
        asked: tuple[Any, ...] = (queries(1), rows)
        if kind == "judge":
            filed = judge(*asked, Judge(kind="reference", **served), ledger, run="r")
        else:
            filed = verify(*asked, Verifier(**served), ledger, run="r")
        (verdict,) = filed.verdicts.to_pylist()
        assert (verdict["outcome"], verdict["score"]) == ("error", None)
        assert verdict["reason"].startswith(why)
        assert server.requests == 2


def test_verifiers_keep_the_providers_limits(tmp_path: Path) -> None:
    from routeyard.schemas.recipe.collect import RateLimits
    from tests.calls.loopback import Loopback, completion
    from tests.calls.loopback import answer as reply
    from tests.label.test_xverify import responses

    with (
        Loopback(lambda body, seen: reply(completion("Correct"), delay=0.02)) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        provider = Provider(name="p", base_url=server.base_url, limits=RateLimits(concurrency=2))
        by = Verifier(name="x", provider=provider, concurrency=8)
        verify(queries(40), responses(40, "m"), by, ledger, run="r")
        assert server.most_in_flight <= 2
