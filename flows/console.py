"""What a person sees while a build runs: one line per stage, one bar for long work.

Everything goes to standard error, so that a command's result can be piped.
"""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from routeyard.schemas.text import html_card, visible

if TYPE_CHECKING:
    from routeyard.pipelines.collect.budget import RunProgress, Tally

# Standard output through which strangers' text cannot steer a terminal.
#
# Ids, headers and answers of models are printed by many commands: this is the one
# place where signs that a terminal acts on become visible.


def coloured(stream: TextIO) -> bool:
    """Whether a stream gets colours: a terminal does, unless `NO_COLOR` is set; with
    `FORCE_COLOR` every stream does."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


class Visible:
    """A text stream in which nothing reaches a terminal but text, lines and tabs."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text with `�` for signs that act."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As `write`, line by line."""
        for item in lines:
            self.write(item)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class SafeConsole(Console):
    """Rich's console for texts of strangers: no markup in them, no sign that a terminal obeys."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)

    @property
    def file(self) -> Any:
        """The stream itself: what `Visible` would take away is Rich's own here."""
        stream = super().file
        return stream.stream if isinstance(stream, Visible) else stream

    @file.setter
    def file(self, new: Any) -> None:
        self._file = new

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Segments whose words are visible; colours and movements are Rich's own."""
        for item in super().render(renderable, options):
            yield item if item.control else Segment(visible(item.text), item.style)


_console = SafeConsole(stderr=True)
#: Columns where standard output is no terminal.
_PIPED = 200


def silence() -> None:
    """Show nothing from here on: `--quiet`."""
    _console.quiet = True


def printer() -> Console:
    """Where a command prints its result: as wide as the terminal, and wide when it is piped.

    A pipe has no width; tables of long names are not folded into it.
    """
    return SafeConsole(width=None if sys.stdout.isatty() else _PIPED)


def table(
    columns: Iterable[str], rows: Iterable[Iterable[str]], *, texts: int = 1, **look: Any
) -> Table:
    """A table whose first columns hold texts, and the others numbers."""
    made = Table(**look)
    for place, heading in enumerate(columns):
        made.add_column(heading, justify="left" if place < texts else "right")
    for row in rows:
        made.add_row(*row)
    return made


def line(stage: str, text: str) -> None:
    """Print a line about a stage."""
    style = "bold yellow" if stage in ("note", "waived") else "bold cyan"
    further = text.replace("\n", "\n" + " " * 10)  # a name with a line break begins no line
    _console.print(Text.assemble((f"{stage:<9}", style), " ", further), soft_wrap=True)


#: Seconds from one line of progress to the next, where none can be drawn again.
_EVERY_S = 10.0
#: Shows lines, further ones where they are drawn again, and whether they are the last.
Show = Callable[[list[str], list[str], bool], None]


@contextmanager
def _progress(
    stage: str, console: Console, also: Callable[[str], None] | None = None
) -> Iterator[Show]:
    """Lines of progress: drawn again on a terminal, printed every ten seconds elsewhere."""
    if console.is_terminal:
        from rich.live import Live

        def draw(lines: list[str], more: list[str], last: bool) -> None:
            live.update(Text("\n".join(f"{stage:<9} {text}" for text in [*lines, *more])))

        with Live(console=console, refresh_per_second=4, transient=True) as live:
            yield draw
        return
    shown = time.monotonic()

    def show(lines: list[str], more: list[str], last: bool) -> None:
        nonlocal shown
        if not last and time.monotonic() - shown < _EVERY_S:
            return
        shown = time.monotonic()
        for text in lines:
            console.print(f"{stage:<9} {text}", soft_wrap=True, markup=False)
            if also:
                also(text)

    yield show


