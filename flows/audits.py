"""Audits of a workspace or a release: usage and prices, labels, health; repricing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.flows.workspace import AUDITED_ANSWER, BASE, check_audit
from routeyard.pipelines.audit.answers import SHOWN, AuditCheck, AuditFinding, Severity
from routeyard.pipelines.audit.checks import audit_recording, leaderboard, verdict_of
from routeyard.pipelines.common import machine as memory
from routeyard.schemas import SPLITS
from routeyard.schemas.contracts import recording
from routeyard.schemas.errors import BadInput
from routeyard.schemas.text import html_card

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.audit.checks import RecordingAudit
    from routeyard.pipelines.ingest.results import ReadingNote

# A release's tables as a recording, which the audit takes.

#: Rows are answers where texts and costs are known, else pairs.
_SQL = Path(__file__).with_name("released_answers.sql")


def recording_of(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row per answer of a release, with its label, its question and its split.

    Args:
        tables: `queries` and `labels`; `responses`, `splits`, `steps` where there are any.
    """
    import duckdb

    query, answers = _SQL.read_text(encoding="utf-8").split(";")[:2]
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.register("queries", tables["queries"])
        connection.register("labels", tables["labels"])
        connection.register("splits", _of_one_scheme(tables.get("splits")))
        if "responses" in tables:
            connection.register("responses", tables["responses"])
            connection.register("relays", _relays(tables.get("steps")))
            query = answers
        result = connection.sql(query).to_arrow_table()
    return recording(dict(zip(result.column_names, result.columns, strict=True)))


def _relays(steps: pa.Table | None) -> pa.Table:
    """Arms whose steps another model than themselves was asked for."""
    if steps is None:
        return pa.table({"model_id": pa.array([], pa.string())})
    others = pc.not_equal(steps.column("model_id"), steps.column("acted_by"))
    return steps.filter(others).select(["model_id"])


def _of_one_scheme(splits: pa.Table | None) -> pa.Table:
    """The rows of `dense`, else of the first scheme in order."""
    if splits is None or not splits.num_rows:
        return SPLITS.from_rows([])
    names = sorted(splits.column("scheme").unique().to_pylist())
    chosen = "dense" if "dense" in names else names[0]
    return splits.filter(pc.equal(splits.column("scheme"), chosen))


def free_arms(models: pa.Table) -> list[str]:
    """Arms whose price is stated as 0."""
    return [
        row["model_id"]
        for row in models.select(["model_id", "price_in", "price_out"]).to_pylist()
        if row["price_in"] == 0 and row["price_out"] == 0
    ]


# What an audit of anything tells: a verdict, findings, and what they are about.


