"""What the site shows of one release."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from routeyard.datacards import sql_of
from routeyard.datacards.charts import frontier
from routeyard.datacards.site.evaluation import EvaluationTables
from routeyard.datacards.site.language import listed
from routeyard.schemas.release import Manifest, widened, wilson

#: Answers one SQL statement over the release's tables.
Ask = Callable[[str], pa.Table]


@dataclass(frozen=True)
class SiteRelease:
    """One release, as the pages need it.

    Attributes:
        health: Tables of the health report by name; empty when they were not made.
        saved: (name, what it asks, SQL) of the saved queries.
        reports: (title, Markdown) of zoo tables and studies of this release.
        changes: What changed against the version before, as Markdown lines.
        yanked: Why the version is not to be used, or None.
        texts: Whether pages show questions and answers; False leaves figures and charts.
    """

    manifest: Manifest
    ask: Ask
    health: Mapping[str, pa.Table] = field(default_factory=dict)
    evaluations: Sequence[EvaluationTables] = ()
    saved: Sequence[tuple[str, str, str]] = ()
    reports: Sequence[tuple[str, str]] = ()
    changes: Sequence[str] = ()
    yanked: str | None = None
    texts: bool = True

    @property
    def folder(self) -> str:
        """Folder of its pages, relative to the site: safe whatever the manifest says."""
        return f"{slug(self.manifest.name)}/{slug(self.manifest.version)}"

    @property
    def title(self) -> str:
        words = self.manifest.recipe.get("release") or {}
        return str(words.get("title") or self.manifest.name)

    @property
    def description(self) -> str:
        words = self.manifest.recipe.get("release") or {}
        return str(words.get("description") or "")

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        result = (self.manifest.figures.get("certify") or {}).get("certificate")
        return result if isinstance(result, Mapping) else None

    def rows(self, sql: str) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self.ask(sql).to_pylist()
        return results


def slug(text: str) -> str:
    """A file name made of text from outside."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-") or "release"


# Figures of the release page, asked from the release in SQL.

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
        interval = certified.get(row["model_id"]) or {}
        row["low"], row["high"] = interval.get("low"), interval.get("high")
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
        scores = scored.get(row["task"]) or {}
        row["mean"] = sum(c["accuracy"] for c in own) / len(own) if own else None
        # Models that are equally good are all named.
        row["best_model"] = listed([c["model_id"] for c in top])
        row["best"] = max((c["accuracy"] for c in top), default=None)
        row["specialist_score"] = scores.get("specialist_score")
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
    result = book.health.get(table)
    return [] if result is None else result.to_pylist()


def counts(book: SiteRelease) -> dict[str, Any]:
    """Counts of the page's head."""
    (result,) = book.rows(_SQL["counts"])
    queries, models = (book.manifest.tables[name].rows for name in ("queries", "models"))
    return {**result, "queries": queries, "models": models, "pairs": queries * models}


def contested(book: SiteRelease) -> int:
    """How many labels are in doubt."""
    return int(book.rows("SELECT count(*) FILTER (contested) AS n FROM outcomes")[0]["n"])


def prices(book: SiteRelease) -> list[dict[str, Any]]:
    """Where prices were read, and when."""
    return book.rows(_CARD["prices"])


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
