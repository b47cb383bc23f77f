from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from routeyard.pipelines.audit.checks import CHECKS
from tests.audit.planted import audited, honest, kinds

Columns = dict[str, np.ndarray]


def rows(columns: Columns, arm: str | None = None, suite: str | None = None) -> np.ndarray:
    here = np.ones(len(columns["arm"]), bool)
    if arm:
        here &= columns["arm"] == arm
    if suite:
        here &= columns["suite"] == suite
    return np.flatnonzero(here)


def with_new(columns: Columns, name: str, default: object) -> np.ndarray:
    columns[name] = np.full(len(columns["arm"]), default, dtype=object)
    return columns[name]


def zero_cost(c: Columns) -> None:
    c["cost_usd"][rows(c, "birch", "chess")] = 0.0  # one arm, on one suite


def zero_tokens(c: Columns) -> None:
    c["completion_tokens"][rows(c, "birch")[:30]] = 0.0  # beside texts


def zero_latency(c: Columns) -> None:
    c["latency_s"][rows(c, "delta")[:40]] = 0.0


def impossible(c: Columns) -> None:
    c["completion_tokens"][5] = 12.5  # half a token
    c["latency_s"][6] = -1.0
    c["prompt_tokens"][7] = 1e17


def out_of_range(c: Columns) -> None:
    c["score"][3] = -0.033


def other_price(c: Columns) -> None:
    c["cost_usd"][rows(c, "copper")[::7]] *= 3  # rows of a dearer model


def per_token(c: Columns) -> None:
    c["cost_usd"][rows(c, "copper")] *= 1e6  # a price per token read as one per million


def capped(c: Columns) -> None:
    mine = rows(c, "ember")
    c["completion_tokens"][mine] = np.minimum(c["completion_tokens"][mine], 400)


def dear(c: Columns) -> None:
    c["cost_usd"][rows(c, "delta", "chess")] = 0.9


def cut(c: Columns) -> None:
    c["text"] = np.array([text[:300] for text in c["text"]], dtype=object)


def errors(c: Columns) -> None:
    mine = rows(c, "flint")[::6]
    with_new(c, "error", None)[mine] = "InvalidRequestError: too long"
    c["score"][mine] = 0.0


def error_texts(c: Columns) -> None:
    mine = rows(c, "flint")[::6]
    c["text"][mine] = "Error code: 502 - Bad Gateway"
    c["score"][mine] = 0.0


def outage(c: Columns) -> None:
    mine = rows(c, "anchor", "botany")[:25]  # nothing says so but that 25 in a row are wrong
    c["score"][mine] = 0.0


def ungraded(c: Columns) -> None:
    mine = rows(c, "delta")[::3]
    with_new(c, "status", "graded")[mine] = "ungraded"
    c["score"][mine] = 0.0


def empty(c: Columns) -> None:
    mine = rows(c, "copper")[:42]
    c["text"][mine] = ""
    c["score"][mine] = 0.0


def one_arm_fails(c: Columns) -> None:
    mine = rows(c, "anchor", "drama")
    c["score"][mine[8:]] = 0.0  # 13 % where siblings have 70


def swapped(c: Columns) -> None:
    here = c["suite"] == "botany"
    a, b = here & (c["arm"] == "anchor"), here & (c["arm"] == "flint")
    c["arm"][a], c["arm"][b] = "flint", "anchor"


def all_fail(c: Columns) -> None:
    mine = rows(c, suite="botany")
    keep = np.random.default_rng(1).random(len(mine)) < 0.12
    c["score"][mine] *= keep


def turned(c: Columns) -> None:
    mine = rows(c, suite="chess")
    c["score"][mine] = 1 - c["score"][mine]


def other_model_served(c: Columns) -> None:
    with_new(c, "served_model", None)[:] = c["arm"]
    c["served_model"][rows(c, "birch")[::5]] = "flint"  # 18 % are another model's


def copied(c: Columns) -> None:
    to, of = rows(c, "birch")[::5], rows(c, "flint")[::5]
    for name in ("text", "score", "completion_tokens", "cost_usd"):
        c[name][to] = c[name][of]


def repeated(c: Columns) -> None:
    c["question"][rows(c, "ember")[1]] = c["question"][rows(c, "ember")[0]]


def both_ways(c: Columns) -> None:
    c["text"][:] = np.where(c["arm"] == "ember", c["text"][rows(c, "delta")[0]], c["text"])
    c["text"][rows(c, "delta")] = c["text"][rows(c, "delta")[0]]


