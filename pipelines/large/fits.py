"""Whether an evaluation fits into memory: said before anything is read, with what it would need."""

from __future__ import annotations

from pathlib import Path

from pipelines.errors import BadInput

#: Bytes that an evaluation works on for each question, and for each question and model, beside
#: what lies on disk: measured at 1 million questions × 27 models (`flows/SCALE.md`).
EACH, PAIR = 550, 60

_MEMORY = Path("/proc/meminfo")
#: Limits of a container, of both versions of control groups.
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def check_fits(questions: int, models: int, width: int = 0) -> None:
    """Stop before a release that does not fit is read.

    Args:
        width: numbers in the embedding of a question; routers that are trained hold all of
            them at once.

    Raises:
        BadInput: it needs more memory than there is; says how much, and what to do.
    """
    need, have = needed(questions, models, width), available()
    if have is not None and need > have:
        raise BadInput(
            f"an evaluation of {questions:,} questions × {models} models works on about "
            f"{need / 1e9:.1f} GB at once, and {have / 1e9:.1f} GB of memory can be had",
            next_step="evaluate where there is more memory, or build a release with fewer "
            "questions or models: the rule `sample` under `curate`, or a smaller `pool`",
        )


def needed(questions: int, models: int, width: int = 0) -> int:
    """Bytes that an evaluation works on at once."""
    return questions * (EACH + PAIR * models + 4 * width)


def available() -> int | None:
    """Bytes of memory that can be had; None where the system does not say."""
    free = [line for line in _text(_MEMORY).splitlines() if line.startswith("MemAvailable:")]
    found = [int(line.split()[1]) * 1024 for line in free]
    found += [int(text) for path in _LIMITS if (text := _text(path).strip()).isdigit()]
    return min(found, default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