@dataclass(frozen=True, repr=False)
class AuditPage:
    """What was found, and over what.

    Attributes:
        of: what was looked at.
        notes: how a stranger's files were read.
        leaderboard: rows of accuracy with the bounds that missing answers leave.
    """

    title: str
    of: str
    verdict: str
    findings: tuple[AuditFinding, ...]
    looked_at: Mapping[str, int] = field(default_factory=dict)
    not_checked: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    leaderboard: tuple[dict[str, Any], ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """What `--json` prints."""
        said = asdict(self)
        return {"verdict": said.pop("verdict"), "findings": said.pop("findings"), **said}

    def __repr__(self) -> str:
        return f"audit of {self.title}: {self.verdict}, {len(self.findings)} findings"

    def _repr_html_(self) -> str:
        rows = [
            {"severity": finding.severity, "kind": finding.kind, "about": finding.about,
             "finding": finding.says, "when mended": finding.effect, "mend with": finding.key}
            for finding in self.findings
        ]  # fmt: skip
        facts = {"verdict": self.verdict, "findings": len(rows), **self.looked_at}
        return html_card(f"audit of {self.title}", facts, rows)


# Findings of the audits of labels, metering and submissions, as findings of the one audit.

#: Labels' kinds that this audit finds itself, over every recording.
_OURS = {"same_text_scored_both_ways", "duplicate_row_contradicts", "stub_answers"}


def label_findings(tables: Mapping[str, pa.Table], release: Path) -> list[AuditFinding]:
    """What `audit --labels` says of a release, one finding for each kind of doubt."""
    from routeyard.flows.label_audits import audit_labels

    if not {"responses", "verdicts"} <= set(tables):
        return []
    doubts = defaultdict(list)
    for finding in audit_labels(str(release), Path("-")).audit.findings:
        if finding.kind not in _OURS and not finding.kind.startswith("stub_"):
            doubts[finding.kind].append(finding)
    return [
        AuditFinding(
            kind=f"labels:{kind}",
            about=own[0].about if len(own) == 1 else f"{len(own):,} questions or models",
            says=own[0].says if len(own) == 1 else f"such as {own[0].about}: {own[0].says}",
            count=len(own),
            rows=tuple({"about": item.about, "says": item.says} for item in own[:20]),
            effect="`audit --labels` prints the accuracies that doubtful labels leave open",
            severity="doubt",
            key="label",
        )
        for kind, own in sorted(doubts.items())
    ]


def metering_findings(tables: Mapping[str, pa.Table], release: Path) -> list[AuditFinding]:
    """What the metering audit says of a release; what its recipe waives is a note."""
    from routeyard.pipelines.audit.metering import apply_waivers, audit
    from routeyard.pipelines.release.manifest import read_manifest
    from routeyard.schemas.recipe import Recipe

    if "responses" not in tables:
        return []
    try:
        recipe: Recipe | None = Recipe.model_validate(read_manifest(release).recipe)
    except ValueError:
        recipe = None  # of another version of Routeyard, or not made by it
    result = audit(
        tables["responses"],
        tables["models"],
        recipe.collect.metering if recipe else None,
        queries=tables["queries"],
    )
    waived = {f for f, _ in apply_waivers(result, recipe.release.waivers if recipe else ())[1]}
    return [
        AuditFinding(
            kind=item.gate,
            about=item.model_id,
            says=f"{item.count:,} {item.says}",
            count=item.count,
            rows=tuple({"question": q, "sample": n} for q, n in item.rows),
            effect="costs and tokens of these answers are not sure",
            severity="note" if item in waived or item.check in _NOTES else "doubt",
            key=f"release.waivers: gate {item.gate}",
        )
        for item in result
    ]


#: What a release may leave unknown without being doubtful for it.
_NOTES = {"price_unknown", "usage_missing", "truncated", "refused"}


#: Kind of a note on how results were read → kind and severity of a finding.
_READ: dict[str, tuple[str, Severity]] = {
    "status": ("incomplete", "doubt"),
    "unread": ("scores_unread", "doubt"),
    "repeated": ("repeated_answers", "doubt"),
    "figures": ("figures_disagree", "doubt"),
    "rows": ("rows_of_no_question", "doubt"),
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
    by_kind: dict[str, list[ReadingNote]] = defaultdict(list)
    for note in notes:
        if note.kind in _READ:
            by_kind[note.kind].append(note)
    return [
        AuditFinding(
            kind=_READ[kind][0],
            about=", ".join(dict.fromkeys(item.about or "the files" for item in own)),
            says="; ".join(item.says for item in own),
            count=sum(item.rows for item in own),
            rows=tuple({"at": at} for item in own for at in item.at)[:SHOWN],
            effect="the leaderboard stays as it is",
            severity=_READ[kind][1],
            key="sources, collect.recorded[].fields",
        )
        for kind, own in by_kind.items()
    ]


# The audit of an import: its answers and questions as a recording.

_JOINED = """
SELECT a.model AS arm, a.query AS question, q.task AS suite, a.sample, a.score, a.cost_usd,
       a.prompt_tokens, a.completion_tokens, a.latency_s, a.served_model, a.text,
       q.question || coalesce(chr(10) || array_to_string(q.choices, chr(10)), '') AS prompt,
       coalesce(a.graded_against[1], q.references[1]) AS reference
FROM read_parquet(?) a JOIN read_parquet(?) q ON a.query = q.id
ORDER BY a.query, a.model, a.sample
"""


#: What `routeyard import` writes.
_FILES = ("responses.parquet", "queries.parquet", "recipe.yaml")


def is_import(folder: Path) -> bool:
    """Whether `routeyard import` wrote the folder."""
    return all((folder / name).is_file() for name in _FILES)


def imported_recording(folder: Path) -> pa.Table:
    """Answers and questions of an import as a recording."""
    import duckdb

    files = [str(folder / name) for name in _FILES[:2]]
    with duckdb.connect(config={"threads": 2}) as connection:
        result = connection.sql(_JOINED, params=files).to_arrow_table()
    return recording(dict(zip(result.column_names, result.columns, strict=True)))


# The audit of a submission of choices, as a page like any other audit.

#: Level of a suspicion → severity of a finding.
_SEVERITY: dict[str, Severity] = {"fail": "grave", "warn": "doubt"}


def audit_submitted(
    path: Path,
    release: Path,
    earlier: Path | None = None,
    scheme: str | None = None,
    arena: Path | None = None,
    reworded: Path | None = None,
) -> AuditPage:
    """Findings on a table of choices for a release, and on its changes since an earlier one.

    Args:
        arena: File to write in RouterArena's layout, if no check fails.
        reworded: Choices for the same questions in other words.
    """
    from routeyard.flows.evaluation.released import audit_submission, robust

    suspicions = audit_submission(path, release, scheme=scheme, arena=arena, earlier=earlier)
    if reworded is not None:
        suspicions.append(robust(path, reworded))
    findings = tuple(
        AuditFinding(
            kind=f"submission:{suspicion.name.replace(' ', '_')}",
            about=path.name,
            says=suspicion.says,
            count=0,
            rows=(),
            effect="the submission's score cannot be compared with others'",
            severity=_SEVERITY[suspicion.level],
            key="–",
        )
        for suspicion in suspicions
        if suspicion.level in _SEVERITY
    )
    notes = tuple(f"{item.name}: {item.says}" for item in suspicions if item.level == "ok")
    title = f"{path.name} for {release.resolve().parent.name} {release.resolve().name}"
    return AuditPage(title, "the submission", verdict_of(findings), findings, notes=notes)


def audit_path(
    path: str | Path,
    mapping: Mapping[str, str] = MappingProxyType({}),
    own: Sequence[AuditCheck] = (),
) -> AuditPage:
    """Audit whatever is at a path: results, an import or a release.

    Args:
        mapping: Role → column of results, of `parse_map`, where names alone do not tell; columns
            of a release or an import are known.
        own: Further checks, of `pipelines.audit.own.checks_in`.

    Raises:
        BadInput, SourceError: nothing is there, or it cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise BadInput("there is nothing to audit", where=str(path), next_step="name a file")
    if (path / "manifest.json").is_file():
        return audit_release(path, own)
    if is_import(path):
        table = imported_recording(path)
        return _page(path.name, "the import", audit_recording(table, own=own))
    from routeyard.pipelines.ingest.results import AggregatesOnly, read_results

    check_audit(path)
    try:
        read = read_results(path, mapping)
    except AggregatesOnly as error:  # nothing can be audited, which is a finding
        finding = AuditFinding(
            "aggregates_only", "file", str(getattr(error, "what", error)), 0, (),
            "no leaderboard of questions can be made", "doubt", key="sources",
        )  # fmt: skip
        odd = (finding, *reading_findings(error.notes))
        return AuditPage(path.name, "figures of many questions each", "doubtful", odd)
    result = audit_recording(read.table, own=own)
    notes = tuple(str(note.says) for note in read.notes)
    more = reading_findings(read.notes)
    return _page(path.name, f"{read.layout} results", result, more, notes=notes)


def audit_release(path: Path, own: Sequence[AuditCheck] = ()) -> AuditPage:
    """The audit of a release, its labels and its metering included."""
    from routeyard.flows.evaluation.released import read_release

    tables = read_release(path)
    if (labels := tables.stored("labels")) is not None:
        need = BASE + AUDITED_ANSWER * labels.num_rows
        memory.check(f"an audit of {labels.num_rows:,} answers", need)
    table = recording_of(tables)
    result = audit_recording(table, free=free_arms(tables["models"]), own=own)
    more = (*label_findings(tables, path), *metering_findings(tables, path))
    title = f"{path.resolve().parent.name} {path.resolve().name}"
    return _page(title, "the release", result, more)


def _page(
    title: str,
    of: str,
    audit: RecordingAudit,
    more: Sequence[AuditFinding] = (),
    notes: tuple[str, ...] = (),
) -> AuditPage:

    findings = (*audit.findings, *more)
    return AuditPage(
        title, of, verdict_of(findings), findings, audit.looked_at, audit.not_checked, notes,
        tuple(leaderboard(audit.answers)),
    )  # fmt: skip


def write_page(page: AuditPage, out: Path) -> Path:
    """`audit.html`, `audit.md` and `audit.json` in a folder; returns the page."""
    from routeyard.datacards.reports.health import audit_report

    html, markdown = audit_report(page.data)
    out.mkdir(parents=True, exist_ok=True)
    (out / "audit.html").write_text(html, encoding="utf-8")
    (out / "audit.md").write_text(markdown, encoding="utf-8")
    text = json.dumps(page.data, ensure_ascii=False, indent=1, default=str)
    (out / "audit.json").write_text(text + "\n", encoding="utf-8")
    return out / "audit.html"