def reference_rejected(c: Columns) -> None:
    with_new(c, "reference", "17")
    mine = rows(c, "copper", "algebra")[:6]
    c["text"][mine] = " 17."
    c["score"][mine] = 0.0


def modes(c: Columns) -> None:
    # One question under three decoding modes, recorded as three questions.
    copies = [{k: v.copy() for k, v in c.items()} for _ in range(3)]
    for name, copy in zip(("greedy", "sampling", "no_cot"), copies, strict=True):
        copy["question"] = np.array([f"{q}@{name}" for q in copy["question"]], dtype=object)
    for name in c:
        c[name] = np.concatenate([copy[name] for copy in copies])


def shared_ids(c: Columns) -> None:
    # Without texts, ids that are no row numbers are ids of one question.
    del c["prompt"]
    number = np.array([int(q.rpartition("-")[2]) for q in c["question"]])
    named = np.isin(c["suite"], ["chess", "drama"])
    c["question"] = np.where(named, [f"django__issue-{q}" for q in number], c["question"])


def leak(c: Columns) -> None:
    number = np.array([int(q.rpartition("-")[2]) for q in c["question"]])
    c["split"] = np.where(number < 40, "train", "test").astype(object)
    twin = c["prompt"][(number == 3) & (c["suite"] == "chess")][0]
    c["prompt"][(number == 50) & (c["suite"] == "chess")] = "  " + twin.upper()


def missing(c: Columns) -> None:
    # The weakest arm has answers to what most arms answer, and lacks the others.
    share = {q: c["score"][c["question"] == q].mean() for q in set(c["question"])}
    mine = rows(c, "flint")
    lost = mine[[share[c["question"][r]] < 0.6 for r in mine]]
    c["score"][lost] = np.nan


def few(c: Columns) -> None:
    mine = rows(c, "flint")
    right = mine[c["score"][mine] == 1][:12]
    c["score"][np.setdiff1d(mine, right)] = np.nan  # 12 of 12, of 300


def reference_with_a_unit(c: Columns) -> None:
    with_new(c, "reference", "1048")
    c["text"][:] = "the answer is 3"
    mine = rows(c, "copper", "algebra")[:6]
    c["text"][mine] = r"so it is \boxed{{1,048 g}}. Done."
    c["score"][mine] = 0.0


def never_given(c: Columns) -> None:
    mine = rows(c, "delta")[::3]
    with_new(c, "status", "graded")[mine] = "unanswered"
    c["score"][mine] = 0.0


def stopped(c: Columns) -> None:
    mine = rows(c, "delta")[::3]
    with_new(c, "status", "completed")[mine] = "max_steps"
    c["score"][mine] = 0.0


def unmeasured(c: Columns) -> None:
    c["cost_usd"][rows(c, "ember")[:200]] = np.nan


def disjoint(c: Columns) -> None:
    first = np.isin(c["arm"], ["anchor", "birch"])
    c["score"][first & np.isin(c["suite"], ["chess", "drama", "economics"])] = np.nan
    c["score"][~first & np.isin(c["suite"], ["algebra", "botany"])] = np.nan


def mean_cost(c: Columns) -> None:
    c["cost_usd"][rows(c, "copper")] = 0.004  # its mean, in every row


def refused(c: Columns) -> None:
    mine = rows(c, "birch")[::6]
    c["text"][mine] = "I'm sorry, but I can't assist with that request."
    c["score"][mine] = 0.0


def own_error(c: Columns) -> None:
    mine = rows(c, "delta")[::5]
    with_new(c, "error", None)[mine] = "could not parse the patch"
    c["score"][mine] = 0.0


def cut_references(c: Columns) -> None:
    with_new(c, "reference", "17 kg")
    for suite, cut in (("chess", "The"), ("drama", "18;")):
        mine = np.flatnonzero(c["question"] == f"{suite}-case-7")
        c["reference"][mine], c["score"][mine] = cut, 0.0


def two_names(c: Columns) -> None:
    here = (c["arm"] == "anchor") & np.isin(c["suite"], ["chess", "drama"])
    c["arm"][here] = "host/anchor-20240307"


