"""Extensions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from routeyard.flows.cli.options import CACHE, Embed, OptionalWrittenPath, Output, write_csv
from routeyard.schemas.errors import BadInput, did_you_mean

# `routeyard leaderboard`: one table of evaluations, or the page of submitted bundles.


def leaderboard_command(
    results: Annotated[list[str] | None, typer.Argument()] = None,
    out: OptionalWrittenPath = None,
    metric: list[str] | None = None,
    labels: str | None = None,
    add: Path | None = None,
    name: str | None = None,
    number: str | None = None,
    scheme: str | None = None,
    workflow: OptionalWrittenPath = None,
) -> Output:
    """One table of many evaluations, or a page of submissions.

    Of evaluations: best accuracy first. Each accuracy is over so many of the test questions as
    `questions` says. Where labels are missing, the order is by `accuracy_floor`, which counts
    them as wrong. Each row says which result it is from, and of which release and split scheme
    that is. Rows of different ones are side by side and cannot be compared.

    Of bundles (`--labels`): RESULTS is the place that `routeyard submit` sends to. Each bundle
    is read as data, audited, and scored against the labels; nothing of it is run. The page has
    places with the range that significant differences leave open, audits and history.

    Examples:

        routeyard leaderboard results/* --metric 'audc[usd]' --out board.csv

        routeyard leaderboard board --labels yard/releases/demo/1.0.0 --out board/page

        routeyard leaderboard board --labels RELEASE --add bundle --name team-a --number 17

        routeyard leaderboard --workflow .github/workflows

    Args:
        results: metrics.parquet files, or folders that hold one; with --labels one place.
        out: Also write the whole table as CSV; with --labels the folder of the page.
        metric: Column to show; again for more.
        labels: Folder or address of the whole release, with the labels that submitters lack.
        add: Folder with one more bundle, which is copied to the place first.
        name: Entry that --add belongs to, as its owner is known to you.
        number: Number of that submission, in whose order its history is.
        workflow: Write the two CI workflows there: one runs submissions, one scores them.
    """
    if workflow is not None:
        return _workflows(workflow)
    if not results:
        raise BadInput(
            "expected results of evaluations, or a place with submissions",
            next_step="routeyard leaderboard results/*; or PLACE --labels RELEASE",
        )
    if labels is not None:
        return _bundles(results, labels, out or Path("leaderboard"), add, name, number, scheme)
    return _evaluations([Path(result) for result in results], out, metric)


def _workflows(folder: Path) -> Output:
    """Write the workflow files; those that are there stay."""
    from importlib.resources import files

    folder.mkdir(parents=True, exist_ok=True)
    ours = files("routeyard.extensions.leaderboard").joinpath("ci")
    workflows = []
    for name in ("score.yml", "submission.yml"):
        if (target := folder / name).exists():
            raise BadInput(
                "the workflow is there already", where=str(target), next_step="move it away first"
            )
        target.write_text(ours.joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
        workflows.append(target)
    return Output(workflows, map(str, workflows))


def _bundles(
    results: list[str],
    labels: str,
    out: Path,
    add: Path | None,
    name: str | None,
    number: str | None,
    scheme: str | None,
) -> Output:
    from routeyard.extensions.leaderboard.bundle import take
    from routeyard.extensions.leaderboard.submit import board
    from routeyard.pipelines.release.storage import local_copy

    if len(results) > 1:
        raise BadInput("--labels scores one place", next_step="name one folder or address")
    if add is not None:
        if name is None or number is None:
            raise BadInput(
                "--add needs --name and --number",
                next_step="name the entry as you know its owner, not as the bundle does",
            )
        take(add, results[0], name, number)
    with local_copy(labels) as release:
        leaderboard, page = board(results[0], release, out, scheme=scheme)
    lines = [
        f"{_range(row):<8} {row['entry']:<28} accuracy {row['accuracy']:.4f} "
        f"({row['low']:.4f} to {row['high']:.4f})  {row['verdict']}"
        for row in leaderboard["ranking"]
    ]
    out_of = [row for row in leaderboard["history"] if row["verdict"] in ("refused", "failed")]
    for row in out_of:
        why = row["refused"] or "; ".join(o["says"] for o in row["found"] if o["level"] == "fail")
        lines.append(f"–        {row['entry']}/{row['number']}: {row['verdict']}: {why}")
    return Output({**leaderboard, "page": page}, [*lines, f"page: {page}"])


def _range(row: dict[str, Any]) -> str:
    first, last = row["best_place"], row["worst_place"]
    return str(first) if first == last else f"{first}-{last}"


def _evaluations(results: list[Path], out: Path | None, metric: list[str] | None) -> Output:
    from routeyard.flows.console import line
    from routeyard.pipelines.evaluate.run.tables import read_leaderboard

    board, different = read_leaderboard(results)
    if len(different) > 1:
        line("note", f"rows of {' and '.join(different)} cannot be compared with each other")
    # Where labels are undecided, how far they could move each router.
    bounds = [name for name in ("accuracy_floor", "accuracy_ceiling") if name in board.column_names]
    shown = list(dict.fromkeys(["accuracy", *bounds, *(metric or [])]))
    for name in shown:
        if name not in board.column_names:
            raise BadInput(
                f"no result has the metric {name!r}",
                next_step=did_you_mean(name, board.column_names),
            )
    if out is not None:
        write_csv(board, out)
    width = max([7, *map(len, different)])
    return Output(board, _lines(board.to_pylist(), shown, width))


def _lines(rows: list[dict[str, Any]], shown: list[str], width: int) -> Iterator[str]:
    names = f"{'result':<24} {'release':<{width}} {'router':<28} {'questions':>16} "
    yield names + " ".join(f"{name:>18}" for name in shown)
    for row in rows:
        values = (f"{'–' if row[item] is None else f'{row[item]:.4f}':>18}" for item in shown)
        of = row["release"] or "–"
        over = row.get("questions") or "–"
        start = f"{row['result']:<24} {of:<{width}} {row['router']:<28} {over:>16}"
        yield f"{start} {' '.join(values)}"


def submit_command(
    router: str,
    to: Annotated[str, typer.Option()],
    release: Path | None = None,
    name: str | None = None,
    scheme: str | None = None,
    seed: int = 0,
    embed: Embed = False,
    encoder: str | None = None,
    cache: Path = CACHE,
) -> Output:
    """Run a router for a leaderboard and send its choices, checked.

    This RUNS the router. The bundle holds no code: a score for every test question and model,
    seconds of questions asked one by one, hashes of the router's files, and the findings of
    `audit --release`. If a check fails, nothing is sent (exit 3).

    Examples:

        routeyard submit my_router.py --to board

        routeyard submit my_router.py:Mine --to s3://bucket/board --name team-a

        routeyard submit knn --to board --embed --encoder tfidf

    Args:
        router: file.py or file.py:Class, module:Class, a registered router, or a CSV or
            Parquet file of predictions.
        to: Folder or address of the leaderboard; the bundle goes to submissions/NAME there.
        release: The benchmark; default: the folder `benchmark` at --to.
        name: Name of the entry; default: that of the router.
        seed: Seed of the router, where it takes one.
    """
    from routeyard.extensions.leaderboard.submit import submit

    done = submit(
        router, to, release=release, name=name, scheme=scheme, seed=seed,
        embed=embed, encoder=encoder, cache=cache,
    )  # fmt: skip
    lines = [f"{item.level:<5} {item.name}: {item.says}" for item in done.findings]
    times, of = done.about.times, done.about.benchmark
    if times.p50_s is not None and times.p95_s is not None:
        lines.append(
            f"time  {1000 * times.p50_s:.3g} ms to choose in the median, {1000 * times.p95_s:.3g} "
            f"ms at the 95th percentile, of {times.asked} questions asked one by one; "
            f"{times.moved} of them go elsewhere than together with the others"
        )
    lines.append(f"for   {of.name} {of.version}, split scheme {of.scheme}")
    if done.where is None:
        lines.append("not sent: a check failed")
    else:
        lines.append(f"sent  {done.where}")
    data = {"where": done.where, "submission": done.about.model_dump()}
    return Output(data, lines, exit_code=0 if done.where else 3)
