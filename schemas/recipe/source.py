"""Where questions come from, and how a source's fields become a query."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from schemas.recipe.base import Name, Strict


class Fields(Strict):
    """Mapping of a source's fields.

    A plain name takes the field as it is; a text with `{{ … }}` is a sandboxed
    Jinja expression over the row. `choices` and `references` may also be
    Jinja expressions that give a list.
    """

    id: str | None = None
    question: str
    prompt: str | None = None
    choices: str | list[str] | None = None
    references: str | list[str] | None = None
    task: str | None = None
    domain: str | None = None
    #: Rule scorer of the row, where a source's rows need different ones.
    scorer: str | None = None
    metadata: list[str] = Field(default_factory=list)


class Source(Strict):
    """One source dataset: from the hub, from local files, or from the catalog."""

    name: Name
    kind: Literal["files", "hub"] = "files"
    catalog: str | None = None
    # local files: path or glob; `$NAME` and `${NAME}` read the environment
    path: str | None = None
    format: Literal["parquet", "csv", "jsonl"] | None = None
    # hub
    hub_id: str | None = None
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    streaming: bool = False
    # what the questions are
    task: str | None = None
    domain: str = "general"
    scorer: str | None = None
    instruction: str | None = None
    #: What "50 %" is against a bare number: `value` (0.5), `points` (50), or `either`, the
    #: default: the points only where the question asks for a percentage or the number exceeds 1.
    percent: Literal["value", "points", "either"] | None = None
    license: str = "NOASSERTION"
    url: str | None = None
    redistribute_text: bool = True
    #: A list in each row, by name or `{{ … }}`: every item makes a row of its own, which
    #: reads it as `_item` and its place as `_index` (the turns of a dialogue).
    each: str | None = None
    fields: Fields | None = None
    #: What to do with a question that has no reference: stop, or list it in removals.
    missing_reference: Literal["error", "remove"] = "error"
    #: Rows to take (column: value); the others are not part of the source.
    where: dict[str, str | int | float | bool] = Field(default_factory=dict)
    #: Questions to leave out (column: value); each is listed in removals.
    exclude: dict[str, str | int | float | bool] = Field(default_factory=dict)
    #: Questions to take at most, after `where`, `exclude` and questions without reference.
    limit: int | None = Field(default=None, ge=1)
    #: Of these, the first so many (after shuffling) are the dense slice: asked of all models
    #: whatever `collect.coverage` says, and what the rule `dense_sparse` can take as its slice.
    dense: int | None = Field(default=None, ge=1)
    shuffle_seed: int | None = None

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
