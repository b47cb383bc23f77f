"""`README.md` of a release: words from the recipe, every number from the tables."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from routeyard.datacards import sql_of
from routeyard.schemas import StoredTable
from routeyard.schemas.contracts import register
from routeyard.schemas.questions import group_of, leaked_tests, looked_for_duplicates
from routeyard.schemas.release import (
    MEASURED_COLUMNS,
    SPLITS,
    config_name,
    folder_names,
    order_undecided,
    split_file,
    undecided_words,
)
from routeyard.schemas.text import markdown, own_table, prose, visible

if TYPE_CHECKING:
    from routeyard.schemas.recipe import Label

# Templates of Markdown: figures as text, and untrusted text that makes no markup.

#: What is not known is shown so.
UNKNOWN = "–"


@cache
def environment() -> Environment:
    """Templates under `templates/`, with filters that show what is not known as –."""
    made = Environment(
        loader=PackageLoader("routeyard.datacards", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  Markdown, not HTML; cells are escaped by `cell`
    )
    forms = {"count": "{:,}", "usd": "${:,.4f}", "plain": "{:g}"}
    made.filters |= {name: _filter(form) for name, form in forms.items()}
    made.filters |= {
        "percent": lambda value: UNKNOWN if value is None else f"{100 * value:.1f} %",
        "cell": cell,
        "prose": lambda text: prose(str(text)),
        "fenced": lambda text: visible(str(text)).replace("```", "ʼʼʼ"),
        "size": size,
    }
    return made


def _filter(form: str) -> Any:
    return lambda value: UNKNOWN if value is None else form.format(value)


def cell(value: Any) -> str:
    """Text that stays in one cell of a Markdown table and makes no markup."""
    return UNKNOWN if value is None else markdown(str(value))


def table(head: list[str], rows: list[list[str]], numbers: list[bool] | None = None) -> list[str]:
    """Lines of a Markdown table of safe texts; columns of numbers are aligned to the right."""
    right = numbers or [False, *[True] * (len(head) - 1)]
    lines = [head, ["---:" if item else "---" for item in right], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def texts(name: str) -> Any:
    """A YAML file of texts under `templates/`."""
    folder = files("routeyard.datacards").joinpath("templates")
    return own_table(folder.joinpath(name))


def size(value: int) -> str:
    """Bytes for people."""
    if value < 1000:
        return f"{value} B"
    power = min(3, (len(str(value)) - 1) // 3)
    return f"{value / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"


# Every number of a card, computed from the tables of the release.

_NUMBERS_SQL = sql_of("numbers")
#: Table → names of what is counted of it.
_COUNTED = {
    "labels": ("counts", "oracle", "best_single", "decided"),
    "responses": ("cost", "status", "unpriced", "mean_costs"),
    "splits": ("splits",),
    "duplicates": ("duplicates",),
    "removals": ("removals",),
    "verdicts": ("read_as",),
}
_ONE_ROW = {"counts", "oracle", "cost", "best_single"}

#: `decided`: share of a pair's responses that entered its label; the rest is open.
_DECIDED = "score, correct, least(1, coalesce(n_samples, 0) / greatest(n_responses, 1)) AS decided"


#: The tables that were counted last, and their numbers: the card and the files beside it ask both.
_COUNTED_LAST: list[tuple[dict[str, pa.Table | StoredTable], dict[str, Any]]] = []


def card_numbers(tables: Mapping[str, pa.Table | StoredTable]) -> dict[str, Any]:
    """Counts, accuracies, costs, splits, duplicates and removals of a release.

    A table the release does not hold gives an empty list, or None where one
    row is expected. Sums run in one thread over rows in their released order,
    so the last digit does not depend on the machine.
    """
    import duckdb

    for held, counted in _COUNTED_LAST:
        if held.keys() == tables.keys() and all(held[name] is tables[name] for name in held):
            return counted
    numbers: dict[str, Any] = dict.fromkeys(_ONE_ROW)
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as connection:
        for name, table in tables.items():
            register(connection, name, table)
        _count(connection, tables)
        names = ["models", "tasks", "sources", "prices"]
        for table, of_table in _COUNTED.items():
            if table in tables:
                names += of_table
            else:
                numbers |= {name: [] for name in of_table if name not in _ONE_ROW}
        for name in names:
            rows = connection.sql(_NUMBERS_SQL[name]).to_arrow_table().to_pylist()
            numbers[name] = next(iter(rows), None) if name in _ONE_ROW else rows
    numbers["unpriced"] = [row["model_id"] for row in numbers["unpriced"]]
    numbers["rows"] = {name: table.num_rows for name, table in tables.items()}
    # Bounds are given only where something is open.
    numbers["bounds"] = any((m["high"] or 0) - (m["low"] or 0) > 1e-12 for m in numbers["models"])
    numbers["order_undecided"] = _undecided(numbers)
    numbers["simulated"] = sum(bool(model["simulated"]) for model in numbers["models"])
    _COUNTED_LAST[:] = [({**tables}, numbers)]
    return numbers


def _undecided(numbers: Mapping[str, Any]) -> str:
    """Why no model is called best; empty where missing labels do not leave it open."""
    if not (single := numbers["best_single"]):
        return ""
    counts = {
        item["model_id"]: (
            (pairs := item["labelled"] + item["undecided"]) * (item["low"] or 0),
            pairs * (1 - (item["high"] or 0) + (item["low"] or 0)) if pairs else 0,
            single["judged"],
        )
        for item in numbers["models"]
    }
    first = single["models"][0]
    others = order_undecided(counts, first)
    return undecided_words(first, others) if others else ""


def _count(connection: Any, tables: Mapping[str, pa.Table | StoredTable]) -> None:
    """`of_question` and `of_model`, over labels under whatever names a question and a model."""
    if "labels" not in tables:
        connection.execute(
            "CREATE TEMP TABLE labels (query_id VARCHAR, model_id VARCHAR, score DOUBLE)"
        )
    # Labels of a question are together in outcomes, under a number: no text is compared.
    if "outcomes" in tables:
        cells = f"SELECT query_no AS question, model_no AS model, {_DECIDED} FROM outcomes"
        question = model = "row_number() OVER () - 1"
    else:
        correct = "correct" if "labels" in tables else "NULL::BOOLEAN AS correct"
        known = f"score, {correct}, (score IS NOT NULL)::DOUBLE AS decided"
        cells = f"SELECT query_id AS question, model_id AS model, {known} FROM labels"
        question, model = "query_id", "model_id"
    connection.execute(f"CREATE TEMP VIEW cells AS {cells}")
    connection.execute(f"CREATE TEMP VIEW asked AS SELECT {question} AS question, * FROM queries")
    connection.execute(f"CREATE TEMP VIEW pool AS SELECT {model} AS model, * FROM models")
    for name in ("of_question", "of_model"):
        connection.execute(_NUMBERS_SQL[name])


# Why pairs have no label, and what was never looked for: a sentence and a count for each cause.
#
# A figure such as "3,723 pairs without a label" names no cause. Each pair without a label has
# exactly one of those below; what a person can mend comes with an example.

_SQL = sql_of("losses")
_NEEDED = ("queries", "models", "labels", "responses", "verdicts")
_NOT_RECORDED = "no recorded answer"
_NEXT: dict[str, str] = texts("losses.yaml")


def causes(tables: Mapping[str, pa.Table | StoredTable]) -> list[dict[str, Any]]:
    """Why pairs of a question and a real model have no label, the most frequent cause first.

    Args:
        tables: queries, models, labels, responses and verdicts in contract form. Without
            one of them nothing is known, and the list is empty.

    Returns:
        cause, scorer, questions, models, pairs, example, query_id and next of each.
    """
    if any(name not in tables for name in _NEEDED):
        return []
    import duckdb

    numbered = "outcomes" in tables
    sql = _SQL["causes"].format(short=_SQL["short_by_number" if numbered else "short"])
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as connection:
        for name in (*_NEEDED, *(["outcomes"] if numbered else [])):
            register(connection, name, tables[name])
        results: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
        recorded = _recorded(connection, tables["responses"])
    for row in results:
        if recorded and row["cause"] == "no response":
            row["cause"] = _NOT_RECORDED
        row["example"] = " ".join(row["example"].split())[:160]
        row["next"] = _NEXT[row["cause"]]
    return results


def _recorded(connection: Any, responses: pa.Table | StoredTable) -> bool:
    """Whether no response was ever requested: they were recorded elsewhere."""
    if not responses.num_rows or "request_hash" not in responses.column_names:
        return False
    sql = "SELECT count(request_hash) = 0 FROM responses SEMI JOIN real USING (model_id)"
    connection.execute("CREATE TEMP VIEW real AS SELECT model_id FROM models WHERE kind = 'real'")
    row = connection.execute(sql).fetchone()
    return bool(row[0])


def sentence(row: Mapping[str, Any]) -> str:
    """A sentence about one cause."""
    by = f" of {row['scorer']!r}" if row["cause"] == "scorer error" else ""
    for_ = f" (scorer {row['scorer']!r})" if row["scorer"] and not by else ""
    example = f": {row['example']}" if row["example"] else ""
    return (
        f"{row['pairs']:,} pairs without a label: {row['cause']}{by}{for_}, "
        f"{row['questions']:,} questions x {row['models']:,} models, "
        f"e.g. {row['query_id']}{example}"
    )


# The certificate in sentences: what each figure asks, and what its value means.


@dataclass(frozen=True, slots=True)
class FigureSentence:
    """One figure: its key, a short name, its value and interval as text, and a sentence."""

    key: str
    name: str
    value: str
    interval: str
    sentence: str


#: Verdict → what it says of routers.
VERDICTS = {
    "routable": "verdict: this release tells routers apart",
    "headroom not reached": "verdict: a gain is possible, no reference router reaches it",
    "headroom only": "verdict: a gain is possible, no reference router was tried",
    "not routable": "verdict: this release cannot tell routers apart",
}
#: Figures that weigh models by a cost, and what replaces it where prices lack.
_OF_COST = ("cost_matched_mix", "gap_mix", "dominated_share")
_MEASURES = {"tokens": "tokens per answer", "latency": "seconds per answer", "params": "model size"}
#: Figure → name, kind of number and sentence.
FIGURES: dict[str, dict[str, str]] = texts("certificate.yaml")


def sentences(certificate: Mapping[str, Any]) -> list[FigureSentence]:
    """The figures of a certificate in the order in which they are read, unknown ones last."""
    figures: Mapping[str, Mapping[str, Any]] = certificate.get("figures") or {}
    order = [name for name in FIGURES if name in figures]
    order += sorted(name for name in figures if name not in FIGURES)
    measure = str(certificate.get("measure") or "usd")
    results = [_said(name, figures[name], measure) for name in order]
    if not certificate.get("order_undecided"):
        return results
    # Missing labels leave open which model is best: none is called so.
    single = f"single model {certificate.get('best_single')}"
    return [
        replace(
            item,
            name=item.name.replace("best single model", single),
            sentence=item.sentence.replace("best single model", single),
        )
        for item in results
    ]


def _said(name: str, figure: Mapping[str, Any], measure: str) -> FigureSentence:
    unknown = {"name": name.replace("_", " "), "kind": "number", "sentence": ""}
    short, kind, sentence = FIGURES.get(name, unknown).values()
    value, low, high = figure.get("value"), figure.get("low"), figure.get("high")
    interval = ""
    if low is not None and high is not None:
        interval = f"{number(low, kind)} to {number(high, kind)}"
    if value is None:
        sentence = f"{sentence} Not known: {figure.get('reason') or 'no reason given'}."
    elif kind == "points" and low is not None and high is not None and low <= 0 <= high:
        sentence += " The interval holds zero: there may be nothing to gain."
    if name in _OF_COST and measure != "usd" and value is not None:
        sentence += f" Cost is {_MEASURES.get(measure, measure)} here: not all prices are known."
        short = f"{short}, counted in {_MEASURES.get(measure, measure)}"
    return FigureSentence(
        name, short, UNKNOWN if value is None else number(value, kind), interval, sentence.strip()
    )


#: Kind of number → its form and factor.
_FORMS = {
    "share": ("{:.1f} %", 100),
    "points": ("{:+.1f} points", 100),
    "size": ("{:.1f} points", 100),
    "number": ("{:.2f}", 1),
}


def number(value: float, kind: str) -> str:
    """A figure as people read it: per cent, percentage points, or a plain number."""
    form, factor = _FORMS[kind]
    return form.format(factor * value)


# How to cite a release, and when it was made: from the release itself, never from a clock.


def bibtex(facts: Mapping[str, Any]) -> str:
    """A BibTeX entry of a release that states no citation.

    Args:
        facts: name, version and, if known, recipe and fingerprint.
    """
    words = (facts.get("recipe") or {}).get("release") or {}
    title = _cite_plain(words.get("title") or facts["name"])
    version = _cite_plain(facts["version"])
    key = re.sub(r"[^a-z0-9]+", "_", f"{facts['name']} {facts['version']}".lower()).strip("_")
    lines = [f"@misc{{{key},", f"  title = {{{title}}},", f"  version = {{{version}}},"]
    if date := facts.get("date_published"):
        lines.append(f"  year = {{{date[:4]}}},")
    if facts.get("fingerprint"):
        lines.append(f"  note = {{Routeyard release, fingerprint {facts['fingerprint']}}},")
    else:
        lines.append("  note = {LLM-routing benchmark built with Routeyard},")
    return "\n".join(lines) + "\n}"


def _cite_plain(text: str) -> str:
    return re.sub(r"[\\{}@%#$&~^]", "", " ".join(str(text).split()))


# Parts of a card that only some releases have: preference pairs, rounds, injected models.

#: Figure of the rule `pseudo_specialists` → its value with a unit.
_COSTS: dict[str, str] = texts("injected_costs.yaml")
_FROM = {"median": "the pool's median", "stated": "the recipe"}


def preference_sections(figures: Mapping[str, Any]) -> str:
    """Markdown for each `preference` rule among a manifest's `figures`: winners, the τ sweep,
    entropy's predictive power; "" without one."""
    template = environment().get_template("preference.md.j2")
    return template.render(rules=_figures_of("preference", figures))


