"""Completion scripts: for the shell that asks, or for one that is named."""

from __future__ import annotations

from collections.abc import Sequence

from routeyard.pipelines.errors import BadInput

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
