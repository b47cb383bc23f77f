"""A router's choices as a bundle, and bundles scored for a board."""

from __future__ import annotations

import json
import platform
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.extensions.leaderboard.bundle import (
    PREDICTIONS,
    SUBMISSION,
    TIMES,
    AuditLine,
    BenchmarkRef,
    Bundle,
    DecisionTimes,
    SubmissionAbout,
    benchmark_of,
    named,
    read_bundle,
    send,
    submissions_of,
)
from routeyard.flows.console import line
from routeyard.flows.evaluation.evaluate import EVALUATION_CACHE as CACHE
from routeyard.flows.evaluation.evaluate import (
    code_of,
    evaluate_tables,
    reached,
    write_evaluation,
)
from routeyard.flows.evaluation.released import out_folder, read_release, with_embeddings
from routeyard.pipelines.common.arrays import Floats, Ints
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.common.staging import write_json, write_parquet, write_text
from routeyard.pipelines.evaluate.experiment import (
    Predictions,
    RouterSpec,
    default_scheme,
    handed_over,
    load_module,
    own,
    registered,
)
from routeyard.pipelines.evaluate.experiment import order as order_of
from routeyard.pipelines.evaluate.fit import Fit
from routeyard.pipelines.evaluate.metrics.selection import at_choice, best
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.settings import EvaluationSettings
from routeyard.pipelines.evaluate.zoo.submissions import Suspicion, audit, compare
from routeyard.pipelines.release.exporters.router_tables import ABOUT
from routeyard.pipelines.release.manifest import MANIFEST, read_manifest
from routeyard.pipelines.routers import ROUTERS
from routeyard.schemas.errors import BadInput, RouteyardError
from routeyard.schemas.release import Manifest, wilson

#: Questions that are asked one by one, and seconds after which no further one is.
ALONE, ALONE_S = 200, 20.0


@dataclass(frozen=True)
class SubmitResult:
    """Where a bundle went (None where its audit failed), what it says, and its findings."""

    where: str | None
    about: SubmissionAbout
    findings: list[Suspicion]


def submit(
    router: str,
    to: str,
    *,
    release: Path | None = None,
    name: str | None = None,
    scheme: str | None = None,
    seed: int = 0,
    embed: bool = False,
    encoder: str | None = None,
    cache: Path = CACHE,
) -> SubmitResult:
    """Fit a router, ask it about the test questions, check its choices, and send them as a bundle.

    This runs the router's code. What is sent is data: a score for every question and model,
    seconds per question, hashes of the router's files and the findings. A bundle whose audit
    fails is not sent.

    Args:
        router: `file.py`, `file.py:Class`, `module:Class`, the name of a registered router, or a
            CSV or Parquet file of predictions.
        to: A folder or an address that fsspec knows.
        release: The benchmark's open part or a release; by default the one at `to`.
        name: Folder of the entry. Default: the router's name.

    Raises:
        BadInput: no router or benchmark there, or the router's scores are not usable.
    """
    with ExitStack() as stack:
        place = stack.enter_context(benchmark_of(to)) if release is None else release
        spec = spec_of(router)
        benchmark = _benchmark(place, scheme)
        tables = read_release(place)
        tables = with_embeddings(tables, None, embed, cache, encoder, benchmark["scheme"])
        core = core_of(tables)
        chosen = default_scheme(core, benchmark["scheme"])
        test = core.take(core.rows(chosen, "test"))
        scores, times, seconds = _asked(spec, core, chosen, test, seed)
        choice = chosen_models(scores, core, chosen)
        result = audit(core, chosen, choices_table(test, choice))
        with tempfile.TemporaryDirectory(prefix="routeyard-bundle-") as made:
            folder = Path(made)
            _tables(folder, test, scores, seconds)
            files = _code_files(spec)
            about = SubmissionAbout(
                format=1,
                router=spec.name or router,
                made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                benchmark=BenchmarkRef(**{**benchmark, "scheme": chosen}),
                code=None if spec.is_table else code_of([spec])[spec.name],
                files_of_code=files,
                seed=seed,
                routeyard=_version(),
                python=platform.python_version(),
                labels_readable=bool((~np.isnan(test.labels)).any()),
                times=times,
                audit=[AuditLine(name=o.name, level=o.level, says=o.says) for o in result],
                files={item: sha256(folder / item) for item in (PREDICTIONS, TIMES)},
            )
            write_json(folder / SUBMISSION, about.model_dump())
            if any(item.level == "fail" for item in result):
                return SubmitResult(None, about, result)
            entry = named(name or (spec.name or "router").replace(":", "-").replace(" ", "-"))
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
            number = f"{stamp}-{about.files[PREDICTIONS][:8]}"
            return SubmitResult(send(folder, to, entry, number), about, result)


