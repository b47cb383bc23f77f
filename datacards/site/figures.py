"""Figures of the release page, asked from the release in SQL."""

from __future__ import annotations

import math
from typing import Any

from routeyard.datacards.charts.models import frontier
from routeyard.datacards.numbers import DUPLICATES, REMOVALS
from routeyard.datacards.site.release import SiteRelease

_MODELS = """
WITH asked AS (SELECT query_no, max(score) AS top FROM outcomes GROUP BY query_no), o AS (
    SELECT model_id, count(score) AS labelled, avg(score) AS accuracy,
           avg(top) FILTER (score IS NOT NULL) AS oracle,
           count(cost_usd) AS priced, avg(cost_usd / greatest(n_responses, 1)) AS cost_usd,
           median(latency_s) AS latency, avg(completion_tokens / greatest(n_responses, 1)) AS tokens
    FROM outcomes JOIN asked USING (query_no) GROUP BY model_id
)
SELECT m.*, o.* EXCLUDE (model_id) FROM models m LEFT JOIN o USING (model_id)
ORDER BY accuracy DESC NULLS LAST, m.model_id
"""
_TASKS = """
WITH asked AS (
    SELECT query_no, any_value(query_id) AS query_id, avg(score) AS middle
    FROM outcomes GROUP BY query_no
), named AS (SELECT query_no, middle, task FROM asked JOIN queries USING (query_id))
SELECT q.task, o.model_id, avg(o.score) AS accuracy, count(o.score) AS labelled,
       round(sum(o.score - q.middle), 9) AS lead
FROM outcomes o JOIN named q USING (query_no)
GROUP BY q.task, o.model_id ORDER BY q.task, o.model_id
"""
_QUERIES = """
SELECT task, any_value(domain) AS domain, any_value(scorer) AS scorer, count(*) AS queries
FROM queries GROUP BY task ORDER BY task
"""


def models(book: SiteRelease) -> list[dict[str, Any]]:
    """Leaderboard rows, best first: accuracy with an interval, cost, latency, tokens.

    The interval is the certificate's bootstrap where it has one, else Wilson's. `cost` is USD
    per 1,000 questions over the pairs whose cost is known, None where none is.
    """
    certified = {row["model_id"]: row for row in (book.certificate or {}).get("models") or ()}
    rows = book.rows(_MODELS)
    for row in rows:
        told = certified.get(row["model_id"]) or {}
        row["low"], row["high"] = told.get("low"), told.get("high")
        if row["low"] is None and row["accuracy"] is not None:
            row["low"], row["high"] = wilson(row["accuracy"], row["labelled"])
        row["cost"] = None if row["cost_usd"] is None else 1000 * row["cost_usd"]
        row["costs_known"] = bool(row["priced"]) and row["priced"] >= (row["labelled"] or 0)
    whole = [r for r in rows if r["accuracy"] is not None and r["cost"] is not None]
    best = set(frontier(whole))
    for row in rows:
        row["frontier"] = row["model_id"] in best
    return rows


def wilson(share: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share of `n`."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def tasks(book: SiteRelease) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(one row per task, one cell per task and model)."""
    cells = book.rows(_TASKS)
    rows = book.rows(_QUERIES)
    scored = {row["task"]: row for row in of_health(book, "tasks")}
    for row in rows:
        own = [c for c in cells if c["task"] == row["task"] and c["accuracy"] is not None]
        # Above the others on the questions it was asked, not by the mean of its own questions.
        top = max(own, key=lambda c: c["lead"] or 0.0, default=None)
        told = scored.get(row["task"]) or {}
        row["mean"] = sum(c["accuracy"] for c in own) / len(own) if own else None
        row["best_model"] = top["model_id"] if top else None
        row["best"] = top["accuracy"] if top else None
        row["specialist_score"] = told.get("specialist_score")
    return rows, cells


def of_health(book: SiteRelease, table: str) -> list[dict[str, Any]]:
    """Rows of a table of the health report; none where it was not made."""
    found = book.health.get(table)
    return [] if found is None else found.to_pylist()


def counts(book: SiteRelease) -> dict[str, Any]:
    """Counts of the page's head."""
    found = book.rows(
        "SELECT count(score) AS labelled, count(*) FILTER (contested) AS contested, "
        "count(*) FILTER (decided_by = 'unreadable') AS unreadable, sum(cost_usd) AS cost, "
        "count(cost_usd) AS priced FROM outcomes"
    )[0]
    queries, models = (book.manifest.tables[name].rows for name in ("queries", "models"))
    return {**found, "queries": queries, "models": models, "pairs": queries * models}


def contested(book: SiteRelease) -> int:
    """How many labels are in doubt."""
    return int(book.rows("SELECT count(*) FILTER (contested) AS n FROM outcomes")[0]["n"])


def duplicates(book: SiteRelease) -> list[dict[str, Any]]:
    if "duplicates" not in book.manifest.tables:
        return []
    return book.rows(DUPLICATES)


def removals(
    book: SiteRelease, most: int = 500
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(counts per stage and reason, the first `most` rows)."""
    if "removals" not in book.manifest.tables:
        return [], []
    return book.rows(REMOVALS), book.rows(
        "SELECT stage, entity, key, reason, left(detail, 400) AS detail FROM removals "
        f"ORDER BY ALL LIMIT {most}"
    )


def decided(book: SiteRelease) -> list[dict[str, Any]]:
    return book.rows(
        "SELECT coalesce(decided_by, 'no label') AS decided_by, count(*) AS n, "
        "count(*) FILTER (contested) AS contested FROM outcomes GROUP BY 1 ORDER BY n DESC, 1"
    )
