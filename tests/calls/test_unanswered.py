"""A pair that is billed each time and never answered is given up, shown, and not wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.collect.collect import collect, responses_table
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.schemas.recipe import Label
from routeyard.schemas.recipe.collect import CollectAgain, Retry
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.loopback import Do, Loopback, answer, completion
from tests.calls.test_faults import table
from tests.label.test_xverify import queries

#: A tool call and no text.
TOOLS = completion(
    choices=[
        {
            "index": 0,
            "message": {"content": None, "tool_calls": [{"id": "1"}]},
            "finish_reason": "tool_calls",
        }
    ]
)


def behave(body: dict[str, Any], seen: int) -> Do:
    return answer(TOOLS if "what is 0" in body["messages"][0]["content"] else completion("1"))


def build(server: Loopback, folder: Path, asked: pa.Table, **changes: Any) -> tuple[Any, Any, Any]:
    pool = Pool(
        models=[Model(model_id="m", price_in=1, price_out=1, price_date="2026-01-01")],
        providers=[Provider(name="p", base_url=server.base_url)],
    )
    settings = CollectAgain(retry=Retry(attempts=2, first_wait_s=0), **changes)
    with SqliteLedger(folder / "l.sqlite") as ledger:
        made = plan(asked, pool, settings, ledger)
        return made, collect(made, ledger), responses_table(made, ledger)


def test_it_is_settled_after_a_stated_number_of_billed_attempts(tmp_path: Path) -> None:
    asked = queries(2)
    with Loopback(behave) as server:
        for run, count in ((1, 2), (2, 4), (3, 6), (4, 6)):
            made, ended, rows = build(server, tmp_path, asked)
            billed = sum(n for (_, prompt, _), n in server.seen.items() if "what is 0" in prompt)
            assert billed == count, run
            assert ended.complete == (run >= 3)
            assert ended.tallies["m"].unanswered == (run == 3)  # it is settled in this run
        assert made.figures()["models"][0]["unanswered"] == 1
        statuses = dict(zip(rows["query_id"].to_pylist(), rows["status"].to_pylist(), strict=True))
        assert sorted(statuses.values()) == ["ok", "unanswered"]
        labels = decide(asked, rows, file_verdicts(asked, rows), policy=Label())
        scores = dict(
            zip(labels["query_id"].to_pylist(), labels["correct"].to_pylist(), strict=True)
        )
        # Neither right nor wrong.
        assert scores == {"q" + "0" * 20: None, "q" + "0" * 19 + "1": True}
        # Who says so asks again.
        build(server, tmp_path, asked, reask=["unanswered"])
        assert sum(n for (_, prompt, _), n in server.seen.items() if "what is 0" in prompt) == 7


def test_what_such_attempts_cost_is_in_the_ledger(tmp_path: Path) -> None:
    with Loopback(behave) as server:
        build(server, tmp_path, queries(1))
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        (row,) = ledger.summary()
        assert row["errors"] == row["attempts"]
        assert row["cost_usd"] > 0


def test_an_outage_is_no_billed_attempt(tmp_path: Path) -> None:
    with Loopback(lambda body, seen: Do(status=503)) as server:
        for _ in range(4):
            _, ended, rows = build(server, tmp_path, table(["q"]))
        assert ended.missing == {"m": 1}
        assert rows["status"].to_pylist() == ["error"]