def informative_section(figures: Mapping[str, Any]) -> str:
    """Markdown of `collect.strategy: informative`: plain means beside weighted estimates; ""
    where every pair was to be asked."""
    result = (figures.get("collect") or {}).get("informative")
    if not result:
        return ""
    ranked = sorted(result["models"], key=lambda row: (-(row["weighted"] or 0), row["model_id"]))
    return environment().get_template("informative.md.j2").render(f=result, models=ranked)


def injected(figures: Mapping[str, Any]) -> list[str]:
    """A sentence per pseudo-specialist, and their costs with where each value comes from."""
    lines: list[str] = []
    for item in _figures_of("pseudo_specialists", figures):
        if not item.get("injected"):
            continue
        lines += [
            f"`{row['model_id']}` is simulated: right on {100 * row['accuracy']:.1f} % of task "
            f"{_bare(row['task'])}, where the best real model has {100 * row['best_real']:.1f} %."
            for row in item["injected"]
        ]
        # In this order: a manifest has its keys sorted, and the card is rendered from both.
        known = [
            f"{words.format(entry['value'])} ({_FROM.get(entry['from'], entry['from'])})"
            for name, words in _COSTS.items()
            if (entry := item["costs"].get(name) or {"value": None})["value"] is not None
        ]
        lines.append(
            "What a simulated model costs is an assumption: " + "; ".join(known) + "."
            if known
            else "What a simulated model costs is not known."
        )
    return lines


