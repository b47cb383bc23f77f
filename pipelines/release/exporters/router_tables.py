"""ulab LLMRouter's folder: routed answers, queries, embeddings, models and a configuration.

Layout checked against its package `llmrouter-lib` 0.4.0 (`llmrouter/data/data_loader.py`,
`llmrouter/models/knnrouter`), whose trainer runs on the folder as it is written.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from routeyard.pipelines.common.staging import place, staging, write_json, write_parquet
from routeyard.pipelines.release.reader import OpenRelease
from routeyard.schemas.contracts import statements
from routeyard.schemas.errors import BadInput, UnknownName, did_you_mean
from routeyard.schemas.questions import looked_for_duplicates
from routeyard.schemas.recipe import ENCODER
from routeyard.schemas.release import usual_scheme
from routeyard.schemas.text import guarded

# What an exporter is given and what it gives back.

_SQL = statements(Path(__file__).with_name("layouts.sql"))
#: Option that every exporter gets: the absolute path that the bundle will have.
TARGET = "(target)"


@dataclass(frozen=True, slots=True)
class Exported:
    """Files written (relative), rows in them, and what the layout cannot hold."""

    files: tuple[str, ...]
    rows: int
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exporter:
    """One layout. `write(release, folder, options)` fills an empty folder.

    `options` also holds `TARGET`, the path that the folder will have.
    """

    name: str
    title: str
    options: tuple[str, ...]
    write: Callable[[OpenRelease, Path, Mapping[str, str]], Exported]


def export(
    exporter: Exporter, release: OpenRelease, target: Path, options: Mapping[str, str]
) -> Exported:
    """Write a bundle to `target`, whole or not at all.

    Raises:
        BadInput: `target` exists, or an option is not one of the layout's.
    """
    there = BadInput(f"{target} exists already", where=str(target), next_step="name a new folder")
    if target.exists():
        raise there
    for name in options:
        if name not in exporter.options:
            raise BadInput(
                f"the layout {exporter.name} has no option {name!r}",
                next_step="options: " + (", ".join(exporter.options) or "none"),
            )
    with staging(target) as folder:
        done = exporter.write(release, folder, {**options, TARGET: str(target.absolute())})
        try:
            place(folder, target)
        except FileExistsError:  # another export made it while this one wrote
            raise there from None
    return done


def pairs(release: OpenRelease) -> list[dict[str, Any]]:
    """Every labelled pair of the release; pairs without a label are left out, never wrong."""
    sql = _SQL["pairs"]
    if "responses" not in release.tables:
        sql = sql.replace("LEFT JOIN responses r", f"LEFT JOIN {_SQL['no_responses']} r")
    rows: list[dict[str, Any]] = release.sql(sql, timeout_s=3600).to_pylist()
    return rows


def numbers(release: OpenRelease, table: str, column: str) -> dict[str, int]:
    """Position of each id in a table of the release."""
    return {one: i for i, one in enumerate(release.arrow(table).column(column).to_pylist())}


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file with the line ends that the layouts' own files have.

    A text that a spreadsheet would run as a formula has an apostrophe before it.
    """
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(map(guarded, header))
        writer.writerows(map(guarded, row) for row in rows)


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line."""
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# EmbedLLM's CSVs: one row per labelled pair, and the order of questions and models.

_FILES = {"train": "train.csv", "validation": "val.csv", "test": "test.csv"}
_EMBEDLLM_COLUMNS = ("prompt_id", "model_id", "model_name", "category", "prompt", "label")


def embedllm_write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """Ids are positions in `question_order.csv` and `model_order.csv`."""
    rows = pairs(release)
    queries = numbers(release, "queries", "query_id")
    models = numbers(release, "models", "model_id")
    graded = sum(row["score"] not in (0.0, 1.0) for row in rows)
    for split, name in _FILES.items():
        cells = (
            (
                queries[row["query_id"]], models[row["model_id"]], row["model_id"], row["task"],
                row["prompt"], int(row["correct"]),
            )
            for row in rows
            if row["split"] == split
        )  # fmt: skip
        write_csv(folder / name, _EMBEDLLM_COLUMNS, cells)
    prompts = release.arrow("queries").column("prompt").to_pylist()
    write_csv(folder / "question_order.csv", ("prompt_id", "prompt"), enumerate(prompts))
    write_csv(folder / "model_order.csv", ("model_id", "model_name"), enumerate(models))
    files = (*_FILES.values(), "question_order.csv", "model_order.csv")
    dropped = {"graded scores written as 0/1": graded} if graded else {}
    return Exported(files, len(rows), dropped)


EMBEDLLM_EXPORTER = Exporter("embedllm", "EmbedLLM", (), embedllm_write)


# LLMRouterBench's tree: `results/bench/<dataset>/<split>/<model>/<model>.json`.

#: What the layout's loader adds up.
_NUMBERS = ("prompt_tokens", "completion_tokens", "cost_usd")


def llmrouterbench_write(
    release: OpenRelease, folder: Path, options: Mapping[str, str]
) -> Exported:
    """One run per task, split and model; a run whose cost or tokens are unknown is left out.

    The layout's own loader adds costs and tokens up and fails at a null; 0 would say free.

    Raises:
        BadInput: no run is complete.
    """
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    rows_left_out = 0
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault((row["task"], row["split"], row["model_id"]), []).append(row)
    files, left_out = [], 0
    for (task, split, model), found in sorted(runs.items()):
        if any(row[name] is None for row in found for name in _NUMBERS):
            left_out += 1
            rows_left_out += len(found)
            continue
        folders = (_safe(task), _safe(split), _safe(model))
        path = Path("results/bench", *folders, f"{_safe(model)}.json")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        run = _run(task, split, model, found, index)
        text = json.dumps(run, ensure_ascii=False, indent=1)
        (folder / path).write_text(text + "\n", encoding="utf-8")
        files.append(path.as_posix())
    if not files:
        raise BadInput(
            "no run has the cost and tokens of all its answers, which this layout needs",
            where=f"release {release.manifest.name}",
            next_step="state prices in the pool, or export another layout (embedllm, ulab)",
        )
    dropped = {"runs without all costs and tokens (files left out)": left_out} if left_out else {}
    return Exported(tuple(files), len(rows) - rows_left_out, dropped)


def _run(
    task: str, split: str, model: str, found: list[dict[str, Any]], index: Mapping[str, int]
) -> dict[str, Any]:
    # The layout's loader reads no time: one that is unknown is left out, and not 0.
    seconds = _total(found, "latency_s")
    return {
        "performance": sum(row["score"] for row in found) / len(found),
        **({} if seconds is None else {"time_taken": seconds}),
        "prompt_tokens": _total(found, "prompt_tokens"),
        "completion_tokens": _total(found, "completion_tokens"),
        "cost": _total(found, "cost_usd"),
        "counts": len(found),
        "model_name": model,
        "dataset_name": task,
        "split": split,
        "demo": False,
        "extra_metrics": {},
        "records": [
            {
                "index": index[row["query_id"]],
                "origin_query": row["question"],
                "prompt": row["prompt"],
                "prompt_tokens": row["prompt_tokens"],
                "completion_tokens": row["completion_tokens"],
                "cost": row["cost_usd"],
                "score": row["score"],
                "prediction": "",
                "ground_truth": row["references"],
                "raw_output": row["text"],
                "extra_fields": {"query_id": row["query_id"]},
            }
            for row in found
        ],
    }


def _total(found: list[dict[str, Any]], column: str) -> float | None:
    values = [row[column] for row in found]
    return None if None in values else sum(values)


def _safe(name: str) -> str:
    """A name as one folder: no separator, not hidden."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".")[:120] or "unnamed"


