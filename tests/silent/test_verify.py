"""`verify` prints as proved only what was computed, and names each check that was not made.

Each test writes an honest release once more with something changed in it, with every checksum,
fingerprint, card and summary right, and reads what the command says of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.proof.lies import both, column, fact
from tests.proof.resealed import Lie, resealed

Check = Callable[[Lie | None], dict[str, Any]]


@pytest.fixture
def check(demo_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """What `routeyard verify --json` says of the release with that change in it."""
    from routeyard.flows.cli import run

    def checked(lie: Lie | None) -> dict[str, Any]:
        release = demo_release if lie is None else resealed(demo_release, tmp_path, lie)
        code = run(["verify", str(release), "--json"])
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert code == (3 if said["findings"] else 0)
        return said

    return checked


def recipe(change: Callable[[dict[str, Any]], Any]) -> Lie:
    return fact(lambda facts: change(facts["recipe"]))


def each_differs(hashed: str) -> str:
    return hashed[::-1]


def without_addresses(facts: dict[str, Any]) -> None:
    facts["figures"]["collect"].pop("addresses", None)


def shown(lines: list[Any]) -> str:
    return "\n".join(map(str, lines))


def test_a_recipe_that_is_none_switches_no_check_off(check: Check) -> None:
    # Zeros for hashes, and "the recipe is of another version of the code".
    zeros = column("responses", request_hash="0" * 64)
    said = check(both(zeros, recipe(lambda found: found["collect"].update(samples=0))))
    assert "collect.samples" in shown(said["findings"])
    assert "request hashes" in shown(said["not_run"])
    assert "collect.samples" in shown(said["not_run"])


def test_a_recipe_without_its_sections_is_found(check: Check) -> None:
    # Without one of four sections nothing was compared with the recipe, and nothing said so.
    said = check(recipe(lambda found: found.pop("label")))
    assert "label" in shown([one for one in said["findings"] if one["where"] == "recipe"])


def test_stages_without_figures_are_found(check: Check) -> None:
    # No figures, no checks of the manifest: waivers, counts, metering and certificate.
    said = check(fact(lambda facts: facts.update(figures={})))
    assert "no figures" in shown(said["findings"])
    assert any("metering" in line for line in said["not_run"])


def test_findings_of_the_audit_that_are_no_list_are_found(check: Check) -> None:
    # A word in their place was "0 findings follow from the answers".
    said = check(fact(lambda facts: facts["figures"]["audit"].update(findings="none")))
    assert "figures.audit" in shown(said["findings"])
    assert "figures.audit" not in shown(said["proved"])


def test_other_code_switches_checks_off_by_name(check: Check) -> None:
    lie = both(
        column("responses", request_hash="0" * 64),
        fact(lambda facts: facts.update(code="0.0.9")),
    )
    said = check(lie)
    assert any("request hashes" in line and "0.0.9" in line for line in said["not_run"])


def test_verdicts_of_another_version_of_their_scorer_are_named(check: Check) -> None:
    said = check(column("verdicts", scorer_version="99"))
    assert any("against texts" in line and "version 99" in line for line in said["not_run"])


def test_the_estimate_of_wrong_labels_is_computed(check: Check) -> None:
    # 83 expected wrong labels became 0, and the manifest was "proved".
    change = fact(lambda facts: facts["figures"]["label_errors"].update(expected_wrong=0.0))
    assert "expected_wrong" in shown(check(change)["findings"])


def test_domains_are_not_proved_by_themselves(check: Check) -> None:
    said = check(column("queries", domain="law"))
    assert not said["findings"]
    assert "domain" not in shown(said["proved"])
    assert "domain" in shown([line for line in said["believed"] if line.startswith("queries:")])


def test_what_no_check_proves_is_believed_by_name(check: Check) -> None:
    said = check(None)
    believed = shown(said["believed"])
    for name in ("attempts", "provider", "label_conflict", "detail", "price_in", "fingerprints"):
        assert name in believed, name
    # The embeddings are released, so the release lacks nothing: `--full` fits these routers.
    routers = [one for one in map(str, said["believed"]) if "reference routers" in one]
    assert routers
    assert all("--full" in one and "not here" not in one for one in routers)
    # Nothing of this release was charged by the price table: no cost of it was proved.
    assert "costs by the price table" not in shown(said["proved"])


@pytest.mark.parametrize("hashes", ["0" * 64, each_differs])
def test_requests_to_addresses_of_the_environment(check: Check, hashes: Any) -> None:
    # The recipe names the address `${ROUTEYARD_DEMO_URL}`: all hashes were explained by that.
    assert "requests" in shown(check(column("responses", request_hash=hashes))["findings"])


def test_another_system_message_is_found(check: Check) -> None:
    said = check(recipe(lambda found: found["collect"].update(system="Think twice.")))
    assert "requests are not what the recipe asks" in shown(said["findings"])


def test_requests_to_an_address_that_nobody_states_are_counted(check: Check) -> None:
    lie = both(column("responses", request_hash=each_differs), fact(without_addresses))
    said = check(lie)
    assert any("3,000 of 3,000 request hashes" in line for line in said["not_run"])
    assert any("system message" in line for line in said["believed"])


def test_reasons_are_those_of_the_scorer(check: Check) -> None:
    found = shown(check(column("verdicts", reason="it is right"))["findings"])
    assert "has reason 'it is right', expected" in found
