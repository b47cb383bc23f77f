"""Language models as judges; blind to which model answered.

* `rating`: a number from 1 (or 0) to 10, read from `[[n]]` or `Rating: [n]`; score
  (n − lowest) / (10 − lowest).
* `relative`: y = 1[S_model ≥ S_reference] on the same query, as in the
  triple-perspective routing paper.
* `reference`: `[[1]]` or `[[0]]` against the reference answers.
* `choice`: which of all answers to a query are right, several winners allowed (confidence-driven
  routing's response quality). Asked in a seeded order and its reverse; abstains where they differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Unpack

import pyarrow as pa

from routeyard.pipelines.calls.prompts import PromptResults, request_for
from routeyard.pipelines.calls.request import Request
from routeyard.pipelines.label.judge_replies import LETTERS, decision_in, rating_in, winners_in
from routeyard.pipelines.label.model_requests import PromptRun, ask_model, settings_of
from routeyard.pipelines.label.templates import Template, load_template
from routeyard.pipelines.label.verdict_matrix import ResponseKey
from routeyard.pipelines.label.verdicts import (
    AnswerToJudge,
    Costs,
    FiledVerdicts,
    answers,
    failure,
    verdict,
    verdict_table,
    verdicts_from,
)
from routeyard.pipelines.ledger.attempt import Attempt
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.verifier import Judge

_NAMES = frozenset({"question", "answer", "answers", "references", "lowest"})
#: Of several answers to one question; `numbered` lists them as LLM 1, LLM 2, ….
_LISTED = frozenset({"question", "answer", "answers", "references", "numbered"})


def judge(
    queries: pa.Table,
    responses: pa.Table,
    by: Judge,
    ledger: Ledger,
    *,
    only: Iterable[ResponseKey] | None = None,
    **how: Unpack[PromptRun],
) -> FiledVerdicts:
    """Verdicts of `judge:<name>`; figures count prompts asked and failed.

    For `relative`, `responses` must hold the reference model's; for `choice`, all
    answers of a query are shown together, also those that `only` leaves out.
    """
    kept = None if only is None else set(only)
    ask = partial(ask_model, served=by, ledger=ledger, purpose="judge", **how)
    if by.kind == "choice":
        return _choose(list(answers(queries, responses)), by, ask, kept)
    kind = "reference" if by.kind == "reference" else "rating"
    if kind == "rating" and by.lowest == 0:
        kind = "rating-from-zero"
    template = load_template(kind, by.template, names=_NAMES)
    shown = _about(list(answers(queries, responses)), by, kept)
    asked = [(answer, _request(template, answer, by)) for answer in shown]
    read = decision_in if by.kind == "reference" else partial(rating_in, lowest=by.lowest)
    results = ask([request for _, request in asked], read=read)
    bars = _bars(by, asked, results) if by.kind == "relative" else None
    version = f"{by.kind}-{template.version}"
    said = partial(_said, by, bars)
    rows = verdicts_from(asked, results, f"judge:{by.name}", version, said)
    return _filed(rows, results, kept)


def _about(
    shown: list[AnswerToJudge], by: Judge, kept: set[ResponseKey] | None
) -> list[AnswerToJudge]:
    """Answers to ask about; for `relative` the reference model's answers to the same queries."""
    if kept is None:
        return shown
    queries = {key[0] for key in kept} if by.kind == "relative" else set()
    return [a for a in shown if a.key in kept or (_is_reference(a, by) and a.key[0] in queries)]


def _filed(
    rows: list[dict[str, Any]], results: PromptResults, kept: set[ResponseKey] | None
) -> FiledVerdicts:
    if kept is not None:
        rows = [row for row in rows if (row["query_id"], row["model_id"], row["sample"]) in kept]
    return FiledVerdicts(verdict_table(rows), results.figures)


def _bars(
    by: Judge, asked: Iterable[tuple[AnswerToJudge, Request]], results: PromptResults
) -> dict[str, float | None]:
    """Query → rating of the reference model's first answer to it."""
    bars = {}
    for answer, request in sorted(asked, key=lambda pair: pair[0].key, reverse=True):
        attempt = results.answers.get(request.request_hash)
        if _is_reference(answer, by) and attempt and attempt.status == "ok" and attempt.text:
            bars[answer.key[0]] = rating_in(attempt.text, by.lowest)
    return bars


