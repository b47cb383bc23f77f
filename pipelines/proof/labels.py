"""Labels against verdicts: the recipe's policy decides once more."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.label.aggregate import decide
from routeyard.pipelines.proof.claims import Results, believed, contradiction, not_run, proved
from routeyard.pipelines.proof.evidence import Evidence

_KEY = ("query_id", "model_id")
_DECIDED = ("score", "correct", "decided_by", "contested", "n_samples")
#: Scores are means of floats: so far apart two of them may be.
_CLOSE = 1e-9
#: `decided_by` of an injected model.
INJECTED = "pseudo_specialist"


def labels_of_verdicts(evidence: Evidence) -> Results:
    """Contradictions between labels and what the policy makes of the verdicts."""
    if not evidence.has("queries", "labels"):
        return
    labels = evidence.table("labels", [*_KEY, *_DECIDED])
    policy = evidence.label
    if policy is None:
        check = "labels against verdicts by the recipe's policy"
        yield not_run("labels", check, evidence.unread("label"))
        return
    if not evidence.has("responses", "verdicts") or (
        not evidence.built and not evidence.rows("verdicts")
    ):
        if evidence.built and labels.num_rows:
            yield contradiction("labels", labels.num_rows, labels.num_rows, "labels have no "
                                "response and no verdict to follow from", [])  # fmt: skip
            return
        if labels.num_rows:
            why = f"{labels.num_rows:,} labels come without verdicts"
            yield not_run("labels", "labels against verdicts by the recipe's policy", why)
        return
    real = pc.is_in(labels.column("model_id"), value_set=evidence.real)
    yield from _injected(evidence, labels.filter(pc.invert(real)))
    stored = labels.filter(real)
    expected = _decided(evidence, policy)
    if found := _missing(stored, expected, complete=evidence.built):
        yield from found
        return
    if expected.num_rows > stored.num_rows:
        expected = expected.join(stored.select(_KEY), list(_KEY), join_type="left semi")
        expected = expected.sort_by([("model_id", "ascending"), ("query_id", "ascending")])
    bad, examples = _different(stored, _as_earlier(stored, expected))
    if bad:
        what = "labels differ from what the recipe's policy makes of their verdicts"
        yield contradiction("labels", bad, stored.num_rows, what, examples)
    elif stored.num_rows:
        says = f"{stored.num_rows:,} labels follow from the verdicts by the recipe's policy"
        covers = _DECIDED if stored.num_rows == labels.num_rows else ()
        yield proved("labels", says, *covers)


def _as_earlier(stored: pa.Table, expected: pa.Table) -> pa.Table:
    """What the policy makes; where all labels of exactly half right samples are stored as right,
    they are: so the first releases were made."""
    several = pc.greater(expected.column("n_samples"), 1)
    wrong = pc.invert(pc.fill_null(expected.column("correct"), True))
    halves = pc.and_(pc.and_(pc.equal(expected.column("score"), 0.5), several), wrong)
    halves = pc.fill_null(halves, False)
    told = stored.column("correct").filter(halves)
    if not len(told) or not pc.all(pc.fill_null(told, False)).as_py():
        return expected
    at = expected.schema.get_field_index("correct")
    return expected.set_column(at, "correct", pc.or_(expected.column("correct"), halves))


def _decided(evidence: Evidence, policy: Any) -> pa.Table:
    responses = evidence.table("responses", [*_KEY, "sample", "status"])
    responses = responses.filter(pc.is_in(responses.column("model_id"), value_set=evidence.real))
    columns = ["scorer", "scorer_version", "outcome", "score", "conflict"]
    labels = decide(
        evidence.table("queries", ["query_id", "task", "scorer"]),
        responses,
        evidence.table("verdicts", [*_KEY, "sample", *columns]),
        policy=policy,
    )
    return labels.sort_by([("model_id", "ascending"), ("query_id", "ascending")])


def _injected(evidence: Evidence, labels: pa.Table) -> Results:
    """Labels of injected models have no verdicts: `rules_again` makes them again."""
    own = pc.equal(labels.column("decided_by"), INJECTED)
    bad = labels.filter(pc.invert(pc.fill_null(own, False)))
    if bad.num_rows:
        examples = [f"{_name(row)} is decided by {row['decided_by']!r}" for row in _first(bad)]
        what = f"labels of injected models are not decided by {INJECTED!r}"
        yield contradiction("labels", bad.num_rows, labels.num_rows, what, examples)
    elif labels.num_rows and "pseudo_specialists" not in evidence.applied:
        yield believed("labels", f"{labels.num_rows:,} labels of injected models, drawn by a rule")


def _missing(stored: pa.Table, expected: pa.Table, *, complete: bool) -> list[Any]:
    """Pairs that only one of the two has.

    Args:
        complete: A build made the labels: every pair with a response has one.
    """
    if stored.select(_KEY).equals(expected.select(_KEY)):
        return []
    found = []
    for one, other, what in (
        (stored, expected, "labels are of pairs without a response"),
        (expected, stored, "pairs have a response and no label"),
    )[: 2 if complete else 1]:
        alone = one.select(_KEY).join(other.select(_KEY), list(_KEY), join_type="left anti")
        if alone.num_rows:
            examples = [_name(row) for row in _first(alone)]
            found.append(contradiction("labels", alone.num_rows, one.num_rows, what, examples))
    return found


def _different(stored: pa.Table, expected: pa.Table) -> tuple[int, list[str]]:
    differ = None
    for name in _DECIDED:
        a, b = stored.column(name), expected.column(name)
        if pa.types.is_floating(a.type):
            same = pc.less_equal(pc.abs(pc.subtract(a, b)), _CLOSE)
        else:
            same = pc.equal(a, b)
        same = pc.or_kleene(pc.fill_null(same, False), pc.and_(pc.is_null(a), pc.is_null(b)))
        differ = pc.invert(same) if differ is None else pc.or_(differ, pc.invert(same))
    bad = stored.filter(differ)
    if not bad.num_rows:
        return 0, []
    examples = []
    for row, right in zip(_first(bad), _first(expected.filter(differ)), strict=True):
        wrong = {name: row[name] for name in _DECIDED if row[name] != right[name]}
        said = ", ".join(f"{name} {value!r}" for name, value in wrong.items())
        good = ", ".join(f"{name} {right[name]!r}" for name in wrong)
        examples.append(f"{_name(row)} has {said}, expected {good}")
    return bad.num_rows, examples


def _first(table: pa.Table) -> list[dict[str, Any]]:
    return list(table.slice(0, 3).to_pylist())


def _name(row: dict[str, Any]) -> str:
    return f"{row['query_id']}|{row['model_id']}"
