"""What a page shows of one evaluation of routers: ranking, curves, selection, pairs, transfer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import pyarrow as pa

from routeyard.datacards.card import texts
from routeyard.datacards.charts import (
    PAGE,
    PHONE,
    REFERENCES,
    Zone,
    changes,
    cost_accuracy,
    curves,
    series,
    shares,
)
from routeyard.datacards.site.language import chance, kind_of, listed, router
from routeyard.schemas.release import order_undecided, undecided_words

# One evaluation of routers as pages are given it.

Row = dict[str, Any]


@dataclass(frozen=True)
class EvaluationTables:
    """One evaluation of routers, as its files have it.

    Attributes:
        metrics, curves, profiles, comparisons, ood: Its tables; all but the first may be missing.
        ranking: router, value, best_place, worst_place.
        facts: What was done, in the words of `routeyard.pipelines.evaluate`.
    """

    title: str
    metrics: pa.Table
    curves: pa.Table | None = None
    profiles: pa.Table | None = None
    comparisons: pa.Table | None = None
    ood: pa.Table | None = None
    ranking: Sequence[Mapping[str, Any]] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def figures(self) -> list[Row]:
        """Rows of `metrics`."""
        rows: list[Row] = self.metrics.to_pylist()
        return rows

    @cached_property
    def points(self) -> list[Row]:
        """Rows of `curves`."""
        return [] if self.curves is None else self.curves.to_pylist()

    @cached_property
    def test(self) -> dict[str, dict[str, Row]]:
        """Router → metric → its row, on the test questions."""
        result: dict[str, dict[str, Row]] = {}
        for row in self.figures:
            if row["split"] == "test" and not row["router"].startswith(("small:", "large:")):
                result.setdefault(row["router"], {})[row["metric"]] = row
        return result

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """Router → its best and its worst place, where differences are tested."""
        return {row["router"]: (row["best_place"], row["worst_place"]) for row in self.ranking}

    @cached_property
    def measure(self) -> str:
        """The first cost measure that is known, else USD."""
        known = {row["metric"] for row in self.figures}
        return next((m for m in MEASURES if f"mean_cost[{m}]" in known), "usd")


# Charts of an evaluation: accuracy over cost and over the call rate, changes on unseen groups.

_TEXTS = texts("evaluation.yaml")
#: Cost measure → (what it is called, factor on the stored value).
MEASURES: dict[str, tuple[str, float]] = {k: tuple(v) for k, v in _TEXTS["measures"].items()}
CURVES: dict[str, list[str]] = _TEXTS["curves"]


def unit_of(measure: str, simulated: bool) -> tuple[str, float]:
    """Unit of a cost measure, which says that money is simulated, and factor on its values."""
    unit, factor = MEASURES[measure]
    return f"simulated {unit}" if simulated and measure == "usd" else unit, factor


def over_cost(
    points: Sequence[Row], curve: str, measure: str, *, log: bool, simulated: bool, **how: Any
) -> str:
    """SVG of accuracy over one cost measure; `how` as for `curves`."""
    (title, x), (unit, factor) = CURVES[curve], unit_of(measure, simulated)
    along = f"{x} ({unit}{{}})" if measure == "usd" else f"{unit}{{}}"
    return curves(
        [{**p, "x": factor * p["x"]} for p in points],
        title=f"{title}, {unit}" if measure == "usd" else title.replace("mean cost", unit),
        x=along.format(", log scale" if log else ""),
        y="accuracy",
        log=log,
        **how,
    )


def over_call_rate(tables: EvaluationTables, **how: Any) -> str | None:
    """SVG of accuracy over the share sent to the large of two models; None without such points."""
    own = [p for p in tables.points if p["curve"] == "tradeoff"]
    if not own:
        return None
    zones, straight = bands(tables)
    return curves(
        own,
        title="Accuracy over the call rate of the large model",
        x="questions sent to the large model (share)",
        y="accuracy",
        shares=(True, True),
        zones=zones,
        straight=straight,
        **how,
    )


def bands(tables: EvaluationTables) -> tuple[list[Zone], tuple[float, float] | None]:
    """Scenarios of a two-model plot, and the accuracies of its ends, where both are known."""
    lpm, mpm, low, high = tables.facts.get("bands") or (0.25, 0.30, 0.85, 0.95)
    zones = [Zone("LPM", "x", 0.0, lpm), Zone("MPM, up to HCR", "x", mpm, 1.0)]
    level = {
        row["router"].partition(":")[0]: row["value"]
        for row in tables.figures
        if row["metric"] == "accuracy" and row["router"].startswith(("small:", "large:"))
    }
    if len(level) < 2 or None in level.values() or level["large"] <= level["small"]:
        return zones, None
    small, gap = level["small"], level["large"] - level["small"]
    zones.append(Zone("HCR", "y", small + low * gap, small + high * gap))
    return zones, (small, level["large"])


def over_groups(rows: Sequence[Row], pool: Sequence[str], **how: Any) -> str:
    """Change of accuracy on groups that training did not see, over the groups."""
    return changes(
        rows,
        title="Change of accuracy on a group not seen in training",
        of="group held out",
        value="change of accuracy (percentage points), 95 % interval",
        routers=pool,
        **how,
    )


# What each accuracy costs at least, by router and by single model.


def cheapest(tables: EvaluationTables, unit: str, factor: float) -> Row | None:
    """Per router the rising steps of its curve: what each accuracy costs at least.

    Single models are curves of one point: whoever asks for the cheapest way wants to know
    when no router is needed.
    """
    steps: dict[str, list[tuple[float, float]]] = {}
    for p in tables.points:
        if p["curve"] == "deferral" and p["measure"] == tables.measure and p["y"] is not None:
            steps.setdefault(p["router"], []).append((p["x"] * factor, p["y"]))
    if not steps:
        return None
    for name, row in tables.test.items():
        cost, accuracy = (
            (row.get(metric) or {}).get("value")
            for metric in (f"mean_cost[{tables.measure}]", "accuracy")
        )
        if name.startswith("single:") and accuracy is not None and cost is not None:
            steps[name] = [(cost * factor, accuracy)]
    rising = {}
    for name, pairs in steps.items():
        best = -1.0
        frontier = []
        for x, y in sorted(pairs, key=lambda pair: (pair[0], -pair[1])):
            if y > best:
                best = y
                frontier.append((float(f"{x:.6g}"), float(f"{y:.6g}")))
        rising[name] = frontier
    best_single = max(
        (pairs[-1][1] for name, pairs in rising.items() if name.startswith("single:")), default=None
    )
    # Downwards: the best single model must reach what is asked at first.
    asked = None if best_single is None else math.floor(1000 * best_single) / 10
    return {"steps": rising, "unit": unit, "asked": asked, "told": _summary(rising, asked, unit)}


def _summary(
    rising: Mapping[str, Sequence[tuple[float, float]]], asked: float | None, unit: str
) -> str:
    """The cheapest router and single model at an accuracy, as `site.js` says it of any other; of
    equally cheap ones all."""
    least, words = (50.0 if asked is None else asked) / 100, []
    lowest = "Cheapest" if "USD" in unit else "Least by a"
    for kind, called in (("router", "router"), ("model", "single model")):
        own = {name: steps for name, steps in rising.items() if kind_of(name) == kind}
        costs = {n: x for n, steps in own.items() for x, y in steps[::-1] if y >= least - 1e-9}
        cost = min(costs.values(), default=None)
        who = "none reaches it"
        if cost is not None:
            names = [router(name) for name, x in costs.items() if x == cost]
            who = f"{' and '.join(names)} ({cost:,.4g} {unit})"
        words.append(f"{lowest} {called}: {who}.")
    return " ".join(words)


# Rows of large tables as JSON: the page makes them when they are looked at.

#: A cell as text, or text and the number it is sorted by.
Cell = str | list[Any]
#: (metric, heading, filter of the template, what it says); `{}` is the measure.
COLUMNS: list[tuple[str, str, str, str]] = [
    tuple(text) for text in texts("evaluation.yaml")["columns"]
]
_HEADINGS: dict[str, str] = {
    **texts("evaluation.yaml")["compared"],
    **{item[0]: item[1] for item in COLUMNS},
}
_UNITS = {"usd": "USD", "latency": "seconds", "params": "parameters"}


def figure_rows(metrics: Sequence[Mapping[str, Any]]) -> list[list[Cell]]:
    """figure, router, questions, n, value, interval, why not known."""
    return [
        [
            row["metric"],
            router(row["router"]),
            row["split"],
            f"{row['n']:,}" if row.get("n") else "–",
            [_plain(row["value"]), row["value"]],
            _interval(row, _plain),
            row.get("reason") or "",
        ]
        for row in metrics
    ]


def pair_rows(pairs: Sequence[Mapping[str, Any]]) -> list[list[Cell]]:
    """first, second, figure, difference, interval, chance, told apart."""
    cells: list[list[Cell]] = []
    for row in pairs:
        share = row["metric"] == "accuracy"
        form = _points if share else _plain
        difference = form(row["difference"]) + (
            " points" if share and row["difference"] is not None else ""
        )
        cells.append(
            [
                router(row["first"]),
                router(row["second"]),
                _figure(row["metric"]),
                [difference, row["difference"]],
                _interval(row, form),
                [chance(row["p_adjusted"]), row["p_adjusted"]],
                "yes" if row["significant"] else "no",
            ]
        )
    return cells


def _figure(metric: str) -> str:
    """A metric in the words of the ranking's columns, its cost measure behind it."""
    name, bracket, measure = metric.partition("[")
    form = f"{name}[{{}}]" if bracket else name
    if metric in _HEADINGS or form not in _HEADINGS:
        return _HEADINGS.get(metric, metric)
    measure = measure.removesuffix("]")
    return f"{_HEADINGS[form]}: {_UNITS.get(measure, measure)}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.1f}"


