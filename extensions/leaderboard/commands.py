"""Extensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from routeyard.extensions.leaderboard.bundle import Bundle, read_bundle, submissions_of, take
from routeyard.extensions.leaderboard.submit import choices_table, chosen_models, submit
from routeyard.flows.cli.options import CACHE, Embed, OptionalWrittenPath, Output, write_csv
from routeyard.flows.console import line
from routeyard.flows.evaluation.evaluate import evaluate_tables, write_evaluation
from routeyard.flows.evaluation.released import out_folder, read_release
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.common.staging import write_json, write_text
from routeyard.pipelines.evaluate.experiment import Predictions, default_scheme, handed_over
from routeyard.pipelines.evaluate.fit import Fit
from routeyard.pipelines.evaluate.metrics.selection import at_choice
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.settings import EvaluationSettings
from routeyard.pipelines.evaluate.zoo.submissions import Suspicion, audit, compare
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.schemas.errors import BadInput, RouteyardError, did_you_mean
from routeyard.schemas.release import Manifest, wilson

# Bundles scored against labels that their makers did not have: audit, places, history, a page.

#: Bootstrap resamples of a board.
RESAMPLES = 10_000
_ACCURACY = {"accuracy": "value", "low": "low", "high": "high"}


@dataclass(frozen=True)
class Scored:
    """One submission on the board: its findings, and its accuracy where nothing failed.

    Attributes:
        refused: Why it was not scored, or None.
        accuracy, low, high: Share of test questions answered right and its 95 % Wilson interval.
    """

    entry: str
    number: str
    bundle: Bundle | None
    found: Sequence[Suspicion] = ()
    refused: str | None = None
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    choices: pa.Table | None = field(default=None, repr=False)

    @property
    def verdict(self) -> str:
        """`refused`, `failed`, `doubtful` or `clean`."""
        levels = {one.level for one in self.found}
        if self.refused is not None:
            return "refused"
        return "failed" if "fail" in levels else "doubtful" if "warn" in levels else "clean"


def board(
    place: str,
    release: Path,
    out: Path,
    *,
    scheme: str | None = None,
    resamples: int = RESAMPLES,
) -> tuple[dict[str, Any], Path]:
    """Score every submission at a place; the board as JSON, and its page.

    The latest submission of an entry that is neither refused nor failed is ranked;
    the earlier ones are its history. Nothing of a bundle is run.

    Args:
        place: Folder or address with `submissions/ENTRY/NUMBER/`.
        release: The whole release, with the labels of the test questions.
        out: Folder to write to.
        scheme: Split scheme; by default the release's own.

    Raises:
        BadInput: there is no submission, no release, or its test questions have no labels.
    """
    tables = read_release(release)
    core = core_of(tables)
    chosen = default_scheme(core, scheme)
    manifest = read_manifest(release)
    with submissions_of(place) as found:
        scored = list(scored_submissions(found, core, chosen, manifest))
    folder = out_folder(release, out)
    latest = _latest(scored)
    for one in scored:
        line("board", f"{one.entry}/{one.number}: {one.verdict}")
    ranking: list[dict[str, Any]] = []
    facts: Mapping[str, Any] = {}
    if latest:
        routers = {
            name: Predictions(one.bundle.predictions, name)
            for name, one in latest.items()
            if one.bundle is not None
        }
        settings = EvaluationSettings(
            scheme=chosen, resamples=resamples, pair_routers=False, timed=False
        )
        done = evaluate_tables(tables, routers, settings)
        write_evaluation(folder / "results", release, done, tables, None)
        ranking, facts = _ranking(done, latest, scored), done.facts
        references = _references(done, set(latest))
    else:
        references = []
    told = {
        "release": {"name": manifest.name, "version": manifest.version, "scheme": chosen},
        "test_questions": len(core.rows(chosen, "test")),
        "resamples": facts.get("resamples"),
        "best_single": facts.get("best_single"),
        "simulated": any(tables["models"].column("simulated").to_pylist()),
        "ranking": ranking,
        "references": references,
        "history": [_history(one) for one in scored],
    }
    write_json(folder / "leaderboard.json", told)
    return told, _page(folder, told)


def scored_submissions(
    found: Sequence[tuple[str, str, Path]], core: Core, scheme: str, manifest: Manifest
) -> Iterator[Scored]:
    """Every submission in order; each is compared with the one before it of the same entry."""
    test = core.take(core.rows(scheme, "test"))
    before: dict[str, pa.Table] = {}
    for entry, number, folder in found:
        one = _one(folder, entry, number, core, scheme, test, manifest, before.get(entry))
        if one.choices is not None:
            before[entry] = one.choices
        yield one


def _one(
    folder: Path, entry: str, number: str, core: Core, scheme: str, test: Core,
    manifest: Manifest, before: pa.Table | None,
) -> Scored:  # fmt: skip
    try:
        bundle = read_bundle(folder, entry, number)
        _check_benchmark(bundle, manifest, scheme)
        given = handed_over(bundle.key, Predictions(bundle.predictions, bundle.key))
        scores = Fit(given, core.training(scheme)).scores(test.queries())
        if not np.isfinite(scores).all():
            raise BadInput("the scores are not finite", where=bundle.key)
    except RouteyardError as error:
        return Scored(entry, number, None, refused=error.what)
    choice = chosen_models(scores, core, scheme)
    table = choices_table(test, choice)
    findings = audit(core, scheme, table)
    if before is not None:
        changes = compare(core, scheme, before, table)
        # A router may have learned from something else than the train questions: a doubt, no proof.
        level = "warn" if changes.level == "fail" else changes.level
        findings.append(replace(changes, level=level))
    if bundle.about.labels_readable:
        says = "the router ran beside the labels of the test questions"
        findings.append(Suspicion("labels readable", "warn", says))
    if moved := bundle.about.times.moved:
        says = f"{moved} of {bundle.about.times.asked} questions go elsewhere when asked alone"
        findings.append(Suspicion("depends on its batch", "warn", says))
    hit = at_choice(test.labels, choice)
    known = hit[~np.isnan(hit)]
    accuracy, low, high = wilson(float(known.sum()), len(known)) if len(known) else (None,) * 3
    return Scored(
        entry, number, bundle, findings, accuracy=accuracy, low=low, high=high, choices=table
    )


def _check_benchmark(bundle: Bundle, manifest: Manifest, scheme: str) -> None:
    of = bundle.about.benchmark
    if of.fingerprint != manifest.fingerprint:
        raise BadInput(
            f"it is for {of.name} {of.version}, other data than {manifest.name} {manifest.version}"
        )
    if of.scheme != scheme:
        raise BadInput(f"it is for split scheme {of.scheme}, the board is on {scheme}")


def _latest(scored: Sequence[Scored]) -> dict[str, Scored]:
    """Entry → its latest submission that was neither refused nor failed."""
    return {one.entry: one for one in scored if one.verdict in ("clean", "doubtful")}


def _ranking(
    done: Evaluation, latest: Mapping[str, Scored], scored: Sequence[Scored]
) -> list[dict[str, Any]]:
    figures, rows = _figures(done), []
    for place in done.ranking:
        one = latest[place["router"]]
        assert one.bundle is not None
        own, about = figures[place["router"]], one.bundle.about
        rows.append(
            {
                "entry": one.entry,
                "router": about.router,
                "best_place": place["best_place"],
                "worst_place": place["worst_place"],
                **_measured(own),
                "p50_s": about.times.p50_s,
                "p95_s": about.times.p95_s,
                "verdict": one.verdict,
                "doubts": [o.says for o in one.found if o.level != "ok"],
                "made": about.made,
                "code": about.code,
                "submissions": sum(other.entry == one.entry for other in scored),
            }
        )
    return rows


def _references(done: Evaluation, entries: set[str]) -> list[dict[str, Any]]:
    """Single models, oracles and mixes, for comparison: no entries, no places."""
    rows = [
        {"name": name, **_measured(told)}
        for name, told in _figures(done).items()
        if name not in entries and "accuracy" in told and not name.startswith(("small:", "large:"))
    ]
    return sorted(rows, key=lambda row: (-(row["accuracy"] or 0.0), row["name"]))


def _figures(done: Evaluation) -> dict[str, dict[str, Any]]:
    """Router or reference → metric → its row on the test questions."""
    found: dict[str, dict[str, Any]] = {}
    for row in done.metrics.to_pylist():
        if row["split"] == "test":
            found.setdefault(row["router"], {})[row["metric"]] = row
    return found


def _measured(rows: Mapping[str, Any]) -> dict[str, float | None]:
    """Accuracy with its interval, and USD for a thousand questions; null where unknown."""
    cost = (rows.get("mean_cost[usd]") or {}).get("value")
    return {
        **{name: rows["accuracy"][key] for name, key in _ACCURACY.items()},
        "usd_per_1000": None if cost is None else 1000 * cost,
    }


def _history(one: Scored) -> dict[str, Any]:
    about = one.bundle.about if one.bundle else None
    return {
        "entry": one.entry,
        "number": one.number,
        "made": about.made if about else None,
        "code": about.code if about else None,
        "verdict": one.verdict,
        "refused": one.refused,
        "accuracy": one.accuracy,
        "low": one.low,
        "high": one.high,
        "found": [asdict(o) for o in one.found],
    }


def _page(folder: Path, told: Mapping[str, Any]) -> Path:
    """The board as one self-contained page; returns it."""
    from routeyard.datacards.site.language import single_page

    release = told["release"]
    title = f"Leaderboard of {release['name']} {release['version']}"
    page = single_page("leaderboard.html.jinja", "site.js", title=title, board=told)
    written = folder / "index.html"
    write_text(written, page)
    return written


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
    return _evaluations([Path(one) for one in results], out, metric)


def _workflows(folder: Path) -> Output:
    """Write the workflow files; those that are there stay."""
    from importlib.resources import files

    folder.mkdir(parents=True, exist_ok=True)
    ours = files("routeyard.extensions.leaderboard").joinpath("ci")
    written = []
    for name in ("score.yml", "submission.yml"):
        if (target := folder / name).exists():
            raise BadInput(
                "the workflow is there already", where=str(target), next_step="move it away first"
            )
        target.write_text(ours.joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
        written.append(target)
    return Output(written, map(str, written))


def _bundles(
    results: list[str],
    labels: str,
    out: Path,
    add: Path | None,
    name: str | None,
    number: str | None,
    scheme: str | None,
) -> Output:
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
        told, page = board(results[0], release, out, scheme=scheme)
    lines = [
        f"{_range(row):<8} {row['entry']:<28} accuracy {row['accuracy']:.4f} "
        f"({row['low']:.4f} to {row['high']:.4f})  {row['verdict']}"
        for row in told["ranking"]
    ]
    out_of = [row for row in told["history"] if row["verdict"] in ("refused", "failed")]
    for row in out_of:
        why = row["refused"] or "; ".join(o["says"] for o in row["found"] if o["level"] == "fail")
        lines.append(f"–        {row['entry']}/{row['number']}: {row['verdict']}: {why}")
    return Output({**told, "page": page}, [*lines, f"page: {page}"])


def _range(row: dict[str, Any]) -> str:
    first, last = row["best_place"], row["worst_place"]
    return str(first) if first == last else f"{first}-{last}"


def _evaluations(results: list[Path], out: Path | None, metric: list[str] | None) -> Output:
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
        values = (f"{'–' if row[one] is None else f'{row[one]:.4f}':>18}" for one in shown)
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
    done = submit(
        router, to, release=release, name=name, scheme=scheme, seed=seed,
        embed=embed, encoder=encoder, cache=cache,
    )  # fmt: skip
    lines = [f"{one.level:<5} {one.name}: {one.says}" for one in done.found]
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
