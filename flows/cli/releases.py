"""Releases."""

from __future__ import annotations

import contextlib
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from routeyard.flows.cli.options import (
    YARD,
    Json,
    OptionalWrittenPath,
    Output,
    sealed_off,
)
from routeyard.schemas.errors import BadInput, RouteyardError

if TYPE_CHECKING:
    from routeyard.pipelines.release.reader import OpenRelease

# `routeyard site`.


def site_command(
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="[RELEASE|WORKSPACE|SITE]...")
    ] = None,
    out: OptionalWrittenPath = None,
    results: list[Path] | None = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts")] = True,
    serve: Annotated[bool, typer.Option("--serve")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    open_: Annotated[bool, typer.Option("--open/--no-open")] = True,
) -> None:
    """Write or serve a site of releases, routers and questions.

    The pages are static and request nothing from elsewhere: open index.html from disk, or
    put the folder on any static host. Results in a workspace are found without --results. With
    --serve the site is served to this machine only, until Ctrl-C.

    Examples:

        routeyard site yard --out site

        routeyard site yard/releases/demo/1.0.0 --out public --results results --no-texts

        routeyard site yard --serve

    Args:
        places: Release folders or workspaces, default ./yard; with --serve also a written site.
        out: Folder for the site, which begins at its `index.html`.
        texts: Show questions and answers; without, figures and charts alone.
        serve: Serve the site, and open a browser.
        port: With --serve: port; 0 takes a free one.
        open_: With --serve: open a browser.
    """
    from routeyard.flows.site import write

    paths = places or [YARD]
    if not serve:
        if out is None:
            raise BadInput("no folder is given", next_step="--out FOLDER, or --serve")
        print(write(paths, out, results=results or (), texts=texts))
        return

    import tempfile
    import webbrowser

    from routeyard.flows.web import SiteServer

    with tempfile.TemporaryDirectory(prefix="routeyard-site-") as made:
        folder = paths[0]
        if len(paths) > 1 or not (folder / "site.css").is_file():
            folder = out or Path(made)
            write(paths, folder, results=results or (), texts=texts)
        server = SiteServer(folder, port=port)
        print(f"{server.address} (Ctrl-C ends)", flush=True)
        if open_:
            webbrowser.open(server.address)
        server.serve()
        print("ended")


# `routeyard verify`: does a release hold?


