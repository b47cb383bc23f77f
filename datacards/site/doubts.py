"""What is doubtful about a release, each with the questions behind it."""

from __future__ import annotations

from typing import Any

from routeyard.datacards.site import figures
from routeyard.datacards.site.release import SiteRelease

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