LLMROUTERBENCH_EXPORTER = Exporter("llmrouterbench", "LLMRouterBench", (), llmrouterbench_write)


# What the participants of a leaderboard get: the release without answers to its test questions.

#: File that says of which release and split scheme the folder is.
ABOUT = "participants.json"
#: Tables that say nothing of an answer, and those of which only other questions' rows are given.
_WHOLE, _PARTS = ("models", "embeddings", "hidden_states", "duplicates"), ("labels", "outcomes")


def participants_write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """Questions, splits, vectors, and labels and costs of train and validation, as Parquet.

    Of a test question the references and the metadata of its source are left out as well. Other
    split schemes are left out, since their train questions may be test questions here.
    """
    if "splits" not in release.tables:
        raise BadInput(
            "the release has no split into train and test questions",
            next_step="give the recipe a `split` section",
        )
    splits = release.arrow("splits")
    schemes = sorted(set(splits.column("scheme").to_pylist()))
    scheme = options.get("scheme") or usual_scheme(schemes)
    if scheme not in schemes:
        raise BadInput(
            f"there is no split scheme {scheme!r}", next_step=did_you_mean(str(scheme), schemes)
        )
    own = splits.filter(pc.equal(splits.column("scheme"), scheme))
    tests = own.filter(pc.equal(own.column("split"), "test")).column("query_id")
    found = {"splits": own, "queries": _blanked(release.arrow("queries"), tests)}
    known = {name for name in _WHOLE if name in release.tables}
    if not looked_for_duplicates(release.manifest.recipe):
        known.discard("duplicates")  # empty because nobody looked
    found |= {name: release.arrow(name) for name in sorted(known)}
    dropped = {}
    for name in _PARTS:
        table = release.arrow(name)
        kept = table.filter(pc.invert(pc.is_in(table.column("query_id"), value_set=_ids(tests))))
        found[name], dropped[f"{name} of test questions"] = kept, table.num_rows - kept.num_rows
    for name, table in found.items():
        write_parquet(folder / "data" / f"{name}.parquet", table)
    manifest = release.manifest
    about = {
        "format": 1, "name": manifest.name, "version": manifest.version,
        "fingerprint": manifest.fingerprint, "scheme": scheme, "test_questions": len(tests),
    }  # fmt: skip
    write_json(folder / ABOUT, about)
    files = (*(f"data/{name}.parquet" for name in found), ABOUT)
    return Exported(files, found["labels"].num_rows, {k: n for k, n in dropped.items() if n})


