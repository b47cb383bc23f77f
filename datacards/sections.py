"""Parts of a card that only some releases have: preference pairs, rounds, injected models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from routeyard.datacards.markdown import environment, texts
from routeyard.schemas.recipe import Label

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
    found = (figures.get("collect") or {}).get("informative")
    if not found:
        return ""
    ranked = sorted(found["models"], key=lambda row: (-(row["weighted"] or 0), row["model_id"]))
    return environment().get_template("informative.md.j2").render(f=found, models=ranked)


def injected(figures: Mapping[str, Any]) -> list[str]:
    """A sentence per pseudo-specialist, and their costs with where each value comes from."""
    lines: list[str] = []
    for found in _figures_of("pseudo_specialists", figures):
        if not found.get("injected"):
            continue
        lines += [
            f"`{one['model_id']}` is simulated: right on {100 * one['accuracy']:.1f} % of task "
            f"{_plain(one['task'])}, where the best real model has {100 * one['best_real']:.1f} %."
            for one in found["injected"]
        ]
        # In this order: a manifest has its keys sorted, and the card is rendered from both.
        known = [
            f"{words.format(one['value'])} ({_FROM.get(one['from'], one['from'])})"
            for name, words in _COSTS.items()
            if (one := found["costs"].get(name) or {"value": None})["value"] is not None
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
    found = []
    if numbers["prices"]:
        read = "; ".join(_read_from(one) for one in numbers["prices"])
        found.append(f"Prices were read {read}.")
    sizes: dict[str, list[str]] = {}
    for model in (recipe.get("pool") or {}).get("models") or ():
        if source := model.get("params_source"):
            sizes.setdefault(str(source), []).append(str(model["model_id"]))
    found += [
        f"The size of {', '.join(names[:3])}{f' and {len(names) - 3} more' if names[3:] else ''}: "
        f"{source}."
        for source, names in sizes.items()
    ]
    return found


def _read_from(row: Mapping[str, Any]) -> str:
    source = row["price_source"] or "as the recipe states them"
    some = f"{row['models']:,} model{'s' if row['models'] > 1 else ''}"
    reach = f"; of prompts up to {row['up_to']:,} tokens" if row["up_to"] else ""
    return f"{row['price_date']} ({source}: {some}{reach})"


_TRUSTED = {"given": "the grades", "rules": "those of the rule"}


def label_choices(
    recipe: Mapping[str, Any], numbers: Mapping[str, Any], figures: Mapping[str, Any]
) -> list[str]:
    """Sentences on what the recipe chose about labels, and what was noted when they were made.

    Args:
        recipe: As the manifest holds it.
        numbers: Of `card_numbers`.
        figures: Figures of the stages; `label` notes undecided answers and contradicted grades.
    """
    label = Label.model_validate(recipe.get("label") or {})
    policies = {"": label.default, **label.tasks}
    unread = (numbers["counts"] or {}).get("unreadable") or 0
    wrong = sorted(task for task, one in policies.items() if one.unreadable == "incorrect")
    of = "" if "" in wrong else f" of {', '.join(map(_plain, wrong))}"
    said = (
        f"{unread:,} answers could be read by no scorer; the recipe counts those{of} as wrong "
        "(`unreadable: incorrect`)."
    )
    trusted = sorted({label.policy_of(task).trust or "" for task in policies} - {""})
    grades = [
        f"Where the recording holds grades, the labels are {_TRUSTED[one]} (`trust: {one}`)."
        for one in trusted
    ]
    notes = [f"{note}." for note in (figures.get("label") or {}).get("notes") or ()]
    if "trust" not in ((recipe.get("label") or {}).get("default") or {}):
        return notes  # of a format in which neither could be chosen
    return [*([said] if wrong and unread else []), *grades, *notes]


def _figures_of(rule: str, figures: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rules = (figures.get("curate") or {}).get("rules") or []
    return [one["figures"] for one in rules if one["rule"] == rule]


def _prompt(recipe: Mapping[str, Any]) -> str:
    sources = recipe.get("sources") or ()
    stated = [str(one["name"]) for one in sources if (one.get("fields") or {}).get("prompt")]
    made = "what Routeyard would send"
    if not stated:
        return made
    as_stated = f"the text that {', '.join(stated)} states"
    return as_stated if len(stated) == len(sources) else f"{as_stated}, else {made}"


def _plain(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|" else sign for sign in text)
