"""The small release, for the tests of cards."""

from tests.support.small_release import release, sound, tables, write

__all__ = ["release", "sound", "tables", "write"]
