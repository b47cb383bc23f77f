SELECT model_id AS model, count(*) AS answers,
    sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
    count(*) - count(cost_usd) AS unpriced, round(sum(cost_usd), 6) AS usd
FROM read_parquet($1) GROUP BY 1 ORDER BY 1
