"""How an answer ended, in anybody's words: what nobody answered is missing, never wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import routeyard
from tests.calls.loopback import Do, Loopback, answer, completion

#: Families of meaning in many spellings: rate, connection, server, quota, codes, timeout.
NOT_ANSWERED = (
    """RateLimitError|APIConnectionError|HTTP 429|rate_limit_exceeded|ServiceUnavailable
overloaded_error|openai.RateLimitError|503|http_500|502 Bad Gateway|Error code: 429|5xx
InternalServerError|ECONNRESET|connection refused|ThrottlingException|RESOURCE_EXHAUSTED
engine-overloaded|insufficient_quota|AuthenticationError|user cancelled|aborted|NetworkError
ContextWindowExceededError|litellm.exceptions.ServiceUnavailableError|429 Too Many Requests
APITimeoutError|DeadlineExceeded|ReadTimeout|gateway timeout|failed
HTTP Error 503: Service Unavailable
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
#: The model's own: the filter stopped it, or the answer is cut or empty.
NO_CREDIT = [
    "ContentPolicyViolationError",
    "content-filter",
    "FinishReason.MAX_TOKENS",
    "MaxTokens",
]


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def answers(words: list[str], right: int = 20, text: str = "") -> list[dict[str, Any]]:
    """Two models, of which `gpt-4o` ends a question with each word."""
    rows = []
    for k in range(right + len(words)):
        word = words[k - right] if k >= right else ""
        asked = {"question_id": f"q{k}", "question": f"What is {k} + {k}?", "reference": str(2 * k)}
        for model in ("claude-3", "gpt-4o"):
            bad = bool(word) and model == "gpt-4o"
            said = {"response": text if bad else str(2 * k), "status": word if bad else "success"}
            rows.append({**asked, "model": model, **said})
    return rows