def _interval(row: Mapping[str, Any], form: Any) -> str:
    if row["low"] is None or row["high"] is None:
        return "–"
    return f"{form(row['low'])} to {form(row['high'])}"


# The answer of a release in one sentence, the picture that shows it, and the ranking.


def headline(
    tables: EvaluationTables | None, models: Sequence[Row], *, simulated: bool
) -> dict[str, Any]:
    """`sentence`, `note` (the encoder that its routers read the questions through), `rows` (all,
    best first), `chart`, and `small`, which a phone shows.

    A router is chosen by its accuracy on the validation questions, the single model by that on
    the train questions; the sentence gives those on the test questions. Your own routers are
    named without being chosen. Without an evaluation the sentence is about the models.

    Args:
        models: Rows of the leaderboard.
        simulated: Programs play the models, so that no figure is about real ones.
    """
    rows = [] if tables is None else _rows(tables)
    sentence = _of_routers(tables, rows) if tables is not None else None
    sentence = _said(sentence or _of_models(models), simulated=simulated)
    alone = {_level(row) for row in rows if row["role"] == "model"}
    # A router that always asks one model is that model's mark.
    priced = [
        row for row in rows if row["cost"] and (row["role"] != "router" or _level(row) not in alone)
    ]
    chart: dict[str, str | None] = {"chart": None, "small": None}
    if len(priced) > 1:
        pool = [row["model_id"] for row in models]
        for name, look in (("chart", PAGE), ("small", PHONE)):
            chart[name] = cost_accuracy(
                priced, pool=pool, simulated=simulated, name=f"answer-{name}", look=look
            )
    third = sorted((r["accuracy"] for r in rows if r["role"] == "model"), reverse=True)[2:3]
    for row in rows:  # the three best single models, and those as good as the third
        row["shown"] = row["role"] != "model" or row["accuracy"] > min(third, default=0) - 1e-9
    note = None if tables is None or "encoder" not in tables.facts else encoder_words(tables.facts)
    return {"sentence": sentence, "note": note, "rows": rows, **chart}


