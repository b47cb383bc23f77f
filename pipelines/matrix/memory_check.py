"""Whether an evaluation fits into memory: said before anything is read, with what it would need."""

from __future__ import annotations

from routeyard.pipelines import memory
from routeyard.pipelines.matrix import memmap

#: Bytes that an evaluation works on for each question beside what is on disk, and how many
#: matrices of a number for each question and model it holds at once, which are in memory while
#: they are small: measured at 9, 27 and 100 million labels (`flows/SCALE.md`).
EACH, MATRICES = 400, 20
#: Bytes for each question and model where something works on whole matrices in memory: routers
#: that are trained, the zoo's cells, studies.
PAIR = 60


def check_fits(questions: int, models: int, width: int = 0, *, whole: bool = False) -> None:
    """Stop before a release that does not fit is read.

    Args:
        width: numbers in the embedding of a question; routers that are trained hold all of
            them at once.
        whole: something works on whole matrices in memory, as what reads embeddings does.

    Raises:
        OutOfMemory: it needs more memory than there is; says how much, and what to do.
    """
    memory.check(
        f"an evaluation of {questions:,} questions × {models} models",
        needed(questions, models, width, whole=whole),
        next_step="evaluate where there is more memory, or build a release with fewer "
        "questions or models: the rule `sample` under `curate`, or a smaller `pool`",
    )


def needed(questions: int, models: int, width: int = 0, *, whole: bool = False) -> int:
    """Bytes that an evaluation works on at once; arguments as in `check_fits`."""
    matrix = min(8 * questions * models, memmap.LARGE)
    pairs = PAIR * models if whole or width else 0
    return questions * (EACH + pairs + 4 * width) + MATRICES * matrix
