-- Rows of the layouts, each over `pairs`: every pair that has a label, with its question, the split
-- of the release's first scheme, its label and its answer. Pairs without a label are left out,
-- never wrong; what is not known is null.

-- name: pairs
SELECT q.query_no, l.model_no, q.query_id, q.task, q.prompt, q.question, q."references", q.choices,
       q.scorer, coalesce(s.split, 'test') AS split, l.model_id, l.score, l.correct,
       r.text, r.prompt_tokens, r.completion_tokens, r.cost_usd, r.latency_s
FROM outcomes l
JOIN numbered.queries q USING (query_no)
LEFT JOIN (SELECT query_no, split FROM numbered.splits
           WHERE scheme = (SELECT min(scheme) FROM splits)) s USING (query_no)
LEFT JOIN responses r
  ON r.query_id = l.query_id AND r.model_id = l.model_id AND r.sample = 0
WHERE l.score IS NOT NULL

-- name: no_responses
(SELECT NULL::VARCHAR AS query_id, NULL::VARCHAR AS model_id, 0 AS sample,
        NULL::VARCHAR AS text, NULL::BIGINT AS prompt_tokens,
        NULL::BIGINT AS completion_tokens, NULL::DOUBLE AS cost_usd, NULL::DOUBLE AS latency_s)

-- name: embedllm
SELECT split, score IN (0, 1) AS whole, query_no AS prompt_id, model_no AS model_id,
       model_id AS model_name, task AS category, prompt, correct::INTEGER AS label
FROM pairs ORDER BY query_no, model_no

-- name: llmrouterbench
SELECT task, split, model_id,
       {'index': query_no, 'origin_query': question, 'prompt': prompt,
        'prompt_tokens': prompt_tokens, 'completion_tokens': completion_tokens, 'cost': cost_usd,
        'score': score, 'prediction': '', 'ground_truth': "references", 'raw_output': text,
        'extra_fields': {'query_id': query_id}} AS record, latency_s AS seconds
FROM pairs ORDER BY query_no, model_no

-- name: routellm
SELECT query_id, model_id, task, split, prompt, correct, score, text
FROM pairs ORDER BY query_no, model_no

-- name: routerarena
WITH lines AS (
    SELECT query_no, model_no, model_id, cost_usd,
           regexp_replace(task, '\s+', '-', 'g') || '_' || query_no AS number, prompt, text,
           {'input_tokens': prompt_tokens, 'output_tokens': completion_tokens,
            'total_tokens': prompt_tokens + completion_tokens} AS used,
           "references"[1] AS truth, score, scorer
    FROM pairs
)
SELECT model_id,
       {'global_index': number, 'question': prompt, 'llm_selected': model_id,
        'generated_answer': text, 'token_usage': used, 'success': true, 'provider': NULL,
        'error': NULL,
        'evaluation_result': {'extracted_answer': NULL, 'ground_truth': truth, 'score': score,
                              'metric': scorer, 'inference_cost': cost_usd}} AS cached,
       -- An answer as the choice of a router that always takes its model.
       {'global index': number, 'prompt': prompt, 'prediction': model_id,
        'generated_result': {'generated_answer': text, 'success': true, 'token_usage': used,
                             'provider': NULL, 'error': NULL},
        'accuracy': score, 'cost': cost_usd} AS prediction
FROM lines ORDER BY query_no, model_no

-- name: routerarena_prices
SELECT model_id, CASE WHEN price_in IS NOT NULL AND price_out IS NOT NULL THEN
       {'input_token_price_per_million': price_in, 'output_token_price_per_million': price_out}
       END AS price
FROM models ORDER BY model_id

-- name: sprout
SELECT split, query_id, model_id, cost_usd,
       {'key': query_id, 'dataset': task, 'dataset idx': query_no::VARCHAR, 'prompt': prompt,
        'golden_answer': "references"[1]} AS question,
       {'num_input_tokens': prompt_tokens, 'num_output_tokens': completion_tokens,
        'response': text, 'score': score} AS cell
FROM pairs ORDER BY query_no, model_no

-- name: ulab
SELECT split, query_id,
       {'task_name': task, 'query': prompt, 'ground_truth': "references"[1], 'metric': scorer,
        'choices': choices, 'task_id': query_id} AS question,
       {'model_name': model_id, 'response': text,
        'token_num': prompt_tokens + completion_tokens, 'input_tokens': prompt_tokens,
        'output_tokens': completion_tokens, 'response_time': latency_s, 'performance': score,
        'cost': cost_usd, 'embedding_id': query_no} AS answer
FROM pairs ORDER BY query_no, model_no
