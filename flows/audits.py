"""Audits of a workspace or a release: usage and prices, labels, health; repricing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.flows.workspace import check_audit, check_audit_release, write_table
from routeyard.pipelines.audit.answers import SHOWN, AuditFinding, Severity
from routeyard.pipelines.audit.checks import verdict_of
from routeyard.pipelines.common.errors import VersionExists
from routeyard.pipelines.common.staging import place, staging, write_json
from routeyard.pipelines.ingest.results import ReadingNote
from routeyard.schemas import SPLITS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.text import html_card

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.audit.checks import RecordingAudit
    from routeyard.pipelines.audit.metering import MeteringFinding
    from routeyard.schemas.recipe import Recipe, Waiver

# A release's tables as a recording, which the audit takes.

#: Rows are answers where texts and costs are known, else pairs.
_SQL = Path(__file__).with_name("released_answers.sql")


def recording_of(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row per answer of a release, with its label, its question and its split.

    Args:
        tables: `queries` and `labels`; `responses`, `splits`, `steps` where there are any.
    """
    import duckdb

    from routeyard.schemas.release import RECORDING, recording

    query, answers = _SQL.read_text(encoding="utf-8").split(";")[:2]
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.register("queries", tables["queries"])
        connection.register("labels", tables["labels"])
        connection.register("splits", _of_one_scheme(tables.get("splits")))
        if "responses" in tables:
            connection.register("responses", tables["responses"])
            connection.register("relays", _relays(tables.get("steps")))
            query = answers
        found = connection.sql(query).to_arrow_table()
    given = [name for name in RECORDING.names if name in found.column_names]
    return recording({name: found.column(name) for name in given})


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


# The metering audit of a ledger, of a recording, or as the last build left it.


@dataclass(frozen=True, slots=True)
class MeteringAudit:
    """What an audit found, and over what.

    Attributes:
        of: What was looked at.
        places: (query_id, model_id, sample) → where a person finds the answer.
    """

    unresolved: tuple[MeteringFinding, ...]
    waived: tuple[tuple[MeteringFinding, Waiver], ...]
    of: str
    places: Mapping[tuple[str, str, int], str]

    def rows(self, finding: MeteringFinding, most: int) -> list[str]:
        """The first rows of a finding, as a person finds them."""
        keys = [(query, finding.model_id, sample) for query, sample in finding.rows[:most]]
        return [self.places.get(key, f"{key[0]}/{key[2]}") for key in keys]


def audit_workspace(workspace: Path, recipe: str | None) -> MeteringAudit:
    """Audit a recipe's recording, or else the ledger; without one, what the last build found.

    Raises:
        BadInput: there is neither ledger nor recording nor a build.
    """
    from routeyard.flows.ledgers import ledger_exists
    from routeyard.flows.recipe import load

    checked, base = load(recipe) if recipe else (None, workspace)
    if checked is not None and checked.collect.provider == "recorded" and checked.collect.recorded:
        return audit_recording(checked, base)
    if checked is None and not ledger_exists(workspace):
        last = _last_build(workspace)
        if last is not None:
            return last
    unresolved, waived = audit_ledger(workspace, checked)
    return MeteringAudit(unresolved, waived, "the ledger", {})


def audit_recording(recipe: Recipe, base: Path) -> MeteringAudit:
    """The audit over a recipe's recorded answers, which are read as a build reads them."""
    from routeyard.pipelines.audit.metering import audited
    from routeyard.pipelines.collect.recorded import import_recorded
    from routeyard.pipelines.common.pool import models_table
    from routeyard.pipelines.ingest import ingest

    queries, models = ingest(recipe.sources, base=base).queries, models_table(recipe.pool)
    imported = import_recorded(queries, models, recipe.collect.recorded, base=base)
    unresolved, waived = audited(recipe, imported.responses, queries, models)
    return MeteringAudit(unresolved, waived, "the recording", imported.places)


