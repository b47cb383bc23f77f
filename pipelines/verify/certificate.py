"""The certificate against labels, costs and splits: its figures computed again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import core_of
from routeyard.pipelines.evaluate.certificate import (
    GAPS,
    REFERENCE,
    Certificate,
    Collapse,
    Figure,
    certify,
    verdict_of,
)
from routeyard.pipelines.evaluate.experiment import default_scheme
from routeyard.pipelines.verify.evidence import (
    CLOSE,
    Evidence,
    Results,
    believed,
    consistent,
    contradiction,
    not_run,
    proved,
    values,
)
from routeyard.schemas.questions import looked_for_duplicates

#: Resamples of the intervals without `--full`: enough to tell an interval from an invented one.
_FEW = 200
#: An interval of few resamples may differ by so much of its width: six standard errors of a
#: 2.5 % quantile of `_FEW` resamples, which is 0.19 of a standard deviation.
_APART = 0.3
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
_COUNTS = (
    "n_queries", "n_compared", "n_test", "n_models", "coverage", "scheme", "measure", "best_single",
)  # fmt: skip
#: What the same code says of the same tables, word for word.
_MADE = ("format", "rule", "test_in_train", "order_undecided")
#: Settings that a build never changes.
_BUILT = {"seed": 0, "clustered_by": None}
#: Figures that need the options of questions, which are withheld with their text.
_OF_OPTIONS = ("chance_corrected",)


def certificate_of_tables(evidence: Evidence) -> Results:
    """Contradictions between the certificate and the tables."""
    told = evidence.figures("certify").get("certificate")
    if not isinstance(told, Mapping) and evidence.built and evidence.same_code:
        found = ["a verdict without figures"]
        yield contradiction("certificate", 1, 1, "certificates are not there", found)
    elif not isinstance(told, Mapping) and evidence.built:
        yield not_run("certificate", "the certificate computed again", "the manifest holds none")
    if not isinstance(told, Mapping):
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
    wrong, intervals = _compared(evidence, told, fresh, exact)
    of = len(told.get("figures") or ()) + len(fresh.models)
    if wrong:
        what = "figures differ from what labels, costs and splits give"
        yield contradiction("certificate", len(wrong), of, what, wrong)
    else:
        how = "" if evidence.same_code else "; those that depend on the code's version roughly"
        says = f"{of:,} figures follow from labels, costs and splits{how}"
        yield proved("certificate", says, "figures.certify.certificate")
    if intervals:
        what = "intervals differ from those of resampling with the stored seed"
        yield contradiction("certificate", len(intervals), of, what, intervals)
    elif exact:
        yield proved("certificate", f"intervals of {resamples:,} resamples follow from the seed")
    else:
        says = f"intervals agree with {_FEW} separate resamples (`--full` computes all)"
        yield consistent("certificate", says)
    yield from _routers(evidence, told, fresh)


def _fresh(evidence: Evidence, told: Mapping[str, Any], resamples: int) -> Certificate:
    names = ("queries", "models", "outcomes", "splits", "duplicates", "model_splits", "embeddings")
    tables = {name: evidence.tables[name] for name in names if evidence.has(name)}
    if _several(evidence) and evidence.has("verdicts"):
        tables |= {name: evidence.tables[name] for name in ("verdicts", "labels")}
    if not looked_for_duplicates(evidence.recipe):
        tables.pop("duplicates", None)  # an empty table says nothing
    core = core_of(tables)
    default = default_scheme(core) if core.splits else None
    return certify(
        core,
        scheme=None if told.get("scheme") == default else told.get("scheme"),
        measure=told.get("measure"),
        resamples=resamples,
        seed=int(told.get("seed") or 0),
        cluster=told.get("clustered_by"),
        routers=_fitted(evidence, told),
    )


def _fitted(evidence: Evidence, told: Mapping[str, Any]) -> Sequence[str]:
    """Reference routers that are fitted again: without embeddings only those that need none."""
    if evidence.full and evidence.rows("embeddings"):
        return REFERENCE
    return ("task-map",) if told.get("routers") else ()


def _several(evidence: Evidence) -> bool:
    import pyarrow.compute as pc

    found = pc.max(evidence.table("labels", ["n_samples"]).column("n_samples")).as_py()
    return bool(found and found > 1)


def _compared(
    evidence: Evidence, told: Mapping[str, Any], fresh: Certificate, exact: bool
) -> tuple[list[str], list[str]]:
    """Differences in values, and in intervals."""
    wrong = list(_facts(evidence, told, fresh))
    intervals: list[str] = []
    for name, figure in (told.get("figures") or {}).items():
        one = fresh.figures.get(name)
        if one is None or (len(evidence.withheld) and any(part in name for part in _OF_OPTIONS)):
            continue  # of another version of the code, or of options that are withheld
        by_method = not evidence.same_code and any(part in name for part in _BY_METHOD)
        if by_method and _roughly(figure.get("value"), one.value):
            continue
        wrong += values([(name, figure.get("value"), one.value)])
        # A share of models moves by whole models.
        step = 2 / fresh.n_models if name == "dominated_share" and not exact else 0.0
        intervals += _interval(name, figure, one.low, one.high, exact, step)
    rows = {row.get("model_id"): row for row in told.get("models") or ()}
    for model in fresh.models:
        row = rows.pop(model.model_id, {})
        names = ("accuracy", "n_labels", "mean_cost", "dominated")
        named = [(f"{n} of {model.model_id}", row.get(n), getattr(model, n)) for n in names]
        wrong += values(named)
        intervals += _interval(model.model_id, row, model.low, model.high, exact)
    return [*wrong, *(f"{name!r} is no model of the release" for name in rows)], intervals


def _facts(evidence: Evidence, told: Mapping[str, Any], fresh: Certificate) -> Iterator[str]:
    """Differences in what is no figure, and in which figures there are."""
    yield from values((name, told.get(name), getattr(fresh, name)) for name in _COUNTS)
    if not evidence.same_code:
        return
    made = fresh.to_json()
    for name in sorted(told.keys() ^ made.keys()):
        yield f"{name} is not in both, expected what a certificate says"
    if evidence.built:  # a build certifies with the defaults
        yield from values((name, told.get(name), right) for name, right in _BUILT.items())
    names = {*_MADE, *(["folds"] if fresh.routers else [])}
    names |= {"encoder"} if evidence.rows("embeddings") else set()
    names -= {"test_in_train"} if len(evidence.withheld) else set()
    yield from values((name, told.get(name), made[name]) for name in sorted(names))
    for name in sorted(set(told.get("figures") or ()) ^ set(fresh.figures)):
        yield f"{name} is not in both, expected the same figures"


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
    apart = CLOSE if exact else _APART * (high - low) + 0.002 * max(abs(low), abs(high)) + step
    if any(
        not isinstance(end, int | float) or abs(end - right) > apart
        for end, right in zip(ends, (low, high), strict=True)
    ):
        yield f"{name} {ends[0]!r} to {ends[1]!r}, expected {low:.4g} to {high:.4g}"


def _routers(evidence: Evidence, told: Mapping[str, Any], fresh: Certificate) -> Results:
    """Reference routers and the verdict.

    Those that need embeddings are fitted again only with `--full`, and where they are released;
    what the best single model reaches in their place is the same for all of them.
    """
    rows = told.get("routers") or []
    own = {one.router: one for one in fresh.routers} if evidence.same_code else {}
    singles = {one.accuracy - one.gain for one in own.values()}
    wrong: list[str] = []
    for row in rows:
        name, accuracy = row.get("router"), row.get("accuracy")
        right = {"accuracy": own[name].accuracy} if name in own else {}
        if singles and isinstance(accuracy, int | float):
            right["gain"] = right.get("accuracy", accuracy) - min(singles)
        wrong += values(((f"{k} of {name}", row.get(k), v) for k, v in right.items()), 1e-6)
    if wrong:
        what = "figures of reference routers differ"
        yield contradiction("certificate", len(wrong), 2 * len(rows), what, wrong)
    elif own:
        yield proved("certificate", f"{len(own)} reference routers, fitted again")
    if left := [row for row in rows if row.get("router") not in own]:
        here = evidence.rows("embeddings")
        why = "only `--full` fits them" if here else "their embeddings are not released"
        says = f"{len(left)} reference routers (not fitted again: {why})"
        yield believed("certificate", says)
        yield not_run("certificate", f"{len(left)} reference routers fitted again", (
            "`--full` fits them" if here else "no embeddings are released"
        ))  # fmt: skip
    yield from _verdict(evidence, told, fresh)


def _verdict(evidence: Evidence, told: Mapping[str, Any], fresh: Certificate) -> Results:
    """The verdict and its words, by the certificate's own figures and the written rule."""
    try:
        tried = [Collapse(**row) for row in told.get("routers") or []]
        figures = {name: Figure(**one) for name, one in (told.get("figures") or {}).items()}
        if any(name not in figures for name in (*GAPS, "resolvable_difference")):
            why = "the certificate lacks figures that the rule reads"
            yield not_run("certificate", "the verdict by its rule", why)
            return
        right, words = verdict_of(
            str(told.get("best_single")), figures, tried, told.get("routers_reason"),
            folds=told.get("folds") or 0, compared=fresh.n_compared, queries=fresh.n_queries,
            undecided=fresh.order_undecided,
        )  # fmt: skip
    except (TypeError, ValueError, AttributeError) as error:
        yield contradiction("certificate", 1, 1, "certificates cannot be read", [str(error)])
        return
    wrong = list(
        values(
            [
                ("verdict", told.get("verdict"), right),
                ("verdict of the stage", evidence.figures("certify").get("verdict"), right),
                ("words", told.get("words") if evidence.same_code else words, words),
            ]
        )
    )
    if wrong:
        says = [f"{one} by its own figures" for one in wrong]
        yield contradiction("certificate", len(wrong), 3, "verdicts differ from the rule", says)
    else:
        follows = f"the verdict {right!r} follows from its figures by the rule"
        yield proved("certificate", follows, "figures.certify.verdict")


def _roughly(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return True  # a version may have known it, or had a reason not to
    return isinstance(a, int | float) and abs(a - b) <= _ROUGHLY