def verify_command(
    release: str,
    signer: str | None = None,
    full: Annotated[bool, typer.Option("--full")] = False,
    images: Annotated[Path | None, typer.Option(exists=True, file_okay=False)] = None,
) -> Output:
    """Check a release: files, contracts, ids, labels, card numbers.

    Exits 0 when it holds and 3 when it contradicts itself. Every file is compared with its SHA-256,
    every table with its contract and fingerprint, ids between tables are followed, every object of
    the database is compared with what a release defines. Then everything is computed again that the
    release holds the data for: labels from verdicts by the recipe's policy, verdicts of rules from
    texts and references (a seeded sample of 3,000 answers; all with --full), costs from tokens and
    prices, the metering audit, the certificate, the split, each line of the card. Four lists are
    printed: what is proved, what is consistent, what has to be believed on the publisher's word,
    and which checks could not be made.

        routeyard verify yard/releases/demo/1.0.0

        routeyard verify yard/releases/demo/1.0.0 --full

        routeyard verify yard/releases/demo/1.0.0 --signer publisher.pub

        routeyard verify s3://bucket/releases/demo/1.0.0

    Args:
        release: Release folder or URL.
        signer: Require a signature by this Ed25519 public key (file or text).
        full: Compute all verdicts and intervals again, not a sample, fit the reference
            routers where embeddings are released, and run the programs that models wrote
            in the jail.
        images: Folder of the questions' images: each file that a question names must be
            there with the hash that the release states.
    """
    from routeyard.flows.publish import check_release
    from routeyard.pipelines.common.errors import GateFailed
    from routeyard.pipelines.release.manifest import read_manifest, releases_in
    from routeyard.pipelines.release.storage import is_url
    from routeyard.pipelines.verify.evidence import KINDS

    path = Path(release)
    if not is_url(release) and (not path.is_dir() or releases_in(path)):
        read_manifest(path)
    result = check_release(release, signer=signer, full=full, images=images)
    lists: dict[str, list[Any]] = {str(kind): list(getattr(result, kind)) for kind in KINDS}
    data: dict[str, Any] = {"holds": not result.findings, "findings": result.findings, **lists}
    if result.findings:
        failed = GateFailed(
            "a check of the release failed"
            if len(result.findings) == 1
            else f"{len(result.findings)} checks of the release failed",
            where=release,
            next_step=result.next_step,
        )
        return Output(data, list(map(str, result.findings)), error=failed)
    lines = [
        f"{result.name} {result.version} holds: {result.files} files, {result.tables} tables, "
        f"{result.rows:,} rows"
    ]
    for scheme in result.leaks:
        near = scheme["near_duplicates"]
        lines.append(
            f"split scheme {scheme['scheme']!r}: of {scheme['test']:,} test questions "
            + (
                "nobody knows how many are word for word in train, since texts are withheld"
                if scheme["verbatim"] is None
                else f"{scheme['verbatim']:,} are word for word in train"
            )
            + ("" if near is None else f" and {near:,} have a near-duplicate there")
        )
    if result.yanked:
        lines.append(f"yanked: {result.yanked.reason}")
    for kind, heading in _HEADINGS.items():
        lines += [f"{heading}:", *(f"  {line}" for line in lists[kind])] if lists[kind] else []
    data |= {"name": result.name, "version": result.version}
    data |= {"tables": result.tables, "rows": result.rows}
    return Output(data | {"leaks": result.leaks, "yanked": result.yanked}, lines)


_HEADINGS = {
    "proved": "proved (computed again from the release)",
    "consistent": "consistent (nothing in the release contradicts it)",
    "believed": "believed (on the publisher's word)",
    "not_run": "not run (checks that could not be made, and why)",
}


# `routeyard sign`: a detached signature beside a release's manifest.


def sign_command(
    release: Path,
    key: Annotated[Path, typer.Option()],
) -> Output:
    """Sign a release with an Ed25519 key; `verify --signer` checks it.

    Writes `manifest.json.sig`: the manifest seals every file and every table.

        openssl genpkey -algorithm ed25519 -out key.pem

        openssl pkey -in key.pem -pubout -out publisher.pub

        routeyard sign yard/releases/demo/1.0.0 --key key.pem

    A key that is encrypted takes its password from ROUTEYARD_KEY_PASSWORD.

    Args:
        key: File with your Ed25519 private key.
    """
    import os

    from routeyard.pipelines.release.storage import sign_release

    path = sign_release(release, key, password=os.environ.get("ROUTEYARD_KEY_PASSWORD"))
    return Output({"path": path}, f"signed: {path}")


# `routeyard query`: SQL over a release.


