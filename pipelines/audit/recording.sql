-- Checks of a recording, in DuckDB's SQL. `a` holds its answers, one row each, in the order of the source:
-- `row`, the codes and names of its `arm`, `suite` and `question`, its `cell` of arm and suite, its columns
-- as recorded, the characters of its text (`length`), whether its arm is `free`, and whether the
-- infrastructure `failed`. Each check returns what it found: whom it is `about`, what it `says`, the `rows`,
-- and the `severity` where that is not the check's own. Its head says what it needs a column of, how grave
-- it is, what mends it (`score` and `cost`: making those of its rows unknown), and the key to change.

-- name: macros
CREATE MACRO spelled(name) AS regexp_replace(lower(split_part(name, '/', -1)), '[^a-z0-9]+', '', 'g');
CREATE MACRO undated(name) AS spelled(regexp_replace(name, '[-@:_]20\d\d-?\d\d-?\d\d$', ''));
-- A text in lower case without signs of LaTeX and marks around it; its number, signed and without a unit.
CREATE MACRO bare(said) AS trim(lower(
    regexp_replace(said, '\\(?:text|mathrm|mathbf)\b|[\\{}$]', '', 'g')), E' \t\r\n."\'`*');
CREATE MACRO numeral(said) AS nullif(regexp_extract(
    said, '^[-−]?[$€£]? ?(\d[\d,]*(?:\.\d+)?) ?(?:[a-z°²³]{1,12}|[%$€£])?$', 1), '');
CREATE MACRO amount(said) AS CASE WHEN regexp_matches(said, '^[-−]') THEN '-' ELSE '' END
    || regexp_replace(replace(numeral(said), ',', ''), '\.0*$', '');
-- Whether a column's name says how the model ended, and nothing of who graded it.
CREATE MACRO of_the_model(name) AS regexp_matches(lower(name),
    'refus|abstain|declin|format|step|turn|limit|length|trunc|finish|stop|budget|loop|gave_?up|attempt|tool|empty')
    AND NOT regexp_matches(lower(name), 'judge|grad|pars|scor|eval|extract|verif|check|valid|error|fail');
-- The beginning of a text without what differs between two errors of one cause: numbers of requests, hashes, times.
CREATE MACRO opening(said) AS regexp_replace(
    regexp_replace(regexp_replace(lower(said[:320]), '\s\s+|[^\S ]', ' ', 'g'), '[0-9a-f]{8,}|\d{3,}', '…', 'g'),
    '^[\s\v\x1c-\x1f\x{85}\p{Z}]+|[\s\v\x1c-\x1f\x{85}\p{Z}]+$', '', 'g')[:160];

-- name: zero_cost
-- needs: cost_usd
-- severity: grave
-- mends: cost
-- key: collect.recorded[].fields.cost_usd: leave 0 unknown; a model that is free states price_in: 0
SELECT about, says, rows FROM zeros WHERE measure = 'cost_usd' ORDER BY arm

-- name: zero_tokens
-- needs: nothing
-- severity: doubt
-- mends: nothing
-- key: collect.recorded[].fields.completion_tokens
SELECT about, says, rows FROM zeros WHERE measure IN ('prompt_tokens', 'completion_tokens')
ORDER BY measure DESC, arm

-- name: zero_latency
-- needs: latency_s
-- severity: doubt
-- mends: nothing
-- key: collect.recorded[].fields.latency_s
SELECT about, says, rows FROM zeros WHERE measure = 'latency_s' ORDER BY arm

-- name: zeros
-- A cost of 0 is one of arms that state it. Without a completion nothing is said: a text is, and what is right.
WITH measured AS (
    SELECT row, arm, arm_name, suite_name, unnest([
        {'measure': 'cost_usd', 'says': 'costs $0', 'value': cost_usd, 'is': NOT free},
        {'measure': 'latency_s', 'says': 'took 0 s', 'value': latency_s, 'is': true},
        {'measure': 'prompt_tokens', 'says': 'has 0 prompt tokens', 'value': prompt_tokens, 'is': true},
        {'measure': 'completion_tokens', 'says': 'has 0 completion tokens', 'value': completion_tokens,
         'is': coalesce(length, score) > 0}
    ], recursive := true)
    FROM a
), each AS (
    SELECT *, sum(bad) OVER own AS all_bad, sum(known) OVER own AS all_known
    FROM (
        SELECT measure, says, arm, arm_name, count(value) AS known, count(*) FILTER (value = 0 AND "is") AS bad,
               list(row ORDER BY row) FILTER (value = 0 AND "is") AS rows,
               list(DISTINCT suite_name) FILTER (value = 0 AND "is") AS suites
        FROM measured GROUP BY measure, says, arm, arm_name
    )
    WINDOW own AS (PARTITION BY measure)
)
SELECT measure, -1 AS arm, measure AS about, list_sort(flatten(list(rows))) AS rows,
       format('every answer {}: nothing was measured', says) AS says
FROM each WHERE all_bad = all_known AND all_bad > 0 GROUP BY measure, each.says
UNION ALL BY NAME
SELECT measure, arm, arm_name AS about, rows,
       format('{:,} of its {:,} answers{}: each {}, which is unknown and not free', bad, known,
              CASE WHEN len(suites) = 1 AND (SELECT count(DISTINCT suite) FROM a) > 1
                   THEN ' of suite ' || suites[1] ELSE '' END, says) AS says
FROM each WHERE bad > 0 AND all_bad < all_known

-- name: impossible_value
-- needs: nothing
-- severity: grave
-- mends: nothing
-- key: collect.recorded[].fields
-- Negative costs, tokens and times, halves of tokens, more tokens than an answer can have.
WITH measured AS (
    SELECT row, unnest([
        {'part': 1, 'measure': 'cost_usd', 'value': cost_usd, 'counted': false},
        {'part': 2, 'measure': 'latency_s', 'value': latency_s, 'counted': false},
        {'part': 3, 'measure': 'prompt_tokens', 'value': prompt_tokens, 'counted': true},
        {'part': 4, 'measure': 'completion_tokens', 'value': completion_tokens, 'counted': true}
    ], recursive := true)
    FROM a
)
SELECT measure AS about, list(row ORDER BY row) AS rows,
       format('{:,} values cannot be, such as {:g}', count(*), arg_min(value, row)) AS says
FROM measured WHERE value < 0 OR (counted AND (value <> floor(value) OR value > 1e9))
GROUP BY part, measure ORDER BY part

-- name: score_out_of_range
-- needs: score
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.score
SELECT 'score' AS about, list(row ORDER BY row) FILTER (score < 0 OR score > 1) AS rows,
       format('{:,} scores are outside 0 to 1 (from {:g} to {:g})',
              count(*) FILTER (score < 0 OR score > 1), min(score), max(score)) AS says
FROM a HAVING min(score) < 0 OR max(score) > 1

-- name: mean_as_cost
-- needs: cost_usd
-- severity: doubt
-- mends: cost
-- key: collect.recorded[].fields.cost_usd: leave it out where it is a mean of the arm
-- A price per call is one cost too where the tokens are equal, so that lengths have to differ.
SELECT arm_name AS about, list(row ORDER BY row) AS rows,
       format('its cost is ${:.3g} in all {:,} rows, whose answers differ in length: a mean of the arm, not '
              'what each answer cost', min(cost_usd), count(*)) AS says
FROM a WHERE cost_usd > 0 AND coalesce(completion_tokens, length) IS NOT NULL
GROUP BY arm, arm_name
HAVING count(*) >= 20 AND count(DISTINCT coalesce(completion_tokens, length)) >= 10
    AND count(DISTINCT cost_usd) = 1
ORDER BY arm

