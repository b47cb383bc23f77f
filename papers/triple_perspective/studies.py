"""Studies of the triple-perspective framework."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.papers.reproduction import Stand
from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.arrays import Bools, Floats, Ints
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.fit import Fit, fit
from routeyard.pipelines.evaluate.metrics.bootstrap import interval
from routeyard.pipelines.evaluate.results import default_pair
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.signals import LocalModel, pooled
from routeyard.pipelines.evaluate.studies.items import (
    Columns,
    cells_of,
    lines_table,
    measure_of,
)
from routeyard.pipelines.evaluate.studies.study import (
    SLOW_RESAMPLES,
    Maker,
    StudyCell,
    StudyContext,
    made,
    who,
)
from routeyard.schemas.errors import BadInput

# When a small agent should hand over: what can be seen of a trajectory after each of its steps.

_WORD = re.compile(r"\w{3,}")
#: Seen after a step: its number, tokens of prompt and reply (log), share of the question's words
#: in what was found so far, new passages' characters (log), whether the search was a repeat.
FEATURES = 6


def relays(steps: pa.Table, small: str, large: str) -> dict[int, str]:
    """Steps that the small model takes before the large one → member of the pool that does so."""
    result: dict[int, str] = {}
    acted: dict[str, dict[tuple[str, int], list[str]]] = {}
    for row in steps.select(["query_id", "model_id", "sample", "step", "acted_by"]).to_pylist():
        of = acted.setdefault(row["model_id"], {}).setdefault((row["query_id"], row["sample"]), [])
        of.append(row["acted_by"])
    for member, trajectories in sorted(acted.items()):
        over = [actors for actors in trajectories.values() if large in actors]
        firsts = {actors.index(large) for actors in over}
        if member in (small, large) or len(firsts) != 1 or firsts == {0}:
            continue
        if all(set(actors[: actors.index(large)]) == {small} for actors in over):
            result[min(firsts)] = member
    return result


def states(
    steps: pa.Table, small: str, ids: Sequence[str], prompts: Sequence[str]
) -> dict[int, Floats]:
    """Steps taken → (n, FEATURES) of the small model's first samples; NaN where it had ended."""
    of: dict[str, list[Mapping[str, Any]]] = {}
    for row in steps.sort_by([("query_id", "ascending"), ("step", "ascending")]).to_pylist():
        if row["model_id"] == small and row["sample"] == 0:
            of.setdefault(row["query_id"], []).append(row)
    longest = max((len(rows) for rows in of.values()), default=0)
    made = {k: np.full((len(ids), FEATURES), np.nan) for k in range(1, longest)}
    for at, (query, prompt) in enumerate(zip(ids, prompts, strict=True)):
        asked, seen, queries = set(_words(prompt)), set[str](), set[str]()
        for k, row in enumerate(of.get(query, [])[:-1], 1):
            text = " ".join(row["found"])
            seen |= set(_words(text))
            again = bool(queries & set(row["queries"]))
            queries |= set(row["queries"])
            made[k][at] = (
                k,
                math.log1p(row["prompt_tokens"] or 0),
                math.log1p(row["completion_tokens"] or 0),
                len(asked & seen) / max(len(asked), 1),
                math.log1p(len(text)),
                again,
            )
    return made


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def handed(
    made: Mapping[int, Floats], train: Ints, right: Floats, members: Mapping[int, int], small: int
) -> Ints:
    """Which member each question is given to, for a row of thresholds, int64 [thresholds, n].

    A logistic regression on the train questions' states says how likely the small model still is
    to be right; the large one takes over at the first step at which that is below the threshold.

    Args:
        right: (n,) whether the small model's own trajectory was right.
        members: Steps taken → column of the relay that hands over there.
    """
    chances = _chances(made, train, right, members)
    every = np.concatenate([c[~np.isnan(c)] for c in chances.values()] or [np.zeros(0)])
    thresholds = np.unique(np.concatenate([[0.0], np.quantile(every, np.linspace(0, 1, 21)), [1.1]])
                           if len(every) else np.array([0.0]))  # fmt: skip
    n = len(right)
    chosen = np.full((len(thresholds), n), small, dtype=np.int64)
    for row, threshold in enumerate(thresholds):
        open_ = np.ones(n, bool)
        for k in sorted(members):
            with np.errstate(invalid="ignore"):
                hands = open_ & (chances[k] < threshold)
            chosen[row, hands] = members[k]
            open_ &= ~hands
    return chosen


