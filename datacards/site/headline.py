"""The answer of a release in one sentence, the picture that shows it, and the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from routeyard.datacards.charts.draw import PAGE, PHONE
from routeyard.datacards.charts.models import cost_accuracy
from routeyard.datacards.site.evaluation_tables import EvaluationTables
from routeyard.datacards.site.language import kind_of, listed
from routeyard.schemas.intervals import order_undecided, undecided_words

Row = dict[str, Any]


def headline(
    one: EvaluationTables | None, models: Sequence[Row], *, simulated: bool
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
    third = sorted((r["accuracy"] for r in rows if r["role"] == "model"), reverse=True)[2:3]
    for row in rows:  # the three best single models, and those as good as the third
        row["shown"] = row["role"] != "model" or row["accuracy"] > min(third, default=0) - 1e-9
    note = None if one is None or "encoder" not in one.facts else encoder_words(one.facts)
    return {"sentence": sentence, "note": note, "rows": rows, **chart}


def answer_of(one: EvaluationTables, *, simulated: bool) -> str | None:
    """The sentence on an evaluation alone; None where it has no router to speak of."""
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


#: Registered routers that look at no question: they are compared with, and never chosen.
CONTROLS = ("random", "best-generalist")


def _of_routers(one: EvaluationTables, rows: Sequence[Row]) -> str | None:
    """Your own routers, else the router that is best on the validation questions, beside the
    single model that is best on the train questions. Those that are equally good are all named."""
    facts = one.facts
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
    words = f"{_subject(chosen, len(own), len(tried))} of the test questions right"
    words += f"; {_always(single, facts)}"
    if not own:
        words = _against(words, tried[best[0]], usual.get("best-generalist"), chosen, single)
    if cost := _cost(chosen, single):
        words += f". Routing costs {cost} what that model costs, where it is free to ask any model"
    if own:
        words += _beside([by_name["router", name] for name in best])
    return f"{words}."


def _subject(chosen: Sequence[Row], own: int, tried: int) -> str:
    """The routers of the sentence, how they were chosen, and what they answer."""
    if own:
        return f"Your router{'s' * (own > 1)} {_answered(chosen)}"
    # Who is alone was not chosen.
    why = f"the best of {tried} routers on the validation questions" if tried > 1 else ""
    return _answered(chosen, why)


def _beside(best: Sequence[Row]) -> str:
    """What the best of the other routers answer, beside your own; empty without any."""
    if not best:
        return ""
    return f". Of the other routers, {_answered(best)}, chosen on the validation questions"


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


def _cost(chosen: Sequence[Row], single: Row) -> str | None:
    """What one router costs of a single model; None of several, where unknown, or where it is
    that model."""
    router = chosen[0]
    if (
        len(chosen) > 1
        or not router["cost"]
        or not single["cost"]
        or _level(router) == _level(single)
    ):
        return None
    return _times(router["cost"] / single["cost"])


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
