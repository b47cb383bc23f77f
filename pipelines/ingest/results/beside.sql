-- name: macros
CREATE MACRO firsts(items) AS list_filter(items, lambda x, i: list_position(items, x) = i);
CREATE MACRO more(n) AS CASE WHEN n > 0 THEN format(' and {}', n) ELSE '' END;
CREATE MACRO shown(items) AS
    array_to_string(firsts(items)[:3], ', ') || more(len(firsts(items)) - 3);
CREATE MACRO plain(name) AS
    regexp_replace(lower(name), '[\s_\-.:/()\[\]|,''"@%$€£¥₹¢#?]+', '', 'g');
CREATE MACRO counting() AS
    'rate|percent|pct|num(?:ber)?|count|n_|_n$|accuracy|correct|right|solved';
CREATE MACRO stem(name) AS plain(regexp_replace(lower(name), counting(), '', 'g'));
-- Half of the last decimal place that a number is written with.
CREATE MACRO half_place(x) AS 0.505 * 10.0 ** -greatest(1,
    least(4, len(rtrim(split_part(x::VARCHAR, '.', 2), '0'))));
CREATE MACRO places(x) AS list_position(list_transform(range(6),
    lambda p: abs(round(x, p::INTEGER) - x) <= 1e-9 + 1e-5 * abs(x)), true) - 1;

-- name: costs
-- Costs of 0 and missing ones beside models that cost something.
WITH costs AS (
    SELECT *, count(*) OVER (PARTITION BY name) AS n, max(value) OVER (PARTITION BY name) AS most
    FROM figures WHERE is_cost
)
SELECT 'unpriced' AS kind, format(
    CASE WHEN value IS NULL THEN '{:,} of {:,} rows state no {} ({})'
    ELSE '{:,} of {:,} rows have {} 0 ({}): unknown, not free' END,
    count(*), any_value(n), said, shown(list(who ORDER BY r))
) AS says, count(*) AS rows, name AS about
FROM costs WHERE most > 0 AND coalesce(value, 0) = 0
GROUP BY name, said, place, value ORDER BY place, value NULLS LAST

-- name: twice
-- Models with several rows that no other column of words tells apart.
WITH counted AS (SELECT who, min(r) AS r, count(*) AS k FROM lines GROUP BY who, apart)
SELECT 'figures' AS kind, format('{:,} models have several rows ({})',
    count(*) FILTER (k > 1), array_to_string((list(who ORDER BY r) FILTER (k > 1))[:3], ', ')
) AS says, count(*) FILTER (k > 1) AS rows, 'models' AS about
FROM counted HAVING count(*) FILTER (k > 1) BETWEEN 1 AND 0.2 * count(*) ORDER BY says

-- name: totals
-- Rows over another number of questions than most.
WITH counted AS (
    SELECT name, value, count(*) AS k FROM figures
    WHERE count_place IS NOT NULL AND value IS NOT NULL GROUP BY ALL
),
usual AS (
    SELECT name, first(value ORDER BY k DESC, value) AS usual, sum(k)::BIGINT AS n
    FROM counted GROUP BY name HAVING sum(k) >= 5 AND max(k) > 0.5 * sum(k) AND max(k) < sum(k)
)
SELECT 'figures' AS kind, format(
    '{:,} of {:,} rows are over {} questions, the others over {:g} ({})', count(*), any_value(n),
    array_to_string(list_transform(list_sort(list_distinct(list(value)))[:3],
        lambda v: format('{:g}', v)), ', '), any_value(usual), shown(list(who ORDER BY r))
) AS says, count(*) AS rows, name AS about
FROM figures JOIN usual USING (name) WHERE value <> usual
GROUP BY name, count_place ORDER BY count_place

