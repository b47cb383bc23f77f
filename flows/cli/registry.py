"""The table of commands: name, section of the help and one line (`commands.json`).

A module is loaded when its command is called.

The command `audit labels` is the function `command` of `flows/cli/audit_labels.py`. A name that
Python reserves gets a trailing underscore (`import_.py`).
"""

from __future__ import annotations

import json
import keyword
from pathlib import Path

_TABLE = json.loads((Path(__file__).parent / "commands.json").read_text(encoding="utf-8"))
#: Heading of `routeyard --help` → command → its line, in the order of the help.
SECTIONS: dict[str, dict[str, str]] = _TABLE["sections"]
#: Command → its line.
COMMANDS = {name: line for rows in SECTIONS.values() for name, line in rows.items()}
#: First word of commands of two words → what they are for.
GROUPS: dict[str, str] = _TABLE["groups"]
#: Parameter that several commands share → its help, where a command says nothing else of it.
HELPS: dict[str, str] = _TABLE["options"]


def module_of(name: str) -> str:
    """Module that holds the command `name`."""
    stem = name.replace(" ", "_").replace("-", "_")
    return (
        f"routeyard.flows.cli.{stem}_" if keyword.iskeyword(stem) else f"routeyard.flows.cli.{stem}"
    )


def sections(group: str = "") -> dict[str, dict[str, str]]:
    """Heading → command or group → its line; of one group, its commands under one heading."""
    if group:
        own = {n: line for n, line in COMMANDS.items() if n.startswith(f"{group} ")}
        return {"Commands": {name.split(" ", 1)[1]: line for name, line in own.items()}}
    return {
        title: {name.split()[0]: GROUPS.get(name.split()[0], line) for name, line in rows.items()}
        for title, rows in SECTIONS.items()
    }