def recipe_of(folder: Path, rows: list[dict[str, Any]], **entry: Any) -> Path:
    """A recipe of recorded answers that are graded by their references."""
    asked = {one["question_id"]: one for one in rows}
    (folder / "q.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked.values()))
    (folder / "r.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    fields = {"query": "question_id", "model": "model", "text": "response", "status": "status"}
    said: dict[str, Any] = {"id": "question_id", "question": "question", "references": "reference"}
    recipe = {
        "name": "r", "version": "1.0.0",
        "sources": [{"name": "s", "path": "q.jsonl", "scorer": "numeric", "fields": said}],
        "pool": {"models": [{"model_id": "claude-3"}, {"model_id": "gpt-4o"}]},
        "collect": {"provider": "recorded",
                    "recorded": [{"path": "r.jsonl", "fields": fields} | entry]},
    }  # fmt: skip
    (folder / "r.yaml").write_text(json.dumps(recipe))
    return folder / "r.yaml"


def built(recipe: Path, yard: Path) -> dict[str, list[float]]:
    """Model → the labels that a build gives its answers; missing ones are left out."""
    routeyard.build(recipe, yard, until="label")
    (path,) = yard.glob("stages/label/*/labels.parquet")
    found: dict[str, list[float]] = {}
    for row in parquet.read_table(path).to_pylist():
        if row["score"] is not None:
            found.setdefault(row["model_id"], []).append(row["score"])
    return found


def started(call: Any, path: Path, folder: Path) -> dict[str, list[float]]:
    """What a build makes of the recipe that `init` writes."""
    recipe = folder / f"{path.stem}.yaml"
    assert call("init", recipe, "--from", path).returncode == 0
    return built(recipe, folder / f"yard-{path.stem}")


def test_what_a_service_did_not_answer_is_missing_in_any_spelling(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, answers([*NOT_ANSWERED, *NO_CREDIT]))
    found = built(recipe, tmp_path / "yard")
    # An empty text beside such a word was read as an empty wrong answer.
    assert sorted(found["gpt-4o"]) == [0.0] * len(NO_CREDIT) + [1.0] * 20


def test_an_unknown_word_beside_an_empty_answer_is_asked_about(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, answers(["Zorblax"] * 4))
    with pytest.raises(Exception, match="Zorblax") as caught:
        built(recipe, tmp_path / "yard")
    assert "statuses: {Zorblax: error}" in str(caught.value)
    # What a program or a reader of answers failed by may be the model's doing.
    for word in ("KeyError", "ModuleNotFoundError", "answer not found"):
        recipe = recipe_of(tmp_path, answers([word]))
        with pytest.raises(Exception, match=word):
            built(recipe, tmp_path / "yard")
    recipe = recipe_of(tmp_path, answers(["Zorblax"] * 4), statuses={"Zorblax": "error"})
    assert built(recipe, tmp_path / "yard")["gpt-4o"] == [1.0] * 20


def test_an_unknown_finish_reason_without_a_text_is_asked_about(tmp_path: Path) -> None:
    rows = [{**one, "finish": one.pop("status")} for one in answers(["Zorblax", "rate limited"])]
    recipe = recipe_of(tmp_path, rows)
    recipe.write_text(recipe.read_text().replace('"status": "status"', '"finish_reason": "finish"'))
    with pytest.raises(Exception, match="Zorblax"):
        built(recipe, tmp_path / "yard")
    recipe.write_text(recipe.read_text().replace('"path": "r.jsonl"', '"path": "r.jsonl", '
                                                 '"statuses": {"Zorblax": "missing"}'))  # fmt: skip
    assert built(recipe, tmp_path / "yard")["gpt-4o"] == [1.0] * 20


def test_an_error_message_beside_an_empty_answer_is_no_wrong_answer(tmp_path: Path) -> None:
    rows = [{**one, "why": one.pop("status")} for one in answers(["Connection reset by peer"] * 3)]
    rows = [{**one, "why": one["why"].replace("success", "None")} for one in rows]
    recipe = recipe_of(tmp_path, rows)
    recipe.write_text(recipe.read_text().replace('"status": "status"', '"error": "why"'))
    assert built(recipe, tmp_path / "yard")["gpt-4o"] == [1.0] * 20


def test_a_table_of_results_keeps_its_words_and_asks(tmp_path: Path, call: Any) -> None:
    path = table(tmp_path / "known.csv", answers(NOT_ANSWERED))
    assert started(call, path, tmp_path)["gpt-4o"] == [1.0] * 20
    rows = answers(["429", "503"] * 3)
    for one in rows:
        one["http_status"] = one.pop("status").replace("success", "200")
    assert started(call, table(tmp_path / "codes.csv", rows), tmp_path)["gpt-4o"] == ([1.0] * 20)
    path = table(tmp_path / "odd.csv", answers(["Zorblax"] * 5))
    # `init` says what it cannot know, and the build stops.
    with pytest.raises(Exception, match="Zorblax") as caught:
        started(call, path, tmp_path)
    assert "{Zorblax: error}" in str(caught.value)
    assert (
        "LACKS: your word: 5 empty answers end as 'Zorblax'" in (tmp_path / "odd.yaml").read_text()
    )


def test_failed_beside_an_answer_with_a_reference_is_no_score(tmp_path: Path, call: Any) -> None:
    rows = answers(["failed"] * 20, text="the answer is 1")
    for one in rows:  # half of what "failed" is right
        if one["status"] == "failed" and int(one["reference"]) % 4:
            one["response"] = one["reference"]
    path = table(tmp_path / "f.csv", rows)
    assert sorted(started(call, path, tmp_path)["gpt-4o"]) == [0.0] * 10 + [1.0] * 30


@pytest.mark.parametrize("name", ["success", "ok", "failed"])
def test_whether_a_call_succeeded_is_no_score_beside_references(
    name: str, tmp_path: Path, call: Any
) -> None:
    rows = answers(["failed"] * 10)
    for k, one in enumerate(rows):
        one[name] = str((one.pop("status") == "failed") == (name == "failed")).lower()
        if k % 8 == 0:  # the call went well, and the answer is wrong
            one["response"] = "-1"
    found = started(call, table(tmp_path / "c.csv", rows), tmp_path)
    assert found["gpt-4o"] == [1.0] * 20
    assert found["claude-3"].count(0.0) == 8
    # A verdict that calls a given answer wrong stays one.
    rows[1]["response"], rows[1][name] = "-1", str(name == "failed").lower()
    found = started(call, table(tmp_path / "v.csv", rows), tmp_path)
    assert found["claude-3"].count(0.0) == 0


def test_an_errors_object_is_no_suite_and_makes_an_empty_answer_missing(
    tmp_path: Path, call: Any
) -> None:
    objects = [{"type": "api_error", "message": "Server error"}, {"code": 529, "detail": "Busy"}]
    rows = answers(["0", "1"] * 4)
    for one in rows:
        word = one.pop("status")
        one["error"] = None if word == "success" else objects[int(word)]
    path = tmp_path / "e.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    assert routeyard.audit(path).looked_at["questions"] == 28
    assert started(call, path, tmp_path)["gpt-4o"] == [1.0] * 20


def test_an_unknown_word_beside_an_empty_answer_of_score_0_is_a_finding(tmp_path: Path) -> None:
    rows = answers(["Zorblax"] * 5)
    for one in rows:
        one["score"] = int(one["status"] == "success")
    found = routeyard.audit(table(tmp_path / "z.csv", rows))
    assert any("5 empty answers of score 0 end as 'Zorblax'" in one.says for one in found.findings)


@pytest.mark.parametrize("name", ["zustand", "tila", "request_failed"])
def test_a_status_in_another_language_is_asked_about(name: str, tmp_path: Path) -> None:
    words = {"success": "fertig", "Zorblax": "abgebrochen"}
    rows = answers(["Zorblax"] * 5)
    for one in rows:
        one[name] = words[one.pop("status")]
    found = routeyard.audit(table(tmp_path / "z.csv", rows))
    assert any("abgebrochen" in one.says and "5" in one.says for one in found.findings)


def overloaded(body: dict[str, Any], seen: int) -> Do:
    """Answers nothing to one question, and says why in the finish reason alone."""
    if "7" in body["messages"][-1]["content"]:
        return answer(completion("", finish="engine_overloaded"))
    return answer(completion("4"))


def test_a_served_reply_that_failed_is_not_empty(tmp_path: Path) -> None:
    asked = [{"id": str(k), "question": f"What is {k} * 1?", "reference": "4"} for k in (1, 2, 7)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
    fields = {"id": "id", "question": "question", "references": "reference"}
    price = {"price_in": 1.0, "price_out": 1.0, "price_date": "2026-11-01"}
    with Loopback(overloaded) as server:
        recipe = {
            "name": "r", "version": "1.0.0",
            "sources": [{"name": "s", "path": "q.jsonl", "scorer": "numeric", "fields": fields}],
            "pool": {"models": [{"model_id": "m", "provider": "p", **price}],
                     "providers": [{"name": "p", "base_url": server.base_url}]},
            "collect": {"retry": {"attempts": 1}},
        }  # fmt: skip
        (tmp_path / "r.yaml").write_text(json.dumps(recipe))
        # It was an empty, wrong answer; nobody knows what the model would have said.
        with pytest.raises(Exception, match="1 answers are still missing"):
            built(tmp_path / "r.yaml", tmp_path / "yard")
