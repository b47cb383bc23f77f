"""The list of stages: in order, with nothing from later stages, and as the docs show it."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

from routeyard.flows.stages import RELEASE, STAGES, UNTIL, as_table
from routeyard.schemas.recipe import Recipe

ROOT = Path(__file__).parents[2]


def test_the_docs_show_the_list() -> None:
    assert as_table() in (ROOT / "docs/stages/index.md").read_text()


def test_a_stage_reads_what_earlier_stages_made_and_sections_that_exist() -> None:
    made: set[str] = set()
    for stage in STAGES:
        assert made >= set(stage.inputs), stage
        assert all(hasattr(Recipe, key) or key in Recipe.model_fields for key in stage.sections)
        # What a stage declares is what its function takes; all of it by name.
        given = {"context", *stage.sections, *stage.inputs}
        required = {
            name
            for name, one in signature(stage.function).parameters.items()
            if one.default is one.empty
        }
        assert required <= given <= {*signature(stage.function).parameters}, stage
        made.add(stage.makes)


def test_until_and_the_manifest_keep_their_names() -> None:
    assert UNTIL == ("ingest", "collect", "label", "curate", "certify", "release")
    names = list(dict.fromkeys(one.name for one in (*STAGES, RELEASE) if not one.part_of))
    assert names == [
        "ingest", "pool", "collect", "label", "embed", "curate", "hidden_states", "audit",
        "certify", "release",
    ]  # fmt: skip
