"""A release in the layouts of other projects: one writer for each, rows from `layouts.sql`.

Layout checked against its package `llmrouter-lib` 0.4.0 (`llmrouter/data/data_loader.py`,
`llmrouter/models/knnrouter`), whose trainer runs on the folder as it is written.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from routeyard.pipelines.common.staging import place, staging, write_json, write_parquet
from routeyard.pipelines.common.usage import whole_sum
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


def rows_of(release: OpenRelease, layout: str) -> list[dict[str, Any]]:
    """The rows of a layout's statement, one per labelled pair."""
    pairs = _SQL["pairs"]
    if "responses" not in release.tables:
        pairs = pairs.replace("LEFT JOIN responses r", f"LEFT JOIN {_SQL['no_responses']} r")
    sql = f"WITH pairs AS ({pairs}) SELECT * FROM ({_SQL[layout]})"
    rows: list[dict[str, Any]] = release.sql(sql, timeout_s=3600).to_pylist()
    return rows


def grouped(rows: Iterable[Mapping[str, Any]], *columns: str) -> dict[Any, list[Any]]:
    """Value of a column, or tuple of values of several → rows."""
    result: dict[Any, list[Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in columns) if len(columns) > 1 else row[columns[0]]
        result.setdefault(key, []).append(row)
    return result


def file_name(name: str, taken: Collection[str], allowed: str = "._-") -> str:
    """A name as that of one file or folder: no separator, not hidden, not one of those taken."""
    short = re.sub(rf"[^A-Za-z0-9{allowed}]+", "_", name).lstrip(".")[:100] or "unnamed"
    unique, number = short, 1
    while unique in taken:
        number += 1
        unique = f"{short}_{number}"
    return unique


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
    rows = rows_of(release, "embedllm")
    by_split = grouped(rows, "split")
    for split, name in _FILES.items():
        cells = ([row[item] for item in _EMBEDLLM_COLUMNS] for row in by_split.get(split, ()))
        write_csv(folder / name, _EMBEDLLM_COLUMNS, cells)
    orders = {"question": ("queries", "prompt"), "model": ("models", "model_id")}
    for name, (table, column) in orders.items():
        values = release.arrow(table).column(column).to_pylist()
        header = ("prompt_id", "prompt") if name == "question" else ("model_id", "model_name")
        write_csv(folder / f"{name}_order.csv", header, enumerate(values))
    files = (*_FILES.values(), *(f"{name}_order.csv" for name in orders))
    graded = sum(not row["whole"] for row in rows)
    dropped = {"graded scores written as 0/1": graded} if graded else {}
    return Exported(files, len(rows), dropped)


EMBEDLLM_EXPORTER = Exporter("embedllm", "EmbedLLM", (), embedllm_write)


# LLMRouterBench's tree: `results/bench/<dataset>/<split>/<model>/<model>.json`.


def llmrouterbench_write(
    release: OpenRelease, folder: Path, options: Mapping[str, str]
) -> Exported:
    """One run per task, split and model; a run whose cost or tokens are unknown is left out.

    The layout's own loader adds costs and tokens up and fails at a null; 0 would say free.

    Raises:
        BadInput: no run is complete.
    """
    files, result, left_out = [], 0, 0
    names: dict[str, str] = {}
    runs = grouped(rows_of(release, "llmrouterbench"), "task", "split", "model_id")
    for parts, value in sorted(runs.items()):
        task, split, model = parts
        records = [row["record"] for row in value]
        sums = {name: whole_sum([row[name] for row in records]) for name in _NUMBERS}
        if None in sums.values():
            left_out += 1
            continue
        for part in parts:
            names.setdefault(part, file_name(part, names.values()))
        path = Path("results/bench", *(names[item] for item in parts), f"{names[model]}.json")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        # The layout's loader reads no time: one that is unknown is left out, and not 0.
        seconds = whole_sum([row["seconds"] for row in value])
        run = {
            "performance": sum(record["score"] for record in records) / len(records),
            **({} if seconds is None else {"time_taken": seconds}),
            **sums,
            "counts": len(records), "model_name": model, "dataset_name": task, "split": split,
            "demo": False, "extra_metrics": {}, "records": records,
        }  # fmt: skip
        _write_json(folder / path, run)
        files.append(path.as_posix())
        result += len(records)
    if not files:
        raise BadInput(
            "no run has the cost and tokens of all its answers, which this layout needs",
            where=f"release {release.manifest.name}",
            next_step="state prices in the pool, or export another layout (embedllm, ulab)",
        )
    dropped = {"runs without all costs and tokens (files left out)": left_out} if left_out else {}
    return Exported(tuple(files), result, dropped)


#: What the layout's loader adds up.
_NUMBERS = ("prompt_tokens", "completion_tokens", "cost")


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
    result = {"splits": own, "queries": _blanked(release.arrow("queries"), tests)}
    known = {name for name in _WHOLE if name in release.tables}
    if not looked_for_duplicates(release.manifest.recipe):
        known.discard("duplicates")  # empty because nobody looked
    result |= {name: release.arrow(name) for name in sorted(known)}
    dropped = {}
    for name in _PARTS:
        table = release.arrow(name)
        rows = table.filter(pc.invert(pc.is_in(table.column("query_id"), value_set=_ids(tests))))
        result[name], dropped[f"{name} of test questions"] = rows, table.num_rows - rows.num_rows
    for name, table in result.items():
        write_parquet(folder / "data" / f"{name}.parquet", table)
    manifest = release.manifest
    about = {
        "format": 1, "name": manifest.name, "version": manifest.version,
        "fingerprint": manifest.fingerprint, "scheme": scheme, "test_questions": len(tests),
    }  # fmt: skip
    write_json(folder / ABOUT, about)
    files = (*(f"data/{name}.parquet" for name in result), ABOUT)
    return Exported(files, result["labels"].num_rows, {k: n for k, n in dropped.items() if n})


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
    names = strong, weak = _pair(release, options)
    rows = [row for row in rows_of(release, "routellm") if row["model_id"] in names]
    by_query = {
        query: {row["model_id"]: row for row in result}
        for query, result in grouped(rows, "query_id").items()
    }
    both = {query: result for query, result in by_query.items() if len(result) == 2}
    tasks: dict[str, list[dict[str, dict[str, Any]]]] = {}
    for item in both.values():
        tasks.setdefault(item[strong]["task"], []).append(item)
    taken: list[str] = []
    for task, pairs in sorted(tasks.items()):
        taken.append(file_name(task, taken, allowed="_-"))
        cells = (
            (p[strong]["prompt"], *(bool(p[name]["correct"]) for name in names)) for p in pairs
        )
        write_csv(folder / f"mmlu_{taken[-1]}.csv", ("prompt", *names), cells)
    battles = (
        _battle(query, result, strong, weak)
        for query, result in both.items()
        if result[strong]["split"] == "train"
    )
    write_jsonl(folder / "battles.jsonl", battles)
    missing = len(by_query) - len(both)
    dropped = {"queries with a label of one model only": missing} if missing else {}
    files = (*(f"mmlu_{name}.csv" for name in taken), "battles.jsonl")
    return Exported(files, 2 * len(both), dropped)


def _battle(
    query: str, answers: Mapping[str, Mapping[str, Any]], strong: str, weak: str
) -> dict[str, Any]:
    a, b = answers[strong], answers[weak]
    texts = {"prompt": a["prompt"], "response_a": a["text"], "response_b": b["text"]}
    return {
        "id": f"{query}|{strong}|{weak}",
        "model_a": strong,
        "model_b": weak,
        **{name: json.dumps([text], ensure_ascii=False) for name, text in texts.items()},
        "winner_model_a": int(a["score"] > b["score"]),
        "winner_model_b": int(b["score"] > a["score"]),
        "winner_tie": int(a["score"] == b["score"]),
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
    rows = rows_of(release, "routerarena")
    files: list[str] = []
    for name in ("cached_results", "router_inference/predictions", "model_cost"):
        (folder / name).mkdir(parents=True)
    taken: list[str] = []
    for model, mine in sorted(grouped(rows, "model_id").items()):
        taken.append(file_name(model, taken))
        files += [
            f"cached_results/{taken[-1]}.jsonl", f"router_inference/predictions/{taken[-1]}.json"
        ]  # fmt: skip
        write_jsonl(folder / files[-2], (row["cached"] for row in mine))
        _write_json(folder / files[-1], [row["prediction"] for row in mine])
    models = rows_of(release, "routerarena_prices")
    prices = {row["model_id"]: row["price"] for row in models if row["price"] is not None}
    _write_json(folder / "model_cost/cost.json", prices)
    unknown = sum(row["prediction"]["cost"] is None for row in rows)
    dropped = {
        "answers without a cost (inference_cost is null)": unknown,
        "models without prices (not in cost.json)": len(models) - len(prices),
    }
    counts = {what: n for what, n in dropped.items() if n}
    return Exported((*files, "model_cost/cost.json"), len(rows), counts)


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
    rows = rows_of(release, "sprout")
    models = release.arrow("models").column("model_id").to_pylist()
    schema = pa.schema(
        [(name, pa.string()) for name in _SPROUT_COLUMNS] + [(m, _CELL) for m in models]
    )
    files = []
    (folder / "data").mkdir()
    by_split = grouped(rows, "split")
    for split in _SPLITS:
        results = [
            {**own[0]["question"], **{row["model_id"]: row["cell"] for row in own}}
            for own in grouped(by_split.get(split, ()), "query_id").values()
        ]
        name = f"data/{split}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(results, schema), folder / name)
        files.append(name)
    costs = sum(row["cost_usd"] is not None for row in rows)
    return Exported(tuple(files), len(rows), {"costs in dollars": costs} if costs else {})


SPROUT_EXPORTER = Exporter("sprout", "SPROUT", (), sprout_write)


def ulab_write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """One line per labelled pair; tokens, costs and times that are not known are null.

    Row `embedding_id` of `query_embeddings.pt` belongs to a query. `router.yaml` names the files by
    the absolute path of the bundle, as the peer's loader needs.
    """
    rows = rows_of(release, "ulab")
    for row in rows:
        row["question"]["choices"] = json.dumps(row["question"]["choices"], ensure_ascii=False)
    files = []
    by_split = grouped(rows, "split")
    for split in _SPLITS:
        mine = by_split.get(split, [])
        routed, asked = f"default_routing_{split}_data.jsonl", f"default_query_{split}.jsonl"
        write_jsonl(folder / routed, ({**row["question"], **row["answer"]} for row in mine))
        first = grouped(mine, "query_id").values()
        write_jsonl(folder / asked, (own[0]["question"] for own in first))
        files += [routed, asked]
    models = release.arrow("models").to_pylist()
    dropped = _dropped(release, rows, len(models))
    vectors = _vectors(release)
    if vectors is None:
        dropped["query embeddings: the release has no texts"] = release.manifest.tables[
            "queries"
        ].rows
    else:
        import torch

        torch.save(torch.from_numpy(vectors[0]), folder / "query_embeddings.pt")
        _write_json(folder / "default_llm_embeddings.json", _described(models, vectors[1]))
        files += ["query_embeddings.pt", "default_llm_embeddings.json"]
    _write_json(folder / "default_llm.json", {row["model_id"]: _model(row) for row in models})
    text = yaml.safe_dump(_configuration(Path(options[TARGET])), sort_keys=False)
    (folder / "router.yaml").write_text(text, encoding="utf-8")
    return Exported((*files, "default_llm.json", "router.yaml"), len(rows), dropped)


def _dropped(
    release: OpenRelease, rows: Sequence[Mapping[str, Any]], models: int
) -> dict[str, int]:
    """What the peer reads otherwise than it is: absent pairs, and queries of one text."""
    asked = {row["query_id"]: row["question"]["query"] for row in rows}
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
        if all(item in known for item in ids):
            return np.array([known[item] for item in ids], np.float32), encode
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
    return ", ".join(item for item in known if item)


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
