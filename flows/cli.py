"""The `routeyard` command: finds the command's module, prints errors for people.

Nothing heavy is imported before the command that needs it is called, so that
`routeyard --help` answers at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from flows.commands import COMMANDS, GROUPS, module_of
from schemas.errors import RouteyardError, did_you_mean


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `routeyard`; exits 0, 2 for bad input, 3 for a failed gate, 1 for anything else."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run(words))


def run(words: list[str]) -> int:
    """Run one command line and return its exit code."""
    if not words or words[0] in ("--help", "-h", "help"):
        print(overview())
        return 0
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"routeyard {version('routeyard')}")
        return 0
    name = _find(words)
    if name is None:
        return _unknown(words)
    try:
        return _call(name, words[len(name.split()) :])
    except RouteyardError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped; what was collected is kept: run the same command to go on", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # `routeyard query … | head` closes our output: not a fault.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        import errno

        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(
            f"error: the disk is full\n  where: {error.filename or 'the workspace'}\n"
            "  next:  free some space and run the same command; finished stages are kept",
            file=sys.stderr,
        )
        return 1
    except Exception as error:
        if not (server := _silent_server(error)):
            raise
        print(
            f"error: the Prefect server does not answer\n  where: {server}\n"
            "  next:  start it (`prefect server start`), or unset PREFECT_API_URL",
            file=sys.stderr,
        )
        return 1


def _silent_server(error: BaseException) -> str | None:
    """The Prefect server's address when the error is that nothing listens there."""
    server = os.environ.get("PREFECT_API_URL")
    httpx = sys.modules.get("httpx")
    said = str(error).startswith("Failed to reach API")
    lost = httpx is not None and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    return server if said or lost else None


def overview() -> str:
    """What `routeyard --help` prints."""
    width = max(len(name) for name in COMMANDS)
    lines = [
        "Usage: routeyard COMMAND [OPTIONS]",
        "",
        "Builds LLM-routing benchmarks: questions and a model pool in, a versioned release out.",
        "",
        "Start with:  routeyard demo --workspace yard",
        "",
        "Commands:",
    ]
    lines += [f"  {name:<{width}}  {says}" for name, says in COMMANDS.items()]
    lines += ["", "`routeyard COMMAND --help` explains a command and shows examples."]
    return "\n".join(lines)


def _find(words: list[str]) -> str | None:
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in COMMANDS:
            return name
    return None


def _unknown(words: list[str]) -> int:
    group = {name: says for name, says in COMMANDS.items() if name.split()[0] == words[0]}
    if words[0] in GROUPS and group:
        rest = words[1:]
        print(f"Usage: routeyard {words[0]} COMMAND\n\n{GROUPS[words[0]]}\n")
        for name, says in group.items():
            print(f"  {name}  {says}")
        return 0 if not rest or rest[0] in ("--help", "-h") else 2
    print(
        f"error: there is no command {words[0]!r}\n  next:  {did_you_mean(words[0], COMMANDS)} "
        "(`routeyard --help` lists them)",
        file=sys.stderr,
    )
    return 2


def _call(name: str, rest: list[str]) -> int:
    import typer

    module = importlib.import_module(module_of(name))
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name=name)(module.command)
    command: Any = typer.main.get_command(app)
    # Bad options exit 2 and `typer.Exit(code)` exits with its code.
    try:
        code = command.main(args=rest, prog_name=f"routeyard {name}", standalone_mode=True)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return int(code or 0)
