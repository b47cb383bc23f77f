"""Checks of cached tokens: counts that cannot be, and reads of what nobody had written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.calls.bill import least_tokens
from routeyard.pipelines.metering.answers import AnswerColumns, Mask
from routeyard.pipelines.metering.findings import MeteringInput
from routeyard.pipelines.trajectories.caches import cache_rule, rule_of

#: Columns of tokens of a provider's cache.
CACHED = ("cache_read_tokens", "cache_write_tokens")
#: Seconds that a cache may keep a prompt where its provider promises less, or nothing.
_LEAST_TTL_S = 3_600.0
_UNWRITTEN = """
SELECT place FROM (
    SELECT place, read, max(prompt) OVER (
        ORDER BY sent RANGE BETWEEN to_microseconds($ttl) PRECEDING
        AND INTERVAL 1 MICROSECOND PRECEDING
    ) AS longest
    FROM (SELECT *, try_cast(requested_at AS TIMESTAMPTZ) AS sent FROM answers)
    WHERE sent IS NOT NULL
) WHERE read > coalesce(longest, 0)
"""


def too_many_cached(known: MeteringInput, answers: AnswerColumns) -> Mask:
    """Whether more of a prompt was read from, and written to, the cache than it has tokens."""
    cached = sum(np.nan_to_num(answers.numbers(name)) for name in CACHED)
    return np.asarray(cached > answers.numbers("prompt_tokens"))


def unwritten(
    known: MeteringInput, model_id: str, answers: AnswerColumns
) -> Iterator[tuple[str, AnswerColumns, int | None]]:
    """Answers that read more tokens than any prompt of the model had within the time to live, and
    those that read text with which no other prompt of the model begins.

    Answers without a time, and those of several calls, are not judged. Other traffic of the same
    account may have filled the cache: a share may be so (`metering.cache_unwritten`).
    """
    import duckdb

    provider = known.models.get(model_id, {}).get("provider")
    rule = rule_of(provider, known.names.get(model_id, model_id))
    ttl = max(_LEAST_TTL_S, cache_rule(rule).ttl_s if rule else 0.0)
    single = answers.where(~(answers.numbers("calls") > 1))
    if not (single.numbers("cache_read_tokens") > 0).any():
        return
    table = pa.table(
        {
            "place": np.arange(len(single)),
            "read": single.column("cache_read_tokens"),
            "prompt": single.column("prompt_tokens"),
            "requested_at": single.column("requested_at"),
        }
    )
    with duckdb.connect() as connection:
        connection.register("answers", table)
        micros = {"ttl": int(min(ttl, 1e9) * 1e6)}
        found = connection.execute(_UNWRITTEN, micros).fetchnumpy()["place"]
    bad = np.zeros(len(single), dtype=bool)
    bad[np.asarray(found, dtype=np.int64)] = True
    timed = int((~single.null("requested_at")).sum())
    yield (
        "answers that read more from the cache than any prompt before had within its time to live",
        single.where(bad),
        timed,
    )
    bad, claimed, most = _of_no_other(known, model_id, single)
    yield (
        f"answers whose cached tokens cannot be: {claimed:,} are claimed as read from the cache, "
        f"and at most {most:,} can be: no other prompt begins with the rest of the text",
        single.where(bad),
        timed,
    )


def _of_no_other(
    known: MeteringInput, model_id: str, answers: AnswerColumns
) -> tuple[Mask, int, int]:
    """Answers that read text of no other prompt, the tokens that they read, and most they can have.

    The first answer to a question is judged. Models that ask one model of an endpoint share its
    cache, and are not.
    """
    bad = np.zeros(len(answers), dtype=bool)
    if sum(_endpoint(known, one) == _endpoint(known, model_id) for one in known.models) > 1:
        return bad, 0, 0
    names = ("query_id", "requested_at", "prompt_tokens", "cache_read_tokens")
    rows = list(zip(*(answers.column(name).to_pylist() for name in names), strict=True))
    times = Counter((query, sent) for query, sent, *_ in rows)
    first = dict(sorted(times, key=lambda one: str(one[1] or ""), reverse=True))
    shared = _shared_beginnings({known.prompts[query] for query in first if query in known.prompts})
    claimed = most = 0
    for at, (query, sent, prompt, read) in enumerate(rows):
        text = known.prompts.get(query)
        alone = sent is not None and sent == first[query] and times[query, sent] == 1
        if not read or prompt is None or text is None or not alone:
            continue
        can = prompt - least_tokens(text[shared[text] :], known.thresholds.tokens_per_word)
        if read > can:
            bad[at] = True
            claimed, most = claimed + read, most + max(can, 0)
    return bad, claimed, most


def _endpoint(known: MeteringInput, model_id: str) -> tuple[Any, Any]:
    row = known.models.get(model_id, {})
    name = known.names.get(model_id) or row.get("base_model") or model_id
    return row.get("provider"), name


def _shared_beginnings(texts: set[str]) -> dict[str, int]:
    """Characters with which each text and another one begin: of all, a neighbour shares most."""
    ordered = sorted(texts)
    found = dict.fromkeys(ordered, 0)
    for one, other in pairwise(ordered):
        low, high = 0, min(len(one), len(other))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
        found[one], found[other] = max(found[one], low), max(found[other], low)
    return found
