"""`routeyard shell`: ask a release, line by line."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routeyard.pipelines.release.reader import OpenRelease

_HELP = """\
End a query with a semicolon. Also:
  .tables   tables of the release
  .saved    saved queries; run one with @name
  .quit     leave (or Ctrl-D)"""


def command(release: Path, timeout: float = 60.0) -> None:
    """Open a prompt with the release attached, read-only.

    routeyard shell yard/releases/demo/1.0.0
    """
    from routeyard.pipelines.release.reader import open_release

    with open_release(release) as opened:
        prompts = sys.stdin.isatty()
        if prompts:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  arrow keys and history

            print(f"{opened.manifest.name} {opened.manifest.version}, read-only; .help for help")
        buffer = ""
        while True:
            try:
                line = input(("      ... " if buffer else "routeyard> ") if prompts else "")
            except EOFError:
                return
            except KeyboardInterrupt:
                print()
                buffer = ""
                continue
            buffer = f"{buffer}\n{line}".strip()
            if buffer in (".quit", ".exit"):
                return
            if buffer.startswith((".", "@")) or buffer.endswith(";"):
                _run(opened, buffer, timeout)
                buffer = ""


def _run(opened: OpenRelease, text: str, timeout: float) -> None:
    from routeyard.pipelines.release.query.answers import to_text
    from routeyard.pipelines.release.query.saved import SAVED, saved
    from routeyard.schemas.errors import RouteyardError
    from routeyard.schemas.untrusted_text import visible

    if text == ".tables":
        for name in opened.tables:
            print(f"{name:<16} {opened.manifest.tables[name].rows:>12,}")
    elif text == ".saved":
        for name, query in SAVED.items():
            print(f"@{name:<18} {query.asks}")
    elif text.startswith("."):
        print(_HELP)
    else:
        try:
            sql = saved(text[1:].rstrip("; ")).sql if text.startswith("@") else text
            print(to_text(opened.sql(sql, timeout_s=timeout), "table"), end="")
        except RouteyardError as error:
            # One wrong line does not end the session.
            print(visible(f"error: {error}"), file=sys.stderr)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
