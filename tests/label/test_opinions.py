"""A judge with `decides: false`: asked about first answers, heard for preferences, no label."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pydantic import ValidationError

from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.label.judges import ask_verifiers_and_judges
from routeyard.pipelines.label.policies import decide, open_steps
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.schemas import RESPONSES
from routeyard.schemas.recipe import Label, Policy
from tests.label.loopback_judge import serving
from tests.label.test_xverify import judging, queries, responses

REASONS = {"max_tokens": None, "max_completion_tokens": 512, "temperature": None}


def test_opinions_are_filed_once_and_enter_no_label(tmp_path: Path) -> None:
    asked, given = queries(2), responses(2, "weak", "strong")
    # A second sample, which the judge does not see.
    rows = [{**row, "sample": 1} for row in given.to_pylist()]
    again = RESPONSES.from_rows(rows)
    answers = pa.concat_tables([given, again])
    ruled = file_verdicts(asked, answers)
    with (
        serving(lambda prompt, _: "LLM 1, LLM 2" if "says 0" in prompt else "LLM 9") as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        by = judging(
            server.url, "choice", template="confidence-driven", decides=False, parameters=REASONS
        )
        label = Label(judges=[by])
        before = decide(asked, answers, ruled, policy=label)
        assert len(open_steps(asked, answers, ruled, policy=label)["judge:j"]) == 4
        for run in "rs":
            filed = ask_verifiers_and_judges(
                asked, answers, ruled, policy=label, ledger=ledger, run=run
            )
        mine = filed.verdicts.filter(pc.equal(filed.verdicts["scorer"], "judge:j"))
        assert set(mine["sample"].to_pylist()) == {0}
        # Two orders of one question; the other's replies cannot be read.
        assert sorted(mine["outcome"].to_pylist()) == ["correct", "correct", "error", "error"]
        assert sum("says 0" in prompt for prompt in server.prompts) == 2
        # What is not settled is asked again, and nothing else.
        left = open_steps(asked, answers, filed.verdicts, policy=label)
        assert {query for query, _, _ in left["judge:j"]} == {asked["query_id"][1].as_py()}
        sent = server.bodies[0]
        assert sent["max_completion_tokens"] == 512
        assert not {"max_tokens", "temperature"} & set(sent)
    assert decide(asked, answers, filed.verdicts, policy=label).equals(before)


def test_a_policy_cannot_call_on_an_opinion() -> None:
    by = judging("http://127.0.0.1:9/v1", "choice", decides=False)
    with pytest.raises(ValidationError, match="'decides: false', and 'then' names it"):
        Label(default=Policy(then=["judge:j"]), judges=[by])