-- name: shares
-- Rates that are not the numbers of right answers over those of questions beside them.
WITH rates AS (
    SELECT name, CASE WHEN max(value) > 1.5 THEN 100 ELSE 1 END AS scale,
        CASE WHEN count(value) = count(places(value))
            THEN 0.505 * 10.0 ** -max(places(value)) ELSE 1e-6 END AS rounding
    FROM figures WHERE regexp_matches(name, 'rate|percent|pct|accuracy|acc$|score|pass\d', 'i')
    GROUP BY name
),
shares AS (
    SELECT a.r, a.who, a.place, a.name, a.said, b.place AS part, b.said AS of, c.count_place,
        c.said AS total, abs(scale * b.value / c.value - a.value) > rounding AS off
    FROM figures a JOIN rates USING (name) JOIN figures b USING (r) JOIN figures c USING (r)
    WHERE b.name <> a.name AND b.count_place IS NULL AND regexp_matches(lower(b.name), counting())
        AND stem(b.name) = stem(a.name) AND c.count_place IS NOT NULL
        AND a.value IS NOT NULL AND b.value IS NOT NULL AND c.value <> 0
),
found AS (
    SELECT name, said, place, of, part, total, count(*) FILTER (off) AS k,
        list(who ORDER BY r) FILTER (off) AS who
    FROM shares GROUP BY name, said, place, of, part, total, count_place
    HAVING count(*) >= 5 AND count(*) FILTER (off) < 0.5 * count(*)
    QUALIFY row_number() OVER (PARTITION BY name, of ORDER BY count_place) = 1
)
SELECT 'figures' AS kind, format('{:,} rows state a {} that is not their {} over {} ({})',
    k, said, of, total, shown(who)) AS says, k AS rows, name AS about
FROM found WHERE k > 0 ORDER BY place, part

-- name: gaps
-- Rows that lack figures that nearly all have.
WITH gaps AS (
    SELECT * FROM figures WHERE NOT is_cost QUALIFY count(*) OVER (PARTITION BY name) >= 5
        AND count_if(value IS NULL) OVER (PARTITION BY name)
            < 0.2 * count(*) OVER (PARTITION BY name)
        AND bool_or(value % 1 <> 0) OVER (PARTITION BY name)
)
SELECT 'figures' AS kind, format(
    '{:,} rows lack {} ({}): a mean over the others is over other questions',
    count(DISTINCT r), array_to_string(firsts(list(name ORDER BY place))[:3], ', '),
    shown(list(who ORDER BY r))
) AS says, count(DISTINCT r) AS rows, 'figures' AS about
FROM gaps WHERE value IS NULL HAVING count(*) > 0 ORDER BY says

-- name: faults
-- Rows with errors in a quarter of their questions or more.
SELECT 'figures' AS kind, format(
    '{:,} rows have {} in a quarter of their questions or more (most: {}, {:g} of {:g} questions)',
    count(*), a.said, first(a.who ORDER BY a.value DESC, r), max(a.value),
    first(b.value ORDER BY a.value DESC, r)
) AS says, count(*) AS rows, a.name AS about
FROM figures a JOIN figures b USING (r)
WHERE b.count_place = 0 AND a.count_place IS NULL AND a.value >= greatest(0.25 * b.value, 5)
    AND regexp_matches(a.name, 'error|timeout|malformed|exhausted|failed_to|crash', 'i')
GROUP BY a.name, a.said, a.place ORDER BY a.place

