"""Trajectories over a real HTTP server that answers with tool calls, and a real ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from routeyard.pipelines.audit.metering import as_answers
from routeyard.pipelines.collect.agent import Corpus, Passage, corpus_of, tables_of, walk
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas import QUERIES
from routeyard.schemas.recipe import Recipe
from routeyard.schemas.recipe.collect import Agent, Budget, Collect, Retry, Search
from routeyard.schemas.recipe.pool import Model, Pool
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Loopback, answer, completion

PASSAGES = [["The Opal Map", ["It was drawn by Ada Orn."]], ["Ada Orn", ["She was born in Lissa."]]]
SEARCH = Search(passages="{{ context }}", results=1)
CORPUS = Corpus([Passage(title, text[0]) for title, text in PASSAGES], SEARCH)


def Q(k: int) -> str:
    return f"q{k:020x}"


def queries(n: int = 1) -> pa.Table:
    rows = [
        {
            "query_id": Q(k),
            "source": "s",
            "source_id": str(k),
            "task": "t",
            "domain": "reading",
            "question": f"Where was the one born who drew the Opal Map? ({k})",
            "prompt": f"Where was the one born who drew the Opal Map? ({k})",
            "choices": [],
            "references": ["Lissa"],
            "scorer": "f1",
            "metadata": json.dumps({"context": PASSAGES}),
        }
        for k in range(n)
    ]
    return QUERIES.from_rows(rows)


def asking(calls: str = "tools", steps: int = 4, **changes: Any) -> Collect:
    agent = Agent(steps=steps, calls=calls, search=SEARCH)
    return Collect(agent=agent, retry=Retry(attempts=1, first_wait_s=0), **changes)


def pool(server: Loopback, *relays: Model) -> Pool:
    price = {"price_in": 1.0, "price_out": 2.0, "price_date": "2026-11-01"}
    models = [Model(model_id=name, context_window=1000, **price) for name in ("small", "large")]
    return pool_of(server, *models, *relays)


def call(query: Any, name: str = "search", arguments: str | None = None) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments or json.dumps({"query": query})}
    # An id of the server's own, another each time: it must not make another request.
    return {"id": f"call_{id(object())}", "type": "function", "function": function}


def calls(*called: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "tool_calls": list(called)}
    return completion(choices=[{"index": 0, "message": message, "finish_reason": "tool_calls"}])


def hops(body: dict[str, Any], seen: int) -> Any:
    """Searches twice, then answers with what stands in the last passage."""
    found = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    if not found:
        # The two models put it differently, so that only what a relay shares is alike.
        return answer(calls(call("Opal Map" if body["model"] == "small" else "the Opal Map")))
    if len(found) == 1:
        return answer(calls(call("Ada Orn")))
    return answer(completion("Lissa" if "Lissa" in found[1] else "nowhere"))


def run(server: Loopback, ledger: SqliteLedger, collect: Collect, n: int = 1, *relays: Model):
    members = pool(server, *relays)
    walked = walk(queries(n), members, collect, ledger, CORPUS, benchmark="b")
    return walked, tables_of(walked.trajectories, members)


def test_a_question_is_answered_in_steps_and_paid_for_once(tmp_path: Path) -> None:
    over = Model(model_id="over", relay={"first": "small", "steps": 1, "then": "large"})
    with Loopback(hops) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        walked, made = run(server, ledger, asking(), 2, over)
        assert not walked.missing
        # Two models take three steps each; the relay shares its first with the small one.
        assert server.requests == 2 * (3 + 3 + 2)
        _, same = run(server, ledger, asking(), 2, over)
        assert server.requests == 2 * (3 + 3 + 2)
        assert same == made
    responses = {(r["model_id"], r["query_id"]): r for r in made["responses"].to_pylist()}
    row = responses["over", Q(0)]
    assert (row["text"], row["status"]) == ("Lissa", "ok")
    # The whole trajectory costs what its three calls cost, shared or not.
    assert row["cost_usd"] == pytest.approx(3 * (10 * 1.0 + 5 * 2.0) / 1e6)
    assert (row["prompt_tokens"], row["completion_tokens"], row["attempts"]) == (30, 15, 3)
    steps = [s for s in made["steps"].to_pylist() if s["model_id"] == "over"][:3]
    assert [s["acted_by"] for s in steps] == ["small", "large", "large"]
    assert [s["action"] for s in steps] == ["search", "search", "answer"]
    assert [s["queries"] for s in steps] == [["Opal Map"], ["Ada Orn"], []]
    assert "Ada Orn" in steps[0]["found"][0]
    audited = as_answers(made["steps"])
    # Metered calls: the shared one stands once.
    assert audited.num_rows == 2 * (3 + 3 + 2)
    assert set(audited["model_id"].to_pylist()) == {"small", "large"}


def test_tool_calls_are_answers_of_an_agent_only(tmp_path: Path) -> None:
    # Asked without tools, a model that calls one has said nothing.
    with (
        Loopback(lambda body, seen: answer(calls(call("x")))) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        assert not ask(ledger, pool(server), queries(), retry=Retry(attempts=1)).ended.complete


def test_a_trajectory_ends_with_its_steps(tmp_path: Path) -> None:
    bodies: list[dict[str, Any]] = []

    def searches(body: dict[str, Any], seen: int) -> Any:
        bodies.append(body)
        return answer(calls(call("Opal")))

    with Loopback(searches) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        walked, made = run(server, ledger, asking(steps=3))
        assert server.requests == 2 * 3
    assert not walked.missing
    # The last call may only answer; one that searches all the same has not answered.
    assert [b.get("tool_choice") for b in bodies if b["model"] == "small"] == [None, None, "none"]
    row = made["responses"].to_pylist()[0]
    assert (row["status"], row["text"]) == ("truncated", "")
    assert made["steps"].to_pylist()[2]["action"] == "none"


@pytest.mark.parametrize(
    ("called", "told"),
    [
        (call("x", name="shell"), "There is no tool 'shell'"),
        (call("x", arguments="{"), "was not understood"),
        (call(["x"]), "was not understood"),
        (call("x", arguments="[" * 5000), "was not understood"),
        (call("zzz"), "No passage was found"),
    ],
)
def test_a_call_that_makes_no_sense_is_answered_in_words(
    tmp_path: Path, called: dict[str, Any], told: str
) -> None:
    def say(body: dict[str, Any], seen: int) -> Any:
        found = [m["content"] for m in body["messages"] if m["role"] == "tool"]
        return answer(completion(f"told: {found[0]}") if found else calls(called))

    with Loopback(say) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        _, made = run(server, ledger, asking())
    assert told in made["responses"].to_pylist()[0]["text"]


def test_several_calls_at_once_are_all_answered(tmp_path: Path) -> None:
    def say(body: dict[str, Any], seen: int) -> Any:
        found = [m for m in body["messages"] if m["role"] == "tool"]
        many = [call("Opal Map"), call("Ada Orn")] * 20
        return answer(completion("Lissa") if found else calls(*many))

    with Loopback(say) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        _, made = run(server, ledger, asking())
    step = made["steps"].to_pylist()[0]
    assert len(step["queries"]) == len(step["found"]) == 8  # no more of one answer are read


def test_models_without_tools_write_a_line(tmp_path: Path) -> None:
    def say(body: dict[str, Any], seen: int) -> Any:
        assert "tools" not in body
        last = body["messages"][-1]["content"]
        if last.startswith("Found:"):
            return answer(completion("It is " + last.split("drawn by ")[1][:7]))
        return answer(completion("I will look.\nSearch: Opal Map"))

    with Loopback(say) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        _, made = run(server, ledger, asking("text"))
    assert made["responses"].to_pylist()[0]["text"] == "It is Ada Orn"
    assert made["steps"].to_pylist()[0]["queries"] == ["Opal Map"]


def test_a_budget_stops_it_and_what_was_paid_for_is_kept(tmp_path: Path) -> None:
    def dear(body: dict[str, Any], seen: int) -> Any:
        said = hops(body, seen)
        content = json.loads(said.body)
        content["usage"] = {"prompt_tokens": 900, "completion_tokens": 5, "total_tokens": 905}
        return answer(content)

    with Loopback(dear) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        tight = asking(max_tokens=5, budget=Budget(usd=0.006))
        walked, _ = run(server, ledger, tight, 4)
        assert walked.out_of_budget
        assert walked.missing
        before = server.requests
        assert 0 < before < 4 * 2 * 3
        walked, made = run(server, ledger, asking(max_tokens=5), 4)
        assert not walked.missing
        # The first run's answers were not asked again.
        assert server.requests == 4 * 2 * 3
        assert made["responses"].num_rows == 8


def test_a_step_that_cannot_be_had_ends_its_trajectory_alone(tmp_path: Path) -> None:
    def say(body: dict[str, Any], seen: int) -> Any:
        if "(1)" in body["messages"][1]["content"] and len(body["messages"]) > 2:
            from tests.calls.loopback import Do

            return Do(status=400, body=b'{"error": {"message": "no"}}')
        return hops(body, seen)

    with Loopback(say) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        walked, made = run(server, ledger, asking(), 2)
    assert not walked.missing  # an error that cannot go away is settled
    found = {(r["model_id"], r["query_id"]): r for r in made["responses"].to_pylist()}
    assert found["small", Q(1)]["status"] == "error"
    assert found["small", Q(1)]["cost_usd"] is None  # unknown of one step, unknown of the whole
    assert found["small", Q(0)]["text"] == "Lissa"


def test_the_corpus_is_what_the_questions_hold() -> None:
    corpus = corpus_of(queries(3), SEARCH, base=Path())
    assert corpus.passages == [
        Passage("Ada Orn", "She was born in Lissa."),
        Passage("The Opal Map", "It was drawn by Ada Orn."),
    ]
    assert corpus.find("who drew the OPAL map?")[0].title == "The Opal Map"
    assert corpus.find("zebra") == []


def test_bm25_is_what_the_formula_says() -> None:
    import math
    import random

    draw = random.Random(0)
    vocabulary = [f"w{k}" for k in range(12)]
    texts = [" ".join(draw.choices(vocabulary, k=draw.randint(3, 15))) for _ in range(30)]
    corpus = Corpus([Passage("", text) for text in texts], Search(file="x", results=20))
    documents = [p.text.split() for p in corpus.passages]
    mean, n = sum(map(len, documents)) / len(documents), len(documents)

    def score(document: list[str], words: list[str]) -> float:
        # Lucene's form, k1 = 1.5 and b = 0.75, its constant factor k1 + 1 left out.
        total = 0.0
        for word in words:
            holds = sum(word in other for other in documents)
            tf = document.count(word)
            idf = math.log(1 + (n - holds + 0.5) / (holds + 0.5))
            total += idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * len(document) / mean))
        return total

    for _ in range(20):
        words = draw.sample(vocabulary, 2)
        ranked = sorted(range(n), key=lambda k: (-round(score(documents[k], words), 4), k))
        found = [corpus.passages.index(p) for p in corpus.find(" ".join(words))]
        want = [score(documents[k], words) for k in ranked[: len(found)]]
        got = [score(documents[k], words) for k in found]
        assert got == pytest.approx(want, rel=1e-4)


def recipe(**changes: Any) -> dict[str, Any]:
    source = {"name": "s", "path": "x.jsonl", "fields": {"question": "q"}}
    return {"name": "r", "version": "1.0.0", "sources": [source], **changes}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pool": {"models": [{"model_id": "a"}, {"model_id": "b", "relay":
            {"first": "a", "steps": 1, "then": "a"}}]}}, "needs 'collect.agent'"),
        ({"pool": {"models": [{"model_id": "b", "relay":
            {"first": "a", "steps": 1, "then": "b"}}]}}, "is a relay of 'a'"),
        ({"pool": {"models": [{"model_id": "a"}]}, "collect": {"stream": True, "agent":
            {"search": {"file": "x"}}}}, "knows neither 'stream'"),
        ({"pool": {"models": [{"model_id": "a"}]}, "collect": {"transport": "batch", "agent":
            {"search": {"file": "x"}}}}, "can only be 'live'"),
        ({"pool": {"models": [{"model_id": "a"}]}, "collect": {"agent": {"search": {}}}},
            "needs a corpus"),
    ],
)  # fmt: skip
def test_what_an_agent_cannot_be_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Recipe.model_validate(recipe(**changes))
