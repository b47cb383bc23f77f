"""`verify` over honest releases: every shipped recipe, and variations of the demo.

`python -m benchmarks honest --workspace yard` builds each shipped recipe once – from its recorded
data where they are there, on loopback where its models are served by this package, else as a
rehearsal – and four variations of the demo: several samples with log-probabilities, embeddings
released, one source withheld, half of the pool asked of each question. Releases that the workspace
has already are not built again. It prints what `verify` proves, finds consistent, believes and
contradicts of each; a contradiction is an error of `verify`, or of the build.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", type=Path, default=Path("yard"))
    parser.add_argument("--recipes", help="some of them, by commas")
    parser.add_argument("--full", action="store_true", help="as `verify --full`")


def run(given: argparse.Namespace) -> dict[str, Any]:
    from routeyard.flows.publish import check_release
    from routeyard.pipelines.common.errors import RouteyardError

    wanted = given.recipes.split(",") if given.recipes else None
    releases: dict[str, Any] = {}
    for name, build in recipes():
        if wanted is not None and name not in wanted:
            continue
        try:
            release = build(given.workspace.absolute() / name)
        except RouteyardError as error:
            releases[name] = {"not_built": error.what, "findings": []}
            print(f"{name}: {releases[name]}", file=sys.stderr, flush=True)
            continue
        before = cpu_s()
        found = check_release(release, full=given.full)
        releases[name] = {
            "rows": found.rows,
            "proved": len(found.proved),
            "consistent": len(found.consistent),
            "believed": len(found.believed),
            "findings": [str(one) for one in found.findings],
            "cpu_s": round(cpu_s() - before, 1),
        }
        print(f"{name}: {releases[name]}", file=sys.stderr, flush=True)
    wrong = [name for name, one in releases.items() if one["findings"]]
    made = sum("not_built" not in one for one in releases.values())
    return {"releases": made, "contradicted": wrong, **releases, "exit": int(bool(wrong))}


def cpu_s() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def recipes() -> Iterator[tuple[str, Callable[[Path], Path]]]:
    """Name and builder of each honest release; a builder gets a separate workspace."""
    from functools import partial

    from routeyard.flows.recipe import shipped

    for name in shipped():
        yield name, partial(_shipped, name)
    for name, changes in VARIATIONS.items():
        yield name, partial(_varied, name, changes)


def _shipped(name: str, yard: Path) -> Path:
    from routeyard.flows.build import run_build
    from routeyard.flows.recipe import load
    from routeyard.flows.rehearse import rehearse
    from routeyard.flows.workspace import MAKERS
    from routeyard.pipelines.common.errors import RouteyardError
    from routeyard.pipelines.common.files import names

    for there in (yard / "releases").glob("*/*/manifest.json"):
        return there.parent
    recipe, _ = load(name)
    addresses = [one.base_url for one in recipe.pool.providers]
    own = addresses and all(set(names(one)) & set(MAKERS.targets) for one in addresses)
    if own or recipe.collect.provider == "recorded":
        try:
            return Path(run_build(name, str(yard), until="release")["release"]["path"])
        except RouteyardError as error:
            print(f"{name} is rehearsed: {error.what}", file=sys.stderr)
    return Path(rehearse(name, str(yard), copies=2)["release"]["path"])


def _varied(name: str, changes: dict[str, Any], yard: Path) -> Path:
    for there in (yard / "yard/releases").glob("*/*/manifest.json"):
        return there.parent
    return varied(yard, name=name, **changes)


def varied(folder: Path, **changes: Any) -> Path:
    """The release of the recipe `demo` with three models and other keys.

    A server whose address the recipe states answers, so that `verify` knows what was asked.
    """
    from routeyard.flows.build import run_build
    from routeyard.flows.demo.server import running
    from routeyard.flows.recipe import find

    folder.mkdir(parents=True, exist_ok=True)
    written = yaml.safe_load(find("demo").read_text(encoding="utf-8"))
    models = [one for one in written["pool"]["models"] if one["model_id"] in MODELS]
    for source in written["sources"]:
        source.update(changes.get("source", {}).get(source["name"], {}))
    with running("simulated", latency=0.0) as url:
        pool = {"providers": [{"name": "demo", "base_url": url}], "models": models}
        for key, value in {"pool": pool, **changes}.items():
            old = written.get(key)
            written[key] = {**old, **value} if isinstance(old, dict) else value
        written.pop("source", None)
        path = folder / "recipe.yaml"
        path.write_text(yaml.safe_dump(written, sort_keys=False), encoding="utf-8")
        done = run_build(str(path), str(folder / "yard"), until="release")
    return Path(done["release"]["path"])


MODELS = ("sim-atlas-xl", "sim-borealis-large", "sim-tern-mini")
#: Name → keys of the demo's recipe in other words; `source` changes sources by their names.
VARIATIONS: dict[str, dict[str, Any]] = {
    # Samples, log-probabilities, pairs, schemes of rules, an injected model.
    "rich": {
        "collect": {"samples": 3, "logprobs": True, "top_logprobs": 3},
        "curate": [
            {"rule": "dedup", "threshold": 0.999},
            {"rule": "unseen_models"},
            {"rule": "out_of_distribution", "groups": {"mathematics": ["math*"]}},
            {
                "rule": "preference", "strong": "sim-atlas-xl", "weak": "sim-tern-mini",
                "basis": ["semantic_entropy", "correctness"],
            },
            {"rule": "pseudo_specialists", "limit": 1, "min_queries": 10, "max_mean_accuracy": 1.0},
        ],
    },
    "embedded": {"release": {"include_embeddings": True}},
    "withheld": {"source": {"bank_text": {"redistribute_text": False}}},
    "thin": {
        "collect": {"coverage": {"share": 0.67}},
        "release": {"waivers": [{"gate": "metering", "reason": "The pool is simulated."}]},
    },
}  # fmt: skip
