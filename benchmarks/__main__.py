"""`python -m benchmarks NAME [--json] [options]` prints one JSON object with figures and ratios.

Each benchmark is a module in this folder with `add_arguments(parser)` and
`run(arguments) -> dict`, listed in `BENCHMARKS`. What it returns as `exit` is the exit code.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys

#: name → one line for people; the module has the same name.
BENCHMARKS: dict[str, str] = {
    "agreement": "our labels beside the stored ones, response by response, on recorded outputs",
    "weak": "what is labelled correct of weak, cut-off and wrong answers, to be read by hand",
    "label": "rule scoring of recorded GSM8K responses against plain math-verify",
    "collect": "collection with its ledger against a bare AsyncOpenAI loop",
    "dedup": "exact near-duplicates against brute force, FAISS and SemHash",
    "dedup_hard": "near-duplicates in a cone, a clump and groups at the threshold",
    "embed": "what one question costs the packaged encoder",
    "ledger": "what keeping one attempt costs, in SQLite and PostgreSQL",
    "informative": "calls that rounds save, with settings from another release",
    "floors": "what users wait for beside the least that the same work takes, with goals",
    "growth": "how build, verify, diff, evaluation and site of a release grow with its labels",
    "zoo": "all routers on RouterDC's, BBH's, MMLU-Pro's or GSM8K's outcomes, full protocol",
    "zoo.cost": "seconds and memory of each router on a planted matrix of any size",
    "routerbench_plus": "the recipe on MMLU-Pro, or on 112 x 35,673 planted outcomes, whole",
    "injections": "answers that dictate their verdict, at a judge that is a real small model",
    "ablate": "each rule of the scorers switched off: verdicts that change, how many are right",
    "audit": "faults put into published matrices that the audit names, or findings of honest ones",
    "honest": "verify over honest releases of every shipped recipe: what is proved, and findings",
    "verified": "what verify takes over a planted honest release of N labels",
    "judged": "scorers against verdicts of people and official graders",
    "init": "recipes of `routeyard init` on real results of many layouts: faults, and builds",
    "error_rates": "how often each scorer is wrong per kind of answer: table and docs/labels.md",
    "off_policy": "coverage of IPS, SNIPS and DR intervals on logged streams of known truth",
    "papers": "systems of the five papers against implementations from scratch: docs/papers.md",
    "structure": "lines, packages, dependencies, cycles and doubled names of the code",
    "same": "what differs between two commits: releases, evaluations, audits, pages, refusals",
}
#: Benchmarks whose module is in a separate folder.
ELSEWHERE = {
    "ablate": "benchmarks.answers.ablate",
    "agreement": "benchmarks.answers.agreement",
    "audit": "benchmarks.audit.injected",
    "dedup": "benchmarks.near_duplicates.dedup",
    "dedup_hard": "benchmarks.near_duplicates.dedup_hard",
    "error_rates": "benchmarks.answers.error_rates",
    "floors": "benchmarks.floors.run",
    "judged": "benchmarks.answers.judged",
    "weak": "benchmarks.answers.weak",
    "informative": "benchmarks.studies.informative",
    "injections": "benchmarks.methods.injections",
    "routerbench_plus": "benchmarks.studies.routerbench_plus",
    "honest": "benchmarks.proof.honest",
    "verified": "benchmarks.proof.verified",
    "off_policy": "benchmarks.logged.off_policy",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    modules = {}
    for name, says in BENCHMARKS.items():
        modules[name] = importlib.import_module(ELSEWHERE.get(name, f"benchmarks.{name}"))
        command = commands.add_parser(name, help=says, description=modules[name].__doc__)
        command.add_argument("--json", action="store_true", help="one line of JSON, nothing else")
        modules[name].add_arguments(command)
    chosen = parser.parse_args(arguments)
    figures = modules[chosen.name].run(chosen)
    json.dump(figures, sys.stdout, indent=None if chosen.json else 2)
    print()
    return int(figures.get("exit", 0))


if __name__ == "__main__":
    raise SystemExit(main())
