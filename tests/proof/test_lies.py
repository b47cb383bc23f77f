"""Releases that contradict themselves are found, resealed as they are; honest ones hold.

The suite puts several lies into one release; with `-m slow`, each has a release to itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.proof.honest import VARIATIONS, varied
from routeyard.datacards.card import render
from routeyard.flows.cli import run
from routeyard.pipelines.release.manifest import Finding, read_manifest
from routeyard.pipelines.verify.evidence import Evidence, Proof
from routeyard.pipelines.verify.recipe import recipe_validates
from tests.proof import further_lies, lies
from tests.proof.resealed import contents, resealed, verified
from tests.support.built_once import built_once
from tests.support.sampled import together

DEMO = lies.DEMO | further_lies.DEMO | further_lies.SWITCHED_OFF
STEPS = lies.STEPS | further_lies.STEPS
RICH = lies.PAIRS | further_lies.RICH
#: Groups of lies after which other checks are not made, or which change what other checks compare.
APART = [
    [name for name in DEMO if name.startswith(("card", "a card"))],
    ("no samples", "a key that no recipe has", "a source of no kind", "gains of a router",
     "words of the certificate", "leaks of the certificate"),
    ("a rule without a name", "shares of more than all", "stages without figures", "no verdicts",
     "conflicts of half a group", "reasons of removals"),
    ("a recipe of nothing", "no splits", "plots of other labels", "questions left out"),
    ("seed of the certificate", "folds of the certificate", "verdicts and labels alike",
     "near-duplicates that are none", "served by another model", "contested labels"),
    ("certificate of another verdict", "zero tokens beside a clean audit",
     "rule of the certificate", "score 1 with correct false", "splits cut", "scores of verdicts"),
    ("requests of zeros to an address that nobody states", "intervals of nothing",
     "certificate figures of 11.1 %", "prices in table and recipe", "a finding of nobody"),
    ("labels against verdicts", "shares of the split", "reasons of verdicts",
     "costs of rules", "a word more in the certificate",
     "a figure left out"),
    ("answers extracted",),
]  # fmt: skip
#: Recipes that do not validate, whatever else the release holds.
OF_RECIPES = [name for name, case in further_lies.SWITCHED_OFF.items() if case[1] == "recipe"]
OF_STEPS = [["steps of nobody"], ["costs of trajectories"]]
OF_RICH = [["answers of other samples"], ["pairs left out"]]


def of_an_agent(yard: Path) -> Path:
    from routeyard.flows.build import run_build

    return Path(run_build("agent_demo", str(yard), until="release")["release"]["path"])


@pytest.fixture(scope="session")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trajectories of an agent, on loopback."""
    return built_once(tmp_path_factory, "lies_steps", of_an_agent)


@pytest.fixture(scope="session")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples, log-probabilities, pairs, schemes of rules and an injected model."""
    few = {
        name: {"limit": 60, "shuffle_seed": 1}
        for name in ("bank_choice", "bank_number", "bank_text")
    }
    build = partial(varied, name="rich", source=few, **VARIATIONS["rich"])
    return built_once(tmp_path_factory, "lies_rich", build)


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Embeddings of the questions."""
    build = partial(varied, name="embedded", **VARIATIONS["embedded"])
    return built_once(tmp_path_factory, "lies_embedded", build)


def about(case: tuple[Any, ...]) -> tuple[str, ...]:
    return case[1:]


def told(release: Path, root: Path, cases: Mapping[str, Any], names: list[str]) -> Proof:
    return verified(resealed(release, root, lies.both(*(cases[name][0] for name in names))))


def found(release: Path, root: Path, cases: Mapping[str, Any], names: list[str]) -> None:
    findings = told(release, root, cases, names).findings
    missed = [
        name
        for name in names
        for where, words in [about(cases[name])]
        if not any(one.where == where and words in one.says for one in findings)
    ]
    assert not missed, list(map(str, findings))


def test_there_are_at_least_forty() -> None:
    assert len(DEMO) + len(STEPS) + len(RICH) >= 110


@pytest.mark.parametrize("names", together(DEMO, 5, about, APART, OF_RECIPES))
def test_a_release_that_contradicts_itself(
    names: list[str], demo_release: Path, tmp_path: Path
) -> None:
    found(demo_release, tmp_path, DEMO, names)


