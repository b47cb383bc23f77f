"""One side of a comparison: a checkout, an environment for it, and what its command line wrote.

Everything goes through the command line and files, since internals move between commits.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAPERS = (
    "confidence_router", "cscr", "routerbench_plus", "routing_plateau", "triple_perspective",
)  # fmt: skip
BUILD, REPRODUCE = ("build",), ("reproduce",)
#: Package → kinds of work whose results it can change. `tests` in `TESTS` below.
KINDS = {
    "schemas": ("build", "audit"), "common": ("build", "audit"), "ingest": ("build", "audit"),
    "collect": BUILD, "label": BUILD, "curate": BUILD, "release": BUILD, "datacards": BUILD,
    "audit": ("build", "audit"), "routers": ("evaluate",), "evaluate": ("build", "evaluate"),
    "verify": ("verify",), "flows": ("build", "evaluate", "verify"), "papers": REPRODUCE,
    "extensions": (),
}  # fmt: skip
ALL_KINDS = ("build", "verify", "evaluate", "audit", "reproduce")


class CannotCompare(SystemExit):
    """The comparison cannot be made; the message says why."""


@dataclass(frozen=True)
class Step:
    """One command of `routeyard`: its kind, its words, and where its results are."""

    kind: str
    words: tuple[str, ...]
    #: Files and folders of results, below the folder of the work.
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """Steps in one workspace, each on what the ones before it made."""

    name: str
    steps: tuple[Step, ...]
    #: Below ROUTEYARD_DATA; without it the work is skipped.
    needs: str | None = None

    def chosen(self, kinds: Sequence[str]) -> tuple[Step, ...]:
        """The steps up to the last one of these kinds."""
        last = max((at for at, step in enumerate(self.steps) if step.kind in kinds), default=-1)
        return self.steps[: last + 1]


def _release(name: str, needs: str | None, *evaluation: str) -> Work:
    place = f"yard/releases/{name}/1.0.0"
    command = ("demo", "--no-open") if name == "demo" else ("build", name)
    steps = [Step("build", (*command, "--workspace", "yard", "-q"), (place,))]
    if evaluation:
        words = ("evaluate", place, "--out", "evaluation", "--cache", "cache", "-q", *evaluation)
        steps.append(Step("evaluate", words, ("evaluation",)))
    steps.insert(1, Step("verify", ("verify", place, "--json", "-q")))
    return Work(name, tuple(steps), needs)


def works(data: Path | None) -> list[Work]:
    """All works, the longest first."""
    found = [
        _release("mmlu_pro", "mmlu_pro"),
        _release(
            "routellm_mmlu", "routellm", "--embed", "--encoder", "tfidf", "--resamples", "200",
            "--points", "20", "--no-certificate",
        ),
        _release("zeroeval_gsm", "zeroeval_gsm", "--resamples", "500", "--points", "20"),
        # Not evaluated: the latencies of its calls are measured anew.
        _release("demo", None),
    ]  # fmt: skip
    for paper in PAPERS:
        words = (
            "reproduce", paper, "--out", "page", "-w", "yard", "--cache", "cache",
            "--resamples", "100", "--json", "-q",
        )  # fmt: skip
        found.append(Work(f"reproduce-{paper}", (Step("reproduce", words, ("page",)),)))
    for folder in ("matrices", "shapes"):
        paths = sorted(data.joinpath(folder).glob("*")) if data else []
        for path in paths:
            if path.suffix == ".parquet" or path.is_dir():
                step = Step("audit", ("audit", str(path), "--json", "-q"))
                needs = f"{folder}/{path.name}"
                found.append(Work(f"audit-{folder}-{path.stem}", (step,), needs))
        if not paths:
            found.append(Work(f"audit-{folder}", (Step("audit", ()),), folder))
    return found


@contextmanager
def worktree(commit: str, folder: Path) -> Iterator[Path]:
    """A checkout of a commit, gone afterwards."""
    tree = folder / "tree"
    git = ["git", "-C", str(ROOT), "worktree"]
    done = subprocess.run(
        [*git, "add", "--detach", str(tree), commit], capture_output=True, text=True
    )
    if done.returncode:
        raise CannotCompare(f"no checkout of {commit} could be made: {done.stderr.strip()}")
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], capture_output=True)


def environment(tree: Path, folder: Path) -> Path:
    """A Python that imports this tree's `routeyard`, and all else from the packages of ours."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    scheme = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", vars=scheme))
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    packages.joinpath("routeyard.pth").write_text("\n".join([str(tree), *sorted(ours)]) + "\n")
    _copy_pth_code(ours, packages)
    project = tomllib.loads(tree.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = packages / f"routeyard-{project['version']}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: routeyard\nVersion: {project['version']}\n"
    )
    groups = {"console_scripts": project["scripts"], **project.get("entry-points", {})}
    info.joinpath("entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
            for group, points in groups.items()
        )
    )
    program = folder / "bin" / "routeyard"
    program.write_text(f'#!/bin/sh\nexec "{python}" -m routeyard "$@"\n')
    program.chmod(0o755)
    shown = subprocess.run(
        [python, "-c", "import routeyard; print(routeyard.__file__)"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    if Path(shown.stdout.strip()).parent.resolve() != (tree / "routeyard").resolve():
        raise CannotCompare(f"{python} does not import {tree}: {shown.stdout}{shown.stderr}")
    return python


def _copy_pth_code(ours: set[str], packages: Path) -> None:
    """Lines of code in `.pth` files (coverage of child processes) are run in one's folder only."""
    for path in (path for one in ours for path in Path(one).glob("*.pth")):
        text = path.read_text(encoding="utf-8")
        if text.startswith("import "):
            packages.joinpath(path.name).write_text(text, encoding="utf-8")


def variables(folder: Path, data: Path | None) -> dict[str, str]:
    """Environment variables of a side's commands: offline, and no cache shared with the other."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROUTEYARD_")}
    kept.pop("PYTHONPATH", None)
    path = f"{folder / 'env' / 'bin'}{os.pathsep}{kept.get('PATH', '')}"
    return kept | {
        "PATH": path, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "COLUMNS": "100",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_HOME": str(folder / "prefect"),
        "HF_HOME": str(folder / "hub"), "TOKENIZERS_PARALLELISM": "false",
        **({"ROUTEYARD_DATA": str(data)} if data else {}),
    }  # fmt: skip


def run_works(
    tree: Path, folder: Path, kinds: Sequence[str], data: Path | None, jobs: int
) -> dict[str, Any]:
    """Run the works of these kinds; writes their results below `folder/files` and `side.json`."""
    python = environment(tree, folder / "env")
    environ = variables(folder, data)
    skipped, chosen = {}, []
    for work in works(data):
        if not work.chosen(kinds):
            continue
        if work.needs and not (data and data.joinpath(work.needs).exists()):
            skipped[work.name] = f"no {work.needs} in ROUTEYARD_DATA ({data or 'not set'})"
        else:
            chosen.append(work)
    with ThreadPoolExecutor(jobs) as pool:
        ended = list(pool.map(lambda work: _run(work, kinds, python, folder, environ), chosen))
    side = {
        "commit": _commit(tree),
        "paths": {str(folder): "<side>", str(tree): "<code>", str(data): "<data>"},
        "kinds": list(kinds),
        "skipped": skipped,
        "works": {work.name: steps for work, steps in zip(chosen, ended, strict=True)},
    }
    folder.joinpath("side.json").write_text(json.dumps(side, indent=1), encoding="utf-8")
    return side


def _commit(tree: Path) -> str:
    done = subprocess.run(
        ["git", "-C", str(tree), "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    return done.stdout.strip()


def _run(
    work: Work, kinds: Sequence[str], python: Path, folder: Path, environ: dict[str, str]
) -> list[dict[str, Any]]:
    """The exit code of each step; its results are moved to the side's files."""
    place, kept = folder / "work" / work.name, folder / "files" / work.name
    place.mkdir(parents=True)
    ended: list[dict[str, Any]] = []
    for step in work.chosen(kinds):
        began = time.perf_counter()
        done = subprocess.run(
            [str(python), "-m", "routeyard", *step.words],
            cwd=place, env=environ, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        seconds = round(time.perf_counter() - began, 1)
        printed = done.stderr.decode(errors="replace")
        ended.append({"kind": step.kind, "exit": done.returncode, "seconds": seconds,
                      "error": refusal(printed), "stderr": printed[-4000:]})  # fmt: skip
        print(f"{work.name} {step.kind}: {done.returncode}, {seconds} s", file=sys.stderr)
        out = kept / step.kind
        out.mkdir(parents=True)
        out.joinpath("stdout.json" if "--json" in step.words else "stdout.txt").write_bytes(
            done.stdout
        )
        if done.returncode not in (0, 3) and step is not work.steps[-1]:
            break
    for step in work.chosen(kinds):
        for result in step.results:
            if place.joinpath(result).exists():
                shutil.move(place / result, kept / step.kind / Path(result).name)
    shutil.rmtree(place)
    return ended


def refusal(printed: str) -> dict[str, bool] | None:
    """Whether a printed error names a place and a next step; null where none is printed."""
    if not re.search(r"^error: ", printed, re.M):
        return None
    return {
        "where": bool(re.search(r"^\s+where: \S", printed, re.M)),
        "next": bool(re.search(r"^\s+next:\s+\S", printed, re.M)),
    }
