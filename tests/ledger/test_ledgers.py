"""What every ledger keeps its word on: one suite, run with SQLite and with PostgreSQL."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect import sqlite
from routeyard.pipelines.collect.ledger import Attempt, Clocks, Lease, misled
from routeyard.pipelines.collect.postgres import PostgresLedger
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.machine import started
from tests.calls.collecting import PROCESSES

BASE = Attempt(
    request_hash="a" * 32,
    sample=0,
    query_id="q1",
    model_id="m",
    settings_hash="s",
    run="r",
    purpose="collect",
    status="ok",
    permanent=False,
    requested_at="2026-11-01T00:00:00Z",
    text="42",
)
KEY = (BASE.request_hash, BASE.sample)


@pytest.fixture(params=["sqlite", "sqlite on a network", "postgres"])
def opened(request, tmp_path, monkeypatch):
    """A function that opens the same ledger again, as another process would."""
    if request.param.startswith("sqlite"):
        monkeypatch.setattr(sqlite, "is_network", lambda path: "network" in request.param)
        where = tmp_path / "ledger.sqlite"
        make = SqliteLedger
    else:
        where = request.getfixturevalue("postgres")
        make = PostgresLedger
    ledgers = []

    def open_ledger(**options):
        ledgers.append(make(where, **options))
        return ledgers[-1]

    open_ledger.again = (make, where)
    yield open_ledger
    for ledger in ledgers:
        ledger.close()


def append(ledger, *attempts, settles=True):
    """Append and wait until it is durable."""
    told = threading.Event()
    faults = []
    ledger.append(attempts, settles=settles, done=lambda fault: (faults.append(fault), told.set()))
    assert told.wait(20)
    assert faults == [None]


def test_an_attempt_comes_back_as_it_was(opened):
    # NUL, quotes and four-byte characters come from real models; PostgreSQL text refuses NUL.
    odd = replace(
        BASE,
        text="NUL \x00 and ' \\ \t\n 🚂 \\x00",
        error="",
        cost_usd=1e-9,
        prompt_tokens=2**40,
        logprobs='[{"token": "\x00"}]',
    )
    ledger = opened()
    append(ledger, odd)
    assert list(ledger.attempts()) == [odd]
    assert ledger.answered([odd.request_hash])[KEY].attempt == odd


def test_null_stays_null_and_empty_stays_empty(opened):
    ledger = opened()
    append(ledger, replace(BASE, text=None), replace(BASE, sample=1, text=""))
    assert [a.text for a in ledger.attempts()] == [None, ""]
    assert next(ledger.attempts()).cost_usd is None


def test_what_is_acknowledged_is_seen_by_others(opened):
    first, second = opened(), opened()
    append(first, BASE)
    assert second.settled([BASE.request_hash])[KEY].status == "ok"
    assert second.position() == first.position() > 0


def test_the_newest_usable_attempt_stands(opened):
    ledger = opened()
    append(ledger, replace(BASE, text="old"))
    append(ledger, replace(BASE, text="new"))
    append(ledger, replace(BASE, status="error", text=None))
    answer = ledger.answered([BASE.request_hash])[KEY]
    # A later fault does not take an answer away.
    assert (answer.attempt.text, answer.attempts) == ("new", 3)


def test_many_hashes_are_looked_up_at_once(opened):
    ledger = opened()
    many = [replace(BASE, request_hash=f"{i:032d}") for i in range(1500)]
    append(ledger, *many)
    assert len(ledger.settled([a.request_hash for a in many])) == 1500
    assert len(ledger.answered([a.request_hash for a in many])) == 1500
    assert [a.request_hash for a in ledger.attempts()] == [a.request_hash for a in many]


def test_attempts_can_be_read_by_purpose_and_from_a_position(opened):
    ledger = opened()
    append(ledger, BASE)
    half = ledger.position()
    append(ledger, replace(BASE, purpose="judge"), replace(BASE, sample=1))
    assert [a.purpose for a in ledger.attempts(purpose="judge")] == ["judge"]
    assert len(list(ledger.attempts(after=half))) == 2


def test_a_claim_belongs_to_one(opened):
    first, second = opened(), opened()
    assert first.claim([KEY], after=0).result(20).granted == [KEY]
    assert first.claim([KEY], after=0).result(20).granted == [KEY]
    assert second.claim([KEY], after=0).result(20).held == [KEY]
    first.release([KEY])
    first.flush()
    assert second.claim([KEY], after=0).result(20).granted == [KEY]


def test_a_claim_ends_with_its_answer(opened):
    first, second = opened(), opened()
    planned = second.position()
    first.claim([KEY], after=planned).result(20)
    append(first, BASE)
    # Planned before the answer came: it must not be asked again.
    assert second.claim([KEY], after=planned).result(20).settled == [KEY]
    # Planned after it: somebody wants it asked again on purpose.
    assert second.claim([KEY], after=second.position()).result(20).granted == [KEY]


def test_a_fault_that_can_pass_does_not_settle(opened):
    first, second = opened(), opened()
    first.claim([KEY], after=0).result(20)
    append(first, replace(BASE, status="error", text=None), settles=False)
    assert second.claim([KEY], after=0).result(20).held == [KEY]
    append(first, replace(BASE, status="error", text=None), settles=True)
    assert second.claim([KEY], after=0).result(20).granted == [KEY]


def test_closing_gives_up_claims(opened):
    first, second = opened(), opened()
    first.claim([KEY], after=0).result(20)
    first.close()
    assert second.claim([KEY], after=0).result(20).granted == [KEY]


def _claim_and_die(make, where, key):
    import os

    make(where).claim([key], after=0).result(20)
    os._exit(9)


def test_claims_of_a_killed_process_lapse_at_once(opened):
    make, where = opened.again
    process = PROCESSES.Process(target=_claim_and_die, args=(make, where, KEY))
    process.start()
    process.join(60)
    assert process.exitcode == 9
    assert opened().claim([KEY], after=0).result(20).granted == [KEY]


def test_claims_of_another_host_hold_until_their_lease_ends(opened, monkeypatch):
    away = replace(Lease.this_process(), host="far away")
    with monkeypatch.context() as patched:
        patched.setattr(Lease, "this_process", classmethod(lambda cls: away))
        first = opened()
    first.claim([KEY], after=0).result(20)
    second = opened()
    assert second.claim([KEY], after=0).result(20).held == [KEY]
    monkeypatch.setattr(Lease, "ends_after_s", lambda: 0.0)
    assert second.claim([KEY], after=0).result(20).granted == [KEY]


def test_claims_of_a_process_that_says_nothing_lapse_although_it_lives(opened, monkeypatch):
    # One that was stopped, or at work in the ledger that this one is a copy of, was waited for.
    with subprocess.Popen(["sleep", "100"]) as other:
        silent = replace(
            Lease.this_process(), name="silent", pid=other.pid, started=started(other.pid)
        )
        with monkeypatch.context() as patched:
            patched.setattr(Lease, "this_process", classmethod(lambda cls: silent))
            first = opened()
        first.claim([KEY], after=0).result(20)
        second = opened()
        assert second.claim([KEY], after=0).result(20).held == [KEY]
        monkeypatch.setattr(Lease, "ends_after_s", lambda: 0.0)
        assert second.claim([KEY], after=0).result(20).granted == [KEY]
        other.kill()


def test_claims_of_a_process_that_answers_all_the_time_hold(opened, monkeypatch):
    monkeypatch.setattr(Lease, "HEARTBEAT_S", 0.2)
    monkeypatch.setattr(Lease, "LEASE_S", 1.0)
    busy, other = opened(), opened()
    assert busy.claim([KEY], after=0).result(20).granted == [KEY]
    until = time.monotonic() + 2
    number = 0
    while time.monotonic() < until:  # never idle for as long as a heartbeat
        number += 1
        append(busy, replace(BASE, request_hash=f"{number:032x}"))
        time.sleep(0.05)
        if number % 8 == 0:
            assert other.claim([KEY], after=0).result(20).held == [KEY]


def test_two_that_begin_one_ledger_wait_for_each_other(tmp_path):
    # One of eight pairs of builds that began at once ended in "database is locked".
    path = tmp_path / "l.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID")
    done = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    done.start()
    with SqliteLedger(path) as ledger:
        append(ledger, BASE)
        assert [row.text for row in ledger.attempts()] == ["42"]
    done.join()
    other.close()


def test_a_ledger_with_a_second_name_is_refused(tmp_path):
    # Two builds in a workspace and in its copy of hard links kept 204 of 237 answers.
    path = tmp_path / "l.sqlite"
    with SqliteLedger(path) as ledger:
        append(ledger, BASE)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/l.sqlite").hardlink_to(path)
    for name in (path, tmp_path / "copy/l.sqlite"):
        with pytest.raises(BadInput, match="second name") as caught:
            SqliteLedger(name)
        assert "cp l.sqlite own" in caught.value.next_step
    shutil.copy(path, tmp_path / "copy/own")
    (tmp_path / "copy/own").replace(tmp_path / "copy/l.sqlite")
    for name in (path, tmp_path / "copy/l.sqlite"):
        with SqliteLedger(name) as ledger:
            assert [row.text for row in ledger.attempts()] == ["42"]


def _race(make, where, keys, out):
    ledger = make(where)
    granted = []
    for start in range(0, len(keys), 7):
        granted += ledger.claim(keys[start : start + 7], after=0).result(60).granted
    append(ledger, *[replace(BASE, request_hash=h, sample=s) for h, s in granted])
    out.put(len(granted))
    ledger.close()


def test_of_two_processes_only_one_asks(opened):
    make, where = opened.again
    keys = [(f"{i:032d}", 0) for i in range(200)]
    opened()  # the tables exist
    out = PROCESSES.Queue()
    racers = [PROCESSES.Process(target=_race, args=(make, where, keys, out)) for _ in range(2)]
    for racer in racers:
        racer.start()
    counts = [out.get(timeout=600) for _ in racers]
    for racer in racers:
        racer.join(60)
    assert sum(counts) == 200
    hashes = [a.request_hash for a in opened().attempts()]
    assert sorted(hashes) == [h for h, _ in keys]


def test_notes_are_kept_recalled_and_forgotten(opened):
    ledger = opened()
    ledger.remember({"model:a": "1", "model:b": "2", "batch:x": "3"})
    ledger.remember({"model:a": "9"})
    assert opened().recall("model:") == {"a": "9", "b": "2"}
    ledger.forget(["model:a"])
    assert ledger.recall("model:") == {"b": "2"}
    assert ledger.recall("batch:") == {"x": "3"}


def test_a_summary_counts_and_leaves_the_unknown_apart(opened):
    ledger = opened()
    other = {"status": "error", "permanent": False, "text": None}
    append(ledger, replace(BASE, prompt_tokens=5, completion_tokens=7, cost_usd=0.25))
    append(ledger, replace(BASE, sample=1), replace(BASE, sample=2, **other))
    append(ledger, replace(BASE, request_hash="c" * 32, purpose="canary:start"))
    rows = {row["purpose"]: row for row in ledger.summary()}
    mine = rows["collect"]
    assert (mine["attempts"], mine["ok"], mine["errors"]) == (3, 2, 1)
    assert (mine["prompt_tokens"], mine["completion_tokens"]) == (5, 7)
    assert (mine["cost_usd"], mine["cost_unknown"]) == (0.25, 1)
    assert rows["canary:start"]["cost_usd"] is None
    assert ledger.hashes() == [BASE.request_hash]


def test_an_error_that_may_have_been_billed_is_of_unknown_cost(opened):
    """`cost ledger` said `cost unknown 0` of answers that were cut in the middle of their JSON."""
    kinds = ["invalid_json", "timeout", "http_500", "http_408", "http_429", "insufficient_quota"]
    error = replace(BASE, status="error", permanent=False, text=None)
    ledger = opened()
    append(ledger, *(replace(error, sample=at, error_class=of) for at, of in enumerate(kinds)))
    append(ledger, replace(error, sample=9, error_class="no_content", cost_usd=0.5))
    (row,) = ledger.summary()
    assert (row["errors"], row["cost_usd"], row["cost_unknown"]) == (7, 0.5, 4)


def test_an_unreachable_database_is_named_without_its_password():
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra 'postgres')")
    with pytest.raises(BadInput) as caught:
        PostgresLedger("postgresql://somebody:hunter2@127.0.0.1:1/yard")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "127.0.0.1" in str(caught.value)


def test_its_repr_hides_the_password(postgres):
    with PostgresLedger(postgres.replace("routeyard@", "routeyard:hunter2@")) as ledger:
        assert "hunter2" not in repr(ledger)


def test_a_database_that_goes_away_is_a_named_fault(postgres):
    import psycopg

    ledger = PostgresLedger(postgres)
    name = postgres.rpartition("/")[2]
    with psycopg.connect(postgres.replace(f"/{name}", "/postgres"), autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
    told = threading.Event()
    faults = []
    ledger.append([BASE], settles=True, done=lambda fault: (faults.append(fault), told.set()))
    assert told.wait(20)
    # Never acknowledged without being kept.
    assert isinstance(faults[0], BadInput)
    with pytest.raises(BadInput):
        ledger.close()


def test_a_flipped_bit_is_an_error_and_no_answer(tmp_path):
    # SQLite has no checksums: "42" with one bit changed was read as the model's answer.
    path = tmp_path / "l.sqlite"
    with SqliteLedger(path) as ledger:
        append(ledger, replace(BASE, text="the answer is 42", cost_usd=0.1, permanent=False))
        assert next(ledger.attempts()).text == "the answer is 42"
    data = path.read_bytes()
    assert data.count(b"the answer is 42") == 1
    path.write_bytes(data.replace(b"the answer is 42", b"the answer is 52"))
    with SqliteLedger(path) as ledger:
        with pytest.raises(BadInput, match="damaged"):
            ledger.answered([BASE.request_hash])
        with pytest.raises(BadInput, match="damaged"):
            list(ledger.attempts())


def test_an_index_that_leads_to_another_request_gives_no_answer(tmp_path):
    # The row is whole and its checksum is right; it answers another question.
    path = tmp_path / "l.sqlite"
    with SqliteLedger(path) as ledger:
        append(ledger, replace(BASE, request_hash="hash-of-this-one"))
    with sqlite3.connect(path) as connection:
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'attempts_by_request'"
        first = (connection.execute(sql).fetchone()[0] - 1) * 4096
    connection.close()
    data = path.read_bytes()
    index = data[first : first + 4096]
    assert index.count(b"hash-of-this-one") == 1
    index = index.replace(b"hash-of-this-one", b"hash-of-that-one")
    path.write_bytes(data[:first] + index + data[first + 4096 :])
    with (
        SqliteLedger(path) as ledger,
        pytest.raises(BadInput, match="index of the ledger is damaged"),
    ):
        ledger.answered(["hash-of-that-one"])


def test_a_row_whose_request_is_no_text_any_more_is_an_error_in_words():
    # One flip of 2,000 in a header made the request a number, and its error a traceback.
    key: Any = (48, "")
    assert "(request '48')" in str(misled(key))


@pytest.mark.parametrize(
    "change",
    [
        "cache_read_tokens = 65", "cache_write_tokens = 1", "cache_read_tokens = NULL",
        "prompt_tokens = 101", "checksum = NULL",
        # A bit flipped in a row's header moves its columns by one: the last is gone.
        "text = 'stop', checksum = NULL",
    ],
)  # fmt: skip
def test_what_was_changed_is_damaged(tmp_path, change):
    path = tmp_path / "l.sqlite"
    with SqliteLedger(path) as ledger:
        append(ledger, replace(BASE, prompt_tokens=100, cache_read_tokens=64))
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE attempts SET {change}")
    connection.close()
    with SqliteLedger(path) as ledger, pytest.raises(BadInput, match="damaged"):
        list(ledger.attempts())


class Still(Clocks):
    """A clock that a test moves on."""

    now = 1_000.0

    def monotonic(self):
        return self.now

    def own(self):
        return self.now


def elsewhere(monkeypatch, cls, clocks, name="away"):
    """A ledger's class for a process of another machine."""
    away = replace(Lease.this_process(), name=name, host="far away")
    made = type("Elsewhere", (cls,), {"_clocks": clocks})
    monkeypatch.setattr(Lease, "this_process", classmethod(lambda cls: away))
    return made