def image_lines(rows: list[dict[str, Any]], recipe: Mapping[str, Any]) -> list[str]:
    """Sentences on the images of questions: how many, whose licence, who was sent them."""
    if not rows:
        return []
    kinds = Counter(row["media_type"] or "address, not fetched" for row in rows)
    licences = sorted({row["license"] for row in rows})
    size = sum(row["bytes"] or 0 for row in rows)
    blind = [
        model["model_id"]
        for model in (recipe.get("pool") or {}).get("models") or []
        if model.get("image_tokens") == 0
    ]
    return [
        f"{len({row['query_id'] for row in rows}):,} questions have {len(rows):,} images ("
        + ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
        + f"; {size:,} bytes). The table `images` names each with its SHA-256, size and licence; "
        "the release does not hold the files.",
        f"Licences of the images, as their sources state them: {', '.join(licences)}.",
        "In texts, `[image:…]` marks the place of an image. Routers, encoders, verifiers and "
        "judges read the marked texts and saw no image.",
        *([f"Sent the texts only, without images: {', '.join(sorted(blind))}."] if blind else []),
    ]


def recorded_words(recipe: Mapping[str, Any], figures: Mapping[str, Any]) -> list[str]:
    """Sentences on answers that were recorded elsewhere; none where the models were asked.

    Args:
        recipe: As the manifest holds it.
        figures: Figures of the stages; those of `collect` count what the import left open.
    """
    if (recipe.get("collect") or {}).get("provider") != "recorded":
        return []
    collected = figures.get("collect") or {}
    rows = [row for row in collected.get("recorded") or () if isinstance(row, Mapping)]
    prompts = sum(int(row.get("prompts") or 0) for row in rows)
    sent = (
        f"The recording states what was sent for {prompts:,} answers; it was compared with the "
        "questions and is not kept."
        if prompts
        else "What the models were sent is not known."
    )
    return [
        "The answers were recorded elsewhere and imported: nothing was sent for this release. "
        f"{sent} `queries.prompt` is {_prompt(recipe)}, no record of what was sent.",
        *(f"{note}." for note in map(str, collected.get("notes") or ())),
    ]