def _ids(column: pa.ChunkedArray) -> pa.Array:
    return pa.array(column.to_pylist(), pa.string())


def _blanked(queries: pa.Table, tests: pa.ChunkedArray) -> pa.Table:
    """Questions; those of the test split without references and without their source's metadata."""
    hidden = pc.is_in(queries.column("query_id"), value_set=_ids(tests)).to_pylist()
    for name, empty in (("references", []), ("metadata", json.dumps({}))):
        if name in queries.column_names:
            values = queries.column(name).to_pylist()
            shown = [empty if hide else value for hide, value in zip(hidden, values, strict=True)]
            field = queries.schema.field(name)
            place = queries.column_names.index(name)
            queries = queries.set_column(place, field, pa.array(shown, field.type))
    return queries


PARTICIPANTS_EXPORTER = Exporter(
    "participants", "Participants of a leaderboard", ("scheme",), participants_write
)


# RouteLLM's files: a strong and a weak model, True/False per prompt, and battles to train on.


def routellm_write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """`mmlu_<task>.csv` per task and `battles.jsonl` of the training split.

    Queries that only one of the two models has a label for are left out.

    Raises:
        BadInput: `strong` or `weak` is not given.
        UnknownName: one of them is not in the release.
    """
    strong, weak = _pair(release, options)
    by_query: dict[str, dict[str, dict[str, Any]]] = {}
    for row in pairs(release):
        if row["model_id"] in (strong, weak):
            by_query.setdefault(row["query_id"], {})[row["model_id"]] = row
    both = {q: found for q, found in by_query.items() if len(found) == 2}
    tasks: dict[str, list[dict[str, dict[str, Any]]]] = {}
    for found in both.values():
        tasks.setdefault(found[strong]["task"], []).append(found)
    files: list[str] = []
    for task, rows in sorted(tasks.items()):
        name = f"mmlu_{_routellm_file_name(task, files)}.csv"
        files.append(name)
        cells = (
            (found[strong]["prompt"], *(bool(found[model]["correct"]) for model in (strong, weak)))
            for found in rows
        )
        write_csv(folder / name, ("prompt", strong, weak), cells)
    battles = (
        _battle(query, found, strong, weak)
        for query, found in both.items()
        if found[strong]["split"] == "train"
    )
    write_jsonl(folder / "battles.jsonl", battles)
    missing = len(by_query) - len(both)
    dropped = {"queries with a label of one model only": missing} if missing else {}
    return Exported((*files, "battles.jsonl"), 2 * len(both), dropped)