@pytest.mark.parametrize("step", [-1e8, 1e8])
def test_another_hosts_clock_decides_nothing(tmp_path, monkeypatch, step):
    # One that was ahead held its claims for years after it was gone; one that was behind lost
    # them while it was at work, and both asked.
    path, clocks = tmp_path / "l.sqlite", Still()
    monkeypatch.setattr(time, "time", lambda: 1.7e9 + step)
    with monkeypatch.context() as patched:
        first = elsewhere(patched, SqliteLedger, Still())(path)
    first.claim([KEY], after=0).result(20)
    with type("Here", (SqliteLedger,), {"_clocks": clocks})(path) as second:
        for _ in range(3):
            assert second.claim([KEY], after=0).result(20).held == [KEY]
            clocks.now += Lease.ends_after_s() - 1
            first._group.submit(first._lease.renew).result(20)
        assert second.claim([KEY], after=0).result(20).held == [KEY]
        clocks.now += Lease.ends_after_s() - 1
        assert second.claim([KEY], after=0).result(20).held == [KEY]
        clocks.now += 1
        assert second.claim([KEY], after=0).result(20).granted == [KEY]
    first.close()


def test_a_lease_that_was_ended_never_comes_back(opened, monkeypatch):
    # A process that was stopped for longer than its lease went on with what others had taken.
    away = replace(Lease.this_process(), host="far away")
    with monkeypatch.context() as patched:
        patched.setattr(Lease, "this_process", classmethod(lambda cls: away))
        first = opened()
    other = ("b" * 32, 0)
    assert first.claim([KEY, other], after=0).result(20).granted == [KEY, other]
    assert first.holds([KEY, other])
    second = opened()
    with monkeypatch.context() as patched:
        patched.setattr(Lease, "LEASE_S", 0.0)
        patched.setattr(Lease, "ends_after_s", lambda: 0.0)
        assert not first.holds([KEY])  # by its own clock, before it has heard of the other
        assert second.claim([KEY], after=0).result(20).granted == [KEY]
    first._group.submit(first._lease.renew).result(20)
    # Its other claims went with the lease: it was ended as a whole.
    assert not first.holds([KEY])
    assert not first.holds([other])
    claim = first.claim([KEY, other], after=0).result(20)
    assert (claim.held, claim.granted) == ([KEY], [other])
    # The answer that was on its way is kept, and takes no claim from who holds it now.
    append(first, BASE)
    assert [row.text for row in second.attempts()] == ["42"]
    assert second.holds([KEY])
    assert first.claim([KEY], after=10).result(20).held == [KEY]