def pool_sources(recipe: Mapping[str, Any], numbers: Mapping[str, Any]) -> list[str]:
    """Sentences on where prices and sizes were read, and when; none where none are known.

    Args:
        recipe: As the manifest holds it.
        numbers: Of `card_numbers`.
    """
    results = []
    if numbers["prices"]:
        read = "; ".join(_read_from(item) for item in numbers["prices"])
        results.append(f"Prices were read {read}.")
    sizes: dict[str, list[str]] = {}
    for model in (recipe.get("pool") or {}).get("models") or ():
        if source := model.get("params_source"):
            sizes.setdefault(str(source), []).append(str(model["model_id"]))
    results += [
        f"The size of {', '.join(names[:3])}{f' and {len(names) - 3} more' if names[3:] else ''}: "
        f"{source}."
        for source, names in sizes.items()
    ]
    return results


def _read_from(row: Mapping[str, Any]) -> str:
    source = row["price_source"] or "as the recipe states them"
    some = f"{row['models']:,} model{'s' if row['models'] > 1 else ''}"
    reach = f"; of prompts up to {row['up_to']:,} tokens" if row["up_to"] else ""
    return f"{row['price_date']} ({source}: {some}{reach})"


_TRUSTED = {"given": "the grades", "rules": "those of the rule"}


