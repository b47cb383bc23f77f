"""`routeyard score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.results import Output


def command(
    file: Annotated[Path | None, typer.Argument()] = None,
    scorer: str | None = None,
    output: str | None = None,
    reference: list[str] | None = None,
    choice: list[str] | None = None,
    question: str = "",
) -> Output:
    """Score answers with a rule scorer and show what it read.

    Each line of the file is an object with `scorer`, `references`, `output` and,
    where the scorer needs them, `question`, `choices` and `metadata`. For each
    line one object is printed: `outcome` (`correct`, `incorrect`, `abstain`,
    `error`), `score` (in [0, 1]: F1, METEOR, …; null where nothing was read),
    `extracted`, `span` (characters of the output) and `reason`; with `--json` all
    in one list. Several references are alternatives: one of them suffices.

    Examples:

        routeyard score answers.jsonl

        routeyard score --scorer numeric --reference 18 --output 'So she makes $18. #### 18'

        echo '{"references": ["B"], "choices": ["Rome", "Paris"], "output": "(B)"}' |
        routeyard score --scorer mcq

    Args:
        file: JSONL of answers; standard input when left out or `-`.
        scorer: Scorer for every line, whatever the line names.
        output: One answer to score, instead of a file.
        reference: Accepted answer of `--output`; may be repeated.
        choice: Option of `--output`'s question, in order; repeat it.
        question: Question of `--output`.
    """
    import json
    from itertools import chain

    from routeyard.pipelines.errors import BadInput
    from routeyard.pipelines.scorers.score_answers import one_answer, rows, score_row

    if output is not None:
        answers = iter([one_answer(output, reference or [], choice or [], question)])
    else:
        answers = rows(None if file is None or str(file) == "-" else file)
    first = next(answers, None)
    if first is None:
        raise BadInput(
            "there is no answer to score",
            where="standard input" if file is None or str(file) == "-" else str(file),
            next_step="give --output TEXT --reference TEXT, or one object a line",
        )
    found = (score_row(row, scorer) for row in chain([first], answers))
    return Output(found, (json.dumps(one, ensure_ascii=False) for one in found))