def test_the_dead_of_another_pid_namespace_are_not_looked_up(opened, monkeypatch):
    # Two containers with one host name and one boot: each took the other's claims at once.
    here = Lease.this_process()
    name, boot, *spaces = here.host.split()
    for host in (" ".join([name, boot, *("1" + one for one in spaces)]), f"{name} {boot}"):
        gone = replace(here, name=host, host=host, pid=2**22 + 1, started="1")
        with monkeypatch.context() as patched:
            patched.setattr(Lease, "this_process", classmethod(lambda cls, gone=gone: gone))
            first = opened()
        key = (host, 0)
        assert first.claim([key], after=0).result(20).granted == [key]
        assert opened().claim([key], after=0).result(20).held == [key]


def test_the_servers_clock_alone_ends_no_lease(postgres, monkeypatch):
    # A server that woke up, or whose clock was set: every deadline had passed at once.
    clocks = Still()
    with monkeypatch.context() as patched:
        first = elsewhere(patched, PostgresLedger, Still())(postgres)
    first.claim([KEY], after=0).result(20)
    with type("Here", (PostgresLedger,), {"_clocks": clocks})(postgres) as second:

        def moved(seconds):
            second._group.submit(
                lambda run: run(
                    "UPDATE owners SET seen = seen + ? WHERE host = 'far away'",
                    (seconds,),
                )
            ).result(20)

        moved(-10 * Lease.ends_after_s())
        assert second.claim([KEY], after=0).result(20).held == [KEY]
        # Nor does this machine's alone: by the server's the lease runs.
        moved(10 * Lease.ends_after_s())
        assert second.claim([KEY], after=0).result(20).held == [KEY]
        clocks.now += 2 * Lease.ends_after_s()
        assert second.claim([KEY], after=0).result(20).held == [KEY]
        # Both agree; a deadline that no renewal can have written counts for nothing.
        moved(-2 * Lease.ends_after_s())
        second.claim([KEY], after=0).result(20)
        clocks.now += Lease.ends_after_s()
        assert second.claim([KEY], after=0).result(20).granted == [KEY]
    first.close()


