"""Usage, prices and served models of collected answers: are they what they claim to be?

    found = audit(responses, models, thresholds)
    unresolved, waived = apply_waivers(found, recipe.release.waivers)

The checks are `metering.sql`. A finding names its check, its model and its rows; an unresolved one
stops a release.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.collect.budget import TOKENS_PER_WORD, Price, least_tokens, words
from routeyard.pipelines.common.pool import same_model
from routeyard.pipelines.common.trajectories import cache_rule, rule_of
from routeyard.schemas import RESPONSES
from routeyard.schemas.contracts import RESULTS, statements
from routeyard.schemas.errors import UnknownName, did_you_mean
from routeyard.schemas.recipe import Pool, Recipe
from routeyard.schemas.recipe.collect import Metering
from routeyard.schemas.release import Waiver
from routeyard.schemas.statuses import ANSWERLESS

#: Gate that waives every check; `metering:<check>` waives one.
GATE = "metering"
#: Rows a finding shows; `count` says how many there are.
SHOWN = 20
_SQL = statements(Path(__file__).with_name("metering.sql"))
#: Names of the checks, in the order in which findings are listed.
CHECKS = tuple(name for name in _SQL if name not in ("answers", "found"))
#: Checks with a share in the recipe, and check → share of bad answers that is allowed; elsewhere
#: any bad answer is too many.
_SHARES = ("cache_unwritten", "truncated", "refused")
_LIMITS = {"usage_missing": 0.0, "price_unknown": 0.0, "latency": 0.02}
#: Values in the statements: rows that are shown, answers of a model before shares and rates are
#: judged, tokens of slack around each bound (stop and template tokens), least tokens of a word.
_VALUES = {
    "shown": SHOWN, "min_answers": 20, "token_slack": 16, "tokens_per_word": TOKENS_PER_WORD,
}  # fmt: skip
#: Columns of an answer that the checks read; a release has no `total_tokens`, which a ledger knows.
NEEDED = (
    "query_id", "model_id", "sample", "status", "text", "served_model", "prompt_tokens",
    "completion_tokens", "reasoning_tokens", "cost_usd", "cost_source", "latency_s", "logprobs",
    "calls", "cache_read_tokens", "cache_write_tokens", "requested_at",
)  # fmt: skip
#: What the audit reads of an answer, as the contract of `responses` has it.
_SCHEMA = pa.schema([RESPONSES.schema.field(name) for name in NEEDED])
_ANSWERS = _SCHEMA.append(pa.field("total_tokens", pa.int64()))
#: Words, runs of signs and signs beyond ASCII: no fewer than `budget.words` counts.
_WORDS = r"[0-9A-Za-z_]+|[^0-9A-Za-z_\t\n\v\f\r\x1c-\x20\x80-\x{10FFFF}]+|[^\x00-\x7f]"
#: Seconds that a cache may keep a prompt where its provider promises less, or nothing.
_LEAST_TTL_S = 3_600.0


@dataclass(frozen=True, slots=True)
class MeteringFinding:
    """What one check found for one model.

    Attributes:
        rows: Up to 20 of the (query_id, sample) it is about; `count` has all.
        share: `count` over the model's answers, where the check judges a share.
    """

    check: str
    model_id: str
    says: str
    count: int
    rows: tuple[tuple[str, int], ...]
    share: float | None = None

    @property
    def gate(self) -> str:
        return f"{GATE}:{self.check}"


def audit(
    responses: pa.Table,
    models: pa.Table,
    thresholds: Metering | None = None,
    *,
    queries: pa.Table | None = None,
    names: Mapping[str, str] | None = None,
    canaries: pa.Table | None = None,
) -> tuple[MeteringFinding, ...]:
    """Run every check; findings in order of check, then model.

    Args:
        responses: `responses` table, or a ledger's answers with further columns.
        models: `models` table (prices and their dates).
        queries: For the plausibility of prompt counts (`query_id`, `prompt`).
        names: model_id → name the endpoint was asked for, where it differs.
        canaries: Answers to canary prompts: `model_id`, `prompt`, `phase`
            (`start` or `end`), `text`, `served_model`.
    """
    import duckdb

    limits, names = thresholds or Metering(), names or {}
    stated = {row["model_id"]: row for row in models.to_pylist()}
    answers = _answers(responses)
    asked = sorted(pc.unique(answers.column("model_id")).to_pylist())
    prices = {model_id: Price.of_row(stated.get(model_id, {})) for model_id in asked}
    none = pa.schema([("query_id", pa.string()), ("prompt", pa.string())]).empty_table()
    prompts = none if queries is None else queries.select(none.column_names)

    def is_served_as(model_id: str, served: str) -> bool:
        wanted = {model_id, names.get(model_id, model_id), *limits.served_as.get(model_id, [])}
        return any(same_model(name, served) for name in wanted)

    def listed_usd(
        model_id: str, prompt: int, completion: int, read: int, write: int
    ) -> float | None:
        return prices[model_id].of(prompt, completion, read, write)

    with duckdb.connect() as connection:
        for name, function, kinds, kind in (
            ("words", words, ["VARCHAR"], "BIGINT"),
            ("entries", lambda text: len(json.loads(text)), ["VARCHAR"], "BIGINT"),
            ("is_served_as", is_served_as, ["VARCHAR"] * 2, "BOOLEAN"),
            ("listed_usd", listed_usd, ["VARCHAR", *["BIGINT"] * 4], "DOUBLE"),
        ):
            nulls: Any = "special" if name == "listed_usd" else "default"
            connection.create_function(name, function, kinds, kind, null_handling=nulls)  # type: ignore[arg-type]
        connection.register("responses", answers)
        connection.register("prompts", prompts)
        known = [_known(entry, stated.get(entry, {}), prices[entry], names) for entry in asked]
        connection.register("models", pa.Table.from_pylist(known, schema=_MODELS))
        nothing = RESULTS["canary_answers"].empty_table()
        connection.register("canaries", nothing if canaries is None else canaries)
        connection.execute(_SQL["answers"])
        results = []
        for check in CHECKS:
            rows = _rows(connection, check)
            if check == "cache_unwritten":
                rows = sorted([*rows, *_unshared(connection, stated, names)], key=_model)
            results += [item for row in rows if (item := _finding(check, limits, *row))]
    return tuple(results)


_MODELS = pa.schema(
    [
        ("model_id", pa.string()),
        ("simulated", pa.bool_()),
        ("priced", pa.bool_()),
        ("price_cache_read", pa.float64()),
        ("price_cache_write", pa.float64()),
        ("ttl", pa.int64()),
    ]
)


def _known(
    model_id: str,
    row: Mapping[str, Any],
    price: Price,
    names: Mapping[str, str],
) -> dict[str, Any]:
    """What the checks know of a model; `ttl` is how long its cache may keep a prompt, in µs."""
    rule = rule_of(row.get("provider"), names.get(model_id, model_id))
    ttl_s = max(_LEAST_TTL_S, cache_rule(rule).ttl_s if rule else 0.0)
    return price.columns | {
        "model_id": model_id,
        "simulated": bool(row.get("simulated")),
        "priced": price.known,
        "ttl": int(min(ttl_s, 1e9) * 1e6),
    }


def _answers(responses: pa.Table) -> pa.Table:
    """The responses that are answers, with every column that the checks read."""
    answered = pc.invert(pc.is_in(responses.column("status"), value_set=pa.array(ANSWERLESS)))
    rows = responses.select([name for name in _ANSWERS.names if name in responses.column_names])
    rows = rows.filter(answered)
    made = [
        rows.column(field.name)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in _ANSWERS
    ]
    table = pa.table(made, names=_ANSWERS.names)
    counted = table.column("completion_tokens").null_count < len(table)
    most = pa.nulls(len(table), pa.int32())
    if counted:
        most = pc.count_substring_regex(table.column("text").cast(pa.string()), _WORDS)
    return table.append_column("most_words", most)


#: Model, what is wrong, what fills its braces, answers judged, bad ones, the first of their keys.
_Row = tuple[str, str, Any, int | None, int, Sequence[tuple[str, int]]]


def _model(row: _Row) -> str:
    return row[0]


def _rows(connection: Any, check: str) -> list[_Row]:
    sql = _SQL["found"].replace("{check}", _SQL[check])
    values = {name: value for name, value in _VALUES.items() if f"${name}" in sql}
    return list(connection.execute(sql, values).fetchall())


def _finding(
    check: str,
    limits: Metering,
    model_id: str,
    says: str,
    value: Any,
    judged: int | None,
    count: int,
    rows: Sequence[tuple[str, int]],
) -> MeteringFinding | None:
    """The finding of a check, unless the share of bad answers is within its limit."""
    says = says if value is None else says.format(value)
    limit = getattr(limits, check) if check in _SHARES else _LIMITS.get(check)
    if limit is not None and judged is not None:
        # With few answers a share says nothing, unless none may be bad.
        enough = limit == 0 or judged >= _VALUES["min_answers"]
        if not enough or count <= limit * judged:
            return None
        says = f"{says} (limit {limit:.0%})"
    share = count / judged if judged else None
    return MeteringFinding(check, model_id, says, count, tuple(map(tuple, rows)), share)  # type: ignore[arg-type]


def _unshared(
    connection: Any,
    stated: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str],
) -> Iterator[_Row]:
    """Answers that read from the cache text with which no other prompt of the model begins.

    The first answer to a question is judged. Models that ask one model of an endpoint share its
    cache, and are not.
    """
    rows = connection.execute(
        "SELECT model_id, list((query_id, sample, requested_at, prompt_tokens, cache_read_tokens)),"
        " count(requested_at) FROM a WHERE NOT several AND model_id IN (SELECT model_id FROM a "
        "WHERE NOT several AND cache_read_tokens > 0) GROUP BY model_id ORDER BY model_id"
    ).fetchall()
    prompts = dict(connection.execute("SELECT query_id, prompt FROM prompts").fetchall())
    endpoints = Counter(_endpoint(item, row, names) for item, row in stated.items())
    for model_id, answers, timed in rows:
        if endpoints[_endpoint(model_id, stated.get(model_id, {}), names)] > 1:
            continue
        times = Counter((query, sent) for query, _, sent, *_ in answers)
        first = dict(sorted(times, key=lambda item: str(item[1] or ""), reverse=True))
        shared = _shared_beginnings({prompts[query] for query in first if query in prompts})
        bad, claimed, most = [], 0, 0
        for query, sample, sent, prompt, read in answers:
            text = prompts.get(query)
            alone = sent is not None and sent == first[query] and times[query, sent] == 1
            if not read or prompt is None or text is None or not alone:
                continue
            can = prompt - least_tokens(text[shared[text] :])
            if read > can:
                bad.append((query, sample))
                claimed, most = claimed + read, most + max(can, 0)
        if bad:
            says = (
                f"answers whose cached tokens cannot be: {claimed:,} are claimed as read from the "
                f"cache, and at most {most:,} can be: no other prompt begins with the rest of the "
                "text"
            )
            yield model_id, says, None, timed, len(bad), sorted(bad)[:SHOWN]


def _endpoint(model_id: str, row: Mapping[str, Any], names: Mapping[str, str]) -> tuple[Any, Any]:
    return row.get("provider"), names.get(model_id) or row.get("base_model") or model_id


def _shared_beginnings(texts: set[str]) -> dict[str, int]:
    """Characters with which each text and another one begin: of all, a neighbour shares most."""
    ordered = sorted(texts)
    result = dict.fromkeys(ordered, 0)
    for item, other in pairwise(ordered):
        low, high = 0, min(len(item), len(other))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if item[:middle] == other[:middle] else (low, middle - 1)
        result[item], result[other] = max(result[item], low), max(result[other], low)
    return result


def audited(
    recipe: Recipe, responses: pa.Table, queries: pa.Table, models: pa.Table
) -> tuple[tuple[MeteringFinding, ...], tuple[tuple[MeteringFinding, Waiver], ...]]:
    """(unresolved findings, findings that the recipe waives) over answers to its questions."""
    thresholds, names = recipe.collect.metering, names_of(recipe.pool)
    result = audit(responses, models, thresholds, queries=queries, names=names)
    return apply_waivers(result, recipe.release.waivers)


def names_of(pool: Pool) -> dict[str, str]:
    """`names` for `audit`: model_id → its name at the endpoint, where that differs."""
    return {m.model_id: m.endpoint_model for m in pool.models if m.endpoint_model}


def check_gate(gate: str, *, where: str | None = None) -> None:
    """Raises UnknownName: there is no such gate, so that waiving it would waive nothing."""
    from routeyard.pipelines.audit.checks import CHECKS as DEFECTS

    kinds = {GATE: CHECKS, "audit": tuple(item.kind for item in DEFECTS)}
    known = [name for word in kinds for name in (word, *(f"{word}:{k}" for k in kinds[word]))]
    if gate not in known:
        raise UnknownName(
            f"there is no gate {gate!r} to waive",
            where=where,
            next_step=f"{did_you_mean(gate, known)}; `routeyard audit --list` lists all, and "
            f"`{GATE}` or `audit` alone waives all of its own",
        )


class Gated(Protocol):
    """A finding that can be waived by name: `metering:latency`, `audit:leak`."""

    @property
    def gate(self) -> str: ...


OneFinding = TypeVar("OneFinding", bound=Gated)


def apply_waivers(
    findings: Iterable[OneFinding], waivers: Sequence[Waiver]
) -> tuple[tuple[OneFinding, ...], tuple[tuple[OneFinding, Waiver], ...]]:
    """(unresolved findings, findings a waiver covers with that waiver).

    A waiver names a gate whole (`metering`) or one check of it (`metering:latency`).
    """
    by_gate = {waiver.gate: waiver for waiver in waivers}
    unresolved: list[OneFinding] = []
    waived: list[tuple[OneFinding, Waiver]] = []
    for finding in findings:
        waiver = by_gate.get(finding.gate) or by_gate.get(finding.gate.partition(":")[0])
        if waiver:
            waived.append((finding, waiver))
        else:
            unresolved.append(finding)
    return tuple(unresolved), tuple(waived)


def as_answers(steps: pa.Table) -> pa.Table:
    """One row for each call of `steps`, under the model that was asked.

    A call that several trajectories share was metered once and is listed once. The text of a search
    is what it said and the arguments of its calls, which is what its tokens are made of.
    """
    seen: set[tuple[str, int]] = set()
    rows = []
    for step in steps.to_pylist():
        key = (step["request_hash"], step["sample"])
        if key in seen:
            continue
        seen.add(key)
        called = [json.dumps({"query": query}, ensure_ascii=False) for query in step["queries"]]
        said = [] if step["said"] is None else [step["said"]]
        row = {name: step.get(name) for name in NEEDED}
        rows.append(
            row | {"model_id": step["acted_by"], "text": "\n".join([*said, *called]) or None}
        )
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