def _chances(
    made: Mapping[int, Floats], train: Ints, right: Floats, members: Mapping[int, int]
) -> dict[int, Floats]:
    """Steps taken → (n,) chance that the small model will be right; NaN where it had ended."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    chances = {k: np.full(len(right), np.nan) for k in members}
    seen = [(k, at) for k in members if k in made for at in train
            if not np.isnan(made[k][at]).any() and not np.isnan(right[at])]  # fmt: skip
    if not seen:
        return chances
    x = np.stack([made[k][at] for k, at in seen])
    y = np.array([right[at] > 0.5 for _, at in seen])
    fitted = None
    if y.any() and not y.all():
        fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    for k in chances.keys() & made.keys():
        rows = np.flatnonzero(~np.isnan(made[k]).any(axis=1))
        if len(rows):
            known = y.mean() if fitted is None else fitted.predict_proba(made[k][rows])[:, 1]
            chances[k][rows] = known
    return chances


# Figure 4 of the triple-perspective paper: cost against accuracy of agents that are routed.

#: Routers of whole questions that are drawn where the release can feed them.
ROUTERS = ("probe-dirichlet", "semantic-entropy", "margin", "knn", "ridge", "task-map")
RANDOM, FIXED, LEARNED = "at random", "step: fixed", "step: learned"
ORACLE, STEP_ORACLE = "question: oracle", "step: oracle"
SHARES = (0.25, 0.5, 0.75)
#: Thresholds of a router's scores that are drawn.
POINTS = 41
DEAR = "its cost, of the large one's"

Choices = Mapping[str, Ints]


def _pair(context: StudyContext) -> tuple[str, str]:
    pair = context.pair or default_pair(context.core)
    if pair is None:
        raise BadInput(
            "which model is small and which is large?",
            where=context.release,
            next_step="name two models: --pair small,large",
        )
    return pair


def choices_of(context: StudyContext) -> tuple[Core, Choices]:
    """The test questions, and per way of routing what it chooses, int64 [points, questions]."""
    small, large = _pair(context)
    core, scheme = context.core, context.default_scheme()
    measure = measure_of(context)
    known = np.isfinite(core.decided).all(axis=1) & np.isfinite(core.costs[measure]).all(axis=1)
    known = np.asarray(known, dtype=np.bool_)
    column = {name: k for k, name in enumerate(core.model_ids)}
    low, high = column[small], column[large]
    test = np.array([k for k in core.rows(scheme, "test").tolist() if known[k]], dtype=np.int64)
    train = core.rows(scheme, "train")
    n = len(test)
    choices: dict[str, Ints] = {}
    steps = context.tables["steps"]
    members = {k: column[name] for k, name in relays(steps, small, large).items() if name in column}
    for name in context.able(ROUTERS):
        two = core.with_models((small, large))
        learner = partial(context.make(name), context.seed)
        scores = Fit(learner, two.training(scheme)).scores(two.take(test).queries())
        wanted = scores[:, 1] - scores[:, 0]
        # Equal scores go together: which of them comes first would be a matter of their order.
        levels = np.append(np.unique(wanted), np.inf)
        drawn = np.unique(np.linspace(0, len(levels) - 1, POINTS).round().astype(np.int64))
        choices[f"question: {name}"] = np.stack(
            [np.where(wanted >= least, high, low) for least in levels[drawn]]
        )
    if members:
        ends = [low, *(members[k] for k in sorted(members)), high]
        choices[FIXED] = np.stack([np.full(n, end) for end in ends])
        made = states(steps, small, core.query_ids, core.prompts)
        given_to = handed(made, train, core.decided[:, low], members, low)
        choices[LEARNED] = np.vstack([given_to[:, test], np.full((1, n), high)])
    choices[RANDOM] = np.stack([np.full(n, low), np.full(n, high)])
    part = core.take(test)
    choices[ORACLE] = _oracle(part, [low, high], measure)
    if members:
        choices[STEP_ORACLE] = _oracle(part, [low, high, *members.values()], measure)
    return part, choices


def _oracle(core: Core, among: Sequence[int], measure: str) -> Ints:
    """The cheapest right member for each question, else the cheapest; one point."""
    cost = core.costs[measure][:, list(among)]
    right = core.decided[:, list(among)] > 0.5
    best = np.where(right.any(axis=1, keepdims=True), np.where(right, cost, np.inf), cost)
    chosen: Ints = np.asarray(among, dtype=np.int64)[best.argmin(axis=1)]
    return chosen[None, :]


def _points(core: Core, chosen: Ints, measure: str, rows: Ints) -> tuple[Floats, Floats]:
    """(mean cost, accuracy) of each point on these questions; costs ascend, accuracy never falls.

    A dearer point that is worse is not used, and between two points one may mix them.
    """
    cost = np.take_along_axis(core.costs[measure][rows], chosen[:, rows].T, axis=1).mean(axis=0)
    right = np.take_along_axis(core.decided[rows], chosen[:, rows].T, axis=1).mean(axis=0)
    order = np.lexsort((right, cost))
    return cost[order], np.maximum.accumulate(right[order])


def cells(context: StudyContext) -> Sequence[StudyCell]:
    core, result = choices_of(context)
    measure, n = measure_of(context), core.n_queries
    small, large = (core.model_ids.index(name) for name in _pair(context))
    generator = np.random.default_rng(context.seed)
    draws = [generator.integers(0, n, n) for _ in range(min(SLOW_RESAMPLES, context.resamples))]
    cells = []
    for name, chosen in result.items():
        oracle = name in (ORACLE, STEP_ORACLE)

        def at(rows: Ints, chosen: Ints = chosen) -> Floats:
            ends = core.costs[measure][rows][:, [small, large]].mean(axis=0)
            cost, right = _points(core, chosen, measure, rows)
            wanted = ends[0] + np.array(SHARES) * (ends[1] - ends[0])
            best = [right.max(), cost[right.argmax()] / ends[1]]
            return np.append(np.interp(wanted, cost, right), best)

        whole = at(np.arange(n))
        spread = np.stack([at(rows) for rows in draws])
        for k, heading in enumerate([*(f"at {s:.0%} of the extra cost" for s in SHARES), "best"]):
            if oracle and heading != "best":
                continue
            low, high = interval(spread[:, k])
            cells.append(StudyCell(name, heading, float(whole[k]), "percent", low, high))
        low, high = interval(spread[:, -1])
        cells.append(StudyCell(name, DEAR, float(whole[-1]), "percent", low, high))
    return cells


def curves(context: StudyContext) -> pa.Table:
    core, result = choices_of(context)
    measure, rows = measure_of(context), np.arange(core.n_queries)
    return lines_table((name, *_points(core, c, measure, rows)) for name, c in result.items())


# Hidden states where a release has none: an encoder's layers in the place of the small model's.

#: Reads the questions in the place of the small model.
READER = encoders.ALIASES["minilm"]
#: Tokens of a question that it reads.
LONGEST = 64


def with_layers(stand: Stand) -> Stand:
    """The release with hidden states, where it is not the paper's data and has none.

    A question's states are the mean-pooled layers of a sentence encoder: they have the paper's
    form, and say what the question is about rather than what the small model makes of it.
    """
    context = stand.context
    if not stand.unlike or context.core.hidden is not None or context.pair is None:
        return stand
    try:
        loaded = encoders.loaded(READER)
    except SourceError:
        return stand
    reader = LocalModel(READER, loaded[0].auto_model, loaded.tokenizer, "cpu", LONGEST)
    prompts = context.tables["queries"].select(["query_id", "prompt"]).to_pylist()
    known = {row["query_id"]: row["prompt"] for row in prompts}
    texts = [known[query] for query in context.core.query_ids]
    states = pooled(reader, texts, batch_size=16)
    made = replace(context, _evaluations={})
    made.__dict__["core"] = replace(context.core, hidden=states, hidden_of=context.pair[0])
    return replace(
        stand, context=made, unlike=f"{stand.unlike}, with an encoder's layers for hidden states"
    )


#: Rows of Table 4: 1K, 4K and 10K questions of each set, as shares of the smallest.
SCALES = {"low": 0.1, "middle": 0.4, "high": 1.0}
#: The rows of Tables 1 and 2.
ROWS = (
    "self-ask", "semantic-entropy", "margin", "entropy", "max-logit", "embedding-mlp",
    "probe-dirichlet",
)  # fmt: skip
#: The rows of Table 3, with learned weights and the input-conditional form of the text.
GLOBAL, OF_INPUT = "Dirichlet (Algorithm 1)", "Dirichlet of the input (section 4)"
PROBES: Mapping[str, Maker] = {
    "final layer": made("probe-final"),
    "mean": made("probe-mean"),
    "softmax": made("probe-softmax"),
    GLOBAL: made("probe-dirichlet"),
    OF_INPUT: made("probe-dirichlet", conditional=True),
}
#: Areas of MMLU-Pro (Table 1) → its categories; the paper does not list them.
AREAS: Mapping[str, Sequence[str]] = {
    "STEM": ("biology", "chemistry", "computer science", "engineering", "math", "physics"),
    "humanities": ("history", "law", "philosophy"),
    "social sciences": ("economics", "psychology"),
    "others": ("business", "health", "other"),
}
_AREAS_OF = "mmlu_pro"
_DIRICHLET = {"probe-dirichlet": PROBES[GLOBAL]}
AUROC: Columns = {"auroc": ("AUROC", "percent")}


def _across(
    context: StudyContext, makers: Mapping[str, Maker], on: Sequence[str], n: int | None = None
) -> Mapping[str, Evaluation]:
    """Release → evaluation; routers trained on these releases together, n questions of each."""
    named = ("mix", who(makers), tuple(on), n)
    return context.once(
        named, lambda: context.across(makers, context.training(on, n), _areas(context))
    )


def _areas(context: StudyContext) -> dict[str, Bools]:
    """`mmlu_pro: STEM` and so on → its questions, where that source is beside others."""
    if _AREAS_OF not in context.cores or context.core.sources is None:
        return {}
    own = context.core.sources == _AREAS_OF
    tasks = np.char.replace(context.core.tasks.astype(np.str_), "_", " ")
    areas = {}
    for area, categories in AREAS.items():
        inside = np.any([np.char.endswith(tasks, category) for category in categories], axis=0)
        areas[f"{_AREAS_OF}: {area}"] = own & inside
    return areas


def _outside(context: StudyContext, done: Mapping[str, Evaluation]) -> list[str]:
    """Releases and areas that no router was trained on; MMLU-Pro's areas replace it."""
    areas = any(name.startswith(f"{_AREAS_OF}: ") for name in done)
    out = [name for name in done if name not in context.domains]
    return [name for name in out if not areas or name != _AREAS_OF]


