"""The small release, for the tests of releases."""

from tests.support.small_release import manifest, release, sound, tables, tiny, write

__all__ = ["manifest", "release", "sound", "tables", "tiny", "write"]
