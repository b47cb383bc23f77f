"""The twelve things people ask a release first, as saved queries.

They start from the schema `numbered` of the release's database: labels under row numbers,
and what was counted once per query, model and task (`summaries`). Ids and texts are joined
last, to the rows that are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.errors import UnknownName, did_you_mean


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved query: the question in words, and in SQL."""

    asks: str
    sql: str


SAVED: dict[str, Saved] = {
    "accuracy": Saved(
        "accuracy per model and task",
        "SELECT model_id, task, judged AS n_labelled, total / nullif(judged, 0) AS accuracy\n"
        "FROM numbered.per_task JOIN numbered.models USING (model_no)\n"
        "ORDER BY task, accuracy DESC, model_id",
    ),
    "leaderboard": Saved(
        "models by accuracy, with a standard error",
        "WITH per_model AS (\n"
        "    SELECT model_no, count(score) AS n_labelled, avg(score) AS accuracy,\n"
        "           stddev_samp(score) / sqrt(count(score)) AS standard_error\n"
        "    FROM numbered.labels GROUP BY model_no\n"
        ")\n"
        "SELECT model_id, n_labelled, accuracy, standard_error\n"
        "FROM per_model JOIN numbered.models USING (model_no)\n"
        "ORDER BY accuracy DESC NULLS LAST, model_id",
    ),
    "oracle": Saved(
        "per task: oracle, best single model and the gap a router can win, on its questions",
        # A task's best single model is the one furthest above the mean of the questions it was
        # asked (where no label is missing: the most accurate), and the oracle is over the
        # questions that it has a label for. Means over different questions would contradict.
        # In a task without gaps, sums of scores lead the same way, and are exact.
        "WITH of_task AS MATERIALIZED (\n"
        "    SELECT task, count(*) AS asked, avg(top) AS oracle FROM numbered.per_query\n"
        "    JOIN numbered.queries USING (query_no) WHERE judged > 0 GROUP BY task\n"
        "), whole AS (\n"
        "    SELECT task FROM numbered.per_task JOIN of_task USING (task)\n"
        "    GROUP BY task HAVING count(*) FILTER (judged BETWEEN 1 AND asked - 1) = 0\n"
        "), led AS (\n"
        "    SELECT task, model_no, lead, judged AS n, top / judged AS oracle,\n"
        "           total / judged AS single\n"
        "    FROM numbered.leads JOIN numbered.per_task USING (task, model_no)\n"
        "    ANTI JOIN whole USING (task)\n"
        "    UNION ALL SELECT task, model_no, total, judged, oracle, total / judged\n"
        "    FROM numbered.per_task JOIN of_task USING (task) SEMI JOIN whole USING (task)\n"
        "    WHERE judged > 0\n"
        "), best AS (\n"
        "    FROM led QUALIFY row_number()\n"
        "        OVER (PARTITION BY task ORDER BY round(lead, 9) DESC, n DESC, model_no) = 1\n"
        ")\n"
        "SELECT task, n AS queries, oracle, single AS best_single, model_id AS best_model,\n"
        "       oracle - single AS gap\n"
        "FROM best JOIN numbered.models USING (model_no) ORDER BY gap DESC, task",
    ),
    "hardest_solvable": Saved(
        "queries that fewest models solve, but at least one does",
        "WITH solved AS (\n"
        "    SELECT * FROM numbered.per_query WHERE solved_by > 0\n"
        "    ORDER BY solved_by / judged, judged DESC, query_no LIMIT 20\n"
        ")\n"
        "SELECT query_id, task, judged::BIGINT AS judged, solved_by::BIGINT AS solved_by,\n"
        "       model_id AS for_example, left(question, 60) AS question\n"
        "FROM solved JOIN numbered.queries USING (query_no)\n"
        "JOIN numbered.models m ON m.model_no = first_solver\n"
        "ORDER BY solved.solved_by / solved.judged, judged DESC, query_id",
    ),
    "unsolved": Saved(
        "queries that no model solves, those with most answers first",
        "WITH missed AS (\n"
        "    SELECT query_no, judged FROM numbered.per_query WHERE judged > 0 AND solved_by = 0\n"
        "    ORDER BY judged DESC, query_no LIMIT 20\n"
        ")\n"
        "SELECT query_id, task, judged::BIGINT AS judged, left(question, 60) AS question\n"
        "FROM missed JOIN numbered.queries USING (query_no) ORDER BY judged DESC, query_id",
    ),
    "cheapest_correct": Saved(
        "which model is the cheapest correct one, and how often",
        "SELECT model_id, queries, cost_usd / queries AS mean_cost_usd\n"
        "FROM numbered.cheapest JOIN numbered.models USING (model_no)\n"
        "ORDER BY queries DESC, model_id",
    ),
    "cost_per_correct": Saved(
        "cost per correct answer of each model (null where a cost is unknown)",
        "SELECT model_id, correct, priced,\n"
        "       CASE WHEN priced = answered THEN cost_usd / nullif(correct, 0) END\n"
        "           AS usd_per_correct\n"
        "FROM numbered.per_model JOIN numbered.models USING (model_no)\n"
        "ORDER BY usd_per_correct NULLS LAST, model_id",
    ),
    "contested": Saved(
        "contested labels, where the most models are contested first",
        "WITH disputed AS (\n"
        "    SELECT query_no, contested FROM numbered.per_query WHERE contested > 0\n"
        "    ORDER BY contested DESC, query_no LIMIT 20\n"
        "), listed AS (\n"
        "    SELECT query_no, list(model_id ORDER BY model_id) AS models\n"
        "    FROM numbered.labels l SEMI JOIN disputed USING (query_no)\n"
        "    JOIN numbered.models USING (model_no) WHERE l.contested GROUP BY query_no\n"
        ")\n"
        "SELECT query_id, task, contested::BIGINT AS contested, models\n"
        "FROM disputed JOIN listed USING (query_no) JOIN numbered.queries USING (query_no)\n"
        "ORDER BY contested DESC, query_id",
    ),
    "missing": Saved(
        "what is missing: pairs without a label, per model",
        "WITH counted AS (\n"
        "    SELECT model_no, count(score) AS labelled,\n"
        "           count(*) FILTER (decided_by = 'unreadable') AS unreadable\n"
        "    FROM numbered.labels GROUP BY model_no\n"
        "), asked AS (SELECT count(*) AS queries FROM numbered.queries)\n"
        "SELECT model_id, queries, coalesce(labelled, 0) AS labelled,\n"
        "       queries - coalesce(labelled, 0) AS missing, coalesce(unreadable, 0) AS unreadable\n"
        "FROM numbered.models LEFT JOIN counted USING (model_no), asked\n"
        "ORDER BY missing DESC, model_id",
    ),
    "pairs": Saved(
        "pairs of models that complement each other: how much the better of two gains",
        # Scores of 0 and 1 are counted 64 queries at a time, as bits. Queries with a score
        # between the two are few, or at least no worse than all of them joined with themselves.
        "WITH plain AS (\n"
        "    SELECT a.model_no AS a, b.model_no AS b,\n"
        "           sum(bit_count(a.judged & b.judged)) AS n,\n"
        "           sum(bit_count((a.solved | b.solved) & a.judged & b.judged)) AS top,\n"
        "           sum(bit_count(a.solved & b.judged)) AS a_alone,\n"
        "           sum(bit_count(b.solved & a.judged)) AS b_alone\n"
        "    FROM numbered.bits a JOIN numbered.bits b\n"
        "      ON a.word = b.word AND a.model_no < b.model_no GROUP BY ALL HAVING n > 0\n"
        "), shares AS (\n"
        "    SELECT query_no, model_no, score\n"
        "    FROM numbered.labels\n"
        "    SEMI JOIN (FROM numbered.per_query WHERE graded) USING (query_no)\n"
        "    WHERE score IS NOT NULL\n"
        "), graded AS (\n"
        "    SELECT a.model_no AS a, b.model_no AS b, count(*) AS n,\n"
        "           sum(greatest(a.score, b.score)) AS top, sum(a.score) AS a_alone,\n"
        "           sum(b.score) AS b_alone\n"
        "    FROM shares a JOIN shares b ON a.query_no = b.query_no AND a.model_no < b.model_no\n"
        "    GROUP BY ALL\n"
        "), pairs AS (\n"
        "    SELECT a, b, sum(n)::BIGINT AS queries, sum(top)::DOUBLE / sum(n) AS either,\n"
        "           greatest(sum(a_alone)::DOUBLE, sum(b_alone)::DOUBLE) / sum(n) AS single\n"
        "    FROM (FROM plain UNION ALL FROM graded) GROUP BY ALL\n"
        ")\n"
        "SELECT one.model_id AS model_a, other.model_id AS model_b, queries, either,\n"
        "       either - single AS gain\n"
        "FROM pairs JOIN numbered.models one ON one.model_no = a\n"
        "JOIN numbered.models other ON other.model_no = b\n"
        "ORDER BY gain DESC, model_a, model_b LIMIT 20",
    ),
    "tokens": Saved(
        "tokens, cost and latency per model, over what was metered",
        "SELECT model_id, responses, prompt_tokens, completion_tokens, known_cost_usd,\n"
        "       priced, median_latency_s\n"
        "FROM numbered.metered JOIN numbered.models USING (model_no) ORDER BY model_id",
    ),
    "splits": Saved(
        "size and mean score of each split",
        "SELECT scheme, split, count(*) AS queries,\n"
        "       coalesce(sum(judged), 0) :: BIGINT AS n_labelled,\n"
        "       sum(total) / nullif(sum(judged), 0) AS mean_score\n"
        "FROM numbered.splits LEFT JOIN numbered.per_query USING (query_no)\n"
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