def test_a_recipe_that_is_none(demo_release: Path) -> None:
    manifest = read_manifest(demo_release)
    for name in OF_RECIPES:
        lie, where, words = DEMO[name]
        tables, facts = contents(demo_release)
        lie(tables, facts)
        told = {"recipe": facts["recipe"], "code_version": facts.get("code", manifest.code_version)}
        changed = manifest.model_copy(update=told)
        (finding,) = recipe_validates(Evidence(demo_release, changed, render))
        assert isinstance(finding, Finding), name
        assert (finding.where, words in finding.says) == (where, True), (name, finding)


@pytest.mark.parametrize("names", together(further_lies.NAMED, 1, about, further_lies.APART))
def test_what_no_check_can_tell_is_named(
    names: list[str], demo_release: Path, tmp_path: Path
) -> None:
    proof = told(demo_release, tmp_path, further_lies.NAMED, names)
    claims = [(one.kind, one.about, one.says) for one in proof.claims]
    missed = [
        name
        for name in names
        for kind, where, words in [about(further_lies.NAMED[name])]
        if not any((kind, where) == one[:2] and words in one[2] for one in claims)
    ]
    assert not missed, claims
    assert not [str(one) for one in proof.findings]


@pytest.mark.parametrize("names", together(STEPS, 1, about, OF_STEPS))
def test_steps_that_contradict_themselves(names: list[str], steps: Path, tmp_path: Path) -> None:
    found(steps, tmp_path, STEPS, names)


@pytest.mark.parametrize("names", together(RICH, 2, about, OF_RICH))
def test_rules_that_are_contradicted(names: list[str], rich: Path, tmp_path: Path) -> None:
    found(rich, tmp_path, RICH, names)


@pytest.mark.slow
@pytest.mark.parametrize("name", further_lies.EMBEDDED)
def test_embeddings_that_are_not_whole(name: str, embedded: Path, tmp_path: Path) -> None:
    found(embedded, tmp_path, further_lies.EMBEDDED, [name])


def test_what_is_resealed_without_a_lie_holds(steps: Path, rich: Path, tmp_path: Path) -> None:
    for release in (steps, rich):
        proof = verified(resealed(release, tmp_path / release.parent.name))
        assert [str(one) for one in proof.findings] == []
        assert all(proof.of(kind) for kind in ("proved", "consistent", "believed"))


def test_the_command_prints_three_lists_and_exits_3_on_a_contradiction(
    demo_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = resealed(demo_release, tmp_path / "honest")
    assert run(["verify", str(honest), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["findings"] == []
    proved, believed = "\n".join(said["proved"]), said["believed"]
    assert "labels are what the recipe's policy makes of the verdicts" in proved
    assert said["consistent"]
    assert any(line.startswith("responses: that these models gave") for line in believed)
    for name in ("attempts", "provider", "label_conflict", "detail", "price_in", "fingerprints"):
        assert name in "\n".join(believed), name
    # The embeddings are released, so the release lacks nothing: `--full` fits these routers.
    routers = [one for one in believed if "reference routers" in one]
    assert routers
    assert all("--full" in one and "not here" not in one for one in routers)
    # Nothing of this release was charged by the price table, and nobody proves a domain.
    assert "costs by the price table" not in proved
    assert "domain" not in proved
    assert run(["verify", str(honest)]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("\nproved", "\nconsistent", "\nbelieved"))
    lied = resealed(demo_release, tmp_path, DEMO["costs divided by 1,000"][0])
    assert run(["verify", str(lied), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)["findings"]
    (finding,) = [one for one in found if one["where"] == "responses"]
    assert "rows break the rule 'costs by the price table'" in finding["says"]
    assert "expected" in finding["says"]


def test_everything_again_with_full(demo_release: Path) -> None:
    proof = verified(demo_release, full=True)
    assert [str(one) for one in proof.findings] == []
    proved = "\n".join(proof.of("proved"))
    assert "verdicts are what their scorer (em, mcq, numeric) reads in the text (all)" in proved
    assert "intervals are those of 10,000 resamples with the stored seed" in proved
