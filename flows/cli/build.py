"""Build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from routeyard.flows.cli.options import (
    YARD,
    Jobs,
    Map,
    OptionalWrittenPath,
    Output,
    ReaskTruncated,
    Shards,
    Workspace,
    WrittenPath,
    WrittenWorkspace,
)
from routeyard.schemas.errors import BadInput, did_you_mean


def plan_command(
    recipe: str,
    workspace: Workspace = YARD,
    reask: list[str] | None = None,
    reask_truncated: ReaskTruncated = None,
    scale: float | None = None,
    read: Annotated[bool, typer.Option("--read")] = False,
) -> Output:
    """Print what a build would ask and cost; calls no model.

    Answers in the ledger are not asked again and not counted. Token counts come with their
    error; a cost is unknown where a price is. A recipe of hub datasets that states how many
    questions it takes of each is planned from that, without the network.

    Examples:

        routeyard plan demo --workspace yard

        routeyard plan nine_by_30k --scale 0.01

    Args:
        read: Read hub sources even where the recipe states counts.
    """
    from routeyard.flows.console import line

    line("plan", f"reads the sources of {recipe}")
    from routeyard.flows.plan import plan_build, show

    changes = collect_changes(reask, reask_truncated)
    result = plan_build(recipe, str(workspace), changes, scale=scale, read_sources=read)
    return Output(result, lambda: show(result))


def build_command(
    recipe: str,
    workspace: WrittenWorkspace = YARD,
    jobs: Jobs = 2,
    shards: Shards = 1,
    until: str = "release",
    reask: list[str] | None = None,
    reask_truncated: ReaskTruncated = None,
    scale: float | None = None,
    rehearse: Annotated[bool, typer.Option("--rehearse")] = False,
    copies: Annotated[int | None, typer.Option(min=1)] = None,
    real: Annotated[bool, typer.Option("--real")] = False,
) -> Output:
    """Build a benchmark release from a recipe.

    Finished stages are reused, so a stopped build continues where it was.
    `--reask-truncated` and `--reask` are for one run: give them again to keep to them. After a key
    was mended, `--reask error` asks what it had refused.

    A release that exists is never overwritten: set a new version in the recipe.

    With --rehearse nothing is paid: rows written for Routeyard in each dataset's own layout
    replace the datasets, one local server plays every model, verifier and judge, and EmbedLLM is
    planted. The release is called `<recipe>-rehearsal` and its card says what it is. With --real a
    real small model on this machine answers, which takes about half a second a call.

    Examples:

        routeyard build my_benchmark.yaml --workspace yard

        ROUTEYARD_DATA=~/recordings routeyard build zeroeval_gsm

        routeyard build nine_by_30k --rehearse

    Args:
        until: Last stage: ingest, collect, label, curate, certify, release.
        rehearse: Build from fixture rows and a pool on loopback, at no cost.
        copies: With --rehearse: variants asked of each fixture row, default 3.
        real: With --rehearse: a real small model answers (docs/howto/real_model.md).
    """
    from routeyard.flows.build import run_build
    from routeyard.flows.stages import UNTIL
    from routeyard.flows.summary import show_build

    changes = collect_changes(reask, reask_truncated)
    if rehearse:
        if changes or scale is not None or until != "release":
            raise BadInput(
                "a rehearsal takes none of --until, --scale and --reask",
                next_step="leave them out, or --rehearse",
            )
        from routeyard.flows.rehearse import rehearse as rehearsed

        summary = rehearsed(recipe, str(workspace), copies=copies or 3, real=real)
        return Output(summary, lambda: show_build(summary))
    if copies is not None or real:
        raise BadInput("--copies and --real belong to --rehearse", next_step="add --rehearse")
    if until not in UNTIL:
        raise BadInput(f"there is no stage {until!r}", next_step=did_you_mean(until, UNTIL))
    summary = run_build(
        recipe,
        str(workspace),
        jobs=jobs,
        until=until,
        collect=changes,
        shards=shards,
        scale=scale,
    )
    return Output(summary, lambda: show_build(summary))


def collect_changes(reask: list[str] | None, reask_truncated: int | None) -> dict[str, Any]:
    """What options say that one run asks again."""
    changes = {"reask": reask or None, "reask_truncated": reask_truncated}
    return {key: value for key, value in changes.items() if value is not None}


def status_command(recipe: str, workspace: Workspace = YARD) -> Output:
    """List which stages are fresh or stale, and why.

    Makes nothing, calls no model.

    Example:

        routeyard status demo --workspace yard
    """
    from routeyard.flows.build import status

    rows = status(recipe, str(workspace))
    shown = (f"{row['stage']:<9} {row['state']:<8} {row['why']}".rstrip() for row in rows)
    return Output(rows, shown)


def deploy_command(
    recipe: str,
    workspace: WrittenWorkspace = YARD,
    cron: str | None = None,
    interval: Annotated[int | None, typer.Option(min=60)] = None,
    pool: str = "routeyard",
    runner: Literal["threads", "dask"] = "threads",
    jobs: Annotated[int, typer.Option(min=1)] = 2,
    shards: Shards = 1,
    dask_address: str | None = None,
    publish_to: str | None = None,
    name: str | None = None,
    replace: Annotated[bool, typer.Option("--replace")] = False,
) -> Output:
    """Register a benchmark's refresh with a Prefect server.

    Each run finds what is stale (sources, pool, prices, scorers, code), rebuilds only
    that, releases the next version when the gates pass, and publishes it where
    --publish-to says. Runs never overlap.
    Keys of providers stay in the environment of the worker.

    Examples:

        prefect server start --background
        export PREFECT_API_URL=http://127.0.0.1:4200/api
        routeyard deploy demo --workspace yard --interval 60
        prefect worker start --pool routeyard

    Args:
        cron: Cron schedule in UTC; '0 6 * * 1' is every Monday at six.
        interval: Schedule: seconds between runs.
        pool: Prefect work pool; made if missing.
        runner: Prefect task runner.
        jobs: Worker threads or Dask processes.
        dask_address: Scheduler of a Dask cluster that runs already.
        publish_to: Where new releases go: hub:org/name, a URL (s3://…), or a folder.
        name: Name of the deployment; by default the benchmark's.
        replace: Replace one of that name that rebuilds something else.
    """
    from routeyard.flows.deploy import deploy

    made = deploy(
        recipe,
        workspace,
        cron=cron,
        interval_s=interval,
        pool=pool,
        runner=runner,
        jobs=jobs,
        dask_address=dask_address,
        publish_to=publish_to,
        shards=shards,
        deployment=name,
        replace=replace,
    )
    lines = [f"deployed  {made.name}"]
    for item, slots in made.limits.items():
        lines.append(f"limit     {item}: {slots} calls in flight over all workers")
    if not made.scheduled:
        lines.append("no schedule: it runs when it is started (--cron or --interval gives one)")
    if not made.workers:
        lines.append(f"no worker serves the pool {made.pool!r}: nothing runs until one is started")
        lines.append(f"next      prefect worker start --pool {made.pool}")
    lines.append(f"{'next' if made.workers else '    '}      prefect deployment run '{made.name}'")
    return Output(made, lines)


def import_command(
    format: str,
    path: Annotated[Path | None, typer.Argument()] = None,
    workspace: WrittenWorkspace = YARD,
    name: str | None = None,
    map_: Map = None,
) -> Output:
    """Bring in an existing benchmark or evaluation, as a recipe.

    Reads data in the layout of a public repository.

        routeyard import routellm RouteLLM/routellm/evals/mmlu/responses --workspace yard

        routeyard build yard/imports/routellm/recipe.yaml --workspace yard

        routeyard query yard/releases/routellm/1.0.0 @oracle

    What the source does not record stays unknown and is named. Pickles are parsed
    into plain values, never unpickled: nothing in them is run.

    `preferences` is arena-style records with the columns id, model_a, model_b, prompt, response_a,
    response_b, winner_model_a, winner_model_b, winner_tie in a .csv, .jsonl or .parquet, plain or
    .gz. They are checked and written as a table `preferences`, which `evaluate --also` reads. Where
    a record breaks the form it is named and nothing is written.

    `table` is any table with a row for each answer, whose columns `--map` names:

        routeyard import table runs.csv --map arm=engine,question=case,score=grade,latency=took_ms

    Args:
        format: Format, `preferences` or `table`; `list` names all.
        path: File or folder of that format.
        name: Name of the benchmark.
        map_: Which column of a table is what: `arm=COLUMN,question=COLUMN,score=COLUMN`, as `audit`
            takes it.
    """
    from routeyard.pipelines.ingest.importers import IMPORTERS
    from routeyard.pipelines.ingest.importers.write import run_import
    from routeyard.pipelines.ingest.mapping import parse_map, table_importer
    from routeyard.pipelines.ingest.results import ROLES

    if format == "list":
        known = {n: IMPORTERS.get(n) for n in IMPORTERS.names()}
        rows = [
            {"format": n, "title": item.title, "license": item.license, "layout": item.layout}
            for n, item in known.items()
        ]
        return Output(rows, (line for row in rows for line in _shown(**row)))
    if format == "preferences" and path is not None:
        return _preferences(path, workspace / "imports" / (name or format) / "preferences.parquet")
    if (format == "table") != (map_ is not None):
        raise BadInput(
            "--map names the columns of `table`, which needs it; other formats have their own",
            next_step="routeyard import table FILE --map arm=COLUMN,question=COLUMN,score=COLUMN",
        )
    importer = table_importer(parse_map(map_, ROLES)) if map_ else IMPORTERS.get(format)
    if path is None:
        raise BadInput("no PATH is given", next_step=f"expected: {importer.layout}")
    done = run_import(importer, path, workspace / "imports" / (name or format), name=name)
    lines = [
        f"{done.questions:,} questions, {done.models:,} models, {done.answers:,} answers → "
        f"{done.folder} ({done.status})",
        *(f"left out: {reason}: {count:,}" for reason, count in done.left_out.items()),
    ]
    if done.steps:
        lines.append(
            f"{done.steps:,} steps → {done.folder / 'steps.parquet'} (`routeyard replay` reads it)"
        )
    if done.lacks:
        lines.append(f"not recorded by the source: {', '.join(done.lacks)}")
    if rule := done.scorer_agreement:
        lines.append(
            f"grades are the source's own; `{rule.scorer}` agrees on {rule.agrees:,} of "
            f"{rule.tried:,} answers\n(to label them here, set `scorer: {rule.scorer}` in "
            "recipe.yaml)"
        )
    lines += _audited(done.folder)
    return Output(done, [*lines, f"next: routeyard build {done.recipe} --workspace {workspace}"])


def _preferences(source: Path, out: Path) -> Output:
    """Published preference data, checked, as a table `preferences`."""
    from routeyard.flows.workspace import write_table
    from routeyard.pipelines.common.errors import SourceError
    from routeyard.pipelines.curate.preference import import_preferences

    if not source.is_file():
        raise SourceError(f"there is no file {source}", next_step="correct the path")
    pairs = import_preferences(source)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_table(pairs, out)
    return Output({"pairs": pairs.num_rows, "path": out}, f"{pairs.num_rows:,} pairs → {out}")


def _audited(folder: Path) -> list[str]:
    """What the audit says of the imported answers: the verdict and the grave findings."""
    from routeyard.datacards.reports.health import whom
    from routeyard.flows.audits import audit_path

    result = audit_path(folder)
    grave = [finding for finding in result.findings if finding.severity == "grave"]
    doubts = sum(finding.severity == "doubt" for finding in result.findings)
    lines = [f"audit: {result.verdict} ({len(grave):,} grave findings, {doubts:,} doubts)"]
    lines += [f"  {item.kind}: {whom(item.about, item.parts)}: {item.says}" for item in grave[:5]]
    if grave or doubts:
        lines.append(f"  all of them: routeyard audit {folder}")
    return lines


def _shown(format: str, title: str, license: str, layout: str) -> list[str]:
    """Name, title and licence, and under it the layout, at 80 columns."""
    import textwrap

    wrapper = textwrap.TextWrapper(80, initial_indent="    ", subsequent_indent="    ",
                                   break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return [f"{format}: {title} ({license})", *wrapper.wrap(layout)]


def sources_command(
    name: Annotated[str | None, typer.Argument()] = None,
    domain: str | None = None,
    check: Annotated[bool, typer.Option("--check")] = False,
    file: str | None = None,
    rows: Annotated[int, typer.Option(min=1, max=1000)] = 5,
) -> Output:
    """List source datasets; show one and how its rows become queries.

    Of one source the first part is YAML that a recipe's `sources` list takes as it is. An
    unconfirmed column is one that no documentation of the dataset shows. With --check a few rows
    of the dataset are read, and columns that differ from the catalog's are listed: exits 0 when
    every row becomes a query, 3 when not.

    Examples:

        routeyard sources --domain math

        routeyard sources gsm8k

        routeyard sources gsm8k --check --file test.jsonl

    Args:
        name: A source of the catalog.
        domain: List only this domain.
        check: Read rows and compare them with the catalog.
        file: With --check: CSV, JSONL or Parquet, or a glob, instead of the hub.
        rows: With --check: rows to read.
    """
    if name is None:
        if check or file:
            raise BadInput("no source is named", next_step="routeyard sources NAME --check")
        return _listed(domain)
    return _checked(name, file, rows) if check or file else _source(name)


def _listed(domain: str | None) -> Output:
    """The sources that a recipe can name, and how sure their columns are."""
    from routeyard.pipelines.ingest.catalog import domains, entry

    known = domains()
    if domain is not None and domain not in known:
        raise BadInput(f"there is no domain {domain!r}", next_step=did_you_mean(domain, known))
    rows: list[dict[str, Any]] = [
        {
            "name": item.name,
            "domain": item.source.domain,
            "dataset": item.source.hub_id or item.source.path,
            "scorer": item.source.scorer,
            "license": item.source.license,
            "columns": len(item.columns),
            "unconfirmed": list(item.unconfirmed),
        }
        for group, names in known.items()
        if domain in (None, group)
        for item in map(entry, names)
    ]
    lines = [
        f"{row['name']:<20} {row['domain']:<12} {row['scorer']:<18} {row['dataset']}"
        + (f"  unconfirmed: {', '.join(row['unconfirmed'])}" if row["unconfirmed"] else "")
        for row in rows
    ]
    columns = sum(row["columns"] for row in rows)
    doubtful = sum(len(row["unconfirmed"]) for row in rows)
    share = 100 * doubtful / columns
    last = f"{len(rows)} sources, {doubtful} of {columns} columns unconfirmed ({share:.1f} %)"
    return Output(rows, [*lines, last])


def _source(name: str) -> Output:
    """One source: its address, how its columns become a query, what is known of it."""
    import yaml

    from routeyard.pipelines.ingest.catalog import entry

    result = entry(name)
    source = result.source.model_dump(mode="json", exclude_unset=True)
    data = {"source": source, "columns": result.columns, "unconfirmed": result.unconfirmed}
    data |= {"evidence": result.evidence, "citation": result.citation, "defects": result.defects}
    item, row = (
        yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=100).rstrip("\n")
        for shown in ([source], dict(result.becomes[0]))
    )
    marked = [f"{c} (unconfirmed)" if c in result.unconfirmed else c for c in result.columns]
    lines = [
        f"{item}\n\ncolumns:   {', '.join(marked)}",
        f"evidence:  {result.evidence}",
        f"citation:  {result.citation}",
        *(f"defect:    {defect}" for defect in result.defects),
        f"\nOne row of the dataset becomes:\n{row}",
    ]
    return Output(data | {"becomes": result.becomes}, lines)


def _checked(name: str, file: str | None, rows: int) -> Output:
    """A few rows of a source, and the columns that differ from the catalog's."""
    from routeyard.pipelines.common.errors import SourceError
    from routeyard.pipelines.ingest.catalog import entry
    from routeyard.pipelines.ingest.sources import check, sample

    result = entry(name)
    read = sample(result.source, file, rows=rows)
    if not read:
        raise SourceError("there are no rows", where=str(file or result.source.hub_id))
    done = check(result, read)
    lines = [f"{done.rows} rows read of {file or result.source.hub_id or result.source.path}"]
    for words, columns in (
        ("not in the data", done.missing),
        ("not in the catalog", done.new),
        ("unconfirmed in the catalog, and there", done.unconfirmed),
    ):
        if columns:
            lines.append(f"{words}: {', '.join(columns)}")
    if done.fits:
        first = done.queries[0]
        lines.append(
            f"the rows become {len(done.queries)} queries; the first:\n\n{first['prompt']}\n\n"
            f"references: {first['references']}"
        )
    else:
        lines.append(f"the rows do not become queries: {done.fault or 'no row was left'}")
    return Output(done, lines, exit_code=0 if done.fits else 3)


def cost_ledger_command(workspace: Workspace = YARD) -> Output:
    """Summarise requests and costs per model.

    Attempts, outcomes, tokens and USD are counted. A cost that is not known is counted apart, never
    as zero.

    Example:

        routeyard cost ledger --workspace yard
    """
    from routeyard.flows.ledgers import existing_ledger

    with existing_ledger(workspace) as ledger:
        rows = ledger.summary()
    return Output(rows, lambda: _show(rows))


def _show(rows: list[dict[str, Any]]) -> None:
    from routeyard.flows.console import printer, table

    counts = {"attempts": "attempts", "ok": "ok", "truncated": "truncated", "refused": "refused",
              "errors": "errors", "tokens in": "prompt_tokens", "tokens out": "completion_tokens",
              "USD": "cost_usd", "cost unknown": "cost_unknown"}  # fmt: skip
    cells = (
        (
            row["purpose"],
            row["model_id"],
            *(_number(row[name], 4 if name == "cost_usd" else 0) for name in counts.values()),
            str(row["last"])[:19],
        )
        for row in rows
    )
    columns = ("purpose", "model", *counts, "last")
    printer().print(table(columns, cells, texts=2, box=None, pad_edge=False))


def _number(value: float | None, digits: int) -> str:
    return "?" if value is None else f"{value:,.{digits}f}"


def cost_prices_command(
    recipe: str,
    out: WrittenPath,
) -> Output:
    """Write the providers' price lists of today to a dated file.

    A provider with `price_list: openrouter` is asked for its model list. Name the file in the
    recipe (`pool.prices`), so that a build never depends on the day it runs.

    Example:

        routeyard cost prices my_benchmark.yaml --out prices-2026-11.yaml

    Args:
        out: File to write (YAML); must be new.
    """
    from routeyard.flows.metering_audit import write_prices

    count = write_prices(recipe, out)
    text = f"{count} prices in {out}; set 'pool.prices: {out.name}' in the recipe"
    return Output({"prices": count, "path": out}, text)


def cost_reprice_command(
    target: Path,
    prices: Annotated[Path, typer.Option()],
    date: str | None = None,
    out: OptionalWrittenPath = None,
) -> Output:
    """Recompute costs from another dated price table; calls no model.

    The release or ledger stays as it is: `responses.parquet`, `models.parquet` and
    `reprice.json` are written beside it. A model the table does not list keeps its costs
    and is named; a cost without metered tokens is unknown. The folder is for looking, and no
    release: for a new version write the prices into the recipe, raise its version and build,
    which asks nothing again.

    The table is a CSV with the columns model_id, price_in, price_out (USD per million tokens)
    and price_date, or the same rows in YAML or JSON, as a list or under `prices:`.

    Examples:

        routeyard cost reprice yard/releases/demo/1.0.0 --prices prices-2026-11.yaml

        routeyard cost reprice yard --prices openrouter.json --date 2026-11-01

    Args:
        target: A release folder or a workspace.
        prices: Price table: YAML, JSON, CSV, or OpenRouter's list of models.
        date: Day the prices were read, where the table gives none.
        out: Folder to write (must be new).
    """
    from routeyard.flows.metering_audit import reprice_target

    done = reprice_target(target, prices, date, out)
    lines = []
    for row in done["models"]:
        before, after = (
            "unknown" if row[name] is None else f"${row[name]:,.4f}"
            for name in ("usd_before", "usd_after")
        )
        note = " (not in the table: kept)" if row["kept"] else f" ({row['price_date_after']})"
        unknown = f", {row['unknown_after']:,} unknown" if row["unknown_after"] else ""
        lines.append(f"{row['model_id']}: {before} → {after}{unknown}{note}")
    return Output(done, [*lines, done["path"]])