def answer_of(tables: EvaluationTables, *, simulated: bool) -> str | None:
    """The sentence on an evaluation alone; None where it has no router to speak of."""
    return _said(_of_routers(tables, _rows(tables)), simulated=simulated)


def _said(sentence: str | None, *, simulated: bool) -> str | None:
    if sentence and simulated:
        return f"{sentence} The models are simulated: no figure is about real ones."
    return sentence


def _level(row: Row) -> tuple[float, float | None]:
    """Accuracy and cost, but for the last digits of a sum."""
    cost = row["cost"]
    return (round(row["accuracy"], 9), None if cost is None else float(f"{cost:.9g}"))


def _rows(tables: EvaluationTables) -> list[Row]:
    """Accuracy with its interval and cost (USD per 1,000 questions) on the test questions."""
    rows = []
    for name, item in tables.test.items():
        accuracy = item.get("accuracy") or {}
        # "best single" is the single model that another row names.
        if accuracy.get("value") is None or name == "best single":
            continue
        cost = (item.get("mean_cost[usd]") or {}).get("value")
        rows.append(
            {
                "model_id": name.removeprefix("single:"),
                "role": kind_of(name),
                "accuracy": accuracy["value"],
                "low": accuracy.get("low"),
                "high": accuracy.get("high"),
                "cost": None if cost is None else 1000 * cost,
                "place": tables.places.get(name),
            }
        )
    return sorted(rows, key=lambda row: (-row["accuracy"], row["model_id"]))


