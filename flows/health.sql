SELECT model_id AS model, count(*) AS answers,
    count(*) FILTER (status = 'ok') AS ok, count(*) FILTER (status = 'truncated') AS truncated,
    count(*) FILTER (status = 'refused') AS refused, count(*) FILTER (status = 'empty') AS empty,
    count(*) FILTER (status = 'error') AS error, count(*) FILTER (status = 'timeout') AS timeout,
    count(*) FILTER (status = 'unanswered') AS unanswered,
    count(*) FILTER (status = 'ungraded') AS ungraded,
    round(avg(attempts), 3) AS attempts,
    round(median(latency_s), 4) AS latency_p50_s,
    round(quantile_cont(latency_s, 0.95), 4) AS latency_p95_s
FROM read_parquet($1) GROUP BY 1 ORDER BY 1
