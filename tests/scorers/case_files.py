"""Reads `cases/*.txt`: one case a line, its trap last.

`# …` is a remark; `@ name: value` holds for the lines below it (`scorer`,
`question`, `choices`, `metadata` as JSON, `truncated`). `⏎` is a line break. A short
output of `numeric` or `math` without a mark stands in `Answer: …` or in a box.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from routeyard.pipelines.label.scorers.scorer import ScoringInput

FOLDER = Path(__file__).parent / "cases"
OUTCOMES = {"=": "correct", "!": "incorrect", "?": "abstain", "x": "error"}


@dataclass(frozen=True)
class Case:
    scorer: str
    asked: ScoringInput
    output: str
    wanted: str
    trap: str
    both_ways: bool = False

    def __str__(self) -> str:
        return f"{self.scorer}: {self.trap}"


def cases() -> list[Case]:
    made: list[Case] = []
    for path in sorted(FOLDER.glob("*.txt")):
        settings: dict[str, str] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("@ "):
                name, _, value = line[2:].partition(":")
                settings[name.strip()] = value.strip().replace("⏎", "\n")
            elif line.strip() and not line.startswith("#"):
                made.append(_case(line.replace("⏎", "\n"), settings))
    return made


def _case(line: str, settings: dict[str, str]) -> Case:
    scorer = settings["scorer"]
    choices = tuple(c.strip() for c in settings.get("choices", "").split(" ¦ ") if c.strip())
    fields = line.split(" ¦ ")
    if scorer == "mcq":
        output, wanted, trap = fields
        reference = wanted.rstrip("~?") or "A"
    else:
        reference, output, wanted, trap = fields
        wanted = OUTCOMES[wanted]
    asked = ScoringInput(
        settings.get("question", ""),
        (reference,),
        choices,
        json.loads(settings.get("metadata") or "{}"),
        truncated=settings.get("truncated") == "true",
    )
    return Case(scorer, asked, _framed(scorer, output, wanted), wanted, trap)


_MARKS = ("\n", "nswer", "####", "boxed", "答", "ntwort", "$", "**")


def _framed(scorer: str, output: str, wanted: str) -> str:
    bare = len(output) < 140 and not any(mark in output for mark in _MARKS)
    if scorer == "math" and (bare or (output.count("\\") and "boxed" not in output)):
        return f"Hence \\boxed{{{output}}}." if "nswer:*" not in output else output
    return output
