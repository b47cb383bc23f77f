"""The `routeyard` command: runs one command line, prints errors for people.

Nothing heavy is imported before the command that needs it is called, so that
`routeyard --help` answers at once (`routeyard.flows.cli.tree`).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from routeyard.flows.console.visible import Visible
from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.untrusted_text import visible


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `routeyard`; exits 0, 2 for bad input, 3 for a failed gate, 1 for anything else."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run(words))


def run(words: list[str]) -> int:
    """Run one command line and return its exit code."""
    before = sys.stdout
    sys.stdout = Visible(before)
    try:
        return _run(words)
    finally:
        sys.stdout = before


def _run(words: list[str]) -> int:
    try:
        code = _call(words)
        sys.stdout.flush()  # here, where a closed pipe can be answered
        return code
    except RouteyardError as error:
        print(visible(f"error: {error}"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(_stopped(), file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _nobody_reads()
    except OSError as error:
        if (said := _of_the_disk(error)) is None:
            raise
        print(visible(said), file=sys.stderr)
        return 1
    except Exception as error:
        if not (server := _silent_server(error)):
            if frames := _their_frames(error):
                print(visible(_their_fault(error, frames)), file=sys.stderr)
                return 1
            raise
        print(
            f"error: the Prefect server does not answer\n  where: {server}\n"
            "  next:  start it (`prefect server start`), or unset PREFECT_API_URL",
            file=sys.stderr,
        )
        return 1


def _stopped() -> str:
    """What a person who pressed Ctrl-C keeps."""
    progress = sys.modules.get("routeyard.flows.console.progress")
    said = progress.kept() if progress is not None else None
    return (
        f"stopped; {said or 'what was finished is kept'}\n"
        "  next:  run the same command to go on; nothing that is kept is asked or made again"
    )


def _of_the_disk(error: OSError) -> str | None:
    """What the file system refuses, in words; None where that is not what happened."""
    import errno

    known = json.loads((Path(__file__).parent / "disk_errors.json").read_text(encoding="utf-8"))
    absent = isinstance(error, FileNotFoundError)
    name = "ENOENT" if absent else errno.errorcode.get(error.errno or 0, "")
    where = error.filename or (error if absent else "")
    if name not in known or not (where or name in ("ENOSPC", "EDQUOT")):
        return None
    says, then = known[name]
    return f"error: {says}\n  where: {where or 'the workspace'}\n  next:  {then}"


def _nobody_reads() -> int:
    """`routeyard query … | head` closes our output: not a fault, and nothing more is written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _their_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Frames of a traceback in files that are neither ours, nor Python's, nor installed."""
    import site
    import sysconfig

    rooms = ("flows", "papers", "pipelines", "schemas", "datacards")
    ours = {str(Path(__file__).parents[2] / name) for name in rooms}
    installed = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib", "scripts")}
    installed |= {*site.getsitepackages(), sys.prefix + os.sep + "bin"}
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_file()
        # An environment may reach into the packages of another one (a `.pth` file).
        and not {"site-packages", "dist-packages"} & set(Path(frame.filename).parts)
        and not any(frame.filename.startswith(place) for place in (*ours, *installed))
    ]


def _their_fault(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    """An error in someone's own code: their lines, not ours."""
    last = frames[-1]
    shown = "".join(traceback.format_list(frames)).rstrip()
    return (
        f"error: {type(error).__name__}: {error}\n  where: {last.filename}:{last.lineno}\n"
        f"{shown}\n  next:  correct your code and run the same command"
    )


def _silent_server(error: BaseException) -> str | None:
    """The Prefect server's address when the error is that nothing listens there."""
    server = os.environ.get("PREFECT_API_URL")
    httpx = sys.modules.get("httpx")
    said = str(error).startswith("Failed to reach API")
    lost = httpx is not None and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    return server if said or lost else None


def _call(words: list[str]) -> int:
    from routeyard.flows.cli.completion import FLAGS, complete
    from routeyard.flows.cli.tree import root

    if words and words[0] in FLAGS:
        return complete(words)
    if words[:1] == ["help"] or not words:
        words = [*words[1:], "--help"]
    command: Any = root()
    # Bad options exit 2 and `typer.Exit(code)` exits with its code.
    try:
        code = command.main(args=words, prog_name="routeyard", standalone_mode=True)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return int(code or 0)
