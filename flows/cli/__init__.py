"""The `routeyard` command: runs one command line, prints errors for people.

Nothing heavy is imported before the command that needs it is called, so that
`routeyard --help` answers at once (`routeyard.flows.cli`).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from routeyard.flows.cli.options import Json, Output, print_output
from routeyard.flows.console import Visible, coloured
from routeyard.pipelines.common.machine import collect_rarely, return_memory
from routeyard.schemas.errors import BadInput, RouteyardError, UnknownName, did_you_mean
from routeyard.schemas.text import in_line, visible

# The tree of commands for Typer: groups that load a command's module when it is called.
#
# What every command shares is added here once: `--json` and the printing of its result, `--quiet`,
# and examples that keep their lines.

# The table of commands: name, section of the help and one line (`commands.json`).
#
# A module is loaded when its command is called.
#
# The command `audit labels` is the function `audit_labels_command` of `flows/cli/labels.py`.

_TABLE = json.loads((Path(__file__).parent / "commands.json").read_text(encoding="utf-8"))
#: Command of the core → the module here that holds it.
_MODULES: dict[str, str] = {
    name: module for rows in _TABLE["sections"].values() for name, (module, _) in rows.items()
}
#: Heading of `routeyard --help` → command of the core → its line, in the order of the help.
SECTIONS: dict[str, dict[str, str]] = {
    title: {name: line for name, (_, line) in rows.items()}
    for title, rows in _TABLE["sections"].items()
}
#: First word of commands of two words → what they are for.
GROUPS: dict[str, str] = _TABLE["groups"]
#: Parameter that several commands share → its help, where a command says nothing else of it.
HELPS: dict[str, str] = _TABLE["options"]


@cache
def added() -> dict[str, tuple[str, str, str]]:
    """Command of an extension → (heading, its line, module that holds it).

    A package names itself under the entry point group `routeyard.commands`; its `commands.json`
    lists its commands by heading, and its module `commands` holds them.
    """
    found: dict[str, tuple[str, str, str]] = {}
    for one in entry_points(group="routeyard.commands"):
        text = files(one.value).joinpath("commands.json").read_text(encoding="utf-8")
        for title, rows in json.loads(text).items():
            found |= {name: (title, line, f"{one.value}.commands") for name, line in rows.items()}
    return {name: row for name, row in found.items() if name not in _MODULES}


def commands() -> dict[str, str]:
    """Every command → its line."""
    core = {name: line for rows in SECTIONS.values() for name, line in rows.items()}
    return core | {name: line for name, (_, line, _) in added().items()}


def is_command(name: str) -> bool:
    """Whether there is such a command; extensions are asked only where the core has none."""
    return name in _MODULES or name in added()


def place_of(name: str) -> tuple[str, str]:
    """Module of a command and the name of its function there: `audit labels` is
    `audit_labels_command`."""
    own = _MODULES.get(name)
    module = f"routeyard.flows.cli.{own}" if own else added()[name][2]
    return module, name.replace(" ", "_").replace("-", "_") + "_command"


def function_of(name: str) -> Callable[..., Any]:
    """The function of a command, its module imported now."""
    module, attribute = place_of(name)
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


def sections(group: str = "") -> dict[str, dict[str, str]]:
    """Heading → command or group → its line; of one group, its commands under one heading."""
    if group:
        own = {n: line for n, line in commands().items() if n.startswith(f"{group} ")}
        return {"Commands": {name.split(" ", 1)[1]: line for name, line in own.items()}}
    rows = {title: dict(own) for title, own in SECTIONS.items()}
    for name, (title, line, _) in added().items():
        rows.setdefault(title, {})[name] = line
    return {
        title: {name.split()[0]: GROUPS.get(name.split()[0], line) for name, line in own.items()}
        for title, own in rows.items()
    }


_INTRODUCTION = """Builds LLM-routing benchmarks: questions and a model pool in, a release out.

\b
    routeyard demo                       a first release, offline, in a minute
    routeyard init my.yaml --from FILE   a recipe for your own questions
    routeyard build my.yaml              builds it; run again, it goes on where it was

