"""What a paper prints, read from the `paper.yaml` in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from routeyard.pipelines.common.files import read_text
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import Study, StudyCell, Unit, declared_in
from routeyard.schemas.errors import BadInput

# A value as a paper prints it, and whether ours equals it.

Verdict = Literal["equal", "differs", "not comparable"]

#: Shown where the paper prints nothing.
NOTHING = "–"


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """A value with the digits it is printed with.

    Attributes:
        text: As printed, such as `68.38±0.1` or `-20.55`.
        value: In the scale of `StudyCell.value`: a share for percentages.
        within: Half a unit of its last digit, in the same scale.
        spread: The number after ±, in the same scale.
    """

    text: str
    value: float
    within: float
    spread: float | None = None


def printed_value(text: str, unit: Unit) -> PrintedValue | None:
    """The value that a paper's text means; None where it prints nothing.

    Raises:
        BadInput: the text is no number.

    >>> printed_value("68.38±0.1", "percent")
    PrintedValue(text='68.38±0.1', value=0.6838, within=5e-05, spread=0.001)
    """
    if text == NOTHING:
        return None
    number, _, spread = text.partition("±")
    scale = 0.01 if unit in ("percent", "points") else 1.0
    mantissa, _, exponent = number.replace(",", "").lower().partition("e")
    try:
        digits = len(mantissa.partition(".")[2])
        value = round(float(number.replace(",", "")) * scale, 12)
        within = round(0.5 * 10.0 ** (int(exponent or 0) - digits) * scale, 12)
        apart = round(float(spread) * scale, 12) if spread else None
    except ValueError as error:
        raise BadInput(f"{text!r} is no printed value: {error}") from error
    return PrintedValue(text, value, within, apart)


def verdict(printed: PrintedValue, cell: StudyCell | None, own: bool) -> Verdict:
    """What a computed cell says of a printed value.

    Equal: within half a unit of the last printed digit, or the printed value is in the 95 %
    interval. On other data than the paper's the paper's cell is not computed, whatever the value.
    """
    if cell is None or cell.value is None or not own:
        return "not comparable"
    # A digit of room for binary fractions: 0.6838 is no float.
    if abs(cell.value - printed.value) <= printed.within * (1 + 1e-9):
        return "equal"
    if cell.low is None or cell.high is None:
        return "differs"
    return "equal" if cell.low <= printed.value <= cell.high else "differs"


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Benchmark(_Row):
    """A benchmark that a paper measures on.

    Attributes:
        release: Name of the release that holds the paper's own data, as its recipe calls it.
        get: How such a release is made, and what that needs.
        size: Printed sizes that tell its data from others: `models`, `questions`, `test`.
        data: Shipped recipe that `--data` uses in its place; the paper's own where it is `release`.
        rehearsal: Recipe that is rehearsed where no release is named; `copies` of each of its rows.
        trained_on: Another benchmark, whose train questions the routers learn from.
        pair: (small, large) where it routes between two models.
        instead: Word of the paper's rows and columns → what `data` has in its place: a source for
            another, labels for votes.
        embed: Whether anything about it reads embeddings, which are made where they lack.
    """

    release: str = ""
    get: str
    size: dict[str, int] = Field(default_factory=dict)
    data: str | None = None
    rehearsal: str | None = None
    copies: int = 3
    trained_on: str | None = None
    pair: tuple[str, str] | None = None
    instead: dict[str, str] = Field(default_factory=dict)
    embed: bool = True


class SmallTuning(_Row):
    """What is trained end to end where no release is named: little data, a small encoder.

    Attributes:
        routers: Routers with a trained encoder.
        layers: Layers of the smaller encoder, which is the first of the larger one.
        rows: Numbers of train questions.
        tokens: Tokens that are read of a question.
    """

    routers: tuple[str, ...]
    layers: int
    rows: tuple[int, ...]
    epochs: int = 1
    tokens: int = 64


class PrintedColumn(_Row):
    """Where a printed column is found: a benchmark, a column of a study, its own unit."""

    benchmark: str | None = None
    column: str | None = None
    row: str | None = None
    unit: Unit | None = None


class Item(_Row):
    """A table or figure.

    Attributes:
        where: Its section of the paper.
        study: Study that computes it; empty where none can, and `lacks` says why.
        counts: It counts questions: of a release, or as a recipe asks for them.
        benchmarks: Those it is about, in the order of the paper.
        columns: Printed heading → where it is found. A heading that names a benchmark, and one
            that the study has too, need nothing more.
        rows: Printed heading → values, divided by spaces, `–` for none.
        names: Printed heading of a row → row of the study.
        row, column: Row or column of the study for all cells.
        derived: Printed headings of columns that are the mean of the others.
        lacks: Why it cannot be computed at all.
        remark: What is known to differ from the paper; the reason of values that differ.
        drawing: An illustration without measurements.
    """

    where: str
    title: str
    unit: Unit = "number"
    study: str = ""
    counts: bool = False
    benchmarks: tuple[str, ...] = ()
    columns: dict[str, PrintedColumn] = Field(default_factory=dict)
    rows: dict[str, str] = Field(default_factory=dict)
    names: dict[str, str] = Field(default_factory=dict)
    row: str | None = None
    column: str | None = None
    derived: tuple[str, ...] = ()
    lacks: str = ""
    remark: str = ""
    drawing: bool = False

    @model_validator(mode="before")
    @classmethod
    def _short_columns(cls, value: Any) -> Any:
        """`columns` as a list of headings, or heading → column of the study."""
        columns = value.get("columns", {})
        if isinstance(columns, list):
            columns = {name: {} for name in columns}
        long = {k: {"column": v} if isinstance(v, str) else v or {} for k, v in columns.items()}
        return {**value, "columns": long}

    @model_validator(mode="after")
    def _whole_rows(self) -> Item:
        for name, values in self.rows.items():
            if len(values.split()) != len(self.columns):
                raise ValueError(
                    f"the row {name!r} has {len(values.split())} values for "
                    f"{len(self.columns)} columns"
                )
        return self


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """One printed value, and where its own is computed: benchmark, row and column of a study."""

    item: str
    row: str
    column: str
    unit: Unit
    printed: PrintedValue
    on: str
    study_row: str
    study_column: str
    derived: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper: what it is called, what it measures on, and everything it prints.

    Attributes:
        name: As in `routeyard reproduce NAME`.
        routers: Routers of its studies, instead of those that a study names; `zoo` runs them
            under the protocol of the zoo.
        names: Printed name of a router → ours.
        prepare: `module:function` of the paper's folder that gives a replacement what it lacks.
        tuning: Trainings that are made where no release is named; None makes none.
        without: Row of a study, or the part before its colon → what a release needs to have it.
    """

    name: str
    title: str
    reference: str
    benchmarks: Mapping[str, Benchmark]
    items: Mapping[str, Item]
    names: Mapping[str, str] = field(default_factory=dict)
    routers: Sequence[str] = ()
    encoders: Mapping[str, str] = field(default_factory=dict)
    zoo: bool = False
    prepare: str = ""
    tuning: SmallTuning | None = None
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def study_routers(self) -> tuple[str, ...]:
        """Routers that take the place of those a study names; a zoo's come with its cells."""
        return () if self.zoo else tuple(self.routers)

    @property
    def reads(self) -> set[str]:
        """Arguments of `routeyard.reproduce` that change what it comes to: of `routers`, `encoders`
        and `search`."""
        studies = [STUDIES.get(item.study) for item in self.items.values() if item.study]
        routers = {"routers"} if any("routers" in study.takes for study in studies) else set()
        return routers | ({"encoders", "search"} if self.zoo else set())

    def cells(self, item: str) -> Iterator[PrintedCell]:
        """The printed values of one table or figure, row by row."""
        result = self.items[item]
        for row, values in result.rows.items():
            for (column, place), text in zip(result.columns.items(), values.split(), strict=True):
                unit = place.unit or result.unit
                value = printed_value(text, unit)
                if value is None:
                    continue
                only = result.benchmarks[0] if len(result.benchmarks) == 1 else None
                candidates = (place.benchmark, only, column, row)
                on = next((name for name in candidates if name in self.benchmarks), "")
                yield PrintedCell(
                    item, row, column, unit, value,
                    on=on or next(iter(result.benchmarks or self.benchmarks)),
                    study_row=place.row or result.row or result.names.get(row)
                    or self.names.get(row, row),
                    study_column=place.column or result.column or column,
                    derived=column in result.derived,
                )  # fmt: skip

    def benchmarks_of(self, item: str) -> list[str]:
        """Benchmarks that a table or figure is about."""
        result = self.items[item]
        named = list(dict.fromkeys(cell.on for cell in self.cells(item) if not cell.derived))
        return list(result.benchmarks) or named or list(self.benchmarks)


def paper_of(package: str) -> tuple[Paper, Callable[[str], Study]]:
    """What entry points name in a paper's package: the paper, and a study that it declares."""
    folder = Path(__file__).parent / package.rpartition(".")[2]
    return read_paper(folder), partial(declared_in, package)


def read_paper(folder: Path) -> Paper:
    """The paper that `paper.yaml` in a folder declares; its name is the folder's."""
    path = folder / "paper.yaml"
    text: dict[str, Any] = read_text(path.read_text(encoding="utf-8"), where=str(path))
    benchmarks = {k: Benchmark.model_validate(v) for k, v in text.pop("benchmarks").items()}
    items = {k: Item.model_validate(v) for k, v in text.pop("items").items()}
    tuning = text.pop("tuning", None)
    small = None if tuning is None else SmallTuning.model_validate(tuning)
    return Paper(folder.name, benchmarks=benchmarks, items=items, tuning=small, **text)
