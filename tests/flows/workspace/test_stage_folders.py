"""Stage outputs: reused when nothing changed, whole or absent, swept after a kill."""

from __future__ import annotations

import errno
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from routeyard.flows.workspace import StageWork, find_stage, run_stage
from routeyard.pipelines.common.errors import DiskFull

ROOT = Path(__file__).parents[3]


MADE: list[Path] = []


def make(folder: Path) -> dict[str, int]:
    MADE.append(folder)
    (folder / "x.txt").write_text("made")
    return {"n": 1}


def run(root: Path, **change: object):
    given = {"parameters": {"a": 1}, "inputs": {"q": "f1"}, "make": make}
    return run_stage(root, "stage", StageWork(**(given | change)))


def test_the_same_inputs_are_made_once(tmp_path: Path) -> None:
    before = len(MADE)
    first, second = run(tmp_path), run(tmp_path)
    assert len(MADE) == before + 1
    assert (first.reused, second.reused) == (False, True)
    assert first.fingerprint == second.fingerprint
    assert second.figures == {"n": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"a": 2}},
        {"inputs": {"q": "f2"}},
        {"uses": ["routeyard.pipelines.common.errors"]},
    ],
)
def test_any_change_makes_it_again(tmp_path: Path, change: dict[str, object]) -> None:
    assert run(tmp_path).fingerprint != run(tmp_path, **change).fingerprint


def test_a_stage_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> dict[str, int]:
        make(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(DiskFull) as caught:
        run(tmp_path, make=fail)
    assert "No space" in str(caught.value.__cause__)
    assert not list((tmp_path / "stages" / "stage").iterdir())
    assert not run(tmp_path).reused  # and the workspace is usable


def test_what_a_killed_process_left_is_swept_but_not_what_another_host_makes(
    tmp_path: Path,
) -> None:
    begun = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from routeyard.flows.workspace import StageWork, run_stage\n"
        "def make(folder):\n    print('begun', flush=True); time.sleep(60)\n"
        "run_stage(Path(sys.argv[1]), 'stage', StageWork({}, {}, make))\n"
    )
    words = [sys.executable, "-c", begun, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT) as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        (left,) = (tmp_path / "stages" / "stage").glob(".*[!k]")  # beside its lock
        killed.kill()
    # On shared storage another host's process may have any number.
    host, pid = left.name.split(".")[-2:]
    elsewhere = left.with_name(f".abc.def.{'0' * len(host)}.{pid}")
    elsewhere.mkdir()
    run(tmp_path)
    assert not left.exists()
    assert elsewhere.exists()


def test_without_locks_the_faster_of_two_makers_wins_and_both_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where the file system has locks, the second one waits (tests/silent/test_two_builds.py).
    def no_locks(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no locks")

    monkeypatch.setattr("fcntl.flock", no_locks)

    def overtaken(folder: Path) -> dict[str, int]:
        if not MADE:
            MADE.append(folder)
            run(tmp_path, make=overtaken)
        return make(folder)

    MADE.clear()
    assert run(tmp_path, make=overtaken).figures == {"n": 1}
    assert len(list((tmp_path / "stages" / "stage").iterdir())) == 1


def test_looking_for_a_stage_makes_nothing(tmp_path: Path) -> None:
    made_of = StageWork({"a": 1}, {"q": "f1"}, make).made_of("stage")
    assert find_stage(tmp_path, made_of) is None
    assert made_of["inputs"] == {"q": "f1"}
    assert not (tmp_path / "stages").exists()
    assert find_stage(tmp_path, made_of) is None
    done = run(tmp_path)
    assert find_stage(tmp_path, made_of) == done.model_copy(update={"reused": True})


def test_a_lock_goes_that_was_left_after_its_stage_was_there(tmp_path: Path) -> None:
    """A `kill -9` between the two left an empty file that no later build removed."""
    done = run(tmp_path)
    lock = Path(done.folder).with_name(f".{done.fingerprint}.lock")
    with lock.open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        assert run(tmp_path).reused
        assert lock.exists()  # somebody has a turn
    assert run(tmp_path).reused
    assert not lock.exists()


def test_the_reason_names_the_module_that_changed(tmp_path: Path) -> None:
    # A change in a shared module used to be told as "never run".
    from routeyard.flows.build import why_stale

    run(tmp_path)
    made_of = StageWork({"a": 3}, {"q": "f1"}, make, ["routeyard.pipelines.common.errors"]).made_of(
        "stage"
    )
    assert find_stage(tmp_path, made_of) is None
    why = why_stale(made_of, tmp_path)
    assert "parameter 'a' changed" in why
    assert "code 'routeyard.pipelines.common.errors' changed" in why
    assert why_stale({**made_of, "stage": "other"}, tmp_path) == "never run"
    # What another recipe left in the folder is no earlier output of this one.
    assert why_stale(made_of, tmp_path, ran=False) == "never run for this recipe"


def _truncate(folder: Path) -> None:
    (folder / "x.txt").write_text("ma")


def _flip(folder: Path) -> None:
    (folder / "x.txt").write_text("mAde")


def _remove(folder: Path) -> None:
    (folder / "x.txt").unlink()


def _figure(folder: Path) -> None:
    path = folder / "stage.json"
    path.write_text(path.read_text().replace('"n": 1', '"n": 2'))


def _record(folder: Path) -> None:
    (folder / "stage.json").write_text("{")


@pytest.mark.parametrize("damage", [_truncate, _flip, _remove, _figure, _record])
def test_a_damaged_stage_is_made_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    # A flipped byte used to go into the release, and half a record was a traceback.
    first = run(tmp_path)
    damage(Path(first.folder))
    again = run(tmp_path)
    assert not again.reused
    assert again.figures == {"n": 1}
    assert (Path(again.folder) / "x.txt").read_text() == "made"
    assert run(tmp_path).reused
    assert len(list((tmp_path / "stages" / "stage").iterdir())) == 1


@pytest.mark.parametrize("leads_to", ["nowhere", "theirs", "stages"])
def test_a_stage_that_is_a_link_is_made_again_and_what_it_leads_to_is_left(
    tmp_path: Path, leads_to: str
) -> None:
    # A link that led nowhere was a traceback of the rename at the end of the stage.
    folder = Path(run(tmp_path).folder)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/precious").write_text("kept")
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path / leads_to)
    again = run(tmp_path)
    assert not again.reused
    assert not folder.is_symlink()
    assert (folder / "x.txt").read_text() == "made"
    assert (tmp_path / "theirs/precious").read_text() == "kept"
    assert [one.name for one in folder.parent.iterdir()] == [folder.name]


def test_half_a_record_beside_is_no_reason_to_fail(tmp_path: Path) -> None:
    from routeyard.flows.build import why_stale

    _record(Path(run(tmp_path).folder))
    made_of = {"stage": "stage", "parameters": {}, "inputs": {}, "code": {}}
    assert why_stale(made_of, tmp_path) == "its output was damaged"
