"""A commented recipe for someone's own questions, that builds as it is."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from routeyard.flows.new_recipe.from_results import (
    AnswerSource,
    NoResults,
    first_rows,
    from_recording,
    from_results,
    names_models,
    one_kind,
    questions_beside,
    recorded_results,
    refuse_answers,
)
from routeyard.pipelines.common.errors import few
from routeyard.pipelines.ingest.guess_scorers import ScorerSuggestion, suggest
from routeyard.pipelines.ingest.guessing import Guess, Table, guess_columns, present
from routeyard.pipelines.ingest.results import Results
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.schemas.errors import BadInput, did_you_mean
from routeyard.schemas.text import SIMILARITY, in_line

if TYPE_CHECKING:
    from routeyard.pipelines.collect.budget import Price

# The text of a recipe that `routeyard init` writes, with every guess as a comment.

_TEXT = Path(__file__).with_name("recipe.txt").read_text(encoding="utf-8")


def recipe_text(
    name: str,
    source: Mapping[str, Any],
    answers: AnswerSource,
    guess: Guess,
    scorer: ScorerSuggestion,
    lacks: Sequence[str],
    left_out: Sequence[str],
    near_duplicates: bool = True,
) -> str:
    """The recipe with what was guessed as comments."""
    about = [f"{name}: {why}." for name, why in guess.reasons.items()]
    about.append(f"scorer {scorer.scorer}: {scorer.why}{tried(scorer)}.")
    if guess.unused:
        about.append(f"Columns that are not used: {', '.join(guess.unused)}.")
    about += [f"{item}." for item in left_out]
    release: dict[str, Any] = {"title": name, "description": "", "license": "NOASSERTION"}
    release |= {"known_issues": answers.known_issues} if answers.known_issues else {}
    # Ids are not embedded: they would be near-duplicates of each other.
    looks = answers.has_texts and near_duplicates
    curate = [{"rule": "dedup", "threshold": SIMILARITY}] if looks else []
    return _TEXT.format(
        lacks="".join(f"# LACKS: {in_line(lack)}\n" for lack in lacks),
        head=_yaml({"name": name, "version": "1.0.0"}),
        about="\n".join(f"# {in_line(line)}" for line in about),
        sources=_yaml({"sources": [source]}),
        words=in_line(answers.words),
        pool=_yaml({"pool": answers.pool}),
        how="What they answered. `routeyard recipe check FILE` reads it, and asks nobody."
        if answers.collect.get("provider") == "recorded"
        else "How they are asked. `routeyard plan FILE` prints what it will cost.",
        collect=_yaml({"collect": answers.collect}),
        label=""
        if answers.unreadable is None
        else "# Answers that no scorer can read; without this key they are undecided.\n"
        + _yaml({"label": {"default": {"unreadable": answers.unreadable}}})
        + "\n",
        curate=_yaml({"curate": curate}),
        split=_yaml({"split": {"train": 0.5, "validation": 0.1, "test": 0.4, "seed": 0}}),
        release=_yaml(
            {"release": {**release, **({"waivers": answers.waivers} if answers.waivers else {})}}
        ),
    )


def tried(scorer: ScorerSuggestion) -> str:
    """On how many rows a scorer was tried, in brackets; empty where it was not."""
    if not scorer.tried:
        return ""
    return (
        f" ({scorer.right} of {scorer.tried} references read as right answers to their own "
        f"question, {scorer.wrong} to another's)"
    )


def _yaml(content: Any) -> str:
    import yaml

    return yaml.safe_dump(
        json.loads(json.dumps(content)), sort_keys=False, allow_unicode=True, width=96
    )


# The pool of a recipe that `routeyard init` writes: a provider's model list, or a simulation.

#: Models taken from a provider's list when nobody names some.
MODELS = 5
#: Variable with a key → address of the provider it is for.
_KNOWN = {
    "OPENROUTER_API_KEY": "https://openrouter.ai/api/v1",
    "OPENAI_API_KEY": "https://api.openai.com/v1",
}


def from_provider(address: str | None, key_env: str | None, models: Sequence[str]) -> AnswerSource:
    """Pool and `collect` for models that are asked: a provider's, else simulated ones."""
    address = address or os.environ.get("OPENAI_BASE_URL")
    if address is None:
        key_env = next((name for name in _KNOWN if os.environ.get(name)), None)
        address = _KNOWN.get(key_env or "")
    if address is None:
        pool, waivers = _simulated(), []
        words = "a SIMULATED pool that answers on this machine; --provider URL takes real models"
    else:
        if key_env is None and os.environ.get("OPENAI_API_KEY"):
            key_env = "OPENAI_API_KEY"
        pool, words = _listed(address, key_env, models)
        waivers = _unpriced(pool["models"])
    how = {"max_tokens": 1024, "temperature": 0.0, "seed": 0}
    # Simulated models know no answers to these questions; undecided, they would give no release.
    unreadable = "incorrect" if address is None else None
    return AnswerSource(pool, how, words, waivers, unreadable=unreadable)