#: Registered routers that look at no question: they are compared with, and never chosen.
CONTROLS = ("random", "best-generalist")


def _of_routers(tables: EvaluationTables, rows: Sequence[Row]) -> str | None:
    """Your own routers, else the router that is best on the validation questions, beside the
    single model that is best on the train questions. Those that are equally good are all named."""
    facts = tables.facts
    validation: Mapping[str, float] = facts.get("validation") or {}
    by_name = {(row["role"], row["model_id"]): row for row in rows}
    single = by_name.get(("model", facts.get("best_single")))
    if single is None:
        return None
    own = [name for name in facts.get("own") or () if ("router", name) in by_name]
    usual = {n: v for n, v in validation.items() if ("router", n) in by_name and n not in own}
    tried = {name: value for name, value in usual.items() if name not in CONTROLS}
    best = alike(tried)
    if not own and not best:
        return None
    chosen = [by_name["router", name] for name in own or best]
    words = _subject(chosen, len(own), len(tried))
    words += f" of the test questions right; {_always(single, facts)}"
    if not own:
        level = usual.get("best-generalist")
        words = _against(words, tried[best[0]], level, chosen, single)
    words += _costs(chosen, single)
    if own and best:
        others = _answered([by_name["router", name] for name in best])
        words += f". Of the other routers, {others}, chosen on the validation questions"
    return f"{words}."


def _subject(chosen: Sequence[Row], own: int, tried: int) -> str:
    """The routers of the sentence, how they were chosen, and what they answer."""
    if own:
        return f"Your router{'s' * (own > 1)} {_answered(chosen)}"
    # Who is alone was not chosen.
    why = f"the best of {tried} routers on the validation questions" if tried > 1 else ""
    return _answered(chosen, why)


