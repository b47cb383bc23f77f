"""Every check of a recording names the defect that it is for, and finds none in honest ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import pytest

from routeyard.pipelines.audit.checks import CHECKS
from tests.audit.planted import ARMS, QUESTIONS, SUITES, Columns, audited, honest, kinds, large, of
from tests.support.sampled import some


def put(c: Columns, rows: Sequence[int] | np.ndarray, **values: object) -> None:
    """Values of columns in some rows; a column that is not there is null in the others."""
    for name, value in values.items():
        c.setdefault(name, np.full(len(c["arm"]), None, dtype=object))[rows] = value


def scale(c: Columns, name: str, factor: float, rows: np.ndarray) -> None:
    c[name][rows] *= factor


def exchange(c: Columns, one: str, other: str, suite: str) -> None:
    here = c["suite"] == suite
    a, b = here & (c["arm"] == one), here & (c["arm"] == other)
    c["arm"][a], c["arm"][b] = other, one


def numbers(c: Columns) -> np.ndarray:
    return np.array([int(q.rpartition("-")[2]) for q in c["question"]])


def impossible(c: Columns) -> None:
    c["completion_tokens"][5] = 12.5  # half a token
    c["latency_s"][6] = -1.0
    c["prompt_tokens"][7] = 1e17


def capped(c: Columns) -> None:
    mine = of(c, "ember")
    c["completion_tokens"][mine] = np.minimum(c["completion_tokens"][mine], 400)


def cut(c: Columns) -> None:
    c["text"] = np.array([text[:300] for text in c["text"]], dtype=object)


def all_fail(c: Columns) -> None:
    mine = of(c, suite="botany")
    c["score"][mine] *= np.random.default_rng(1).random(len(mine)) < 0.12


def turned(c: Columns) -> None:
    mine = of(c, suite="chess")
    c["score"][mine] = 1 - c["score"][mine]


def other_model_served(c: Columns) -> None:
    put(c, slice(None), served_model=c["arm"])
    c["served_model"][of(c, "birch")[::5]] = "flint"  # 18 % are another model's


def copied(c: Columns) -> None:
    for name in ("text", "score", "completion_tokens", "cost_usd"):
        c[name][of(c, "birch")[::5]] = c[name][of(c, "flint")[::5]]


def repeated(c: Columns) -> None:
    c["question"][of(c, "ember")[1]] = c["question"][of(c, "ember")[0]]


def both_ways(c: Columns) -> None:
    c["text"][np.isin(c["arm"], ["delta", "ember"])] = c["text"][of(c, "delta")[0]]


def reference_rejected(c: Columns) -> None:
    put(c, slice(None), reference="17")
    put(c, of(c, "copper", "algebra")[:6], text=" 17.", score=0.0)


def reference_with_a_unit(c: Columns) -> None:
    put(c, slice(None), reference="1048", text="the answer is 3")
    said = r"so it is \boxed{{1,048 g}}. Done."
    put(c, of(c, "copper", "algebra")[:6], text=said, score=0.0)


def cut_references(c: Columns) -> None:
    put(c, slice(None), reference="17 kg")
    for suite, rest in (("chess", "The"), ("drama", "18;")):
        put(c, np.flatnonzero(c["question"] == f"{suite}-case-7"), reference=rest, score=0.0)


def modes(c: Columns) -> None:
    # One question under three decoding modes, recorded as three questions.
    names, n = ("greedy", "sampling", "no_cot"), len(c["arm"])
    for name in c:
        c[name] = np.concatenate([c[name]] * 3)
    c["question"] = np.array([f"{q}@{names[k // n]}" for k, q in enumerate(c["question"])], object)


def shared_ids(c: Columns) -> None:
    # Without texts, ids that are no row numbers are ids of one question.
    del c["prompt"]
    named = np.isin(c["suite"], ["chess", "drama"])
    c["question"] = np.where(named, [f"django__issue-{q}" for q in numbers(c)], c["question"])


def leak(c: Columns) -> None:
    number = numbers(c)
    c["split"] = np.where(number < 40, "train", "test").astype(object)
    twin = c["prompt"][(number == 3) & (c["suite"] == "chess")][0]
    c["prompt"][(number == 50) & (c["suite"] == "chess")] = "  " + twin.upper()


def missing(c: Columns) -> None:
    # The weakest arm has answers to what most arms answer, and lacks the others.
    share = {q: c["score"][c["question"] == q].mean() for q in set(c["question"])}
    put(c, [row for row in of(c, "flint") if share[c["question"][row]] < 0.6], score=np.nan)


def few(c: Columns) -> None:
    mine = of(c, "flint")
    put(c, np.setdiff1d(mine, mine[c["score"][mine] == 1][:12]), score=np.nan)  # 12 of 12, of 300


def disjoint(c: Columns) -> None:
    first = np.isin(c["arm"], ["anchor", "birch"])
    c["score"][first != np.isin(c["suite"], ["algebra", "botany"])] = np.nan


def two_names(c: Columns) -> None:
    here = (c["arm"] == "anchor") & np.isin(c["suite"], ["chess", "drama"])
    c["arm"][here] = "host/anchor-20240307"


def running_total(c: Columns) -> None:
    rows = of(c, "copper")
    c["cost_usd"][rows] = np.cumsum(c["cost_usd"][rows])


def exchanged_counts(c: Columns) -> None:
    per_question = np.random.default_rng(0).integers(40, 900, QUESTIONS * len(SUITES))
    c["prompt_tokens"] = np.tile(per_question, len(ARMS)).astype(float)
    c["cost_usd"] = (c["prompt_tokens"] + c["completion_tokens"]) * 1e-6
    rows, prompt = of(c, "birch"), c["prompt_tokens"].copy()
    c["prompt_tokens"][rows] = c["completion_tokens"][rows]
    c["completion_tokens"][rows] = prompt[rows]


def long_is_right(c: Columns) -> None:
    size = np.array([len(one) for one in c["text"]])
    for arm in ARMS:
        rows = of(c, arm, "drama")
        c["score"][rows] = (size[rows] > np.median(size[rows])).astype(float)


def timed_out(c: Columns) -> None:
    rows = np.random.default_rng(4).choice(of(c, "birch"), 20, replace=False)
    put(c, rows, latency_s=30.0 + np.arange(20) / 100, score=0.0)


def made_of(c: Columns, how: Callable[[np.ndarray], np.ndarray]) -> None:
    others = np.stack([c["score"][of(c, arm)] for arm in ARMS if arm != "ember"])
    c["score"][of(c, "ember")] = how(others)


def mean_of_a_cell(c: Columns) -> None:
    rows = of(c, "birch", "chess")
    c["score"][rows] = c["score"][rows].mean()


def at_random(c: Columns, suite: str | None = None) -> None:
    for k, arm in enumerate(ARMS):
        rows = of(c, arm, suite)
        c["score"][rows] = np.random.default_rng(k).permutation(c["score"][rows])


def rolled(c: Columns, rows: np.ndarray, by: int) -> None:
    c["score"][rows] = np.roll(c["score"][rows], by)


def in_another_order(c: Columns) -> None:
    """Half of the arms have the rows of each suite in one other order."""
    order = np.random.default_rng(1).permutation(300)
    for rows in (of(c, arm, suite) for arm in ARMS[3:] for suite in SUITES):
        c["score"][rows] = c["score"][rows][order]


def nearly_a_copy(c: Columns) -> None:
    rows, rng = of(c, "birch"), np.random.default_rng(2)
    c["score"][rows] = c["score"][of(c, "ember")]
    changed = rng.choice(rows, len(rows) // 33, replace=False)
    c["score"][changed] = 1 - c["score"][changed]


SORRY = "I'm sorry, but I can't assist with that request."
#: Kind, whom the finding is about, and what is done to the columns; those of a group at once.
Defect = tuple[str, str, Callable[[Columns], None]]
DEFECTS: list[list[Defect]] = [
    [
        # one arm, on one suite
        ("zero_cost", "birch", lambda c: put(c, of(c, "birch", "chess"), cost_usd=0.0)),
        # beside texts
        ("zero_tokens", "birch", lambda c: put(c, of(c, "birch")[:30], completion_tokens=0.0)),
        ("zero_latency", "delta", lambda c: put(c, of(c, "delta")[:40], latency_s=0.0)),
        ("impossible_value", "completion_tokens", impossible),
        ("score_out_of_range", "score", lambda c: put(c, [3], score=-0.033)),
    ],
    [
        # rows of a dearer model
        ("price_mismatch", "copper", lambda c: scale(c, "cost_usd", 3, of(c, "copper")[::7])),
        ("odd_cost", "delta on chess", lambda c: put(c, of(c, "delta", "chess"), cost_usd=0.9)),
        ("tokens_capped", "ember", capped),
        ("texts_cut", "flint", cut),
    ],
    [
        # a price per token read as one per million
        ("price_mismatch", "copper", lambda c: scale(c, "cost_usd", 1e6, of(c, "copper"))),
        (
            "infrastructure_errors",
            "flint",
            lambda c: put(c, of(c, "flint")[::6], error="InvalidRequestError: long", score=0.0),
        ),
        ("unmeasured", "ember", lambda c: put(c, of(c, "ember")[:200], cost_usd=np.nan)),
        (
            "ungraded_as_wrong",
            "delta",
            lambda c: put(c, of(c, "delta")[::3], status="ungraded", score=0.0),
        ),
    ],
    [
        (
            "infrastructure_errors",
            "flint",
            lambda c: put(c, of(c, "flint")[::6], text="Error code: 502 - Bad Gateway", score=0.0),
        ),
        (
            "ungraded_as_wrong",
            "delta",
            lambda c: put(c, of(c, "delta")[::3], status="unanswered", score=0.0),
        ),
        # its mean, in every row
        ("mean_as_cost", "copper", lambda c: put(c, of(c, "copper"), cost_usd=0.004)),
        ("recurring_answer", "birch", lambda c: put(c, of(c, "birch")[::6], text=SORRY, score=0.0)),
        ("other_unit", "ember", lambda c: scale(c, "latency_s", 1000, of(c, "ember"))),
    ],
    [
        # nothing says so but that 25 in a row are wrong
        ("failures_in_a_row", "anchor", lambda c: put(c, of(c, "anchor", "botany")[:25], score=0)),
        (
            "recurring_error",
            "delta",
            lambda c: put(c, of(c, "delta")[::5], error="could not parse the patch", score=0.0),
        ),
        ("damaged_reference", "references", cut_references),
    ],
    [
        # 13 % where siblings have 70
        ("odd_cell", "anchor on drama", lambda c: put(c, of(c, "anchor", "drama")[8:], score=0.0)),
        ("reference_rejected", "algebra", reference_rejected),
        ("repeated_rows", "rows", repeated),
    ],
    [
        (
            "arms_swapped",
            "anchor and flint on botany",
            lambda c: exchange(c, "anchor", "flint", "botany"),
        )
    ],
    [("broken_grader", "botany", all_fail), ("broken_grader", "chess", turned)],
    [("timed_out", "birch", timed_out), ("graded_both_ways", "grades", both_ways)],
    [
        ("foreign_rows", "birch", other_model_served),
        ("verdict_by_length", "drama", long_is_right),
        ("other_unit", "delta", lambda c: scale(c, "cost_usd", 1000, of(c, "delta"))),
    ],
    [
        ("copied_rows", "birch and flint", copied),
        ("empty_answers", "copper", lambda c: put(c, of(c, "copper")[:42], text="", score=0.0)),
        ("other_unit", "anchor", lambda c: scale(c, "cost_usd", 0.001, of(c, "anchor"))),
    ],
    [
        ("modes_as_questions", "questions", modes),
        # an old price and a new one
        ("price_mismatch", "delta", lambda c: scale(c, "cost_usd", 2.5, of(c, "delta")[:140])),
    ],
    [
        ("ids_shared", "chess and drama", shared_ids),
        ("score_scale", "botany", lambda c: scale(c, "score", 0.01, of(c, suite="botany"))),
        ("running_total", "copper", running_total),
    ],
    [
        ("leak", "split", leak),
        ("score_scale", "flint", lambda c: scale(c, "score", 0.1, of(c, "flint"))),
    ],
    [("missing_not_at_random", "flint", missing), ("tokens_exchanged", "birch", exchanged_counts)],
    [
        ("few_answers", "flint", few),
        ("undecided_out_of_line", "flint", lambda c: None),
    ],
    [
        ("disjoint_arms", "arms", disjoint),
    ],
    [
        ("one_arm_two_names", "anchor and host/anchor-20240307", two_names),
        ("reference_rejected", "algebra", reference_with_a_unit),
    ],
]


@pytest.mark.parametrize("seed", some(range(5), 4))
@pytest.mark.parametrize("make", [honest, large])
def test_an_honest_recording_is_clean(make: Callable[[int], Columns], seed: int) -> None:
    found = audited(make(seed))
    assert found.verdict == "clean", [(f.kind, f.about, f.says) for f in found.findings]


@pytest.mark.parametrize("group", DEFECTS, ids=lambda group: "-".join(kind for kind, *_ in group))
def test_planted_defects_are_named(group: list[Defect]) -> None:
    columns = honest()
    for *_, plant in group:
        plant(columns)
    found = audited(columns)
    severities = set()
    for kind, about, _ in group:
        assert about in kinds(found).get(kind, set()), (kind, kinds(found))
        one = next(f for f in found.findings if f.kind == kind and about in f.about)
        assert one.says
        assert one.key
        severities.add(one.severity)
    assert found.verdict == ("defective" if "grave" in severities else found.verdict)


#: The same in recordings of scores alone, whose arms share hard questions; with what is said.
OF_SCORES: list[tuple[str, str, str, Callable[[Columns], None]]] = [
    (
        "made_of_others",
        "ember",
        "is the best of the other arms'",
        lambda c: made_of(c, lambda others: others.max(axis=0)),
    ),
    (
        "made_of_others",
        "ember",
        "is the majority of the other arms'",
        lambda c: made_of(c, lambda others: (others.mean(axis=0) > 0.5) * 1.0),
    ),
    (
        "made_of_others",
        "ember",
        "is the worst of the other arms'",
        lambda c: made_of(c, lambda others: others.min(axis=0)),
    ),
    ("filled_score", "birch on chess", "of all 300 answers", mean_of_a_cell),
    (
        "filled_score",
        "birch on chess",
        "30 of 300 scores are 0.5",
        lambda c: put(
            c,
            np.random.default_rng(3).choice(of(c, "birch", "chess"), 30, replace=False),
            score=0.5,
        ),
    ),
    ("scores_at_random", "drama", "on the other suites", lambda c: at_random(c, "drama")),
    ("scores_at_random", "algebra", "labels at random", at_random),
    (
        "one_suite_two_names",
        "'Chess ', 'chess'",
        "spellings",
        lambda c: put(c, np.concatenate([of(c, a, "chess") for a in ARMS[:3]]), suite="Chess "),
    ),
    (
        "ids_misaligned",
        "copper",
        "they are one row before the question",
        lambda c: rolled(c, of(c, "copper"), 1),
    ),
    (
        "ids_misaligned",
        "copper on chess",
        "they are 2 rows behind the question",
        lambda c: rolled(c, of(c, "copper", "chess"), -2),
    ),
    (
        "ids_misaligned",
        "delta",
        "right and wrong are exchanged",
        lambda c: put(c, of(c, "delta"), score=1 - c["score"][of(c, "delta")]),
    ),
    ("ids_misaligned", "delta", "rows that are in another order", in_another_order),
    ("scores_copied", "birch and ember", "of one are stored under the other", nearly_a_copy),
]


@pytest.mark.parametrize(("kind", "about", "says", "plant"), OF_SCORES)
def test_scores_that_no_grader_gave_or_gave_to_others_are_named(
    kind: str, about: str, says: str, plant: Callable[[Columns], None]
) -> None:
    columns = large()
    plant(columns)
    found = audited(columns)
    told = kinds(found)
    assert any(about in one for one in told.get(kind, set())), told
    assert says in " ".join(one.says for one in found.findings if one.kind == kind)
    if kind in ("ids_misaligned", "scores_copied"):
        assert len(told) == 1
    if plant is at_random:
        assert told[kind] == {*SUITES}
    if plant is in_another_order:
        assert found.verdict == "defective"


@pytest.mark.parametrize(("every", "named"), [(1_000, True), (50, True), (1, False)])
def test_rows_of_one_question_that_state_several_references_are_named(
    every: int, named: bool
) -> None:
    columns = honest()
    put(columns, slice(None), reference="12 kg")
    put(columns, of(columns, "birch"), reference="12")  # the same, but for its unit
    # Trap: where options are shuffled for each arm, nearly all differ.
    put(columns, of(columns, "delta")[::every], reference="13")
    says = [one.says for one in audited(columns).findings if one.kind == "damaged_reference"]
    assert any("questions have several references" in text for text in says) == named


def test_every_check_has_a_planted_defect() -> None:
    notes = {"same_opening", "solved_suite", "asked_twice", "stopped_at_limit"}
    # Planted in test_unnamed_columns.py.
    notes |= {"never_right", "other_arm_named", "score_contradicted", "usage_contradicted",
              "tokens_unlike_texts"}  # fmt: skip
    planted = {kind for kind, *_ in chain(OF_SCORES, *DEFECTS)}
    assert {check.kind for check in CHECKS} - notes <= planted


def test_arms_that_differ_in_their_words_alone_are_seen_to_change_places() -> None:
    # Equal abilities, lengths, tokens and costs: nothing but words tells the two arms apart.
    columns = honest()
    rng = np.random.default_rng(3)
    ways = ("Let us think step by step about", "To solve this we look closely at")
    for arm, way in zip(("copper", "delta"), ways, strict=True):
        mine = of(columns, arm)
        put(columns, mine, score=(rng.random(len(mine)) < 0.6).astype(float),
            text=[f"{way} item {k % 60}: {k % 7}." for k in range(len(mine))],
            completion_tokens=50.0, cost_usd=1e-4)  # fmt: skip
    assert "arms_swapped" not in kinds(audited(columns))
    exchange(columns, "copper", "delta", "drama")
    assert kinds(audited(columns))["arms_swapped"] == {"copper and delta on drama"}


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


@pytest.mark.parametrize("seed", some([2, 3], 2))
def test_scores_alone_tell_that_two_arms_changed_places(seed: int) -> None:
    columns = _of_families(seed)
    assert "arms_swapped" not in kinds(audited(columns))
    exchange(columns, "family1-5", "family2-6", "suite 3")
    assert kinds(audited(columns))["arms_swapped"] == {"family1-5 and family2-6 on suite 3"}


def test_notes_and_many_findings_of_one_cause_which_are_one_finding_with_its_parts() -> None:
    columns = honest()
    put(columns, of(columns, "delta")[::3], status="max_steps", score=0.0)
    here = columns["suite"] == "chess"
    put(columns, here, prompt=["Q: 2 + 2? A: 4\n" * 20 + text for text in columns["prompt"][here]])
    cut(columns)  # the texts of all six arms
    by_kind = {one.kind: one for one in audited(columns).findings}
    stopped, opening = by_kind["stopped_at_limit"], by_kind["same_opening"]
    assert (stopped.about, stopped.severity) == ("delta", "note")
    assert "accuracy" in stopped.effect  # both rankings
    assert (opening.about, opening.severity) == ("chess", "note")
    assert "open with the same 3" in opening.says
    one = by_kind["texts_cut"]
    assert {part["about"] for part in one.parts} == set(columns["arm"])
    assert one.count == sum(part["count"] for part in one.parts)
    assert "and 3 more" in one.says
    assert len({row["arm"] for row in one.rows}) == 6


def test_one_cause_of_many_arms_is_mended_for_all_of_them() -> None:
    columns = honest()
    put(columns, columns["arm"] != "flint", error="InvalidRequestError", score=0.0)
    one = next(f for f in audited(columns).findings if f.kind == "infrastructure_errors")
    assert "without any scored answer: anchor, birch, copper and 2 more" in one.effect


def test_a_price_that_is_stated_as_0_stays_free() -> None:
    columns = honest()
    columns["cost_usd"][of(columns, "birch")] = 0.0  # else `zero_cost`, as above
    assert audited(columns, free=["birch"]).verdict == "clean"


def test_findings_come_by_what_they_change_whatever_the_order_of_rows() -> None:
    columns = honest()
    put(columns, [3], score=-0.033)  # changes no place
    put(columns, of(columns, "anchor", "drama")[8:], score=0.0)  # costs the best arm its place
    put(columns, of(columns, "birch", "chess"), cost_usd=0.0)
    found = audited(columns)
    assert found.findings[0].kind == "odd_cell"
    assert "place" in found.findings[0].effect
    assert found.findings[0].swaps >= 1
    order = np.random.default_rng(0).permutation(len(columns["arm"]))
    shuffled = {name: values[order] for name, values in columns.items()}
    assert kinds(found) == kinds(audited(shuffled))


def test_row_numbers_that_suites_share_are_no_finding() -> None:
    columns = honest()
    del columns["prompt"]
    columns["question"] = np.array([f"test-{q}" for q in numbers(columns)], dtype=object)
    assert audited(columns).verdict == "clean"
