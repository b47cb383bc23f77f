"""SuperGLUE's canonical metrics per item (Wang et al. 2019): a class, or for ReCoRD an entity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from routeyard.pipelines.scorers.comparison.words import normalise, tokens
from routeyard.pipelines.scorers.extraction.short_answer import short_answer
from routeyard.pipelines.scorers.f1 import token_f1
from routeyard.pipelines.scorers.patterns import table
from routeyard.pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput

_TASKS = table("superglue")
CLASSES: Mapping[str, Mapping[str, Sequence[str]]] = {
    task: row["classes"] for task, row in _TASKS.items()
}


def _class_names(task: str, choices: Sequence[str]) -> dict[str, list[str]]:
    names = {
        name: [normalise(word.replace("_", " ")) for word in words]
        for name, words in CLASSES[task].items()
    }
    for index, choice in enumerate(choices[:2] if task == "copa" else ()):
        names[str(index + 1)].append(normalise(choice))
    return names


def class_of(task: str, text: str, choices: Sequence[str] = ()) -> str | None:
    """Class that a short answer names; None when it names none or several."""
    said = normalise(text.replace("_", " "))
    if not said:
        return None
    names = _class_names(task, choices)
    exact = [name for name, words in names.items() if said in words]
    if len(exact) == 1:
        return exact[0]
    # The longest name counts: "not entailment" also holds "entailment".
    found: dict[str, int] = {}
    for name, words in names.items():
        lengths = [len(w) for w in words if len(w) > 1 and re.search(rf"\b{re.escape(w)}\b", said)]
        if lengths:
            found[name] = max(lengths)
    best = [name for name, size in found.items() if size == max(found.values())]
    opening = said.split()[0]
    for name, words in names.items():
        if opening in words and opening in ("yes", "no", "true", "false"):
            return name
    if task == "rte" and len(found) == 2:
        return best[0] if len(best) == 1 else None
    return best[0] if len(found) == 1 else None


def _classified(task: str) -> Scorer:
    def read(asked: ScoringInput, output: str) -> ScoreResult:
        wanted = {class_of(task, one, asked.choices) for one in asked.references} - {None}
        if not wanted:
            return ScoreResult("error", reason=f"no reference is a class of {task}")
        found = short_answer(output, truncated=asked.truncated)
        got = class_of(task, found[0][:400], asked.choices) if found else None
        if found is None or got is None:
            return ScoreResult("abstain", reason=f"names no single class of {task}")
        _, span, conflict = found
        right = got in wanted
        return ScoreResult.of(right, output[slice(*span)], span, f"class {got}", conflict)

    return Scorer(f"superglue_{task}", "9", read, instruction=_TASKS[task]["instruction"])


def _record(asked: ScoringInput, output: str) -> ScoreResult:
    """ReCoRD: the score is token F1, `correct` is exact match, best reference each."""
    wanted = [one for one in asked.references if normalise(one)]
    if not wanted:
        return ScoreResult("error", reason="no reference names an entity")
    found = short_answer(output, truncated=asked.truncated)
    if found is None:
        return ScoreResult("abstain", reason="no answer to compare")
    answer, span, conflict = found
    score = max(token_f1(tokens(answer), tokens(one)) for one in wanted)
    right = any(normalise(answer) == normalise(one) for one in wanted)
    reason = f"F1 {score:.3f}, exact match {right}"
    return ScoreResult.of(right, output[slice(*span)], span, reason, conflict, score)


BOOLQ = _classified("boolq")
CB = _classified("cb")
COPA = _classified("copa")
MULTIRC = _classified("multirc")
RTE = _classified("rte")
WIC = _classified("wic")
WSC = _classified("wsc")
RECORD = Scorer(
    "superglue_record",
    "9",
    _record,
    instruction='End with one line of the form "Answer: ...", naming the one entity.',
)
