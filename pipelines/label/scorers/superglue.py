"""SuperGLUE's canonical metrics per item (Wang et al. 2019): a class, or for ReCoRD an entity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from routeyard.pipelines.label.scorers.graded import graded, normalise, token_f1
from routeyard.pipelines.label.scorers.patterns import table
from routeyard.pipelines.label.scorers.reading import short_answer
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

_TASKS = table("superglue")
CLASSES: Mapping[str, Mapping[str, Sequence[str]]] = {
    task: row["classes"] for task, row in _TASKS.items()
}


def _names(task: str, choices: Sequence[str]) -> dict[str, list[str]]:
    names = {
        name: [normalise(word.replace("_", " ")) for word in words]
        for name, words in CLASSES[task].items()
    }
    for index, choice in enumerate(choices[:2] if task == "copa" else (), start=1):
        names[str(index)].append(normalise(choice))
    return names


def class_of(task: str, text: str, choices: Sequence[str] = ()) -> str | None:
    """Class that a short answer names; None when it names none or several."""
    answer = normalise(text.replace("_", " "))
    names = _names(task, choices)
    exact = [name for name, words in names.items() if answer and answer in words]
    if len(exact) == 1:
        return exact[0]
    opening = answer.partition(" ")[0]
    for name, words in names.items():
        if opening in words and opening in ("yes", "no", "true", "false"):
            return name
    # The longest name counts: "not entailment" also holds "entailment".
    result = {
        name: max(len(item) for item in named)
        for name, words in names.items()
        if (named := [word for word in words if len(word) > 1 and _contains(answer, word)])
    }
    best = [name for name, size in result.items() if size == max(result.values())]
    mask = len(result) == 1 or (task == "rte" and len(result) == 2)
    return best[0] if mask and len(best) == 1 else None


def _contains(text: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(words)}\b", text) is not None


def _classified(task: str) -> Scorer:
    def read(asked: ScoringInput, output: str) -> ScoreResult:
        wanted = {class_of(task, item, asked.choices) for item in asked.references} - {None}
        if not wanted:
            return ScoreResult("error", reason=f"no reference is a class of {task}")
        result = short_answer(output, truncated=asked.truncated)
        got = class_of(task, result[0][:400], asked.choices) if result else None
        if result is None or got is None:
            return ScoreResult("abstain", reason=f"names no single class of {task}")
        _, span, conflict = result
        right = got in wanted
        return ScoreResult.of(right, output[slice(*span)], span, f"class {got}", conflict)

    return Scorer(f"superglue_{task}", "12", read, instruction=_TASKS[task]["instruction"])


BOOLQ, CB, COPA, MULTIRC, RTE, WIC, WSC = map(
    _classified, ("boolq", "cb", "copa", "multirc", "rte", "wic", "wsc")
)
#: ReCoRD: the score is token F1, `correct` is exact match, best reference each.
RECORD = graded(
    "superglue_record",
    "13",
    "F1",
    token_f1,
    instruction='End with one line of the form "Answer: ...", naming the one entity.',
)
