"""Steps from wherever they are: a release, an import, a Parquet file or a gateway's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.trajectories import ArmPrice, cache_rule, price_of_row
from routeyard.schemas import STEPS

#: File of steps in the folder of an import.
STEPS_FILE = "steps.parquet"


@dataclass(frozen=True)
class RecordedSteps:
    """Steps, prices that came with them, and what a reader must know of them.

    Attributes:
        models: model_id → row with prices, where a release has them.
    """

    steps: pa.Table
    models: Mapping[str, Mapping[str, Any]]
    doubts: tuple[str, ...] = ()
    #: What was asked in each step, in the order of `steps`; empty where it is not kept.
    prompts: tuple[str | None, ...] = ()


def read_steps(path: Path, *, named: str | None = None, prompts: bool = False) -> RecordedSteps:
    """The steps at a path, checked against their contract.

    Args:
        named: Which key of a log is what, `role=key,role=key`, where it is not as listed.
        prompts: Keep what was asked, where the place holds it.

    Raises:
        BadInput: the place has none.
    """
    if (path / "manifest.json").is_file():
        from routeyard.pipelines.release.reader import open_release

        with open_release(path) as release:
            models = {row["model_id"]: row for row in release.arrow("models").to_pylist()}
            return RecordedSteps(STEPS.check(release.arrow("steps"), where=str(path)), models)
    file = path / STEPS_FILE if path.is_dir() else path
    if file.suffix == ".parquet" and file.is_file():
        import pyarrow.parquet as pq

        from routeyard.pipelines.common.untrusted import regular

        regular(file)
        if set(STEPS.key) <= set(pq.read_schema(file).names):
            return RecordedSteps(STEPS.check(pq.read_table(file), where=str(file)), {})
    from routeyard.pipelines.ingest.logs import read_log

    log = read_log(path, named=named, prompts=prompts)
    left_out = (f"left out: {count:,} {why}" for why, count in log.left_out.items())
    return RecordedSteps(log.steps, {}, (*log.doubts, *left_out), tuple(log.prompts))


def arm_prices(
    models: Mapping[str, Mapping[str, Any]],
    pool: Path | None,
    caches: Sequence[str],
    arms: Iterable[str] = (),
) -> dict[str, ArmPrice]:
    """Arm → price and cache rule: of the pool file, else of the release, else the list price.

    Args:
        pool: A YAML file with `models`: `model_id`, `price_in`, `price_out`, `price_cache_read`,
            `price_cache_write` in USD per 10^6 tokens.
        caches: `ARM=RULE` each; a rule alone is that of all arms.
        arms: Names as gateways write them, `provider/model`, whose list prices may be used.

    Raises:
        BadInput: the file has no models, or a rule is of no arm.
    """
    rows = dict(models)
    if pool is not None:
        rows |= _pool_rows(pool)
    rows |= {name: row for name in arms if name not in rows and (row := _listed(name))}
    named = [item.rpartition("=") for item in caches]
    for arm, _, rule in named:
        cache_rule(rule)
        if arm and arm not in rows:
            raise BadInput(f"no price is stated of the arm {arm!r}", where=f"--cache {arm}={rule}")
    of_all = next((rule for arm, _, rule in named if not arm), None)
    rules = {arm: rule for arm, _, rule in named if arm}
    return {name: price_of_row(row, rules.get(name, of_all)) for name, row in rows.items()}


def arms_in(policies: Iterable[str], recorded: Iterable[str]) -> set[str]:
    """Names of arms that answered, and what may be names of arms in policies."""
    return {*recorded, *(part for text in policies for part in text.split(":") if "/" in part)}


def _listed(name: str) -> dict[str, Any] | None:
    """Row with the list price of `provider/model`; None where that exact one is not listed."""
    from routeyard.pipelines.collect.prices import list_price

    provider, _, model = name.partition("/")
    price = list_price(provider, model) if model else None
    return None if price is None else {"model_id": name, "provider": provider, **price.columns}


def _pool_rows(path: Path) -> dict[str, dict[str, Any]]:
    from routeyard.pipelines.common.files import read_text

    content = read_text(path.read_text(encoding="utf-8"), where=str(path))
    listed = content.get("models") if isinstance(content, dict) else content
    if not isinstance(listed, list) or not all(
        isinstance(row, dict) and "model_id" in row for row in listed
    ):
        raise BadInput(
            "a list `models` is expected, each with a `model_id`",
            where=str(path),
            next_step="as in the pool of a recipe: model_id, price_in, price_out, "
            "price_cache_read, price_cache_write (USD per 10^6 tokens)",
        )
    for row in listed:
        for name, value in row.items():
            if name.startswith("price_") and isinstance(value, int | float) and value < 0:
                raise BadInput(f"{name} of {row['model_id']!r} is {value}", where=str(path))
    return {str(row["model_id"]): row for row in listed}


def priced_from(
    models: Mapping[str, Mapping[str, Any]], pools: Sequence[Path]
) -> list[tuple[float, dict[str, Mapping[str, Any]]]]:
    """(second from which they hold, model_id → row), in order of time; the first hold from ever.

    Rows of a later `price_date` replace those of an earlier one from that day on.

    Raises:
        BadInput: a date is not one.
    """
    dated: dict[str, dict[str, Mapping[str, Any]]] = {}
    for number, pool in enumerate(pools):
        for name, row in _pool_rows(pool).items():
            day = str(row.get("price_date") or "") if number else ""
            dated.setdefault(day, {})[name] = row
    numbers: list[tuple[float, dict[str, Mapping[str, Any]]]] = []
    now: dict[str, Mapping[str, Any]] = dict(models)
    for day in sorted({"", *dated}):
        now = now | dated.get(day, {})
        numbers.append((day_second(day), now))
    return numbers


def day_second(day: str) -> float:
    """Seconds since 1970 at the start of a day; −∞ for an empty text.

    Raises:
        BadInput: it is no day.
    """
    from datetime import UTC, datetime

    if not day:
        return float("-inf")
    try:
        return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise BadInput(f"{day!r} is no day", where="price_date") from error


@cache
def _pages() -> Environment:
    pages = Environment(
        loader=PackageLoader("routeyard.extensions.traffic"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  Markdown and plain text, not HTML
    )
    pages.filters |= {"n": "{:,}".format, "percent": "{:.1%}".format, "ends": with_ends}
    pages.filters["usd"] = lambda amount: "unknown" if amount is None else f"{amount:.4g}"
    return pages


def page(name: str, report: Any) -> Iterator[str]:
    """Lines of a report by its template."""
    text = _pages().get_template(f"{name}.jinja").render(r=report)
    yield from text.removesuffix("\n").split("\n")


def with_ends(estimate: tuple[float, float, float] | None) -> str:
    """An estimate with its interval; one task alone has none.

    >>> with_ends((2.0, 1.0, 3.5)), with_ends((2.0, float("nan"), float("nan"))), with_ends(None)
    ('2 (1 to 3.5)', '2 (one task)', 'unknown')
    """
    if estimate is None:
        return "unknown"
    value, low, high = estimate
    return f"{value:.4g} (one task)" if low != low else f"{value:.4g} ({low:.4g} to {high:.4g})"
