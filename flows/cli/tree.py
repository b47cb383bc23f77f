"""The tree of commands for Typer: groups that load a command's module when it is called.

A command is a function `NAME_command` of a module here, or of the module `commands` of a package
that names itself under the entry point group `routeyard.commands`. The module's docstring is its
heading in `routeyard --help`, the first line of the function's docstring its line there. Both are
read from the text of the module, so that help imports none.

What every command shares is added here once: `--json` and the printing of its result, `--quiet`,
and examples that keep their lines.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from routeyard.flows.cli.options import HELPS, Json, Output, print_output
from routeyard.schemas.errors import UnknownName, did_you_mean

#: Modules of the core's commands, in the order of the help.
MODULES = ("start", "build", "labels", "releases", "routers")
#: First word of commands of two words → what they are for.
GROUPS = {
    "recipe": "Check a recipe; print its schema.",
    "cost": "What was paid, and prices.",
    "zoo": "The routers, and all of them under one protocol.",
}
#: A command of earlier days → the command that does its work.
OLD = {
    "rehearse": "build RECIPE --rehearse",
    "recipe show": "recipe check RECIPE --print",
    "sources list": "sources",
    "sources show": "sources NAME",
    "sources check": "sources NAME --check",
    "audit metering": "audit WORKSPACE",
    "audit labels": "audit BENCHMARK --labels",
    "audit router": "audit CHOICES --release RELEASE",
    "ledger": "cost ledger",
    "prices": "cost prices",
    "reprice": "cost reprice",
    "view": "site --serve",
    "shell": "query RELEASE",
    "changelog": "diff BENCHMARK --changelog",
    "preferences export": "export preferences",
    "preferences import": "import preferences",
    "zoo list": "zoo",
    "zoo show": "zoo NAME",
    "zoo stream": "zoo online RELEASE --alpha SHARE",
    "arms": "compare RELEASE",
}
_HEADING = re.compile(r'"""(.*?)[."]')
_COMMAND = re.compile(r'^def (\w+)_command\(.*?\n    """(.+?)(?:"""|\n)', re.DOTALL | re.MULTILINE)


class Command(NamedTuple):
    """Where a command is: heading and line of the help, module, function."""

    heading: str
    line: str
    module: str
    function: str


@cache
def core() -> dict[str, Command]:
    """Command of the core → where it is."""
    return dict(pair for module in MODULES for pair in _listed("routeyard.flows.cli", module))


@cache
def added() -> dict[str, Command]:
    """Command of an extension → where it is; none takes the place of one of the core."""
    result: dict[str, Command] = {}
    for entry_point in entry_points(group="routeyard.commands"):
        result |= _listed(entry_point.value, "commands")
    return {name: row for name, row in result.items() if name not in core()}


def _listed(package: str, module: str) -> Iterator[tuple[str, Command]]:
    """Commands of a module, read from its text."""
    text = files(package).joinpath(f"{module}.py").read_text(encoding="utf-8")
    heading = _HEADING.match(text)
    for word, line in _COMMAND.findall(text):
        group, _, rest = word.partition("_")
        name = f"{group} {rest}" if rest and group in GROUPS else word
        where = f"{package}.{module}", f"{word}_command"
        yield name.replace("_", "-"), Command(heading[1] if heading else "Other", line, *where)


def commands() -> dict[str, Command]:
    """Every command → where it is."""
    return core() | added()


def find(name: str) -> Command | None:
    """Where a command is; extensions are asked only where the core has none."""
    return core().get(name) or added().get(name)


def function_of(name: str) -> Callable[..., Any]:
    """The function of a command, its module imported now."""
    command = commands()[name] if name not in core() else core()[name]
    result: Callable[..., Any] = getattr(importlib.import_module(command.module), command.function)
    return result


def sections(group: str = "") -> dict[str, dict[str, str]]:
    """Heading → command or group → its line; of one group, its commands under one heading."""
    result: dict[str, dict[str, str]] = {}
    for name, command in commands().items():
        word, _, rest = name.partition(" ")
        if group and word == group and rest:
            result.setdefault("Commands", {})[rest] = command.line
        elif not group and not any(word in rows for rows in result.values()):
            result.setdefault(command.heading, {})[word] = GROUPS.get(word, command.line)
    return result


def renamed(words: list[str]) -> UnknownName | None:
    """What an old name of a command is answered with; None for other words."""
    for count in (2, 1):
        if (now := OLD.get(name := " ".join(words[:count]))) is not None:
            return UnknownName(f"`routeyard {name}` is now `routeyard {now}`")
    return None


_INTRODUCTION = "Builds benchmarks of LLM routers. `routeyard COMMAND --help` shows examples."


class Lazy(TyperGroup):
    """A group that knows its commands by name and imports none before it is called."""

    #: First word of the group's commands; empty for the root.
    word = ""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names at this level, in the order of the help."""
        return [name for rows in sections(self.word).values() for name in rows]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command or group of that name, loaded; None without one."""
        if cmd_name == self.word:
            return command_of(self.word) if find(self.word) else None
        name = f"{self.word} {cmd_name}".strip()
        if name in GROUPS:
            return group_of(name)
        return command_of(name) if find(name) else None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the library does; what names no command of a group that is one goes to itself."""
        if find(self.word) and (not args or args[0] not in (*self.list_commands(ctx), "--help")):
            args = [self.word, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As the library does; an unknown name is answered with the closest one."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            name = f"{self.word} {args[0]}".strip()
            known = [command for command in commands() if command.startswith(self.word)]
            raise UnknownName(
                f"there is no command {name!r}",
                next_step=f"{did_you_mean(name, known)} (`routeyard --help` lists them)",
            )
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As the library does; a group that is a command too shows that one's help first."""
        if not find(self.word):
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

    made: Any = typer.main.get_command(app)
    for param in made.params:
        if param.name == "show_completion":
            param.help = "Print completion for the current shell."
    return made


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
    for param in command.params:
        param.help = helps.get(param.name, param.help or HELPS.get(param.name))
    own, run = {item.name for item in command.params}, command.callback
    shared = {item.name: item for item in _made(_shared).params if item.name not in own}
    if function.__annotations__["return"] == "None":
        shared.pop("as_json", None)

    def callback(quiet: bool = False, **options: Any) -> None:
        if quiet:
            from routeyard.flows.console import silence

            silence()
        as_json = options.get("as_json", False)
        result = run(**{key: value for key, value in options.items() if key in own})
        if isinstance(result, Output):
            print_output(result, as_json)
            if result.exit_code:
                raise typer.Exit(result.exit_code)

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
