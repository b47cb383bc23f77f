"""The tree of commands for Typer: groups that load a command's module when it is called.

What every command shares is given to it here, once: `--workspace` with its environment
variable, `--quiet`, and examples that keep their lines.
"""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperGroup

from flows.cli.registry import COMMANDS, GROUPS, module_of, sections
from schemas.errors import UnknownName, did_you_mean

#: Reads where the workspace is, in place of `--workspace`.
WORKSPACE = "ROUTEYARD_WORKSPACE"
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
        return [name for _, rows in self._rows() for name, _ in rows]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command or group of that name, loaded; None when there is none."""
        name = f"{self.word} {cmd_name}".strip()
        if name in COMMANDS:
            return command_of(name)
        return group_of(name) if name in GROUPS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As the library does; an unknown name is answered with the closest one."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            name = f"{self.word} {args[0]}".strip()
            known = list(COMMANDS) if not self.word else self._full_names()
            raise UnknownName(
                f"there is no command {name!r}",
                next_step=f"{did_you_mean(name, known)} (`routeyard --help` lists them)",
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One line each under the name of its group, without loading one."""
        for title, rows in self._rows():
            with formatter.section(title):
                formatter.write_dl(rows)

    def _full_names(self) -> list[str]:
        return [name for name in COMMANDS if name.startswith(f"{self.word} ")]

    def _rows(self) -> list[tuple[str, list[tuple[str, str]]]]:
        if self.word:
            rows = [(name.split(" ", 1)[1], COMMANDS[name]) for name in self._full_names()]
            return [("Commands", rows)]
        return sections()


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
    """One command, its module imported now."""
    module = importlib.import_module(module_of(name))
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name=name)(module.command)
    command: Any = typer.main.get_command(app)
    command.name = name.rpartition(" ")[2]
    command.help = with_lines(command.help or "")
    for parameter in command.params:
        if parameter.name == "workspace" and parameter.param_type_name == "option":
            parameter.opts = ["--workspace", "-w"]
            parameter.envvar = WORKSPACE
            parameter.show_envvar = True
    if not any(parameter.name == "quiet" for parameter in command.params):
        command.params.append(_quiet())
    return command


def with_lines(text: str) -> str:
    """Help whose indented paragraphs (examples, code) keep their lines at any width."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        keeps = any(line.startswith("    ") for line in lines) and lines[0].strip() != "\b"
        paragraphs.append("\b\n" + paragraph if keeps else paragraph)
    return "\n\n".join(paragraphs)


def _quiet() -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command()
    def command(
        quiet: bool = typer.Option(
            False,
            "--quiet",
            "-q",
            expose_value=False,
            callback=_silence,
            help="Say nothing on standard error but errors.",
        ),
    ) -> None:
        del quiet

    made: Any = typer.main.get_command(app)
    return made.params[0]


def _silence(value: bool) -> None:
    if value:
        from flows import console

        console.silence()


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"routeyard {version('routeyard')}")
        raise typer.Exit
