-- Responses with the costs of another price table, as `Price.of` computes them: unknown without metered
-- tokens, for a prompt longer than the prices hold for, and for cached tokens without a price. What
-- is free to read is free from the cache. Models that `priced` does not list keep theirs.
WITH rated AS (
    SELECT responses.*, priced.model_id IS NOT NULL AS listed, price_in, price_out, price_up_to,
           coalesce(cache_read_tokens, 0) AS read, coalesce(cache_write_tokens, 0) AS written,
           prompt_tokens - read - written AS fresh,
           if(price_in = 0, coalesce(price_cache_read, 0), price_cache_read) AS read_rate,
           if(price_in = 0, coalesce(price_cache_write, 0), price_cache_write) AS write_rate
    FROM responses LEFT JOIN priced USING (model_id)
), costed AS (
    SELECT *, CASE
        WHEN NOT listed THEN cost_usd
        WHEN prompt_tokens > price_up_to OR fresh < 0 THEN NULL
        ELSE (fresh * price_in + (if(read > 0, read * read_rate, 0)
              + if(written > 0, written * write_rate, 0)) + completion_tokens * price_out) / 1e6
        END AS usd
    FROM rated
)
SELECT * EXCLUDE (place, listed, price_in, price_out, price_up_to, read, written, fresh, read_rate,
                  write_rate, usd)
       REPLACE (usd AS cost_usd,
                CASE WHEN usd IS NULL THEN NULL WHEN listed THEN 'price_table' ELSE cost_source END
                AS cost_source)
FROM costed ORDER BY place