def _last_build(workspace: Path) -> MeteringAudit | None:
    """What the audit of the newest build found; None where nothing was audited yet."""
    import duckdb

    from routeyard.flows.workspace import intact
    from routeyard.pipelines.audit.metering import MeteringFinding, apply_waivers
    from routeyard.schemas.recipe import Waiver

    whole = [at for at in workspace.glob("stages/audit/[!.]*") if intact(at, thoroughly=True)]
    if not whole:
        return None
    folder = max(whole, key=lambda at: (at / "stage.json").stat().st_mtime)
    said = json.loads((folder / "stage.json").read_text(encoding="utf-8"))
    findings = [
        MeteringFinding(**{**one, "rows": tuple((str(q), int(n)) for q, n in one["rows"])})
        for one in json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    ]
    waivers = [Waiver.model_validate(one) for one in said["parameters"]["waivers"]]
    pattern = str(workspace / "stages" / "ingest" / "[!.]*" / "queries.parquet")
    ids = {}
    if findings and any(workspace.glob("stages/ingest/[!.]*/queries.parquet")):
        with duckdb.connect() as connection:
            named = "SELECT DISTINCT query_id, source, source_id FROM read_parquet(?)"
            ids = {q: (s, i) for q, s, i in connection.execute(named, [pattern]).fetchall()}
    places = {
        (query, one.model_id, sample): f"{ids[query][0]} id {ids[query][1]!r}"
        for one in findings
        for query, sample in one.rows
        if query in ids
    }
    unresolved, waived = apply_waivers(findings, waivers)
    return MeteringAudit(unresolved, waived, f"the newest build ({folder})", places)


def audit_ledger(
    workspace: Path, checked: Recipe | None
) -> tuple[tuple[MeteringFinding, ...], tuple[tuple[MeteringFinding, Waiver], ...]]:
    """(unresolved findings, findings the recipe waives) over all answers of a ledger."""
    from routeyard.flows.ledgers import existing_ledger, prompts
    from routeyard.pipelines.audit.metering import apply_waivers, audit, known_of
    from routeyard.pipelines.collect.known_answers import canary_answers
    from routeyard.pipelines.collect.ledger import answers_table, asked_models
    from routeyard.pipelines.common.pool import models_table
    from routeyard.schemas.recipe import Pool
    from routeyard.schemas.recipe.collect import Metering

    with existing_ledger(workspace) as ledger:
        pool = checked.pool if checked else Pool(models=asked_models(ledger))
        answers = answers_table(ledger)
        canaries = canary_answers(ledger)
    findings = audit(
        answers,
        models_table(pool),
        checked.collect.metering if checked else Metering(),
        queries=prompts(workspace),
        canaries=canaries,
        **known_of(pool),
    )
    return apply_waivers(findings, checked.release.waivers if checked else ())


# A release or a workspace under another price table, written beside it.


def reprice_target(
    target: Path, prices: Path, read_on: str | None, out: Path | None
) -> dict[str, Any]:
    """Write `responses`, `models` and `reprice.json` into a new folder; returns its figures.

    Raises:
        BadInput: the target is neither a release nor a workspace with a ledger, or
            the table cannot be read.
        VersionExists: the folder to write is already there.
    """
    from routeyard.pipelines.collect.prices import read_prices, reprice

    table = read_prices(prices, read_on=read_on)
    responses, models, names = _tables(target)
    done = reprice(responses, models, table, names)
    newest = max((p.date or "" for p in table.values()), default="undated")
    folder = out or target.parent / f"{target.resolve().name}.repriced-{newest}"
    if folder.exists():
        raise VersionExists(
            "the folder to write is already there",
            where=str(folder),
            next_step="name another with --out",
        )
    figures = {
        "of": target.name,
        "prices": prices.name,
        "models": done.figures,
        "path": str(folder),
    }
    with staging(folder) as unfinished:
        write_table(done.responses, unfinished / "responses.parquet")
        write_table(done.models, unfinished / "models.parquet")
        write_json(unfinished / "reprice.json", figures)
        place(unfinished, folder)
    return figures


def _tables(target: Path) -> tuple[Any, Any, dict[str, str]]:
    """(responses, models, model_id → endpoint name) of a release or a workspace."""
    import pyarrow.parquet as pq

    from routeyard.pipelines.common.untrusted import RELEASED, bounded
    from routeyard.schemas import MODELS, RESPONSES

    data = target / "data"
    if (data / "responses.parquet").is_file() and (data / "models.parquet").is_file():
        given = {name: data / f"{name}.parquet" for name in ("responses", "models")}
        read = {name: pq.read_table(bounded(path, RELEASED)) for name, path in given.items()}
        return RESPONSES.conform(read["responses"]), MODELS.conform(read["models"]), {}
    if not (target / "stages").is_dir() and not (target / "ledger").is_dir():
        raise BadInput(
            "neither a release nor a workspace with a ledger",
            where=str(target),
            next_step="name a folder like yard or yard/releases/<name>/<version>",
        )
    from routeyard.flows.ledgers import existing_ledger
    from routeyard.pipelines.audit.metering import known_of
    from routeyard.pipelines.collect.ledger import answers_table, asked_models
    from routeyard.pipelines.common.pool import models_table
    from routeyard.schemas.recipe import Pool

    with existing_ledger(target) as ledger:
        pool = Pool(models=asked_models(ledger))
        answers = answers_table(ledger)
    names = dict(known_of(pool)["names"])
    return answers.select(RESPONSES.column_names), models_table(pool), names