def query_command(
    release: Path,
    sql: Annotated[str | None, typer.Argument()] = None,
    list_: Annotated[bool, typer.Option("--list")] = False,
    format: Literal["table", "csv", "json", "markdown"] = "table",
    out: OptionalWrittenPath = None,
    timeout: float = 60.0,
    memory: str = "4GB",
    as_json: Json = False,
) -> Output:
    """Query a release in SQL, read-only; without SQL, line by line.

    Nothing outside the release can be read.

        routeyard query yard/releases/demo/1.0.0 "FROM accuracy WHERE n_labelled > 0"

        routeyard query yard/releases/demo/1.0.0 @accuracy --format markdown

        routeyard query yard/releases/demo/1.0.0

    `DESCRIBE labels` shows the columns of a table.

    Args:
        sql: One SQL statement, or a saved query, as @leaderboard or '@hardest(5)'; without it a
            prompt is opened.
        list_: List the saved queries.
        format: How the answer is printed.
        out: Write the answer to this .csv, .json, .md or .parquet file instead.
        memory: Most memory of the query, such as 500MB.
    """
    from routeyard.flows.evaluation.released import say_if_yanked
    from routeyard.pipelines.release.database import MACROS
    from routeyard.pipelines.release.manifest import read_manifest
    from routeyard.pipelines.release.query import (
        SqlProcess,
        ending,
        query_release,
        to_text,
        write_answer,
    )

    if list_:
        read_manifest(release)
        asks = {f"{m.name}({m.takes})".removesuffix("()"): m.asks for m in MACROS.values()}
        lines = (f"  @{name:<{max(map(len, asks))}}  {words}" for name, words in asks.items())
        return Output(asks, ["Saved queries (routeyard query RELEASE @name):", *lines])
    if sql is None:
        if out is not None or as_json:
            raise BadInput("no SQL is given", next_step="name a query; --list lists the saved ones")
        return Output(None, lambda: _ask(release, timeout))
    say_if_yanked(release)
    text = _sql(sql)
    if out is not None:
        ending(out)  # before the query has worked for it
        with closing(SqlProcess(release, memory_limit=memory)) as process:
            rows = write_answer(*process.stream(text, timeout_s=timeout), out)
        return Output({"rows": rows, "path": out}, f"{rows:,} rows → {out}")
    answer = query_release(release, text, timeout_s=timeout, memory_limit=memory)
    if as_json:  # SQL has more types than `plain` knows
        return Output(json.loads(to_text(answer, "json")))
    return Output(None, to_text(answer, format).removesuffix("\n"))


_HELP = """\
End a query with a semicolon. Also:
  .tables   tables of the release
  .saved    saved queries; run one with @name
  .quit     leave (or Ctrl-D)"""


def _ask(release: Path, timeout: float) -> None:
    """A prompt with the release attached, read-only."""
    from routeyard.pipelines.release.reader import open_release

    with open_release(release) as opened:
        prompts = sys.stdin.isatty()
        if prompts:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  arrow keys and history

            print(f"{opened.manifest.name} {opened.manifest.version}, read-only; .help for help")
        buffer = ""
        while True:
            try:
                line = input(("      ... " if buffer else "routeyard> ") if prompts else "")
            except EOFError:
                return
            except KeyboardInterrupt:
                print()
                buffer = ""
                continue
            buffer = f"{buffer}\n{line}".strip()
            if buffer in (".quit", ".exit"):
                return
            if buffer.startswith((".", "@")) or buffer.endswith(";"):
                _run(opened, buffer, timeout)
                buffer = ""


def _sql(text: str) -> str:
    """The text of a query, where `@name` is a saved one."""
    from routeyard.pipelines.release.query import saved

    return saved(text[1:].rstrip("; ")) if text.startswith("@") else text


def _run(opened: OpenRelease, text: str, timeout: float) -> None:
    from routeyard.pipelines.release.database import MACROS
    from routeyard.pipelines.release.query import to_text
    from routeyard.schemas.text import visible

    if text == ".tables":
        for name in opened.tables:
            print(f"{name:<16} {opened.manifest.tables[name].rows:>12,}")
    elif text == ".saved":
        for name, query in MACROS.items():
            print(f"@{name:<18} {query.asks}")
    elif text.startswith("."):
        print(_HELP)
    else:
        try:
            print(to_text(opened.sql(_sql(text), timeout_s=timeout), "table"), end="")
        except RouteyardError as error:
            # One wrong line does not end the session.
            print(visible(f"error: {error}"), file=sys.stderr)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


# `routeyard diff`: what changed between two releases.