@contextmanager
def counter(stage: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Rate and time left of long work; yields a function of (done, wanted)."""
    started = time.monotonic()
    with _progress(stage, _console) as show:

        def advance(done: int, wanted: int) -> None:
            passed = max(time.monotonic() - started, 1e-6)
            rate = done / passed
            speed = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
            left = f", {duration((wanted - done) / rate)} left" if rate else ""
            # What ends before a first line is due needs none.
            last = done >= wanted and passed >= 2
            show([f"{done:,}/{wanted:,} {unit}, {speed}{left}"], [], last)

        yield advance


# What a person sees while answers come in: a line per model.
#
# Done of wanted, rate, errors by class, USD spent and projected, time left.

#: What the latest run of this process had when it was last shown: for Ctrl-C.
_last: RunProgress | None = None
#: Simulated models: nobody pays their cost.
_simulated: frozenset[str] = frozenset()


@contextmanager
def collecting(
    console: Console = _console,
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
    said: set[str] = set()
    with _progress("collect", console, also) as show:

        def snapshot(now: RunProgress) -> None:
            global _last
            _last = now
            for waits in {model.waits for model in now.models if model.waits} - said:
                said.add(waits)
                console.print(f"collect   {waits}", soft_wrap=True, markup=False)
            lines = [progress_line(model) for model in now.models]
            show(lines, _all_models(now), now.finished and now.elapsed_s > 2)

        yield snapshot


def stored_answers() -> str | None:
    """What a run that is stopped now leaves in the ledger; None where nothing was asked."""
    if _last is None:
        return None
    said = f"{_last.done:,} of {_last.wanted:,} answers are kept in the ledger"
    paid = sum(model.spent_usd for model in _last.models)
    unknown = "+?" if any(model.unpriced for model in _last.models) else ""
    made_up = _made_up(*(model.model_id for model in _last.models))
    return f"{said} ({made_up}${paid:,.4f}{unknown} spent in this run)"


def _all_models(now: RunProgress) -> list[str]:
    """A line for all models, where there are several."""
    if len(now.models) < 2:
        return []
    made_up = _made_up(*(model.model_id for model in now.models))
    money = f"{made_up}${now.spent_usd:,.4f}"
    left = duration(max(model.eta_s or 0.0 for model in now.models))
    before = sum(model.before for model in now.models)
    return [f"all: {_done(now.done, now.wanted, before)}, {_spent(money, before)}, {left} left"]


def _done(done: int, wanted: int, before: int) -> str:
    there = f" ({before:,} of an earlier run)" if before else ""
    return f"{done:,}/{wanted:,}{there}"


def _spent(money: str, before: int) -> str:
    """Only answers of an earlier run are counted with those of this one, not their money."""
    return f"{money} spent{' in this run' if before else ''}"


def progress_line(model: Tally) -> str:
    """One model as a plain line: `NAME: done/wanted, …`."""
    parts = [_done(model.done, model.wanted, model.before), f"{model.rate:,.1f}/s"]
    if model.errors:
        parts.append(_errors(model))
    parts.append(_spent(_usd(model), model.before))
    if model.projected_usd is not None:
        parts.append(f"${model.projected_usd:,.2f} projected")
    left = _waits(model) or f"{duration(model.eta_s)} left"
    parts.append(f"paused: {model.paused}" if model.paused else left)
    return f"{model.model_id}: {', '.join(parts)}"


def _waits(model: Tally) -> str:
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


def _errors(model: Tally) -> str:
    worst = sorted(model.errors.items(), key=lambda item: (-item[1], item[0]))
    return " ".join(f"{kind}:{count}" for kind, count in worst[:3])


def _usd(model: Tally) -> str:
    """Spent; with a plus where some answers have no known cost."""
    money = f"${model.spent_usd:,.4f}" + ("+?" if model.unpriced else "")
    return _made_up(model.model_id) + money


def _made_up(*models: str) -> str:
    """What precedes money that nobody pays, as all the models are simulated."""
    return "simulated " if models and _simulated.issuperset(models) else ""


# What `plan` and `build` give: the figures that `--json` prints, with the main ones by name.


class StepFigures(dict[str, Any], ABC):
    """Figures by name, shown as a card in a notebook."""

    @abstractmethod
    def _shown(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        """Title, main facts and rows of the card."""

    def __repr__(self) -> str:
        title, facts, _ = self._shown()
        parts = (f"{name} {value}" for name, value in facts.items() if value is not None)
        return f"{title}: {', '.join(parts)}"

    def _repr_html_(self) -> str:
        return html_card(*self._shown())


class BuildPlan(StepFigures):
    """What a build would ask and cost. Unknown figures are None."""

    @property
    def queries(self) -> int:
        """Questions of the benchmark."""
        return int(self["queries"])

    @property
    def calls(self) -> int | None:
        """Requests to models that are still to be sent."""
        return self.get("calls")

    @property
    def estimated_usd(self) -> float | None:
        """What they are expected to cost, in US dollars; None where a price is unknown."""
        return self.get("estimated_usd")

    @property
    def models(self) -> list[dict[str, Any]]:
        """Calls, tokens and US dollars of each model; empty for recorded answers."""
        return list(self.get("models") or [])

    @property
    def notes(self) -> list[str]:
        """What will be lost, not looked for, or cannot be known."""
        return list(self.get("notes") or [])

    def _shown(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        cost = self.estimated_usd
        usd = (
            None if cost is None else f"{'simulated ' if self.get('simulated') else ''}${cost:,.4f}"
        )
        facts = {"questions": self.queries, "models": self["models_in_pool"], "calls": self.calls}
        title = f"plan of {self['benchmark']} {self['version']}"
        return title, {**facts, "cost": usd or "unknown", "notes": len(self.notes)}, self.models


class BuildResult(StepFigures):
    """A build: its stages, and the release if it came so far."""

    @property
    def release(self) -> Path | None:
        """Folder of the release; None for a build that stopped at an earlier stage."""
        result = self.get("release")
        return Path(result["path"]) if result else None

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        """Stage → its fingerprint, whether it was reused, and its figures."""
        result: dict[str, dict[str, Any]] = self["stages"]
        return result

    def _shown(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        rows = [{"stage": name, "reused": stage["reused"]} for name, stage in self.stages.items()]
        path = self.release
        title = "build" if path is None else f"build of {path.parent.name} {path.name}"
        reused = sum(row["reused"] for row in rows)
        facts = {"release": path, "stages": len(rows), "reused": reused}
        return title, facts, rows
