"""What a person sees while a build runs: one line per stage, one bar for long work.

Everything goes to standard error, so that a command's result can be piped.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from routeyard.schemas.text import visible

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
        for one in lines:
            self.write(one)

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
        for one in super().render(renderable, options):
            yield one if one.control else Segment(visible(one.text), one.style)


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


def line(stage: str, text: str) -> None:
    """Print a line about a stage."""
    style = "bold yellow" if stage in ("note", "waived") else "bold cyan"
    further = text.replace("\n", "\n" + " " * 10)  # a name with a line break begins no line
    _console.print(Text.assemble((f"{stage:<9}", style), " ", further), soft_wrap=True)


def hours(seconds: float) -> str:
    """A stretch of time, roughly.

    >>> hours(90), hours(7200)
    ('2 minutes', '2.0 hours')
    """
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{-(-seconds // 60):.0f} minutes"


@contextmanager
def counter(stage: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with rate and ETA on a terminal, a line every ten seconds elsewhere.

    Yields a function of (done, wanted).
    """
    if not sys.stderr.isatty() or _console.quiet:
        yield _lines(stage, unit)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn(f"[bold]{stage:<9}[/bold]"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=_console,
        transient=True,
    ) as progress:
        bar = progress.add_task(stage, total=None, rate="")
        started = time.monotonic()

        def advance(done: int, wanted: int) -> None:
            passed = max(time.monotonic() - started, 1e-6)
            progress.update(
                bar, completed=done, total=wanted, rate=f"{done / passed:,.0f} {unit}/s"
            )

        yield advance


def _lines(stage: str, unit: str) -> Callable[[int, int], None]:
    started = said = time.monotonic()

    def advance(done: int, wanted: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < 10 and done < wanted:
            return
        if done >= wanted and now - started < 2:
            return
        said = now
        rate = done / max(now - started, 1e-6)
        speed = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
        left = f", {(wanted - done) / rate:,.0f} s left" if rate else ""
        _console.print(f"{stage:<9} {done:,}/{wanted:,} {unit}, {speed}{left}")

    return advance
