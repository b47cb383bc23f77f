"""Bundles scored against labels that their makers did not have: audit, places, history, a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.extensions.leaderboard.bundle import Bundle, read_bundle, submissions_of
from routeyard.extensions.leaderboard.submit import choices_table, chosen_models
from routeyard.flows.console import line
from routeyard.flows.evaluation.evaluate import evaluate_tables, write_evaluation
from routeyard.flows.evaluation.released import out_folder, read_release
from routeyard.pipelines.common.errors import BadInput, RouteyardError
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.common.staging import write_json, write_text
from routeyard.pipelines.evaluate.experiment import (
    EvaluationSettings,
    Predictions,
    default_scheme,
    handed_over,
)
from routeyard.pipelines.evaluate.fit import Fit
from routeyard.pipelines.evaluate.metrics.selection import at_choice
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.zoo.submissions import Suspicion, audit, compare
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.schemas.release import Manifest, wilson

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
