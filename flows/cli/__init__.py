"""The `routeyard` command: runs one command line, prints errors for people.

Nothing heavy is imported before the command that needs it is called, so that
`routeyard --help` answers at once (`routeyard.flows.cli.tree`).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from routeyard.flows.console import Visible, coloured
from routeyard.pipelines.common.machine import (
    LOADING,
    OutOfMemory,
    address_space,
    collect_rarely,
    return_memory,
)
from routeyard.schemas.errors import BadInput, RouteyardError
from routeyard.schemas.text import in_line, visible

# Completion scripts: for the shell that asks, or for one that is named.

FLAGS = ("--show-completion", "--install-completion")
SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


def complete(words: Sequence[str]) -> int:
    """Answer `--show-completion [SHELL]` or `--install-completion [SHELL]`.

    Without a shell's name the library asks the process that called us, which tells it
    nothing in a container's build or a service.

    Raises:
        BadInput: the shell is not supported, or not recognised.
    """
    from typer._completion_shared import _get_shell_name, get_completion_script, install

    flag, *named = words
    shell = named[0] if named else _get_shell_name()
    if shell not in SHELLS:
        said = f"there is no completion for {shell!r}" if shell else "no shell called this command"
        raise BadInput(
            said, where=flag, next_step=f"name one: routeyard {flag} " + "|".join(SHELLS[:4])
        )
    name, variable = "routeyard", "_ROUTEYARD_COMPLETE"
    if flag == "--show-completion":
        print(get_completion_script(prog_name=name, complete_var=variable, shell=shell))
    else:
        _, path = install(shell=shell, prog_name=name, complete_var=variable)
        print(f"{shell} completion installed in {path}: it works in the next terminal")
    return 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `routeyard`; exits 0, 2 for bad input, 3 for a failed gate, 1 for anything else."""
    collect_rarely()
    return_memory()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is not None or sys.gettrace() or sys.getprofile() or sys.flags.inspect:
        sys.exit(run(words))
    code = 1

    def end() -> None:
        with contextlib.suppress(OSError, ValueError):  # closed
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)

    # Registered first, so called last: modules and objects are not taken apart one by one, which
    # takes a noticeable part of a short command.
    atexit.register(end)
    code = run(words)
    sys.exit(code)


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
        _print_error(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _print_error(_stopped())
        return 130
    except BrokenPipeError:
        return _nobody_reads()
    except Exception as error:
        said = _of_memory(error, words) or _of_the_disk(error) or _of_the_server(error)
        if not said and (frames := _their_frames(error)) and not isinstance(error, OSError):
            said = _their_fault(error, frames)
        if not said:
            raise
        _print_error(said)
        return 1


def _print_error(text: str) -> None:
    """Print to standard error, with the first word in red on a terminal."""
    text = visible(text)
    if coloured(sys.stderr):
        first, rest = re.split(r"(?<=\w)(?=\W)", text, maxsplit=1)
        text = f"\x1b[1;31m{first}\x1b[0m{rest}"
    print(text, file=sys.stderr)


def _of_memory(error: Exception, words: list[str]) -> str | None:
    """The message that memory ran out; None where another thing happened."""
    from routeyard.pipelines.common.machine import named

    result = named(error, f"`routeyard {' '.join(words[:1])}`")
    return f"error: {result}" if result is not None else None


def _stopped() -> str:
    """What a person who pressed Ctrl-C keeps."""
    progress = sys.modules.get("routeyard.flows.console")
    said = progress.stored_answers() if progress is not None else None
    return (
        f"stopped; {said or 'what was finished is kept'}\n"
        "  next:  run the same command to go on; nothing that is kept is asked or made again"
    )


def _of_the_disk(error: Exception) -> str | None:
    """The message of what the file system refuses; None where another thing happened."""
    import errno

    if not isinstance(error, OSError):
        return None
    known = json.loads((Path(__file__).parent / "disk_errors.json").read_text(encoding="utf-8"))
    absent = isinstance(error, FileNotFoundError)
    name = "ENOENT" if absent else errno.errorcode.get(error.errno or 0, "")
    where = error.filename or (error if absent else "")
    if name not in known or not (where or name in ("ENOSPC", "EDQUOT", "EFBIG")):
        return None
    says, then = known[name]
    where = in_line(str(where)) or "the workspace"
    return f"error: {says}\n  where: {where}\n  next:  {then}"


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
        f"error: {type(error).__name__}: {in_line(str(error))}\n"
        f"  where: {last.filename}:{last.lineno}\n"
        f"{shown}\n  next:  correct your code and run the same command"
    )


def _of_the_server(error: Exception) -> str | None:
    """The message that no Prefect server answers; None where another thing happened."""
    server = os.environ.get("PREFECT_API_URL")
    httpx = sys.modules.get("httpx")
    said = str(error).startswith("Failed to reach API")
    lost = httpx is not None and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    if not server or not (said or lost):
        return None
    return (
        f"error: the Prefect server does not answer\n  where: {server}\n"
        "  next:  start it (`prefect server start`), or unset PREFECT_API_URL"
    )


def _call(words: list[str]) -> int:
    from routeyard.flows.cli.tree import renamed, root

    if (old := renamed(words)) is not None:
        raise old
    if words and words[0] in FLAGS:
        return complete(words)
    if words[:1] == ["help"] or not words:
        words = [*words[1:], "--help"]
    _check_address_space(words)
    command: Any = root()
    # Bad options exit 2 and `typer.Exit(code)` exits with its code.
    try:
        code = command.main(args=words, prog_name="routeyard", standalone_mode=False)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except Exception as error:
        if (wrong := _wrong_words(error, words)) is None:
            raise
        raise wrong from error
    return int(code or 0)


def _wrong_words(error: Exception, words: list[str]) -> RouteyardError | None:
    """An option or argument that does not fit, in our form; None where another thing happened."""
    from typer import Abort
    from typer.exceptions import TyperException

    if isinstance(error, Abort):
        raise KeyboardInterrupt
    if not isinstance(error, TyperException):
        return None
    context = getattr(error, "ctx", None)
    # A group that is a command too, `zoo`, has itself as a part of its path.
    named = (context.command_path if context is not None else f"routeyard {words[0]}").split()
    called = " ".join(dict.fromkeys(named))
    says, _, _ = error.format_message().rstrip(".").partition(" (Possible options")
    help_of = f"`{called} --help` shows its options and examples"
    if says.count("\n") > 1:  # a group without a command: the message is its help
        return BadInput(
            f"{called!r} needs a command or an argument",
            next_step=f"`{called} --help` lists them",
        )
    close = getattr(error, "possibilities", None)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return BadInput(says[:1].lower() + says[1:], where=called, next_step=hint + help_of)


def _check_address_space(words: list[str]) -> None:
    """Stop where our libraries could not be loaded: they end the process without a word."""
    left = address_space()
    if left is not None and left < LOADING and "--help" not in words:
        raise OutOfMemory(
            f"the libraries alone reserve more than {LOADING / 1e9:.1f} GB of address space, and "
            f"the limit of this process leaves {left / 1e9:.1f} GB",
            next_step="lift the limit: `ulimit -v unlimited`",
        )