def _against(
    words: str, value: float, level: float | None, chosen: Sequence[Row], single: Row
) -> str:
    """The sentence, with what it means where the chosen routers gain nothing over a single model.

    Args:
        value, level: accuracy on the validation questions, of them and of that model.
    """
    if {_level(row) for row in chosen} == {_level(single)}:
        return f"Routing gains nothing here. {words}"
    if level is not None and value <= level + 1e-9:
        return f"{words}. On the validation questions no router did better than that model"
    return words


def _costs(chosen: Sequence[Row], single: Row) -> str:
    """What one router costs of a single model; empty of several, where unknown, or where it is
    that model."""
    item, *others = chosen
    if others or not item["cost"] or not single["cost"] or _level(item) == _level(single):
        return ""
    times = _times(item["cost"] / single["cost"])
    return f". Routing costs {times} what that model costs, where it is free to ask any model"


def alike(values: Mapping[str, float]) -> list[str]:
    """The names with the greatest value: all of them, so that no name settles a tie."""
    most = max(values.values(), default=0.0)
    return sorted(name for name, value in values.items() if value > most - 1e-9)


def encoder_words(facts: Mapping[str, Any]) -> str:
    """Which vectors of the questions routers learn from, and which routers do."""
    if not (name := facts["encoder"]):
        return "encoder: none, routers saw no vectors of the questions"
    who = listed(facts.get("on_encoder") or ())
    of = f", for {who}" if who else ""
    return f"encoder of the questions: {name.removesuffix(':float32')}{of}"


def _answered(rows: Sequence[Row], why: str = "") -> str:
    """a answers 80.0 %; or, of the same accuracy or not, a and b answer 80.0 % and 79.0 %."""
    shares = list(dict.fromkeys(map(_share, rows)))
    says = "answers" if len(rows) == 1 else "answer"
    names = listed([row["model_id"] for row in rows]) + (f", {why}," if why else "")
    return f"{names} {says} {' and '.join(shares[:3])}"


def _always(single: Row, facts: Mapping[str, Any]) -> str:
    """What always asking the single model of an evaluation reaches, and why that one."""
    name = single["model_id"]
    others = (facts.get("order_undecided") or {}).get("train")
    if not others:
        return f"always asking {name}, best on the train questions, {_share(single)}"
    return f"always asking {name} {_share(single)}. {undecided_words(name, others)[:-1]}"


def _of_models(models: Sequence[Row]) -> str | None:
    """The best models by accuracy; none is called so where missing labels leave the order open."""
    labelled = {row["model_id"]: row for row in models if row["accuracy"] is not None}
    if not labelled:
        return None
    best = alike({name: row["accuracy"] for name, row in labelled.items()})
    whose = "its" if len(best) == 1 else "their"
    words = f"{_answered([labelled[name] for name in best])} of {whose} labelled questions right"
    counts = {name: row["counts"] for name, row in labelled.items() if row.get("counts")}
    if others := order_undecided(counts, best[0]) if best[0] in counts else []:
        return f"{words}. {undecided_words(best[0], others)}"
    if len(models) == 1:
        return f"The only model, {words}."
    return f"The best of {len(models)} models, {words}."


def _share(row: Row) -> str:
    said = f"{100 * row['accuracy']:.1f} %"
    if row["low"] is None or row["high"] is None:
        return said
    return f"{said} ({100 * row['low']:.1f} to {100 * row['high']:.1f})"


def _times(ratio: float) -> str:
    """How many times as much: 1/76 of, 41 % of, 3 times."""
    if ratio < 0.1:
        return f"1/{1 / ratio:.0f} of"
    return f"{100 * ratio:.0f} % of" if ratio < 2 else f"{ratio:.2g} times"