def _battle(
    query: str, found: Mapping[str, Mapping[str, Any]], strong: str, weak: str
) -> dict[str, Any]:
    a, b = found[strong]["score"], found[weak]["score"]
    return {
        "id": f"{query}|{strong}|{weak}",
        "model_a": strong,
        "model_b": weak,
        "prompt": json.dumps([found[strong]["prompt"]], ensure_ascii=False),
        "response_a": json.dumps([found[strong]["text"]], ensure_ascii=False),
        "response_b": json.dumps([found[weak]["text"]], ensure_ascii=False),
        "winner_model_a": int(a > b),
        "winner_model_b": int(b > a),
        "winner_tie": int(a == b),
    }


def _pair(release: OpenRelease, options: Mapping[str, str]) -> tuple[str, str]:
    models = release.arrow("models").column("model_id").to_pylist()
    for name in ("strong", "weak"):
        if name not in options:
            raise BadInput(
                f"RouteLLM knows two models; no {name} one is named",
                next_step=f"add --{name} MODEL; models: {', '.join(models[:8])}",
            )
        if options[name] not in models:
            raise UnknownName(
                f"there is no model {options[name]!r} in the release",
                next_step=did_you_mean(options[name], models),
            )
    if options["strong"] == options["weak"]:
        raise BadInput("the strong and the weak model are the same", next_step="name two models")
    return options["strong"], options["weak"]


def _routellm_file_name(task: str, taken: list[str]) -> str:
    """A task's name as part of a file name: nothing of it can leave the folder."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", task)[:80] or "task"
    number = 1
    unique = name
    while f"mmlu_{unique}.csv" in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


ROUTELLM_EXPORTER = Exporter("routellm", "RouteLLM", ("strong", "weak"), routellm_write)


# RouterArena's cached results: JSON lines per model, prices, and each model as a fixed router.
#
# Layout checked against `cached_results/`, `model_cost/cost.json` and
# `router_inference/predictions/`
# of RouteWorks/RouterArena.


def routerarena_write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """One line per labelled pair; a cost that is not known is null.

    The benchmark's name is the start of an index (`TASK_7`), as it is there.
    """
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    by_model: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_model.setdefault(row["model_id"], []).append(row)
    files: list[str] = []
    for name in ("cached_results", "router_inference/predictions", "model_cost"):
        (folder / name).mkdir(parents=True)
    for model, mine in sorted(by_model.items()):
        safe = _routerarena_file_name(model, files)
        cached = f"cached_results/{safe}.jsonl"
        predicted = f"router_inference/predictions/{safe}.json"
        lines = [_routerarena_line(row, index[row["query_id"]]) for row in mine]
        write_jsonl(folder / cached, lines)
        _write_json(folder / predicted, [_prediction(line) for line in lines])
        files += [cached, predicted]
    prices = {row["model_id"]: _price(row) for row in release.arrow("models").to_pylist()}
    priced = {model: price for model, price in prices.items() if price is not None}
    _write_json(folder / "model_cost/cost.json", priced)
    dropped = {
        "answers without a cost (inference_cost is null)": sum(r["cost_usd"] is None for r in rows),
        "models without prices (not in cost.json)": len(prices) - len(priced),
    }
    kept = {what: n for what, n in dropped.items() if n}
    return Exported((*files, "model_cost/cost.json"), len(rows), kept)


def _routerarena_line(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    used = (row["prompt_tokens"], row["completion_tokens"])
    task = re.sub(r"\s+", "-", row["task"])
    return {
        "global_index": f"{task}_{number}",
        "question": row["prompt"],
        "llm_selected": row["model_id"],
        "generated_answer": row["text"],
        "token_usage": {
            "input_tokens": used[0],
            "output_tokens": used[1],
            "total_tokens": None if None in used else sum(used),
        },
        "success": True,
        "provider": None,
        "error": None,
        "evaluation_result": {
            "extracted_answer": None,
            "ground_truth": row["references"][0] if row["references"] else None,
            "score": row["score"],
            "metric": row["scorer"],
            "inference_cost": row["cost_usd"],
        },
    }


def _prediction(line: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as the choice of a router that always takes its model."""
    kept = ("generated_answer", "success", "token_usage", "provider", "error")
    return {
        "global index": line["global_index"],
        "prompt": line["question"],
        "prediction": line["llm_selected"],
        "generated_result": {name: line[name] for name in kept},
        "accuracy": line["evaluation_result"]["score"],
        "cost": line["evaluation_result"]["inference_cost"],
    }


