"""Findings of the audits of labels, metering and submissions, as findings of the one audit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from routeyard.pipelines.audit.finding import SHOWN, AuditFinding, Severity
from routeyard.pipelines.ingest.results import ReadingNote

#: Labels' kinds that this audit finds itself, over every recording.
_OURS = {"same_text_scored_both_ways", "duplicate_row_contradicts", "stub_answers"}


def label_findings(tables: Mapping[str, pa.Table], release: Path) -> list[AuditFinding]:
    """What `audit labels` says of a release, one finding for each kind of doubt."""
    from routeyard.flows.audits.labels import audit_labels

    if not {"responses", "verdicts"} <= set(tables):
        return []
    doubts = defaultdict(list)
    for one in audit_labels(str(release), Path("-")).audit.findings:
        if one.kind not in _OURS and not one.kind.startswith("stub_"):
            doubts[one.kind].append(one)
    return [
        AuditFinding(
            kind=f"labels:{kind}",
            about=own[0].about if len(own) == 1 else f"{len(own):,} questions or models",
            says=own[0].says if len(own) == 1 else f"such as {own[0].about}: {own[0].says}",
            count=len(own),
            rows=tuple({"about": one.about, "says": one.says} for one in own[:20]),
            effect="`audit labels` prints the accuracies that doubtful labels leave open",
            severity="doubt",
            key="label",
        )
        for kind, own in sorted(doubts.items())
    ]


def metering_findings(tables: Mapping[str, pa.Table], release: Path) -> list[AuditFinding]:
    """What `audit metering` says of a release's responses; what its recipe waives is a note."""
    from routeyard.pipelines.metering.audit import apply_waivers, audit
    from routeyard.pipelines.release.manifest import read_manifest
    from routeyard.schemas.recipe import Recipe

    if "responses" not in tables:
        return []
    try:
        recipe: Recipe | None = Recipe.model_validate(read_manifest(release).recipe)
    except ValueError:
        recipe = None  # of another version of Routeyard, or not made by it
    found = audit(
        tables["responses"],
        tables["models"],
        recipe.collect.metering if recipe else None,
        queries=tables["queries"],
    )
    waived = {one for one, _ in apply_waivers(found, recipe.release.waivers if recipe else ())[1]}
    return [
        AuditFinding(
            kind=one.gate,
            about=one.model_id,
            says=f"{one.count:,} {one.says}",
            count=one.count,
            rows=tuple({"question": q, "sample": n} for q, n in one.rows),
            effect="costs and tokens of these answers are not sure",
            severity="note" if one in waived or one.check in _NOTES else "doubt",
            key=f"release.waivers: gate {one.gate}",
        )
        for one in found
    ]


#: What a release may leave unknown without being doubtful for it.
_NOTES = {"price_unknown", "usage_missing", "truncated", "refused"}


#: Kind of a note on how results were read → kind and severity of a finding.
_READ: dict[str, tuple[str, Severity]] = {
    "status": ("incomplete", "doubt"),
    "unread": ("scores_unread", "doubt"),
    "repeated": ("repeated_answers", "doubt"),
    "figures": ("figures_disagree", "doubt"),
    "unpriced": ("cost_unknown", "doubt"),
    "calls": ("calls_without_question", "note"),
    "other_calls": ("calls_of_no_arm", "doubt"),
    "served": ("served_by_another", "doubt"),
    "cached": ("cached_tokens", "note"),
    "paths": ("local_paths", "note"),
    "question": ("to_confirm", "note"),
    "left_out": ("left_out", "note"),
}


def reading_findings(notes: Sequence[ReadingNote]) -> list[AuditFinding]:
    """What was incomplete, unsure or left out when results were read; one finding of a kind."""
    told: dict[str, list[ReadingNote]] = defaultdict(list)
    for note in notes:
        if note.kind in _READ:
            told[note.kind].append(note)
    return [
        AuditFinding(
            kind=_READ[kind][0],
            about=", ".join(dict.fromkeys(one.about or "the files" for one in own)),
            says="; ".join(one.says for one in own),
            count=sum(one.rows for one in own),
            rows=tuple({"at": at} for one in own for at in one.at)[:SHOWN],
            effect="the leaderboard stays as it is",
            severity=_READ[kind][1],
            key="sources, collect.recorded[].fields",
        )
        for kind, own in told.items()
    ]
