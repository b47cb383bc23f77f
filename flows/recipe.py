"""Recipes from YAML: found by path or shipped name, checked, errors in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from routeyard.pipelines.common.files import expanded, read_text
from routeyard.pipelines.curate import RULES
from routeyard.schemas.errors import BadInput, RecipeError, did_you_mean
from routeyard.schemas.recipe import CurationRule, Parts, Pool, Recipe, Source, Split
from routeyard.schemas.recipe.collect import CollectAgain
from routeyard.schemas.statuses import NO_RULE
from routeyard.schemas.text import own_table

# What is wrong with a recipe, in words: line of the file, name of the source, what to write.
#
#     for fault in faults("my.yaml"):    # all of them at once
#         print(fault)
#
# `routeyard.flows.recipe.load` stops at the first fault and words it in the same way.

#: Words for patterns of the schema, for entries of its lists and for kinds of faults.
_WORDS = own_table(Path(__file__).with_name("recipe_words.yaml"))

Place = tuple[str | int, ...]
#: Place of a recipe's key, what is wrong, and the next step.
Finding = tuple[Place, str, str]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `place` is its path of keys, `line` counts from 1 (0: not known)."""

    file: str
    line: int
    place: str
    says: str
    next: str = ""

    def __str__(self) -> str:
        at = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{at}: {self.place}: {self.says}"
        return f"{text}\n  next:  {self.next}" if self.next else text


def finding(place: Place, error: BadInput, *, where: bool = False) -> Finding:
    """An error at a place of the recipe; with `where`, its text names its own place too."""
    says = f"{error.what} ({error.where})" if where and error.where else error.what
    return place, says, error.next_step or ""


def of_findings(findings: Iterable[Finding], path: Path, content: Any) -> list[Fault]:
    """Findings with their lines and the names of their entries."""
    lines = _KeyLines(path)
    return [
        Fault(str(path), lines.of(place), words_of(place, content), says, then)
        for place, says, then in findings
    ]


def of_validation(error: ValidationError, path: Path, content: Any) -> list[Fault]:
    """The faults that pydantic found, in the order of the file."""
    problems = error.errors(include_url=False)
    results = [(_real(problem["loc"], content), in_words(problem), "") for problem in problems]
    return sorted(of_findings(results, path, content), key=lambda fault: fault.line)


def names(content: Mapping[str, Any]) -> Iterator[tuple[Place, BadInput]]:
    """Rules, scorers and gates that do not exist, and parameters that a rule does not have."""
    from routeyard.pipelines.audit.metering import check_gate
    from routeyard.pipelines.label.scorers import SCORERS

    def rule(entry: dict[str, Any]) -> None:
        parameters = entry.get("parameters")
        if not isinstance(parameters, dict):
            parameters = {k: v for k, v in entry.items() if k != "rule"}
        RULES.get(entry["rule"]).check(parameters, where="curate")

    release = content.get("release")
    checks: list[tuple[Place, str, Callable[[dict[str, Any]], Any], Sequence[dict[str, Any]]]] = [
        (("curate",), "rule", rule, entries(content, "curate")),
        (("sources",), "scorer", lambda item: SCORERS.get(item["scorer"]), _scored(content)),
        (
            ("release", "waivers"),
            "gate",
            lambda waiver: check_gate(waiver["gate"]),
            entries(release, "waivers") if isinstance(release, dict) else [],
        ),
    ]
    for place, key, check, listed in checks:
        for number, entry in enumerate(listed):
            if not isinstance(entry.get(key), str):
                continue
            try:
                check(entry)
            except BadInput as error:
                yield (*place, number, *([key] if key == "scorer" else [])), error


