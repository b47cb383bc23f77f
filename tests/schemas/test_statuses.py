"""One list of statuses: what each word means, and that no other list of them is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from routeyard.schemas import CONTRACTS, RESPONSES
from routeyard.schemas.errors import ContractError
from routeyard.schemas.statuses import (
    ANSWERLESS,
    NO_CREDIT,
    STATUSES,
    response_status,
    status_of,
)


def test_the_list_is_the_contracts() -> None:
    expected = ["ok", "truncated", "refused", "empty", "error", "timeout", "unanswered", "ungraded"]
    assert list(STATUSES) == expected
    assert list(CONTRACTS["steps"]["status"].values) == expected
    assert {*ANSWERLESS, *NO_CREDIT, "ok", "ungraded"} == set(STATUSES)


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("OK", "ok"),
        ("FinishReason.MAX_TOKENS", "truncated"),
        ("content-filter", "refused"),
        ("timed out", "timeout"),
        ("TimeoutError", "timeout"),
        ("eos_token", "ok"),  # of an empty answer, which was asked again and paid again
        ("FINISH_REASON_STOP", "ok"),
        ("InvalidRequestError", "error"),
        ("graded", None),  # nobody may guess what a new word means
        (None, None),
    ],
)
def test_words_of_others(word: object, status: str | None) -> None:
    assert status_of(word) == status


def test_every_status_is_its_own_word() -> None:
    assert [status_of(one) for one in STATUSES] == list(STATUSES)


def test_what_ledgers_of_any_version_hold() -> None:
    assert response_status("ok", " \n") == "empty"
    assert response_status("ok", "4") == "ok"
    # A cut answer without a text was cut; that says more than that it is empty.
    assert response_status("truncated", "") == "truncated"
    assert response_status("error", None, "timeout") == "timeout"
    assert response_status("error", None, "http_500") == "error"


def test_a_text_with_a_timeout_or_in_an_empty_reply_breaks_the_contract() -> None:
    row = {"query_id": "q", "model_id": "m", "sample": 0, "text": "4", "attempts": 1}
    for status in ("timeout", "empty"):
        with pytest.raises(ContractError):
            RESPONSES.from_rows([{**row, "status": status}])
    RESPONSES.from_rows([{**row, "status": "ungraded"}])


def test_sql_that_lists_statuses_lists_them_all() -> None:
    """SQL files cannot import the list; an old copy of it would count a timeout as an answer."""
    root = Path(__file__).parents[2]
    listed = "NOT IN ('" + "', '".join(ANSWERLESS) + "')"
    for folder in ("datacards", "pipelines", "papers", "flows"):
        for path in (root / folder).rglob("*.sql"):
            text = path.read_text(encoding="utf-8")
            assert text.count("'unanswered'") == text.count(listed) + text.count(
                "FILTER (status = 'unanswered')"
            ), path