def _called(context: StudyContext, name: str) -> str:
    """How a column names a release; what no router was trained on is marked, but for sources."""
    mask = context.release in context.cores
    return f"{name} (OOD)" if mask and name not in context.domains else name


def _spread(
    context: StudyContext, done: Mapping[str, Evaluation], columns: Columns, rows: Sequence[str]
) -> list[StudyCell]:
    """Cells of every release, and means over those trained on and those not."""
    cells = []
    for release, item in done.items():
        where = _called(context, release)
        named: Columns = {m: (f"{where}: {h}", unit) for m, (h, unit) in columns.items()}
        cells += cells_of(item, named, rows)
    inside = [name for name in context.domains if name in done]
    for called, group in (("in domain", inside), ("out of domain", _outside(context, done))):
        if len(group) > 1:
            cells += _means(done, group, called, columns, rows)
    return cells


def _means(
    done: Mapping[str, Evaluation], group: Sequence[str], called: str, columns: Columns,
    rows: Sequence[str],
) -> list[StudyCell]:  # fmt: skip
    cells = []
    for name in rows:
        for metric, (heading, unit) in columns.items():
            results = [
                row["value"]
                for release in group
                for row in done[release].metrics.to_pylist()
                if row["router"] == name and row["metric"] == metric
            ]
            whole = len(results) == len(group) and all(v is not None for v in results)
            value = float(np.mean(results)) if whole else None
            note = None if whole else "not measured on all of them"
            cells.append(StudyCell(name, f"mean {called}: {heading}", value, unit, note=note))
    return cells


