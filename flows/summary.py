"""What a build prints of its release at the end, and what Prefect's page shows of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from routeyard.datacards.card import causes, sentence
from routeyard.flows.console import printer, table
from routeyard.pipelines.common.errors import few
from routeyard.schemas.contracts import StoredTable
from routeyard.schemas.questions import looked_for_duplicates
from routeyard.schemas.release import order_undecided, undecided_words
from routeyard.schemas.text import markdown as cell
from routeyard.schemas.text import own_table, prose

_SQL = own_table(Path(__file__).with_name("summary.yaml"))


def figures(release: Path) -> dict[str, Any]:
    """Accuracy per model and task, oracle, best single model, duplicates and cost.

    Every figure is counted over labels that exist; `unlabelled` pairs are listed
    apart, never counted as wrong.
    """
    from routeyard.pipelines.release.query import connect

    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    with connect(release, for_people=False) as connection:

        def ask(name: str) -> list[dict[str, Any]]:
            done = connection.execute(_SQL[name])
            names = [column[0] for column in done.description]
            return [dict(zip(names, row, strict=True)) for row in done.fetchall()]

        per_model, single = ask("per_model"), next(iter(ask("best_single")), None)
        costs = {row["model"]: row["usd"] for row in ask("costs")}
        return {
            **ask("facts")[0],
            "best_single": [" and ".join(single["models"]), single["accuracy"]] if single else None,
            "order_undecided": _undecided(single["models"][0], per_model, single["judged"])
            if single
            else "",
            # On the questions that the best single model has a label for.
            "oracle": single["oracle"] if single else None,
            "losses": _losses(release),
            "notes": _notes(manifest),
            # Without a rule the table is there and empty, but nobody looked.
            "duplicates": ask("duplicates")[0]
            if looked_for_duplicates(manifest["recipe"])
            else None,
            "cost_usd": sum(costs.values()) if len(costs) == len(per_model) and costs else None,
            # What is known of the others is given all the same.
            "cost_known_usd": sum(costs.values()) if costs else None,
            "cost_unknown_of": [row["model"] for row in per_model if row["model"] not in costs],
            "per_model": [{**row, "cost_usd": costs.get(row["model"])} for row in per_model],
            "per_task": ask("per_task"),
        }


def _undecided(first: str, per_model: list[dict[str, Any]], questions: int) -> str:
    """Why no model is called best; empty where missing labels do not leave it open."""
    counts = {
        row["model"]: ((row["accuracy"] or 0.0) * row["labelled"], row["labelled"], questions)
        for row in per_model
    }
    others = order_undecided(counts, first)
    return undecided_words(first, others) if others else ""


def _losses(release: Path) -> list[dict[str, Any]]:
    """Why pairs have no label, counted over the release's own tables."""
    names = ("queries", "models", "labels", "responses", "verdicts", "outcomes")
    files = {name: release / "data" / f"{name}.parquet" for name in names}
    return causes({name: StoredTable(path) for name, path in files.items() if path.is_file()})


def _notes(manifest: Mapping[str, Any]) -> list[str]:
    """What reading the sources had to say, and questions that were left out of them."""
    ingested = (manifest.get("figures") or {}).get("ingest") or {}
    notes = [str(item) for item in ingested.get("notes") or []]
    if removed := ingested.get("removed"):
        notes.append(f"{removed:,} questions of the sources were left out (table `removals`)")
    return notes


def markdown(release: Path) -> str:
    """The summary as Markdown, for a Prefect artifact."""
    said = figures(release)
    lines = [f"**{release.parent.name} {release.name}**", ""]
    lines += [f"- {prose(text)}" for text in _facts(said)]
    lines += [
        "",
        "| model | accuracy | labelled | "
        + ("simulated USD |" if said["simulated"] else "cost (USD) |"),
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {cell(row['model'])} | {_with_bounds(row)} | {row['labelled']:,} "
        f"| {_money(row['cost_usd'])} |"
        for row in said["per_model"]
    ]
    return "\n".join(lines)


def show_build(summary: Mapping[str, Any]) -> None:
    """Print the release of a build that reached it."""
    if release := summary.get("release"):
        console_summary(Path(release["path"]), release["status"])


