"""The lease protocol as a model: every state is visited, and each part of it is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.ledger.lease_model import SETTINGS, Rules, visit


# No code of ours changes the states of the model: the suite visits those of smaller settings below.
@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_nothing_is_paid_twice_in_any_state(name: str) -> None:
    states, transitions, said = visit(SETTINGS[name])
    print(f"{name}: {states:,} states, {transitions:,} transitions")
    assert said is None
    assert states > 5_000


@pytest.mark.parametrize(
    "rules",
    [
        # A process that was stopped goes on with claims that others have taken since.
        Rules(own_clock=False, kills=0, losses=0),
        # A lease is ended for one of its claims, and its holder never hears of it.
        Rules(ended_as_a_whole=False, kills=0, losses=0),
        # The server's clock alone: setting it ends the leases of all who live.
        Rules(postgres=True, heartbeat_seen=False, kills=0, losses=0, stops=0),
        # A process id is looked up in another namespace: the fault of two containers.
        Rules(namespaces_told_apart=False, kills=0, losses=0, stops=0),
    ],
)
def test_the_model_finds_the_fault_that_each_part_prevents(rules: Rules) -> None:
    assert "paid 2 times, 0 excused" in str(visit(rules)[2])
    whole = {"own_clock": True, "ended_as_a_whole": True, "heartbeat_seen": True}
    assert visit(replace(rules, **whole, namespaces_told_apart=True))[2] is None