def _price(row: Mapping[str, Any]) -> dict[str, float] | None:
    if row["price_in"] is None or row["price_out"] is None:
        return None
    return {
        "input_token_price_per_million": row["price_in"],
        "output_token_price_per_million": row["price_out"],
    }


def _routerarena_file_name(model: str, taken: Sequence[str]) -> str:
    """A model's name as a file's: nothing of it can leave the folder."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", model).lstrip(".")[:100] or "model"
    number, unique = 1, name
    while f"cached_results/{unique}.jsonl" in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


ROUTERARENA_EXPORTER = Exporter("routerarena", "RouterArena", (), routerarena_write)


# SPROUT's Parquet files: one row per query, and one struct of tokens and score per model.

_SPLITS = ("train", "validation", "test")
_SPROUT_COLUMNS = ("key", "dataset", "dataset level", "dataset idx", "prompt", "golden_answer")
_CELL = pa.struct(
    [
        ("judge_response", pa.string()),
        ("num_input_tokens", pa.int64()),
        ("num_output_tokens", pa.int64()),
        ("response", pa.string()),
        ("score", pa.float64()),
    ]
)


def sprout_write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """A pair without a label is a null struct; the layout holds tokens, and no dollars."""
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    models = [*numbers(release, "models", "model_id")]
    schema = pa.schema(
        [(name, pa.string()) for name in _SPROUT_COLUMNS] + [(m, _CELL) for m in models]
    )
    files = []
    (folder / "data").mkdir()
    for split in _SPLITS:
        found: dict[str, dict[str, Any]] = {}
        for row in (row for row in rows if row["split"] == split):
            query = found.setdefault(row["query_id"], _sprout_query(row, index[row["query_id"]]))
            query[row["model_id"]] = {
                "num_input_tokens": row["prompt_tokens"],
                "num_output_tokens": row["completion_tokens"],
                "response": row["text"],
                "score": row["score"],
            }
        name = f"data/{split}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(list(found.values()), schema), folder / name)
        files.append(name)
    costs = sum(row["cost_usd"] is not None for row in rows)
    return Exported(tuple(files), len(rows), {"costs in dollars": costs} if costs else {})


def _sprout_query(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "key": row["query_id"],
        "dataset": row["task"],
        "dataset idx": str(number),
        "prompt": row["prompt"],
        "golden_answer": row["references"][0] if row["references"] else None,
    }


SPROUT_EXPORTER = Exporter("sprout", "SPROUT", (), sprout_write)


def ulab_write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """One line per labelled pair; tokens, costs and times that are not known are null.

    Row `embedding_id` of `query_embeddings.pt` belongs to a query. `router.yaml` names the files by
    the absolute path of the bundle, as the peer's loader needs.
    """
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    files = []
    for split in _SPLITS:
        mine = [row for row in rows if row["split"] == split]
        routed, asked = f"default_routing_{split}_data.jsonl", f"default_query_{split}.jsonl"
        write_jsonl(folder / routed, (_ulab_line(row, index[row["query_id"]]) for row in mine))
        first = {row["query_id"]: row for row in mine}
        write_jsonl(folder / asked, (_ulab_query(row) for row in first.values()))
        files += [routed, asked]
    models = release.arrow("models").to_pylist()
    dropped = _dropped(release, rows, len(models))
    vectors = _vectors(release)
    if vectors is None:
        dropped["query embeddings: the release has no texts"] = len(index)
    else:
        import torch

        torch.save(torch.from_numpy(vectors[0]), folder / "query_embeddings.pt")
        _write_json(folder / "default_llm_embeddings.json", _described(models, vectors[1]))
        files += ["query_embeddings.pt", "default_llm_embeddings.json"]
    _write_json(folder / "default_llm.json", {row["model_id"]: _model(row) for row in models})
    text = yaml.safe_dump(_configuration(Path(options[TARGET])), sort_keys=False)
    (folder / "router.yaml").write_text(text, encoding="utf-8")
    return Exported((*files, "default_llm.json", "router.yaml"), len(rows), dropped)


def _ulab_line(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    used = (row["prompt_tokens"], row["completion_tokens"])
    return {
        **_ulab_query(row),
        "model_name": row["model_id"],
        "response": row["text"],
        "token_num": None if None in used else sum(used),
        "input_tokens": row["prompt_tokens"],
        "output_tokens": row["completion_tokens"],
        "response_time": row["latency_s"],
        "performance": row["score"],
        "cost": row["cost_usd"],
        "embedding_id": number,
    }


def _ulab_query(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "task_name": row["task"],
        "query": row["prompt"],
        "ground_truth": row["references"][0] if row["references"] else None,
        "metric": row["scorer"],
        "choices": json.dumps(row["choices"], ensure_ascii=False),
        "task_id": row["query_id"],
    }


def _dropped(
    release: OpenRelease, rows: Sequence[Mapping[str, Any]], models: int
) -> dict[str, int]:
    """What the peer reads otherwise than it is: absent pairs, and queries of one text."""
    asked = {row["query_id"]: row["prompt"] for row in rows}
    missing = len(asked) * models - len(rows)
    texts = Counter(asked.values())
    same = sum(count for count in texts.values() if count > 1)
    said = {
        "pairs without a label (its graph router takes them for 0)": missing,
        "queries of one text, which it takes for one": same,
    }
    return {what: n for what, n in said.items() if n}


def _vectors(release: OpenRelease) -> tuple[np.ndarray, Any] | None:
    """Embeddings of the queries in the release's order, and their encoder; None without texts."""
    from routeyard.pipelines.common import encoders

    queries = release.arrow("queries")
    prompts = queries.column("prompt").to_pylist()
    if any(prompt is None for prompt in prompts):
        return None
    encode = encoders.load(ENCODER, batch_size=8)
    if "embeddings" in release.tables:
        table = release.arrow("embeddings")
        known = dict(zip(table.column("query_id").to_pylist(),
                         table.column("vector").to_pylist(), strict=True))  # fmt: skip
        ids = queries.column("query_id").to_pylist()
        if all(one in known for one in ids):
            return np.array([known[one] for one in ids], np.float32), encode
    return np.asarray(encode(prompts)[0], np.float32), encode