def diff_command(
    before: str,
    after: Annotated[str | None, typer.Argument()] = None,
    out: OptionalWrittenPath = None,
    rows: int = 20,
    changelog: Annotated[bool, typer.Option("--changelog")] = False,
) -> Output:
    """List what changed between two releases, or all of a benchmark.

    Queries, models, labels and by whom, prices, costs, ranks and figures that differ. With
    --changelog the versions of one benchmark are compared one after the other, as Markdown.

        routeyard diff yard/releases/demo/1.0.0 yard/releases/demo/1.1.0

        routeyard diff A B --out changes

        routeyard diff yard/releases/demo --changelog --out CHANGELOG.md

    Args:
        before: Older release, folder or URL; with --changelog the folder releases/<name>.
        after: Newer release, folder or URL.
        out: Write every row as Parquet there; with --changelog the file to write.
        rows: Rows to print per difference.
        changelog: Print the changelog of a benchmark, made from the data of its versions.
    """
    if changelog == (after is not None):
        raise BadInput(
            "--changelog takes one folder" if changelog else "no second release is given",
            next_step="routeyard diff OLDER NEWER, or routeyard diff releases/NAME --changelog",
        )
    if after is None:
        return _changelog(Path(before), out)
    from routeyard.flows.console import line
    from routeyard.pipelines.release.diff import diff_releases, write_diff
    from routeyard.pipelines.release.query import to_text
    from routeyard.pipelines.release.storage import local_copy

    with local_copy(before) as item, local_copy(after) as two:
        result = diff_releases(item, two)
    if (one_name := result.before.rpartition(" ")[0]) != (other := result.after.rpartition(" ")[0]):
        line("note", f"{one_name} and {other} are two benchmarks, not two versions of one")
    files = [] if out is None else list(write_diff(result, out))
    counts = result.counts()
    lines = [f"{result.before} and {result.after} hold the same"] if result.empty else []
    for name, table in result.tables.items():
        if table.num_rows:
            lines.append(
                f"{name}: {', '.join(f'{n:,} {kind}' for kind, n in counts[name].items())}"
            )
            lines.append(to_text(table.slice(0, rows), "table"))
            if (more := table.num_rows - rows) > 0:
                lines.append(f"… and {more:,} more rows of {name} (--rows N, --out DIR or --json)")
    data: dict[str, object] = {"before": result.before, "after": result.after, "same": result.empty}
    data |= {"counts": counts, "tables": result.tables, "files": files}
    return Output(data, [*lines, *map(str, files)])


def _changelog(benchmark: Path, out: Path | None) -> Output:
    from routeyard.pipelines.release.diff import changelog

    text = changelog(benchmark)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    shown = text.rstrip("\n") if out is None else str(out)
    return Output({"benchmark": benchmark, "markdown": text, "path": out}, shown)


# `routeyard yank`: mark a version as not to be used.


def yank_command(
    release: Path,
    reason: Annotated[str, typer.Option()],
    use_instead: str | None = None,
) -> Output:
    """Mark a version as not to be used, without deleting it.

    Who pinned it can still read it.

    routeyard yank yard/releases/demo/1.0.0 --reason "prices were wrong" --use-instead 1.0.1

    Args:
        reason: Why it should not be used.
        use_instead: Version to use instead.
    """
    from routeyard.pipelines.release.manifest import read_manifest, yank

    yank(release, reason=reason, use_instead=use_instead)
    manifest = read_manifest(release)
    data = {"name": manifest.name, "version": manifest.version, "reason": reason}
    return Output(
        data | {"use_instead": use_instead},
        f"{manifest.name} {manifest.version} is yanked; its files are as they were",
    )


# `routeyard export`: a release in the layout of another project.


