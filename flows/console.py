"""What a person sees while a build runs: one line per stage, one bar for long work.

Everything goes to standard error, so that a command's result can be piped.
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import yaml
from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from routeyard.datacards.card import causes, sentence
from routeyard.pipelines.common.errors import few
from routeyard.schemas.contracts import StoredTable
from routeyard.schemas.questions import looked_for_duplicates
from routeyard.schemas.release import order_undecided, undecided_words
from routeyard.schemas.text import html_card, prose, visible
from routeyard.schemas.text import markdown as cell

if TYPE_CHECKING:
    from routeyard.pipelines.collect.budget import ModelProgress, RunProgress

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


# What a person sees while answers come in: one live table, or plain lines.
#
# Per model: done of wanted, rate, errors by class, USD spent and projected, time
# left. Without a terminal a line per model every ten seconds.

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


def progress_line(model: ModelProgress) -> str:
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
            console.print(f"collect   {progress_line(model)}", soft_wrap=True, markup=False)
            if also:
                also(progress_line(model))

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


# The summary of a release: what a person wants to see after a build.

# What `plan` and `build` give: the figures that `--json` prints, with the main ones by name.


class StepFigures(dict[str, Any], ABC):
    """Figures by name, shown as a card in a notebook."""

    @abstractmethod
    def _shown(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        """Title, main facts and rows of the card."""

    def __repr__(self) -> str:
        title, facts, _ = self._shown()
        told = (f"{name} {value}" for name, value in facts.items() if value is not None)
        return f"{title}: {', '.join(told)}"

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
        found = self.get("release")
        return Path(found["path"]) if found else None

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        """Stage → its fingerprint, whether it was reused, and its figures."""
        found: dict[str, dict[str, Any]] = self["stages"]
        return found

    def _shown(self) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
        rows = [{"stage": name, "reused": one["reused"]} for name, one in self.stages.items()]
        path = self.release
        title = "build" if path is None else f"build of {path.parent.name} {path.name}"
        reused = sum(row["reused"] for row in rows)
        facts = {"release": path, "stages": len(rows), "reused": reused}
        return title, facts, rows


_SQL = yaml.safe_load(Path(__file__).with_name("summary.yaml").read_text(encoding="utf-8"))


def figures(release: Path) -> dict[str, Any]:
    """Accuracy per model and task, oracle, best single model, duplicates and cost.

    Every figure is counted over labels that exist; `unlabelled` pairs are listed
    apart, never counted as wrong.
    """
    from routeyard.pipelines.release.query import connect

    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    with connect(release) as connection:

        def ask(name: str) -> list[dict[str, Any]]:
            done = connection.execute(_SQL[name])
            names = [column[0] for column in done.description]
            return [dict(zip(names, row, strict=True)) for row in done.fetchall()]

        per_model, single = ask("per_model"), next(iter(ask("best_single")), None)
        costs = {row["model"]: row["usd"] for row in ask("costs")}
        return {
            **ask("facts")[0],
            "best_single": [" and ".join(single["models"]), single["accuracy"]] if single else None,
            "order_undecided": _undecided(single["models"][0], per_model, single["judged"])
            if single
            else "",
            # On the questions that the best single model has a label for.
            "oracle": single["oracle"] if single else None,
            "losses": _losses(release),
            "notes": _notes(manifest),
            # Without a rule the table is there and empty, but nobody looked.
            "duplicates": ask("duplicates")[0]
            if looked_for_duplicates(manifest["recipe"])
            else None,
            "cost_usd": sum(costs.values()) if len(costs) == len(per_model) and costs else None,
            # What is known of the others is given all the same.
            "cost_known_usd": sum(costs.values()) if costs else None,
            "cost_unknown_of": [row["model"] for row in per_model if row["model"] not in costs],
            "per_model": [{**row, "cost_usd": costs.get(row["model"])} for row in per_model],
            "per_task": ask("per_task"),
        }


def _undecided(first: str, per_model: list[dict[str, Any]], questions: int) -> str:
    """Why no model is called best; empty where missing labels do not leave it open."""
    counts = {
        row["model"]: ((row["accuracy"] or 0.0) * row["labelled"], row["labelled"], questions)
        for row in per_model
    }
    others = order_undecided(counts, first)
    return undecided_words(first, others) if others else ""


def _losses(release: Path) -> list[dict[str, Any]]:
    """Why pairs have no label, counted over the release's own tables."""
    names = ("queries", "models", "labels", "responses", "verdicts", "outcomes")
    files = {name: release / "data" / f"{name}.parquet" for name in names}
    return causes({name: StoredTable(path) for name, path in files.items() if path.is_file()})


def _notes(manifest: Mapping[str, Any]) -> list[str]:
    """What reading the sources had to say, and questions that were left out of them."""
    ingested = (manifest.get("figures") or {}).get("ingest") or {}
    notes = [str(one) for one in ingested.get("notes") or []]
    if removed := ingested.get("removed"):
        notes.append(f"{removed:,} questions of the sources were left out (table `removals`)")
    return notes


