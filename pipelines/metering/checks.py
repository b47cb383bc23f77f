"""The checks of the metering audit: one function each, over one model's answers.

A check whose column is not there (a release keeps no `total_tokens`) finds nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pipelines.metering.findings import (
    Check,
    MeteringFinding,
    MeteringInput,
    Row,
    any_bad,
    finding,
    share,
)


def _usage_missing(
    asked: MeteringInput, model_id: str, rows: list[Row]
) -> Iterator[MeteringFinding]:
    bad = [
        row
        for row in rows
        if row["prompt_tokens"] is None
        # With `n` answers in one call only their sum is metered: their cost is known.
        or (row["completion_tokens"] is None and row["cost_usd"] is None)
    ]
    yield from share(
        "usage_missing", model_id, "answers without usage", bad, rows, asked, "usage_missing"
    )


def _totals(asked: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[MeteringFinding]:
    bad = []
    for row in rows:
        prompt, completion = row["prompt_tokens"], row["completion_tokens"]
        total, reasoning = row.get("total_tokens"), row["reasoning_tokens"]
        known = None not in (prompt, completion, total)
        hidden = None not in (completion, reasoning)
        if (known and prompt + completion != total) or (hidden and reasoning > completion):
            bad.append(row)
    yield from any_bad("totals", model_id, "answers whose counts do not add up", bad)


def _constant(asked: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[MeteringFinding]:
    for name in ("completion_tokens", "prompt_tokens"):
        counted = [row for row in rows if row[name] is not None]
        if len(counted) < asked.thresholds.min_answers:
            continue
        by_count: dict[int, list[Row]] = {}
        for row in counted:
            by_count.setdefault(row[name], []).append(row)
        count, same = max(by_count.items(), key=lambda item: (len(item[1]), -item[0]))
        texts = (
            row["text"] if name == "completion_tokens" else asked.prompts.get(row["query_id"])
            for row in same
        )
        lengths = sorted(len(text or "") for text in texts)
        low, high = lengths[len(lengths) // 10], lengths[(len(lengths) * 9) // 10]
        # Single letters all take one token; texts of different lengths do not.
        if len(same) > asked.thresholds.constant_count * len(counted) and high > 1.5 * low + 20:
            says = f"answers with {count} {name.replace('_', ' ')} each, whatever their length"
            yield finding("constant_count", model_id, says, same, len(rows))


def _implausible(asked: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[MeteringFinding]:
    """No byte-level tokenizer makes more tokens than bytes; words bound them from below."""
    bad = [row for row in rows if not _plausible(asked, row)]
    yield from any_bad(
        "implausible_count", model_id, "answers whose text cannot have that many tokens", bad
    )


def _plausible(asked: MeteringInput, row: Row) -> bool:
    slack = asked.thresholds.token_slack
    text, tokens = row["text"], row["completion_tokens"]
    if text is not None and tokens is not None:
        hidden = row["reasoning_tokens"] or 0
        if tokens - hidden > len(text.encode("utf-8", "surrogatepass")) + slack:
            return False
        if tokens + slack < asked.thresholds.tokens_per_word * words(text):
            return False
    prompt = asked.prompts.get(row["query_id"])
    if prompt is None or row["prompt_tokens"] is None:
        return True
    # A system prompt or template may add to it, nothing may take away.
    return bool(row["prompt_tokens"] + slack >= asked.thresholds.tokens_per_word * words(prompt))


_WORD = re.compile(r"\w+|[^\w\s]+")


def words(text: str) -> int:
    """Words and runs of signs: no common tokenizer joins two of them."""
    return sum(1 for _ in _WORD.finditer(text))


def _logprob_count(
    asked: MeteringInput, model_id: str, rows: list[Row]
) -> Iterator[MeteringFinding]:
    bad = []
    for row in rows:
        if not row.get("logprobs") or row["completion_tokens"] is None:
            continue
        visible = row["completion_tokens"] - (row["reasoning_tokens"] or 0)
        if abs(len(json.loads(row["logprobs"])) - visible) > asked.thresholds.token_slack:
            bad.append(row)
    yield from any_bad(
        "logprob_count", model_id, "answers with fewer or more log-probabilities than tokens", bad
    )


def _served(asked: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[MeteringFinding]:
    wanted = {model_id, asked.names.get(model_id, model_id)}
    wanted |= set(asked.thresholds.served_as.get(model_id, []))
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        served = row["served_model"]
        if served is not None and not any(same_model(name, served) for name in wanted):
            by_name.setdefault(served, []).append(row)
    for served, bad in sorted(by_name.items()):
        yield finding("served_model", model_id, f"answers served by {served!r}", bad, len(rows))


_DATED = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{4}|-latest)?")


def same_model(asked: str, served: str) -> bool:
    """Whether the served name is the asked one, give or take vendor prefix and date.

    `openai/gpt-4o` is served as `gpt-4o-2024-08-06`; `gpt-4o-mini` is another model.
    """
    a, b = (name.lower().rsplit("/", 1)[-1].split(":", 1)[0] for name in (asked, served))
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    if not longer.startswith(shorter):
        return False
    return _DATED.fullmatch(longer[len(shorter) :]) is not None


def _truncated(asked: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[MeteringFinding]:
    bad = [row for row in rows if row["status"] == "truncated"]
    yield from share("truncated", model_id, "truncated answers", bad, rows, asked, "truncated")


def _refused(asked: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[MeteringFinding]:
    bad = [row for row in rows if row["status"] == "refused"]
    yield from share("refused", model_id, "refusals", bad, rows, asked, "refused")


def _latency(asked: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[MeteringFinding]:
    """Modified z-score (Iglewicz and Hoaglin 1993) of log latency: 0.6745 (x − median) / MAD.

    The spread of a fast server is milliseconds, so that any hiccup of the machine lies far
    outside it: a slow call also lies `latency_floor_s` above the median, and there are at
    least `latency_min_outliers` of them.
    """
    import numpy as np

    timed = [row for row in rows if row["latency_s"] is not None and row["latency_s"] > 0]
    if len(timed) < asked.thresholds.min_answers:
        return
    logs = np.log([row["latency_s"] for row in timed])
    off = np.abs(logs - np.median(logs))
    # A server that answers like clockwork has no spread to judge by.
    mad = max(float(np.median(off)), 0.05)
    slow = 0.6745 * (logs - np.median(logs)) / mad > asked.thresholds.latency_z
    slow &= np.exp(logs) > np.exp(np.median(logs)) + asked.thresholds.latency_floor_s
    bad = [row for row, is_slow in zip(timed, slow, strict=True) if is_slow]
    if len(bad) < asked.thresholds.latency_min_outliers:
        return
    yield from share(
        "latency",
        model_id,
        "answers far slower than the rest",
        bad,
        timed,
        asked,
        "latency_outliers",
    )


def _price_unknown(
    asked: MeteringInput, model_id: str, rows: list[Row]
) -> Iterator[MeteringFinding]:
    bad = [row for row in rows if row["cost_usd"] is None]
    model = asked.models.get(model_id, {})
    priced = model.get("price_in") is not None and model.get("price_out") is not None
    why = "their tokens are not known" if priced else "the model has no price"
    says = f"answers of unknown cost, as {why}"
    yield from share("price_unknown", model_id, says, bad, rows, asked, "price_unknown")


def _price_stale(asked: MeteringInput, model_id: str, rows: list[Row]) -> Iterator[MeteringFinding]:
    changed = asked.price_changed.get(model_id)
    read = asked.models.get(model_id, {}).get("price_date")
    bad = [row for row in rows if row["cost_source"] == "price_table"]
    # ISO dates compare as text.
    if changed and read and read < changed and bad:
        says = f"answers priced by a table of {read}, before the price changed on {changed}"
        yield finding("price_stale", model_id, says, bad, len(rows))


def _price_mismatch(
    asked: MeteringInput, model_id: str, rows: list[Row]
) -> Iterator[MeteringFinding]:
    """Tables that are off by ten have been published: the provider's figure shows it."""
    model = asked.models.get(model_id, {})
    if model.get("price_in") is None or model.get("price_out") is None:
        return
    bad = []
    for row in rows:
        if row["cost_source"] != "provider" or None in (
            row["prompt_tokens"],
            row["completion_tokens"],
        ):
            continue
        table = row["prompt_tokens"] * model["price_in"]
        table = (table + row["completion_tokens"] * model["price_out"]) / 1e6
        if row["cost_usd"] > 3 * table + 1e-9 or row["cost_usd"] * 3 + 1e-9 < table:
            bad.append(row)
    if len(bad) > len(rows) / 2:
        says = "answers billed at more than three times, or less than a third of, the price table"
        yield finding("price_mismatch", model_id, says, bad, len(rows))


#: Name → check, in the order in which findings are listed.
CHECKS: dict[str, Check] = {
    "usage_missing": _usage_missing,
    "totals": _totals,
    "constant_count": _constant,
    "implausible_count": _implausible,
    "logprob_count": _logprob_count,
    "served_model": _served,
    "truncated": _truncated,
    "refused": _refused,
    "latency": _latency,
    "price_unknown": _price_unknown,
    "price_stale": _price_stale,
    "price_mismatch": _price_mismatch,
}
