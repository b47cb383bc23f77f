"""Figures of the release page, asked from the release in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.datacards.charts.models import frontier
from routeyard.datacards.site.language import listed
from routeyard.datacards.site.release import SiteRelease
from routeyard.datacards.sql import sql_of
from routeyard.schemas.intervals import widened, wilson

_SQL = sql_of("site")
_CARD = sql_of("numbers")


def models(book: SiteRelease) -> list[dict[str, Any]]:
    """Leaderboard rows, best first: accuracy with an interval, cost, latency, tokens.

    The interval is the certificate's bootstrap where it has one, else Wilson's, for missing and
    undecided labels all wrong to all right. `counts` are what orders are compared by. `cost` is USD
    per 1,000 questions over the pairs whose cost is known, None where none is.
    """
    certified = {row["model_id"]: row for row in (book.certificate or {}).get("models") or ()}
    rows = book.rows(_SQL["models"])
    for row in rows:
        row["counts"] = None
        if row["accuracy"] is not None:
            known = row["pairs"] * (1 - row["ceiling"] + row["floor"])
            row["counts"] = (row["pairs"] * row["floor"], known, row["judged"])
        told = certified.get(row["model_id"]) or {}
        row["low"], row["high"] = told.get("low"), told.get("high")
        if row["low"] is None and row["accuracy"] is not None:
            ends = wilson(row["accuracy"] * row["labelled"], row["labelled"])[1:]
            row["low"], row["high"] = widened(*ends, *row["counts"][1:])
        row["cost"] = None if row["cost_usd"] is None else 1000 * row["cost_usd"]
        row["costs_known"] = bool(row["priced"]) and row["priced"] >= (row["labelled"] or 0)
    whole = [r for r in rows if r["accuracy"] is not None and r["cost"] is not None]
    best = set(frontier(whole))
    for row in rows:
        row["frontier"] = row["model_id"] in best
    return rows


def tasks(book: SiteRelease) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(one row per task, one cell per task and model)."""
    cells = book.rows(_SQL["task_models"])
    rows = book.rows(_SQL["tasks"])
    scored = {row["task"]: row for row in of_health(book, "tasks")}
    for row in rows:
        own = [c for c in cells if c["task"] == row["task"] and c["accuracy"] is not None]
        # Above the others on the questions it was asked, not by the mean of its own questions.
        most = max((c["lead"] or 0.0 for c in own), default=0.0)
        top = [c for c in own if (c["lead"] or 0.0) == most]
        told = scored.get(row["task"]) or {}
        row["mean"] = sum(c["accuracy"] for c in own) / len(own) if own else None
        # Models that are equally good are all named.
        row["best_model"] = listed([c["model_id"] for c in top])
        row["best"] = max((c["accuracy"] for c in top), default=None)
        row["specialist_score"] = told.get("specialist_score")
    sure = specialised(book.rows(_SQL["rivals"]))
    for row in rows:
        score = row["specialist_score"]
        row["specialist"] = (
            None if score is None else "no" if score <= 0 else
            "yes" if row["task"] in sure else "perhaps"
        )  # fmt: skip
    return rows, cells


def specialised(rivals: Sequence[Mapping[str, Any]]) -> set[str]:
    """Tasks on which some model is surely better than the model that is best overall.

    One-sided sign test on the questions that only one of the two gets right, corrected for every
    model on every task (Bonferroni), at 5 %: the best of many models on few questions leads by
    chance.

    Args:
        rivals: task, model_id, won (only this model is right) and lost (only the other is).
    """
    from scipy.special import bdtr

    return {
        row["task"]
        for row in rivals
        if row["won"] > row["lost"]
        and len(rivals) * bdtr(row["lost"], row["won"] + row["lost"], 0.5) < 0.05
    }


def of_health(book: SiteRelease, table: str) -> list[dict[str, Any]]:
    """Rows of a table of the health report; none where it was not made."""
    found = book.health.get(table)
    return [] if found is None else found.to_pylist()


def counts(book: SiteRelease) -> dict[str, Any]:
    """Counts of the page's head."""
    (found,) = book.rows(_SQL["counts"])
    queries, models = (book.manifest.tables[name].rows for name in ("queries", "models"))
    return {**found, "queries": queries, "models": models, "pairs": queries * models}


def contested(book: SiteRelease) -> int:
    """How many labels are in doubt."""
    return int(book.rows("SELECT count(*) FILTER (contested) AS n FROM outcomes")[0]["n"])


def duplicates(book: SiteRelease) -> list[dict[str, Any]]:
    if "duplicates" not in book.manifest.tables:
        return []
    return book.rows(_CARD["duplicates"])


def removals(
    book: SiteRelease, most: int = 500
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(counts per stage and reason, the first `most` rows)."""
    if "removals" not in book.manifest.tables:
        return [], []
    return book.rows(_CARD["removals"]), book.rows(_SQL["removals"].format(most=most))


def decided(book: SiteRelease) -> list[dict[str, Any]]:
    return book.rows(_SQL["decided"])