def ability(context: StudyContext, columns: Columns) -> Sequence[StudyCell]:
    names = context.able(ROWS)
    makers = {name: context.make(name) for name in names}
    done = _across(context, makers, context.domains)
    return _spread(context, done, columns, names)


def aggregation(context: StudyContext) -> Sequence[StudyCell]:
    done = _across(context, PROBES, context.domains)
    cells = _spread(context, done, AUROC, list(PROBES))
    for release, item in done.items():
        where = _called(context, release)
        for row in item.comparisons.to_pylist():
            if row["metric"] == "auroc" and {row["first"], row["second"]} == {GLOBAL, OF_INPUT}:
                sign = 1.0 if row["first"] == OF_INPUT else -1.0
                low, high = sorted((sign * row["low"], sign * row["high"]))
                value = sign * row["difference"]
                cells.append(StudyCell("of the input − Algorithm 1", f"{where}: AUROC", value,
                                  "percent", low, high))  # fmt: skip
    return cells


def _groups(context: StudyContext) -> dict[str, tuple[str, ...]]:
    """What is trained on: each release alone and, where there are several, all together."""
    groups: dict[str, tuple[str, ...]] = {name: (name,) for name in context.domains}
    return {**groups, "mixed": context.domains} if len(groups) > 1 else groups


