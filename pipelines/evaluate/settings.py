"""How routers are fitted, asked and compared: the one list of settings of every evaluation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ParamSpec, TypeVar

from routeyard.schemas.errors import BadInput

P = ParamSpec("P")
R = TypeVar("R")
#: Seeds of the plateau study's protocol: of its first stage, and of the finalists beside it.
FIRST_SEED = 42
MORE_SEEDS = (1337, 2026, 7, 99)
PROTOCOL_SEEDS = (FIRST_SEED, *MORE_SEEDS)


@dataclass(frozen=True)
class Bands:
    """Where the trade-off metrics look.

    Attributes:
        d1_lpm: LPM averages Φ over call rates up to this.
        d1_mpm: MPM starts here.
        low, high: ρ₁ and ρ₂, shares of the gap between the two models.

    As published (`as_published`) LPM averages the grid's call rates from
    `d1_lpm` to `d1_mpm`, where MPM starts too.

    Raises:
        BadInput: a bound is outside [0, 1], or the two of a band are in the wrong order.
    """

    d1_lpm: float = 0.25
    d1_mpm: float = 0.30
    low: float = 0.85
    high: float = 0.95

    def __post_init__(self) -> None:
        ordered = 0 < self.d1_lpm <= self.d1_mpm < 1 and 0 <= self.low <= self.high <= 1
        if not ordered:
            raise BadInput(
                f"these are no bands: call rates {self.d1_lpm:g} and {self.d1_mpm:g}, shares "
                f"{self.low:g} and {self.high:g}",
                next_step="give 0 < d1_lpm ≤ d1_mpm < 1 and 0 ≤ low ≤ high ≤ 1, such as "
                "0.25,0.30,0.85,0.95",
            )


@dataclass(frozen=True)
class EvaluationSettings:
    """How routers are fitted, asked and compared. Equal settings are one key of what is kept.

    Attributes:
        scheme: Split scheme. Default: the release's own, `upstream` before `dense`.
        split: Split that is measured.
        seeds: Fits per router, for mean ± sd: a number (seeds 0, 1, …), seeds with commas
            between, or `zoo` for those of `zoo run`. Metrics are of the first.
        splits: Other draws of the split on which each router is fitted and tested too: accuracy
            and gain over the best single model as mean ± sd over them.
        resamples: Number of bootstrap resamples.
        seed: Seed of the bootstrap.
        cluster: Resample whole groups: duplicates or task.
        points: Number of points of each deferral curve.
        scaling: How utility scales costs: min-max, …
        pair: Two models, small,large, for binary routing. Default: those of a pool of two.
        pair_routers: Also train the pair routers.
        binary_by: How a pool's router routes a pair: by the small one's confidence, or by
            the difference of both.
        basis: Preferences that pair routers learn from, by what decided them.
        bands: Shares of the gap, 0 to 1: LPM ends, MPM begins, low band, high band.
        all: Compute every figure, not only those that pages, cards and studies show.
        ood: Retrain without each task group (and without the models that the release calls
            unseen) and measure the change.
        ood_groups: name=pattern,pattern, or stem, math, …: hold such tasks out. Again for more.
        reference: Model that v_r compares with. Default: best on train.
        timed: Time the routers; such files differ from run to run.
        embed_seconds: Seconds it takes to embed one question, added to the time of a decision.
        usd_per_hour: Price of the machine that routes, in USD per hour; implies timed.
        embed: Compute the embeddings that the release lacks.
        encoder: Of the questions; one that the release lacks is computed. Default: the release's
            own, else with `embed` that of their words, `tfidf`.
        device: Computes such an encoder: auto (a GPU where there is one), cpu, cuda or mps.
    """

    scheme: str | None = None
    split: str = "test"
    seeds: tuple[int, ...] = (0,)
    splits: int = 0
    resamples: int = 10_000
    seed: int = 0
    cluster: str | None = None
    points: int = 100
    scaling: str = "min-max"
    pair: tuple[str, str] | None = None
    pair_routers: bool = True
    binary_by: str = "confidence"
    basis: str | None = None
    bands: Bands = field(default_factory=Bands)
    all: bool = False
    ood: bool = False
    ood_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    reference: str | None = None
    timed: bool = False
    embed_seconds: float = 0.0
    usd_per_hour: float | None = None
    embed: bool = False
    encoder: str | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        """Take seeds and groups as people write them.

        Raises:
            BadInput: there is no seed, or one occurs twice.
        """
        object.__setattr__(self, "seeds", seeds_of(self.seeds))
        if self.usd_per_hour is not None:
            object.__setattr__(self, "timed", True)
        if self.pair is not None:
            object.__setattr__(self, "pair", tuple(self.pair))
        groups = self.ood_groups or ()
        items = groups.items() if isinstance(groups, Mapping) else groups
        results = tuple((name, tuple(patterns)) for name, patterns in items)
        object.__setattr__(self, "ood_groups", results)

    def but(self, **changes: Any) -> EvaluationSettings:
        """The same settings with some of them changed."""
        return replace(self, **changes) if changes else self

    def to_json(self) -> dict[str, Any]:
        """Every setting by name, as JSON holds it."""
        return {**asdict(self), "ood_groups": {k: list(v) for k, v in self.ood_groups}}


def setting_helps() -> dict[str, str]:
    """Setting → what it is, in one line, from the docstring of `EvaluationSettings`."""
    about = inspect.cleandoc(EvaluationSettings.__doc__ or "").partition("Attributes:\n")[2]
    result = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", about, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in result}


def lists_settings(function: Callable[P, R]) -> Callable[P, R]:
    """A function that takes settings as `**more`, whose signature and help name each of them."""
    own = inspect.signature(function)
    base, helps = EvaluationSettings(), setting_helps()
    named = [
        inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY,
                          default=getattr(base, item.name), annotation=item.type)
        for item in fields(base)
    ]  # fmt: skip
    params = [item for item in own.parameters.values() if item.kind is not item.VAR_KEYWORD]
    function.__signature__ = own.replace(parameters=[*params, *named])  # type: ignore[attr-defined]
    lines = "".join(f"\n    {item.name}: {helps[item.name]} [{item.default!r}]" for item in named)
    text = inspect.cleandoc(function.__doc__ or "")
    function.__doc__ = f"{text}\n\nSettings, with their defaults:{lines}\n"
    return function


def seeds_of(number: int | str | Sequence[int]) -> tuple[int, ...]:
    """Seeds of fits: n for 0 … n−1, seeds themselves (`42,7` as text), or `zoo`.

    Raises:
        BadInput: it is neither, or a seed occurs twice.

    >>> seeds_of("3"), seeds_of("42,7"), seeds_of("zoo")[:2]
    ((0, 1, 2), (42, 7), (42, 1337))
    """
    if number == "zoo":
        return PROTOCOL_SEEDS
    try:
        if isinstance(number, str):
            words = [word for word in number.split(",") if word.strip()]
            seeds = tuple(map(int, words)) if "," in number else tuple(range(int(number)))
        else:
            seeds = tuple(range(number)) if isinstance(number, int) else tuple(map(int, number))
    except (TypeError, ValueError):
        seeds = ()
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise BadInput(
            f"expected at least one fit, each with its own seed; got {number!r}",
            where="seeds",
            next_step="give a number such as 5, seeds such as 42,1337, or zoo",
        )
    return seeds
