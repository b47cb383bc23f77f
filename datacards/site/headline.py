"""The answer of a release in one sentence, the picture that shows it, and the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from routeyard.datacards.charts.draw import PAGE, PHONE
from routeyard.datacards.charts.models import cost_accuracy
from routeyard.datacards.site.evaluation import kind_of
from routeyard.datacards.site.evaluation_tables import EvaluationTables

Row = dict[str, Any]


def headline(
    one: EvaluationTables | None, models: Sequence[Row], *, simulated: bool
) -> dict[str, Any]:
    """`sentence`, `rows` (all, best first), `chart`, and `small`, which a phone shows.

    A router is named by its accuracy on the validation questions, and told by that on the test
    questions; so is the single model. Without an evaluation the sentence is about the models.

    Args:
        models: Rows of the leaderboard.
        simulated: Programs play the models, so that no figure is about real ones.
    """
    rows = [] if one is None else _rows(one)
    sentence = _of_routers(one, rows) if one is not None else None
    sentence = _said(sentence or _of_models(models), simulated=simulated)
    alone = {_level(row) for row in rows if row["role"] == "model"}
    # A router that always asks one model is that model's mark.
    priced = [
        row for row in rows if row["cost"] and (row["role"] != "router" or _level(row) not in alone)
    ]
    chart: dict[str, Markup | None] = {"chart": None, "small": None}
    if len(priced) > 1:
        pool = [row["model_id"] for row in models]
        for name, look in (("chart", PAGE), ("small", PHONE)):
            drawn = cost_accuracy(
                priced, pool=pool, simulated=simulated, name=f"answer-{name}", look=look
            )
            chart[name] = Markup(drawn)  # noqa: S704  escaped by `draw`
    return {"sentence": sentence, "rows": rows, **chart}


def answer_of(one: EvaluationTables, *, simulated: bool) -> str | None:
    """The sentence on an evaluation alone; None where validation distinguishes no router."""
    return _said(_of_routers(one, _rows(one)), simulated=simulated)


def _said(sentence: str | None, *, simulated: bool) -> str | None:
    if sentence and simulated:
        return f"{sentence} The models are simulated: no figure is about real ones."
    return sentence


def _level(row: Row) -> tuple[float, float | None]:
    """Accuracy and cost, but for the last digits of a sum."""
    cost = row["cost"]
    return (round(row["accuracy"], 9), None if cost is None else float(f"{cost:.9g}"))


def _rows(one: EvaluationTables) -> list[Row]:
    """Accuracy with its interval and cost (USD per 1,000 questions) on the test questions."""
    found: dict[str, dict[str, Row]] = {}
    for row in one.metrics.to_pylist():
        if row["split"] == "test" and not row["router"].startswith(("small:", "large:")):
            found.setdefault(row["router"], {})[row["metric"]] = row
    places = {row["router"]: row for row in one.ranking}
    rows = []
    for name, told in found.items():
        accuracy = told.get("accuracy") or {}
        # "best single" is the single model that another row names.
        if accuracy.get("value") is None or name == "best single":
            continue
        cost = (told.get("mean_cost[usd]") or {}).get("value")
        place = places.get(name)
        rows.append(
            {
                "model_id": name.removeprefix("single:"),
                "role": kind_of(name),
                "accuracy": accuracy["value"],
                "low": accuracy.get("low"),
                "high": accuracy.get("high"),
                "cost": None if cost is None else 1000 * cost,
                "place": None if place is None else (place["best_place"], place["worst_place"]),
            }
        )
    return sorted(rows, key=lambda row: (-row["accuracy"], row["model_id"]))


def _of_routers(one: EvaluationTables, rows: Sequence[Row]) -> str | None:
    """The router that is best on the validation questions, beside the best single model.

    `random` is a control, and is never the chosen one.
    """
    validation: Mapping[str, float] = one.facts.get("validation") or {}
    by_name = {(row["role"], row["model_id"]): row for row in rows}
    known = [name for name in validation if ("router", name) in by_name and name != "random"]
    single = by_name.get(("model", one.facts.get("best_single")))
    if not known or single is None:
        return None
    router = by_name["router", min(known, key=lambda name: (-validation[name], name))]
    if _level(router) == _level(single):
        return (
            f"Routing gains nothing here: the router {router['model_id']} and always asking "
            f"{single['model_id']} both answer {_share(single)} of the test questions right."
        )
    words = (
        f"Routing with {router['model_id']} answers {_share(router)} of the test questions right; "
        f"always asking {single['model_id']}, best on the train questions, {_share(single)}"
    )
    if router["cost"] and single["cost"]:
        words += f". Routing costs {_times(router['cost'] / single['cost'])} what that model costs"
    return f"{words}."


def _of_models(models: Sequence[Row]) -> str | None:
    labelled = [row for row in models if row["accuracy"] is not None]
    if not labelled:
        return None
    best = labelled[0]
    named = f"The best of {len(models)} models" if len(models) > 1 else "The only model"
    return f"{named}, {best['model_id']}, answers {_share(best)} of its labelled questions right."


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
