"""Where questions come from, and how a source's fields become a query."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from routeyard.schemas.strict import Name, Strict


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
    group: str | None = Field(default=None, exclude_if=lambda given: given is None)
    """What a question belongs to: all questions with one value get one split, of whatever source
    they are (the repository of an issue, the passage of a question, one question under modes)."""
    images: str | None = Field(default=None, exclude_if=lambda given: given is None)
    """Images of the question: a path below `images_in`, an address, bytes, an object with `path`,
    `url` or `bytes` (and `license`, `sha256`), or a list of them."""
    metadata: list[str] = Field(default_factory=list)
    """Columns to keep as metadata."""


class Source(Strict):
    """One source dataset: from the hub, from local files, or from the catalog."""

    name: Name
    """Name of the source; the table `queries` holds it."""
    kind: Literal["files", "hub"] = "files"
    """Local `files`, or a dataset of the `hub`."""
    catalog: str | None = None
    """Name of a dataset that Routeyard knows; other keys are then its defaults."""
    # local files: path or glob; `$NAME` and `${NAME}` read the environment
    path: str | None = None
    """File or glob, relative to the recipe; `${NAME}` reads the environment."""
    format: Literal["parquet", "csv", "jsonl"] | None = None
    """Format of the files, where their names do not say it."""
    images_in: str | None = Field(default=None, exclude_if=lambda given: given is None)
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
    missing_question: Literal["error", "remove"] = "error"
    """What to do with a row that has no question: stop, or list it in removals."""
    missing_reference: Literal["error", "remove"] = "error"
    """What to do with a question that has no reference: stop, or list it in removals."""
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Rows to take (column: value); the others are not part of the source."""
    exclude: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Questions to leave out (column: value); each is listed in removals."""
    limit: int | None = Field(default=None, ge=1)
    """Questions to take at most, after `where`, `exclude` and questions without reference."""
    dense: int | None = Field(default=None, ge=1)
    """Of these, the first so many (after shuffling) are the dense slice: asked of all models
    whatever `collect.coverage` says, and what the rule `dense_sparse` can take as its slice."""
    shuffle_seed: int | None = None
    """Shuffle the rows with this seed before `limit` takes the first ones."""

    @model_validator(mode="after")
    def _has_a_place(self) -> Source:
        if self.catalog is None:
            if self.kind == "files" and not self.path:
                raise ValueError("a source of kind 'files' needs 'path'")
            if self.kind == "hub" and not self.hub_id:
                raise ValueError("a source of kind 'hub' needs 'hub_id'")
            if self.fields is None:
                raise ValueError("a source needs 'fields' (or 'catalog')")
        if self.dense is not None and self.limit is not None and self.dense > self.limit:
            raise ValueError(f"'dense' ({self.dense}) is larger than 'limit' ({self.limit})")
        return self
