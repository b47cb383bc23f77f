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
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa

from routeyard.pipelines.calls.prompts import PromptResults, request_for
from routeyard.pipelines.calls.request import Request
from routeyard.pipelines.label.judge_replies import LETTERS, decision_in, rating_in, winners_in
from routeyard.pipelines.label.model_requests import ask_model, settings_of
from routeyard.pipelines.label.templates import Template, load_template
from routeyard.pipelines.label.verdicts import (
    AnswerToJudge,
    Costs,
    FiledVerdicts,
    ResponseKey,
    answers,
    error_verdict,
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
    run: str,
    benchmark: str = "",
    only: Iterable[ResponseKey] | None = None,
    send: bool = True,
) -> FiledVerdicts:
    """Verdicts of `judge:<name>`; figures count prompts asked and failed.

    For `relative`, `responses` must hold the reference model's; for `choice`, all
    answers of a query are shown together, also those that `only` leaves out.
    """
    kept = None if only is None else set(only)
    ask = partial(
        ask_model,
        served=by,
        ledger=ledger,
        run=run,
        purpose="judge",
        benchmark=benchmark,
        send=send,
    )
    if by.kind == "choice":
        return _choose(list(answers(queries, responses)), by, ask, kept)
    kind = "reference" if by.kind == "reference" else "rating"
    if kind == "rating" and by.lowest == 0:
        kind = "rating-from-zero"
    template = load_template(kind, by.template, names=_NAMES)
    shown = _about(list(answers(queries, responses)), by, kept)
    asked = [(answer, _request(template, answer, by)) for answer in shown]
    readable = _read_decision if by.kind == "reference" else partial(_read_rating, by.lowest)
    results = ask([request for _, request in asked], readable=readable)
    replies = [(a, results.answers.get(r.request_hash)) for a, r in asked]
    version = f"{by.kind}-{template.version}"
    rows = verdicts_from(replies, f"judge:{by.name}", version, _reader(by, replies))
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


def _reader(
    by: Judge, replies: Sequence[tuple[AnswerToJudge, Attempt | None]]
) -> Callable[[AnswerToJudge, str], dict[str, Any]]:
    """How the replies of this kind of judge are read, as columns of a verdict."""
    bars: dict[str, float | None] = {}
    if by.kind == "relative":
        # Against the reference model's rating of the same sample, else its first.
        for answer, attempt in sorted(replies, key=lambda pair: pair[0].key, reverse=True):
            if _is_reference(answer, by) and attempt and attempt.status == "ok" and attempt.text:
                bars[answer.key[0]] = rating_in(attempt.text, by.lowest)

    def reference(answer: AnswerToJudge, text: str) -> dict[str, Any]:
        return {"outcome": _outcome(decision_in(text) is True)}

    def rating(answer: AnswerToJudge, text: str) -> dict[str, Any]:
        n = rating_in(text, by.lowest)
        assert n is not None
        score = (n - by.lowest) / (10 - by.lowest)
        return {"outcome": _outcome(n >= by.correct_from), "extracted": f"{n:g}", "score": score}

    def relative(answer: AnswerToJudge, text: str) -> dict[str, Any]:
        n, bar = rating_in(text, by.lowest), bars.get(answer.key[0])
        if n is None or bar is None:
            reason = f"{by.reference_model} has no rating on this query to compare with"
            return {"outcome": "error", "reason": reason}
        return {"outcome": _outcome(n >= bar), "extracted": f"{n:g} against {bar:g}"}

    return {"reference": reference, "relative": relative}.get(by.kind, rating)


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
        readable=lambda text: named(text, longest) is not None,
    )
    rows, costs = [], Costs()
    for part, forward, backward in pairs:
        first, second = (results.answers.get(r.request_hash) for r in (forward, backward))
        if first is None or second is None:
            continue
        cost = _sum(costs.of(first), costs.of(second))
        for place, answer in enumerate(part):
            row = _chosen(place, answer, part, (first, second), named, scorer, version)
            # The first answer of a list bears what asking about the list cost.
            rows.append(row | {"cost_usd": cost if place == 0 else 0.0})
    return _filed(rows, results, kept)


def _chosen(
    place: int,
    answer: AnswerToJudge,
    part: list[AnswerToJudge],
    both: tuple[Attempt, Attempt],
    named: Callable[[str, int], frozenset[int] | None],
    scorer: str,
    version: str,
) -> dict[str, Any]:
    first, second = both
    for attempt in both:
        if attempt.status != "ok" or attempt.text is None:
            return error_verdict(answer.key, scorer, version, attempt)
    won = named(first.text or "", len(part))
    swapped = named(second.text or "", len(part))
    if won is None or swapped is None:
        reason = "the judge named an answer that was not listed"
        return verdict(answer.key, scorer, version, "error", reason=reason)
    forward, backward = place in won, len(part) - 1 - place in swapped
    reason = f"in order: {first.text}\n\nreversed: {second.text}"
    if forward != backward:
        return verdict(answer.key, scorer, version, "abstain", conflict=True, reason=reason)
    return verdict(answer.key, scorer, version, _outcome(forward), reason=reason)


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


def _read_rating(lowest: int, text: str) -> bool:
    return rating_in(text, lowest) is not None


def _read_decision(text: str) -> bool:
    return decision_in(text) is not None


def _outcome(right: bool) -> str:
    return "correct" if right else "incorrect"


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b