def _said(
    by: Judge, bars: Mapping[str, float | None] | None, answer: AnswerToJudge, text: str
) -> dict[str, Any]:
    """Columns of the verdict that a readable reply is; `bars` of a `relative` judge."""
    if by.kind == "reference":
        return {"outcome": _outcome(decision_in(text) is True)}
    n = rating_in(text, by.lowest)
    bar = by.correct_from if bars is None else bars.get(answer.key[0])
    if n is None or bar is None:
        reason = f"{by.reference_model} has no rating on this query to compare with"
        return {"outcome": "error", "reason": reason}
    found = {"outcome": _outcome(n >= bar), "extracted": f"{n:g}"}
    if bars is None:
        return found | {"score": (n - by.lowest) / (10 - by.lowest)}
    return found | {"extracted": f"{n:g} against {bar:g}"}


def _choose(
    shown: list[AnswerToJudge],
    by: Judge,
    ask: Callable[..., PromptResults],
    kept: set[ResponseKey] | None,
) -> FiledVerdicts:
    template = load_template("choice", by.template, names=_LISTED)
    scorer, version = f"judge:{by.name}", f"choice-{template.version}"
    pairs: list[tuple[list[AnswerToJudge], Request, Request]] = []
    ordered = sorted(shown, key=lambda answer: answer.key)
    for query_id, group in groupby(ordered, key=lambda answer: answer.key[0]):
        together = list(group)
        if kept is not None and not any(answer.key in kept for answer in together):
            continue
        random.Random(f"{by.seed}|{query_id}").shuffle(together)
        for start in range(0, len(together), len(LETTERS)):
            part = together[start : start + len(LETTERS)]
            forward = _choice_request(template, part, by)
            pairs.append((part, forward, _choice_request(template, part[::-1], by)))
    # Every list is at least as long as what an answer may name.
    sizes = {r.request_hash: len(part) for part, *both in pairs for r in both}
    longest = max(sizes.values(), default=0)
    named = partial(winners_in, numbered=template.numbered)
    results = ask(
        [request for _, *both in pairs for request in both],
        read=partial(winners_in, n=longest, numbered=template.numbered),
    )
    rows, costs = [], Costs()
    for part, *requests in pairs:
        both = [found for r in requests if (found := results.answers.get(r.request_hash))]
        if len(both) < 2:
            continue
        spent = [costs.of(attempt) for attempt in both]
        cost = None if None in spent else sum(filter(None, spent), 0.0)
        named = partial(winners_in, n=len(part), numbered=template.numbered)
        for place, answer in enumerate(part):
            said = _chosen(place, len(part), both, named)
            rows.append(verdict(answer.key, scorer, version, cost_usd=cost, **said))
            cost = 0.0  # The first answer of a list bears what asking about the list cost.
    return _filed(rows, results, kept)


def _chosen(
    place: int,
    n: int,
    both: Sequence[Attempt],
    named: Callable[[str], frozenset[int] | None],
) -> dict[str, Any]:
    """Columns of the verdict on the answer at a place of a list, from both orders' replies."""
    for attempt in both:
        if attempt.status != "ok" or attempt.text is None:
            return {"outcome": "error", "reason": failure(attempt)}
    first, second = (attempt.text or "" for attempt in both)
    won, swapped = named(first), named(second)
    if won is None or swapped is None:
        return {"outcome": "error", "reason": "the judge named an answer that was not listed"}
    reason = f"in order: {first}\n\nreversed: {second}"
    if (place in won) != (n - 1 - place in swapped):
        return {"outcome": "abstain", "conflict": True, "reason": reason}
    return {"outcome": _outcome(place in won), "reason": reason}


def _request(
    template: Template, answer: AnswerToJudge, by: Judge, *, listed: str | None = None
) -> Request:
    values = {
        "question": answer.question,
        "answer": answer.text,
        "answers": answer.text,
        "references": "\n".join(answer.references),
        "lowest": str(by.lowest),
    }
    fenced = {} if listed is None else dict.fromkeys(("answer", "answers", "numbered"), listed)
    prompt = template.fill(values, fenced=fenced)
    settings = settings_of(by, temperature=by.temperature, seed=by.seed)
    return request_for(settings, f"judge:{by.name}", answer.key[0], prompt)


def _choice_request(template: Template, part: list[AnswerToJudge], by: Judge) -> Request:
    heads = [f'<answer letter="{letter}">' for letter in LETTERS[: len(part)]]
    if template.numbered:
        heads = [f"LLM {place} response:\n<answer>" for place in range(1, len(part) + 1)]
    listed = "\n\n".join(
        f"{head}\n{template.fence(answer.text)}\n</answer>"
        for head, answer in zip(heads, part, strict=True)
    )
    return _request(template, part[0], by, listed=listed)


def _is_reference(answer: AnswerToJudge, by: Judge) -> bool:
    return answer.key[1] == by.reference_model


def _outcome(right: bool) -> str:
    return "correct" if right else "incorrect"