def console_summary(release: Path, status: str) -> None:
    """Print the summary for a person: models, then tasks, then what to try."""

    console = printer()
    said = figures(release)
    console.print(_models(release, said))
    console.print(_tasks(said))
    for text in _facts(said):
        console.print(text)
    console.print(f"\nrelease   {release} ({status})", soft_wrap=True)
    console.print("\nNext:")
    for words in (f"site {release} --serve", f"query {release} @leaderboard", f"audit {release}"):
        console.print(f"  routeyard {words}", soft_wrap=True, markup=False)


def _models(release: Path, said: dict[str, Any]) -> Table:
    cost = "simulated USD" if said["simulated"] else "cost USD"
    rows = (
        (sign, row["model"], _with_bounds(row), f"{row['labelled']:,}", _money(row["cost_usd"]))
        for sign, row in zip(_signs(said), said["per_model"], strict=True)
    )
    title = f"{release.parent.name} {release.name}"
    columns = ("", "model", "accuracy %", "labelled", cost)
    return table(columns, rows, texts=2, title=title, title_justify="left")


def _tasks(said: dict[str, Any]) -> Table:
    """Accuracy per task and model; for large pools the best model of each task."""
    by_task: dict[str, dict[str, float | None]] = {}
    leads: dict[tuple[str, str], float] = {}
    for row in said["per_task"]:
        by_task.setdefault(row["task"], {})[row["model"]] = row["accuracy"]
        # How far above the mean of the questions it was asked: the same questions for all.
        leads[row["task"], row["model"]] = row["lead"] or 0.0
    models = [row["model"] for row in said["per_model"]]
    columns, rows, texts = ["task", *_signs(said)], [], 1
    for task, row in sorted(by_task.items()):
        if len(models) <= 12:
            rows.append([task, *(_percent(row.get(model)) for model in models)])
            continue
        columns, texts = ["task", "best model", "accuracy %"], 2
        known = {model: value for model, value in row.items() if value is not None}
        most = max((leads[task, model] for model in known), default=0.0)
        best = [model for model in known if leads[task, model] == most]
        rows.append([task, few(best) or "-", _percent(known[best[0]] if best else None)])
    made = table(columns, rows, texts=texts, title="accuracy %, by task", title_justify="left")
    made.columns[0].min_width = len("accuracy %")
    return made


def _signs(said: dict[str, Any]) -> list[str]:
    """a, b, …, aa: short names of the models, in order of accuracy."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [
        letters[i] if i < 26 else letters[i // 26 - 1] + letters[i % 26]
        for i in range(len(said["per_model"]))
    ]


def _facts(said: dict[str, Any]) -> list[str]:
    facts = []
    if said["simulated"]:
        facts.append("The pool is SIMULATED: programs play the models. Do not cite the figures.")
    facts.append(
        f"{said['questions']:,} questions x {said['models']} models: {said['labels']:,} labels, "
        f"{said['unlabelled']:,} pairs without a label (not counted), "
        f"{said['contested']:,} contested, {said['unreadable']:,} unreadable"
    )
    for loss in said["losses"]:
        facts += [f"  {sentence(loss)}", f"    next: {loss['next']}"]
    facts += said["notes"]
    if said["best_single"]:
        model, accuracy = said["best_single"]
        single = "single model" if said["order_undecided"] else "best single model"
        facts.append(f"{single} {model} {_percent(accuracy)}, oracle {_percent(said['oracle'])}")
        facts += [said["order_undecided"]] if said["order_undecided"] else []
    if (result := said["duplicates"]) is None:
        facts.append("near-duplicates were not looked for (rule dedup)")
    else:
        facts.append(
            f"{result['groups']:,} groups of near-duplicates ({result['questions']:,} questions), "
            f"{result['conflicts']:,} of them with conflicting labels"
        )
    cost, unknown = said["cost_known_usd"], said["cost_unknown_of"]
    if cost is None:
        facts.append("cost unknown")
    else:
        without = f", without {few(unknown)}, whose cost is not known" if unknown else ""
        if said["simulated"]:
            facts.append(f"cost {_money(cost)} simulated USD, nothing was paid{without}")
        else:
            facts.append(f"cost {_money(cost)} USD{without}")
    return facts


def _with_bounds(row: dict[str, Any]) -> str:
    """Accuracy, and in brackets the bounds that undecided answers leave open."""
    accuracy = _percent(row["accuracy"])
    if (row["high"] or 0) - (row["low"] or 0) < 1e-12:
        return accuracy
    return f"{accuracy} ({_percent(row['low'])} to {_percent(row['high'])} with the undecided)"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _money(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