def _described(models: Sequence[Mapping[str, Any]], encode: Any) -> dict[str, Any]:
    """Model → its entry with the embedding of its description."""
    vectors = encode([_feature(row) for row in models])[0]
    return {
        row["model_id"]: {**_model(row), "embedding": [float(x) for x in vector]}
        for row, vector in zip(models, vectors, strict=True)
    }


def _feature(row: Mapping[str, Any]) -> str:
    """A model in words: what the release says of it."""
    known = [
        f"model {row['model_id']}",
        f"family {row['family']}" if row.get("family") else "",
        f"{row['params_b']:g} billion parameters" if row.get("params_b") else "",
        f"{row['price_in']:g} USD per million input tokens" if row.get("price_in") else "",
        f"{row['price_out']:g} USD per million output tokens" if row.get("price_out") else "",
    ]
    return ", ".join(one for one in known if one)


def _model(row: Mapping[str, Any]) -> dict[str, Any]:
    size = row.get("params_b")
    return {
        "size": f"{size:g}B" if size else None,
        "feature": _feature(row),
        "input_price": row.get("price_in"),
        "output_price": row.get("price_out"),
        "model": row["model_id"],
        "service": row.get("provider"),
    }


def _configuration(target: Path) -> dict[str, Any]:
    """The peer's configuration of its nearest-neighbour router on these files."""
    files = {
        "query_data_train": "default_query_train.jsonl",
        "query_data_test": "default_query_test.jsonl",
        "query_embedding_data": "query_embeddings.pt",
        "routing_data_train": "default_routing_train_data.jsonl",
        "routing_data_test": "default_routing_test_data.jsonl",
        "llm_data": "default_llm.json",
        "llm_embedding_data": "default_llm_embeddings.json",
    }
    model = str(target / "knn_model.pkl")
    return {
        "data_path": {key: str(target / name) for key, name in files.items()},
        "model_path": dict.fromkeys(
            ("ini_model_path", "save_model_path", "load_model_path"), model
        ),
        "hparam": {"n_neighbors": 5, "metric": "cosine"},
        "metric": {"weights": {"performance": 1}},
    }


ULAB_EXPORTER = Exporter("ulab", "ulab LLMRouter", (), ulab_write)