def _scored(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [entry if entry.get("scorer") != "none" else {} for entry in entries(content, "sources")]


def entries(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The entries of a list of a recipe; empty ones for those that are no mappings."""
    listed = content.get(key)
    if not isinstance(listed, list):
        return []
    return [item if isinstance(item, dict) else {} for item in listed]


def in_words(problem: Mapping[str, Any]) -> str:
    """One problem of pydantic as a sentence without its vocabulary."""
    kind, value, ctx = problem["type"], problem.get("input"), problem.get("ctx") or {}
    shown = repr(value)[:60]
    if kind == "missing":
        return f"{problem['loc'][-1]!r} is missing"
    if kind == "string_pattern_mismatch":
        pattern = str(ctx.get("pattern"))
        return (
            f"{shown} does not fit: {_WORDS['patterns'].get(pattern, 'other signs are expected')}"
        )
    if kind == "literal_error":
        choices = str(ctx.get("expected", "")).replace("'", "").replace(" or ", ", ").split(", ")
        return f"{shown} is not known; {did_you_mean(str(value), choices)}"
    if kind in _WORDS["kinds"]:
        return f"{_WORDS['kinds'][kind]}, not {shown}"
    if kind == "too_short":
        return "at least one entry is needed"
    limits = {"greater_than_equal": ("ge", "at least"), "greater_than": ("gt", "more than"),
              "less_than_equal": ("le", "at most"), "less_than": ("lt", "less than")}  # fmt: skip
    if kind in limits:
        key, word = limits[kind]
        return f"{shown} does not fit: {word} {ctx.get(key)}"
    if kind == "string_too_short":
        return f"{shown} is too short: at least {ctx.get('min_length')} characters"
    return str(problem["msg"]).removeprefix("Value error, ")


def words_of(place: Sequence[str | int], content: Any) -> str:
    """`source 'gsm8k', fields.question` for `sources.0.fields.question`."""
    names: list[str] = []
    keys: list[str] = []
    here, last = content, ""
    for part in place:
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            here = None
        if isinstance(part, int) and last in _WORDS["entries"]:
            what, key = _WORDS["entries"][last]
            named = here.get(key) if isinstance(here, dict) else None
            names.append(f"{what} {named!r}" if named else f"{what} number {part + 1}")
            keys = []
        else:
            keys.append(str(part))
        last = str(part)
    return ", ".join([*names, ".".join(keys)]).strip(", ") or "recipe"


class _KeyLines:
    """Lines of the keys of one YAML file."""

    def __init__(self, path: Path):
        self._path = path

    @cached_property
    def _root(self) -> yaml.Node | None:
        """The file, read where there is a fault to place."""
        try:
            return yaml.compose(self._path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            return None

    def of(self, place: Sequence[str | int]) -> int:
        node, line = self._root, 1 if self._root is not None else 0
        for part in place:
            step = _step(node, part)
            if step is None:
                break
            key, node = step
            line = key.start_mark.line + 1
        return line


def _step(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == str(part):
                return key, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _real(place: Sequence[str | int], content: Any) -> Place:
    """A place without the parts that pydantic adds for the branches of a union."""
    parts: list[str | int] = []
    here = content
    for number, part in enumerate(place):
        inside = (isinstance(here, dict) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        )
        if inside:
            here = here[part]
            parts.append(part)
        elif number == len(place) - 1 and isinstance(here, dict):
            parts.append(part)
    return tuple(parts)


_MAX_BYTES = 5_000_000


def shipped() -> list[str]:
    """Names of the recipes that come with the package."""
    folder = files("routeyard.flows").joinpath("recipes")
    names = [f.name for f in folder.iterdir() if f.name.endswith(".yaml")]
    return sorted(name[:-5] for name in names if not name.endswith(".pool.yaml"))


def find(recipe: str) -> Path:
    """Path of a recipe file, or of the shipped recipe of that name."""
    path = Path(recipe)
    if path.is_file():
        return path
    if recipe in shipped():
        return Path(str(files("routeyard.flows").joinpath("recipes", f"{recipe}.yaml")))
    raise RecipeError(
        f"there is no recipe {recipe!r}",
        where=str(path.absolute()) if path.suffix else None,
        next_step=f"name a YAML file or a shipped recipe: {did_you_mean(recipe, shipped())}",
    )


def load(recipe: str | Path) -> tuple[Recipe, Path]:
    """The checked recipe, its pool file read in, and the folder its paths start from.

    Raises:
        RecipeError: not YAML, an unknown key (with a suggestion), a wrong value,
            a rule or scorer that is not registered.
    """
    path = find(str(recipe))
    content = read_yaml(path)
    pool = content.get("pool")
    if isinstance(pool, dict) and isinstance(pool.get("file"), str):
        content["pool"] = merged_pool(pool, path)
    try:
        checked = Recipe.model_validate(content)
    except ValidationError as error:
        raise explain(error, path, content) from error
    checked = _with_zoo(_with_templates(_with_prices(checked, path), path), path)
    if any(entry.mapping or entry.fields.cost_usd for entry in checked.collect.recorded):
        from routeyard.pipelines.ingest.mapping import with_fields  # reads no table else

        checked.collect.recorded[:] = map(with_fields, checked.collect.recorded)
    _check_names(content, path)
    return checked, path.parent.absolute()


def load_recipe(recipe: str | Path) -> Recipe:
    """A recipe from a YAML file, or the shipped one of that name, checked.

    Raises:
        RecipeError: see `load`.
    """
    return load(recipe)[0]


def notes_of(recipe: Recipe) -> list[str]:
    """What of a recipe is worth a look before anything is asked: prompts, deciders, prices."""
    from routeyard.pipelines.collect.prices import from_list, stale_prices

    asked = recipe.collect.provider == "openai"
    prices = [*from_list(recipe.pool), *(stale_prices(recipe.pool) if asked else ())]
    return [*recipe.label.foreign_prompts, *nobody_decides(recipe), *prices]


def nobody_decides(recipe: Recipe) -> list[str]:
    """A note for each source whose answers are paid for and decided by nobody."""
    label = recipe.label
    if recipe.collect.provider == "recorded" or any(
        policy.then for policy in (label.default, *label.tasks.values())
    ):
        return []
    return [
        f"source {source.name!r} has 'scorer: none', and no policy under 'label' names a verifier "
        "or judge: its answers are paid for and stay undecided until a person decides them "
        "(`routeyard review`)"
        for source in recipe.sources
        if source.scorer == NO_RULE
    ]


def with_collect(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe for one run, with some keys of its `collect` section set otherwise; `reask` and
    `reask_truncated` say what the run asks again.

    Raises:
        RecipeError: a value does not fit.
    """
    if not changes:
        return recipe
    try:
        collect = CollectAgain.model_validate(
            recipe.collect.model_dump(exclude_unset=True) | dict(changes)
        )
    except ValidationError as error:
        raise explain(error, Path("command line"), dict(changes)) from error
    return recipe.but(collect=collect)


def _with_prices(recipe: Recipe, path: Path) -> Recipe:
    """Prices of the pool's price file, then of lists, and published sizes, where not stated."""
    from routeyard.pipelines.collect.prices import priced, read_prices, with_list_prices
    from routeyard.pipelines.common.pool import with_published_sizes

    pool = recipe.pool
    if pool.prices is not None:
        pool = priced(pool, read_prices(path.parent / pool.prices))
    pool = with_list_prices(pool, batch=recipe.collect.transport == "batch")
    pool = with_published_sizes(pool)
    return recipe if pool is recipe.pool else recipe.but(pool=pool)


def _with_templates(recipe: Recipe, path: Path) -> Recipe:
    """Prompts of verifiers and judges from files beside the recipe, as the text they hold.

    A release then states the prompt itself, and no path of the machine it was made on.
    """
    served = [*recipe.label.verifiers, *recipe.label.judges]
    if all(item.template is None for item in served):
        return recipe
    from routeyard.pipelines.label.judges import read_template, shipped

    def text(template: str | None) -> str | None:
        if template is None or template in shipped() or "{{" in template:
            return template
        return read_template(path.parent / template)

    def with_text(listed: Sequence[Any]) -> list[Any]:
        return [item.but(template=text(item.template)) for item in listed]

    label = recipe.label.but(
        verifiers=with_text(recipe.label.verifiers), judges=with_text(recipe.label.judges)
    )
    return recipe.but(label=label)


def _with_zoo(recipe: Recipe, path: Path) -> Recipe:
    """The zoo's results from their file beside the recipe, as the text it holds."""
    if recipe.release.zoo is None:
        return recipe
    from routeyard.pipelines.evaluate.zoo.report import checked_results

    text = checked_results(recipe.release.zoo, path.parent)
    return recipe.but(release=recipe.release.but(zoo=text))


def read_yaml(path: Path) -> dict[str, Any]:
    """One YAML mapping, read as a stranger's (`routeyard.pipelines.common.files`)."""
    if path.stat().st_size > _MAX_BYTES:
        raise RecipeError("the file is larger than a recipe can be", where=str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RecipeError(
            f"the file is not valid YAML: {error}", where=str(path), next_step="write it as UTF-8"
        ) from error
    content = read_text(text, where=str(path))
    if not isinstance(content, dict):
        raise RecipeError(
            "a recipe is a mapping of keys",
            where=str(path),
            next_step="see `routeyard recipe check demo --print`",
        )
    return content


def explain(error: ValidationError, path: Path, content: object = None) -> RecipeError:
    """A pydantic error in plain words: first fault, line and name, how many more."""

    result = of_validation(error, path, content)
    first = result[0]
    more = f" (and {len(result) - 1} more: `routeyard recipe check`)" if len(result) > 1 else ""
    line = f":{first.line}" if first.line else ""
    return RecipeError(
        f"{first.says}{more}",
        where=f"{path}{line}: {first.place}",
        next_step=f"correct {first.place!r}; `routeyard recipe schema --page` explains every key",
    )


def merged_pool(pool: dict[str, Any], recipe: Path) -> dict[str, Any]:
    """Pool file first, then what the recipe itself says.

    A file named through the environment may not be there yet: the pool then keeps its
    `file`, is empty, and only what needs the models refuses (`routeyard.pipelines.common.pool`).
    """
    named = expanded(str(pool["file"]))
    if "$" in named:
        return pool
    path = recipe.parent / named
    if not path.is_file():
        raise RecipeError(
            f"there is no pool file {path}",
            where=f"{recipe}: pool.file",
            next_step="correct the path",
        )
    try:
        said = read_yaml(path)
        from_file = Pool.model_validate(said)
    except ValidationError as error:
        raise explain(error, path, said) from error
    merged = from_file.model_dump(exclude_unset=True)
    merged["models"] = merged.get("models", []) + list(pool.get("models", []))
    merged["providers"] = merged.get("providers", []) + list(pool.get("providers", []))
    return {**{k: v for k, v in pool.items() if k != "file"}, **merged}


def _check_names(content: Mapping[str, Any], path: Path) -> None:
    """Rules, scorers and gates exist; a rule's parameters fit its signature.

    Raises:
        RecipeError: the first that does not, with its line.
    """

    for place, error in names(content):
        (fault,) = of_findings([finding(place, error)], path, content)
        error.where = f"{path}:{fault.line}: {fault.place}"
        raise error


def with_defaults(recipe: Recipe) -> dict[str, Any]:
    """A recipe with every default: parameters of rules and sources of the catalog written out."""
    from routeyard.pipelines.ingest.catalog import from_catalog

    shown = recipe.model_dump(mode="json")
    shown["sources"] = [from_catalog(source).model_dump(mode="json") for source in recipe.sources]
    shown["curate"] = [
        {"rule": rule.rule, **RULES.get(rule.rule).defaults, **rule.parameters}
        for rule in recipe.curate
    ]
    return shown


# A recipe at another scale: every count of questions shrinks in proportion.
#
# Sources, the dense slice, splits in counts, budgets and the counts of curation
# rules shrink; models, samples, thresholds and prices stay as they are.

#: Parameters of rules that count questions.
COUNTS_OF_RULES: Mapping[str, tuple[str, ...]] = {
    "dense_sparse": ("validation", "test"),
    "pseudo_specialists": ("min_queries",),
    "specialist_sample": ("quota", "floor"),
}


def scaled(recipe: Recipe, scale: float | None) -> Recipe:
    """The recipe with every count of questions times `scale`, in (0, 1].

    Raises:
        BadInput: the scale is outside (0, 1], or a source states no `limit`.
    """
    if scale is None or scale == 1:
        return recipe
    if not 0 < scale <= 1:
        raise BadInput(f"a scale of {scale:g} is not in (0, 1]", next_step="write 0.01 for 1 %")
    free = [source.name for source in recipe.sources if source.limit is None]
    if free:
        raise BadInput(
            f"source {free[0]!r} states no 'limit', so it cannot be scaled",
            where=f"recipe {recipe.name!r}",
            next_step="give the source a 'limit'",
        )
    changed = resized(recipe, [_source(source, scale) for source in recipe.sources])
    note = f"Built at a scale of {scale:g} of the recipe (`--scale {scale:g}`)."
    release = recipe.release.but(known_issues=[*recipe.release.known_issues, note])
    return changed.but(collect=_collect(recipe, scale), release=release)


def resized(recipe: Recipe, sources: Sequence[Source], least: int = 1) -> Recipe:
    """The recipe over other sources, all with a `limit`; splits and rules are fitted to them.

    Args:
        least: Questions of each part of a split of all sources, or a quarter of them where that
            is less.
    """
    total = sum(int(source.limit or 0) for source in sources)
    before = sum(int(source.limit or 0) for source in recipe.sources)
    scale = total / before if before else 1.0
    limits = {source.name: int(source.limit or 0) for source in sources}
    changed = recipe.but(
        sources=list(sources),
        split=_split(recipe.split, limits, least),
        curate=[_rule(rule, scale, sources) for rule in recipe.curate],
    )
    # `model_copy` counts what it sets as written; a split that was not, still is not.
    if "split" not in recipe.model_fields_set:
        changed.model_fields_set.discard("split")
    return changed


def _source(source: Source, scale: float) -> Source:
    limit = max(1, round((source.limit or 1) * scale))
    changes: dict[str, Any] = {"limit": limit}
    if source.dense is not None:
        changes["dense"] = min(limit, max(1, round(source.dense * scale)))
    return source.model_copy(update=changes)


def _split(split: Split, limits: Mapping[str, int], least: int) -> Split:
    if split.sources:
        own = {name: _fitted(source, limits.get(name, 0)) for name, source in split.sources.items()}
        return split.but(sources=own)
    if split.counts is None:
        return split
    parts = _fitted(split.counts, sum(limits.values()), least)
    return split.model_copy(update=parts.model_dump())


def _fitted(parts: Parts, room: int, least: int = 1) -> Parts:
    """The same proportions over at most `room` questions; `least`, or a quarter of them, and one
    at any rate of each that had some."""
    from routeyard.pipelines.curate.split import apportion

    sizes = parts.model_dump()
    smaller = apportion(sizes, min(room, sum(sizes.values())))
    floor = max(1, min(least, room // 4))
    for name, size in sizes.items():
        most = max(smaller, key=lambda key: smaller[key])
        moved = min(floor, size) - smaller[name]
        if moved > 0 and smaller[most] - moved >= min(floor, sizes[most]):
            smaller[name], smaller[most] = smaller[name] + moved, smaller[most] - moved
    return Parts(**smaller)


def _rule(rule: CurationRule, scale: float, sources: Sequence[Source]) -> CurationRule:
    names = COUNTS_OF_RULES.get(rule.rule, ())
    parameters = {**RULES.get(rule.rule).defaults, **rule.parameters}
    changes = {
        name: max(1, round(parameters[name] * scale))
        for name in names
        if isinstance(parameters[name], int) and parameters[name]
    }
    if rule.rule == "dense_sparse" and parameters["slice_share"] is None:
        # The slice shrinks source by source: the same proportions of what it holds now.
        inside = sum(source.dense or 0 for source in sources)
        changes = {name: max(1, min(count, inside // 3)) for name, count in changes.items()}
    if not changes:
        return rule
    return rule.but(parameters={**rule.parameters, **changes})


def _collect(recipe: Recipe, scale: float) -> Any:
    budget = recipe.collect.budget
    if not budget.is_set:
        return recipe.collect
    smaller = budget.but(
        usd=None if budget.usd is None else budget.usd * scale,
        per_model_usd=None if budget.per_model_usd is None else budget.per_model_usd * scale,
        models={name: usd * scale for name, usd in budget.models.items()},
    )
    return recipe.collect.but(budget=smaller)
