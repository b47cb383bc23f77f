"""The twelve things people ask a release first, as saved queries.

They count by `query_id` before they join the text of the questions, and join pairs of
labels by number, not by id: both are several times faster on millions of labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.errors import UnknownName, did_you_mean


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved query: the question in words, and in SQL."""

    asks: str
    sql: str


#: Labels with the cost of their pair: the sum over its samples, null as soon as one of them
#: is unknown. A label without a response is not among them.
_PRICED = """priced AS (
    SELECT query_id, model_id, any_value(correct) AS correct,
           CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd
    FROM labels JOIN responses USING (query_id, model_id){where}
    GROUP BY query_id, model_id
)"""

SAVED: dict[str, Saved] = {
    "accuracy": Saved(
        "accuracy per model and task",
        "SELECT model_id, task, count(score) AS n_labelled, avg(score) AS accuracy\n"
        "FROM labels JOIN queries USING (query_id)\n"
        "GROUP BY model_id, task ORDER BY task, accuracy DESC, model_id",
    ),
    "leaderboard": Saved(
        "models by accuracy, with a standard error",
        "SELECT model_id, count(score) AS n_labelled, avg(score) AS accuracy,\n"
        "       stddev_samp(score) / sqrt(count(score)) AS standard_error\n"
        "FROM labels GROUP BY model_id ORDER BY accuracy DESC NULLS LAST, model_id",
    ),
    "oracle": Saved(
        "per task: oracle, best single model and the gap a router can win",
        "WITH best AS (\n"
        "    SELECT query_id, max(score) AS top FROM labels WHERE score IS NOT NULL\n"
        "    GROUP BY query_id\n"
        "), per_model AS (\n"
        "    SELECT task, model_id, avg(score) AS accuracy\n"
        "    FROM labels JOIN queries USING (query_id) GROUP BY task, model_id\n"
        "), single AS (\n"
        "    SELECT task, max(accuracy) AS best_single, arg_max(model_id, accuracy) AS best_model\n"
        "    FROM per_model GROUP BY task\n"
        ")\n"
        "SELECT task, count(*) AS queries, avg(top) AS oracle, best_single, best_model,\n"
        "       avg(top) - best_single AS gap\n"
        "FROM best JOIN queries USING (query_id) JOIN single USING (task)\n"
        "GROUP BY task, best_single, best_model ORDER BY gap DESC, task",
    ),
    "hardest_solvable": Saved(
        "queries that fewest models solve, but at least one does",
        "WITH solved AS (\n"
        "    SELECT query_id, count(score) AS judged, count(*) FILTER (correct) AS solved_by,\n"
        "           min(model_id) FILTER (correct) AS for_example\n"
        "    FROM labels GROUP BY query_id HAVING count(*) FILTER (correct) > 0\n"
        "    ORDER BY solved_by / judged, judged DESC, query_id LIMIT 20\n"
        ")\n"
        "SELECT query_id, task, judged, solved_by, for_example, left(question, 60) AS question\n"
        "FROM solved JOIN queries USING (query_id)\n"
        "ORDER BY solved_by / judged, judged DESC, query_id",
    ),
    "unsolved": Saved(
        "queries that no model solves, those with most answers first",
        "WITH missed AS (\n"
        "    SELECT query_id, count(score) AS judged FROM labels GROUP BY query_id\n"
        "    HAVING count(score) > 0 AND count(*) FILTER (correct) = 0\n"
        "    ORDER BY judged DESC, query_id LIMIT 20\n"
        ")\n"
        "SELECT query_id, task, judged, left(question, 60) AS question\n"
        "FROM missed JOIN queries USING (query_id) ORDER BY judged DESC, query_id",
    ),
    "cheapest_correct": Saved(
        "which model is the cheapest correct one, and how often",
        f"WITH {_PRICED.format(where=' WHERE correct')}, cheapest AS (\n"
        "    SELECT query_id, min((cost_usd, model_id)) AS best\n"
        "    FROM priced WHERE cost_usd IS NOT NULL GROUP BY query_id\n"
        ")\n"
        "SELECT best[2] AS model_id, count(*) AS queries,\n"
        "       avg(best[1]) AS mean_cost_usd\n"
        "FROM cheapest GROUP BY ALL ORDER BY queries DESC, model_id",
    ),
    "cost_per_correct": Saved(
        "cost per correct answer of each model (null where a cost is unknown)",
        f"WITH {_PRICED.format(where='')}\n"
        "SELECT model_id, count(*) FILTER (correct) AS correct, count(cost_usd) AS priced,\n"
        "       CASE WHEN count(cost_usd) = count(*)\n"
        "            THEN sum(cost_usd) / nullif(count(*) FILTER (correct), 0) END\n"
        "           AS usd_per_correct\n"
        "FROM priced GROUP BY model_id ORDER BY usd_per_correct NULLS LAST, model_id",
    ),
    "contested": Saved(
        "contested labels, where the most models are contested first",
        "WITH disputed AS (\n"
        "    SELECT query_id, count(*) AS contested, list(model_id ORDER BY model_id) AS models\n"
        "    FROM labels WHERE contested GROUP BY query_id\n"
        "    ORDER BY contested DESC, query_id LIMIT 20\n"
        ")\n"
        "SELECT query_id, task, contested, models\n"
        "FROM disputed JOIN queries USING (query_id) ORDER BY contested DESC, query_id",
    ),
    "missing": Saved(
        "what is missing: pairs without a label, per model",
        "SELECT model_id, (SELECT count(*) FROM queries) AS queries,\n"
        "       count(score) AS labelled,\n"
        "       (SELECT count(*) FROM queries) - count(score) AS missing,\n"
        "       count(*) FILTER (decided_by = 'unreadable') AS unreadable\n"
        "FROM models LEFT JOIN labels USING (model_id)\n"
        "GROUP BY model_id ORDER BY missing DESC, model_id",
    ),
    "pairs": Saved(
        "pairs of models that complement each other: how much the better of two gains",
        "WITH q AS (SELECT query_id, row_number() OVER () :: INTEGER AS q FROM queries),\n"
        "m AS (SELECT model_id, row_number() OVER (ORDER BY model_id) :: SMALLINT AS m\n"
        "      FROM models),\n"
        "coded AS MATERIALIZED (\n"
        "    SELECT q, m, score FROM labels JOIN q USING (query_id) JOIN m USING (model_id)\n"
        "    WHERE score IS NOT NULL\n"
        "), pairs AS (\n"
        "    SELECT a.m AS a, b.m AS b, count(*) AS queries,\n"
        "           avg(greatest(a.score, b.score)) AS either,\n"
        "           avg(greatest(a.score, b.score))\n"
        "               - greatest(avg(a.score), avg(b.score)) AS gain\n"
        "    FROM coded a JOIN coded b ON a.q = b.q AND a.m < b.m GROUP BY ALL\n"
        ")\n"
        "SELECT one.model_id AS model_a, other.model_id AS model_b, queries, either, gain\n"
        "FROM pairs JOIN m one ON one.m = a JOIN m other ON other.m = b\n"
        "ORDER BY gain DESC, model_a, model_b LIMIT 20",
    ),
    "tokens": Saved(
        "tokens, cost and latency per model, over what was metered",
        "SELECT model_id, count(*) AS responses, avg(prompt_tokens) AS prompt_tokens,\n"
        "       avg(completion_tokens) AS completion_tokens, sum(cost_usd) AS known_cost_usd,\n"
        "       count(cost_usd) AS priced, median(latency_s) AS median_latency_s\n"
        "FROM responses GROUP BY model_id ORDER BY model_id",
    ),
    "splits": Saved(
        "size and mean score of each split",
        "WITH per_query AS (\n"
        "    SELECT query_id, count(score) AS n_labelled, sum(score) AS total\n"
        "    FROM labels GROUP BY query_id\n"
        ")\n"
        "SELECT scheme, split, count(*) AS queries,\n"
        "       coalesce(sum(n_labelled), 0) :: BIGINT AS n_labelled,\n"
        "       sum(total) / sum(n_labelled) AS mean_score\n"
        "FROM splits LEFT JOIN per_query USING (query_id)\n"
        "GROUP BY scheme, split ORDER BY scheme, split",
    ),
}


def saved(name: str) -> Saved:
    """A saved query by name.

    Raises:
        UnknownName: there is none of that name.
    """
    if name not in SAVED:
        raise UnknownName(f"there is no saved query {name!r}", next_step=did_you_mean(name, SAVED))
    return SAVED[name]
