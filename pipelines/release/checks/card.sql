-- name: card_counts
-- kind: consistent
-- says: counts in the card are those of the tables
-- severity: error
-- needs: queries, models, labels
-- key: line
WITH held(words, n) AS (
    SELECT 'queries', (SELECT count(*) FROM queries)
    UNION ALL SELECT 'models', (SELECT count(*) FROM models)
    UNION ALL SELECT 'labels', (SELECT count(*) FROM labels WHERE score IS NOT NULL)
    UNION ALL SELECT 'contested labels', (SELECT count(*) FROM labels WHERE contested)
    UNION ALL SELECT '`' || name || '`', n FROM ({counted})
)
SELECT line, says AS found, format('{} {:,}', words, n) AS expected
FROM stated.card JOIN held ON starts_with(says, '| ' || words || ' | ')
WHERE NOT contains(says, '%') AND try_cast(replace(figures[1], ',', '') AS BIGINT) IS DISTINCT FROM n

-- name: card_splits
-- kind: consistent
-- says: questions per split in the card are those of the splits
-- severity: error
-- needs: splits
-- key: line
WITH held AS (SELECT scheme, split, count(*) AS n FROM splits GROUP BY ALL)
SELECT line, says AS found, format('{:,} queries', n) AS expected
FROM stated.card JOIN held ON starts_with(says, format('- Split {}, {}: ', scheme, split))
WHERE NOT ends_with(says, format(': {:,} queries.', n))

-- name: card_accuracies
-- kind: consistent
-- says: accuracies in the card are those of the labels
-- severity: error
-- needs: labels, models
-- key: line
WITH accuracy AS (
    SELECT model_id, kind, 100 * avg(score) AS percent FROM models LEFT JOIN labels USING (model_id) GROUP BY ALL
)
SELECT line, says AS found, format('{:.1f} %', percent) AS expected
FROM stated.card JOIN accuracy ON starts_with(says, '| ' || model_id || ' | ') AND ends_with(says, ' | ' || kind || ' |')
WHERE abs(try_cast(regexp_extract(says[length(model_id) + 5 :], '^ *([\d.]+) %', 1) AS DOUBLE) - percent) > 0.06

-- name: certified_accuracies
-- kind: consistent
-- says: models of the certificate have the labels and accuracies of the tables
-- severity: error
-- needs: labels, models
-- key: model_id
WITH certified AS (
    SELECT one->>'model_id' AS model_id, stated.whole(one->'n_labels') AS n, (one->>'accuracy')::DOUBLE AS accuracy
    FROM (SELECT unnest(told->'figures'->'certify'->'certificate'->'$.models[*]') AS one FROM stated.manifest)
), there AS (SELECT model_id, count(score) AS n, avg(score) AS accuracy FROM labels GROUP BY model_id)
SELECT model_id, format('{:,} labels, accuracy {}', c.n, c.accuracy) AS found,
       format('{:,} labels, accuracy {}', coalesce(t.n, 0), t.accuracy) AS expected
FROM certified c LEFT JOIN there t USING (model_id)
WHERE c.n IS DISTINCT FROM coalesce(t.n, 0) OR abs(c.accuracy - t.accuracy) > 1e-9
