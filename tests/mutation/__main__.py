"""Mutation testing of the core with mutmut, area by area, whole or as a seeded sample.

    python -m tests.mutation                      every area, all mutants: hours
    python -m tests.mutation aggregation budget --share 0.2
    python -m tests.mutation aggregation --out survivors.diff

Each area's modules are changed in one place at a time, in a copy of the tree, and the area's own
tests run until one of them fails. What none of them notices is printed as a diff: it is killed
by a test, or explained in docs/MUTATION.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = (
    "routeyard", "schemas", "pipelines", "papers", "extensions", "flows", "datacards", "benchmarks",
    "tests",
)  # fmt: skip
_SCORERS = "pipelines/label/scorers"
#: Area → (modules that are changed, the tests that have to notice).
AREAS: dict[str, tuple[list[str], list[str]]] = {
    "aggregation": (
        ["pipelines/label/policies.py"],
        ["tests/label/test_aggregate.py"],
    ),
    "budget": (
        ["pipelines/collect/budget.py"],
        [
            # Without those that build with several processes, up to seven seconds each.
            "tests/calls/test_pricing.py",
            "tests/calls/test_budget_ledger.py",
            *(
                f"tests/calls/test_budget.py::test_{name}"
                for name in (
                    "the_server_never_bills_more_than_the_budget[budget1]",
                    "a_budget_that_cannot_be_kept_is_refused",
                )
            ),
            *(
                f"tests/calls/test_one_budget.py::test_{name}"
                for name in (
                    "what_runs_without_a_budget_spent_counts_as_well",
                    "a_provider_that_says_it_costs_nothing_is_not_believed",
                    "what_a_budget_counts",
                    "a_bound_for_an_unknown_model_is_refused",
                    "charges[sqlite]",
                    "what_is_settled_last_is_written_when_a_run_ends",
                    "a_run_that_asks_nothing_more_holds_no_money",
                    "the_worst_case_of_a_call_is_every_byte_a_token_and_all_that_it_may_answer",
                    "a_full_budget_says_which_bound_and_how_to_raise_it",
                )
            ),
        ],
    ),
    "scorers": (
        [
            f"{_SCORERS}/{name}.py"
            for name in (
                "em",
                "graded",
                "numeric",
                "mcq",
                "literal",
                "superglue",
                "math",
                "reading",
                "quantities",
            )
        ],
        [
            # Without the properties that draw their inputs, which take longer than all the rest.
            *(
                f"tests/scorers/test_cases.py::test_{name}"
                for name in (
                    "numeric",
                    "math_in_both_directions",
                    "a_tolerance_of_the_query_is_kept_in_both_directions",
                    "percent_is_forgiven_where_the_question_asks_for_one",
                    "a_conflict_is_flagged_and_a_correction_is_not",
                )
            ),
            *(
                f"tests/scorers/test_{name}.py"
                for name in (
                    "answer_cases",
                    "word_scorers",
                    "given",
                    "mcq",
                    "numeric",
                    "number_words",
                    "superglue",
                    "symbolic",
                    "commitment",
                    "math_form",
                    "short_answer",
                    "option_marks",
                    "literal",
                    "units",
                )
            ),
        ],
    ),
    "curate": (
        [
            "pipelines/common/matrix.py",
            *(
                f"pipelines/curate/{name}.py"
                for name in (
                    "prune",
                    "pseudo_specialists",
                    "split",
                    "task_analysis",
                    "rule",
                    "dedup",
                )
            ),
        ],
        [
            f"tests/curate/test_{name}.py"
            for name in (
                "prune",
                "rules",
                "split",
                "split_counts",
                "tasks",
                "apply",
                "dedup",
                "protocols",
                "untold",
            )
        ],
    ),
    "metrics": (
        ["pipelines/evaluate/metrics/*.py"],
        [
            f"tests/evaluate/metrics/test_{name}.py"
            for name in ("registry", "intervals", "undefined")
        ],
    ),
    "verify": (
        ["pipelines/verify/*.py"],
        [
            "tests/faults/test_releases.py",
            # The corruptions of this file are among those of the other.
            "tests/release/test_verify.py::test_a_forged_manifest_still_has_other_content",
            "tests/release/test_verify.py::test_a_yanked_release_still_holds",
            "tests/release/test_verify.py::"
            "test_a_release_of_another_version_may_describe_its_columns_in_other_words",
            "tests/release/test_signature.py::test_a_missing_signature_is_found",
            *(f"tests/release/test_{name}.py" for name in ("active", "checks", "checks_tables")),
        ],
    ),
}
#: Without what other tests need of pytest: each mutant starts it anew.
_PYTEST = ["-o", "addopts=--import-mode=importlib", "-m", "not slow", "-p", "no:cacheprovider"]
_PYTEST += ["-p", "no:xdist", "-p", "no:hypothesispytest", "-o", "timeout=120"]
_SURVIVED = 0


def prepared(tree: Path, area: str) -> None:
    """The copy, whose settings name the modules and the tests of a area."""
    modules, tests = AREAS[area]
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "source_paths": [name for name in COPIED if name not in ("tests", "benchmarks")],
        "also_copy": ["benchmarks"],
        "only_mutate": modules,
        "pytest_add_cli_args": _PYTEST,
        "pytest_add_cli_args_test_selection": tests,
        "process_isolation": "forkserver",
        # A loop without end is known after eight times what the tests take.
        "timeout_multiplier": 4.0,
        # What is said in an error or finding is read by people, and its words are free.
        "do_not_mutate_patterns": ["next_step=", r"raise \w+\(f?\"", "strict=True", r"says\w* = "],
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    given = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tree / "pyproject.toml").write_text("\n".join([given, "[tool.mutmut]", *lines, ""]))


def mutmut(tree: Path, *words: str, children: int = 1) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutmut", *words]
    if words[0] == "run":
        command += ["--max-children", str(children)]
    return subprocess.run(
        command, cwd=tree, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"}
    )


def exit_codes(tree: Path) -> dict[str, int | None]:
    """Mutant → what its tests ended with; null where it was not tried."""
    found: dict[str, int | None] = {}
    for path in sorted((tree / "mutants").rglob("*.py.meta")):
        found |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return found


def tried(area: str, share: float, seed: int, processes: int) -> tuple[str, list[str]]:
    """A row of the table, and the survivors as diffs."""
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made)
        prepared(tree, area)
        # The first makes the mutants and learns which tests reach which function.
        first = mutmut(tree, "run", "none")
        names = sorted(exit_codes(tree))
        if not names:
            raise SystemExit(first.stdout[-3000:] + first.stderr[-3000:])
        chosen = sorted(random.Random(seed).sample(names, max(1, round(share * len(names)))))
        reached = json.loads((tree / "mutants/mutmut-stats.json").read_text())
        tests = reached["tests_by_mangled_function_name"]
        covered = [name for name in chosen if tests.get(name.rpartition("__mutmut_")[0])]
        done = mutmut(tree, "run", *covered, children=processes)
        codes = {name: exit_codes(tree).get(name) for name in covered}
        if None in codes.values():
            raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
        survived = [name for name, code in codes.items() if code == _SURVIVED]
        ended = Counter("killed" if code == 1 else "other" for code in codes.values() if code)
        row = (len(names), len(chosen), ended["killed"], ended["other"], len(survived))
        diffs = [mutmut(tree, "show", name).stdout for name in survived]
    untested = len(chosen) - len(covered)
    return f"| {area} | {' | '.join(f'{n:,}' for n in (*row, untested))} |", diffs


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing of the core, area by area.")
    parser.add_argument("areas", nargs="*", help=f"of {', '.join(AREAS)}; default: all")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, drawn by seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where the survivors go; default: printed")
    given = parser.parse_args()
    print("| area | mutants | tried | killed | timed out | survived | not reached |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    diffs: list[str] = []
    for area in given.areas or AREAS:
        row, found = tried(area, given.share, given.seed, given.processes)
        print(row, flush=True)
        diffs += found
    text = "\n".join(diffs)
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