def write_prices(recipe: str, out: Path) -> int:
    """Fetch the price lists of a recipe's providers; returns how many prices were written.

    Raises:
        BadInput: no provider has a price list, one cannot be read, or none of them names a
            model of the pool.
        VersionExists: the file is already there.
    """
    from datetime import UTC, datetime

    import yaml

    from routeyard.flows.recipe import load
    from routeyard.pipelines.collect.prices import fetch_prices

    pool = load(recipe)[0].pool
    listing = [p for p in pool.providers if p.price_list]
    if not listing:
        raise BadInput(
            "no provider of the pool has a price list",
            where="pool.providers",
            next_step="set 'price_list: openrouter' on a provider",
        )
    if out.exists():
        raise VersionExists("the file is already there", where=str(out), next_step="name another")
    today = datetime.now(UTC).date().isoformat()
    wanted = {name for m in pool.models for name in (m.model_id, m.endpoint_model) if name}
    rows = [
        {
            "model_id": name,
            "price_in": price.input,
            "price_out": price.output,
            "price_date": price.date,
            "price_source": price.source,
        }
        for provider in listing
        for name, price in sorted(fetch_prices(provider, read_on=today).items())
        if name in wanted
    ]
    if not rows:
        raise BadInput(
            "the price lists of the pool's providers name none of its models",
            where=", ".join(f"{p.base_url} ({p.name})" for p in listing),
            next_step="state price_in, price_out and price_date of each model in the recipe "
            "(USD per million tokens), or name a file of prices: 'pool.prices: FILE'",
        )
    out.write_text(yaml.safe_dump({"prices": rows}, sort_keys=False), encoding="utf-8")
    return len(rows)


# The audit of anything: a file or folder of results, a release, a submission; one page.

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
            {"severity": one.severity, "kind": one.kind, "about": one.about, "finding": one.says,
             "when mended": one.effect, "mend with": one.key}
            for one in self.findings
        ]  # fmt: skip
        facts = {"verdict": self.verdict, "findings": len(rows), **self.looked_at}
        return html_card(f"audit of {self.title}", facts, rows)


# Findings of the audits of labels, metering and submissions, as findings of the one audit.

#: Labels' kinds that this audit finds itself, over every recording.
_OURS = {"same_text_scored_both_ways", "duplicate_row_contradicts", "stub_answers"}


def label_findings(tables: Mapping[str, pa.Table], release: Path) -> list[AuditFinding]:
    """What `audit labels` says of a release, one finding for each kind of doubt."""
    from routeyard.flows.label_audits import audit_labels

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
    from routeyard.pipelines.audit.metering import apply_waivers, audit
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


def audit_import(folder: Path) -> RecordingAudit:
    """Findings over the files that `routeyard import` wrote.

    A source's own split is not looked at: a build reports what it leaks.
    """
    from routeyard.pipelines.audit.checks import audit_recording

    return audit_recording(imported_recording(folder))


def imported_recording(folder: Path) -> pa.Table:
    """Answers and questions of an import as a recording."""
    import duckdb

    from routeyard.schemas.release import RECORDING, recording

    files = [str(folder / name) for name in _FILES[:2]]
    with duckdb.connect(config={"threads": 2}) as connection:
        found = connection.sql(_JOINED, params=files).to_arrow_table()
    given = [name for name in RECORDING.names if name in found.column_names]
    return recording({name: found.column(name) for name in given})


# The audit of a submission of choices, as a page like any other audit.

#: Level of a suspicion → severity of a finding.
_SEVERITY: dict[str, Severity] = {"fail": "grave", "warn": "doubt"}