def _unpriced(models: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """The waiver for models without a price, which names how many there are."""
    names = [model["model_id"] for model in models if "price_in" not in model]
    if not names:
        return []
    reason = (
        f"The provider lists no price of {len(names)} of {len(models)} models ({few(names)}); fill "
        "in price_in and price_out to know the cost."
    )
    return [{"gate": "metering:price_unknown", "reason": reason}]


def _listed(address: str, key_env: str | None, models: Sequence[str]) -> tuple[dict[str, Any], str]:
    """The pool of a provider's models with their prices, and where it comes from."""
    from routeyard.pipelines.collect.client import list_models
    from routeyard.pipelines.collect.prices import (
        day_of_list,
        fetch_prices,
        list_price,
        public_address,
    )
    from routeyard.schemas.recipe import Provider

    provider = Provider(name="provider", base_url=address, api_key_env=key_env)
    today = datetime.now(UTC).date().isoformat()
    prices = None
    with contextlib.suppress(BadInput):  # not every provider lists prices
        prices = fetch_prices(provider, read_on=today) or None
    result = list_models(provider)
    if result.models is None and not models:
        raise BadInput(
            f"the provider lists no models: {result.why}",
            where=address,
            next_step="name them with --model (again for more), and the key with --key-env",
        )

    def known(name: str) -> Price | None:
        return prices.find(name) if prices else list_price(public_address(provider), name)

    entries = []
    for name in _choose(sorted(result.models or ()), known, models):
        price = known(name)
        entry: dict[str, Any] = {"model_id": name, "provider": "provider"}
        if price is not None and price.input is not None and price.output is not None:
            entry |= {key: column for key, column in price.stated.items() if column is not None}
        entries.append(entry)
    stated = {"name": "provider", "base_url": address}
    stated |= {"api_key_env": key_env} if key_env else {}
    stated |= {"price_list": "openrouter"} if prices is not None else {}
    unpriced = sum("price_in" not in entry for entry in entries)
    words = f"{len(entries)} of {len(result.models or ())} models that {address} lists"
    if not result.models:
        words = f"{len(entries)} models as you name them; {address} lists none"
    if unpriced:
        words += f", {unpriced} of them without a price"
    elif entries:
        words += ", with its prices of today" if prices else f", list prices of {day_of_list()}"
    return {"providers": [stated], "models": entries}, words


def _choose(
    names: list[str], known: Callable[[str], Price | None], wanted: Sequence[str]
) -> list[str]:
    """Those that were named, else some from the cheapest to the dearest."""
    unknown = [name for name in wanted if names and name not in names]
    if unknown:
        raise BadInput(
            f"the provider lists no model {unknown[0]!r}",
            next_step=did_you_mean(unknown[0], names),
        )

    def price(name: str) -> tuple[bool, float, str]:
        result = known(name)
        if result is None or result.output is None:
            return (True, 0.0, name)
        return (False, float(result.output), name)

    ordered = list(wanted) or sorted(names, key=price)
    if wanted or len(ordered) <= MODELS:
        return ordered
    step = (len(ordered) - 1) / (MODELS - 1)
    return [ordered[round(i * step)] for i in range(MODELS)]


def _simulated() -> dict[str, Any]:
    from routeyard.flows.recipe import load

    pool = load("demo")[0].pool
    keep = ("model_id", "provider", "family", "price_in", "price_out", "price_date",
            "price_source", "context_window", "simulated")  # fmt: skip
    models = [m.model_dump(mode="json", include=set(keep)) for m in pool.models]
    chosen = [models[0], models[len(models) // 2], models[-1]]
    address = "${ROUTEYARD_DEMO_URL}"
    return {"providers": [{"name": "demo", "base_url": address}], "models": chosen}


@dataclass(frozen=True)
class NewRecipe:
    """What was guessed and written.

    Attributes:
        rows: Rows that the guess read.
        pool: Where the models come from.
        lacks: What a person has to add before the recipe builds.
        unread: Files of the folder and columns of answers that are not read.
        left_out: Which rows the recipe leaves out, a sentence each.
        known: What the recipe states of the answers, such as values that were left out.
        waivers: Findings that the recipe waives: gate, and how many there are of what.
    """

    recipe: Path
    rows: int
    guess: Guess
    scorer: ScorerSuggestion
    pool: str
    lacks: list[str]
    unread: list[str]
    left_out: list[str]
    known: list[str]
    waivers: list[dict[str, str]]


def start_recipe(
    recipe: Path,
    origin: str,
    *,
    fields: Mapping[str, str],
    scorer: str | None = None,
    provider: str | None = None,
    key_env: str | None = None,
    models: Sequence[str] = (),
    config: str | None = None,
    split: str | None = None,
    recording: str | None = None,
    mapping: Mapping[str, str] = MappingProxyType({}),
    results: Results | None = None,
    near_duplicates: bool = True,
    accepted: Mapping[str, str] = MappingProxyType({}),
) -> NewRecipe:
    """Read the first questions, guess what their columns hold, and write the recipe.

    Args:
        origin: A file, a folder of files of one kind, or the id of a hub dataset.
        fields: field → column, where a person knows better.
        provider: Address of an OpenAI-compatible provider; its model list fills the pool.
        recording: A file of answers that somebody has already; its models fill the pool.
        mapping: Which column of results is what, as `recorded_results` takes it.
        results: What `recorded_results` read there, where it was read already.
        near_duplicates: The recipe looks for them; it embeds every question.
        accepted: As `from_results` takes it.

    Raises:
        BadInput: the recipe exists, nothing can be read, a column does not exist, or the
            rows are answers and no questions.
    """
    if recipe.exists():
        raise BadInput(
            f"{recipe} exists already and is not overwritten",
            where=str(recipe),
            next_step="name another file, or remove it",
        )
    no_results: Results | NoResults = NoResults()
    asked = fields or provider or recording or scorer or config
    if asked and mapping:
        raise BadInput(
            "expected --map and --models for results, found options for questions beside them",
            where=origin, next_step="leave out the one or the other",
        )  # fmt: skip
    if not asked:
        no_results = results or recorded_results(origin, mapping)
    unread: list[str] = []
    left_out: list[str] = []
    if isinstance(no_results, Results):
        source, answers, suggested, guess = from_results(no_results, origin, recipe, accepted)
        count, lacks = no_results.table.num_rows, answers.lacks
    else:
        origin, doubts = questions_beside(origin, recording, recipe, fields)
        source, rows, unread = first_rows(origin, recipe, config, split)
        count, table = len(rows), Table(rows)
        guess = guess_columns(rows, _checked(fields, table.columns, origin))
        one_kind(rows, guess.fields.get("question"), origin)
        refuse_answers(table, guess, origin, recipe, unread)
        if no_results.error is not None and names_models(table, guess):
            raise no_results.error
        if recording is not None:
            answers = from_recording(recording, recipe, guess, table)
        else:
            answers = from_provider(provider, key_env, models)
        references = [_texts(value) for value in table.values(guess.fields.get("references", ""))]
        if answers.graded and scorer is None:
            suggested = ScorerSuggestion("given", "the answers are grades that come with the data")
        else:
            suggested = _scorer(guess, table, references, scorer, answers.outputs)
        lacks = [*answers.lacks, *_lacks(guess, suggested), *_to_confirm(no_results, guess)]
        lacks += [f"your word: {doubt}" for doubt in doubts]
        source |= {"scorer": suggested.scorer, "fields": guess.fields}
        left_out = _left_out(source, guess, table, references)
    text = recipe_text(
        _name(recipe), source, answers, guess, suggested, lacks, left_out, near_duplicates
    )
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(text, encoding="utf-8", newline="\n")
    return NewRecipe(
        recipe, count, guess, suggested, answers.words, lacks, [*unread, *answers.unread],
        left_out, answers.known_issues, answers.waivers,
    )  # fmt: skip


def _left_out(
    source: dict[str, Any], guess: Guess, table: Table, references: Sequence[Sequence[str]]
) -> list[str]:
    """Sentences about the rows that the source leaves out; the keys that do so are put into it."""
    column = guess.plain("question")
    seen = table.values(column) if column else []
    empty = {"question": len(seen) - len(present(seen))}
    if source["scorer"] not in ("none", "given") and "references" in guess.fields:
        empty["reference"] = sum(not any(text.strip() for text in texts) for texts in references)
    if any(empty.values()):
        source["incomplete"] = "remove"
    return [
        f"{rows} of {len(table.rows)} rows looked at have no {what} (listed in removals)"
        for what, rows in empty.items()
        if rows
    ]


def _to_confirm(no_results: NoResults, guess: Guess) -> list[str]:
    """What a person is asked of columns that may be scores of models, and are left out."""
    left = no_results.columns - guess.used
    # Beside a column that is part of the question, one alone is no table of scores.
    if len(left) < (1 if left == no_results.columns else 2):
        return []
    return [
        f"your word on what `routeyard audit` would ask: {no_results.doubt}; here they are left "
        "out, and the rows are questions. If they are models' scores, give the columns the "
        "models' names, or list them in a column `model`"
    ]


def _name(recipe: Path) -> str:
    """Name of the benchmark: that of the recipe's file."""
    return re.sub(r"[^a-z0-9_.-]+", "-", recipe.stem.lower()).strip("-_.") or "benchmark"


def _checked(fields: Mapping[str, str], columns: Sequence[str], origin: str) -> dict[str, str]:
    """Columns that a person named; a name within a nested column becomes an expression."""
    result = {}
    for name, column in fields.items():
        inside = column not in columns and column.partition(".")[0] in columns
        if inside and re.fullmatch(r"\w+(\.\w+)+", column):
            column = f"{{{{ {column} }}}}"
        if column not in columns and "{{" not in column:
            raise BadInput(
                f"there is no column {column!r}",
                where=f"{origin}, --{name}",
                next_step="columns: " + ", ".join(sorted(columns)),
            )
        result[name] = column
    return result


def _scorer(
    guess: Guess,
    table: Table,
    references: list[list[str]],
    named: str | None,
    outputs: Sequence[str],
) -> ScorerSuggestion:
    if named is not None:
        if named != "none":
            SCORERS.get(named, where="--scorer")
        return ScorerSuggestion(named, "as given")
    if "references" not in guess.fields:
        return ScorerSuggestion("none", "no column holds the answers")
    rows = len(table.rows)
    asked, mapped = guess.fields.get("question"), guess.fields.get("choices")
    questions = [str(v or "") for v in table.values(asked)] if asked else [""] * rows
    choices: list[list[str]] = [[] for _ in table.rows]
    if mapped:
        choices = [_options(value) for value in table.values(mapped)]
    holes = sum(any(not text.strip() for text in listed) for listed in choices)
    if holes:
        guess.doubts.append(
            f"the options: {holes} of {rows} rows have an option without a text before others "
            "(fields.choices)"
        )
    return suggest(questions, references, choices, outputs)


def _texts(value: Any) -> list[str]:
    listed = value if isinstance(value, list | tuple) else [value]
    return [str(item) for item in listed if item is not None]


def _options(value: Any) -> list[str]:
    """Options at their places; empty ones at the end are padding."""
    listed = value if isinstance(value, list | tuple) else [value]
    options = ["" if item is None else str(item) for item in listed]
    while options and not options[-1].strip():
        options.pop()
    return options


def _lacks(guess: Guess, scorer: ScorerSuggestion) -> list[str]:
    columns = ", ".join(sorted(guess.columns))
    lacks = [f"a look at {doubt}" for doubt in guess.doubts]
    if "question" in guess.lacks:
        lacks.append(f"no column looks like questions: name it with --question ({columns})")
    if scorer.scorer == "none":
        lacks.append(
            f"no column holds the answers: name it with --references ({columns}), or a judge under "
            "label.judges and label.default.then"
        )
    if scorer.tried and scorer.right < scorer.tried * 0.9:
        lacks.append(
            f"the answers are not the letters of the options ({scorer.right} of {scorer.tried} "
            "fit): map fields.choices to the list of options and fields.references to the letter"
            if scorer.scorer == "mcq"
            else f"{scorer.scorer!r} reads only {scorer.right} of {scorer.tried} answers that "
            "repeat the reference: map fields.references to the bare answer, or name another "
            "scorer with --scorer"
        )
    return lacks
