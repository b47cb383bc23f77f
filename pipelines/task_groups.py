"""Groups of tasks: those known by name, and which questions match a list of patterns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Patterns (lower case) of the out-of-distribution groups that can be asked for by name.
_NAMED: dict[str, tuple[str, ...]] = {
    "math": (
        "math", "gsm8k", "hendrycks_math", "aqua_rat", "mathqa", "asdiv", "mawps", "svamp",
        "abstract_algebra", "college_mathematics", "elementary_mathematics",
        "high_school_mathematics", "high_school_statistics", "formal_logic",
    ),
    "medical": (
        "health", "medqa", "medmcqa", "pubmedqa", "bioasq", "anatomy", "clinical_knowledge",
        "college_medicine", "medical_genetics", "nutrition", "professional_medicine", "virology",
        "human_aging",
    ),
    "stem": (
        "math", "physics", "chemistry", "biology", "engineering", "computer science", "gsm8k",
        "abstract_algebra", "astronomy", "college_biology", "college_chemistry",
        "college_computer_science", "college_mathematics", "college_physics", "computer_security",
        "conceptual_physics", "electrical_engineering", "elementary_mathematics",
        "high_school_biology", "high_school_chemistry", "high_school_computer_science",
        "high_school_mathematics", "high_school_physics", "high_school_statistics",
        "machine_learning",
    ),
}  # fmt: skip

#: CSCR, Table 6, the categories its routers are trained on; the rest is its Non-STEM.
_CSCR_STEM: tuple[str, ...] = (
    "asdiv", "gsm8k", "medmcqa", "mathqa", "piqa", "logiqa", "gpqa_*", "mmlu_college_medicine",
    "mmlu_astronomy", "mmlu_conceptual_physics", "mmlu_college_computer_science",
    "mmlu_college_biology", "mmlu_electrical_engineering", "mmlu_medical_genetics",
    "mmlu_college_physics", "mmlu_high_school_chemistry", "mmlu_computer_security",
    "mmlu_clinical_knowledge", "mmlu_virology", "mmlu_machine_learning",
    "mmlu_college_mathematics", "mmlu_elementary_mathematics", "mmlu_professional_medicine",
    "mmlu_college_chemistry", "mmlu_high_school_biology", "mmlu_anatomy",
    "mmlu_high_school_statistics", "mmlu_high_school_physics",
    "mmlu_high_school_computer_science", "mmlu_high_school_mathematics",
)  # fmt: skip

#: Subjects of MMLU are tasks of their own in the catalogue and in EmbedLLM, by this prefix.
OOD_GROUPS: dict[str, tuple[str, ...]] = {
    name: (*listed, *(f"mmlu_{task}" for task in listed)) for name, listed in _NAMED.items()
} | {"cscr-stem": _CSCR_STEM}


def members(
    patterns: Sequence[str], columns: Iterable[Any], metadata: Sequence[str | None] = ()
) -> NDArray[np.bool_]:
    """(n,) questions that a pattern holds, in any case.

    Args:
        patterns: names or patterns (`mmlu_*`) of the values in `columns`, or
            `field=pattern` for a field of the metadata (`subject=*physics`).
        columns: task, domain and source of each question, (n,) each.
        metadata: JSON objects of the n questions; none when not known.
    """
    asked = [pattern.lower().partition("=") for pattern in patterns]
    plain = [name for name, equals, _ in asked if not equals]
    fields = [(name.strip(), pattern.strip()) for name, equals, pattern in asked if equals]
    listed = [list(map(str, column)) for column in columns]
    hit = np.zeros(len(listed[0]), dtype=bool)
    for values in listed:
        held = {v for v in set(values) if v and any(fnmatchcase(v.lower(), p) for p in plain)}
        hit |= np.fromiter((value in held for value in values), dtype=bool, count=len(values))
    if not fields:
        return hit
    for row, text in enumerate(metadata):
        found: Any = json.loads(text) if text else {}
        if isinstance(found, dict):
            lowered = {str(key).lower(): str(value).lower() for key, value in found.items()}
            hit[row] |= any(fnmatchcase(lowered.get(name, ""), p) for name, p in fields)
    return hit