def audit_submitted(path: Path, release: Path, beside: Path | None = None) -> AuditPage:
    """Findings on a table of choices for a release, and on its changes since an earlier one."""
    from routeyard.flows.evaluation.released import audit_submission

    suspicions = audit_submission(path, release, beside=beside)
    findings = tuple(
        AuditFinding(
            kind=f"submission:{one.name.replace(' ', '_')}",
            about=path.name,
            says=one.says,
            count=0,
            rows=(),
            effect="the submission's score cannot be compared with others'",
            severity=_SEVERITY[one.level],
            key="–",
        )
        for one in suspicions
        if one.level in _SEVERITY
    )
    notes = tuple(f"{one.name}: {one.says}" for one in suspicions if one.level == "ok")
    title = f"{path.name} for {release.resolve().parent.name} {release.resolve().name}"
    return AuditPage(title, "the submission", verdict_of(findings), findings, notes=notes)


def audit_path(
    path: str | Path, *, release: str | Path | None = None, beside: str | Path | None = None
) -> AuditPage:
    """Audit whatever is at a path.

    Args:
        release: the release that a submission was made for.
        beside: an earlier submission of the same team.

    Raises:
        BadInput, SourceError: nothing is there, or it cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise BadInput("there is nothing to audit", where=str(path), next_step="name a file")
    if release is not None:
        pass

        return audit_submitted(path, Path(release), Path(beside) if beside else None)
    pass
    from routeyard.pipelines.audit.checks import audit_recording

    if beside is not None:
        raise BadInput(
            "--beside compares two submissions, and names no release that they are for",
            where=str(beside),
            next_step="add --release yard/releases/<name>/<version>",
        )
    if (path / "manifest.json").is_file():
        return audit_release(path)
    if is_import(path):
        table = imported_recording(path)
        return _page(path.name, "the import", audit_recording(table), table)
    return audit_results(path)


def audit_results(path: Path) -> AuditPage:
    """The audit of a stranger's file or folder, read by its structure alone.

    Figures of many questions each hold no answer: nothing can be audited, which is a finding.
    """
    pass
    from routeyard.pipelines.audit.checks import audit_recording
    from routeyard.pipelines.ingest.results import AggregatesOnly, read_results

    check_audit(path)
    try:
        read = read_results(path)
    except AggregatesOnly as error:
        odd = (_aggregates(error), *reading_findings(error.notes))
        return AuditPage(path.name, "figures of many questions each", "doubtful", odd)
    found = audit_recording(read.table)
    notes = tuple(str(note.says) for note in read.notes)
    more = reading_findings(read.notes)
    return _page(path.name, f"{read.layout} results", found, read.table, more, notes=notes)


def _aggregates(error: Exception) -> AuditFinding:
    says = str(getattr(error, "what", error))
    return AuditFinding(
        "aggregates_only", "file", says, 0, (), "no leaderboard of questions can be made", "doubt",
        key="sources",
    )  # fmt: skip


def audit_release(path: Path) -> AuditPage:
    """The audit of a release, its labels and its metering included."""
    pass
    pass
    from routeyard.flows.evaluation.released import read_release
    from routeyard.pipelines.audit.checks import audit_recording

    tables = read_release(path)
    if (labels := tables.stored("labels")) is not None:
        check_audit_release(labels.num_rows)
    table = recording_of(tables)
    found = audit_recording(table, free=free_arms(tables["models"]))
    more = (*label_findings(tables, path), *metering_findings(tables, path))
    title = f"{path.resolve().parent.name} {path.resolve().name}"
    return _page(title, "the release", found, table, more)


def _page(
    title: str,
    of: str,
    found: RecordingAudit,
    table: pa.Table,
    more: Sequence[AuditFinding] = (),
    notes: tuple[str, ...] = (),
) -> AuditPage:
    from routeyard.pipelines.audit.checks import leaderboard, verdict_of

    findings = (*found.findings, *more)
    return AuditPage(
        title, of, verdict_of(findings), findings, found.looked_at, found.not_checked, notes,
        tuple(leaderboard(table)),
    )  # fmt: skip


def write_page(found: AuditPage, out: Path) -> Path:
    """`audit.html`, `audit.md` and `audit.json` in a folder; returns the page."""
    from routeyard.datacards.reports.audit import audit_report

    html, markdown = audit_report(found.data)
    out.mkdir(parents=True, exist_ok=True)
    (out / "audit.html").write_text(html, encoding="utf-8")
    (out / "audit.md").write_text(markdown, encoding="utf-8")
    text = json.dumps(found.data, ensure_ascii=False, indent=1, default=str)
    (out / "audit.json").write_text(text + "\n", encoding="utf-8")
    return out / "audit.html"
