"""Two at once: builds of one workspace, a relabel beside a build, and two hosts."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from routeyard.datacards.card import render
from tests.calls.loopback import Loopback
from tests.faults.attacks import Row
from tests.faults.yard import MODELS, Builder, Yard, behave, bytes_of
from tests.support.sound_release import verify_release

pytestmark = pytest.mark.skipif(
    not os.environ.get("ROUTEYARD_FAULTS"), reason="in the full suite: ten whole builds"
)
Rows = Callable[[str], Row]
Size = Callable[[int, int], int]
ALL = (*MODELS, "j")


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(behave) as one:
        yield one


def two(yard: Yard, delay: float, *, other: Yard | None = None, **beside: Any) -> list[Any]:
    """Two builds beside each other, the second a moment later."""
    second = other or yard
    jobs = [
        yard.to_do(out=str(yard.folder / "first.txt"), **beside.get("first", {})),
        second.to_do(
            *beside.get("words", ()),
            out=str(yard.folder / "second.txt"),
            delay=delay,
            **beside.get("second", {}),
        ),
    ]
    return yard.builder.run(*jobs)


def said(yard: Yard) -> str:
    texts = [(yard.folder / f"{name}.txt").read_text() for name in ("first", "second")]
    return "\n".join(text[-2000:] for text in texts)


def counted(found: Row, yard: Yard, before: int) -> None:
    found.paid_twice = (found.paid_twice or 0) + yard.paid_twice(*ALL) - before
    found.invented += yard.invented()
    assert found.invented == 0
    # Nothing was killed: nothing was on its way that could be asked again.
    assert found.paid_twice == 0
    found.held += 1


def test_two_builds(right: Yard, builder: Builder, tmp_path: Path, row: Rows, size: Size) -> None:
    found, chance = row("two builds at once"), random.Random(3)
    for turn in range(size(1, 8)):
        with Loopback(behave) as server:
            yard = Yard(tmp_path / str(turn), builder, server)
            done = two(yard, chance.uniform(0, 1.0) if turn else 0.0)
            found.tried += 1
            assert [one["code"] for one in done] == [0, 0], said(yard)
            assert bytes_of(yard.release) == bytes_of(right.release)
            counted(found, yard, 0)


def test_a_build_beside_relabel(
    right: Yard, builder: Builder, server: Loopback, tmp_path: Path, row: Rows, size: Size
) -> None:
    found, chance = row("build beside relabel"), random.Random(4)
    yard = Yard(tmp_path, builder, server)
    yard.whole()
    for turn in range(size(1, 6)):
        before = yard.paid_twice(*ALL)
        text = (tmp_path / "recipe.yaml").read_text()
        version = f'"version": "1.0.{turn}"'
        (tmp_path / "recipe.yaml").write_text(text.replace(version, f'"version": "1.0.{turn + 1}"'))
        done = two(yard, chance.uniform(0, 0.3), words=("relabel", "recipe.yaml"))
        found.tried += 1
        assert [one["code"] for one in done] == [0, 0], said(yard)
        made = yard.workspace / f"releases/faults/1.0.{turn + 1}"
        assert verify_release(made, render_card=render) == []
        counted(found, yard, before)


#: Commands that read what lies in a workspace while a build writes to it; 1.0.0 lies there already.
BESIDE = {
    "verify": ("verify", "{old}"),
    "evaluate": ("evaluate", "{old}", "--out", "{out}", "--router", "task-map"),
    "export": ("export", "embedllm", "{old}", "{out}"),
    "publish": ("publish", "{old}", "--to", "{out}"),
    "site": ("site", "{yard}", "--out", "{out}"),
    "health": ("health", "{old}", "--out", "{out}"),
    "status": ("status", "{recipe}", "--workspace", "{yard}"),
    "ledger": ("cost", "ledger", "--workspace", "{yard}"),
    "yank": ("yank", "{old}", "--reason", "tried"),
}


def test_a_build_beside_other_commands(
    right: Yard, builder: Builder, server: Loopback, tmp_path: Path, row: Rows, size: Size
) -> None:
    found, chance = row("build beside other commands"), random.Random(7)
    yard = Yard(tmp_path, builder, server)
    yard.whole()
    recipe = tmp_path / "recipe.yaml"
    for turn, name in enumerate(list(BESIDE)[: size(1, len(BESIDE))]):
        text = recipe.read_text().replace(f'"1.0.{turn}"', f'"1.0.{turn + 1}"')
        recipe.write_text(text)
        places = {"old": yard.release, "out": tmp_path / name, "yard": yard.workspace}
        words = [word.format(recipe=recipe, **places) for word in BESIDE[name]]
        second = yard.to_do(out=str(tmp_path / "second.txt"), delay=chance.uniform(0, 0.5))
        done = builder.run(yard.to_do(out=str(tmp_path / "first.txt")), second | {"words": words})
        found.tried += 1
        assert [one["code"] for one in done] == [0, 0], said(yard)
        made = yard.workspace / f"releases/faults/1.0.{turn + 1}"
        assert verify_release(made, render_card=render) == []
        old = bytes_of(yard.release)
        assert {one: old[one] for one in bytes_of(right.release)} == bytes_of(right.release)
        counted(found, yard, 0)


def test_two_hosts_with_one_folder(
    right: Yard, builder: Builder, tmp_path: Path, row: Rows, size: Size
) -> None:
    found, chance = row("two hosts, one folder"), random.Random(5)
    for turn in range(size(1, 6)):
        with Loopback(behave) as server:
            yard = Yard(tmp_path / str(turn), builder, server)
            done = two(
                yard,
                chance.uniform(0, 0.5),
                first={"host": "one"},
                # Its clock is an hour behind, as clocks of two machines can be.
                second={"host": "two", "clock": [-3_600] if turn % 2 else []},
            )
            found.tried += 1
            assert [one["code"] for one in done] == [0, 0], said(yard)
            assert bytes_of(yard.release) == bytes_of(right.release) or turn % 2
            counted(found, yard, 0)


def test_two_hosts_with_one_ledger(
    builder: Builder, tmp_path: Path, row: Rows, size: Size, request: pytest.FixtureRequest
) -> None:
    import psycopg

    found, chance = row("two hosts, one ledger"), random.Random(6)
    address = request.getfixturevalue("postgres_server").rpartition("/")[0]
    for turn in range(size(1, 6)):
        with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE faults{turn}".encode())
        with Loopback(behave) as server:
            one = Yard(tmp_path / f"{turn}a", builder, server)
            other = Yard(tmp_path / f"{turn}b", builder, server)
            ledger = f"{address}/faults{turn}"
            shared = {"env": {"ROUTEYARD_LEDGER": ledger, "ROUTEYARD_COLLECTORS": "2"}}
            done = two(
                one,
                chance.uniform(0, 0.5),
                other=other,
                first={"host": "one", **shared},
                second={"host": "two", "clock": [3_600], **shared},
            )
            found.tried += 1
            assert [one["code"] for one in done] == [0, 0], said(one)
            found.invented += other.invented()
            counted(found, one, 0)