def content(
    tables: EvaluationTables, name: str, models: Sequence[str], *, simulated: bool
) -> dict[str, Any]:
    """What the template `evaluation.html.jinja` shows.

    Args:
        name: Prefix of the ids of its charts.
        models: All models of the release, for their colours.
        simulated: What the models cost was paid by nobody.
    """
    measure = tables.measure
    unit, factor = unit_of(measure, simulated)
    pool = sorted({row["router"] for row in tables.figures})
    n_test = tables.facts.get("n_test") or 0
    ranking = _ranking(tables, n_test)
    charts = _charts(tables, name, pool, simulated)
    routers = [row["router"] for row in ranking if row["kind"] == "router"]
    pairs = _pairs(tables.comparisons)
    least = "Cheapest way to" if measure == "usd" else f"Least {MEASURES[measure][0]} for"
    return {
        "name": name,
        "title": tables.title,
        "facts": _facts(tables.facts),
        "columns": _columns(tables, unit, ranking),
        "measure": (unit, factor),
        "ranking": ranking,
        "n_test": n_test,
        "placed": bool(tables.places),
        "legend": series([p["router"] for p in tables.points], pool),
        "charts": charts,
        "ranks": {router: k for k, router in enumerate(routers)},
        "references": REFERENCES,
        "cheapest": cheapest(tables, unit, factor),
        "cheapest_title": f"{least} an accuracy{_among(tables)}",
        "selection": list(selections(tables, models, f"{name}-selection-{{k}}", look=PAGE)),
        "pairs": pairs,
        "pair_rows": pair_rows(pairs),
        "transfer": _transfer(tables.ood, name, pool),
        "figure_rows": figure_rows(tables.figures),
    }


def cheapest_words(tables: EvaluationTables, *, simulated: bool) -> str | None:
    """What the routers page says first of the cheapest router; None where no cost is known."""
    result = cheapest(tables, *unit_of(tables.measure, simulated))
    if result is None:
        return None
    asked = 50 if result["asked"] is None else result["asked"]
    return f"At an accuracy of {asked} % or more: {result['told']}"


def _columns(tables: EvaluationTables, unit: str, ranking: list[Row]) -> list[tuple[str, ...]]:
    """Columns of the ranking; one that says nothing of any router is left out. Figures of cost
    say of how many models they are, where those of the others are not known."""
    columns = [
        (
            metric.format(tables.measure),
            _heading(heading, tables.measure, unit) + ("{}" in metric) * _among(tables),
            kind,
            says.format(unit),
        )
        for metric, heading, kind, says in COLUMNS
    ]
    return [
        column
        for column in columns
        if any((row.get(column[0]) or {}).get("value") is not None for row in ranking)
    ]


def _among(tables: EvaluationTables) -> str:
    """Of how many models figures of cost are, where those of the others are not known."""
    part = (tables.facts.get("sub_pools") or {}).get(tables.measure)
    return f", choosing among the {len(part['models'])} models with a known one" if part else ""


def _heading(heading: str, measure: str, unit: str) -> str:
    """A column's heading; what is counted in tokens or seconds is not called a cost."""
    if heading != "cost":
        return heading
    return f"cost ({unit})" if measure == "usd" else unit


def _facts(facts: Mapping[str, Any]) -> list[str]:
    if not facts:
        return []
    counted = "{n_test:,} test, {n_train:,} train, {n_validation:,} validation questions"
    words = [
        counted.format(**facts),
        f"{facts['n_models']} models",
        f"split scheme {facts['scheme']}",
        f"{100 * facts['coverage']:.1f} % of the labels exist",
        f"intervals from {facts['resamples']:,} paired resamples",
        _single(facts),
    ]
    if "encoder" in facts:
        words.append(encoder_words(facts))
    words += facts.get("missing") or ()
    if facts.get("clustered_by"):
        words.append(f"resampled by {facts['clustered_by']}")
    pairs = (facts.get("order_undecided") or {}).get("routers") or ()
    if pairs:
        named = ", ".join(" and ".join(pair) for pair in pairs[:3]) + ", …" * (len(pairs) > 3)
        words.append(
            f"the order of {named} is undecided: it depends on labels that are missing or undecided"
        )
    return words