def label_choices(
    label: Label, numbers: Mapping[str, Any], figures: Mapping[str, Any]
) -> list[str]:
    """Sentences on what the recipe chose about labels, and what was noted when they were made.

    Args:
        label: The recipe's section.
        numbers: Of `card_numbers`.
        figures: Figures of the stages; `label` notes undecided answers and contradicted grades.
    """
    policies = {"": label.default, **label.tasks}
    unread = (numbers["counts"] or {}).get("unreadable") or 0
    wrong = sorted(task for task, policy in policies.items() if policy.unreadable == "incorrect")
    of = "" if "" in wrong else f" of {', '.join(map(_bare, wrong))}"
    said = (
        f"{unread:,} answers could be read by no scorer; the recipe counts those{of} as wrong "
        "(`unreadable: incorrect`)."
    )
    trusted = sorted({label.policy_of(task).trust or "" for task in policies} - {""})
    grades = [
        f"Where the recording holds grades, the labels are {_TRUSTED[item]} (`trust: {item}`)."
        for item in trusted
    ]
    notes = [f"{note}." for note in (figures.get("label") or {}).get("notes") or ()]
    return [*([said] if wrong and unread else []), *grades, *notes]


def _figures_of(rule: str, figures: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rules = (figures.get("curate") or {}).get("rules") or []
    return [item["figures"] for item in rules if item["rule"] == rule]


def _prompt(recipe: Mapping[str, Any]) -> str:
    sources = recipe.get("sources") or ()
    stated = [str(item["name"]) for item in sources if (item.get("fields") or {}).get("prompt")]
    made = "what Routeyard would send"
    if not stated:
        return made
    as_stated = f"the text that {', '.join(stated)} states"
    return as_stated if len(stated) == len(sources) else f"{as_stated}, else {made}"


def _bare(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|" else sign for sign in text)


# The YAML head of a card: what a dataset hub and `datasets.load_dataset` read.

#: The hub's size categories of fewer than 10³, 10⁴, … rows.
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
#: SPDX ids the hub writes the same way, in lower case.
_HUB_LICENSES = frozenset(
    {"apache-2.0", "mit", "bsd-3-clause", "cc0-1.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0"}
    | {"cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "odc-by", "gpl-3.0"}
    | {"pddl", "openrail"}
)
_HUB_NAMES = {"odc-by-1.0": "odc-by", "noassertion": "unknown"}


def front_matter(
    tables: Mapping[str, pa.Table | StoredTable],
    facts: Mapping[str, Any],
    numbers: Mapping[str, Any],
) -> str:
    """YAML between two `---` lines.

    `configs` names one configuration per table, and for `outcomes` one per split scheme, so that
    `datasets.load_dataset(<folder>, "outcomes", split="test")` loads it, also without a network.
    `datasets` caches a folder under a hash of `configs` and `dataset_info` and the folder's last
    name, a version: the fingerprint in the descriptions keeps releases apart.
    """
    from routeyard.schemas.recipe import Release

    release = Release.model_validate(facts["recipe"].get("release") or {})
    # `datasets` cannot load a table without rows, so such a table is no configuration.
    tables = {name: table for name, table in tables.items() if table.num_rows}
    # What router authors load first comes first.
    first = next((name for name in ("outcomes", "labels") if name in tables), None)
    tables = {name: tables[name] for name in sorted(tables, key=lambda name: name != first)}
    # A table but `outcomes` is one split, `train`.
    configs = {name: {"train": f"data/{name}.parquet"} for name in tables}
    if "outcomes" in tables:
        configs |= outcome_configs(numbers, facts.get("files") or {})
    licence, name = hub_license(
        release.license, [source.get("license") for source in facts["sources"]]
    )
    head: dict[str, Any] = {
        "pretty_name": release.title or facts["name"],
        "license": licence,
        "license_name": name,
        "language": release.languages or ["en"],
        "task_categories": ["text-classification", "question-answering"],
        "annotations_creators": annotators(numbers),
        "source_datasets": _source_lines(facts["sources"]),
        "tags": sorted({"llm-routing", "routeyard", *release.tags}),
        "size_categories": [size_category(max(t.num_rows for t in tables.values()))],
        "configs": [
            {
                "config_name": config,
                "data_files": [{"split": split, "path": path} for split, path in files.items()],
                **({"default": True} if config == first else {}),
            }
            for config, files in configs.items()
        ],
        "dataset_info": [
            {
                "config_name": config,
                "description": f"{facts['name']} {facts['version']}, content {facts['content']}",
                # No byte sizes: `datasets` does not need them.
                "features": _features(tables[config.partition("__")[0]].schema),
            }
            for config in configs
        ],
        "doi": release.doi,
    }
    head = {key: value for key, value in head.items() if value is not None}
    text = yaml.safe_dump(_visible(head), sort_keys=False, allow_unicode=True, width=100)
    return f"---\n{text}---\n"


def outcome_configs(
    numbers: Mapping[str, Any], files: Collection[str]
) -> dict[str, dict[str, str]]:
    """Configuration of `outcomes` → split → its file: `outcomes` for the usual scheme.

    What `datasets` calls the split `all` is every split of a configuration together.
    Empty without a split.
    """
    schemes = {row["scheme"] for row in numbers["splits"]}
    result = {}
    for scheme, folder in folder_names(schemes).items():
        paths = {split: split_file(folder, split) for split in SPLITS}
        if there := {split: path for split, path in paths.items() if path in files}:
            result[config_name(scheme, folder, schemes)] = there
    return result


def _visible(value: Any) -> Any:
    """The same with no sign in any text that turns it around or hides in it."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list | tuple) else value


def annotators(numbers: Mapping[str, Any]) -> list[str]:
    """Who made the labels, in the hub's words: `machine-generated`, and `expert-generated`
    where people decided some by hand."""
    by = [row["decided_by"] for row in numbers["decided"] if row["decided_by"] != "undecided"]
    by_hand = {name.startswith("human:") for name in by}
    names = [(False, "machine-generated"), (True, "expert-generated")]
    return [name for kind, name in names if kind in by_hand] or ["no-annotation"]


def _source_lines(sources: Sequence[Mapping[str, Any]]) -> list[str]:
    """`original`, and `extended|<hub id>` for every source that is on a hub."""
    hub = sorted({str(s["hub_id"]) for s in sources if s.get("hub_id")})
    own = [] if hub and all(s.get("hub_id") for s in sources) else ["original"]
    return [*own, *(f"extended|{name}" for name in hub)]


def hub_license(own: str | None, of_sources: Sequence[str | None]) -> tuple[str, str | None]:
    """The hub's licence id, and a name for the card when the id is `other`.

    A release without its own licence takes its sources' when they agree;
    nothing stated is `unknown`, never a guess.
    """
    stated = own if own and own != "NOASSERTION" else None
    if stated is None:
        results = {licence or "NOASSERTION" for licence in of_sources}
        if len(results) != 1:
            return ("other", "licences-of-the-sources") if results else ("unknown", None)
        stated = results.pop()
    plain = stated.lower()
    plain = _HUB_NAMES.get(plain, plain)
    if plain in _HUB_LICENSES or plain == "unknown":
        return plain, None
    return "other", re.sub(r"[^a-z0-9.]+", "-", plain).strip("-") or "other"


def size_category(rows: int) -> str:
    """The hub's size category of a number of rows."""
    return next((name for k, name in enumerate(_SIZES, 3) if rows < 10**k), "n>1B")


def _features(schema: pa.Schema) -> list[dict[str, Any]]:
    names = {"double": "float64", "float": "float32"}
    features = []
    for field in schema:
        kind = field.type
        listed = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
        dtype = str(kind.value_type if listed else kind)
        feature = {"name": field.name, "list" if listed else "dtype": names.get(dtype, dtype)}
        if pa.types.is_fixed_size_list(kind):
            feature["length"] = kind.list_size
        features.append(feature)
    return features


def render(tables: Mapping[str, pa.Table | StoredTable], facts: Mapping[str, Any]) -> str:
    """The card: front matter for the hub, then Markdown for people.

    Args:
        tables: Released tables in contract form.
        facts: name, version, recipe, sources, waivers, figures, files and
            fingerprints, as `write_release` gives them.
    """
    from routeyard.schemas.recipe import Label, Release

    numbers, figures = card_numbers(tables), facts.get("figures") or {}
    label = Label.model_validate(facts["recipe"].get("label") or {})
    certificate = (figures.get("certify") or {}).get("certificate")
    words = Release.model_validate(facts["recipe"].get("release") or {})
    body = (
        environment()
        .get_template("card.md.j2")
        .render(
            **{**facts, "sources": _sources(facts["sources"], numbers)},
            n=numbers,
            warnings=label.foreign_prompts,
            errors=figures.get("label_errors") or {},
            injected=injected(figures),
            preference=preference_sections(figures),
            informative=informative_section(figures),
            # The size of a table with measured times differs between runs that are otherwise equal.
            timed=[name for name, t in tables.items() if MEASURED_COLUMNS & set(t.column_names)],
            release=words.model_dump(),
            label_choices=label_choices(label, numbers, figures),
            pool_sources=pool_sources(facts["recipe"], numbers),
            losses=[sentence(row) for row in causes(tables)],
            images=image_lines(_rows(tables.get("images")), facts["recipe"]),
            looked=looked_for_duplicates(facts["recipe"]),
            leaks=_leaks(tables, facts["recipe"]),
            certificate=certificate,
            configs=outcome_configs(numbers, facts.get("files") or {}),
            sentences=sentences(certificate) if certificate else [],
            zoo=_zoo(words.zoo),
            recorded=recorded_words(facts["recipe"], figures),
            citation=words.citation or bibtex(facts),
        )
    )
    return front_matter(tables, facts, numbers) + "\n" + body.strip() + "\n"


def _leaks(
    tables: Mapping[str, pa.Table | StoredTable], recipe: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Rows of the table `leaks`, from the released tables themselves."""
    if "queries" not in tables or "splits" not in tables:
        return []
    groups = None
    if "duplicates" in tables and looked_for_duplicates(recipe):
        groups = group_of(_columns(tables["duplicates"], "query_id", "group_id"))
    splits = _columns(tables["splits"], "scheme", "query_id", "split")
    return leaked_tests(tables["queries"], splits, groups)


def _zoo(text: str | None) -> dict[str, Any] | None:
    """The zoo's rows, best first, with accuracies as text."""
    if text is None:
        return None
    data: dict[str, Any] = json.loads(text)
    rows = sorted(data["rows"], key=lambda row: (-row["mean"], row["router"], row["encoder"]))
    said = [{**row, "accuracy": f"{100 * row['mean']:.2f} ± {100 * row['sd']:.2f}"} for row in rows]
    references = {name: f"{100 * value:.2f}" for name, value in data["references"].items()}
    return {**data, "rows": said, "references": references}


def _rows(table: pa.Table | StoredTable | None) -> list[dict[str, Any]]:
    if table is None:
        return []
    rows: list[dict[str, Any]] = (
        table.read() if isinstance(table, StoredTable) else table
    ).to_pylist()
    return rows


def _columns(table: pa.Table | StoredTable, *names: str) -> pa.Table:
    return table.read(names) if isinstance(table, StoredTable) else table.select(names)


def _sources(
    stated: Sequence[Mapping[str, Any]], numbers: Mapping[str, Any]
) -> list[dict[str, Any]]:
    counted = {row["source"]: row["queries"] for row in numbers["sources"]}
    return [
        {
            "name": source["source"],
            "queries": counted.get(source["source"], 0),
            "license": source.get("license") or "NOASSERTION",
            "withheld": source.get("redistribute_text") is False,
            "where": source.get("url") or source.get("hub_id"),
        }
        for source in stated
    ]
