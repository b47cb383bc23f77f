-- name: classes
-- Tokens of the cache are among the prompt's.
SELECT query_id, model_id, sample, step FROM steps
WHERE coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) > prompt_tokens

-- name: reasoning
SELECT query_id, model_id, sample, step FROM steps WHERE reasoning_tokens > completion_tokens

-- name: unwritten
-- Tokens read although no earlier call of the same arm in the whole log had a prompt that long
-- within a day: another's cache, or another's log.
SELECT query_id, model_id, sample, step FROM (
    SELECT query_id, model_id, sample, step, cache_read_tokens, max(prompt_tokens) OVER (
        PARTITION BY coalesce(arm, acted_by) ORDER BY sent
        RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 MICROSECOND PRECEDING
    ) AS longest
    FROM (SELECT *, try_cast(requested_at AS TIMESTAMPTZ) AS sent FROM steps)
    WHERE sent IS NOT NULL
) WHERE cache_read_tokens > coalesce(longest, 0)

-- name: backwards
-- A step that was sent before the step it follows.
SELECT query_id, model_id, sample, step FROM (
    SELECT query_id, model_id, sample, step, sent, lag(sent) OVER (
        PARTITION BY query_id, model_id, sample ORDER BY step
    ) AS before
    FROM (SELECT *, try_cast(requested_at AS TIMESTAMPTZ) AS sent FROM steps)
) WHERE sent < before

-- name: outcomes
-- One trajectory with two outcomes.
SELECT query_id, model_id, sample, 0 AS step FROM steps
GROUP BY query_id, model_id, sample HAVING count(DISTINCT outcome) > 1

-- name: repeated
-- The same call twice: equal in time, arm and every count.
SELECT query_id, model_id, sample, step FROM (
    SELECT query_id, model_id, sample, step, row_number() OVER (
        PARTITION BY requested_at, coalesce(arm, acted_by), prompt_tokens, completion_tokens,
        cache_read_tokens, latency_s ORDER BY query_id, model_id, sample, step
    ) AS copy
    FROM steps WHERE requested_at IS NOT NULL AND latency_s IS NOT NULL
    AND completion_tokens IS NOT NULL
) WHERE copy > 1