-- name: calls
-- API calls that name no question, and what is wrong with them.
WITH counts AS (
    SELECT count(*) AS n, coalesce(sum(prompt), 0) AS prompt, sum(cost) AS cost,
        coalesce(sum(completion), 0) AS completion, coalesce(sum(cached), 0) AS cached FROM calls
),
unpriced AS (
    SELECT cost IS NULL AS absent, coalesce(asked, 'no model') AS name, count(*) AS k,
        min(r) AS r
    FROM calls WHERE coalesce(cost, 0) = 0 AND coalesce(prompt, 0) + coalesce(completion, 0) > 0
    GROUP BY ALL
),
others AS (
    SELECT asked, count(*) AS k, min(r) AS r FROM calls
    WHERE asked <> '' AND NOT of_arm GROUP BY asked ORDER BY k DESC, r LIMIT 3
),
served AS (
    SELECT asked, served, count(*) AS k, min(r) AS r FROM calls
    WHERE asked <> '' AND served <> '' AND NOT as_asked GROUP BY ALL ORDER BY k DESC, r LIMIT 3
)
SELECT 1 AS part, 0 AS k, 'calls' AS kind, format(
    '{:,} API calls name no question ({:,.0f} prompt and {:,.0f} completion tokens{}): no answer''s '
    'cost is known from them', n, prompt, completion, coalesce(format(', ${:,.6g}', cost), '')
) AS says, n AS rows, 'API calls' AS about FROM counts
UNION ALL SELECT 2, absent::INTEGER, 'unpriced', format(
    '{:,} of {:,} API calls ({}) state {}, which is unknown and not free', sum(u.k)::BIGINT,
    any_value(n), array_to_string(list(format('{:,} of {}', u.k, name) ORDER BY u.k DESC, r)[:3],
    ', '), CASE WHEN absent THEN 'no cost' ELSE 'a cost of 0' END
), sum(u.k)::BIGINT, 'API calls' FROM unpriced u, counts GROUP BY absent
UNION ALL SELECT 3, others.k, 'other_calls', format(
    '{:,} of {:,} API calls asked {}, which is no arm here (a simulated user, a judge or a '
    'helper?): their tokens and costs are no arm''s own', others.k, n, '''' || asked || ''''
), others.k, asked FROM others, counts
UNION ALL SELECT 4, served.k, 'served', format(
    '{:,} API calls that asked {} were answered by {}', served.k, '''' || asked || '''',
    '''' || served || ''''
), served.k, asked FROM served
UNION ALL SELECT 5, 0, 'choice', format(
    '{:,.0f} of {:,.0f} prompt tokens of API calls were cached: at the price of a prompt token '
    'they are counted too dear', cached, prompt
), 0, 'API calls' FROM counts WHERE cached > 0
ORDER BY part, k DESC

-- name: stated
-- Figures of whole arms that the rows contradict; an arm with several of a kind is left out.
WITH rows_of AS (
    SELECT arm, avg(score) AS mean, sum(score) / greatest(count(*),
            (SELECT count(DISTINCT question) FROM answers)) AS of_all,
        CASE WHEN count(cost_usd) = count(*) THEN avg(cost_usd) END AS mean_cost,
        CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS total_cost
    FROM answers GROUP BY arm
),
compared AS (
    SELECT stated.*, CASE kind WHEN 'accuracy' THEN mean WHEN 'mean_cost' THEN mean_cost
        ELSE total_cost END AS ours, CASE WHEN kind = 'accuracy' THEN
            least(abs(100 * mean - value), abs(mean - value), abs(100 * of_all - value),
                abs(of_all - value)) > half_place(value)
        ELSE abs(value - ours) > 0.01 * greatest(abs(ours), 1e-9) + half_place(value) END AS off
    FROM stated JOIN rows_of ON rows_of.arm = name
    QUALIFY count(*) OVER (PARTITION BY kind, stated.arm) = 1
)
SELECT 'figures' AS kind, format(
    '{} states another {} than the rows give for {} of {} arms ({})', any_value(said),
    replace(kind, '_', ' '), count(*) FILTER (off), count(*), array_to_string(
        (list(format('{}: {:g} stated, {:.6g} over its rows', arm, value, ours) ORDER BY arm)
        FILTER (off))[:3], '; ') || CASE WHEN count(*) FILTER (off) > 3
        THEN format('; and {} more', count(*) FILTER (off) - 3) ELSE '' END
) AS says, count(*) FILTER (off) AS rows, any_value(about) AS about
FROM compared WHERE ours IS NOT NULL GROUP BY kind HAVING count(*) FILTER (off) > 0 ORDER BY kind
