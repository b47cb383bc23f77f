"""What a person sees while answers come in: one live table, or plain lines.

Per model: done of wanted, rate, errors by class, USD spent and projected, time
left. Without a terminal a line per model every ten seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from routeyard.flows.console import SafeConsole

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from routeyard.pipelines.collect.budget import ModelProgress, RunProgress

_EVERY_S = 10.0
#: What the latest run of this process had when it was last shown: for Ctrl-C.
_last: RunProgress | None = None
#: Simulated models: nobody pays their cost.
_simulated: frozenset[str] = frozenset()


@contextmanager
def collecting(
    console: Console | None = None,
    also: Callable[[str], None] | None = None,
    simulated: Iterable[str] = (),
) -> Iterator[Callable[[RunProgress], None]]:
    """Show snapshots on standard error; yields the function that takes them.

    Args:
        simulated: Ids of models whose money is marked as simulated.
        also: Told each plain line as well (a log); without a terminal only.
    """
    global _simulated
    _simulated = frozenset(simulated)
    console = console or SafeConsole(stderr=True)
    if not console.is_terminal:
        yield _noting(console, _plain_lines(console, also))
        return
    from rich.live import Live

    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield _noting(console, lambda now: live.update(table(now)))


def _noting(console: Console, show: Callable[[RunProgress], None]) -> Callable[[RunProgress], None]:
    said: set[str] = set()

    def noting(now: RunProgress) -> None:
        global _last
        _last = now
        for waits in {model.waits for model in now.models if model.waits} - said:
            said.add(waits)
            console.print(f"collect   {waits}", soft_wrap=True, markup=False)
        show(now)

    return noting


def kept() -> str | None:
    """What a run that is stopped now leaves in the ledger; None where nothing was asked."""
    if _last is None:
        return None
    said = f"{_last.done:,} of {_last.wanted:,} answers are kept in the ledger"
    paid = sum(model.spent_usd for model in _last.models)
    unknown = "+?" if any(model.unpriced for model in _last.models) else ""
    made_up = _made_up(*(model.model_id for model in _last.models))
    return f"{said} ({made_up}${paid:,.4f}{unknown} spent in this run)"


def table(now: RunProgress) -> Table:
    """The snapshot as a table, with a total when there are several models."""
    from rich.table import Table

    shown = Table(box=None, pad_edge=False)
    for name in ("model", "done", "rate", "in flight", "errors", "spent", "projected", "left"):
        shown.add_column(name, justify="left" if name in ("model", "errors") else "right")
    for model in now.models:
        shown.add_row(
            model.model_id,
            f"{model.done:,}/{model.wanted:,}",
            f"{model.rate:,.1f}/s",
            str(model.in_flight),
            _errors(model),
            _usd(model),
            "?" if model.projected_usd is None else f"${model.projected_usd:,.2f}",
            "paused" if model.paused else _waits(model) or duration(model.eta_s),
        )
    if len(now.models) > 1:
        shown.add_row(
            "all",
            f"{now.done:,}/{now.wanted:,}",
            f"{sum(model.rate for model in now.models):,.1f}/s",
            str(sum(model.in_flight for model in now.models)),
            "",
            f"{_made_up(*(model.model_id for model in now.models))}${now.spent_usd:,.4f}",
            "",
            duration(max((model.eta_s or 0.0 for model in now.models), default=0.0)),
        )
    return shown


def line(model: ModelProgress) -> str:
    """One model as a plain line: `NAME: done/wanted, …`."""
    parts = [f"{model.done:,}/{model.wanted:,}", f"{model.rate:,.1f}/s"]
    if model.errors:
        parts.append(_errors(model))
    parts.append(f"{_usd(model)} spent")
    if model.projected_usd is not None:
        parts.append(f"${model.projected_usd:,.2f} projected")
    left = _waits(model) or f"{duration(model.eta_s)} left"
    parts.append(f"paused: {model.paused}" if model.paused else left)
    return f"{model.model_id}: {', '.join(parts)}"


def _waits(model: ModelProgress) -> str:
    """That another process asks for what is left, and when its claims end; empty otherwise."""
    from routeyard.pipelines.collect.ledger import Lease

    if not model.held:
        return ""
    return (
        f"waits for {model.held:,} that another process asks for (asked here "
        f"{Lease.ends_after_s():.0f} s after its last sign of life)"
    )


def duration(seconds: float | None) -> str:
    """`4 s`, `12 min`, `3 h 20 min`; `?` when it is not known."""
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def _plain_lines(
    console: Console, also: Callable[[str], None] | None
) -> Callable[[RunProgress], None]:
    shown = time.monotonic()

    def show(now: RunProgress) -> None:
        nonlocal shown
        due = time.monotonic() - shown >= _EVERY_S
        # A run that ends before the first line is due needs none.
        if not due and not (now.finished and now.elapsed_s > 2):
            return
        shown = time.monotonic()
        for model in now.models:
            console.print(f"collect   {line(model)}", soft_wrap=True, markup=False)
            if also:
                also(line(model))

    return show


def _errors(model: ModelProgress) -> str:
    worst = sorted(model.errors.items(), key=lambda item: (-item[1], item[0]))
    return " ".join(f"{kind}:{count}" for kind, count in worst[:3])


def _usd(model: ModelProgress) -> str:
    """Spent; with a plus where some answers have no known cost."""
    money = f"${model.spent_usd:,.4f}" + ("+?" if model.unpriced else "")
    return _made_up(model.model_id) + money


def _made_up(*models: str) -> str:
    """What precedes money that nobody pays, as all the models are simulated."""
    return "simulated " if models and _simulated.issuperset(models) else ""
