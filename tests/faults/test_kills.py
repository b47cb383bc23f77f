"""kill -9 in every stage, as often in each: nothing acknowledged is lost, nothing is invented.

Moments are chosen by stage, not by time, else all of them fall into the longest one: in turn the
n-th change of a file within the stage, and a random part of the time that the stage takes. What
is released after the kills has the bytes of a release that was never disturbed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from routeyard.datacards.card import render
from tests.calls.loopback import Loopback
from tests.faults.attacks import Row
from tests.faults.yard import CONCURRENCY, MODELS, STAGES, Builder, Yard, behave, bytes_of
from tests.support.sound_release import verify_release

#: Who is asked in a stage.
ASKED = {"collect": MODELS, "label": ("j",)}


def moment(stage: str, files: bool, right: Yard, chance: random.Random) -> dict[str, Any]:
    """The n-th change of a file in a stage, or so many seconds into it."""
    events, seconds, _ = right.took[stage]
    if files:
        return {"stage": stage, "event": chance.randint(1, int(events))}
    return {"stage": stage, "after": chance.uniform(0, seconds)}


def on_their_way(yard: Yard, stage: str) -> int:
    """Requests that the server has seen and the ledger does not hold: what can be paid twice.

    A call keeps its place until its answer is on disk, so that there are no more than places.
    """
    before = -1
    while before != (before := sum(yard.server.seen.values())):
        time.sleep(0.3)  # what a killed process sent last may still be on its way to the server
    asked = sum(model in ASKED[stage] for model, *_ in yard.server.seen)
    return asked - sum((model in MODELS) == (stage == "collect") for _, model, _ in yard.kept())


def test_kills_in_every_stage(
    right: Yard,
    builder: Builder,
    tmp_path: Path,
    row: Callable[[str], Row],
    size: Callable[[int, int], int],
    full: bool,
) -> None:
    stages = STAGES if full else ("collect", "label", "certify", "release")
    rows = {stage: row(f"kill -9 in {stage}") for stage in stages}
    for stage in ASKED:
        rows[stage].paid_twice = rows[stage].paid_twice or 0
    for chain in range(size(1, 12)):
        chance = random.Random(chain)
        with Loopback(behave) as server:
            yard = Yard(tmp_path / str(chain), builder, server)
            killed, kept = [], yard.kept()
            for turn, stage in enumerate(stages, chain):
                done = yard.run(kill=moment(stage, turn % 2 == 0, right, chance))
                assert done["code"] in (-9, 0), yard.said[-3000:]
                assert done["stage"] == stage or done["code"] == -9, done
                killed.append(stage)
                now = yard.kept()
                rows[stage].tried += 1
                rows[stage].lost += sum(now.get(key) != text for key, text in kept.items())
                for lane, models in ASKED.items():
                    way = on_their_way(yard, lane)
                    assert way <= CONCURRENCY * len(models)
                    rows[lane].in_flight += way
                kept = now
            yard.whole()
            assert set(yard.kept().items()) >= set(kept.items())
            rows["collect"].paid_twice += yard.paid_twice(*MODELS)
            rows["label"].paid_twice += yard.paid_twice("j")
            rows["release"].invented += yard.invented()
            # The same bytes, nothing half-written, and its own checks find nothing.
            assert bytes_of(yard.release) == bytes_of(right.release)
            assert verify_release(yard.release, render_card=render) == []
            assert yard.left_over() == []
            for stage in killed:
                rows[stage].held += 1
    for found in rows.values():
        assert found.lost == found.invented == 0
        assert (found.paid_twice or 0) <= found.in_flight
