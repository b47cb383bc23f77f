"""The certificate against labels, costs and splits: its figures computed again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.certificate import certify
from routeyard.pipelines.evaluate.certificate.crossfit import REFERENCE, Collapse
from routeyard.pipelines.evaluate.certificate.issued import Certificate, default_scheme
from routeyard.pipelines.evaluate.certificate.pool import Figure
from routeyard.pipelines.evaluate.certificate.verdict import GAPS, verdict_of
from routeyard.pipelines.matrix.reading import core_of
from routeyard.pipelines.proof.claims import (
    Results,
    believed,
    consistent,
    contradiction,
    proved,
)
from routeyard.pipelines.proof.evidence import Evidence

#: Resamples of the intervals without `--full`: enough to tell an interval from an invented one.
_FEW = 200
#: An interval of few resamples may differ by so much of its width: six standard errors of a
#: 2.5 % quantile of `_FEW` resamples, which is 0.19 of a standard deviation.
_APART = 0.3
_CLOSE = 1e-9
#: Figures that depend on how ties, halves and guesses are treated, which versions of the code have
#: changed: under another version than today's they are only compared roughly.
_BY_METHOD = (
    "crossfitted",
    "corrected",
    "stability",
    "resolvable_difference",
    "task_oracle",
    "redundancy",
    "hard_share",
    "mix",
    "dominated_share",
)
_ROUGHLY = 0.1
_COUNTS = ("n_queries", "n_compared", "n_test", "n_models", "scheme", "measure", "best_single")
#: Figures that need the options of questions, which are withheld with their text.
_OF_OPTIONS = ("chance_corrected",)


def certificate_of_tables(evidence: Evidence) -> Results:
    """Contradictions between the certificate and the tables."""
    told = evidence.figures("certify").get("certificate")
    if not isinstance(told, Mapping) or not evidence.has("queries", "models", "labels", "outcomes"):
        return
    resamples = told.get("resamples")
    if not isinstance(resamples, int) or not 1 <= resamples <= 100_000:
        yield contradiction("certificate", 1, 1, "figures differ", [f"resamples {resamples!r}"])
        return
    exact = evidence.full or resamples <= _FEW
    try:
        fresh = _fresh(evidence, told, resamples if exact else _FEW)
    except (BadInput, TypeError, ValueError, KeyError) as error:
        yield contradiction("certificate", 1, 1, "certificates cannot be computed", [str(error)])
        return
    values, intervals = _compared(evidence, told, fresh, exact)
    of = len(told.get("figures") or ()) + len(fresh.models)
    if values:
        what = "figures differ from what labels, costs and splits give"
        yield contradiction("certificate", len(values), of, what, values)
    else:
        how = "" if evidence.same_code else "; those that depend on the code's version roughly"
        yield proved("certificate", f"{of:,} figures follow from labels, costs and splits{how}")
    if intervals:
        what = "intervals differ from those of resampling with the stored seed"
        yield contradiction("certificate", len(intervals), of, what, intervals)
    elif exact:
        yield proved("certificate", f"intervals of {resamples:,} resamples follow from the seed")
    else:
        says = f"intervals agree with {_FEW} resamples of their own (`--full` computes all)"
        yield consistent("certificate", says)
    yield from _routers(evidence, told, fresh, exact)


def _fresh(evidence: Evidence, told: Mapping[str, Any], resamples: int) -> Certificate:
    names = ("queries", "models", "outcomes", "splits", "duplicates", "model_splits", "embeddings")
    tables = {name: evidence.tables[name] for name in names if evidence.has(name)}
    if _several(evidence) and evidence.has("verdicts"):
        tables |= {name: evidence.tables[name] for name in ("verdicts", "labels")}
    if not evidence.rows("duplicates"):
        tables.pop("duplicates", None)
    core = core_of(tables)
    default = default_scheme(core) if core.splits else None
    return certify(
        core,
        scheme=None if told.get("scheme") == default else told.get("scheme"),
        measure=told.get("measure"),
        resamples=resamples,
        seed=int(told.get("seed") or 0),
        cluster=told.get("clustered_by"),
        routers=REFERENCE if evidence.full and evidence.rows("embeddings") else (),
    )


def _several(evidence: Evidence) -> bool:
    import pyarrow.compute as pc

    found = pc.max(evidence.table("labels", ["n_samples"]).column("n_samples")).as_py()
    return bool(found and found > 1)


def _compared(
    evidence: Evidence, told: Mapping[str, Any], fresh: Certificate, exact: bool
) -> tuple[list[str], list[str]]:
    """Differences in values, and in intervals."""
    values = [
        f"{name} {told.get(name)!r}, expected {getattr(fresh, name)!r}"
        for name in _COUNTS
        if told.get(name) != getattr(fresh, name)
    ]
    if not _same(told.get("coverage"), fresh.coverage):
        values.append(f"coverage {told.get('coverage')!r}, expected {fresh.coverage!r}")
    intervals: list[str] = []
    stored = told.get("figures") or {}
    for name, figure in stored.items():
        one = fresh.figures.get(name)
        if one is None or (len(evidence.withheld) and any(part in name for part in _OF_OPTIONS)):
            continue  # of another version of the code, or of options that are withheld
        by_method = not evidence.same_code and any(part in name for part in _BY_METHOD)
        if by_method and _roughly(figure.get("value"), one.value):
            continue
        if not _same(figure.get("value"), one.value):
            values.append(f"{name} {figure.get('value')!r}, expected {one.value!r}")
        # A share of models moves by whole models.
        step = 2 / fresh.n_models if name == "dominated_share" and not exact else 0.0
        intervals += _interval(name, figure, one.low, one.high, exact, step)
    models = {row.get("model_id"): row for row in told.get("models") or ()}
    for model in fresh.models:
        row = models.pop(model.model_id, {})
        for name in ("accuracy", "n_labels", "mean_cost", "dominated"):
            right = getattr(model, name)
            if not _same(row.get(name), right):
                values.append(f"{name} of {model.model_id} {row.get(name)!r}, expected {right!r}")
        intervals += _interval(model.model_id, row, model.low, model.high, exact)
    values += [f"{name!r} is no model of the release" for name in models]
    return values, intervals


def _interval(
    name: str,
    told: Mapping[str, Any],
    low: float | None,
    high: float | None,
    exact: bool,
    step: float = 0.0,
) -> Iterator[str]:
    ends = (told.get("low"), told.get("high"))
    if low is None or high is None or None in ends:
        if ends != (low, high):
            yield f"{name} {ends[0]!r} to {ends[1]!r}, expected {low!r} to {high!r}"
        return
    apart = _CLOSE if exact else _APART * (high - low) + 0.002 * max(abs(low), abs(high)) + step
    if any(
        not isinstance(end, int | float) or abs(end - right) > apart
        for end, right in zip(ends, (low, high), strict=True)
    ):
        yield f"{name} {ends[0]!r} to {ends[1]!r}, expected {low:.4g} to {high:.4g}"


def _routers(
    evidence: Evidence, told: Mapping[str, Any], fresh: Certificate, exact: bool
) -> Results:
    """Routers are fitted again only with `--full`, and where their embeddings are released."""
    rows = told.get("routers") or []
    if fresh.routers:
        own = {one.router: one for one in fresh.routers}
        wrong = [
            f"{name} of {row.get('router')} {row.get(name)!r}, expected {getattr(one, name)!r}"
            for row in rows
            for name in ("accuracy", "gain")
            if (one := own.get(str(row.get("router")))) is None
            or not _same(row.get(name), getattr(one, name), 1e-6)
        ]
        if wrong:
            what = "figures of reference routers differ"
            yield contradiction("certificate", len(wrong), 2 * len(rows), what, wrong)
        else:
            yield proved("certificate", f"{len(rows)} reference routers, fitted again")
    elif rows:
        says = f"{len(rows)} reference routers (they are fitted on embeddings that are not here)"
        yield believed("certificate", says)
    try:
        tried = [Collapse(**row) for row in rows]
        figures = {name: Figure(**one) for name, one in (told.get("figures") or {}).items()}
        if any(name not in figures for name in (*GAPS, "resolvable_difference")):
            return
        core: Any = type("Names", (), {"model_ids": [told.get("best_single")]})
        right, _ = verdict_of(core, figures, tried, told.get("routers_reason"), 0, "")
    except (TypeError, ValueError, AttributeError) as error:
        yield contradiction("certificate", 1, 1, "certificates cannot be read", [str(error)])
        return
    if told.get("verdict") != right or evidence.figures("certify").get("verdict") != right:
        says = f"verdict {told.get('verdict')!r}, expected {right!r} by its own figures"
        yield contradiction("certificate", 1, 1, "verdicts differ from the rule", [says])
    else:
        yield proved("certificate", f"the verdict {right!r} follows from its figures by the rule")


def _roughly(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return True  # a version may have known it, or had a reason not to
    return isinstance(a, int | float) and abs(a - b) <= _ROUGHLY


def _same(a: Any, b: Any, close: float = _CLOSE) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        if not isinstance(a, int | float) or not isinstance(b, int | float):
            return False
        return math.isclose(a, b, rel_tol=close, abs_tol=close)
    return bool(a == b)
