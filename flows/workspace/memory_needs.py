"""How much memory a build, a verification and an audit work on: said before they begin.

The figures are four fifths of peaks of anonymous memory (`flows/SCALE.md`): an estimate that is too
high would refuse what fits.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import machine as memory

#: Bytes: of the libraries, of each answer in a build, of each letter of a recorded file, of each
#: label that is verified in blocks and the most that all of them take, of each answer of a release
#: and each letter of a file that is audited.
BASE, ANSWER, LETTER = 150_000_000, 900, 3
LABEL, LABELS = 350, 3_200_000_000
AUDITED_ANSWER, AUDITED_LETTER = 1_800, 6


def check_build(answers: int, files: Iterable[Path] = ()) -> None:
    """Stop a build that does not fit, before anything is asked or imported.

    Args:
        answers: Questions × models × samples.
        files: Recorded answers that it reads.

    Raises:
        OutOfMemory: as `memory.check` does.
    """
    need = BASE + ANSWER * answers + LETTER * sum(map(_size, files))
    memory.check(
        f"a build of {answers:,} answers",
        need,
        next_step="build where there is more memory, or fewer questions or models: `limit:` of a "
        "source, `--scale 0.1`, a smaller pool",
    )


def check_verify(manifest: Any) -> None:
    """Stop a verification that does not fit: its findings would be of this machine.

    Raises:
        OutOfMemory: as `memory.check` does.
    """
    labels = manifest.tables["labels"].rows if "labels" in manifest.tables else 0
    need = BASE + min(LABEL * labels, LABELS)
    memory.check(f"a verification of {labels:,} labels", need)


def check_audit(path: Path) -> None:
    """Stop an audit of results that do not fit.

    Raises:
        OutOfMemory: as `memory.check` does.
    """
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    letters = sum(map(_size, files))
    memory.check(f"an audit of {letters / 1e6:,.0f} MB", BASE + AUDITED_LETTER * letters)


def check_audit_release(answers: int) -> None:
    """Stop an audit of a release that does not fit.

    Raises:
        OutOfMemory: as `memory.check` does.
    """
    memory.check(f"an audit of {answers:,} answers", BASE + AUDITED_ANSWER * answers)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # whoever reads it says so
