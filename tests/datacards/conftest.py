"""The small release, for the tests of cards."""

from tests.support.small_release import release, tables, write

__all__ = ["release", "tables", "write"]
