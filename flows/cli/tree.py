"""The tree of commands for Typer: groups that load a command's module when it is called.

What every command shares is added here once: `--json` and the printing of its result, `--quiet`,
and examples that keep their lines.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from routeyard.flows.cli.options import Json, Output, print_output
from routeyard.schemas.errors import UnknownName, did_you_mean

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