def export_command(
    format: str,
    release: Path,
    target: Annotated[Path, typer.Argument(callback=sealed_off)],
    strong: str | None = None,
    weak: str | None = None,
    scheme: str | None = None,
    basis: str | None = None,
    split: str | None = None,
    entropies: Annotated[bool, typer.Option("--entropies")] = False,
) -> Output:
    """Write a release, or its preference pairs, for another project.

        routeyard export embedllm yard/releases/demo/1.0.0 bundle

        routeyard export routellm yard/releases/demo/1.0.0 bundle --strong big --weak small

        routeyard export participants yard/releases/demo/1.0.0 board/benchmark

        routeyard export preferences yard/releases/demo/1.0.0 train.parquet --split train

    `participants` is for a leaderboard: everything but answers to the test questions. Pairs
    without a label are left out; they are never written as wrong.

    `preferences` writes a file of id, model_a, model_b, prompt, both responses and the winner.
    Prompt and responses are JSON lists with one text per turn, as in the public arena data.

    Args:
        format: embedllm, llmrouterbench, participants, preferences, routellm, routerarena, sprout,
            ulab.
        target: New folder to write; for preferences a .csv, .jsonl or .parquet file.
        strong: Strong model (routellm).
        weak: Weak model (routellm).
        scheme: Split scheme whose test questions are withheld (participants).
        basis: Only pairs decided by this, e.g. semantic_entropy (preferences).
        split: Only queries of this split: train, validation or test (preferences).
        entropies: Also write entropies, δ and what decided each pair (preferences).
    """
    from routeyard.pipelines.release.exporters import EXPORTERS
    from routeyard.pipelines.release.exporters.router_tables import export
    from routeyard.pipelines.release.reader import open_release

    preferences = format == "preferences"
    if (strong or weak or scheme) if preferences else (basis or split or entropies):
        raise BadInput(
            "preferences take no --strong, --weak and --scheme"
            if preferences
            else f"{format} takes no --basis, --split and --entropies",
            next_step="leave them out",
        )
    if preferences:
        return _preferences(release, target, basis, split, entropies)
    options = {"strong": strong, "weak": weak, "scheme": scheme}
    settings = {name: value for name, value in options.items() if value is not None}
    with open_release(release) as opened:
        done = export(EXPORTERS.get(format), opened, target, settings)
    return Output(
        {"path": target, "labels": done.rows, "files": done.files, "dropped": done.dropped},
        [
            f"{done.rows:,} labels in {len(done.files):,} files → {target}",
            *(f"not held by the layout: {what}: {n:,}" for what, n in done.dropped.items()),
        ],
    )


# `routeyard publish`: a release to a hub, an object store or a folder.


def publish_command(
    release: Path,
    to: Annotated[str, typer.Option()],
    dry_run: bool = False,
    private: bool = False,
) -> Output:
    """Send a release to a hub, an object store or a folder.

    It is checked first. The same command continues after a cut connection.

        routeyard publish yard/releases/demo/1.0.0 --to hub:my-org/demo --dry-run

        routeyard publish yard/releases/demo/1.0.0 --to s3://bucket/releases

    A version that is there already is never replaced. The hub's token is read
    from HF_TOKEN.

    Args:
        to: hub:org/name, a URL (s3://…), or a folder.
        dry_run: List what would go; send nothing.
        private: Make a new hub dataset private.
    """
    from routeyard.flows.publish import publish

    done = publish(release, to, private=private, dry_run=dry_run)
    sizes = {name: (release / name).stat().st_size for name in done.files}
    data = {"files": sizes, "of": done.of, "bytes": done.bytes, "where": done.where}
    verb = "would go" if dry_run else "went"
    return Output(
        data | {"sent": not dry_run},
        [
            *(f"{size:>14,}  {name}" for name, size in sizes.items()),
            f"{len(sizes)} of {done.of} files ({done.bytes:,} bytes in all) {verb} to {done.where}",
        ],
    )


def _preferences(
    release: Path, out: Path, basis: str | None, split: str | None, entropies: bool
) -> Output:
    from routeyard.pipelines.curate.preference import export_preferences
    from routeyard.pipelines.release.reader import open_release, preference_pairs

    with open_release(release) as opened:
        pairs = preference_pairs(opened, basis=basis, split=split)
    export_preferences(pairs, out, entropies=entropies)
    return Output({"pairs": pairs.num_rows, "path": out}, f"{pairs.num_rows:,} pairs → {out}")