def test_hosts_that_share_a_folder_share_no_memory(tmp_path, monkeypatch):
    # WAL keeps its index in memory that two hosts do not share: answers could be lost.
    path = tmp_path / "l.sqlite"
    with SqliteLedger(path) as before:
        before.remember({"a": "1"})
        monkeypatch.setattr(sqlite, "is_network", lambda folder: True)
        monkeypatch.setattr(sqlite, "_PATIENCE_S", 1)
        with pytest.raises(BadInput, match="network file system") as caught:
            SqliteLedger(path)
        assert "PostgreSQL" in caught.value.next_step
    with SqliteLedger(path) as ledger, SqliteLedger(path) as other:
        ledger.remember({"b": "2"})
        assert other.recall("") == {"a": "1", "b": "2"}
        assert not path.with_name("l.sqlite-shm").exists()
    monkeypatch.setattr(sqlite, "is_network", lambda folder: False)
    with SqliteLedger(path) as ledger:
        assert ledger.recall("") == {"a": "1", "b": "2"}


#: Letters of `CREATE TABLE attempts` that SQLite does not open without.
NEEDED = (0, 2, 4, 7, 8, 10, 12)


@pytest.mark.parametrize("at", NEEDED)
def test_a_damaged_schema_is_named(at: int, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    SqliteLedger(path).close()
    data = bytearray(path.read_bytes())
    where = data.index(b"CREATE TABLE attempts")
    data[where + at] = 0xA0
    path.write_bytes(bytes(data))
    with pytest.raises(BadInput, match="the ledger cannot be used"):
        SqliteLedger(path).close()