`routeyard COMMAND --help` explains a command and shows examples.
"""


class Lazy(TyperGroup):
    """A group that knows its commands by name and imports none before it is called."""

    #: First word of the group's commands; empty for the root.
    word = ""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names at this level, in the order of the help."""
        return [name for rows in sections(self.word).values() for name in rows]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command or group of that name, loaded; None without one."""
        if cmd_name == self.word and is_command(self.word):
            return command_of(self.word)
        name = f"{self.word} {cmd_name}".strip()
        if name in GROUPS:
            return group_of(name)
        return command_of(name) if is_command(name) else None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the library does; what names no command of a group that is one goes to itself."""
        if is_command(self.word) and args and args[0] not in (*self.list_commands(ctx), "--help"):
            args = [self.word, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As the library does; an unknown name is answered with the closest one."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            name = f"{self.word} {args[0]}".strip()
            known = [one for one in commands() if one.startswith(self.word)]
            raise UnknownName(
                f"there is no command {name!r}",
                next_step=f"{did_you_mean(name, known)} (`routeyard --help` lists them)",
            )
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As the library does; a group that is a command too shows that one's help first."""
        if not is_command(self.word):
            return super().format_help(ctx, formatter)
        own = command_of(self.word)
        with type(ctx)(own, info_name=ctx.info_name, parent=ctx.parent) as of_own:
            own.format_help(of_own, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One line each under the name of its group, without loading one."""
        for title, rows in sections(self.word).items():
            with formatter.section(title):
                formatter.write_dl(list(rows.items()))


def root() -> Any:
    """The `routeyard` command."""
    app = typer.Typer(cls=Lazy, rich_markup_mode=None, no_args_is_help=True)

    @app.callback(help=_INTRODUCTION)
    def routeyard(
        version: bool = typer.Option(
            False, "--version", is_eager=True, callback=_version, help="Print the version."
        ),
    ) -> None:
        del version

    return typer.main.get_command(app)


def group_of(word: str) -> Any:
    """The group of commands that start with `word`."""
    app = typer.Typer(cls=Lazy, rich_markup_mode=None, no_args_is_help=True, add_completion=False)
    app.callback(help=GROUPS[word])(lambda: None)
    made: Any = typer.main.get_command(app)
    made.word, made.name = word, word
    return made


def command_of(name: str) -> Any:
    """One command, its module imported now; one that returns an `Output` gets `--json`."""
    function = function_of(name)
    command = _made(function)
    command.name = name.rpartition(" ")[2]
    text, helps = without_arguments(command.help or "")
    command.help = with_lines(text)
    for one in command.params:
        one.help = helps.get(one.name, one.help or HELPS.get(one.name))
    own, run = {one.name for one in command.params}, command.callback
    shared = {one.name: one for one in _made(_shared).params if one.name not in own}
    if function.__annotations__["return"] == "None":
        shared.pop("as_json", None)

    def callback(quiet: bool = False, **options: Any) -> None:
        if quiet:
            from routeyard.flows.console import silence

            silence()
        as_json = options.get("as_json", False)
        found = run(**{key: value for key, value in options.items() if key in own})
        if isinstance(found, Output):
            print_output(found, as_json)
            if found.exit_code:
                raise typer.Exit(found.exit_code)

    command.params += shared.values()
    command.callback = callback
    return command


def _made(function: Callable[..., Any]) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(function)
    return typer.main.get_command(app)


def _shared(
    as_json: Json = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing on standard error but errors.")
    ] = False,
) -> None:
    """The options that are added to every command."""


def without_arguments(text: str) -> tuple[str, dict[str, str]]:
    """A docstring without its section `Args`, and that section: parameter → help."""
    text, _, section = text.partition("\n\nArgs:\n")
    rows = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE)
    return text, {name: " ".join(help.split()) for name, help in rows}


def with_lines(text: str) -> str:
    """Help whose indented paragraphs (examples, code) keep their lines at any width."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        keeps = any(line.startswith("    ") for line in lines) and lines[0].strip() != "\b"
        paragraphs.append("\b\n" + paragraph if keeps else paragraph)
    return "\n\n".join(paragraphs)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"routeyard {version('routeyard')}")
        raise typer.Exit


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

    found = named(error, f"`routeyard {' '.join(words[:1])}`")
    return f"error: {found}" if found is not None else None


def _stopped() -> str:
    """What a person who pressed Ctrl-C keeps."""
    progress = sys.modules.get("routeyard.flows.console")
    said = progress.kept() if progress is not None else None
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
    pass
    pass

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
    called = context.command_path if context is not None else f"routeyard {words[0]}"
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
    from routeyard.pipelines.common.machine import LOADING, OutOfMemory, address_space

    left = address_space()
    if left is not None and left < LOADING and "--help" not in words:
        raise OutOfMemory(
            f"the libraries alone reserve more than {LOADING / 1e9:.1f} GB of address space, and "
            f"the limit of this process leaves {left / 1e9:.1f} GB",
            next_step="lift the limit: `ulimit -v unlimited`",
        )
