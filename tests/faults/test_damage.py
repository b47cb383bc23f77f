"""What lies on the disk was damaged: flipped bits, halves, and missing parts."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import RouteyardError
from tests.faults.attacks import Row
from tests.faults.yard import Yard, bytes_of

Rows = Callable[[str], Row]
Size = Callable[[int, int], int]
_PAGE = 4096


def flip(path: Path, chance: random.Random, first: int = 0) -> None:
    """Change up to 16 bits within one page of a file."""
    data = bytearray(path.read_bytes())
    page = chance.randrange(first, max(first + 1, len(data) // _PAGE)) * _PAGE
    for _ in range(chance.choice((1, 1, 2, 16))):
        at = chance.randrange(page, min(page + _PAGE, len(data)))
        data[at] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def test_flipped_pages_of_the_ledger(right: Yard, tmp_path: Path, row: Rows, size: Size) -> None:
    """Every answer that is read back is the one that was written, or nothing is read."""
    found = row("flipped ledger pages")
    kept = right.kept()
    with SqliteLedger(right.ledger) as ledger:
        hashes = sorted({request for _, _, request in kept})
        written = ledger.answered(hashes)
    # A closed ledger is one file.
    with sqlite3.connect(right.ledger) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    chance, refused = random.Random(2), 0
    for _ in range(size(20, 2_000)):
        path = tmp_path / "ledger.sqlite"
        shutil.copy(right.ledger, path)
        flip(path, chance)
        found.tried += 1
        try:
            with SqliteLedger(path) as ledger:
                again = ledger.answered(hashes)
                for attempt in ledger.attempts():
                    found.invented += all(attempt != one.attempt for one in written.values())
            for key, answer in again.items():
                found.invented += key not in written or answer.attempt != written[key].attempt
        except RouteyardError:
            refused += 1
        found.held += 1
        for left in tmp_path.glob("ledger.sqlite*"):
            left.unlink()
    assert found.invented == 0
    assert refused > found.tried // 20  # the flips do hit what is read


def _cut(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def _zero(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    half = chance.randrange(len(data))
    path.write_bytes(data[:half] + bytes(len(data) - half))


def _gone(path: Path, chance: random.Random) -> None:
    path.unlink()


def damaged(
    right: Yard, folder: Path, chance: random.Random, damage: Callable[[Path, random.Random], None]
) -> Yard:
    """A copy without its release and certificate, in which some files are damaged."""
    yard = Yard(folder, right.builder, right.server)
    shutil.copytree(right.workspace, yard.workspace)
    for stage in ("audit", "certify", *chance.choice(((), ("curate",), ("curate", "labels")))):
        shutil.rmtree(yard.workspace / "stages" / stage, ignore_errors=True)
    shutil.rmtree(yard.workspace / "releases")
    files = sorted(
        path
        for part in ("stages", "cache")
        for path in (yard.workspace / part).rglob("*")
        if path.is_file()
    )
    for path in chance.sample(files, chance.choice((1, 2, len(files) // 2))):
        damage(path, chance)
    return yard


@pytest.mark.parametrize(
    ("attack", "damages", "quick", "full"),
    [
        ("half-written and flipped Parquet", [_cut, _zero, flip], 1, 24),
        ("missing shards", [_gone], 1, 12),
    ],
)
def test_damaged_stages(
    right: Yard,
    tmp_path: Path,
    row: Rows,
    size: Size,
    attack: str,
    damages: list[Callable[[Path, random.Random], None]],
    quick: int,
    full: int,
) -> None:
    found = row(attack)
    asked = right.server.requests
    for turn in range(size(quick, full)):
        chance = random.Random(turn)
        yard = damaged(right, tmp_path / str(turn), chance, damages[turn % len(damages)])
        found.tried += 1
        yard.whole()
        found.invented += yard.invented()
        assert found.invented == 0
        assert bytes_of(yard.release) == bytes_of(right.release)
        assert yard.left_over() == []
        found.held += 1
    # Everything that was damaged follows from what the ledger holds.
    assert right.server.requests == asked