def scale(context: StudyContext) -> Sequence[StudyCell]:
    groups = _groups(context)
    least = min(len(context.training((name,)).queries) for name in context.domains)
    cells = []
    for called, share in SCALES.items():
        n = max(2, round(share * least))
        cells.append(StudyCell(called, "train questions of each", float(n), "count"))
        for label, on in groups.items():
            done = _across(context, _DIRICHLET, on, n)
            own = [name for name in on if name in done]
            for name in own:
                heading = name if label == name else f"mixed, on {name}"
                named: Columns = {"auroc": (heading, "percent")}
                result = cells_of(done[name], named, list(_DIRICHLET))
                cells += [replace(cell, row=called) for cell in result]
            if len(own) > 1:
                mean = _means(done, own, "", AUROC, list(_DIRICHLET))
                cells += [replace(cell, row=called, column="mixed") for cell in mean]
    return cells


def mixture(context: StudyContext) -> Sequence[StudyCell]:
    cells = []
    for k in range(1, len(context.domains) + 1):
        on = context.domains[:k]
        done = _across(context, _DIRICHLET, on)
        for release, item in done.items():
            where = _called(context, release)
            named: Columns = {"auroc": (" + ".join(on), "percent")}
            cells += [replace(cell, row=where) for cell in cells_of(item, named, list(_DIRICHLET))]
    return cells


def width(context: StudyContext) -> Sequence[StudyCell]:
    makers = {
        ("linear" if not width else f"{width} neurons"): made("probe-mean", width=width)
        for width in (0, 64, 256, 1024)
    }
    return _spread(context, _across(context, makers, context.domains), AUROC, list(makers))


def _weights(context: StudyContext) -> dict[str, Floats]:
    """Release, or `mixed` → (L,) mean weights of the layers."""

    def of(on: tuple[str, ...]) -> Floats:
        train = context.training(on)
        router: Any = fit(PROBES[GLOBAL](context.seed), train)
        return np.asarray(router.layer_weights(train.queries).mean(axis=0))

    return context.once("layers", lambda: {k: of(on) for k, on in _groups(context).items()})


def layers(context: StudyContext) -> Sequence[StudyCell]:
    return [
        StudyCell(f"layer {k}", label, float(value), "percent")
        for label, weights in _weights(context).items()
        for k, value in enumerate(weights)
    ]


def layer_curves(context: StudyContext) -> pa.Table:
    return lines_table((label, range(len(w)), w) for label, w in _weights(context).items())
