"""A disk that is full or cannot be written, clocks that jump, and locks of who is gone."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.calls.loopback import Do, Loopback, answer, completion
from tests.faults.attacks import Row
from tests.faults.yard import MODELS, STAGES, Builder, Yard, behave, bytes_of, says

Rows = Callable[[str], Row]
Size = Callable[[int, int], int]


@pytest.fixture
def yards(builder: Builder, tmp_path: Path) -> Iterator[Callable[[], Yard]]:
    """Makes workspaces, each with a server of its own."""
    servers: list[Loopback] = []

    def make() -> Yard:
        servers.append(Loopback(behave).__enter__())
        yard = Yard(tmp_path / str(len(servers)), builder, servers[-1])
        yard.workspace.mkdir()
        return yard

    yield make
    for server in servers:
        server.__exit__()


def goes_on(yard: Yard, right: Yard, found: Row, kept: dict[Any, str]) -> None:
    """The next build loses nothing, and its release has the right bytes."""
    yard.whole()
    now = yard.kept()
    found.lost += sum(now.get(key) != text for key, text in kept.items())
    found.invented += yard.invented()
    assert bytes_of(yard.release) == bytes_of(right.release)
    assert yard.left_over() == []
    assert (found.lost, found.invented) == (0, 0)
    found.held += 1


def on_disk(folder: Path) -> int:
    """Bytes that a folder takes, each file and folder in whole pages."""
    return sum(-(-path.lstat().st_size // 4096) * 4096 + 4096 for path in folder.rglob("*"))


def until(yard: Yard, stage: str) -> None:
    """Build as far as a stage, which is then killed at its first change of a file."""
    assert yard.run(kill={"stage": stage, "event": 1})["code"] == -9, yard.said[-3000:]


#: One of them stands for the others in every run.
only_full = pytest.mark.skipif(not os.environ.get("ROUTEYARD_FAULTS"), reason="in the full suite")


@only_full
def test_files_may_not_grow(right: Yard, yards: Callable[[], Yard], row: Rows, size: Size) -> None:
    found = row("files may not grow")
    chance = random.Random(0)
    for _ in range(size(1, 12)):
        yard = yards()
        until(yard, chance.choice(STAGES))
        done = yard.run(largest_file=chance.randrange(4_096, 120_000))
        found.tried += 1
        assert done["code"] == 0 or yard.stopped(done), yard.said[-3000:]
        goes_on(yard, right, found, yard.kept())


def test_a_full_disk(right: Yard, yards: Callable[[], Yard], row: Rows, size: Size) -> None:
    found = row("full disk")
    whole = on_disk(right.workspace)
    chance = random.Random(1)
    for _ in range(size(1, 12)):
        yard = yards()
        until(yard, chance.choice(STAGES))
        there = on_disk(yard.workspace)
        room = there + int(chance.uniform(0.05, 0.9) * (whole - there)) + 65_536
        done = yard.run(small_disk=str(yard.workspace), bytes=room, reserve=4_096)
        found.tried += 1
        assert done["code"] == 0 or yard.stopped(done), yard.said[-3000:]
        shutil.rmtree(yard.workspace)
        yard.workspace.with_name("yard.aside").rename(yard.workspace)
        goes_on(yard, right, found, yard.kept())


#: Bytes of an answer, and of the disk that the ledger holds for those on their way.
ANSWER, RESERVE = 16_384, 1 << 20


def long(body: dict[str, Any], seen: int) -> Do:
    """An answer of many bytes, a while later."""
    prompt = body["messages"][-1]["content"]
    more = random.Random(prompt).randbytes(ANSWER // 2).hex()
    text = f"{says(body['model'], prompt)}\n{more}"
    return answer(completion(text, model=body["model"]), delay=0.05)


def test_a_disk_that_fills_up_while_answers_come(
    yards: Callable[[], Yard], row: Rows, size: Size
) -> None:
    # What was paid for and not yet written was lost, and paid for again.
    found = row("full disk, answers on their way")
    found.paid_twice = 0
    chance = random.Random(3)
    for _ in range(size(1, 12)):
        yard = yards()
        yard.server.behave = long
        collect = ("build", "recipe.yaml", "--until", "collect")
        until(yard, "collect")
        room = on_disk(yard.workspace) + RESERVE + int(chance.uniform(0.3, 0.7) * 72 * ANSWER)
        small = {"small_disk": str(yard.workspace), "bytes": room, "reserve": RESERVE}
        done = yard.run(*collect, **small)
        found.tried += 1
        assert yard.stopped(done), yard.said[-3000:]
        assert "the disk is full" in yard.said
        shutil.rmtree(yard.workspace)
        yard.workspace.with_name("yard.aside").rename(yard.workspace)
        paid = yard.server.requests
        assert 0 < paid < 72
        assert len(yard.kept()) == paid
        assert yard.run(*collect)["code"] == 0, yard.said[-3000:]
        found.paid_twice += yard.paid_twice(*MODELS)
        assert (yard.server.requests, found.paid_twice) == (72, 0)
        found.held += 1


@only_full
def test_a_workspace_that_cannot_be_written(
    right: Yard, yards: Callable[[], Yard], row: Rows, size: Size
) -> None:
    found = row("read-only workspace")
    for stage in random.Random(2).sample(STAGES, size(1, 9)):
        yard = yards()
        until(yard, stage)
        done = yard.run(read_only=str(yard.workspace))
        found.tried += 1
        assert yard.stopped(done), yard.said[-3000:]
        yard.run("cost", "ledger", read_only=str(yard.workspace))
        if (yard.workspace / "ledger" / "ledger.sqlite").exists():
            assert "read-only for you" in yard.said
            assert "--workspace FOLDER" in yard.said
        goes_on(yard, right, found, yard.kept())


#: Seconds that the clock is wrong by, one after the other at each look.
JUMPS = {
    "ten years back": [-3.2e8],
    "ten years on": [3.2e8],
    "back and forth": [0, -86_400, 0, 86_400, -3.2e8, 3.2e8],
    "an hour back at each third look": [0, 0, -3_600],
}


@only_full
def test_clocks_that_jump(right: Yard, yards: Callable[[], Yard], row: Rows, size: Size) -> None:
    found = row("clock jumps")
    for name in JUMPS:
        for stage in random.Random(name).sample(STAGES[2:], size(1, 3)):
            yard = yards()
            until(yard, stage)
            found.tried += 1
            # Before the kill the clock was right; the times of answers differ from those of a
            # clock that stands still, so what is compared is what they say.
            done = yard.run("build", "recipe.yaml", "--until", "certify", clock=JUMPS[name])
            assert done["code"] == 0, (name, stage, yard.said[-3000:])
            assert yard.paid_twice("m0", "m1", "m2", "j") <= 0 or stage in ("collect", "label")
            yard.whole()
            assert yard.invented() == 0
            found.held += 1


#: What the clocks of two builds do: the seconds that they are wrong by, one at each look, or that
#: the machine slept.
APART: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "years on, and back and forth": (
        {"clock": JUMPS["ten years on"]},
        {"clock": JUMPS["back and forth"]},
    ),
    "years back, and an hour back": (
        {"clock": JUMPS["ten years back"]},
        {"clock": JUMPS["an hour back at each third look"]},
    ),
    "asleep for longer than the lease": ({"asleep": [0] * 30 + [1_000]}, {}),
}


def test_clocks_that_jump_while_leases_are_held(
    yards: Callable[[], Yard], row: Rows, size: Size
) -> None:
    found = row("clock jumps, two builds at once")
    found.paid_twice = 0
    for name, clocks in list(APART.items())[: size(1, 3)]:
        yard = yards()
        yard.server.behave = short_wait
        jobs = [
            yard.to_do("build", "recipe.yaml", "--until", "collect", out=out, delay=delay, **clock)
            for out, delay, clock in zip(
                (str(yard.folder / "1.txt"), str(yard.folder / "2.txt")), (0, 0.7), clocks,
                strict=True,
            )
        ]  # fmt: skip
        done = yard.builder.run(*jobs)
        found.tried += 1
        said = [(yard.folder / f"{n}.txt").read_text()[-2000:] for n in (1, 2)]
        assert [one["code"] for one in done] == [0, 0], (name, *said)
        found.paid_twice += yard.paid_twice(*MODELS)
        assert (yard.server.requests, found.paid_twice) == (72, 0), name
        assert len(yard.kept()) == 72
        found.held += 1


def short_wait(body: dict[str, Any], seen: int) -> Do:
    """So long that two builds wait for each other's answers."""
    done = behave(body, seen)
    done.delay = 0.3
    return done


