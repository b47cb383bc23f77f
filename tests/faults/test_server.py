"""A server that does everything wrong, as one of the pool and as a judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.collect import collect, responses_table
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.label import judges
from routeyard.pipelines.label.judges import judge
from routeyard.schemas import RESPONSES
from routeyard.schemas.recipe import Judge
from routeyard.schemas.recipe.collect import Collect, Retry
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from routeyard.schemas.statuses import ANSWERLESS
from tests.calls.asking import table
from tests.calls.loopback import Do, Loopback
from tests.faults.attacks import Row
from tests.faults.replies import KEY, KINDS
from tests.label.test_xverify import queries

RETRY = Retry(attempts=2, first_wait_s=0.01, pause_after=1_000)
#: Seconds for a kind that only errs, and for one whose answer has to be read on any machine.
SHORT, LONG = 2.0, 60.0
FIGURES = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost_usd", "latency_s")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer may have so many bytes; what is longer need not be made to be refused."""
    monkeypatch.setattr("routeyard.pipelines.collect.client.MOST_BYTES", 200_000)
    monkeypatch.setenv("FAULTS_KEY", KEY)


def provider(server: Loopback) -> Provider:
    return Provider(name="p", base_url=server.base_url, api_key_env="FAULTS_KEY")


def fits(outcome: str, text: str | None, right: str) -> bool:
    """Whether a row says what the server said, or nothing where it said nothing."""
    if outcome == "error":
        return text is None
    if outcome == "redacted":
        return text is not None and text.startswith(right) and KEY not in text
    return text in {"ok": (right,), "any": (right, None)}.get(outcome, (outcome,))


def counted(found: Row, seen: Counter[Any]) -> None:
    """Whoever answered with the right text is not asked again."""
    found.paid_twice = found.paid_twice or 0
    asked = Counter({prompt: n for (_, prompt, _), n in seen.items()})
    for name, (_, outcome) in KINDS.items():
        if outcome in ("ok", "redacted"):
            found.paid_twice += max(0, asked[name] - 1)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_every_kind_as_one_of_the_pool(
    tmp_path: Path, row: Callable[[str], Row], full: bool
) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        return KINDS[body["messages"][0]["content"]][0]("42")

    found = row("fault server, pool")
    with Loopback(behave) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        pool = Pool(
            models=[Model(model_id="m", price_in=1, price_out=1, price_date="2026-01-01")],
            providers=[provider(server)],
        )
        # A lane each: some kinds stop the lane in which they come.
        for number, name in enumerate(list(KINDS)[:: 1 if full else 12]):
            outcome = KINDS[name][1]
            most = SHORT if outcome == "error" else LONG
            settings = Collect(retry=RETRY, deadline_s=most, seed=number)
            made = plan(table([name]), pool, settings, ledger)
            collect(made, ledger)
            (one,) = responses_table(made, ledger).to_pylist()
            found.tried += 1
            assert fits(outcome, one["text"], "42"), (name, one)
            assert (one["status"] in ANSWERLESS) == (one["text"] is None), (name, one)
            for figure in FIGURES:
                value = one[figure]
                assert value is None or (math.isfinite(value) and value >= 0), (name, figure, one)
            assert KEY not in str(one)
            found.held += 1
        counted(found, server.seen)
    assert len(KINDS) >= 25
    assert found.paid_twice == 0
    assert KEY.encode() not in (tmp_path / "l.sqlite").read_bytes()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_every_kind_as_a_judge(
    tmp_path: Path, row: Callable[[str], Row], full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict is one that the judge gave in full; all else is an error."""
    names = list(KINDS)
    # One of the fast; those that only wait are tried above.
    names = [name for name in names if "slow" not in name and "never" not in name]
    names = names[:: 1 if full else 12]
    now = [""]

    def behave(body: dict[str, Any], seen: int) -> Do:
        return KINDS[now[0]][0]("[[1]]")

    found = row("fault server, judge")
    with Loopback(behave) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        for number, name in enumerate(names):
            now[0] = name
            rows = RESPONSES.from_rows(
                [
                    {
                        "query_id": "q" + "0" * 20,
                        "model_id": "m",
                        "sample": 0,
                        "text": f"answer {number}",
                        "status": "ok",
                        "attempts": 1,
                    }
                ]
            )
            outcome = KINDS[name][1]
            by = Judge(
                name="x",
                kind="reference",
                provider=provider(server),
                retry=RETRY,
            )
            monkeypatch.setattr(judges, "DEADLINE_S", SHORT if outcome == "error" else LONG)
            (verdict,) = judge(queries(1), rows, by, ledger, run=str(number)).verdicts.to_pylist()
            found.tried += 1
            given = verdict["outcome"] == "correct"
            assert given or (verdict["outcome"], verdict["score"]) == ("error", None), (
                name,
                verdict,
            )
            assert given == (outcome in ("ok", "redacted")) or outcome == "any", (name, verdict)
            assert KEY not in str(verdict)
            found.held += 1
