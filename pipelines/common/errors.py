"""The tree of errors; the command line prints them without a traceback.

    RouteyardError                exit 1   (routeyard.schemas.errors)
    ├── BadInput                  exit 2   a person can mend it
    │   ├── ContractError                  a table breaks its contract
    │   ├── RecipeError                    recipe, pool file or field mapping
    │   ├── UnknownName                    a name no registry lists
    │   ├── SourceError                    a source file or dataset cannot be read
    │   ├── RecordedError                  recorded responses do not fit
    │   ├── VersionExists                  a release version is taken by other content
    │   └── Unsafe                         refused: would run or open untrusted things
    ├── GateFailed                exit 3   a release, audit or certificate gate
    ├── ProviderError             exit 1   what a provider can answer
    │   ├── Retryable                      408, 409, 425, 429, 5xx, connection errors
    │   └── Permanent                      400, 422; a refused key or model is a GateFailed
    ├── BudgetReached             exit 1   a money limit stopped the run
    └── DiskFull                  exit 1   nothing half-written is left

`memory.OutOfMemory` (exit 1) is a `MemoryError`, so that nothing takes it for a fault of a file.

Every error says what happened, where (file, row, model, query) and the next
command or edit that mends it.
"""

from __future__ import annotations

from collections.abc import Sequence

from routeyard.schemas.errors import BadInput as BadInput
from routeyard.schemas.errors import ContractError as ContractError
from routeyard.schemas.errors import RecipeError as RecipeError
from routeyard.schemas.errors import RouteyardError as RouteyardError
from routeyard.schemas.errors import UnknownName as UnknownName
from routeyard.schemas.errors import did_you_mean as did_you_mean


class SourceError(BadInput):
    """A source file or dataset cannot be read as its mapping says."""


class RecordedError(BadInput):
    """Recorded responses do not fit the queries or the pool."""


class VersionExists(BadInput):
    """A release of that version exists with other content."""


class Unsafe(BadInput):
    """Refused, because it would run or open something untrusted."""


class GateFailed(RouteyardError):
    """A release, audit or certificate gate failed.

    `findings` of an audit's gate: each as `gate: what was found`.
    """

    exit_code = 3
    findings: tuple[str, ...] = ()


class ProviderError(RouteyardError):
    """What a provider answered instead of a completion."""


class Retryable(ProviderError):
    """Asking again can succeed."""


class Permanent(ProviderError):
    """Asking again cannot succeed."""


class BudgetReached(RouteyardError):
    """A money limit stopped the run before it was exceeded."""


class DiskFull(RouteyardError):
    """The disk is full; what was half-written has been removed."""


def few(names: Sequence[str], most: int = 3) -> str:
    """The first names of a list, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
