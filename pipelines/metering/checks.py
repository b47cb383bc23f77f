"""The checks of the metering audit, as one table; each judges one model's answers.

A check whose column is missing (a release has no `total_tokens`) finds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from routeyard.pipelines.calls.bill import words
from routeyard.pipelines.calls.pricing import Price
from routeyard.pipelines.metering.findings import (
    MeteringFinding,
    MeteringInput,
    Row,
    finding,
    several_calls,
)
from routeyard.pipelines.model_names import same_model

#: (what is wrong, answers it is about, answers that were judged; null where a share says nothing)
Problem = tuple[str, list[Row], list[Row] | None]


@dataclass(frozen=True)
class MeteringCheck:
    """How one check finds problems.

    Attributes:
        find: (what is known, model_id, that model's answers) → problems.
        limit: The threshold that the share of bad answers must exceed; null: any is too many.
        needs: Columns without any value in which there is nothing to find; none: it always looks.
    """

    find: Callable[[MeteringInput, str, list[Row]], Iterator[Problem]]
    limit: str | None = None
    needs: tuple[str, ...] = ()


def run_check(
    name: str, known: MeteringInput, model_id: str, rows: list[Row]
) -> Iterator[MeteringFinding]:
    """Findings of the check of that name."""
    check = CHECKS[name]
    for says, bad, judged in check.find(known, model_id, rows):
        if not bad:
            continue
        if check.limit is not None and judged is not None:
            limit = float(getattr(known.thresholds, check.limit))
            # With few answers a share says nothing, unless none may be bad.
            enough = limit == 0 or len(judged) >= known.thresholds.min_answers
            if not enough or len(bad) <= limit * len(judged):
                continue
            says = f"{says} (limit {limit:.0%})"
        yield finding(name, model_id, says, bad, len(judged) if judged is not None else None)


def _each(
    says: str,
    is_bad: Callable[[MeteringInput, Row], bool],
    limit: str | None = None,
    needs: tuple[str, ...] = (),
) -> MeteringCheck:
    """A check that looks at one answer at a time."""

    def find(known: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[Problem]:
        yield says, [row for row in rows if is_bad(known, row)], rows if limit else None

    return MeteringCheck(find, limit, needs)


def _lacks_usage(known: MeteringInput, row: Row) -> bool:
    # With `n` answers in one call only their sum is metered: their cost is known.
    if row["prompt_tokens"] is None:
        return True
    return row["completion_tokens"] is None and row["cost_usd"] is None


def _adds_up_wrong(known: MeteringInput, row: Row) -> bool:
    prompt, completion = row["prompt_tokens"], row["completion_tokens"]
    total, reasoning = row.get("total_tokens"), row["reasoning_tokens"]
    if None not in (prompt, completion, total) and prompt + completion != total:
        return True
    return None not in (completion, reasoning) and bool(reasoning > completion)


def _constant(known: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[Problem]:
    for name in ("completion_tokens", "prompt_tokens"):
        counted = [row for row in rows if row[name] is not None and not several_calls(row)]
        if len(counted) < known.thresholds.min_answers:
            continue
        by_count: dict[int, list[Row]] = {}
        for row in counted:
            by_count.setdefault(row[name], []).append(row)
        count, same = max(by_count.items(), key=lambda item: (len(item[1]), -item[0]))
        texts = (
            row["text"] if name == "completion_tokens" else known.prompts.get(row["query_id"])
            for row in same
        )
        lengths = sorted(len(text or "") for text in texts)
        low, high = lengths[len(lengths) // 10], lengths[(len(lengths) * 9) // 10]
        # Single letters all take one token; texts of different lengths do not.
        if len(same) > known.thresholds.constant_count * len(counted) and high > 1.5 * low + 20:
            says = f"answers with {count} {name.replace('_', ' ')} each, whatever their length"
            yield says, same, rows


def _implausible(known: MeteringInput, row: Row) -> bool:
    """No byte-level tokenizer makes more tokens than bytes; words bound them from below."""
    if several_calls(row):
        return False
    slack, least = known.thresholds.token_slack, known.thresholds.tokens_per_word
    text, tokens = row["text"], row["completion_tokens"]
    if text is not None and tokens is not None:
        hidden = row["reasoning_tokens"] or 0
        if tokens - hidden > len(text.encode("utf-8", "surrogatepass")) + slack:
            return True
        if tokens + slack < least * words(text):
            return True
    prompt = known.prompts.get(row["query_id"])
    if prompt is None or row["prompt_tokens"] is None:
        return False
    # A system prompt or template may add to it, nothing may take away.
    return bool(row["prompt_tokens"] + slack < least * words(prompt))


def _other_logprob_count(known: MeteringInput, row: Row) -> bool:
    if not row.get("logprobs") or row["completion_tokens"] is None or several_calls(row):
        return False
    visible = row["completion_tokens"] - (row["reasoning_tokens"] or 0)
    return bool(abs(len(json.loads(row["logprobs"])) - visible) > known.thresholds.token_slack)


def _served(known: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[Problem]:
    wanted = {model_id, known.names.get(model_id, model_id)}
    wanted |= set(known.thresholds.served_as.get(model_id, []))
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        served = row["served_model"]
        if served is not None and not any(same_model(name, served) for name in wanted):
            by_name.setdefault(served, []).append(row)
    for served, bad in sorted(by_name.items()):
        yield f"answers served by {served!r}", bad, rows


def _slow(known: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[Problem]:
    """Modified z-score (Iglewicz and Hoaglin 1993) of log latency: 0.6745 (x − median) / MAD.

    The spread of a fast server is milliseconds, so that any hiccup of the machine lies far
    outside it: a slow call also lies `latency_floor_s` above the median, and there are at
    least `latency_min_outliers` of them.
    """
    import numpy as np

    limits = known.thresholds
    timed = [row for row in rows if row["latency_s"] is not None and row["latency_s"] > 0]
    if len(timed) < limits.min_answers:
        return
    logs = np.log([row["latency_s"] for row in timed])
    median = np.median(logs)
    # A server with constant latency has no spread to judge by.
    mad = max(float(np.median(np.abs(logs - median))), 0.05)
    slow = 0.6745 * (logs - median) / mad > limits.latency_z
    slow &= np.exp(logs) > np.exp(median) + limits.latency_floor_s
    bad = [row for row, is_slow in zip(timed, slow, strict=True) if is_slow]
    if len(bad) >= limits.latency_min_outliers:
        yield "answers far slower than the rest", bad, timed


def _price(known: MeteringInput, model_id: str) -> Price:
    model = known.models.get(model_id, {})
    return Price.of_row(model)


def _price_unknown(known: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[Problem]:
    priced = _price(known, model_id).known
    why = "their tokens are not known" if priced else "the model has no price"
    bad = [row for row in rows if row["cost_usd"] is None]
    yield f"answers of unknown cost, as {why}", bad, rows


def _price_stale(known: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[Problem]:
    changed, read = known.price_changed.get(model_id), _price(known, model_id).date
    # ISO dates compare as text.
    if changed and read and read < changed:
        says = f"answers priced by a table of {read}, before the price changed on {changed}"
        yield says, [row for row in rows if row["cost_source"] == "price_table"], rows


def _price_mismatch(known: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[Problem]:
    """Tables that are off by ten have been published: the provider's figure shows it."""
    price = _price(known, model_id)
    bad = []
    for row in rows:
        table = price.of(row["prompt_tokens"], row["completion_tokens"])
        if row["cost_source"] != "provider" or table is None:
            continue
        if row["cost_usd"] > 3 * table + 1e-9 or row["cost_usd"] * 3 + 1e-9 < table:
            bad.append(row)
    if len(bad) > len(rows) / 2:
        says = "answers billed at more than three times, or less than a third of, the price table"
        yield says, bad, rows


_COUNTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "total_tokens")
#: Name → check, in the order in which findings are listed.
CHECKS = {
    "usage_missing": _each("answers without usage", _lacks_usage, "usage_missing"),
    "totals": _each("answers whose counts do not add up", _adds_up_wrong, needs=_COUNTS),
    "constant_count": MeteringCheck(_constant, needs=_COUNTS),
    "implausible_count": _each(
        "answers whose text cannot have that many tokens", _implausible, needs=_COUNTS
    ),
    "logprob_count": _each(
        "answers with fewer or more log-probabilities than tokens",
        _other_logprob_count,
        needs=("logprobs",),
    ),
    "served_model": MeteringCheck(_served, needs=("served_model",)),
    "truncated": _each(
        "truncated answers", lambda known, row: row["status"] == "truncated", "truncated"
    ),
    "refused": _each("refusals", lambda known, row: row["status"] == "refused", "refused"),
    "latency": MeteringCheck(_slow, "latency_outliers", needs=("latency_s",)),
    "price_unknown": MeteringCheck(_price_unknown, "price_unknown"),
    "price_stale": MeteringCheck(_price_stale, needs=("cost_source",)),
    "price_mismatch": MeteringCheck(_price_mismatch, needs=("cost_usd",)),
}
