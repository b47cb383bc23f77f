"""`routeyard shell`: ask a release, line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_HELP = """\
End a query with a semicolon. Also:
  .tables   tables of the release
  .saved    saved queries; run one with @name
  .quit     leave (or Ctrl-D)"""


def command(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    timeout: Annotated[float, typer.Option(help="Longest time of a query, in seconds.")] = 60.0,
) -> None:
    """Open a prompt with the release attached, read-only.

    routeyard shell yard/releases/demo/1.0.0
    """
    import sys

    from pipelines.release.reader import open_release

    with open_release(release) as opened:
        prompts = sys.stdin.isatty()
        if prompts:
            import contextlib

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


def _run(opened: object, text: str, timeout: float) -> None:
    import sys

    from pipelines.release.query.answers import to_text
    from pipelines.release.query.saved import SAVED, saved
    from pipelines.release.reader import OpenRelease
    from schemas.errors import RouteyardError
    from schemas.untrusted_text import visible

    assert isinstance(opened, OpenRelease)
    if text == ".tables":
        rows = {name: opened.manifest.tables[name].rows for name in opened.tables}
        for name, count in rows.items():
            print(f"{name:<16} {count:>12,}")
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
