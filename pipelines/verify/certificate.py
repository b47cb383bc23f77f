"""The certificate against labels, costs and splits: computed again, and compared leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.compute as pc

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
    agree,
    believed,
    consistent,
    contradiction,
    not_run,
    values,
)
from routeyard.schemas.errors import BadInput
from routeyard.schemas.questions import looked_for_duplicates

#: Resamples of the intervals without `--full`: enough to tell an interval from an invented one.
_FEW = 200
#: An interval of few resamples may differ by so much of its width: six standard errors of a
#: 2.5 % quantile of `_FEW` resamples, which is 0.19 of a standard deviation.
_APART = 0.3
#: Figures that depend on how ties, halves and guesses are treated, which versions of the code have
#: changed: under another version than today's they are only compared roughly.
_BY_METHOD = (
    "crossfitted", "corrected", "stability", "resolvable_difference", "task_oracle", "redundancy",
    "hard_share", "mix", "dominated_share",
)  # fmt: skip
_ROUGHLY = 0.1
#: Parts that name rows: of a certificate by another version of the code only their figures, and
#: `_COUNTS`, are compared.
_NAMED = {"figures": "", "models": "model_id", "routers": "router"}
_COUNTS = (
    "n_queries", "n_compared", "n_test", "n_models", "coverage", "scheme", "measure", "best_single",
)  # fmt: skip
_FIGURES = ("value", "accuracy", "n_labels", "mean_cost", "dominated", "low", "high")
#: Of a router that was fitted again beside fewer others: what does not depend on these.
_ALONE = ("router", "accuracy", "gain", "top_model", "top_share", "entropy")

#: Part of a certificate, name of the row in it, column → value.
Leaves = dict[tuple[str, str, str], Any]


def certificate_of_tables(evidence: Evidence) -> Results:
    """Contradictions between the certificate and the tables."""
    stored = evidence.figures("certify").get("certificate")
    if not isinstance(stored, Mapping):
        if evidence.built and evidence.same_code:
            examples = ["a verdict without figures"]
            yield contradiction("certificate", 1, 1, "certificates are not there", examples)
        elif evidence.built:
            yield not_run(
                "certificate", "the certificate computed again", "the manifest holds none"
            )
        return
    resamples = stored.get("resamples")
    if not isinstance(resamples, int) or not 1 <= resamples <= 100_000:
        yield contradiction("certificate", 1, 1, "figures differ", [f"resamples {resamples!r}"])
        return
    exact = evidence.full or resamples <= _FEW
    try:
        fresh = _fresh(evidence, stored, resamples if exact else _FEW)
        wrong, intervals, of = _compared(evidence, stored, fresh, exact)
        yield from _verdict(evidence, stored, fresh)
    except (BadInput, TypeError, ValueError, KeyError, AttributeError) as error:
        yield contradiction("certificate", 1, 1, "certificates cannot be computed", [str(error)])
        return
    says = "what labels, costs and splits give"
    says += f" ({len(fresh.routers)} reference routers fitted again)" if fresh.routers else ""
    says += "" if evidence.same_code else "; those that depend on the code's version roughly"
    yield from agree("certificate", "figures", says, of, wrong, "figures.certify.certificate")
    if exact or intervals:
        says = f"those of {resamples:,} resamples with the stored seed"
        yield from agree("certificate", "intervals", says, of, intervals)
    else:
        says = f"intervals agree with {_FEW} separate resamples (`--full` computes all)"
        yield consistent("certificate", says)
    if left := len(stored.get("routers") or ()) - len(fresh.routers):
        here = evidence.rows("embeddings")
        why = "only `--full` fits them" if here else "their embeddings are not released"
        yield believed("certificate", f"{left} reference routers (not fitted again: {why})")
        yield not_run("certificate", f"{left} reference routers fitted again", why)


def _fresh(evidence: Evidence, stored: Mapping[str, Any], resamples: int) -> Certificate:
    """The certificate of the tables; a build certifies with the defaults."""
    names = ("queries", "models", "outcomes", "splits", "duplicates", "model_splits", "embeddings")
    tables = {name: evidence.tables[name] for name in names if evidence.has(name)}
    samples = pc.max(evidence.table("labels", ["n_samples"]).column("n_samples")).as_py() or 0
    if samples > 1 and evidence.has("verdicts"):
        tables |= {name: evidence.tables[name] for name in ("verdicts", "labels")}
    if not looked_for_duplicates(evidence.recipe):
        tables.pop("duplicates", None)  # an empty table says nothing
    core = core_of(tables)
    scheme = stored.get("scheme")
    routers: tuple[str, ...] = ("task-map",) if stored.get("routers") else ()
    return certify(
        core,
        scheme=None if scheme == (default_scheme(core) if core.splits else None) else scheme,
        measure=stored.get("measure"),
        resamples=resamples,
        seed=0 if evidence.built else int(stored.get("seed") or 0),
        cluster=None if evidence.built else stored.get("clustered_by"),
        # Without embeddings only those that need none.
        routers=REFERENCE if evidence.full and evidence.rows("embeddings") else routers,
    )


def _leaves(certificate: Mapping[str, Any]) -> Leaves:
    result: Leaves = {}
    for part, value in certificate.items():
        if part not in _NAMED:
            result[part, "", part] = value
            continue
        rows = value if isinstance(value, Mapping) else {row[_NAMED[part]]: row for row in value}
        for name, row in rows.items():
            result |= {(part, name, column): item for column, item in row.items()}
    return dict(sorted(result.items(), key=lambda leaf: leaf[0][1] != ""))


def _compared(
    evidence: Evidence, stored: Mapping[str, Any], fresh: Certificate, exact: bool
) -> tuple[list[str], list[str], int]:
    """Differences in values, and in intervals, and how many values were compared."""
    told, made = _leaves(stored), _leaves(fresh.to_json())
    fitted = {router.router for router in fresh.routers}
    made |= _gains(stored, fresh, fitted)
    left_out = _not_made(evidence, fitted, exact)
    compared = [leaf for leaf in {**told, **made} if not left_out(*leaf)]
    both = [leaf for leaf in compared if leaf in told and leaf in made]
    lost = [leaf for leaf in compared if leaf not in both and evidence.same_code]
    wrong = [f"{_shown(*leaf)} is not in both, expected what a certificate says" for leaf in lost]
    intervals: list[str] = []
    for leaf in both:
        one, right, close = told[leaf], made[leaf], 1e-6 if leaf[0] == "routers" else CLOSE
        if leaf[2] in ("low", "high"):
            low, high = (made[leaf[0], leaf[1], end] for end in ("low", "high"))
            # A share of models moves by whole models.
            step = 2 / fresh.n_models if leaf[1] == "dominated_share" and not exact else 0.0
            if not _near(one, right, low, high, exact, step):
                intervals.append(f"{_shown(*leaf)} {one!r}, expected {right!r}")
        elif evidence.same_code or not _roughly(leaf[1], one, right):
            wrong += values([(_shown(*leaf), one, right)], close)
    return wrong, intervals, len(compared)


def _gains(stored: Mapping[str, Any], fresh: Certificate, fitted: set[str]) -> Leaves:
    """Gains of the other routers: the best single model is the same for all of them."""
    single = min((router.accuracy - router.gain for router in fresh.routers), default=None)
    rows = stored.get("routers") or () if single is not None else ()
    return {
        ("routers", row["router"], "gain"): row["accuracy"] - single
        for row in rows
        if row["router"] not in fitted
    }


def _shown(part: str, name: str, column: str) -> str:
    return f"{column} of {name}" if name and column != "value" else name or column


def _not_made(evidence: Evidence, fitted: set[str], exact: bool) -> Callable[..., bool]:
    """Whether a part of a certificate cannot be computed from what is there, or was not."""
    unknown = {"verdict", "words", "routers_reason"}
    unknown |= set() if exact else {"resamples"}
    unknown |= set() if fitted else {"folds"}
    unknown |= set() if evidence.rows("embeddings") else {"encoder"}
    withheld = len(evidence.withheld) > 0
    unknown |= {"test_in_train"} if withheld else set()

    def left_out(part: str, name: str, column: str) -> bool:
        if not evidence.same_code:
            return part == "routers" or column not in (*_COUNTS, *_FIGURES)
        if part == "routers":
            return column != "gain" and (name not in fitted or column not in _ALONE)
        # Options of questions are withheld with their text.
        return part in unknown or (withheld and "chance_corrected" in name)

    return left_out


def _near(one: Any, right: Any, low: Any, high: Any, exact: bool, step: float) -> bool:
    """Whether one end of an interval is what few resamples can tell from the right one."""
    if one is None or right is None:
        return one is right
    apart = CLOSE if exact else _APART * (high - low) + 0.002 * max(abs(low), abs(high)) + step
    return isinstance(one, int | float) and abs(one - right) <= apart


def _roughly(name: str, a: Any, b: Any) -> bool:
    """Whether a figure that depends on the code's version is near that of another one."""
    if not any(item in name for item in _BY_METHOD):
        return False
    if a is None or b is None:
        return True  # a version may have known it, or had a reason not to
    return isinstance(a, int | float) and abs(a - b) <= _ROUGHLY


def _verdict(evidence: Evidence, stored: Mapping[str, Any], fresh: Certificate) -> Results:
    """The verdict and its words, by the certificate's own figures and the written rule."""
    tried = [Collapse(**row) for row in stored.get("routers") or []]
    figures = {name: Figure(**item) for name, item in (stored.get("figures") or {}).items()}
    if any(name not in figures for name in (*GAPS, "resolvable_difference")):
        why = "the certificate lacks figures that the rule reads"
        yield not_run("certificate", "the verdict by its rule", why)
        return
    right, words = verdict_of(
        str(stored.get("best_single")), figures, tried, stored.get("routers_reason"),
        folds=stored.get("folds") or 0, compared=fresh.n_compared, queries=fresh.n_queries,
        undecided=fresh.order_undecided,
    )  # fmt: skip
    told = [
        ("verdict", stored.get("verdict"), right),
        ("verdict of the stage", evidence.figures("certify").get("verdict"), right),
        *([("words", stored.get("words"), words)] if evidence.same_code else []),
    ]
    wrong = [f"{item} by its own figures" for item in values(told)]
    says = "what the rule makes of the certificate's figures"
    yield from agree(
        "certificate", "words of the verdict", says, len(told), wrong, "figures.certify.verdict"
    )