def spec_of(router: str) -> RouterSpec:
    """A router by file, class or name; of a file without a class, the one class that is a router.

    Raises:
        BadInput: there is no such file or router, or the file has several.
    """
    if router in ROUTERS.names():
        return registered([router])[0]
    if not router.endswith(".py"):
        return own(router)
    if not Path(router).is_file():
        raise BadInput(
            "there is no such file", where=router, next_step="name a file with a router class"
        )
    module = load_module(str(Path(router).resolve()))
    classes = [
        key
        for key, item in vars(module).items()
        if isinstance(item, type)
        and item.__module__ == module.__name__
        and all(callable(getattr(item, method, None)) for method in ("fit", "scores"))
    ]
    if len(classes) != 1:
        raise BadInput(
            f"expected one class with `fit` and `scores` in the file, found {len(classes)}",
            where=router,
            next_step=f"name it: {router}:{classes[0] if classes else 'MyRouter'}",
        )
    return own(f"{router}:{classes[0]}")


def _benchmark(place: Path, scheme: str | None) -> dict[str, Any]:
    """Name, version, fingerprint and split scheme of an open part or a release.

    Raises:
        BadInput: it is neither, or another scheme than that of the open part is asked for.
    """
    if (place / ABOUT).is_file():
        about = json.loads((place / ABOUT).read_text(encoding="utf-8"))
        if scheme not in (None, about["scheme"]):
            raise BadInput(
                f"the leaderboard is on split scheme {about['scheme']!r}, not {scheme!r}",
                where=str(place / ABOUT),
                next_step="leave --scheme out",
            )
        return {key: about[key] for key in ("name", "version", "fingerprint", "scheme")}
    if not (place / MANIFEST).is_file():
        raise BadInput(
            f"the folder is neither a release nor the open part of one (no {ABOUT})",
            where=str(place),
            next_step="routeyard export participants RELEASE FOLDER writes the latter",
        )
    manifest = read_manifest(place)
    return {
        "name": manifest.name, "version": manifest.version,
        "fingerprint": manifest.fingerprint, "scheme": scheme,
    }  # fmt: skip


def _asked(
    spec: RouterSpec, core: Core, scheme: str, test: Core, seed: int
) -> tuple[Floats, DecisionTimes, dict[str, float]]:
    """Scores of the test questions asked together, what that took, and seconds of some alone."""
    fitted = Fit(replace(spec, seed=seed), core.training(scheme))
    scores = fitted.scores(test.queries(), time.perf_counter)
    batch_s = float(fitted.seconds or 0.0)
    together = chosen_models(scores, core, scheme)
    if spec.is_table:
        times = DecisionTimes(fit_s=0.0, batch_s=0.0, asked=0, moved=0, p50_s=None, p95_s=None)
        return scores, times, {}
    drawn = np.random.default_rng(0).permutation(test.n_queries)[:ALONE]
    seconds: dict[str, float] = {}
    moved, began = 0, time.perf_counter()
    for row in drawn:
        values = test.take(np.array([row]))
        alone = fitted.scores(values.queries(), time.perf_counter)
        seconds[values.query_ids[0]] = float(fitted.seconds or 0.0)
        moved += int(chosen_models(alone, core, scheme)[0] != together[row])
        if time.perf_counter() - began > ALONE_S:
            break
    p50, p95 = np.quantile(list(seconds.values()), [0.5, 0.95])
    times = DecisionTimes(
        fit_s=fitted.record.fit_s, batch_s=batch_s, asked=len(seconds), moved=moved,
        p50_s=float(p50), p95_s=float(p95),
    )  # fmt: skip
    return scores, times, seconds


def chosen_models(scores: Floats, core: Core, scheme: str) -> Ints:
    """(n,) model with the highest score; ties as an evaluation settles them."""
    every = np.ones(scores.shape, dtype=np.bool_)
    return np.asarray(best(scores, every, order_of(core, scheme)), dtype=np.int64)


def choices_table(test: Core, choice: Ints) -> pa.Table:
    """query_id, model_id of every test question, as `audit --release` reads choices."""
    return pa.table(
        {
            "query_id": pa.array(test.query_ids, pa.string()),
            "model_id": pa.array([test.model_ids[k] for k in choice], pa.string()),
        }
    )


def _tables(folder: Path, test: Core, scores: Floats, seconds: Mapping[str, float]) -> None:
    """The bundle's tables: a column for each model, and seconds where a question was timed."""
    ids = pa.array(test.query_ids, pa.string())
    columns = {name: pa.array(scores[:, k]) for k, name in enumerate(test.model_ids)}
    write_parquet(folder / PREDICTIONS, pa.table({"query_id": ids, **columns}))
    timed = pa.array([seconds.get(item) for item in test.query_ids], pa.float64())
    write_parquet(folder / TIMES, pa.table({"query_id": ids, "seconds": timed}))


def _code_files(spec: RouterSpec) -> dict[str, str]:
    """Name → SHA-256 of the router's own file and the files beside it that it imports."""
    module = spec.target.rpartition(":")[0]
    if not module.endswith(".py"):
        return {}
    return {item.name: sha256(item) for item in sorted(reached(Path(module)))}