-- name: tokens_capped
-- needs: completion_tokens
-- severity: doubt
-- mends: nothing
-- key: collect.recorded[].fields.status: a column that says `truncated` of them
SELECT about, says, rows FROM limits WHERE what = 'completion tokens' ORDER BY value, arm

-- name: texts_cut
-- needs: text
-- severity: doubt
-- mends: nothing
-- key: collect.recorded[].fields.text
SELECT about, says, rows FROM limits WHERE what = 'characters' ORDER BY value, arm

-- name: limits
-- Counts that pile up at the top of an arm's range with next to nothing above them: answers or texts that
-- were cut off. A pile is five counts at least, more than all the counts within a tenth below it would put on
-- any one value, five times over. Above a limit that a person would set (a power of two times at most 7, or
-- hundreds) a few may be.
WITH measured AS (
    SELECT row, arm, arm_name, score, unnest([
        {'what': 'completion tokens', 'value': completion_tokens, 'lowest': 16},
        {'what': 'characters', 'value': length, 'lowest': 200}
    ], recursive := true)
    FROM a
), counted AS (
    SELECT *, sum(number) OVER own AS n, count(*) OVER own AS many,
           coalesce(sum(number) OVER (own ORDER BY value DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
           AS above
    FROM (SELECT what, lowest, arm, value, count(*) AS number FROM measured WHERE value IS NOT NULL GROUP BY ALL)
    WINDOW own AS (PARTITION BY what, arm)
), tops AS (
    FROM counted WHERE n >= 20 AND many >= 8 AND value >= lowest AND number >= greatest(5, 0.004 * n)
), beside AS (
    SELECT tops.what, tops.arm, tops.value, tops.number, tops.n, tops.above,
           coalesce(sum(near.number), 0) AS below, coalesce(max(near.number), 0) AS most,
           try_cast(floor(tops.value) AS HUGEINT) AS whole
    FROM tops LEFT JOIN counted AS near ON near.what = tops.what AND near.arm = tops.arm
        AND near.value >= 0.85 * tops.value AND near.value < tops.value
    GROUP BY ALL
), piled AS (
    SELECT what, arm, max(value) AS value, any_value(n) AS n FROM beside
    WHERE (value >= 64 OR value IN (16, 32) OR (number >= greatest(10, 0.025 * n) AND number > 8 * most))
        AND number >= 5 * greatest(below / greatest(0.15 * value, 1), 1) AND number > 3 * most
        AND above <= CASE WHEN (value >= 64 AND whole // (whole & -whole) <= 7) OR value % 100 = 0 OR value IN (16, 32)
                          THEN 0.02 * n ELSE 0 END
    GROUP BY what, arm
)
SELECT what, value, arm, arm_name AS about, list(row ORDER BY row) AS rows,
       format('{:,} of {:,} answers have exactly {:,.0f} {}: they were cut off at a limit{}', count(*), n::BIGINT,
              value, what,
              coalesce(format('; {:.0f} % of them are right', 100 * avg(score)), '')) AS says
FROM piled JOIN measured USING (what, arm, value) GROUP BY what, value, arm, arm_name, n

-- name: timed_out
-- needs: score, latency_s
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.status: a column that says `timeout` of them
-- Times at the top of an arm's range that are nearly all wrong. A call that is stopped ends within a hundredth
-- of the limit.
WITH timed AS (
    SELECT *, max(latency_s) OVER (PARTITION BY arm) AS top, count(*) OVER (PARTITION BY arm) AS n,
           avg((score > 0)::INTEGER) OVER (PARTITION BY arm) AS usual
    FROM a WHERE latency_s IS NOT NULL AND score IS NOT NULL
), piled AS (
    SELECT arm, arm_name, top, n, usual, count(*) FILTER (latency_s >= 0.98 * top) AS slow,
           count(*) FILTER (latency_s >= 0.9 * top AND latency_s < 0.98 * top) AS below,
           list(row ORDER BY row) FILTER (latency_s >= 0.98 * top) AS rows,
           avg((score > 0)::INTEGER) FILTER (latency_s >= 0.98 * top) AS correct
    FROM timed WHERE n >= 20 AND top >= 5 GROUP BY arm, arm_name, top, n, usual
)
SELECT arm_name AS about, rows,
       format('{:,} of {:,} answers took {:.3g} to {:.3g} s, the longest that any took, and {:.0f} % of them are '
              'right: time-outs that count as wrong', slow, n, 0.98 * top, top, 100 * correct) AS says
FROM piled WHERE slow >= greatest(5, 0.01 * n) AND slow > 5 * below AND correct <= 0.1 AND correct < 0.5 * usual
ORDER BY arm

-- name: other_unit
-- needs: nothing
-- severity: doubt
-- mends: nothing
-- key: collect.recorded[].fields
-- Arms whose costs, prices or times are a whole unit above the highest, or below the lowest, of the other arms:
-- between them is every arm of a mixed pool. Costs are compared where no arm has a price.
WITH measured AS (
    SELECT row, arm, arm_name, unnest([
        {'part': 1, 'says': 'its costs are ${:.3g} per million tokens', 'unit': 'a price', 'factor': 10,
         'value': CASE WHEN coalesce(prompt_tokens, 0) + completion_tokens > 0
                       THEN 1e6 * (cost_usd / (coalesce(prompt_tokens, 0) + completion_tokens)) END, 'of': cost_usd},
        {'part': 2, 'says': 'its answers cost ${:.3g}', 'unit': 'a cost', 'factor': 50,
         'value': cost_usd, 'of': cost_usd},
        {'part': 3, 'says': 'its latency is {:.4g} in the median', 'unit': 'one', 'factor': 50,
         'value': latency_s, 'of': latency_s},
        {'part': 4, 'says': 'its number of prompt tokens is {:.4g} in the median', 'unit': 'one', 'factor': 20,
         'value': prompt_tokens, 'of': prompt_tokens}
    ], recursive := true)
    FROM a
), middles AS (
    SELECT part, says, unit, factor, arm, arm_name, median(value) FILTER (value > 0) AS middle,
           list(row ORDER BY row) AS rows
    FROM measured WHERE "of" > 0 GROUP BY part, says, unit, factor, arm, arm_name
    HAVING count(*) FILTER (value > 0) >= 20
), beside AS (
    SELECT *, middle / max(middle) OVER others AS above, middle / min(middle) OVER others AS below
    FROM middles
    WINDOW others AS (PARTITION BY part ORDER BY arm
                      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)
    QUALIFY count(*) OVER others >= 2
), far AS (
    SELECT *, CASE WHEN above > factor THEN above WHEN below < 1 / factor THEN below END AS ratio FROM beside
)
SELECT arm_name AS about, rows,
       format(says, middle) || CASE WHEN ratio > 1
           THEN format(', {:.3g} times the highest of the other arms', ratio)
           ELSE format(', {:.3g} times below the lowest of the other arms', 1 / ratio) END
       || CASE WHEN greatest(ratio, 1 / ratio) < 1e7 THEN format(': {} in another unit?', unit) ELSE '' END AS says
FROM far WHERE ratio IS NOT NULL AND (part <> 1 OR NOT middle BETWEEN 0.01 AND 150)
    AND (part <> 2 OR NOT EXISTS (FROM middles WHERE part = 1))
ORDER BY part, arm

-- name: tokens_exchanged
-- needs: prompt_tokens, completion_tokens
-- severity: doubt
-- mends: nothing
-- key: collect.recorded[].fields.prompt_tokens, .completion_tokens
-- Arms whose prompt tokens are the others' completion tokens. Prompt tokens of one question differ between arms
-- by their tokenizers alone. Of agents each prompt holds the turns before it: nothing is expected of those.
WITH usable AS (
    SELECT row, arm, arm_name, question, ln(prompt_tokens) AS given, ln(completion_tokens) AS made
    FROM a WHERE prompt_tokens > 0 AND completion_tokens > 0
), expected AS (
    SELECT question, quantile_disc(given, 0.5) AS expected FROM usable GROUP BY question HAVING count(*) >= 3
), alike AS (
    SELECT arm, CASE WHEN min(given) < max(given) THEN corr(given, expected) ELSE 0 END AS of_given,
           CASE WHEN min(made) < max(made) THEN corr(made, expected) ELSE 0 END AS of_made
    FROM usable JOIN expected USING (question)
    GROUP BY arm HAVING count(*) >= 20 AND min(expected) < max(expected)
)
SELECT arm_name AS about, list(row ORDER BY row) AS rows,
       format('its completion tokens follow the other arms'' prompt tokens (correlation {:.2f}), and its prompt '
              'tokens do not ({:.2f}): the two are exchanged', of_made, of_given) AS says
FROM alike JOIN usable USING (arm)
WHERE of_given < 0.7 AND of_made >= 0.9 AND (SELECT median(of_given) FROM alike) >= 0.9
    AND (SELECT count(DISTINCT arm) FROM a) >= 3
GROUP BY arm, arm_name, of_given, of_made ORDER BY arm

-- name: score_scale
-- needs: score
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.score
-- Suites, arms and cells whose scores are all small where the others' reach 1. A probability that is small for
-- some answers is smaller still for others.
WITH parts AS (
    SELECT row, score, arm, suite, unnest([
        {'level': 1, 'code': suite, 'about': suite_name},
        {'level': 2, 'code': arm, 'about': arm_name},
        {'level': 3, 'code': cell, 'about': arm_name || ' on ' || suite_name}
    ], recursive := true)
    FROM a
), each AS (
    SELECT level, code, about, count(score) AS number, count(*) FILTER (score > 0) AS above, avg(score) AS mean,
           max(score) FILTER (score > 0) AS highest, min(score) FILTER (score > 0) AS lowest
    FROM parts GROUP BY level, code, about
), judged AS (
    SELECT *, number >= 20 AND above >= greatest(5, 0.1 * number) AND highest <= 0.11 AND lowest >= highest / 20
              AS small,
           count(*) FILTER (number >= 20 AND above >= 5) OVER own AS reach
    FROM each WINDOW own AS (PARTITION BY level)
), told AS (
    SELECT level, code,
           format('no score is above {:.3g} ({:.3g} in the mean), where others reach {:.3g}: scores on another scale',
                  highest, mean, (SELECT max(score) FROM a)) AS says
    FROM judged WHERE small AND (SELECT max(score) FROM a) >= 0.9
        AND CASE level WHEN 1 THEN (SELECT count(DISTINCT suite) FROM a)
                       WHEN 2 THEN (SELECT count(DISTINCT arm) FROM a)
                       ELSE (SELECT count(DISTINCT suite) * count(DISTINCT arm) FROM a) END >= 2
    QUALIFY count(*) OVER (PARTITION BY level) <= 0.34 * reach
)
-- What a suite or an arm told is not told again of its cells.
SELECT about, says, list(row ORDER BY row) AS rows FROM told JOIN parts USING (level, code)
GROUP BY level, code, about, says
HAVING bool_or((level < 2 OR suite NOT IN (SELECT code FROM told WHERE level = 1))
               AND (level < 3 OR arm NOT IN (SELECT code FROM told WHERE level = 2)))
ORDER BY level, code

-- name: filled_score
-- needs: score
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.score: leave it out where it is no answer's own
-- Cells in which one value between 0 and 1 is in every row, or where the others have 0 or 1.
WITH cells AS (
    SELECT cell, suite, arm_name || CASE suite_name WHEN '' THEN '' ELSE ' on ' || suite_name END AS about,
           count(*) AS n, count(*) FILTER (score > 0 AND score < 1) AS parts,
           list(row ORDER BY row) FILTER (score > 0 AND score < 1) AS rows,
           arg_min(score, row) FILTER (score > 0 AND score < 1) AS value,
           max(score) FILTER (score > 0 AND score < 1) - min(score) FILTER (score > 0 AND score < 1) AS spread
    FROM a WHERE score IS NOT NULL GROUP BY cell, suite, arm_name, suite_name
), beside AS (
    SELECT *, sum(n) OVER own - n AS others, (sum(n - parts) OVER own) - (n - parts) AS whole
    FROM cells WINDOW own AS (PARTITION BY suite)
)
SELECT about, rows,
       CASE WHEN parts = n
       THEN format('the score of all {:,} answers is {:.4g}: not what each one got (a mean, or an arm that is '
                   'compared with itself)', n, value)
       ELSE format('{:,} of {:,} scores are {:.4g}, where the other arms have 0 or 1: filled in', parts, n, value)
       END AS says
FROM beside WHERE n >= 20 AND parts >= greatest(10, 0.03 * n) AND spread <= 1e-12
    AND (parts = n OR (others >= 20 AND whole / others >= 0.98))
ORDER BY cell

-- name: running_total
-- needs: cost_usd
-- severity: doubt
-- mends: cost
-- key: collect.recorded[].fields.cost_usd
WITH steps AS (
    SELECT *, cost_usd - lag(cost_usd) OVER (PARTITION BY arm ORDER BY row) AS step FROM a WHERE cost_usd IS NOT NULL
)
SELECT arm_name AS about, list(row ORDER BY row) AS rows,
       format('its costs only rise down the file, from ${:.3g} to ${:.3g}: a running total, not what each answer '
              'cost', arg_min(cost_usd, row), arg_max(cost_usd, row)) AS says
FROM steps GROUP BY arm, arm_name
HAVING count(*) >= 20 AND min(step) >= 0 AND avg((step > 0)::INTEGER) >= 0.9
ORDER BY arm

-- name: repeated_rows
-- needs: nothing
-- severity: doubt
-- mends: score
-- key: collect.recorded[].duplicates
-- Rows that answer what another row has answered: one arm, question and sample.
WITH same AS (
    SELECT arm, question, sample, list(row ORDER BY row) AS rows, count(*) AS times,
           count(*) > 1 AND count(DISTINCT coalesce(score, -1)) > 1 AS differ
    FROM a GROUP BY arm, question, sample
), whole AS (
    SELECT max(times) AS most, min(times) = max(times) AND bool_and(sample IS NULL) AS unnumbered,
           flatten(list(rows ORDER BY arm, question) FILTER (times > 1)) AS rows,
           coalesce(sum(times) FILTER (times > 1), 0)::BIGINT AS again, count(*) FILTER (differ) AS differ
    FROM same
)
SELECT CASE WHEN unnumbered THEN 'sample' ELSE 'rows' END AS about,
       CASE WHEN unnumbered THEN rows ELSE list_sort(rows) END AS rows,
       CASE WHEN unnumbered THEN 'note' WHEN differ > 0 THEN 'grave' END AS severity,
       CASE WHEN unnumbered
       THEN format('every question has {} rows of each arm that nothing numbers: samples?', most)
       ELSE format('{:,} rows come {} times or twice: one arm, question and sample{}', again, most,
                   CASE WHEN differ > 0 THEN format('; {:,} of them with different scores', differ) ELSE '' END)
       END AS says
FROM whole WHERE most > 1

-- name: graded_both_ways
-- needs: score, text
-- severity: doubt
-- mends: score
-- key: sources[].scorer
-- The same answer to the same question, right in one row and wrong in another: the rows of the rarer grade.
WITH same AS (
    SELECT CASE WHEN 2 * sum(score) <= count(*) THEN list(row) FILTER (score = 1)
                ELSE list(row) FILTER (score = 0) END AS rows,
           any_value(length) = 0 AS is_empty
    FROM a WHERE score IN (0, 1) AND text IS NOT NULL
    GROUP BY question, reference, text HAVING sum(score) > 0 AND sum(score) < count(*)
), whole AS (
    SELECT count(*) AS n, list_sort(flatten(list(rows))) AS rows,
           coalesce(sum(len(rows)) FILTER (is_empty), 0)::BIGINT AS nothing
    FROM same
)
SELECT 'grades' AS about, rows,
       format('{:,} answers are right in one row and wrong in another under the same question{}', n,
              CASE WHEN nothing > 0 THEN format(' ({} of them empty)', nothing) ELSE '' END) AS says
FROM whole WHERE n > 0

-- name: unmeasured
-- needs: nothing
-- severity: doubt
-- mends: nothing
-- key: collect.recorded[].fields: the columns of usage
-- Arms without costs, tokens or times that other arms state: their place in a ranking by cost is unknown, and not
-- the first. A column that few arms state says nothing of those that do not.
WITH each AS (
    SELECT arm, arm_name, part, what, count(*) AS total, count(value) AS known
    FROM (
        SELECT arm, arm_name, unnest([
            {'part': 1, 'what': 'the costs', 'value': cost_usd},
            {'part': 2, 'what': 'the prompt tokens', 'value': prompt_tokens},
            {'part': 3, 'what': 'the completion tokens', 'value': completion_tokens},
            {'part': 4, 'what': 'the times', 'value': latency_s}
        ], recursive := true)
        FROM a WHERE score IS NOT NULL
    )
    GROUP BY arm, arm_name, part, what
), lacking AS (
    FROM each WINDOW own AS (PARTITION BY part)
    QUALIFY count(*) FILTER (known / total >= 0.95) OVER own >= greatest(1, 0.5 * count(*) OVER own)
        AND known / total < 0.95 AND total - known >= 5
)
SELECT arm_name AS about,
       (SELECT list(row ORDER BY row) FROM a WHERE a.arm = lacking.arm AND score IS NOT NULL) AS rows,
       format('{} of {:,} answers are unknown: other arms state them',
              string_agg(format('{} of {:,}', what, total - known), ', ' ORDER BY part), any_value(total)) AS says
FROM lacking GROUP BY arm, arm_name ORDER BY min(part), arm

-- name: solved_suite
-- needs: score
-- severity: note
-- mends: nothing
-- key: sources[].exclude
WITH solved AS (
    SELECT suite, count(*) AS arms, min(p) AS least
    FROM (SELECT suite, avg(least(greatest(score, 0), 1)) AS p FROM a WHERE score IS NOT NULL
          GROUP BY cell, suite HAVING count(*) >= 10)
    GROUP BY suite HAVING count(*) >= 3 AND min(p) >= 0.98
)
SELECT CASE suite_name WHEN '' THEN 'all questions' ELSE suite_name END AS about, list(row ORDER BY row) AS rows,
       format('all {} arms have {:.1f} % or more: it tells none from another', arms, 100 * least) AS says
FROM solved JOIN a USING (suite) GROUP BY suite, suite_name, arms, least ORDER BY suite

-- name: foreign_rows
-- needs: served_model
-- severity: grave
-- mends: score
-- key: collect.metering.served_as
-- An arm may be named otherwise than any model: then one name serves all of it.
WITH served AS (
    SELECT arm, arm_name, served_model, count(*) AS n, list(row ORDER BY row) AS rows,
           sum(count(*)) OVER (PARTITION BY arm)::BIGINT AS total,
           min(min(row)) OVER (PARTITION BY served_model) AS first_row
    FROM a WHERE served_model IS NOT NULL GROUP BY arm, arm_name, served_model
)
SELECT arm_name AS about, rows,
       format('{:,} of {:,} answers are {}''s, as their rows say', n, total, repr(served_model)) AS says
FROM served
WHERE NOT same_model(arm_name, served_model) AND NOT contains(spelled(arm_name), spelled(served_model))
    AND (n < total OR served_model IN (SELECT arm_name FROM a))
ORDER BY arm, first_row

-- name: one_arm_two_names
-- needs: score
-- severity: doubt
-- mends: nothing
-- key: collect.recorded[].fields.model: an expression that gives both one name
WITH arms AS (
    SELECT DISTINCT arm, arm_name FROM a
), pairs AS MATERIALIZED (
    SELECT one.arm AS one, other.arm AS other, format('{} and {}', one.arm_name, other.arm_name) AS about
    FROM arms AS one JOIN arms AS other ON one.arm < other.arm WHERE same_model(one.arm_name, other.arm_name)
)
SELECT about, (SELECT list(row ORDER BY row) FROM a WHERE arm IN (one, other)) AS rows,
       'are one model by their names, and share no question: one arm under two names' AS says
FROM pairs
WHERE NOT list_has_any((SELECT list(question) FROM a WHERE arm = one), (SELECT list(question) FROM a WHERE arm = other))
ORDER BY one, other

-- name: reference_rejected
-- needs: score, text, reference
-- severity: doubt
-- mends: score
-- key: sources[].scorer
-- Answers that are the reference, but for a unit and marks, and count as wrong. What is in the last box of a
-- text is the answer, else a text that marks and a unit make no more than some times as long.
WITH wrong AS (
    SELECT row, suite, suite_name, bare(reference) AS expected, bare(CASE
        WHEN contains(text, '\boxed{') AND regexp_matches(text, '(?s)\\boxed\{+[^{}]*(?:\{[^{}]*\})?[^{}]*\}')
        THEN regexp_extract(text, '(?s).*\\boxed\{+([^{}]*(?:\{[^{}]*\})?[^{}]*)\}', 1)
        WHEN coalesce(length, 0) <= 4 * length(reference) + 100 THEN coalesce(text, '') END) AS said
    FROM a WHERE score = 0 AND reference IS NOT NULL
), rejected AS (
    SELECT *, count(*) OVER (PARTITION BY suite) < 3 AS few FROM wrong
    WHERE expected <> '' AND (said = expected OR amount(said) = amount(expected))
)
SELECT CASE WHEN few THEN 'other suites' WHEN any_value(suite_name) = '' THEN 'all questions'
            ELSE any_value(suite_name) END AS about,
       list(row ORDER BY row) AS rows,
       format('{:,} answers are the reference, but for units and marks, and count as wrong', count(*)) AS says
FROM rejected GROUP BY few, CASE WHEN NOT few THEN suite END HAVING count(*) >= 3 ORDER BY few, min(suite)

-- name: damaged_reference
-- needs: score, reference
-- severity: doubt
-- mends: score
-- key: sources[].exclude
-- References that ask for nothing (an article or a preposition alone, a word for no value, signs alone, a
-- separator at the end, a sign of HTML), and that no answer is right against; questions whose rows state several.
-- Where signs alone are what many questions ask for, none is damaged; where options are shuffled for each arm, most
-- questions have several references, and none is reported.
WITH questions AS (
    SELECT question, arg_min_null(reference, row) AS asked, arg_min(question_name, row) AS name, list(row) AS rows,
           max(coalesce(score, -1)) AS best,
           count(DISTINCT coalesce(amount(bare(reference)), bare(reference))) > 1 AS several FROM a GROUP BY question
), bad AS (
    FROM questions WHERE several OR best = 0 AND regexp_matches(asked,
        '^\W*(the|an|of|and|or|to|is|in|it|this|that|nan|null|n/a|todo|tbd|undefined)?\W*$|'
        '[\w)\]][;,:]\s*$|&(amp|lt|gt|quot|nbsp|#\d+);', 'i')
), whole AS (
    SELECT several, count(*) AS n, list_sort(flatten(list(rows))) AS rows,
           array_to_string(list(format('{} of {}', repr(asked[:40]), name) ORDER BY question)[:3], ', ') AS shown
    FROM bad GROUP BY several
)
SELECT 'references' AS about, rows, format(if(several, '{:,} questions have several references ({}, and another)',
       '{:,} references look damaged ({}), and no answer is right against them'), n, shown) AS says
FROM whole WHERE n BETWEEN 1 AND 0.2 * (SELECT count(*) FROM questions) ORDER BY several

-- name: verdict_by_length
-- needs: score, text
-- severity: doubt
-- mends: score
-- key: sources[].scorer
-- Suites on which nearly only the length of an answer decides whether it is right: the share of pairs of a right
-- and a wrong answer of an arm in which the longer one is right.
WITH usable AS (
    SELECT *, score > 0.5 AS correct, rank() OVER (PARTITION BY cell ORDER BY length)
           + (count(*) OVER (PARTITION BY cell, length) - 1) / 2 AS place
    FROM a WHERE length > 0 AND score IS NOT NULL
), cells AS (
    SELECT suite, count(*) FILTER (correct) AS yes, count(*) FILTER (NOT correct) AS no,
           (sum(place) FILTER (correct) - yes * (yes + 1) / 2) / (yes * no) AS share
    FROM usable GROUP BY cell, suite HAVING count(*) >= 40 AND least(yes, no) >= 4
), suites AS (
    SELECT suite, median(share) AS share, greatest(median(share), 1 - median(share)) AS follows, count(*) AS arms
    FROM cells GROUP BY suite HAVING count(*) >= 3 AND follows >= 0.9
)
SELECT CASE suite_name WHEN '' THEN 'all questions' ELSE suite_name END AS about, list(row ORDER BY row) AS rows,
       format('of a right and a wrong answer the {} one is right in {:.0f} % of the pairs (median of {} arms): the '
              'verdict follows the length', CASE WHEN share > 0.5 THEN 'longer' ELSE 'shorter' END, 100 * follows,
              arms) AS says
FROM suites JOIN usable USING (suite) GROUP BY suite, suite_name, share, follows, arms ORDER BY suite

-- name: recurring_answer
-- needs: score, text
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.status: a column that says `refused` or `error` of them
-- One text under many questions of an arm, wrong under nearly all: a refusal or an error. An arm may answer many
-- questions with a letter or a number; it answers them with one sentence where it refuses, or where its harness
-- writes the sentence. Not by chance, by the arm's other answers' rate, are as many wrong.
WITH scored AS (
    SELECT arm, count(*) AS n, count(*) FILTER (score >= 0.5) AS correct FROM a WHERE score IS NOT NULL GROUP BY arm
), openings AS MATERIALIZED (
    SELECT arm, arm_name, question, row, score, opening(text) AS words FROM a
    WHERE score IS NOT NULL AND NOT failed AND length <= 2000
        AND text[:160] LIKE '% % % %'
), clusters AS (
    SELECT arm, arm_name, words, list(row ORDER BY row) AS rows, count(*) AS n, min(row) AS first_row,
           count(*) FILTER (score >= 0.5) AS correct
    FROM openings SEMI JOIN (SELECT arm, words FROM openings GROUP BY arm, words HAVING count(*) >= 10)
    USING (arm, words) GROUP BY arm, arm_name, words HAVING count(DISTINCT question) >= 10
), wrong AS (
    SELECT clusters.* FROM clusters JOIN scored USING (arm)
    WHERE clusters.correct / clusters.n <= 1 - 0.95
        AND clusters.n * ln(1 - least((scored.correct - clusters.correct + 0.5) / (scored.n - clusters.n + 1), 0.999))
            <= ln(1e-6)
    QUALIFY row_number() OVER (PARTITION BY arm ORDER BY clusters.n DESC, first_row DESC) <= 3
)
SELECT arm_name AS about, rows,
       format('{:,} answers are {}, and next to none is right: a refusal, an error or no answer', n,
              repr(words[:80])) AS says
FROM wrong ORDER BY n DESC, arm DESC, first_row DESC

-- name: recurring_error
-- needs: score, error
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.status: a column that says `error` of them, or .error
-- One error beside many wrong answers of an arm, and seldom beside any other arm's. An exception of the model's
-- own program falls on every arm; one that ends a single arm's attempts comes from its set-up.
WITH words AS (
    SELECT *, opening(error) AS words, min(row) OVER (PARTITION BY opening(error)) AS first_row FROM a
    WHERE error IS NOT NULL
), each AS (
    SELECT arm, arm_name, words, first_row, list(row ORDER BY row) AS rows, count(*) AS n,
           greatest((SELECT count(*) FROM a WHERE a.arm = words.arm AND score >= 0), 1) AS total
    FROM words WHERE score = 0 AND NOT failed GROUP BY arm, arm_name, words, first_row
), beside AS (
    SELECT *, coalesce(max(n / total) OVER (
        PARTITION BY words ORDER BY arm
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW
    ), 0) AS others FROM each
)
SELECT arm_name AS about, rows,
       format('{:,} of {:,} answers ended with {} and count as wrong; no other arm has more than {:.1f} % of it: '
              'its set-up failed', n, total, repr(words), 100 * others) AS says
FROM beside WHERE n >= 10 AND n / total >= 0.05 AND n / total > 5 * greatest(others, 0.005)
    AND (SELECT count(DISTINCT arm) FROM a) >= 3
ORDER BY arm, first_row

-- name: rest
-- Columns that no role took: a row for each answer and column. Of few different values (`kinds`) are flags and words.
WITH entries AS (
    SELECT row, arm, arm_name, cell, question, score, cost_usd, prompt_tokens, completion_tokens,
           unnest(map_entries(further_columns), recursive := true)
    FROM a WHERE further_columns IS NOT NULL
)
SELECT entries.* RENAME (key AS name), kinds
FROM entries JOIN (SELECT key, count(DISTINCT coalesce(value, '')) AS kinds FROM entries GROUP BY key) USING (key)

-- name: never_right
-- needs: score, further_columns
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.status, or --map: "status={{ 'ungraded' if COLUMN == 'VALUE' else 'ok' }}"
-- A value of an unnamed column under which no answer is right, where the others, of the same questions and of the
-- same arm and suite, are right more often than chance leaves out: were they graded? Where all others are right, the
-- column repeats the score. It is another score where the other arms fail at these questions too, the more so where
-- it covers most of what is wrong, and, of several numbers, where a larger one is right. On a share that differs
-- between arms the ranking depends. A column whose name says how the model itself ended is noted alone.
WITH usable AS (
    SELECT *, score > 0 AS correct, (sum((score > 0)::INTEGER) OVER own - (score > 0)::INTEGER)
           / nullif(count(*) OVER own - 1, 0) AS of_others, try_cast(value AS DOUBLE) AS figure
    FROM rest WHERE score IS NOT NULL AND kinds BETWEEN 2 AND 12
    WINDOW own AS (PARTITION BY name, question)
), each AS (
    SELECT name, value, count(*) AS n, max(score) AS best, list(row ORDER BY row) AS rows,
           sum(count(*)) OVER own - count(*) AS others, sum(count(*) FILTER (correct)) OVER own AS correct,
           any_value(kinds) > 2 AND any_value(figure) < max(max(figure) FILTER (correct)) OVER own AS low
    FROM usable GROUP BY name, value WINDOW own AS (PARTITION BY name)
), suspects AS (
    FROM each WHERE n >= 10 AND best = 0 AND correct > 0 AND correct < others AND NOT coalesce(low, false)
), marked AS (
    SELECT suspects.name, suspects.value, usable.question, usable.cell, usable.arm, usable.arm_name, usable.correct,
           usable.of_others, usable.value IS NOT DISTINCT FROM suspects.value AS own
    FROM suspects JOIN usable USING (name)
), chances AS (
    -- Logarithm of the chance that none of these is right, by question, and by arm and suite.
    SELECT name, value, stratum, sum(own * ln(1 - least(correct / nullif(total - own, 0), 0.95))) AS chance
    FROM (
        SELECT name, value, stratum, count(*) AS total, count(*) FILTER (own) AS own,
               count(*) FILTER (correct) AS correct
        FROM (SELECT *, unnest([{'stratum': 'question', 'code': question}, {'stratum': 'cell', 'code': cell}],
                               recursive := true) FROM marked)
        GROUP BY name, value, stratum, code
    ) GROUP BY name, value, stratum
), arms AS (
    SELECT name, value, arm_name, avg(own::INTEGER) AS share, count(*) FILTER (own) AS n,
           avg(of_others) FILTER (own) AS of_these, avg(of_others) FILTER (NOT own) AS of_rest
    FROM marked GROUP BY name, value, arm, arm_name
), spread AS (
    SELECT name, value, min(share) AS least, max(share) AS most, arg_max(arm_name, share) AS arm_name,
           most - least >= 0.05 AND most >= 2 * least AS uneven,
           sum(n * of_these) FILTER (of_rest IS NOT NULL) / nullif(sum(n * of_rest), 0) AS ease
    FROM arms GROUP BY name, value
)
SELECT suspects.name AS about, suspects.rows, CASE WHEN of_models THEN 'note' WHEN uneven THEN 'grave' END AS severity,
       format('none of the {:,} answers with {} is right, and of the others {:.0f} %: {}{}', n,
              coalesce(repr(suspects.value), 'nothing there'), 100 * correct / others,
              CASE WHEN of_models THEN 'did the model fail, or was it not graded?' ELSE 'were they graded?' END,
              CASE WHEN uneven THEN format(' They are {:.0f} % of {}, of other arms down to {:.0f} %', 100 * most,
                                           arm_name, 100 * least) ELSE '' END) AS says
FROM (SELECT *, of_the_model(name) AS of_models FROM suspects) AS suspects
    JOIN spread ON spread.name = suspects.name AND spread.value IS NOT DISTINCT FROM suspects.value
WHERE ease >= CASE WHEN n > 0.6 * (n + others - correct) THEN 0.9 ELSE 0.5 END
    AND (SELECT count(*) = 2 AND max(chance) <= ln(1e-5) FROM chances
       WHERE chances.name = suspects.name AND chances.value IS NOT DISTINCT FROM suspects.value AND chance IS NOT NULL)
ORDER BY suspects.name, suspects.value

-- name: other_arm_named
-- needs: further_columns
-- severity: grave
-- mends: score
-- key: collect.recorded[].fields.model: the column that is right, or .served_model
-- An unnamed column that names the row's own arm in most rows, and another arm in the rest.
WITH arms AS (
    SELECT DISTINCT arm_name, spelled(arm_name) AS exact, undated(arm_name) AS short FROM a
), spellings AS (
    SELECT value, coalesce(exact.arm_name, short.arm_name) AS says_arm
    FROM (SELECT DISTINCT value FROM rest WHERE value <> '') LEFT JOIN arms AS exact ON exact.exact = spelled(value)
        LEFT JOIN (FROM arms QUALIFY count(*) OVER (PARTITION BY short) = 1) AS short ON short.short = undated(value)
    WHERE says_arm IS NOT NULL
), named AS (
    SELECT rest.*, says_arm, says_arm = arm_name AS own FROM rest JOIN spellings USING (value)
), mostly AS (
    SELECT name FROM named GROUP BY name HAVING count(*) FILTER (own) > 0.5 * (
        SELECT count(value) FROM rest WHERE rest.name = named.name) AND NOT bool_and(own)
)
SELECT arm_name AS about, list(row ORDER BY row) AS rows,
       format('{:,} answers are {}''s, as column {} says, which names each other row''s own arm', count(*),
              says_arm, repr(name)) AS says
FROM named SEMI JOIN mostly USING (name) WHERE NOT own
GROUP BY name, arm, arm_name, says_arm ORDER BY name, arm, says_arm

-- name: contradictions
-- Unnamed columns that equal the score, a cost or a count in at least 95 % of the rows, rounded or not, and differ in
-- the rest. A score agrees with another column by chance too, which is taken off (Cohen 1960, kappa).
WITH said AS (
    SELECT row, name, value, CASE WHEN lower(value) IN ('true', 'yes', 'correct', 'pass', 'passed') THEN 1
                                  WHEN lower(value) IN ('false', 'no', 'incorrect', 'wrong', 'fail', 'failed') THEN 0
                                  ELSE try_cast(value AS DOUBLE) END AS figure,
           unnest([{'measure': 'score', 'recorded': score}, {'measure': 'cost_usd', 'recorded': cost_usd},
                   {'measure': 'prompt_tokens', 'recorded': prompt_tokens},
                   {'measure': 'completion_tokens', 'recorded': completion_tokens}], recursive := true)
    FROM rest WHERE kinds > 1
    UNION ALL BY NAME
    SELECT row, key AS name, value::INTEGER::VARCHAR AS value, value AS figure, 'score' AS measure, score AS recorded
    FROM (SELECT row, score, unnest(map_entries(further_scores), recursive := true)
          FROM a WHERE further_scores IS NOT NULL)
    WHERE value IN (0, 1) AND score IN (0, 1)
), compared AS (
    SELECT *, abs(figure - recorded) <= greatest(0.001 * abs(recorded), 1e-9
        + CASE WHEN contains(value, '.') THEN 0.5 * 10.0 ** -length(split_part(value, '.', 2)) ELSE 0 END) AS alike
    FROM said WHERE figure IS NOT NULL AND recorded IS NOT NULL AND isfinite(figure)
)
SELECT measure, name, list(row ORDER BY row) FILTER (NOT alike) AS rows,
       format('{:,} of {:,} values of column {} differ from it, such as {} beside {:g}; all others are equal',
              count(*) FILTER (NOT alike), count(*), repr(name), arg_min(value, row) FILTER (NOT alike),
              arg_min(recorded, row) FILTER (NOT alike)) AS says
FROM compared GROUP BY measure, name
HAVING count(*) >= 20 AND avg(alike::INTEGER) >= 0.95 AND NOT bool_and(alike) AND CASE measure WHEN 'score'
    THEN (avg(alike::INTEGER) - (avg(figure) * avg(recorded) + (1 - avg(figure)) * (1 - avg(recorded))))
         >= 0.8 * (1 - (avg(figure) * avg(recorded) + (1 - avg(figure)) * (1 - avg(recorded))))
    ELSE count(DISTINCT recorded) >= 5 END

-- name: score_contradicted
-- needs: score
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.score: the column that is right
SELECT 'score' AS about, rows, says FROM contradictions WHERE measure = 'score' ORDER BY name

-- name: usage_contradicted
-- needs: further_columns
-- severity: doubt
-- mends: cost
-- key: collect.recorded[].fields: the columns of usage that are right
SELECT measure AS about, rows, says FROM contradictions WHERE measure <> 'score' ORDER BY measure, name

-- name: tokens_unlike_texts
-- needs: nothing
-- severity: doubt
-- mends: cost
-- key: collect.recorded[].fields.prompt_tokens, .completion_tokens
SELECT about, rows, says FROM unlike ORDER BY part, arm, about

-- name: unlike
-- Counts that do not follow the texts they are of: one count for most texts of an arm, whatever their length; or
-- of an arm's suite in no order with the lengths, where the other arms' counts are. What is at a limit is cut.
WITH measured AS (
    SELECT row, arm, arm_name, suite, cell, unnest([
        {'part': 1, 'side': 'prompt', 'tokens': prompt_tokens, 'size': prompt_length, 'least': 0.3, 'usual': 0.8},
        {'part': 2, 'side': 'completion', 'tokens': completion_tokens, 'size': length, 'least': 0.1, 'usual': 0.6}
    ], recursive := true)
    FROM a
), counted AS (
    FROM measured WHERE tokens > 0 AND size > 0
), modes AS (
    SELECT part, arm, tokens, count(*) AS times, quantile_disc(size, 0.9) > 1.5 * quantile_disc(size, 0.1) + 20 AS vary,
           sum(count(*)) OVER own AS total, max(tokens) OVER own > tokens OR part = 1 OR count(*) = total AS free
    FROM counted GROUP BY part, arm, tokens WINDOW own AS (PARTITION BY part, arm)
), constants AS (
    FROM modes WHERE total >= 20 AND times > 0.5 * total AND vary AND free
), orders AS (
    SELECT part, side, suite, cell, arm, any_value(least) AS least, any_value(usual) AS usual,
           CASE WHEN min(tokens) < max(tokens) THEN corr(ln(tokens), ln(size)) END AS follows
    FROM counted GROUP BY part, side, suite, cell, arm
    HAVING count(*) >= 30 AND quantile_disc(size, 0.9) > 1.5 * quantile_disc(size, 0.1)
), beside AS (
    SELECT *, CASE count(*) OVER own WHEN 2 THEN max(follows) OVER own ELSE median(follows) OVER own END AS others
    FROM orders WINDOW own AS (PARTITION BY part, suite)
)
SELECT part, arm, arm_name AS about, list(row ORDER BY row) AS rows,
       format('{:,} of its {:,} answers have {:,.0f} {} tokens, whatever the length of the {}', count(*),
              any_value(total)::BIGINT, tokens, side, CASE part WHEN 1 THEN 'prompt' ELSE 'text' END) AS says
FROM constants JOIN counted USING (part, arm, tokens) GROUP BY part, side, arm, arm_name, tokens
UNION ALL BY NAME
SELECT part, arm, arm_name AS about, list(row ORDER BY row) AS rows,
       format('its {} tokens do not follow the length of its texts (correlation {:.2f}, the other arms'' {:.2f})', side,
              follows, others) AS says
FROM beside JOIN (SELECT row, part, cell, arm_name FROM counted) USING (part, cell)
WHERE follows < least AND others >= usual AND (part, arm) NOT IN (SELECT (part, arm) FROM constants)
GROUP BY part, side, cell, arm, arm_name, follows, others

-- name: leak
-- needs: split
-- severity: grave
-- mends: score
-- key: sources[].fields.group
-- Questions of the test split that are in train or validation as well. Those of one `asked` number are one.
WITH questions AS (
    SELECT question, any_value(asked) AS asked, lower(arg_min_null(split, row)) AS split, list(row) AS rows,
           arg_min(question_name, row) AS name
    FROM a GROUP BY question
), bad AS (
    FROM questions WHERE split = 'test'
        AND asked IN (SELECT asked FROM questions WHERE split IN ('train', 'validation', 'val', 'dev'))
)
SELECT 'split' AS about, list_sort(flatten(list(rows))) AS rows,
       format('{:,} of {:,} test questions are also in train or validation (such as {})', count(*),
              (SELECT count(*) FROM questions WHERE split = 'test'), arg_min(name, question)) AS says
FROM bad HAVING count(*) > 0

-- name: ids_shared
-- needs: suite
-- severity: doubt
-- mends: nothing
-- key: sources[].fields.group
-- Ids of one suite that are ids of another, where texts do not say that they differ.
WITH questions AS (
    SELECT question, arg_min(suite, row) AS suite, arg_min(question_name, row) AS name, list(row) AS rows,
           any_value(asked) AS asked, count(*) OVER (PARTITION BY any_value(asked)) AS times,
           count(*) OVER (PARTITION BY arg_min(suite, row)) AS size
    FROM a GROUP BY question
), usable AS (
    FROM questions WHERE times > 1 AND NOT is_row_number(name)
), names AS (
    SELECT DISTINCT suite, suite_name FROM a
)
SELECT one_name.suite_name || ' and ' || other_name.suite_name AS about,
       list_sort(flatten(list(list_concat(one.rows, other.rows)))) AS rows,
       format('{:,} of {:,} ids are ids of the other suite ({:,} questions)', count(*),
              least(any_value(one.size), any_value(other.size)), greatest(any_value(one.size), any_value(other.size)))
       AS says
FROM usable AS one JOIN usable AS other ON one.name = other.name AND one.suite < other.suite
    JOIN names AS one_name ON one_name.suite = one.suite JOIN names AS other_name ON other_name.suite = other.suite
GROUP BY one.suite, other.suite, one_name.suite_name, other_name.suite_name ORDER BY one.suite, other.suite

-- name: copied_rows
-- needs: text
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.model
-- Long answers of an arm that are word for word another arm's answers to the same questions, and to no other, as a
-- refusal or a template is. Arms of one family share a few; a pair is a finding when it shares far more than the
-- arms' other pairs do. Of arms of one model, by their names, a few are only a note.
WITH long AS (
    SELECT row, arm, question, text_code FROM a WHERE length >= 80
), same AS (
    SELECT text_code, arm, list(row) AS rows FROM long
    SEMI JOIN (SELECT text_code FROM long GROUP BY text_code
               HAVING count(DISTINCT question) = 1 AND count(DISTINCT arm) > 1) USING (text_code)
    GROUP BY text_code, arm
), arms AS (
    SELECT arm, arm_name, count(*) FILTER (length >= 80) AS total FROM a GROUP BY arm, arm_name
), shared AS (
    SELECT one.arm AS one, other.arm AS other, count(*) AS n,
           list_sort(flatten(list(list_concat(one.rows, other.rows)))) AS rows
    FROM same AS one JOIN same AS other ON one.text_code = other.text_code AND one.arm < other.arm
    GROUP BY one.arm, other.arm
), pairs AS (
    SELECT one.arm AS one, other.arm AS other, one.arm_name AS one_name, other.arm_name AS other_name,
           coalesce(n, 0) AS n, rows, coalesce(n, 0) / greatest(least(one.total, other.total), 1) AS share
    FROM arms AS one JOIN arms AS other ON one.arm < other.arm
        LEFT JOIN shared ON shared.one = one.arm AND shared.other = other.arm
), usual AS (
    SELECT pairs.one, pairs.other, quantile_cont(rest.share, 0.75) AS share
    FROM pairs LEFT JOIN pairs AS rest ON (rest.one, rest.other) <> (pairs.one, pairs.other)
        AND (rest.one IN (pairs.one, pairs.other) OR rest.other IN (pairs.one, pairs.other))
    WHERE pairs.n >= 5 GROUP BY pairs.one, pairs.other
)
SELECT one_name || ' and ' || other_name AS about, rows,
       CASE WHEN pairs.share < 0.1 AND common_part(one_name, other_name) >= 0.6 THEN 'note' END AS severity,
       format('{:,} long answers to the same questions ({:.0f} %) are equal word for word: rows of one are stored '
              'under the other, or both are one model', n, 100 * pairs.share) AS says
FROM pairs JOIN usual USING (one, other)
WHERE pairs.share > 0.02 AND (usual.share IS NULL OR pairs.share > 3 * usual.share) ORDER BY one, other

-- name: failures_in_a_row
-- needs: score
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.status: a column that says `error` of them, or .error
-- The longest run of an arm's wrong answers, in the order of the source, to questions that most other arms answer.
-- Under chance alone a given one of n such questions begins it with the product of its chances of failing each:
-- those outside the run on its suite, or after a failure, as neighbouring questions are alike; 1 where the arm has
-- next to no others of the suite, since a suite that an arm fails is no outage.
WITH others AS (
    SELECT *, count(score) OVER own - (score IS NOT NULL)::INTEGER AS n,
           sum(coalesce(score, 0)) OVER own - coalesce(score, 0) AS total
    FROM a WINDOW own AS (PARTITION BY question)
), easy AS (
    SELECT row, arm, arm_name, suite, score = 0 AS wrong, row_number() OVER (PARTITION BY arm ORDER BY row) AS place
    FROM others WHERE score IS NOT NULL AND n > 1 AND total / n >= 0.5
), islands AS (
    SELECT arm, min(place) AS start, max(place) AS stop, min(row) AS first_row, max(row) AS last_row
    FROM (SELECT *, place - row_number() OVER (PARTITION BY arm ORDER BY place) AS island FROM easy WHERE wrong)
    GROUP BY arm, island
), longest AS (
    FROM islands WHERE stop - start >= 9 QUALIFY row_number() OVER (PARTITION BY arm ORDER BY start - stop, start) = 1
), parts AS (
    SELECT easy.*, place BETWEEN start AND stop AS inside,
           lag(wrong) OVER (PARTITION BY arm, place BETWEEN start AND stop ORDER BY place) AS after
    FROM easy JOIN longest USING (arm)
), rates AS (
    SELECT arm, suite, count(*) FILTER (inside) AS number, CASE WHEN count(*) FILTER (NOT inside) >= 10
           THEN (count(*) FILTER (NOT inside AND wrong) + 1) / (count(*) FILTER (NOT inside) + 2) ELSE 1 END AS rate
    FROM parts GROUP BY arm, suite
), contagion AS (
    SELECT arm, arm_name, count(*) AS n, 100 * avg(wrong::INTEGER) FILTER (NOT inside) AS elsewhere,
           coalesce(avg(wrong::INTEGER) FILTER (NOT inside AND after), 0) AS again
    FROM parts GROUP BY arm, arm_name
), chances AS (
    SELECT arm, ln(any_value(n)) + sum(number * ln(greatest(rate, again))) AS chance
    FROM rates JOIN contagion USING (arm) WHERE number > 0 GROUP BY arm
)
SELECT arm_name AS about, (SELECT list(row ORDER BY row) FROM a WHERE a.arm = longest.arm AND score = 0
                           AND row BETWEEN first_row AND last_row) AS rows,
       format('{} questions in a row that most arms answer are wrong, where it fails {:.0f} % of them elsewhere: '
              'an outage, not the model', stop - start + 1, elsewhere) AS says
FROM longest JOIN contagion USING (arm) JOIN chances USING (arm)
WHERE chance <= ln(1e-6) AND (SELECT count(DISTINCT arm) FROM a) >= 3 ORDER BY arm

-- name: infrastructure_errors
-- needs: score
-- severity: grave
-- mends: score
-- key: collect.recorded[].fields.status: a column that says `error` of them, or .error
SELECT about, says, rows FROM marked WHERE kind = 'failed' ORDER BY n DESC, arm

-- name: ungraded_as_wrong
-- needs: score, status
-- severity: grave
-- mends: score
-- key: collect.recorded[].fields.status: a column that says `ungraded` of them
-- Many benchmarks count a question without an answer as wrong: that is a doubt.
SELECT about, says, rows, CASE kind WHEN 'not_given' THEN 'doubt' END AS severity FROM marked
WHERE kind IN ('never_graded', 'not_given') ORDER BY kind, n DESC, arm

-- name: stopped_at_limit
-- needs: score, status
-- severity: note
-- mends: score
-- key: collect.recorded[].fields.status: `unanswered` of them makes them missing
SELECT about, says, rows FROM marked WHERE kind = 'stopped' ORDER BY n DESC, arm

-- name: empty_answers
-- needs: score, text
-- severity: doubt
-- mends: score
-- key: collect.recorded[].fields.status: a column that says `empty` or `error` of them
SELECT about, says, rows, CASE kind WHEN 'empty_right' THEN 'grave' END AS severity FROM marked
WHERE kind IN ('empty', 'empty_right') ORDER BY kind, n DESC, arm

-- name: marked
-- Answers that nobody gave or graded, by arm. A text that is missing altogether is empty only where the arm has
-- texts, and its right answers all have one.
WITH texts AS (
    SELECT *, coalesce(bool_or(trimmed > 0) OVER own, false)
           AND NOT coalesce(bool_or(score >= 0.5 AND trimmed IS NULL) OVER own, false) AS has_texts
    FROM a WINDOW own AS (PARTITION BY arm)
), blank AS (
    SELECT *, (trimmed = 0 OR (trimmed IS NULL AND has_texts)) AND NOT failed AND score IS NOT NULL AS is_empty
    FROM texts
), each AS (
    SELECT row, arm, arm_name, count(score) OVER (PARTITION BY arm) AS total, unnest([
        {'kind': 'failed', 'bad': failed AND score = 0, 'what': 'are errors of the infrastructure, counted as wrong'},
        {'kind': 'never_graded', 'bad': ungraded AND NOT not_given AND score = 0,
         'what': 'were never graded and count as wrong'},
        {'kind': 'not_given', 'bad': not_given AND score = 0, 'what': 'were never given and count as wrong'},
        {'kind': 'stopped', 'bad': stopped AND NOT failed AND score = 0,
         'what': 'were stopped at a limit of the benchmark and count as wrong'},
        {'kind': 'empty', 'bad': is_empty AND score < 0.5, 'what': 'are empty and count as wrong'},
        {'kind': 'empty_right', 'bad': is_empty AND score >= 0.5, 'what': 'are empty and count as right'}
    ], recursive := true)
    FROM blank
)
SELECT kind, arm, arm_name AS about, count(*) AS n, list(row ORDER BY row) AS rows,
       format('{:,} of {:,} answers {}', count(*), any_value(total), what) AS says
FROM each WHERE bad GROUP BY kind, arm, arm_name, what

-- name: one_suite_two_names
-- needs: suite
-- severity: doubt
-- mends: nothing
-- key: sources[].fields.task
WITH names AS (
    SELECT suite, suite_name, regexp_replace(lower(suite_name), '[^\p{L}\p{N}]', '', 'g') AS plain,
           list(row) AS rows
    FROM a GROUP BY suite, suite_name
)
SELECT string_agg(repr(suite_name), ', ' ORDER BY suite) AS about, list_sort(flatten(list(rows))) AS rows,
       'are one name in several spellings: its questions are not compared' AS says
FROM names WHERE plain <> '' GROUP BY plain HAVING count(*) > 1 ORDER BY min(suite)

-- name: asked_twice
-- needs: prompt
-- severity: note
-- mends: nothing
-- key: sources[].fields.group
-- Questions with the words of another one, where they are no modes of one.
WITH questions AS (
    SELECT question, any_value(asked) AS asked, list(row) AS rows,
           count(*) OVER (PARTITION BY any_value(asked)) AS times
    FROM a WHERE NOT modes GROUP BY question
)
SELECT 'questions' AS about, list_sort(flatten(list(rows) FILTER (times > 1))) AS rows,
       format('{:,} of {:,} questions ask what another one asks ({:,} groups)', count(*) FILTER (times > 1), count(*),
              count(DISTINCT asked) FILTER (times > 1)) AS says
FROM questions HAVING max(times) > 1