#: Kind → defects that it names, each with what the finding is about.
DEFECTS: list[tuple[str, Callable[[Columns], None], str]] = [
    ("zero_cost", zero_cost, "birch"),
    ("zero_tokens", zero_tokens, "birch"),
    ("zero_latency", zero_latency, "delta"),
    ("impossible_value", impossible, "completion_tokens"),
    ("score_out_of_range", out_of_range, "score"),
    ("price_mismatch", other_price, "copper"),
    ("price_mismatch", per_token, "copper"),
    ("odd_cost", dear, "delta on chess"),
    ("tokens_capped", capped, "ember"),
    ("texts_cut", cut, "flint"),
    ("infrastructure_errors", errors, "flint"),
    ("infrastructure_errors", error_texts, "flint"),
    ("failures_in_a_row", outage, "anchor"),
    ("ungraded_as_wrong", ungraded, "delta"),
    ("empty_answers", empty, "copper"),
    ("odd_cell", one_arm_fails, "anchor on drama"),
    ("arms_swapped", swapped, "anchor and flint on botany"),
    ("broken_grader", all_fail, "botany"),
    ("broken_grader", turned, "chess"),
    ("foreign_rows", other_model_served, "birch"),
    ("copied_rows", copied, "birch and flint"),
    ("repeated_rows", repeated, "rows"),
    ("graded_both_ways", both_ways, "grades"),
    ("reference_rejected", reference_rejected, "algebra"),
    ("reference_rejected", reference_with_a_unit, "algebra"),
    ("ungraded_as_wrong", never_given, "delta"),
    ("unmeasured", unmeasured, "ember"),
    ("disjoint_arms", disjoint, "arms"),
    ("modes_as_questions", modes, "questions"),
    ("ids_shared", shared_ids, "chess and drama"),
    ("leak", leak, "split"),
    ("missing_not_at_random", missing, "flint"),
    ("few_answers", few, "flint"),
    ("undecided_out_of_line", few, "flint"),
    ("mean_as_cost", mean_cost, "copper"),
    ("recurring_answer", refused, "birch"),
    ("recurring_error", own_error, "delta"),
    ("damaged_reference", cut_references, "references"),
    ("one_arm_two_names", two_names, "anchor and host/anchor-20240307"),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_an_honest_recording_is_clean(seed: int) -> None:
    found = audited(honest(seed))
    assert found.verdict == "clean", [(f.kind, f.about, f.says) for f in found.findings]


@pytest.mark.parametrize(("kind", "plant", "about"), DEFECTS)
def test_a_planted_defect_is_named(kind: str, plant: Callable[[Columns], None], about: str) -> None:
    columns = honest()
    plant(columns)
    found = audited(columns)
    assert about in kinds(found).get(kind, set()), kinds(found)
    one = next(f for f in found.findings if f.kind == kind and about in f.about)
    assert one.says
    assert one.key
    assert found.verdict == ("defective" if one.severity == "grave" else found.verdict)


def test_every_check_has_a_planted_defect() -> None:
    notes = {"same_opening", "solved_suite", "asked_twice", "stopped_at_limit"}
    # Planted in test_unnamed_columns.py, test_units_and_alignment.py and test_invented.py.
    notes |= {"never_right", "other_arm_named", "score_contradicted", "usage_contradicted",
              "tokens_unlike_texts"}  # fmt: skip
    notes |= {"filled_score", "made_of_others", "scores_at_random", "running_total",
              "one_suite_two_names",
              "timed_out", "score_scale", "tokens_exchanged", "scores_copied", "ids_misaligned",
              "other_unit", "verdict_by_length"}  # fmt: skip
    assert {check.kind for check in CHECKS} - notes <= {kind for kind, _, _ in DEFECTS}


@pytest.mark.parametrize("suite", ["algebra", "drama"])
def test_arms_that_differ_in_their_words_alone_are_seen_to_change_places(suite: str) -> None:
    # Equal abilities, lengths, tokens and costs: nothing but words tells the two arms apart.
    columns = honest()
    rng = np.random.default_rng(3)
    ways = ("Let us think step by step about", "To solve this we look closely at")
    for arm, way in zip(("copper", "delta"), ways, strict=True):
        mine = rows(columns, arm)
        columns["score"][mine] = (rng.random(len(mine)) < 0.6).astype(float)
        columns["text"][mine] = [f"{way} item {k % 60}: {k % 7}." for k in range(len(mine))]
        columns["completion_tokens"][mine] = 50.0
        columns["cost_usd"][mine] = 1e-4
    assert "arms_swapped" not in kinds(audited(columns))
    here = columns["suite"] == suite
    a, b = here & (columns["arm"] == "copper"), here & (columns["arm"] == "delta")
    columns["arm"][a], columns["arm"][b] = "delta", "copper"
    assert kinds(audited(columns))["arms_swapped"] == {f"copper and delta on {suite}"}


def _of_families(seed: int = 0) -> Columns:
    """Scores alone of twelve arms in four families, which miss the same questions."""
    rng = np.random.default_rng(seed)
    arm, suite, question = (
        x.ravel() for x in np.meshgrid(range(12), range(8), range(150), indexing="ij")
    )
    hard, ability = rng.normal(0, 1, (8, 150)), np.linspace(1.2, -1.0, 12)[rng.permutation(12)]
    of_family = rng.normal(0, 1.2, (4, 8, 150))
    at = ability[arm] - hard[suite, question] + of_family[arm % 4, suite, question]
    return {
        "arm": np.array([f"family{a % 4}-{a}" for a in arm], dtype=object),
        "suite": np.array([f"suite {s}" for s in suite], dtype=object),
        "question": np.array([f"q{q}" for q in question], dtype=object),
        "score": (rng.random(len(arm)) < 1 / (1 + np.exp(-at))).astype(float),
    }


@pytest.mark.parametrize("seed", [2, 3])
def test_scores_alone_tell_that_two_arms_changed_places(seed: int) -> None:
    columns = _of_families(seed)
    assert "arms_swapped" not in kinds(audited(columns))
    here = columns["suite"] == "suite 3"
    a, b = here & (columns["arm"] == "family1-5"), here & (columns["arm"] == "family2-6")
    columns["arm"][a], columns["arm"][b] = "family2-6", "family1-5"
    assert kinds(audited(columns))["arms_swapped"] == {"family1-5 and family2-6 on suite 3"}


def test_what_a_limit_stopped_is_noted_with_both_rankings() -> None:
    columns = honest()
    stopped(columns)
    one = next(f for f in audited(columns).findings if f.kind == "stopped_at_limit")
    assert (one.about, one.severity) == ("delta", "note")
    assert "accuracy" in one.effect


def test_many_findings_of_one_cause_are_one_finding_with_its_parts() -> None:
    columns = honest()
    cut(columns)  # the texts of all six arms
    one = next(f for f in audited(columns).findings if f.kind == "texts_cut")
    assert {part["about"] for part in one.parts} == set(columns["arm"])
    assert one.count == sum(part["count"] for part in one.parts)
    assert "and 3 more" in one.says
    assert len({row["arm"] for row in one.rows}) == 6


def test_one_cause_of_many_arms_is_mended_for_all_of_them() -> None:
    columns = honest()
    mine = columns["arm"] != "flint"
    with_new(columns, "error", None)[mine] = "InvalidRequestError"
    columns["score"][mine] = 0.0
    one = next(f for f in audited(columns).findings if f.kind == "infrastructure_errors")
    assert "without any scored answer: anchor, birch, copper and 2 more" in one.effect


def test_a_price_that_is_stated_as_0_stays_free() -> None:
    columns = honest()
    columns["cost_usd"][rows(columns, "birch")] = 0.0
    assert "birch" in kinds(audited(columns))["zero_cost"]
    assert audited(columns, free=["birch"]).verdict == "clean"


def test_findings_come_by_what_they_change() -> None:
    columns = honest()
    columns["score"][3] = -0.033  # changes no place
    columns["score"][rows(columns, "anchor", "drama")[8:]] = 0.0  # costs the best arm its place
    found = audited(columns)
    assert [one.kind for one in found.findings[:1]] == ["odd_cell"]
    assert "place" in found.findings[0].effect
    assert found.findings[0].swaps >= 1


def test_row_numbers_that_suites_share_are_no_finding() -> None:
    columns = honest()
    del columns["prompt"]
    columns["question"] = np.array(
        [f"test-{q.rpartition('-')[2]}" for q in columns["question"]], dtype=object
    )
    assert audited(columns).verdict == "clean"


def test_the_order_of_rows_and_names_changes_no_finding() -> None:
    columns = honest()
    one_arm_fails(columns)
    zero_cost(columns)
    order = np.random.default_rng(0).permutation(len(columns["arm"]))
    shuffled = {name: values[order] for name, values in columns.items()}
    assert kinds(audited(columns)) == kinds(audited(shuffled))
