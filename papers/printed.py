"""A value as a paper prints it, and whether ours equals it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.studies.study import StudyCell, Unit

Verdict = Literal["equal", "differs", "cannot be computed"]

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
        return "cannot be computed"
    # A digit of room for binary fractions: 0.6838 is no float.
    if abs(cell.value - printed.value) <= printed.within * (1 + 1e-9):
        return "equal"
    if cell.low is None or cell.high is None:
        return "differs"
    return "equal" if cell.low <= printed.value <= cell.high else "differs"
