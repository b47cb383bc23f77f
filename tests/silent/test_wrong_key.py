"""A fault of set-up stops what it concerns and settles nothing; the next build asks the rest."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

import routeyard
from tests.calls.loopback import Do, Loopback

QUESTIONS = 6
#: What a server answers: HTTP status and body.
Reply = tuple[int, Any]


def said(text: str, model: str = "m") -> Reply:
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}
    return 200, {"model": model, "choices": [choice], "usage": usage}


def refused(status: int, message: str = "no", **names: Any) -> Reply:
    return status, {"error": {"message": message, **names}}


class Server(Loopback):
    """Answers `(model, prompt, key)` as `replies` says, and logs who asked what."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.replies: Callable[[str, str, str], Reply] = lambda model, prompt, key: said("4")
        self.log: list[tuple[str, str, int]] = []

    def reply(self, body: dict[str, Any], seen: int) -> Do:
        prompt = body["messages"][-1]["content"]
        key = re.search(rb"(?i)^authorization: Bearer (.*?)\r?$", self.headers[-1], re.MULTILINE)
        status, said = self.replies(body["model"], prompt, key[1].decode() if key else "")
        self.log.append((body["model"], prompt, status))
        return Do(
            status=status, body=(said if isinstance(said, str) else json.dumps(said)).encode()
        )

    def answered(self) -> Counter[tuple[str, str]]:
        """How often each (model, prompt) was answered."""
        return Counter((model, prompt) for model, prompt, status in self.log if status == 200)

    def calls(self, model: str = "") -> int:
        return sum(model in (one, "") for one, _, _ in self.log)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def yard(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Builds in one workspace; gives the exit code and the error."""
    questions = [{"id": str(n), "q": f"{n} + {4 - n}?", "a": "4"} for n in range(QUESTIONS)]
    lines = "".join(json.dumps(one) + "\n" for one in questions)
    (tmp_path / "questions.jsonl").write_text(lines)

    def build(pool: dict[str, str], *, key: str = "right", **changes: Any) -> tuple[int, str]:
        """`pool` is model → provider; `key` is that of all providers but `p2`."""
        providers = sorted(set(pool.values()))
        recipe: dict[str, Any] = {
            "name": "sums",
            "version": "1.0.0",
            "sources": [{
                "name": "sums", "path": "questions.jsonl", "task": "sums", "scorer": "numeric",
                "fields": {"id": "id", "question": "q", "references": "a"},
            }],
            "pool": {
                "models": [
                    {"model_id": model, "provider": provider} for model, provider in pool.items()
                ],
                "providers": [
                    {"name": name, "base_url": server.base_url, "api_key_env": f"KEY_OF_{name}"}
                    for name in providers
                ],
            },
            "collect": {"max_tokens": 50, "retry": {"attempts": 2, "first_wait_s": 0.01}},
        }  # fmt: skip
        for section, more in changes.items():
            recipe[section] = {**recipe.get(section, {}), **more}
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
        for name in [*providers, "judge"]:
            monkeypatch.setenv(f"KEY_OF_{name}", "right" if name == "p2" else key)
        try:
            routeyard.build(tmp_path / "recipe.yaml", tmp_path / "yard", jobs=1, until="label")
        except routeyard.RouteyardError as error:
            return error.exit_code, str(error)
        return 0, ""

    return build


def labels(folder: Path) -> list[tuple[Any, ...]]:
    """(model, status, label's score) of the newest labels of a workspace."""
    newest = max(folder.glob("yard/stages/label/*"), key=lambda one: one.stat().st_mtime)
    responses = max(folder.glob("yard/stages/collect/*"), key=lambda one: one.stat().st_mtime)
    return duckdb.sql(
        f"SELECT model_id, status, score FROM '{responses}/responses/*.parquet' "
        f"LEFT JOIN '{newest}/labels.parquet' USING (query_id, model_id) ORDER BY ALL"
    ).fetchall()


def by_key(model: str, prompt: str, key: str) -> Reply:
    return said("4") if key == "right" else refused(401, "Incorrect API key provided")


def test_after_the_key_is_mended_exactly_the_missing_ones_are_asked(yard, server, tmp_path, call):
    server.replies = by_key
    pool = {"a": "p1", "b": "p1", "c": "p2"}
    code, report = yard(pool, key="wrong")
    assert code == 3
    assert server.calls("a") + server.calls("b") <= 2
    assert server.calls("c") == QUESTIONS
    for expected in ("12 of 18", "p1/a, b", "http_401: Incorrect API key", "next:"):
        assert expected in report, report
    assert len(report.splitlines()) <= 6, report
    server.log.clear()
    keys = {"KEY_OF_p1": "right", "KEY_OF_p2": "right"}
    second = call(
        "build", tmp_path / "recipe.yaml", "--workspace", tmp_path / "yard", "--until", "label",
        env={**os.environ, **keys},
    )  # fmt: skip
    assert second.returncode == 0, second.stderr
    assert server.calls() == 2 * QUESTIONS == len(server.answered())
    assert [row[1:] for row in labels(tmp_path)] == [("ok", 1.0)] * 3 * QUESTIONS


def test_a_key_that_ends_on_the_way_settles_nothing(yard, server):
    def until_three(model: str, prompt: str, key: str) -> Reply:
        ended = key != "new" and sum(server.answered().values()) >= 3
        return refused(403, "The API key has expired") if ended else said("4")

    server.replies = until_three
    assert yard({"a": "p1"})[0] == 3
    assert sum(server.answered().values()) >= 3
    assert yard({"a": "p1"}, key="new") == (0, "")
    assert server.answered() == Counter(dict.fromkeys(server.answered(), 1))
    assert len(server.answered()) == QUESTIONS


#: What a server says of model `a` of a provider with models `a` and `b` → whether it stops both.
REFUSALS = {
    "model": (refused(404, "The model 'a' does not exist"), False),
    "page": ((404, "<html>404 Not Found</html>"), True),
    "method": ((405, {"detail": "Method Not Allowed"}), True),
    "money": (refused(402, "Insufficient credits"), True),
    "card": (refused(402, "The card was declined", code="payment_declined"), True),
    "quota": (refused(429, "You exceeded it", code="insufficient_quota"), True),
    "key400": (refused(400, "API key not valid. Pass a valid API key."), True),
    "model400": (refused(400, "a is not a valid model ID"), False),
    "error200": ((200, {"error": {"code": "invalid_api_key", "message": "no"}}), True),
    "parameter": (refused(400, "Unsupported parameter: seed"), False),
    "gone": (refused(410, "The model was retired"), False),
}


def test_what_is_refused_is_asked_again_and_the_rest_was_asked(yard, server):
    def behave(model: str, prompt: str, key: str) -> Reply:
        reply, both = REFUSALS[model[2:]]
        return reply if model[0] == "a" or both else said("4")

    server.replies = behave
    pool = {f"{one}-{name}": name for name in REFUSALS for one in "ab"}
    stopped = [model for model in pool if model[0] == "a" or REFUSALS[model[2:]][1]]
    code, report = yard(pool)
    assert code == 3
    assert f"{len(stopped) * QUESTIONS} of {len(pool) * QUESTIONS}" in report
    answered = Counter(model for model, _ in server.answered() if model not in stopped)
    assert answered == dict.fromkeys(pool.keys() - set(stopped), QUESTIONS)
    server.replies = by_key
    server.log.clear()
    assert yard(pool) == (0, "")
    assert Counter(model for model, _, _ in server.log) == dict.fromkeys(stopped, QUESTIONS)


def test_a_question_that_is_refused_is_settled(yard, server, tmp_path):
    replies = {
        "3 + 1?": refused(403, "This model requires moderation and your input was flagged"),
        "2 + 2?": refused(400, "the prompt is too long", code="context_length_exceeded"),
        # A message that repeats the question speaks of no account of ours.
        "1 + 3?": refused(422, "input too long: 'May my organization close my bank account?'"),
    }
    server.replies = lambda model, prompt, key: next(
        (reply for words, reply in replies.items() if words in prompt), said("4")
    )
    assert yard({"a": "p1"}) == (0, "")
    expected = {("a", "ok", 1.0): 3, ("a", "refused", 0.0): 1, ("a", "error", None): 2}
    assert Counter(labels(tmp_path)) == expected
    assert yard({"a": "p1"}) == (0, "")
    assert server.calls() == QUESTIONS


def test_a_recipe_may_allow_a_share(yard, server, tmp_path, capfd):
    server.replies = by_key
    pool = {"a": "p1", "c": "p2"}
    allowed = {"unanswered": {"refused_share": 0.5}}
    assert yard(pool, key="wrong", collect={"unanswered": {"refused_share": 0.4}})[0] == 3
    assert yard(pool, key="wrong", collect=allowed) == (0, "")
    printed = capfd.readouterr().err
    assert "6 of 12" in printed
    assert "http_401" in printed
    assert {row[0] for row in labels(tmp_path) if row[2] is not None} == {"c"}
    # Missing stays missing: it is asked once the key is right.
    assert yard(pool, collect=allowed) == (0, "")
    assert len(server.answered()) == 2 * QUESTIONS


@pytest.mark.parametrize("kind", ["judges", "verifiers"])
def test_judges_and_verifiers_likewise(kind, yard, server, tmp_path):
    def behave(model: str, prompt: str, key: str) -> Reply:
        if model == "strict":
            verdict = "[[1]]" if kind == "judges" else "Correct"
            return said(verdict) if key == "right" else refused(403, "Invalid API key")
        return said("I know that one.")

    server.replies = behave
    provider = {"name": "judge", "base_url": server.base_url, "api_key_env": "KEY_OF_judge"}
    name = "judge:strict" if kind == "judges" else "xverify:strict"
    label = {kind: [{"name": "strict", "provider": provider}], "default": {"then": [name]}}
    code, report = yard({"a": "p2"}, key="wrong", label=label)
    assert code == 3
    assert f"judge/{name}: 6, http_403: Invalid API key" in report
    server.log.clear()
    assert yard({"a": "p2"}, label=label) == (0, "")
    assert server.calls() == server.calls("strict") == QUESTIONS
    assert {row[2] for row in labels(tmp_path)} == {1.0}