def _single(facts: Mapping[str, Any]) -> str:
    if (facts.get("order_undecided") or {}).get("train"):
        return f"single model compared with: {facts['best_single']}"
    return f"best single model on train: {facts['best_single']}"


def _ranking(tables: EvaluationTables, n_test: int) -> list[Row]:
    headline = str(tables.facts.get("headline") or "accuracy")
    rows = []
    for name, item in tables.test.items():
        n = (item.get("accuracy") or {}).get("n")
        over = n if n is not None and n < n_test else None
        place = tables.places.get(name)
        rows.append({"router": name, **item, "place": place, "kind": kind_of(name), "over": over})

    def by_accuracy(row: Row) -> tuple[float, str]:
        value = (row.get(headline) or row.get("accuracy") or {}).get("value")
        return (-value if value is not None else 1.0, row["router"])

    return sorted(rows, key=by_accuracy)


def _charts(tables: EvaluationTables, name: str, pool: Sequence[str], simulated: bool) -> list[Row]:
    """Each curve over each measure, with a logarithmic and with a linear axis, the first open."""
    how: dict[str, Any] = {"pool": pool, "legend": False, "look": PAGE}
    rows: list[Row] = []
    for measure, (curve, (title, _)) in product(MEASURES, CURVES.items()):
        own = [p for p in tables.points if p["curve"] == curve and p["measure"] == measure]
        if not own:
            continue
        drawn = {
            scale: over_cost(own, curve, measure, name=f"{name}-{curve}-{measure}-{scale}",
                          log=scale == "log", simulated=simulated, **how)
            for scale in ("log", "linear")
            if scale == "linear" or any(p["x"] > 0 for p in own)
        }  # fmt: skip
        unit = unit_of(measure, simulated)[0]
        words = title.replace("mean cost", unit).replace("a budget", f"a budget of {unit}")
        words = f"{title}: {unit}" if measure == "usd" else words
        rows.append({"title": words, "log": None, **drawn})
    if text := over_call_rate(tables, name=f"{name}-tradeoff", **how):
        title = "Two models: accuracy over the share sent to the large one"
        rows.append({"title": title, "log": None, "linear": text})
    return [{**chart, "first": not k} for k, chart in enumerate(rows)]


def selections(
    tables: EvaluationTables, models: Sequence[str], name: str, **how: Any
) -> Iterator[tuple[str, str]]:
    """(part of the questions, which model each router asks there as SVG): of all questions of a
    split, and of the hard ones alone.

    Args:
        name: Prefix of the ids; `{k}` is the number of the part, `{hard}` empty or `_hard`.
        how: As of `shares`.
    """
    rows = [] if tables.profiles is None else tables.profiles.to_pylist()
    parts: dict[str, list[Row]] = {}
    for split in dict.fromkeys(row["split"] for row in rows):
        parts[split] = [row for row in rows if row["split"] == split]
        if hard := [row for row in parts[split] if row.get("hard_share") is not None]:
            parts[f"{split} hard"] = [{**row, "share": row["hard_share"]} for row in hard]
    for k, (part, own) in enumerate(parts.items()):
        title = f"Models each router asks ({part})"
        about = name.format(k=k, hard="_hard" * part.endswith(" hard"))
        yield part, shares(own, name=about, title=title, of="router", models=models, **how)


def _pairs(comparisons: pa.Table | None) -> list[Row]:
    rows = [] if comparisons is None else comparisons.to_pylist()
    return sorted(
        rows,
        key=lambda row: (
            row["metric"] != "accuracy", row["metric"], not row.get("significant"),
            row["first"], row["second"],
        ),
    )  # fmt: skip


def _transfer(ood: pa.Table | None, name: str, pool: Sequence[str]) -> Row | None:
    if ood is None or not ood.num_rows:
        return None
    drawn = over_groups(ood.to_pylist(), pool, name=f"{name}-transfer", look=PAGE)
    return {"chart": drawn}
