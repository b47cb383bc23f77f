"""Content of a release's first page: leaderboard, tasks, agreement, duplicates, certificate."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from routeyard.datacards.card import VERDICTS, pool_sources, sentences
from routeyard.datacards.charts import (
    MOST_CELLS,
    PAGE,
    accuracy_bars,
    agreement,
    bars,
    cost_accuracy,
    heatmap,
)
from routeyard.datacards.site import release as figures
from routeyard.datacards.site.evaluation import cheapest_words, headline
from routeyard.datacards.site.release import SiteRelease

# What is doubtful about a release, each with the questions behind it.

#: Characters of a finding that are shown.
LONGEST = 400


def doubts(book: SiteRelease) -> list[dict[str, Any]]:
    """Sentences with counts, and where on the site their questions are; none where all is well."""
    counts = figures.counts(book)
    found: list[dict[str, Any]] = []

    def say(n: int, one: str, many: str, link: str | None = None) -> None:
        if n:
            found.append({"says": f"{n:,} {one if n == 1 else many}", "link": link})

    say(
        counts["contested"],
        "label is contested: verdicts disagree, or the text commits to several answers",
        "labels are contested: verdicts disagree, or the text commits to several answers",
        "questions.html#contested=1",
    )
    missing = counts["pairs"] - counts["labelled"]
    say(
        missing,
        "pair has no label",
        "pairs have no label, and are neither right nor wrong",
        "questions.html#missing=1",
    )
    say(
        counts["unreadable"], "answer could not be read, and is wrong",
        "answers could not be read, and are wrong", "#labels",
    )  # fmt: skip
    unpriced = counts["pairs"] - counts["priced"]
    say(unpriced, "pair has no known cost", "pairs have no known cost, and are not free")
    for row in figures.duplicates(book):
        say(
            row["conflicts"], "group of near-duplicates has labels that disagree",
            "groups of near-duplicates have labels that disagree", "questions.html#duplicates=1",
        )  # fmt: skip
    certificate = book.certificate or {}
    if certificate.get("verdict") not in (None, "routable"):
        says = f"The certificate's verdict is: {certificate['verdict']}"
        found.append({"says": says, "link": "#certificate"})
    audited = book.manifest.figures.get("audit") or {}
    for finding in (*audited.get("defects", ()), *audited.get("defects_waived", ())):
        kind, _, says = str(finding).removeprefix("audit:").partition(": ")
        words = f"Audit, {kind.replace('_', ' ')}: {says}"
        found.append(
            {"says": words if len(words) <= LONGEST else f"{words[:LONGEST]}…", "link": None}
        )
    recipe = book.manifest.recipe.get("release") or {}
    told = [str(issue) for issue in recipe.get("known_issues") or ()]
    told += [f"The gate {one.gate} was waived: {one.reason}" for one in book.manifest.waivers]
    return [*found, *({"says": one, "link": "data.html#changes"} for one in told)]


CHARTS = ("accuracy", "cost", "heatmap", "specialists", "likeness")


def content(book: SiteRelease) -> dict[str, Any]:
    """What `release.html.jinja` shows."""
    models = figures.models(book)
    tasks, cells = figures.tasks(book)
    removed, first = figures.removals(book)
    first = first if book.texts else []
    evaluated = book.evaluations[0] if book.evaluations else None
    simulated = any(row["simulated"] for row in models)
    return {
        "answer": headline(evaluated, models, simulated=simulated),
        "cheapest": cheapest_words(evaluated, simulated=simulated) if evaluated else None,
        "simulated": simulated,
        "recorded": (book.manifest.recipe.get("collect") or {}).get("provider") == "recorded",
        "kinds": any(row["simulated"] or row["kind"] != "real" for row in models),
        "verdicts": VERDICTS,
        "counts": figures.counts(book),
        "models": models,
        "tasks": tasks,
        "budgeted": any(row["budgeted"] for row in figures.of_health(book, "facts")),
        "duplicates": figures.duplicates(book),
        "looked": any(r.get("rule") == "dedup" for r in book.manifest.recipe.get("curate") or ()),
        "removed": removed,
        "removals": first,
        "decided": figures.decided(book),
        "pool_sources": pool_sources(book.manifest.recipe, {"prices": _prices(models)}),
        "certificate": book.certificate,
        "doubts": doubts(book),
        "sentences": sentences(book.certificate) if book.certificate else [],
        "charts": _charts(book, models, tasks, cells),
    }


def _prices(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as the card's SQL `prices` has them, of models as the site has them."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in models:
        if row["price_in"] is not None or row["price_out"] is not None:
            key = (row["price_source"] or "", row["price_date"] or "")
            groups.setdefault(key, []).append(row)
    return [
        {
            "price_source": source, "price_date": day, "models": len(rows),
            "up_to": min((r["price_up_to"] for r in rows if r.get("price_up_to")), default=None),
        }
        for (source, day), rows in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))
    ]  # fmt: skip


def _charts(
    book: SiteRelease,
    models: list[dict[str, Any]],
    tasks: list[dict[str, Any]],
    cells: list[dict[str, Any]],
) -> dict[str, Markup | None]:
    found: dict[str, str] = {}
    pool = [row["model_id"] for row in models]
    labelled = [row for row in models if row["accuracy"] is not None]
    if labelled:
        found["accuracy"] = accuracy_bars(labelled, pool=pool, look=PAGE)
    priced = [row for row in labelled if row["cost"]]
    if len(priced) > 1:
        found["cost"] = cost_accuracy(
            priced, pool=pool, simulated=any(row["simulated"] for row in models), look=PAGE
        )
    order = [row["model_id"] for row in labelled]
    if labelled and len(order) * len(tasks) <= MOST_CELLS:
        found["heatmap"] = heatmap(
            [(c["model_id"], c["task"], c["accuracy"]) for c in cells],
            name="tasks",
            title="Accuracy of every model on every task",
            rows=order,
            columns=[row["task"] for row in tasks],
            value="accuracy",
            of=("model", "task"),
            link=lambda model, task: urlencode({"task": task, "a": model, "show": "a-wrong"}),
            look=PAGE,
        )
    scored = [
        {"name": row["task"], "value": 100 * row["specialist_score"]}
        for row in tasks
        if row["specialist_score"] is not None
    ]
    if scored:
        scored.sort(key=lambda row: -row["value"])
        found["specialists"] = bars(
            scored,
            name="specialists",
            title="Specialist score of every task",
            of="task",
            value="specialist score (percentage points above the generalist)",
            form="+.1f",
            dots=True,
            look=PAGE,
        )
    alike = figures.of_health(book, "jaccard")
    if drawing := agreement(alike, figures.of_health(book, "models"), name="likeness", look=PAGE):
        found["likeness"] = drawing
    # A picture that there is nothing for is None, and the page says so.
    drawn = {name: Markup(text) for name, text in found.items()}  # noqa: S704  escaped by `draw`
    return dict.fromkeys(CHARTS) | drawn
