-- Checks of usage, prices and served models, in DuckDB's SQL. Each returns the answers that break it:
-- model_id, what is wrong with them (`says`; braces in it are filled with `value`), how many answers
-- were judged (null where a share says nothing), query_id, sample, and `part` where one check finds
-- several things. A check that also has a limit is in `metering.py`. `a` holds the answers, one row
-- each, with their number per model `n`; `prompts`, `models` and `canaries` what else is known.

-- name: answers
CREATE TEMP TABLE sizes AS SELECT model_id, count(*) AS n FROM responses GROUP BY model_id;
CREATE TEMP VIEW a AS
SELECT *, coalesce(calls > 1, false) AS several,
       -- refused before a model was asked, as moderation does: there is nothing to meter
       coalesce(status = 'refused', false)
       AND coalesce(text, served_model, prompt_tokens::VARCHAR, cost_usd::VARCHAR) IS NULL AS declined
FROM responses JOIN sizes USING (model_id)

-- name: usage_missing
-- With `n` answers in one call only their sum is metered: their cost is known.
SELECT *, 'answers without usage, or with counts that contradict each other' AS says, n AS judged FROM a
WHERE (prompt_tokens IS NULL OR (completion_tokens IS NULL AND cost_usd IS NULL)) AND NOT declined

-- name: totals
SELECT *, 'answers whose counts do not add up' AS says, NULL AS judged FROM a
WHERE prompt_tokens + completion_tokens <> total_tokens OR reasoning_tokens > completion_tokens

-- name: constant_count
-- Single letters all take one token; texts of different lengths do not.
WITH counted AS (
    SELECT *, 1 AS part, 'completion' AS side, completion_tokens AS tokens,
           length(coalesce(text, '')) AS size
    FROM a  -- what is cut has as many as the limit allows
    WHERE completion_tokens IS NOT NULL AND NOT several AND status IS DISTINCT FROM 'truncated'
    UNION ALL
    SELECT a.*, 2, 'prompt', prompt_tokens, length(coalesce(prompt, ''))
    FROM a LEFT JOIN prompts USING (query_id) WHERE prompt_tokens IS NOT NULL AND NOT several
), usual AS (
    SELECT model_id, part, tokens, list_sort(list(size)) AS sizes, count(*) AS times,
           sum(count(*)) OVER (PARTITION BY model_id, part) AS total
    FROM counted GROUP BY model_id, part, tokens
    QUALIFY row_number() OVER (PARTITION BY model_id, part ORDER BY times DESC, tokens) = 1
        AND total >= $min_answers AND times > 0.5 * total
)
SELECT *, format('answers with {} {} tokens each, whatever their length', tokens::BIGINT, side) AS says,
       n AS judged
FROM counted JOIN usual USING (model_id, part, tokens)
WHERE sizes[len(sizes) * 9 // 10 + 1] > 1.5 * sizes[len(sizes) // 10 + 1] + 20

-- name: implausible_count
-- No byte-level tokenizer makes more tokens than bytes; words bound them from below. A system
-- prompt or template may add to a prompt, nothing may take away.
SELECT a.*, 'answers whose text cannot have that many tokens' AS says, NULL AS judged
FROM (FROM a WHERE coalesce(prompt_tokens, completion_tokens) IS NOT NULL) AS a LEFT JOIN (
    SELECT query_id, words(prompt) AS asked FROM prompts
    WHERE EXISTS (FROM a WHERE prompt_tokens IS NOT NULL)
) USING (query_id)
WHERE NOT several AND (
    completion_tokens - coalesce(reasoning_tokens, 0) > strlen(text) + $token_slack
    OR prompt_tokens + $token_slack < $tokens_per_word * asked
    OR CASE WHEN completion_tokens + $token_slack < $tokens_per_word * most_words
            THEN completion_tokens + $token_slack < $tokens_per_word * words(text) END
)

-- name: cached_tokens
SELECT *, 'answers with more cached tokens than prompt tokens' AS says, NULL AS judged FROM a
WHERE coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) > prompt_tokens

-- name: cache_unwritten
-- Answers that read more tokens than any prompt of the model had within the time to live. Answers
-- without a time, and those of several calls, are not judged.
WITH single AS (
    SELECT *, count(requested_at) OVER (PARTITION BY model_id) AS timed FROM a
    WHERE NOT several AND EXISTS (FROM a WHERE cache_read_tokens > 0)
), sent AS (
    SELECT *, max(prompt_tokens) OVER (
        PARTITION BY model_id ORDER BY sent
        RANGE BETWEEN to_microseconds(ttl) PRECEDING AND INTERVAL 1 MICROSECOND PRECEDING
    ) AS longest
    FROM (SELECT *, try_cast(requested_at AS TIMESTAMPTZ) AS sent FROM single JOIN models USING (model_id))
    WHERE sent IS NOT NULL
)
SELECT *, 'answers that read more from the cache than any prompt before had within its time to live'
       AS says, timed AS judged
FROM sent WHERE cache_read_tokens > coalesce(longest, 0)

