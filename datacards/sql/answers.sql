-- Questions with the answers of every model, for the site and the look-up of a report.

-- name: cells
SELECT query_id, model_id, score, correct, decided_by, contested, cost_usd,
       prompt_tokens, completion_tokens, latency_s
FROM outcomes

-- name: questions
SELECT query_id, task, domain, source,
       left(CASE WHEN prompt = '{withheld}' THEN {instead} ELSE prompt END, {prompt}) AS prompt,
       CASE WHEN prompt = '{withheld}' THEN 0 ELSE length(prompt) END AS length,
       choices, "references", scorer
FROM queries

-- name: images
SELECT query_id, place,
       '[image:' || image_id || '] ' || coalesce(reference, 'bytes of the source') || ': '
       || coalesce(media_type || ', ' || width || ' × ' || height || ' pixels, ' || bytes
       || ' bytes, SHA-256 ' || sha256, 'an address; nobody checked what it leads to')
       || ', licence ' || license AS shown
FROM images

-- name: questions_with_images
SELECT q.* REPLACE (prompt || coalesce(chr(10) || chr(10) || shown, '') AS prompt,
                    length + coalesce(length(shown) + 2, 0) AS length)
FROM questions q LEFT JOIN (
    SELECT query_id, string_agg(left(shown, 500), chr(10) ORDER BY place) AS shown
    FROM images GROUP BY query_id
) USING (query_id)

-- name: responses
SELECT query_id, model_id, sample, status, text FROM responses

-- name: no_responses
SELECT query_id, model_id, 0 AS sample, '' AS status, '' AS text
FROM (SELECT * FROM outcomes LIMIT 0)

-- name: verdicts
SELECT query_id, model_id, sample, scorer, scorer_version AS version, outcome, score,
       left(extracted, {read}) AS read, span_start, span_end, left(reason, 1500) AS reason,
       cost_usd AS cost
FROM verdicts

-- name: no_verdicts
SELECT query_id, model_id, 0 AS sample, '' AS scorer, '' AS version, '' AS outcome, 0.0 AS score,
       '' AS read, 0 AS span_start, 0 AS span_end, '' AS reason, 0.0 AS cost
FROM (SELECT * FROM outcomes LIMIT 0)

-- name: heads
SELECT query_id, CAST(to_json({
    'query_id': query_id, 'task': task, 'domain': domain, 'source': source, 'prompt': prompt,
    'length': length, 'choices': choices, 'references': "references", 'scorer': scorer
}) AS VARCHAR) AS head
FROM questions ORDER BY query_id

-- name: told
-- A row for each verdict of each answer of each cell, in the order in which they are shown: the
-- caller joins them. Lists of structs took DuckDB three times as long.
-- `first`, `last`: characters of the text that are kept, from `first` up to before `last`.
WITH span AS (
    SELECT query_id, model_id, sample,
           arg_min({'first': span_start, 'last': span_end}, {'a': scorer, 'b': version}) AS span
    FROM verdicts WHERE span_start IS NOT NULL GROUP BY ALL
), spanned AS (
    SELECT a.*, length(a.text) AS n,
           CASE WHEN span.first BETWEEN 0 AND span.last AND span.last <= length(a.text)
                THEN span END AS span
    FROM answers a LEFT JOIN span USING (query_id, model_id, sample)
), ended AS (
    SELECT *, CASE WHEN n <= $longest THEN n ELSE least(n, greatest(
        coalesce(span.last, n) + $longest // 5, $longest)) END AS last
    FROM spanned
), cut AS (
    SELECT *, CASE WHEN n <= $longest THEN 0 ELSE least(
        greatest(0, last - $longest), coalesce(span.first, n)) END AS first
    FROM ended
), answer AS (
    SELECT query_id, model_id, sample, CAST(to_json({
        'status': status,
        'text': CASE WHEN text IS NULL THEN NULL
            WHEN span IS NULL THEN [substring(text, first + 1, last - first)]
            ELSE [substring(text, first + 1, span.first - first),
                  substring(text, span.first + 1, span.last - span.first),
                  substring(text, span.last + 1, last - span.last)] END,
        'cut': CASE WHEN first > 0 OR last < n THEN [first, n - last] END}) AS VARCHAR) AS answer
    FROM cut
), verdict AS (
    SELECT query_id, model_id, sample, scorer, version, CAST(to_json({
        'scorer': scorer, 'version': version, 'outcome': outcome, 'score': score, 'read': read,
        'reason': reason, 'cost': cost}) AS VARCHAR) AS verdict
    FROM verdicts
), cell AS (
    SELECT query_id, model_id, place, CAST(to_json({
        'model': place, 'score': score, 'correct': correct, 'by': decided_by,
        'contested': contested, 'cost': cost_usd, 'in': prompt_tokens, 'out': completion_tokens,
        'latency': round(CAST(latency_s AS DOUBLE), 3)}) AS VARCHAR) AS cell
    FROM cells JOIN places USING (model_id)
)
SELECT query_id, place, sample, cell, answer, verdict
FROM cell LEFT JOIN answer USING (query_id, model_id)
LEFT JOIN verdict USING (query_id, model_id, sample)
ORDER BY query_id, place, sample, scorer, version
