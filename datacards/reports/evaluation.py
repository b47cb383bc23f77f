"""One self-contained HTML page of an evaluation: nothing is requested from elsewhere.

It is made of the site's own parts. Questions and answers travel as compressed JSON inside the
page, in base64, so that none of their characters can be read as markup; scripts put text into
the document as text only, and the content security policy allows the page's own scripts and
style by their hashes and forbids every request.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.datacards import sql_of
from routeyard.datacards.card import sentences
from routeyard.datacards.charts import png
from routeyard.datacards.site import evaluation
from routeyard.datacards.site.evaluation import (
    MEASURES,
    EvaluationTables,
    answer_of,
    over_call_rate,
    over_cost,
    over_groups,
    selections,
)
from routeyard.datacards.site.language import single_page
from routeyard.datacards.site.shards import batched, index, packed, questions
from routeyard.schemas import CONTRACTS, StoredTable
from routeyard.schemas.contracts import TableStore, register

# What a report's look-up shows: questions with every model's answer, and what routers chose.

#: Characters of text a report holds at most; excerpts shrink to fit.
BUDGET = 32_000_000
LONGEST_ANSWER, LONGEST_QUESTION, LONGEST_READ = 1200, 2000, 80
#: Questions that the page unpacks at once.
AT_ONCE = 40

#: Table → what is shown of it; of answers, the largest one, only this is read.
_TABLES = {
    "queries": "*",
    "labels": "*",
    "responses": "query_id, model_id, sample, status, text, cost_usd, prompt_tokens, "
    "completion_tokens, latency_s",
    "verdicts": "*",
}


def lookup(
    tables: Mapping[str, pa.Table],
    query_ids: Sequence[str],
    choices: pa.Table | None = None,
    *,
    budget: int = BUDGET,
) -> dict[str, Any]:
    """Look-up of the questions `query_ids`, as the site's questions page reads it.

    Args:
        tables: release tables `queries`, `models`, `labels` and, if at hand,
            `responses` and `verdicts`.
        choices: query_id, router, model_id rows: what each router chose.
        budget: characters of answers and questions together; every answer is
            cut at the same length so that all fit, and the cut is stated.

    Returns:
        `meta` (models, tasks, counts), `index` (columns to search) and `answers`, JSON texts of
        at most `AT_ONCE` questions: prompt, references, one cell per model that has a label
        or an answer, and the routers' choices.
    """
    import duckdb

    wanted = pa.array(list(query_ids), pa.string())
    models = sorted(tables["models"].column("model_id").to_pylist())
    place = {name: k for k, name in enumerate(models)}
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")  # means are then the same to the last bit
        connection.register("models", tables["models"].select(["model_id"]))
        connection.register("wanted", pa.table({"query_id": wanted}))
        for name, shown in _TABLES.items():
            # Columns that a table lacks are null.
            contract = CONTRACTS[name]
            connection.register("none", contract.empty())
            register(connection, f"{name}_whole", _table(tables, name) or contract.empty())
            connection.execute(
                f"CREATE TABLE {name}_of AS SELECT {shown} FROM "
                f"(FROM none UNION ALL BY NAME FROM {name}_whole SEMI JOIN wanted USING (query_id))"
            )
        for view, statement in sql_of("lookup").items():
            connection.execute(f"CREATE VIEW {view} AS {statement}")

        def ask(sql: str) -> pa.Table:
            return connection.sql(sql).to_arrow_table()

        columns, tasks = index(ask, models, has=())
        ids = columns["id"]
        longest = max(1, min(LONGEST_ANSWER, budget // max(1, len(ids) * max(1, len(models)))))
        result = questions(
            ask,
            ids,
            models,
            has=[name for name in _TABLES if name in tables],
            longest=longest,
            longest_prompt=LONGEST_QUESTION,
            longest_read=LONGEST_READ,
        )
        chosen: dict[str, list[list[Any]]] = defaultdict(list)
        if choices is not None:
            for row in choices.filter(pc.is_in(choices["query_id"], value_set=wanted)).to_pylist():
                chosen[row["query_id"]].append([row["router"], place[row["model_id"]]])
        texts = [
            f'{text[:-1]},"routers":{json.dumps(sorted(chosen[key]), ensure_ascii=False)}}}'
            for key, text in zip(ids, result, strict=True)
        ]
    return {
        "meta": {
            "models": models,
            "tasks": tasks,
            "questions": len(ids),
            "indexed": max(1, len(ids)),
            "answered": AT_ONCE,
            "longest": longest,
        },
        "index": columns,
        "answers": [f"[{','.join(part)}]" for part in batched(texts, AT_ONCE)],
    }


def _table(tables: Mapping[str, pa.Table], name: str) -> pa.Table | StoredTable | None:
    """A table, or its place where it is on a disk.

    Raises:
        ContractError: the file breaks the table's contract.
    """
    stored = tables.stored(name) if isinstance(tables, TableStore) else None
    if stored is None:
        return tables.get(name)
    CONTRACTS[name].conform(stored.schema.empty_table(), where=str(stored.path))
    return stored


# Plots of an evaluation as PNG and SVG files; the same tables give the same bytes.


def plot_all(
    folder: Path, tables: EvaluationTables, models: Sequence[str], *, simulated: bool
) -> list[Path]:
    """Write every plot there is data for; returns the files.

    Args:
        models: All models of the release, for their colours.
        simulated: Nobody paid the costs.
    """
    pool = sorted(set(tables.metrics.column("router").to_pylist()))
    drawn: dict[str, str] = {}
    for measure in MEASURES:
        own = [p for p in tables.points if p["curve"] == "deferral" and p["measure"] == measure]
        if own:
            costs = [p["x"] for p in own if p["x"] > 0]
            log = bool(costs) and max(costs) > 30 * min(costs)
            name = f"deferral-{measure}"
            drawn[f"deferral_{measure}"] = over_cost(
                own, "deferral", measure, name=name, log=log, simulated=simulated, pool=pool
            )
    if text := over_call_rate(tables, name="tradeoff", pool=pool):
        drawn["tradeoff"] = text
    for part, text in selections(tables, models, "selection{hard}"):
        drawn["selection_hard" if part.endswith(" hard") else "selection"] = text
    if tables.ood is not None and tables.ood.num_rows:
        drawn["ood"] = over_groups(tables.ood.to_pylist(), pool, name="ood")
    return [path for name, text in drawn.items() for path in _save(folder, name, text)]


def _save(folder: Path, name: str, text: str) -> list[Path]:
    svg, pixels = folder / f"{name}.svg", folder / f"{name}.png"
    svg.write_text(text, encoding="utf-8")
    pixels.write_bytes(png(text))
    return [svg, pixels]


def report(
    tables: EvaluationTables,
    *,
    models: Sequence[str],
    simulated: bool,
    certificate: Mapping[str, Any] | None,
    lookup: Mapping[str, Any],
) -> str:
    """The page as text.

    Args:
        tables: The evaluation.
        models: All models of the release, so that colours agree with its other pages.
        simulated: Programs play the models.
        certificate: the certificate as JSON, or None.
        lookup: from `routeyard.datacards.reports.evaluation.lookup`.
    """
    shards = {"index-0": packed(lookup["index"])}
    shards |= {f"answers-{k}": packed(part) for k, part in enumerate(lookup["answers"])}
    return single_page(
        "report.html.jinja",
        "site.js",
        "questions.js",
        title=tables.title,
        e=evaluation.content(tables, "e0", models, simulated=simulated),
        answer=answer_of(tables, simulated=simulated),
        certificate=certificate,
        sentences=sentences(certificate) if certificate else [],
        meta=lookup["meta"],
        shards=shards,
    )
