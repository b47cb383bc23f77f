"""Base of all errors: what happened, where, and the next step.

Defined here because the contracts raise them; `routeyard.pipelines.common.errors` holds the
whole hierarchy and is where other packages import from.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from routeyard.schemas.text import in_line, visible


class ExplainedError(Exception):
    """An error that is meant for a person.

    Args:
        what: One sentence: what happened.
        where: File, row, model or query the error is about.
        next_step: The command or edit that mends it.
    """

    def __init__(self, what: str, *, where: str | None = None, next_step: str | None = None):
        self.what = what
        self.where = where
        self.next_step = next_step
        super().__init__(what)

    def __str__(self) -> str:
        # Terminals, logs and Prefect's pages show this, and files and servers of others name it:
        # what they name begins no line.
        lines = [_indented(self.what)]
        if self.where:
            lines.append(f"  where: {in_line(self.where)}")
        if self.next_step:
            lines.append(f"  next:  {_indented(self.next_step)}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (labelling and sandbox workers).
        return (_rebuild, (type(self), self.what, self.where, self.next_step))


def _indented(text: str) -> str:
    """Text whose further lines are further in than any line of a message begins."""
    return visible(text).replace("\n", "\n         ")


def _rebuild(
    kind: type[ExplainedError], what: str, where: str | None, next_step: str | None
) -> ExplainedError:
    error = kind.__new__(kind)
    ExplainedError.__init__(error, what, where=where, next_step=next_step)
    return error


class RouteyardError(ExplainedError):
    """Base of our errors.

    `exit_code` is what the command line exits with: 2 for bad input, 3 for a
    failed gate, 1 for anything else.
    """

    exit_code = 1


class BadInput(RouteyardError):
    """Something a person can mend: a recipe, a file, a name. Exit code 2."""

    exit_code = 2


class ContractError(BadInput):
    """A table breaks its contract."""


class RecipeError(BadInput):
    """A recipe, pool file or mapping is not valid."""


class UnknownName(BadInput):
    """A name that no registry lists."""


#: Names that an error lists; of more it names the nearest.
_LISTED = 12


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the closest known name, else the known names; of many the nearest."""
    names = sorted(known)
    close = [known for known in names if len(name) > 2 and known.startswith(name)]
    close = close or difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    if len(names) > _LISTED:
        near = ", ".join(map(repr, difflib.get_close_matches(name, names, n=3, cutoff=0)))
        return f"the nearest of {len(names)} are {near}"
    return "known: " + ", ".join(names) if names else "none are known"
