-- name: samples
-- Usable answers of each model to each question, by sample, with what the question's own scorer
-- read in them; of several versions of the scorer the newest counts.
WITH read AS (
    SELECT query_id, model_id, sample,
           arg_max({'extracted': extracted, 'outcome': outcome}, scorer_version) AS newest
    FROM verdicts JOIN queries USING (query_id, scorer) GROUP BY query_id, model_id, sample
)
SELECT query_id, model_id, list(sample ORDER BY sample) AS numbers,
       list(text ORDER BY sample) AS texts, list(newest.extracted ORDER BY sample) AS extracted,
       list(newest.outcome ORDER BY sample) AS outcomes, list(logprobs ORDER BY sample) AS logprobs
FROM responses LEFT JOIN read USING (query_id, model_id, sample)
WHERE list_contains($models, model_id) AND list_contains($statuses, status) AND text IS NOT NULL
GROUP BY query_id, model_id ORDER BY query_id, model_id

-- name: judged
-- A judge's scores; abstentions and outages are none, and the newest version of the judge counts.
WITH newest AS (
    SELECT query_id, model_id, sample, arg_max({'score': score}, scorer_version).score AS score
    FROM verdicts WHERE scorer = $scorer AND list_contains($models, model_id)
    GROUP BY query_id, model_id, sample
)
SELECT query_id, model_id, list(score ORDER BY sample) AS scores
FROM newest WHERE score IS NOT NULL GROUP BY query_id, model_id ORDER BY query_id, model_id

-- name: signalled
-- One model's answers with a text, and what was asked.
SELECT query_id, sample, text, logprobs, prompt FROM responses JOIN queries USING (query_id)
WHERE model_id = $model AND text IS NOT NULL ORDER BY query_id, sample
