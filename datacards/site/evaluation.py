"""What a page shows of one evaluation of routers: ranking, curves, selection, pairs, transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from routeyard.datacards.charts.bars import shares
from routeyard.datacards.charts.colours import REFERENCES
from routeyard.datacards.charts.draw import PAGE
from routeyard.datacards.charts.lines import series
from routeyard.datacards.site.cheapest import cheapest
from routeyard.datacards.site.evaluation_charts import (
    CURVES,
    MEASURES,
    over_call_rate,
    over_cost,
    over_groups,
    unit_of,
)
from routeyard.datacards.site.evaluation_tables import EvaluationTables
from routeyard.datacards.site.figure_rows import COLUMNS, figure_rows, pair_rows
from routeyard.datacards.site.headline import encoder_words
from routeyard.datacards.site.language import kind_of

Row = dict[str, Any]


def content(
    one: EvaluationTables, name: str, models: Sequence[str], *, simulated: bool
) -> dict[str, Any]:
    """What the template `evaluation.html.jinja` shows.

    Args:
        name: Prefix of the ids of its charts.
        models: All models of the release, for their colours.
        simulated: What the models cost was paid by nobody.
    """
    metrics = one.metrics.to_pylist()
    points = [] if one.curves is None else one.curves.to_pylist()
    measures = [m for m in MEASURES if any(p["measure"] == m for p in points)]
    measure = _measure(metrics)
    unit, factor = unit_of(measure, simulated)
    pool = sorted({row["router"] for row in metrics})
    places = {row["router"]: row for row in one.ranking}
    n_test = one.facts.get("n_test") or 0
    ranking = _ranking(metrics, places, n_test, str(one.facts.get("headline") or "accuracy"))
    charts = [chart for m in measures for chart in _charts(points, m, name, pool, simulated)]
    if drawn := over_call_rate(
        points, one, name=f"{name}-tradeoff", pool=pool, legend=False, look=PAGE
    ):
        title = "Two models: accuracy over the share sent to the large one"
        charts.append({"title": title, "first": False, "log": None, "linear": _svg(drawn)})
    if charts:
        charts[0]["first"] = True
    return {
        "name": name,
        "title": one.title,
        "facts": _facts(one.facts),
        "columns": _columns(measure, unit, ranking, one.facts),
        "measure": (unit, factor),
        "ranking": ranking,
        "n_test": n_test,
        "placed": bool(places),
        "legend": series([p["router"] for p in points], pool),
        "charts": charts,
        "ranks": {row["router"]: k for k, row in enumerate(_routers(ranking))},
        "references": REFERENCES,
        "cheapest": cheapest(points, metrics, measure, unit, factor),
        "selection": _selection(one.profiles, name, models),
        "pairs": _pairs(one.comparisons),
        "pair_rows": pair_rows(_pairs(one.comparisons)),
        "transfer": _transfer(one.ood, name, pool),
        "figure_rows": figure_rows(metrics),
        "cheapest_title": (
            "Cheapest way to an accuracy"
            if measure == "usd"
            else f"Least {MEASURES[measure][0]} for an accuracy"
        )
        + _among(measure, one.facts),
    }


def _measure(metrics: Sequence[Row]) -> str:
    """The first cost measure that is known, else USD."""
    known = {row["metric"] for row in metrics}
    return next((m for m in MEASURES if f"mean_cost[{m}]" in known), "usd")


def cheapest_words(one: EvaluationTables, *, simulated: bool) -> str | None:
    """What the routers page says first of the cheapest router; None where no cost is known."""
    metrics = one.metrics.to_pylist()
    points = [] if one.curves is None else one.curves.to_pylist()
    measure = _measure(metrics)
    found = cheapest(points, metrics, measure, *unit_of(measure, simulated))
    if found is None:
        return None
    asked = 50 if found["asked"] is None else found["asked"]
    return f"At an accuracy of {asked} % or more: {found['told']}"


def _columns(
    measure: str, unit: str, ranking: list[Row], facts: Mapping[str, Any]
) -> list[tuple[str, str, str, str]]:
    """Columns of the ranking; one that says nothing of any router is left out. Figures of cost
    say of how many models they are, where those of the others are not known."""
    among = _among(measure, facts)
    columns = [
        (
            metric.format(measure),
            _heading(heading, measure, unit) + ("{}" in metric) * among,
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


def _among(measure: str, facts: Mapping[str, Any]) -> str:
    """Of how many models figures of cost are, where those of the others are not known."""
    part = (facts.get("sub_pools") or {}).get(measure)
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
    for measure, models in (facts.get("costs_lacking") or {}).items():
        if isinstance(models, list):  # as evaluations before those with `missing` told it
            words.append(f"no figures in {measure}: not known of {', '.join(models)}")
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


def _ranking(
    metrics: list[Row], places: Mapping[str, Mapping[str, Any]], n_test: int, headline: str
) -> list[Row]:
    rows: dict[str, Row] = {}
    for row in metrics:
        if row["split"] == "test" and not row["router"].startswith(("small:", "large:")):
            rows.setdefault(row["router"], {"router": row["router"]})[row["metric"]] = row
    for name, row in rows.items():
        place = places.get(name)
        row["place"] = None if place is None else (place["best_place"], place["worst_place"])
        n = (row.get("accuracy") or {}).get("n")
        row["kind"] = kind_of(name)
        row["over"] = n if n is not None and n < n_test else None
    return sorted(rows.values(), key=lambda row: _by_accuracy(row, headline))


def _routers(ranking: list[Row]) -> list[Row]:
    """Neither single models nor what routers are compared with."""
    return [row for row in ranking if row["kind"] == "router"]


def _by_accuracy(row: Row, headline: str) -> tuple[float, str]:
    value = (row.get(headline) or row.get("accuracy") or {}).get("value")
    return (-value if value is not None else 1.0, row["router"])


def _charts(
    points: list[Row], measure: str, name: str, pool: Sequence[str], simulated: bool
) -> list[Row]:
    """Each curve over one measure, with a logarithmic and with a linear axis."""
    found: list[Row] = []
    for curve, (title, _) in CURVES.items():
        drawn: dict[str, Markup | None] = {"log": None}
        own = [p for p in points if p["curve"] == curve and p["measure"] == measure]
        for scale in ("log", "linear"):
            if own and (scale == "linear" or any(p["x"] > 0 for p in own)):
                text = over_cost(
                    own,
                    curve,
                    measure,
                    name=f"{name}-{curve}-{measure}-{scale}",
                    log=scale == "log",
                    simulated=simulated,
                    pool=pool,
                    legend=False,
                    look=PAGE,
                )
                drawn[scale] = _svg(text)
        if own:
            unit = unit_of(measure, simulated)[0]
            words = title.replace("mean cost", unit).replace("a budget", f"a budget of {unit}")
            words = f"{title}: {unit}" if measure == "usd" else words
            found.append({"title": words, "first": False, **drawn})
    return found


def selections(profiles: pa.Table | None) -> dict[str, list[Row]]:
    """Part of the questions → rows of router, model_id, share: of all, and of the hard alone."""
    rows = [] if profiles is None else profiles.to_pylist()
    found: dict[str, list[Row]] = {}
    for split in dict.fromkeys(row["split"] for row in rows):
        own = [row for row in rows if row["split"] == split]
        found[split] = own
        hard = [row for row in own if row.get("hard_share") is not None]
        if hard:
            found[f"{split} hard"] = [{**row, "share": row["hard_share"]} for row in hard]
    return found


def _selection(
    profiles: pa.Table | None, name: str, models: Sequence[str]
) -> list[tuple[str, Markup]]:
    return [
        (
            part,
            _svg(
                shares(
                    rows,
                    name=f"{name}-selection-{k}",
                    title=f"Models each router asks ({part})",
                    of="router",
                    models=models,
                    look=PAGE,
                )
            ),
        )
        for k, (part, rows) in enumerate(selections(profiles).items())
    ]


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
    rows = ood.to_pylist()
    drawn = over_groups(rows, pool, name=f"{name}-transfer", look=PAGE)
    return {"rows": rows, "chart": _svg(drawn)}


def _svg(text: str) -> Markup:
    return Markup(text)  # noqa: S704  escaped by `draw`
