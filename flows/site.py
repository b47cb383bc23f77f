"""Reads releases and the files beside them, and writes the site of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.datacards.site.evaluation import EvaluationTables
from routeyard.datacards.site.release import SiteRelease
from routeyard.flows.console import line
from routeyard.pipelines.common.errors import BadInput, RouteyardError
from routeyard.pipelines.evaluate.run.tables import metrics_table, read_evaluation, results_table
from routeyard.pipelines.release.manifest import check_core, existing, parse, yanked
from routeyard.pipelines.release.storage import outside_releases, sealed
from routeyard.schemas.contracts import RESULTS

#: Folders of a workspace that hold no results.
_OTHER = frozenset({"releases", "stages", "ledger", "runs", "cache", "data", "bench", "cells"})
#: How deep results are looked for below a workspace.
_DEEP = 4
_OURS = ("site.css", "site.js")
_CHOICES = pa.schema([("query_id", pa.string()), ("model_id", pa.string())])
#: Tables of an evaluation that a page shows where they are there.
_REST = ("curves", "profiles", "comparisons", "ood")


def write(
    places: Sequence[Path], out: Path, *, results: Sequence[Path] = (), texts: bool = True
) -> Path:
    """The site of every release in `places` (releases or workspaces); returns its index.

    Args:
        results: Further folders with evaluations, zoo tables and studies; those in a
            workspace are found automatically.
        texts: Whether pages show questions and answers.

    Raises:
        BadInput: no release or results there, two releases that share a folder, or `out` holds
            something else.
    """
    from routeyard.datacards.site.write import write_site
    from routeyard.pipelines.release.reader import open_release

    result = releases(places)
    _check_out(out)
    for place in results:
        if not place.is_dir():
            raise BadInput(
                "there is no such folder of results",
                where=str(place),
                next_step="give the --out of `routeyard evaluate`, `zoo run` or `study`",
            )
    workspaces = [path.parents[2] for path in result if path.parents[1].name == "releases"]
    looked = list(_result_folders([*results, *workspaces]))
    with ExitStack() as stack:
        books: list[SiteRelease] = []
        for path in result:
            release = stack.enter_context(open_release(path))
            check_core(path, release.manifest)
            line("site", f"{release.manifest.name} {release.manifest.version}")
            books.append(replace(_book(release, looked), texts=texts))
        _distinct(books)
        return write_site(books, out)


def releases(places: Sequence[Path]) -> list[Path]:
    """Release folders of `places`, in order and once each.

    Raises:
        BadInput: a place is neither a release nor a workspace with one.
    """
    result: dict[Path, None] = {}
    for place in places:
        if (place / "manifest.json").is_file():
            result[place.resolve()] = None
            continue
        inside = sorted({m.parent.resolve() for m in place.glob("releases/*/*/manifest.json")})
        if not inside:
            raise BadInput(
                "this is neither a release (no manifest.json) nor a workspace with one",
                where=str(place),
                next_step=f"build one: routeyard build RECIPE --workspace {place}",
            )
        result |= dict.fromkeys(inside)
    return list(result)


def _check_out(out: Path) -> None:
    outside_releases(out)
    if out.exists() and not out.is_dir():
        raise BadInput(
            "the site's folder is a file", where=str(out), next_step="give another --out"
        )
    if out.is_dir() and any(out.iterdir()) and not all((out / name).exists() for name in _OURS):
        raise BadInput(
            "the folder holds other things than a site",
            where=str(out),
            next_step="give an empty or new folder as --out",
        )


def _distinct(books: Sequence[SiteRelease]) -> None:
    seen: dict[str, SiteRelease] = {}
    for book in books:
        other = seen.setdefault(book.folder.lower(), book)
        if other is not book:
            raise BadInput(
                f"two releases would share the pages {book.folder}",
                where=f"{book.manifest.name} {book.manifest.version}",
                next_step="make a site of each",
            )


def _result_folders(roots: Sequence[Path]) -> Iterator[Path]:
    """Folders below `roots` that could hold results, not the pipeline's own."""
    todo = [(root, 0) for root in dict.fromkeys(root.resolve() for root in roots)]
    seen = set()
    while todo:
        folder, depth = todo.pop(0)
        if folder in seen or not folder.is_dir():
            continue
        seen.add(folder)
        yield folder
        if depth < _DEEP:
            inside = sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())
            todo += [(p, depth + 1) for p in inside if p.name not in _OTHER]


def _book(release: Any, looked: Sequence[Path]) -> SiteRelease:
    from routeyard.pipelines.release.query import SAVED

    manifest = release.manifest
    note = yanked(release.path)
    instead = f" Use {note.use_instead}." if note and note.use_instead else ""

    def ask(sql: str) -> pa.Table:
        table: pa.Table = release.sql(sql, timeout_s=3600.0)
        return table

    return SiteRelease(
        manifest=manifest,
        ask=ask,
        health=_health(release),
        evaluations=_evaluations(release, looked),
        saved=[(name, query.asks, query.text) for name, query in SAVED.items()],
        reports=_reports(manifest.name, manifest.version, looked),
        changes=_changes(release.path),
        yanked=None if note is None else f"{note.reason}.{instead}",
    )