-- name: logprob_count
SELECT *, 'answers with fewer or more log-probabilities than tokens' AS says, NULL AS judged FROM a
WHERE NOT several AND completion_tokens IS NOT NULL AND logprobs <> ''
AND abs(entries(logprobs) - (completion_tokens - coalesce(reasoning_tokens, 0))) > $token_slack

-- name: served_model
SELECT a.*, 'answers served by {!r}' AS says, served_model AS value, n AS judged
FROM a JOIN (SELECT DISTINCT model_id, served_model FROM a WHERE served_model IS NOT NULL)
USING (model_id, served_model) WHERE NOT is_served_as(model_id, served_model)

-- name: truncated
SELECT *, 'truncated answers' AS says, n AS judged FROM a WHERE status = 'truncated'

-- name: refused
SELECT *, 'refusals' AS says, n AS judged FROM a WHERE status = 'refused'

-- name: latency
-- Modified z-score (Iglewicz and Hoaglin 1993) of log latency: 0.6745 (x - median) / MAD. The spread
-- of a fast server is milliseconds, so that any hiccup of the machine is far outside it: a slow call
-- is also some seconds above the median, and one or two are no pattern.
WITH timed AS (
    SELECT *, ln(latency_s) AS log, median(log) OVER (PARTITION BY model_id) AS middle,
           count(*) OVER (PARTITION BY model_id) AS judged
    FROM a JOIN models USING (model_id) WHERE latency_s > 0 AND NOT simulated
), spread AS (
    -- a server with constant latency has no spread to judge by
    SELECT *, greatest(median(abs(log - middle)) OVER (PARTITION BY model_id), 0.05) AS mad
    FROM timed WHERE judged >= $min_answers
)
SELECT *, 'answers far slower than the rest' AS says FROM spread
WHERE 0.6745 * (log - middle) / mad > 8.0 AND exp(log) > exp(middle) + 5.0
QUALIFY count(*) OVER (PARTITION BY model_id) >= 6

-- name: price_unknown
WITH unpriced AS (
    SELECT * FROM a JOIN models USING (model_id) WHERE cost_usd IS NULL AND NOT declined
), causes AS (
    SELECT model_id, coalesce(bool_or(cache_read_tokens > 0 AND price_cache_read IS NULL), false) AS read,
           coalesce(bool_or(cache_write_tokens > 0 AND price_cache_write IS NULL), false) AS written,
           CASE WHEN NOT any_value(priced) THEN 'they state none and the model has no price'
                WHEN read AND written THEN 'the model has no price_cache_read and no price_cache_write'
                WHEN read THEN 'the model has no price_cache_read'
                WHEN written THEN 'the model has no price_cache_write'
                ELSE 'their tokens are not known' END AS cause
    FROM unpriced GROUP BY model_id
)
SELECT *, n AS judged, 'answers of unknown cost, as ' || cause AS says
FROM unpriced JOIN causes USING (model_id)

-- name: price_mismatch
-- Tables that are off by ten have been published: the provider's figure shows it.
WITH billed AS (
    SELECT *, listed_usd(model_id, prompt_tokens::BIGINT, completion_tokens::BIGINT,
                         cache_read_tokens::BIGINT, cache_write_tokens::BIGINT) AS listed
    FROM (FROM a WHERE cost_source = 'provider'
          QUALIFY 2 * count(*) OVER (PARTITION BY model_id) > n)
)
SELECT *, n AS judged,
       'answers billed at more than three times, or less than a third of, the price table' AS says
FROM billed WHERE cost_usd > 3 * listed + 1e-9 OR cost_usd * 3 + 1e-9 < listed
QUALIFY 2 * count(*) OVER (PARTITION BY model_id) > n

-- name: canary_drift
-- Fixed prompts at temperature 0, asked at the start and again at the end.
WITH pairs AS (
    SELECT model_id, prompt, last(text) FILTER (phase = 'start') AS text_before,
           last(text) FILTER (phase = 'end') AS text_after,
           last(served_model) FILTER (phase = 'start') AS served_before,
           last(served_model) FILTER (phase = 'end') AS served_after
    FROM canaries GROUP BY model_id, prompt HAVING bool_or(phase = 'start') AND bool_or(phase = 'end')
), counted AS (SELECT *, count(*) OVER (PARTITION BY model_id) AS judged FROM pairs)
SELECT *, left(prompt, 80) AS query_id, 0 AS sample,
       'canary prompts answered differently at the end' AS says
FROM counted WHERE text_before IS DISTINCT FROM text_after
    OR served_before IS DISTINCT FROM served_after
QUALIFY count(*) OVER (PARTITION BY model_id) > 0.5 * judged

-- name: found
SELECT model_id, says, any_value(value), any_value(judged), count(*),
       min((query_id, sample), $shown)
FROM (SELECT NULL AS value, 0 AS part WHERE false UNION ALL BY NAME ({check}))
GROUP BY model_id, part, says, value ORDER BY model_id, part, says, value
