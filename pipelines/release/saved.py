"""The twelve things people ask a release first, as saved queries."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.errors import UnknownName, did_you_mean


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved query: the question in words, and in SQL."""

    asks: str
    sql: str


#: Cost of a pair: the sum over its samples, null as soon as one of them is unknown.
_COSTS = """costs AS (
    SELECT query_id, model_id,
           CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd
    FROM responses GROUP BY query_id, model_id
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
        "SELECT query_id, task, count(score) AS judged,\n"
        "       count(*) FILTER (correct) AS solved_by,\n"
        "       min(model_id) FILTER (correct) AS for_example, left(question, 60) AS question\n"
        "FROM labels JOIN queries USING (query_id)\n"
        "GROUP BY query_id, task, question HAVING count(*) FILTER (correct) > 0\n"
        "ORDER BY solved_by / judged, judged DESC, query_id LIMIT 20",
    ),
    "unsolved": Saved(
        "queries that no model solves, those with most answers first",
        "SELECT query_id, task, count(score) AS judged, left(question, 60) AS question\n"
        "FROM labels JOIN queries USING (query_id)\n"
        "GROUP BY query_id, task, question\n"
        "HAVING count(score) > 0 AND count(*) FILTER (correct) = 0\n"
        "ORDER BY judged DESC, query_id LIMIT 20",
    ),
    "cheapest_correct": Saved(
        "which model is the cheapest correct one, and how often",
        f"WITH {_COSTS}, cheapest AS (\n"
        "    SELECT query_id, min((cost_usd, model_id)) AS best\n"
        "    FROM labels JOIN costs USING (query_id, model_id)\n"
        "    WHERE correct AND cost_usd IS NOT NULL GROUP BY query_id\n"
        ")\n"
        "SELECT best[2] AS model_id, count(*) AS queries,\n"
        "       avg(best[1]) AS mean_cost_usd\n"
        "FROM cheapest GROUP BY ALL ORDER BY queries DESC, model_id",
    ),
    "cost_per_correct": Saved(
        "cost per correct answer of each model (null where a cost is unknown)",
        f"WITH {_COSTS}\n"
        "SELECT model_id, count(*) FILTER (correct) AS correct, count(cost_usd) AS priced,\n"
        "       CASE WHEN count(cost_usd) = count(*)\n"
        "            THEN sum(cost_usd) / nullif(count(*) FILTER (correct), 0) END\n"
        "           AS usd_per_correct\n"
        "FROM labels JOIN costs USING (query_id, model_id)\n"
        "GROUP BY model_id ORDER BY usd_per_correct NULLS LAST, model_id",
    ),
    "contested": Saved(
        "contested labels, where the most models are contested first",
        "SELECT query_id, task, count(*) FILTER (contested) AS contested,\n"
        "       list(model_id ORDER BY model_id) FILTER (contested) AS models\n"
        "FROM labels JOIN queries USING (query_id)\n"
        "GROUP BY query_id, task HAVING count(*) FILTER (contested) > 0\n"
        "ORDER BY contested DESC, query_id LIMIT 20",
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
        "SELECT a.model_id AS model_a, b.model_id AS model_b, count(*) AS queries,\n"
        "       avg(greatest(a.score, b.score)) AS either,\n"
        "       avg(greatest(a.score, b.score)) - greatest(avg(a.score), avg(b.score)) AS gain\n"
        "FROM labels a JOIN labels b ON a.query_id = b.query_id AND a.model_id < b.model_id\n"
        "WHERE a.score IS NOT NULL AND b.score IS NOT NULL\n"
        "GROUP BY ALL ORDER BY gain DESC, model_a, model_b LIMIT 20",
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
        "SELECT scheme, split, count(DISTINCT query_id) AS queries, count(score) AS n_labelled,\n"
        "       avg(score) AS mean_score\n"
        "FROM splits LEFT JOIN labels USING (query_id)\n"
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