def slow(body: dict[str, Any], seen: int) -> Do:
    """So slow that a process is killed with its claims held."""
    done = behave(body, seen)
    done.delay = 4.0
    return done


def _hold(yard: Yard, host: str, pid: int, started: str | None, seen: float) -> None:
    """Another process holds every claim that the killed one had."""
    with sqlite3.connect(yard.ledger) as connection:
        connection.execute("DELETE FROM owners")
        connection.execute(
            "INSERT INTO owners VALUES ('other', ?, ?, ?, ?)", (host, pid, started, seen)
        )
        claims = connection.execute("UPDATE claims SET owner = 'other'").rowcount
    connection.close()
    assert claims > 0


@only_full
def test_locks_of_who_is_gone(
    right: Yard, yards: Callable[[], Yard], row: Rows, size: Size
) -> None:
    from routeyard.pipelines.common.machine import pid_space

    found = row("stale locks")
    now = time.time()
    locks: dict[str, tuple[str, int, str | None, float]] = {
        "a process that was killed": (pid_space(), 2**22 - 3, "1", now),
        "another process of that number": (pid_space(), os.getpid(), "1", now),
        "a host that is silent": ("elsewhere", 1, "1", now - 3_600),
        "a host whose clock is ahead": ("elsewhere", 1, "1", now + 3.2e8),
        "an owner of an earlier version": (pid_space().rsplit(" ", 2)[0], 1, "1", now),
    }
    for name, lock in locks.items():
        yard = yards()
        yard.server.behave = slow
        wait = 0.5
        while yard.server.requests < 10:  # until calls are on their way, also on a busy machine
            assert yard.run(kill={"stage": "collect", "after": wait})["code"] == -9
            wait *= 2
        yard.server.behave = behave
        _hold(yard, *lock)
        found.tried += 1
        goes_on_with = yard.kept()
        done = yard.run("build", "recipe.yaml", "--until", "collect", lease=[0.2, 1.0])
        assert done["code"] == 0, (name, yard.said[-3000:])
        goes_on(yard, right, found, goes_on_with)
