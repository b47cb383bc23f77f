"""Stage outputs: reused when nothing changed, whole or absent, swept after a kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flows.workspace import PROBING, Stale, code_version, run_stage


def make(folder: Path) -> dict[str, int]:
    (folder / "x.txt").write_text("made")
    return {"n": 1}


def run(root: Path, **change: object):
    given = {"parameters": {"a": 1}, "inputs": {"q": "f1"}, "rooms": ("schemas",), "make": make}
    return run_stage(root, "stage", **(given | change))


def test_the_same_inputs_are_made_once(tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path, make=lambda _: pytest.fail("made again"))
    assert (first.reused, second.reused) == (False, True)
    assert first.fingerprint == second.fingerprint
    assert second.figures == {"n": 1}


@pytest.mark.parametrize(
    "change", [{"parameters": {"a": 2}}, {"inputs": {"q": "f2"}}, {"rooms": ("pipelines.errors",)}]
)
def test_any_change_makes_it_again(tmp_path: Path, change: dict[str, object]) -> None:
    assert run(tmp_path).fingerprint != run(tmp_path, **change).fingerprint


def test_a_stage_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> dict[str, int]:
        make(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        run(tmp_path, make=fail)
    assert not list((tmp_path / "stages" / "stage").iterdir())
    assert not run(tmp_path).reused  # and the workspace is usable


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / "stages" / "stage" / f".abc.{gone.pid}"
    left.mkdir(parents=True)
    run(tmp_path)
    assert not left.exists()


def test_probing_makes_nothing_and_says_what_is_stale(tmp_path: Path) -> None:
    token = PROBING.set(True)
    try:
        with pytest.raises(Stale) as caught:
            run(tmp_path)
    finally:
        PROBING.reset(token)
    assert caught.value.made_of["inputs"] == {"q": "f1"}
    assert not (tmp_path / "stages").exists()


def test_code_versions_differ_by_room() -> None:
    assert code_version("schemas") != code_version("pipelines.label")
    assert code_version("schemas") == code_version("schemas")
