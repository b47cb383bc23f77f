"""The certificate in sentences: what each figure asks, and what its value means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from routeyard.datacards.markdown import UNKNOWN, texts


@dataclass(frozen=True, slots=True)
class FigureSentence:
    """One figure: its key, a short name, its value and interval as text, and a sentence."""

    key: str
    name: str
    value: str
    interval: str
    sentence: str


#: Verdict → what it says of routers.
VERDICTS = {
    "routable": "verdict: this release tells routers apart",
    "headroom not reached": "verdict: a gain is possible, no reference router reaches it",
    "headroom only": "verdict: a gain is possible, no reference router was tried",
    "not routable": "verdict: this release cannot tell routers apart",
}
#: Figures that weigh models by a cost, and what replaces it where prices lack.
_OF_COST = ("cost_matched_mix", "gap_mix", "dominated_share")
_MEASURES = {"tokens": "tokens per answer", "latency": "seconds per answer", "params": "model size"}
#: Figure → name, kind of number and sentence.
FIGURES: dict[str, dict[str, str]] = texts("certificate.yaml")


def sentences(certificate: Mapping[str, Any]) -> list[FigureSentence]:
    """The figures of a certificate in the order in which they are read, unknown ones last."""
    figures: Mapping[str, Mapping[str, Any]] = certificate.get("figures") or {}
    order = [name for name in FIGURES if name in figures]
    order += sorted(name for name in figures if name not in FIGURES)
    measure = str(certificate.get("measure") or "usd")
    found = [_said(name, figures[name], measure) for name in order]
    if not certificate.get("order_undecided"):
        return found
    # Missing labels leave open which model is best: none is called so.
    single = f"single model {certificate.get('best_single')}"
    return [
        replace(
            one,
            name=one.name.replace("best single model", single),
            sentence=one.sentence.replace("best single model", single),
        )
        for one in found
    ]


def _said(name: str, figure: Mapping[str, Any], measure: str) -> FigureSentence:
    unknown = {"name": name.replace("_", " "), "kind": "number", "sentence": ""}
    short, kind, sentence = FIGURES.get(name, unknown).values()
    value, low, high = figure.get("value"), figure.get("low"), figure.get("high")
    interval = ""
    if low is not None and high is not None:
        interval = f"{number(low, kind)} to {number(high, kind)}"
    if value is None:
        sentence = f"{sentence} Not known: {figure.get('reason') or 'no reason given'}."
    elif kind == "points" and low is not None and high is not None and low <= 0 <= high:
        sentence += " The interval holds zero: there may be nothing to gain."
    if name in _OF_COST and measure != "usd" and value is not None:
        sentence += f" Cost is {_MEASURES.get(measure, measure)} here: not all prices are known."
        short = f"{short}, counted in {_MEASURES.get(measure, measure)}"
    return FigureSentence(
        name, short, UNKNOWN if value is None else number(value, kind), interval, sentence.strip()
    )


#: Kind of number → its form and factor.
_FORMS = {
    "share": ("{:.1f} %", 100),
    "points": ("{:+.1f} points", 100),
    "size": ("{:.1f} points", 100),
    "number": ("{:.2f}", 1),
}


def number(value: float, kind: str) -> str:
    """A figure as people read it: per cent, percentage points, or a plain number."""
    form, factor = _FORMS[kind]
    return form.format(factor * value)
