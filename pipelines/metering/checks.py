"""The checks of the metering audit, as one table; each judges one model's answers.

A check whose column is missing (a release has no `total_tokens`) finds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.calls.bill import words
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.metering.answers import AnswerColumns, Mask, most_words
from routeyard.pipelines.metering.cached import CACHED, too_many_cached, unwritten
from routeyard.pipelines.metering.findings import MeteringFinding, MeteringInput, Row, finding
from routeyard.pipelines.model_names import same_model

#: (what is wrong, answers it is about, how many were judged; null where a share says nothing)
Problem = tuple[str, AnswerColumns, int | None]


@dataclass(frozen=True)
class MeteringCheck:
    """How one check finds problems.

    Attributes:
        find: (what is known, model_id, that model's answers) → problems.
        limit: The threshold that the share of bad answers must exceed; null: any is too many.
        needs: Columns without any value in which there is nothing to find; none: it always looks.
    """

    find: Callable[[MeteringInput, str, AnswerColumns], Iterator[Problem]]
    limit: str | None = None
    needs: tuple[str, ...] = ()


def run_check(
    name: str, known: MeteringInput, model_id: str, answers: AnswerColumns
) -> Iterator[MeteringFinding]:
    """Findings of the check of that name."""
    check = CHECKS[name]
    for says, bad, judged in check.find(known, model_id, answers):
        if not len(bad):
            continue
        if check.limit is not None and judged is not None:
            limit = float(getattr(known.thresholds, check.limit))
            # With few answers a share says nothing, unless none may be bad.
            enough = limit == 0 or judged >= known.thresholds.min_answers
            if not enough or len(bad) <= limit * judged:
                continue
            says = f"{says} (limit {limit:.0%})"
        yield finding(name, model_id, says, bad.table, judged)


def _each(
    says: str,
    are_bad: Callable[[MeteringInput, AnswerColumns], Mask],
    limit: str | None = None,
    needs: tuple[str, ...] = (),
) -> MeteringCheck:
    """A check that looks at one answer at a time."""

    def find(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
        yield says, answers.where(are_bad(known, answers)), len(answers) if limit else None

    return MeteringCheck(find, limit, needs)


def _only(answers: AnswerColumns, among: Mask, is_bad: Callable[[Row], bool]) -> Mask:
    """Those among some answers that are bad, looked at one by one."""
    found = np.zeros(len(answers), dtype=bool)
    found[np.flatnonzero(among)] = [is_bad(row) for row in answers.where(among).rows]
    return found


def _lacks_usage(known: MeteringInput, answers: AnswerColumns) -> Mask:
    # With `n` answers in one call only their sum is metered: their cost is known.
    prompt, completion, cost = map(answers.null, ("prompt_tokens", "completion_tokens", "cost_usd"))
    return (prompt | (completion & cost)) & ~_declined(answers)


def _declined(answers: AnswerColumns) -> Mask:
    """Refused before a model was asked, as moderation does: there is nothing to meter."""
    nothing = [answers.null(name) for name in ("text", "served_model", "prompt_tokens", "cost_usd")]
    return np.asarray(np.logical_and.reduce([answers.equal("status", "refused"), *nothing]))


def _adds_up_wrong(known: MeteringInput, answers: AnswerColumns) -> Mask:
    prompt, completion, total, reasoning = map(answers.numbers, _COUNTS)
    apart = prompt + completion - total
    return np.asarray((np.isfinite(apart) & (apart != 0)) | (reasoning > completion))


def _several_calls(answers: AnswerColumns) -> Mask:
    """Whose tokens are those of several calls, of which the text is the last one alone."""
    return answers.numbers("calls") > 1


def _constant(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
    for name in ("completion_tokens", "prompt_tokens"):
        counted = ~answers.null(name) & ~_several_calls(answers)
        if name == "completion_tokens":  # what is cut has as many as the limit allows
            counted &= ~answers.equal("status", "truncated")
        if counted.sum() < known.thresholds.min_answers:
            continue
        counts, times = np.unique(answers.numbers(name)[counted], return_counts=True)
        count = int(counts[times.argmax()])
        if times.max() <= known.thresholds.constant_count * counted.sum():
            continue
        same = answers.where(counted & (answers.numbers(name) == count))
        texts = (
            row["text"] if name == "completion_tokens" else known.prompts.get(row["query_id"])
            for row in same.rows
        )
        lengths = sorted(len(text or "") for text in texts)
        low, high = lengths[len(lengths) // 10], lengths[(len(lengths) * 9) // 10]
        # Single letters all take one token; texts of different lengths do not.
        if high > 1.5 * low + 20:
            says = f"answers with {count} {name.replace('_', ' ')} each, whatever their length"
            yield says, same, len(answers)


def _implausible(known: MeteringInput, answers: AnswerColumns) -> Mask:
    """No byte-level tokenizer makes more tokens than bytes; words bound them from below."""
    slack, least = known.thresholds.token_slack, known.thresholds.tokens_per_word
    text, tokens = answers.column("text"), answers.numbers("completion_tokens")
    hidden = np.nan_to_num(answers.numbers("reasoning_tokens"))
    size = pc.binary_length(text.cast(pa.string())).cast(pa.float64())
    many = tokens - hidden > size.to_numpy(zero_copy_only=False) + slack
    few = tokens + slack < least * most_words(text)
    few = _only(
        answers, few, lambda row: row["completion_tokens"] + slack < least * words(row["text"])
    )
    asked = answers.numbers("prompt_tokens") + slack
    # A system prompt or template may add to it, nothing may take away.
    fewer = asked < least * known.words_of_prompts(answers.column("query_id"))
    return np.asarray((many | few | fewer) & ~_several_calls(answers))


def _other_logprob_count(known: MeteringInput, answers: AnswerColumns) -> Mask:
    def differ(row: Row) -> bool:
        if not row["logprobs"]:
            return False
        visible = row["completion_tokens"] - (row.get("reasoning_tokens") or 0)
        count = len(json.loads(row["logprobs"]))
        return bool(abs(count - visible) > known.thresholds.token_slack)

    among = ~answers.null("logprobs") & ~answers.null("completion_tokens")
    return _only(answers, among & ~_several_calls(answers), differ)


def _served(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
    wanted = {model_id, known.names.get(model_id, model_id)}
    wanted |= set(known.thresholds.served_as.get(model_id, []))
    for served in sorted(answers.column("served_model").unique().drop_null().to_pylist()):
        if not any(same_model(name, served) for name in wanted):
            bad = answers.where(answers.equal("served_model", served))
            yield f"answers served by {served!r}", bad, len(answers)


def _slow(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
    """Modified z-score (Iglewicz and Hoaglin 1993) of log latency: 0.6745 (x − median) / MAD.

    The spread of a fast server is milliseconds, so that any hiccup of the machine is far
    outside it: a slow call is also `latency_floor_s` above the median, and there are at
    least `latency_min_outliers` of them.
    """
    if known.models.get(model_id, {}).get("simulated"):
        return  # its seconds are those of this machine
    limits = known.thresholds
    latency = answers.numbers("latency_s")
    timed = latency > 0
    if timed.sum() < limits.min_answers:
        return
    logs = np.log(latency[timed])
    median = np.median(logs)
    # A server with constant latency has no spread to judge by.
    mad = max(float(np.median(np.abs(logs - median))), 0.05)
    slow = 0.6745 * (logs - median) / mad > limits.latency_z
    slow &= np.exp(logs) > np.exp(median) + limits.latency_floor_s
    if slow.sum() >= limits.latency_min_outliers:
        bad = answers.where(timed).where(slow)
        yield "answers far slower than the rest", bad, int(timed.sum())


def _price(known: MeteringInput, model_id: str) -> Price:
    model = known.models.get(model_id, {})
    return Price.of_row(model)


def _price_unknown(
    known: MeteringInput, model_id: str, answers: AnswerColumns
) -> Iterator[Problem]:
    price = _price(known, model_id)
    bad = answers.where(answers.null("cost_usd") & ~_declined(answers))
    why = "their tokens are not known" if price.known else "the model has no price"
    unpriced = [name.removesuffix("_tokens") for name in CACHED if (bad.numbers(name) > 0).any()]
    unpriced = [f"price_{name}" for name in unpriced if getattr(price, name) is None]
    if price.known and unpriced:
        why = f"the model has no {' and no '.join(unpriced)}"
    yield f"answers of unknown cost, as {why}", bad, len(answers)


def _price_stale(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
    changed, read = known.price_changed.get(model_id), _price(known, model_id).date
    # ISO dates compare as text.
    if changed and read and read < changed:
        says = f"answers priced by a table of {read}, before the price changed on {changed}"
        yield says, answers.where(answers.equal("cost_source", "price_table")), len(answers)


def _price_mismatch(
    known: MeteringInput, model_id: str, answers: AnswerColumns
) -> Iterator[Problem]:
    """Tables that are off by ten have been published: the provider's figure shows it."""
    price = _price(known, model_id)

    def differ(row: Row) -> bool:
        table = price.of(*(row.get(name) for name in _PRICED))
        if table is None:
            return False
        return bool(row["cost_usd"] > 3 * table + 1e-9 or row["cost_usd"] * 3 + 1e-9 < table)

    billed = answers.equal("cost_source", "provider")
    if 2 * billed.sum() > len(answers):
        bad = answers.where(_only(answers, billed, differ))
        if len(bad) > len(answers) / 2:
            says = "answers billed at more than three times, or less than a third of, the price "
            yield f"{says}table", bad, len(answers)


_PRICED = ("prompt_tokens", "completion_tokens", *CACHED)
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")
#: Name → check, in the order in which findings are listed.
CHECKS = {
    "usage_missing": _each("answers without usage", _lacks_usage, "usage_missing"),
    "totals": _each("answers whose counts do not add up", _adds_up_wrong, needs=_COUNTS),
    "constant_count": MeteringCheck(_constant, needs=_COUNTS),
    "implausible_count": _each(
        "answers whose text cannot have that many tokens", _implausible, needs=_COUNTS
    ),
    "cached_tokens": _each(
        "answers with more cached tokens than prompt tokens", too_many_cached, needs=CACHED
    ),
    "cache_unwritten": MeteringCheck(unwritten, "cache_unwritten", needs=CACHED),
    "logprob_count": _each(
        "answers with fewer or more log-probabilities than tokens",
        _other_logprob_count,
        needs=("logprobs",),
    ),
    "served_model": MeteringCheck(_served, needs=("served_model",)),
    "truncated": _each(
        "truncated answers", lambda known, those: those.equal("status", "truncated"), "truncated"
    ),
    "refused": _each("refusals", lambda known, those: those.equal("status", "refused"), "refused"),
    "latency": MeteringCheck(_slow, "latency_outliers", needs=("latency_s",)),
    "price_unknown": MeteringCheck(_price_unknown, "price_unknown"),
    "price_stale": MeteringCheck(_price_stale, needs=("cost_source",)),
    "price_mismatch": MeteringCheck(_price_mismatch, needs=("cost_usd",)),
}