def _version() -> str:
    from importlib.metadata import version

    return version("routeyard")


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
    findings: Sequence[Suspicion] = ()
    refused: str | None = None
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None
    choices: pa.Table | None = field(default=None, repr=False)

    @property
    def verdict(self) -> str:
        """`refused`, `failed`, `doubtful` or `clean`."""
        levels = {item.level for item in self.findings}
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
    with submissions_of(place) as submissions:
        scored = list(scored_submissions(submissions, core, chosen, manifest))
    folder = out_folder(release, out)
    latest = _latest(scored)
    for item in scored:
        line("board", f"{item.entry}/{item.number}: {item.verdict}")
    ranking: list[dict[str, Any]] = []
    facts: Mapping[str, Any] = {}
    if latest:
        routers = {
            name: Predictions(entry.bundle.predictions, name)
            for name, entry in latest.items()
            if entry.bundle is not None
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
    leaderboard = {
        "release": {"name": manifest.name, "version": manifest.version, "scheme": chosen},
        "test_questions": len(core.rows(chosen, "test")),
        "resamples": facts.get("resamples"),
        "best_single": facts.get("best_single"),
        "simulated": any(tables["models"].column("simulated").to_pylist()),
        "ranking": ranking,
        "references": references,
        "history": [_history(entry) for entry in scored],
    }
    write_json(folder / "leaderboard.json", leaderboard)
    return leaderboard, _page(folder, leaderboard)


def scored_submissions(
    submissions: Sequence[tuple[str, str, Path]], core: Core, scheme: str, manifest: Manifest
) -> Iterator[Scored]:
    """Every submission in order; each is compared with the one before it of the same entry."""
    test = core.take(core.rows(scheme, "test"))
    before: dict[str, pa.Table] = {}
    for entry, number, folder in submissions:
        item = _scored(folder, entry, number, core, scheme, test, manifest, before.get(entry))
        if item.choices is not None:
            before[entry] = item.choices
        yield item


def _scored(
    folder: Path, entry: str, number: str, core: Core, scheme: str, test: Core,
    manifest: Manifest, before: pa.Table | None,
) -> Scored:  # fmt: skip
    try:
        bundle = read_bundle(folder, entry, number)
        _check_benchmark(bundle, manifest, scheme)
        router = handed_over(bundle.key, Predictions(bundle.predictions, bundle.key))
        scores = Fit(router, core.training(scheme)).scores(test.queries())
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
    return {item.entry: item for item in scored if item.verdict in ("clean", "doubtful")}


def _ranking(
    done: Evaluation, latest: Mapping[str, Scored], scored: Sequence[Scored]
) -> list[dict[str, Any]]:
    figures, rows = _figures(done), []
    for place in done.ranking:
        item = latest[place["router"]]
        assert item.bundle is not None
        own, about = figures[place["router"]], item.bundle.about
        rows.append(
            {
                "entry": item.entry,
                "router": about.router,
                "best_place": place["best_place"],
                "worst_place": place["worst_place"],
                **_measured(own),
                "p50_s": about.times.p50_s,
                "p95_s": about.times.p95_s,
                "verdict": item.verdict,
                "doubts": [o.says for o in item.findings if o.level != "ok"],
                "made": about.made,
                "code": about.code,
                "submissions": sum(other.entry == item.entry for other in scored),
            }
        )
    return rows


def _references(done: Evaluation, entries: set[str]) -> list[dict[str, Any]]:
    """Single models, oracles and mixes, for comparison: no entries, no places."""
    rows = [
        {"name": name, **_measured(stats)}
        for name, stats in _figures(done).items()
        if name not in entries and "accuracy" in stats and not name.startswith(("small:", "large:"))
    ]
    return sorted(rows, key=lambda row: (-(row["accuracy"] or 0.0), row["name"]))


def _figures(done: Evaluation) -> dict[str, dict[str, Any]]:
    """Router or reference → metric → its row on the test questions."""
    figures: dict[str, dict[str, Any]] = {}
    for row in done.metrics.to_pylist():
        if row["split"] == "test":
            figures.setdefault(row["router"], {})[row["metric"]] = row
    return figures


def _measured(rows: Mapping[str, Any]) -> dict[str, float | None]:
    """Accuracy with its interval, and USD for a thousand questions; null where unknown."""
    cost = (rows.get("mean_cost[usd]") or {}).get("value")
    return {
        **{name: rows["accuracy"][key] for name, key in _ACCURACY.items()},
        "usd_per_1000": None if cost is None else 1000 * cost,
    }


def _history(scored: Scored) -> dict[str, Any]:
    about = scored.bundle.about if scored.bundle else None
    return {
        "entry": scored.entry,
        "number": scored.number,
        "made": about.made if about else None,
        "code": about.code if about else None,
        "verdict": scored.verdict,
        "refused": scored.refused,
        "accuracy": scored.accuracy,
        "low": scored.low,
        "high": scored.high,
        "found": [asdict(o) for o in scored.findings],
    }


def _page(folder: Path, leaderboard: Mapping[str, Any]) -> Path:
    """The board as one self-contained page; returns it."""
    from routeyard.datacards.site.language import single_page

    release = leaderboard["release"]
    title = f"Leaderboard of {release['name']} {release['version']}"
    page = single_page("leaderboard.html.jinja", "site.js", title=title, board=leaderboard)
    result = folder / "index.html"
    write_text(result, page)
    return result