def _health(release: Any) -> dict[str, pa.Table]:
    """Tables of the health report, without the texts and embeddings that it does not show.

    Labels and responses stay on disk and are read in parts.
    """
    from routeyard.pipelines.curate.health import health
    from routeyard.pipelines.curate.task_analysis import model_costs
    from routeyard.schemas import MODELS, StoredTable

    wanted = {
        "queries": "SELECT query_id, source, task, domain FROM queries ORDER BY query_id",
        "models": "SELECT * FROM models ORDER BY model_id",
    }
    tables = {name: release.sql(sql) for name, sql in wanted.items() if name in release.tables}
    for name in ("labels", "responses"):
        if name in release.tables:
            file, known = release.manifest.tables[name].file, release.manifest.files
            tables[name] = StoredTable(sealed(release.path, file, known.get(file)))
    if None in model_costs(tables).values():
        # Within budgets a model without a cost has no place, and the scores would be about the
        # others alone: without budgets all models are compared.
        nothing = dict.fromkeys(("price_in", "price_out", "params_b", "price_date"))
        rows = [row | nothing for row in tables["models"].to_pylist()]
        tables = {**tables, "models": MODELS.from_rows(rows)}
        tables.pop("responses", None)
    try:
        made = health(tables)
    except (BadInput, ValueError) as error:
        line("site", f"no health figures of {release.manifest.name}: {error}")
        return {}
    return {**made.tables, "facts": pa.table({"budgeted": [not made.facts["unlimited_budget"]]})}


def _evaluations(release: Any, looked: Sequence[Path]) -> list[EvaluationTables]:
    """Evaluations among the folders whose choices are about this release's questions.

    What cannot be read is reported and left out: a workspace may hold anybody's results.
    """
    folders = [
        folder
        for folder in looked
        if (folder / "metrics.parquet").is_file() and (folder / "choices.parquet").is_file()
    ]
    if not folders:
        return []
    own = tuple(
        set(release.sql(f"SELECT {name}_id FROM {table}").column(0).to_pylist())
        for name, table in (("query", "queries"), ("model", "models"))
    )
    evaluations: list[EvaluationTables] = []
    for folder in folders:
        try:
            evaluations += _evaluation(folder, release.manifest.fingerprint, *own)
        except BadInput as error:
            line("site", f"left out: {error.what} ({folder})")
    return evaluations


def _evaluation(
    folder: Path, fingerprint: str, queries: set[str], models: set[str]
) -> Iterator[EvaluationTables]:
    """The evaluation in a folder, if it is one of this release.

    Raises:
        BadInput: a file of it is damaged.
    """
    metrics = metrics_table(folder / "metrics.parquet")
    if metrics is None:
        return
    said = read_evaluation(folder)
    of = said.get("release")
    if of is not None and (not isinstance(of, dict) or of.get("fingerprint") != fingerprint):
        return  # of another release, or of another version of this one
    choices = results_table(folder / "choices.parquet", _CHOICES)
    asked = set(choices.column("query_id").to_pylist())
    if asked and asked <= queries and set(choices.column("model_id").to_pylist()) <= models:
        rest: dict[str, Any] = {
            name: results_table(folder / f"{name}.parquet", RESULTS[name])
            for name in _REST
            if (folder / f"{name}.parquet").is_file()
        }
        _known(folder, rest, "profiles", "model_id", models)
        _known(folder, rest, "ood", "router", set(metrics.column("router").to_pylist()))
        rest |= {key: said[key] for key in ("facts", "ranking") if key in said}
        yield EvaluationTables(
            title=f"Evaluation of routers ({folder.name})", metrics=metrics, **rest
        )


def _known(folder: Path, rest: Mapping[str, Any], name: str, column: str, known: set[str]) -> None:
    """Stop at a name that has no colour among those of the page."""
    results = set(rest[name].column(column).to_pylist()) if name in rest else set()
    if odd := sorted(results - known):
        raise BadInput(
            f"{name}.parquet names {column} {odd[0]!r}, which no other table does",
            where=str(folder),
            next_step="`routeyard evaluate RELEASE --out FOLDER` writes it",
        )


def _reports(name: str, version: str, looked: Sequence[Path]) -> list[tuple[str, str]]:
    """Zoo tables and studies that say they are of this release."""
    results = []
    for folder in looked:
        table = folder / "table.md"
        if table.is_file() and (folder / "cells.parquet").is_file():
            text = table.read_text(encoding="utf-8", errors="replace")
            if f"{name} {version}" in text.split("\n", 1)[0]:
                results.append((f"Zoo of routers ({folder.name})", text.partition("\n")[2]))
        for path in sorted(folder.glob("*.md")):
            if path.with_suffix(".parquet").is_file() and path.with_suffix(".html").is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                if f"Release `{name}` {version};" in text:
                    results.append(_study(path.stem, text))
    return results


def _study(name: str, text: str) -> tuple[str, str]:
    """(its own title, the text below it)."""
    first, _, rest = text.partition("\n")
    title = first.removeprefix("## ")
    return (title, rest) if title != first else (f"Study: {name}", text)


def _changes(release: Path) -> list[str]:
    """What differs from the version before, where that is beside the release."""
    from routeyard.pipelines.release.diff import described, diff_releases

    own = parse(release.name)
    before = [v for v in existing(release.parent) if own is not None and v < own]
    if not before:
        return []
    former = release.parent / ".".join(map(str, before[-1]))
    try:
        return [f"Against {former.name}:", "", *described(diff_releases(former, release))]
    except RouteyardError as error:
        return [f"- The version before cannot be compared: {error}"]
