"""Errors of SQL over a release."""

from __future__ import annotations

from routeyard.pipelines.errors import BadInput, RouteyardError


class QueryError(BadInput):
    """SQL that DuckDB does not accept."""


class QueryLimit(RouteyardError):
    """A query ran into its limit of time or memory."""


def too_much() -> QueryLimit:
    """The error of a query that needs more memory than it may use."""
    return QueryLimit(
        "the query needs more memory than it may use", next_step="narrow it, or raise --memory"
    )
