"""Checks of cached tokens: counts that cannot be, and reads of what nobody had written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

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
    """Answers that read more tokens than any prompt of the model had within the time to live.

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
