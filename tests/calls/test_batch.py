"""Batches against a real HTTP server that keeps files and batches, as OpenAI's does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.collect import acollect
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput
from routeyard.schemas.recipe.collect import Budget, Collect
from routeyard.schemas.recipe.pool import Model, Pool
from tests.calls.asking import Asked, ask, pool_of, table
from tests.calls.loopback import Do, Loopback, answer, completion, error


class Batches(Loopback):
    """`/files` and `/batches`; a batch ends after `polls` looks at it."""

    def __init__(self, polls: int = 2) -> None:
        super().__init__(lambda body, seen: error(404))
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.polls = polls
        self.refuse_create = False
        self.final = "completed"

    def receive(self, method: str, path: str, body: bytes) -> Do:
        path, _, _ = path.removeprefix("/v1").partition("?")
        if (method, path) == ("POST", "/files"):
            # The lines stand between the headers of the form's part and its boundary.
            content = next(p for p in body.split(b"\r\n\r\n") if p.lstrip().startswith(b"{"))
            name = f"file-{len(self.files)}"
            self.files[name] = content.rsplit(b"\r\n--", 1)[0]
            return answer({"id": name, "object": "file"})
        if (method, path) == ("POST", "/batches"):
            if self.refuse_create:
                return error(400, "no batches for you")
            made = json.loads(body)
            made |= {"id": f"batch-{len(self.batches)}", "status": "in_progress", "looks": 0}
            self.batches[made["id"]] = made
            for line in self.files[made["input_file_id"]].splitlines():
                self.asked.append(json.loads(line)["body"]["messages"][0]["content"])
            return answer(made)
        if (method, path) == ("GET", "/batches"):
            return answer({"data": list(self.batches.values()), "has_more": False})
        kind, _, name = path.strip("/").partition("/")
        if kind == "batches":
            batch = self.batches[name]
            batch["looks"] += 1
            if batch["looks"] >= self.polls and batch["status"] == "in_progress":
                self.finish(batch)
            return answer(batch)
        return Do(body=self.files[name.removesuffix("/content")])

    def finish(self, batch: dict[str, Any]) -> None:
        batch["status"] = self.final
        good, bad = [], []
        # In another order than asked, as the API warns.
        for line in reversed(self.files[batch["input_file_id"]].splitlines()):
            request = json.loads(line)
            assert request["url"] == "/v1/chat/completions"
            prompt = request["body"]["messages"][0]["content"]
            row: dict[str, Any] = {"custom_id": request["custom_id"], "error": None}
            if "lost" in prompt:
                continue
            if "bad" in prompt:
                row["response"] = {"status_code": 400, "body": {"error": {"message": "too odd"}}}
                bad.append(row)
            elif "late" in prompt:
                row["response"] = None
                row["error"] = {"code": "batch_expired", "message": "too late"}
                bad.append(row)
            elif "tools" in prompt:
                row["response"] = {"status_code": 200, "body": completion(None)}
                good.append(row)
            else:
                row["response"] = {"status_code": 200, "body": completion(f"re {prompt}")}
                good.append(row)
        for field, rows in (("output_file_id", good), ("error_file_id", bad)):
            name = f"file-{len(self.files)}"
            self.files[name] = b"\n".join(json.dumps(row).encode() for row in rows) + b"\nno json\n"
            batch[field] = name


@pytest.fixture(autouse=True)
def small_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routeyard.pipelines.collect.batch.REQUESTS_PER_BATCH", 4)
    monkeypatch.setattr("routeyard.pipelines.collect.batch.POLL_S", 0.02)


def pool(server: Loopback) -> Pool:
    price = {"price_in": 1.0, "price_out": 1.0, "price_date": "2026-01-01"}
    return pool_of(server, Model(model_id="m", **price))


def run(
    server: Batches, ledger: SqliteLedger, prompts: list[str], transport: str = "batch", **more: Any
) -> Asked:
    return ask(ledger, pool(server), prompts, transport=transport, **more)


PROMPTS = [f"q{i}" for i in range(8)] + ["bad", "late", "lost"]


def test_every_line_ends_as_a_row(tmp_path: Path) -> None:
    with Batches() as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        found = run(server, ledger, PROMPTS)
        rows = {r["query_id"]: r for r in found.rows}
        assert [rows[q]["text"] for q in PROMPTS[:8]] == [f"re {q}" for q in PROMPTS[:8]]
        assert {rows[q]["status"] for q in ("bad", "late", "lost")} == {"error"}
        assert rows["bad"]["error"] == "http_400: too odd"
        assert rows["late"]["error"] == "batch_expired: too late"
        assert rows["lost"]["error"].startswith("batch_completed")
        assert found.ended.missing == {"m": 2}  # the bad request is settled
        assert len(server.batches) == 3
        assert ledger.recall("batch:") == {}
        # Again: only what can still succeed.
        server.asked.clear()
        run(server, ledger, PROMPTS)
        assert sorted(server.asked) == ["late", "lost"]


def test_a_pair_billed_too_often_is_given_up_in_the_run_that_found_out(tmp_path: Path) -> None:
    with Batches() as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        for number in range(1, 7):
            ended = run(server, ledger, ["q0", "tools"]).ended
            assert ended.complete == (number == 6)
        # Not only when the next run looks: this one may go on to a release.
        assert ended.tallies["m"].unanswered == 1
        assert server.asked.count("tools") == 6
        found = run(server, ledger, ["q0", "tools"])
        assert found.ended.complete
        assert found.plan.figures()["models"][0]["unanswered"] == 1
        assert server.asked.count("tools") == 6


def test_a_stopped_run_finds_its_batches_again(tmp_path: Path) -> None:
    with Batches(polls=10**9) as server:
        with SqliteLedger(tmp_path / "l.sqlite") as ledger:
            made = plan(table(PROMPTS[:8]), pool(server), Collect(transport="batch"), ledger)

            async def stopped() -> None:
                await asyncio.wait_for(acollect(made, ledger), 1.0)

            with pytest.raises(TimeoutError):
                asyncio.run(stopped())
        assert len(server.batches) == 2
        server.polls = 1
        with SqliteLedger(tmp_path / "l.sqlite") as ledger:
            # What a batch asks already is not asked live.
            with pytest.raises(BadInput, match="still under way"):
                run(server, ledger, PROMPTS[:8], "live")
            found = run(server, ledger, PROMPTS[:8])
            assert found.plan.missing == 8
            assert found.ended.complete
            assert len(found.rows) == 8
        assert len(server.batches) == 2
        assert sorted(server.asked) == PROMPTS[:8]


def test_killed_between_creating_and_noting(tmp_path: Path) -> None:
    # The batch exists at the server and its id was never written down.
    with Batches() as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        remember = ledger.remember

        def killed_after_the_first_note(notes: Any) -> None:
            if any(name.startswith("batch:") and json.loads(text)["batch_id"]
                   for name, text in notes.items()):  # fmt: skip
                raise KeyboardInterrupt
            remember(notes)

        ledger.remember = killed_after_the_first_note  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            run(server, ledger, PROMPTS[:4])
        ledger.remember = remember  # type: ignore[method-assign]
        assert run(server, ledger, PROMPTS[:4]).ended.complete
        assert len(server.batches) == 1
        assert sorted(server.asked) == PROMPTS[:4]


def test_results_imported_in_part_are_not_imported_twice(tmp_path: Path) -> None:
    with Batches() as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        forget = ledger.forget

        def killed(names: Any) -> None:
            raise KeyboardInterrupt

        ledger.forget = killed  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            run(server, ledger, PROMPTS[:4])
        ledger.forget = forget  # type: ignore[method-assign]
        assert run(server, ledger, PROMPTS[:4]).ended.complete
        assert len(list(ledger.attempts())) == 4
        assert len(server.batches) == 1


def test_a_refused_batch_says_why(tmp_path: Path) -> None:
    with Batches() as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        server.refuse_create = True
        collected = run(server, ledger, PROMPTS[:2]).ended
        assert "no batches for you" in collected.paused["m"]
        assert collected.missing == {"m": 2}
        assert ledger.recall("batch:") == {}


def test_an_expired_batch_is_asked_again(tmp_path: Path) -> None:
    with Batches() as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        server.final = "expired"
        (error_said,) = run(server, ledger, ["lost"]).column("error")
        assert error_said.startswith("batch_expired")
        again = plan(table(["lost"]), pool(server), Collect(transport="batch"), ledger)
        assert again.missing == 1


def test_a_budget_bounds_what_is_submitted(tmp_path: Path) -> None:
    with Batches() as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        # A worst case of (about) 1100 tokens at a dollar a million.
        limited = {"max_tokens": 1000, "budget": Budget(usd=0.004)}
        collected = run(server, ledger, PROMPTS[:8], **limited).ended
        assert 1 <= len(server.asked) <= 3
        assert "budget" in collected.paused["m"]
