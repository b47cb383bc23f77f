"""Releases that contradict themselves are found, resealed as they are; honest ones hold."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from benchmarks.proof.honest import VARIATIONS, varied
from routeyard.flows.cli import run
from routeyard.flows.rehearse import rehearse
from tests.proof import further_lies
from tests.proof.lies import DEMO, PAIRS, STEPS
from tests.proof.resealed import Lie as Change
from tests.proof.resealed import resealed, verified
from tests.support.built_once import built_once
from tests.support.sampled import some

DEMO, STEPS = DEMO | further_lies.DEMO, STEPS | further_lies.STEPS


def rehearsed(yard: Path) -> Path:
    return Path(rehearse("confidence_pairs", str(yard), copies=2)["release"]["path"])


def of_an_agent(yard: Path) -> Path:
    from routeyard.flows.build import run_build

    return Path(run_build("agent_demo", str(yard), until="release")["release"]["path"])


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Preference pairs with entropies, rehearsed."""
    return built_once(tmp_path_factory, "lies_pairs", rehearsed)


@pytest.fixture(scope="session")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trajectories of an agent, on loopback."""
    return built_once(tmp_path_factory, "lies_steps", of_an_agent)


@pytest.fixture(scope="session")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples, log-probabilities, pairs, schemes of rules and an injected model."""
    build = partial(varied, name="rich", **VARIATIONS["rich"])
    return built_once(tmp_path_factory, "lies_rich", build)


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Embeddings of the questions."""
    build = partial(varied, name="embedded", **VARIATIONS["embedded"])
    return built_once(tmp_path_factory, "lies_embedded", build)


def test_there_are_at_least_forty() -> None:
    assert len(DEMO) + len(PAIRS) + len(STEPS) + len(further_lies.RICH) >= 90


def found(release: Path, root: Path, case: tuple[Change, str, str]) -> None:
    lie, about, words = case
    proof = verified(resealed(release, root, lie))
    named = [one for one in proof.findings if one.where == about and words in one.says]
    assert named, list(map(str, proof.findings))


@pytest.mark.parametrize("name", some(DEMO, 8))
def test_a_release_that_contradicts_itself(name: str, demo_release: Path, tmp_path: Path) -> None:
    found(demo_release, tmp_path, DEMO[name])


@pytest.mark.parametrize("name", some(further_lies.SWITCHED_OFF, 6))
def test_a_check_that_is_switched_off(name: str, demo_release: Path, tmp_path: Path) -> None:
    found(demo_release, tmp_path, further_lies.SWITCHED_OFF[name])


@pytest.mark.parametrize("name", some(further_lies.NAMED, 6))
def test_what_no_check_can_tell_is_named(name: str, demo_release: Path, tmp_path: Path) -> None:
    lie, kind, about, words = further_lies.NAMED[name]
    proof = verified(resealed(demo_release, tmp_path, lie))
    assert [one for one in proof.claims if (one.kind, one.about) == (kind, about)
            and words in one.says], proof.of(kind)  # fmt: skip
    assert not [str(one) for one in proof.findings]


@pytest.mark.parametrize("name", some(PAIRS, 4))
def test_pairs_that_contradict_themselves(name: str, pairs: Path, tmp_path: Path) -> None:
    found(pairs, tmp_path, PAIRS[name])


@pytest.mark.parametrize("name", some(STEPS, 6))
def test_steps_that_contradict_themselves(name: str, steps: Path, tmp_path: Path) -> None:
    found(steps, tmp_path, STEPS[name])


@pytest.mark.parametrize("name", some(further_lies.RICH, 9))
def test_rules_that_are_contradicted(name: str, rich: Path, tmp_path: Path) -> None:
    found(rich, tmp_path, further_lies.RICH[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", further_lies.EMBEDDED)
def test_embeddings_that_are_not_whole(name: str, embedded: Path, tmp_path: Path) -> None:
    found(embedded, tmp_path, further_lies.EMBEDDED[name])


def test_what_is_resealed_without_a_lie_holds(
    demo_release: Path, pairs: Path, steps: Path, rich: Path, tmp_path: Path
) -> None:
    for number, release in enumerate((demo_release, pairs, steps, rich)):
        proof = verified(resealed(release, tmp_path / str(number)))
        assert [str(one) for one in proof.findings] == []
        assert proof.of("proved")
        assert proof.of("consistent")
        assert proof.of("believed")


def test_the_command_prints_three_lists_and_exits_3_on_a_contradiction(
    demo_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(demo_release), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["findings"] == []
    assert any(
        "labels are what the recipe's policy makes of the verdicts" in line
        for line in told["proved"]
    )
    assert told["consistent"]
    assert any(line.startswith("responses: that these models gave") for line in told["believed"])
    assert run(["verify", str(demo_release)]) == 0
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