def markdown(release: Path) -> str:
    """The summary as Markdown, for a Prefect artifact."""
    said = figures(release)
    lines = [f"**{release.parent.name} {release.name}**", ""]
    lines += [f"- {prose(text)}" for text in _facts(said)]
    lines += [
        "",
        "| model | accuracy | labelled | "
        + ("simulated USD |" if said["simulated"] else "cost (USD) |"),
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {cell(row['model'])} | {_with_bounds(row)} | {row['labelled']:,} "
        f"| {_money(row['cost_usd'])} |"
        for row in said["per_model"]
    ]
    return "\n".join(lines)


def show_build(summary: Mapping[str, Any]) -> None:
    """Print the release of a build that reached it."""
    if release := summary.get("release"):
        console_summary(Path(release["path"]), release["status"])


def console_summary(release: Path, status: str) -> None:
    """Print the summary for a person: models, then tasks, then what to try."""

    console = printer()
    said = figures(release)
    console.print(_models(release, said))
    console.print(_tasks(said))
    for text in _facts(said):
        console.print(text)
    console.print(f"\nrelease   {release} ({status})", soft_wrap=True)
    console.print("\nNext:")
    for words in (f"view {release}", f"query {release} @leaderboard", f"audit {release}"):
        console.print(f"  routeyard {words}", soft_wrap=True, markup=False)


def _models(release: Path, said: dict[str, Any]) -> Table:
    table = Table(title=f"{release.parent.name} {release.name}", title_justify="left")
    for heading, justify in (("", "left"), ("model", "left"), ("accuracy %", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("labelled", justify="right")
    table.add_column("simulated USD" if said["simulated"] else "cost USD", justify="right")
    for sign, row in zip(_signs(said), said["per_model"], strict=True):
        accuracy, cost = _with_bounds(row), _money(row["cost_usd"])
        table.add_row(sign, row["model"], accuracy, f"{row['labelled']:,}", cost)
    return table


def _tasks(said: dict[str, Any]) -> Table:
    """Accuracy per task and model; for large pools the best model of each task."""
    by_task: dict[str, dict[str, float | None]] = {}
    leads: dict[tuple[str, str], float] = {}
    for row in said["per_task"]:
        by_task.setdefault(row["task"], {})[row["model"]] = row["accuracy"]
        # How far above the mean of the questions it was asked: the same questions for all.
        leads[row["task"], row["model"]] = row["lead"] or 0.0
    models = [row["model"] for row in said["per_model"]]
    table = Table(title="accuracy %, by task", title_justify="left")
    table.add_column("task", min_width=len("accuracy %"))
    if len(models) <= 12:
        for sign in _signs(said):
            table.add_column(sign, justify="right")
        for task, row in sorted(by_task.items()):
            table.add_row(task, *(_percent(row.get(model)) for model in models))
        return table
    table.add_column("best model")
    table.add_column("accuracy %", justify="right")
    for task, row in sorted(by_task.items()):
        known = {model: value for model, value in row.items() if value is not None}
        most = max((leads[task, model] for model in known), default=0.0)
        best = [model for model in known if leads[task, model] == most]
        table.add_row(task, few(best) or "-", _percent(known[best[0]] if best else None))
    return table


def _signs(said: dict[str, Any]) -> list[str]:
    """a, b, …, aa: short names of the models, in order of accuracy."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [
        letters[i] if i < 26 else letters[i // 26 - 1] + letters[i % 26]
        for i in range(len(said["per_model"]))
    ]


def _facts(said: dict[str, Any]) -> list[str]:
    facts = []
    if said["simulated"]:
        facts.append("The pool is SIMULATED: programs play the models. Do not cite the figures.")
    facts.append(
        f"{said['questions']:,} questions x {said['models']} models: {said['labels']:,} labels, "
        f"{said['unlabelled']:,} pairs without a label (not counted), "
        f"{said['contested']:,} contested, {said['unreadable']:,} unreadable"
    )
    for loss in said["losses"]:
        facts += [f"  {sentence(loss)}", f"    next: {loss['next']}"]
    facts += said["notes"]
    if said["best_single"]:
        model, accuracy = said["best_single"]
        single = "single model" if said["order_undecided"] else "best single model"
        facts.append(f"{single} {model} {_percent(accuracy)}, oracle {_percent(said['oracle'])}")
        facts += [said["order_undecided"]] if said["order_undecided"] else []
    if (found := said["duplicates"]) is None:
        facts.append("near-duplicates were not looked for (rule dedup)")
    else:
        facts.append(
            f"{found['groups']:,} groups of near-duplicates ({found['questions']:,} questions), "
            f"{found['conflicts']:,} of them with conflicting labels"
        )
    cost, unknown = said["cost_known_usd"], said["cost_unknown_of"]
    if cost is None:
        facts.append("cost unknown")
    else:
        without = f", without {few(unknown)}, whose cost is not known" if unknown else ""
        if said["simulated"]:
            facts.append(f"cost {_money(cost)} simulated USD, nothing was paid{without}")
        else:
            facts.append(f"cost {_money(cost)} USD{without}")
    return facts


def _with_bounds(row: dict[str, Any]) -> str:
    """Accuracy, and in brackets the bounds that undecided answers leave open."""
    accuracy = _percent(row["accuracy"])
    if (row["high"] or 0) - (row["low"] or 0) < 1e-12:
        return accuracy
    return f"{accuracy} ({_percent(row['low'])} to {_percent(row['high'])} with the undecided)"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _money(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
