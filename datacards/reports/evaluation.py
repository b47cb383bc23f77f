"""One self-contained HTML page of an evaluation: nothing is requested from elsewhere.

It is made of the site's own parts. Questions and answers travel as compressed JSON inside the
page, in base64, so that none of their characters can be read as markup; scripts put text into
the document as text only, and the content security policy allows the page's own scripts and
style by their hashes and forbids every request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.datacards.certified import sentences
from routeyard.datacards.site import evaluation
from routeyard.datacards.site.evaluation_tables import EvaluationTables
from routeyard.datacards.site.headline import answer_of
from routeyard.datacards.site.language import single_page
from routeyard.datacards.site.shards import packed


def report(
    one: EvaluationTables,
    *,
    models: Sequence[str],
    simulated: bool,
    certificate: Mapping[str, Any] | None,
    lookup: Mapping[str, Any],
) -> str:
    """The page as text.

    Args:
        one: The evaluation.
        models: All models of the release, so that colours agree with its other pages.
        simulated: Programs play the models.
        certificate: the certificate as JSON, or None.
        lookup: from `routeyard.datacards.reports.lookup.lookup`.
    """
    shards = {"index-0": packed(lookup["index"])}
    shards |= {f"answers-{k}": packed(part) for k, part in enumerate(lookup["answers"])}
    return single_page(
        "report.html.jinja",
        "site.js",
        "questions.js",
        title=one.title,
        e=evaluation.content(one, "e0", models, simulated=simulated),
        answer=answer_of(one, simulated=simulated),
        certificate=certificate,
        sentences=sentences(certificate) if certificate else [],
        meta=lookup["meta"],
        shards=shards,
    )
