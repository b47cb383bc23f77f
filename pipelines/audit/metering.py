"""An agent's calls as the rows that the metering audit reads: what was metered are calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.collect.budget import TOKENS_PER_WORD, Price, least_tokens, words
from routeyard.pipelines.common.pool import same_model
from routeyard.pipelines.common.trajectories import cache_rule, rule_of
from routeyard.schemas import RESPONSES
from routeyard.schemas.errors import UnknownName
from routeyard.schemas.recipe import Pool, Recipe
from routeyard.schemas.recipe.collect import Metering
from routeyard.schemas.release import Waiver
from routeyard.schemas.statuses import ANSWERLESS

# Input and findings of the metering audit.

#: Gate that waives every check; `metering:<check>` waives one.
GATE = "metering"
#: Rows a finding shows; `count` says how many there are.
SHOWN = 20
#: One answer: columns of `responses`, and of a ledger where it comes from one.
Row = dict[str, Any]


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


@dataclass(frozen=True)
class MeteringInput:
    """What the checks know beside the answers.

    Attributes:
        models: model_id → row of `models`.
        prompts: query_id → prompt.
        names: model_id → name the endpoint was asked for.
    """

    models: Mapping[str, Row]
    thresholds: Metering
    prompts: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _words(self) -> tuple[pa.Array, Any]:
        counts = np.array([*map(words, self.prompts.values()), np.nan])
        return pa.array(self.prompts, pa.string()), counts

    def words_of_prompts(self, query_ids: pa.ChunkedArray) -> Any:
        """Words of the prompt of each question, as float64; NaN where it is not known."""
        ids, counts = self._words
        return counts[pc.fill_null(pc.index_in(query_ids, value_set=ids), -1).to_numpy()]


def finding(check: str, model_id: str, says: str, bad: pa.Table, of: int | None) -> MeteringFinding:
    """The finding of a check about some of a model's answers; `of` gives the share."""
    order = [("query_id", "ascending"), ("sample", "ascending")]
    first = bad.select(["query_id", "sample"]).sort_by(order).slice(0, SHOWN).to_pylist()
    rows = [(str(row["query_id"]), int(row["sample"])) for row in first]
    part = bad.num_rows / of if of else None
    return MeteringFinding(check, model_id, says, bad.num_rows, tuple(rows), part)


# Answers of one model as columns; as rows only where a check looks at one at a time.

#: Words, runs of signs and signs beyond ASCII: no fewer than `bill.words` counts.
_WORDS = r"[0-9A-Za-z_]+|[^0-9A-Za-z_\t\n\v\f\r\x1c-\x20\x80-\x{10FFFF}]+|[^\x00-\x7f]"
#: The same mask for every answer, or one of each.
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class AnswerColumns:
    """A table of answers, of which each column may be absent."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column; null where it is absent."""
        if name in self.table.column_names:
            return self.table.column(name)
        return pa.chunked_array([pa.nulls(len(self), pa.string())])

    def numbers(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """A column as float64, NaN where it is null."""
        found = self.column(name)
        if found.null_count == len(found):
            return np.full(len(found), np.nan)
        return np.asarray(found.cast(pa.float64()), dtype=np.float64)

    def null(self, name: str) -> Mask:
        """Which answers have no value in a column."""
        return np.asarray(pc.is_null(self.column(name)), dtype=bool)

    def equal(self, name: str, value: str) -> Mask:
        """Which answers have a value in a column of texts."""
        return np.asarray(pc.fill_null(pc.equal(self.column(name), value), False), dtype=bool)

    def where(self, mask: Mask) -> AnswerColumns:
        """The answers of a mask."""
        return AnswerColumns(self.table.filter(pa.array(mask)))

    @property
    def rows(self) -> list[Row]:
        return list(self.table.to_pylist())


def most_words(texts: pa.ChunkedArray) -> Any:
    """Most words that each text can have, as float64; NaN where it is null."""
    found = pc.count_substring_regex(texts.cast(pa.string()), _WORDS)
    return found.cast(pa.float64()).to_numpy(zero_copy_only=False)


# Checks of cached tokens: counts that cannot be, and reads of what nobody had written.

#: Columns of tokens of a provider's cache.
CACHED = ("cache_read_tokens", "cache_write_tokens")
#: Seconds that a cache may keep a prompt where its provider promises less, or nothing.
_LEAST_TTL_S = 3_600.0
_UNWRITTEN = """
SELECT place FROM (
    SELECT place, read, max(prompt) OVER (
        ORDER BY sent RANGE BETWEEN to_microseconds($ttl) PRECEDING
        AND INTERVAL 1 MICROSECOND PRECEDING
    ) AS longest
    FROM (SELECT *, try_cast(requested_at AS TIMESTAMPTZ) AS sent FROM answers)
    WHERE sent IS NOT NULL
) WHERE read > coalesce(longest, 0)
"""


def too_many_cached(known: MeteringInput, answers: AnswerColumns) -> Mask:
    """Whether more of a prompt was read from, and written to, the cache than it has tokens."""
    cached = sum(np.nan_to_num(answers.numbers(name)) for name in CACHED)
    return np.asarray(cached > answers.numbers("prompt_tokens"))


def unwritten(
    known: MeteringInput, model_id: str, answers: AnswerColumns
) -> Iterator[tuple[str, AnswerColumns, int | None]]:
    """Answers that read more tokens than any prompt of the model had within the time to live, and
    those that read text with which no other prompt of the model begins.

    Answers without a time, and those of several calls, are not judged. Other traffic of the same
    account may have filled the cache: a share may be so (`metering.cache_unwritten`).
    """
    import duckdb

    provider = known.models.get(model_id, {}).get("provider")
    rule = rule_of(provider, known.names.get(model_id, model_id))
    ttl = max(_LEAST_TTL_S, cache_rule(rule).ttl_s if rule else 0.0)
    single = answers.where(~(answers.numbers("calls") > 1))
    if not (single.numbers("cache_read_tokens") > 0).any():
        return
    table = pa.table(
        {
            "place": np.arange(len(single)),
            "read": single.column("cache_read_tokens"),
            "prompt": single.column("prompt_tokens"),
            "requested_at": single.column("requested_at"),
        }
    )
    with duckdb.connect() as connection:
        connection.register("answers", table)
        micros = {"ttl": int(min(ttl, 1e9) * 1e6)}
        found = connection.execute(_UNWRITTEN, micros).fetchnumpy()["place"]
    bad = np.zeros(len(single), dtype=bool)
    bad[np.asarray(found, dtype=np.int64)] = True
    timed = int((~single.null("requested_at")).sum())
    yield (
        "answers that read more from the cache than any prompt before had within its time to live",
        single.where(bad),
        timed,
    )
    bad, claimed, most = _of_no_other(known, model_id, single)
    yield (
        f"answers whose cached tokens cannot be: {claimed:,} are claimed as read from the cache, "
        f"and at most {most:,} can be: no other prompt begins with the rest of the text",
        single.where(bad),
        timed,
    )


def _of_no_other(
    known: MeteringInput, model_id: str, answers: AnswerColumns
) -> tuple[Mask, int, int]:
    """Answers that read text of no other prompt, the tokens that they read, and most they can have.

    The first answer to a question is judged. Models that ask one model of an endpoint share its
    cache, and are not.
    """
    bad = np.zeros(len(answers), dtype=bool)
    if sum(_endpoint(known, one) == _endpoint(known, model_id) for one in known.models) > 1:
        return bad, 0, 0
    names = ("query_id", "requested_at", "prompt_tokens", "cache_read_tokens")
    rows = list(zip(*(answers.column(name).to_pylist() for name in names), strict=True))
    times = Counter((query, sent) for query, sent, *_ in rows)
    first = dict(sorted(times, key=lambda one: str(one[1] or ""), reverse=True))
    shared = _shared_beginnings({known.prompts[query] for query in first if query in known.prompts})
    claimed = most = 0
    for at, (query, sent, prompt, read) in enumerate(rows):
        text = known.prompts.get(query)
        alone = sent is not None and sent == first[query] and times[query, sent] == 1
        if not read or prompt is None or text is None or not alone:
            continue
        can = prompt - least_tokens(text[shared[text] :])
        if read > can:
            bad[at] = True
            claimed, most = claimed + read, most + max(can, 0)
    return bad, claimed, most


def _endpoint(known: MeteringInput, model_id: str) -> tuple[Any, Any]:
    row = known.models.get(model_id, {})
    name = known.names.get(model_id) or row.get("base_model") or model_id
    return row.get("provider"), name


def _shared_beginnings(texts: set[str]) -> dict[str, int]:
    """Characters with which each text and another one begin: of all, a neighbour shares most."""
    ordered = sorted(texts)
    found = dict.fromkeys(ordered, 0)
    for one, other in pairwise(ordered):
        low, high = 0, min(len(one), len(other))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
        found[one], found[other] = max(found[one], low), max(found[other], low)
    return found


# The checks of the metering audit, as one table; each judges one model's answers.
#
# A check whose column is missing (a release has no `total_tokens`) finds nothing.

#: (what is wrong, answers it is about, how many were judged; null where a share says nothing)
Problem = tuple[str, AnswerColumns, int | None]


@dataclass(frozen=True)
class MeteringCheck:
    """How one check finds problems.

    Attributes:
        find: (what is known, model_id, that model's answers) → problems.
        limit: The threshold that the share of bad answers must exceed; null: any is too many.
        needs: Columns without any value in which there is nothing to find; none: it always looks.
    """

    find: Callable[[MeteringInput, str, AnswerColumns], Iterator[Problem]]
    limit: str | None = None
    needs: tuple[str, ...] = ()


def run_check(
    name: str, known: MeteringInput, model_id: str, answers: AnswerColumns
) -> Iterator[MeteringFinding]:
    """Findings of the check of that name."""
    check = CHECKS[name]
    for says, bad, judged in check.find(known, model_id, answers):
        if not len(bad):
            continue
        if check.limit is not None and judged is not None:
            limit = float(getattr(known.thresholds, check.limit))
            # With few answers a share says nothing, unless none may be bad.
            enough = limit == 0 or judged >= known.thresholds.min_answers
            if not enough or len(bad) <= limit * judged:
                continue
            says = f"{says} (limit {limit:.0%})"
        yield finding(name, model_id, says, bad.table, judged)


def _each(
    says: str,
    are_bad: Callable[[MeteringInput, AnswerColumns], Mask],
    limit: str | None = None,
    needs: tuple[str, ...] = (),
) -> MeteringCheck:
    """A check that looks at one answer at a time."""

    def find(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
        yield says, answers.where(are_bad(known, answers)), len(answers) if limit else None

    return MeteringCheck(find, limit, needs)


def _only(answers: AnswerColumns, among: Mask, is_bad: Callable[[Row], bool]) -> Mask:
    """Those among some answers that are bad, looked at one by one."""
    found = np.zeros(len(answers), dtype=bool)
    found[np.flatnonzero(among)] = [is_bad(row) for row in answers.where(among).rows]
    return found


def _lacks_usage(known: MeteringInput, answers: AnswerColumns) -> Mask:
    # With `n` answers in one call only their sum is metered: their cost is known.
    prompt, completion, cost = map(answers.null, ("prompt_tokens", "completion_tokens", "cost_usd"))
    return (prompt | (completion & cost)) & ~_declined(answers)


def _declined(answers: AnswerColumns) -> Mask:
    """Refused before a model was asked, as moderation does: there is nothing to meter."""
    nothing = [answers.null(name) for name in ("text", "served_model", "prompt_tokens", "cost_usd")]
    return np.asarray(np.logical_and.reduce([answers.equal("status", "refused"), *nothing]))


def _adds_up_wrong(known: MeteringInput, answers: AnswerColumns) -> Mask:
    prompt, completion, total, reasoning = map(answers.numbers, _COUNTS)
    apart = prompt + completion - total
    return np.asarray((np.isfinite(apart) & (apart != 0)) | (reasoning > completion))


def _several_calls(answers: AnswerColumns) -> Mask:
    """Whose tokens are those of several calls, of which the text is the last one alone."""
    return answers.numbers("calls") > 1


def _constant(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
    for name in ("completion_tokens", "prompt_tokens"):
        counted = ~answers.null(name) & ~_several_calls(answers)
        if name == "completion_tokens":  # what is cut has as many as the limit allows
            counted &= ~answers.equal("status", "truncated")
        if counted.sum() < known.thresholds.min_answers:
            continue
        counts, times = np.unique(answers.numbers(name)[counted], return_counts=True)
        count = int(counts[times.argmax()])
        if times.max() <= known.thresholds.constant_count * counted.sum():
            continue
        same = answers.where(counted & (answers.numbers(name) == count))
        texts = (
            row["text"] if name == "completion_tokens" else known.prompts.get(row["query_id"])
            for row in same.rows
        )
        lengths = sorted(len(text or "") for text in texts)
        low, high = lengths[len(lengths) // 10], lengths[(len(lengths) * 9) // 10]
        # Single letters all take one token; texts of different lengths do not.
        if high > 1.5 * low + 20:
            says = f"answers with {count} {name.replace('_', ' ')} each, whatever their length"
            yield says, same, len(answers)


def _implausible(known: MeteringInput, answers: AnswerColumns) -> Mask:
    """No byte-level tokenizer makes more tokens than bytes; words bound them from below."""
    slack, least = known.thresholds.token_slack, TOKENS_PER_WORD
    text, tokens = answers.column("text"), answers.numbers("completion_tokens")
    hidden = np.nan_to_num(answers.numbers("reasoning_tokens"))
    size = pc.binary_length(text.cast(pa.string())).cast(pa.float64())
    many = tokens - hidden > size.to_numpy(zero_copy_only=False) + slack
    few = tokens + slack < least * most_words(text)
    few = _only(
        answers, few, lambda row: row["completion_tokens"] + slack < least * words(row["text"])
    )
    asked = answers.numbers("prompt_tokens") + slack
    # A system prompt or template may add to it, nothing may take away.
    fewer = asked < least * known.words_of_prompts(answers.column("query_id"))
    return np.asarray((many | few | fewer) & ~_several_calls(answers))


def _other_logprob_count(known: MeteringInput, answers: AnswerColumns) -> Mask:
    def differ(row: Row) -> bool:
        if not row["logprobs"]:
            return False
        visible = row["completion_tokens"] - (row.get("reasoning_tokens") or 0)
        count = len(json.loads(row["logprobs"]))
        return bool(abs(count - visible) > known.thresholds.token_slack)

    among = ~answers.null("logprobs") & ~answers.null("completion_tokens")
    return _only(answers, among & ~_several_calls(answers), differ)


def _served(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
    wanted = {model_id, known.names.get(model_id, model_id)}
    wanted |= set(known.thresholds.served_as.get(model_id, []))
    for served in sorted(answers.column("served_model").unique().drop_null().to_pylist()):
        if not any(same_model(name, served) for name in wanted):
            bad = answers.where(answers.equal("served_model", served))
            yield f"answers served by {served!r}", bad, len(answers)


def _slow(known: MeteringInput, model_id: str, answers: AnswerColumns) -> Iterator[Problem]:
    """Modified z-score (Iglewicz and Hoaglin 1993) of log latency: 0.6745 (x − median) / MAD.

    The spread of a fast server is milliseconds, so that any hiccup of the machine is far
    outside it: a slow call is also `latency_floor_s` above the median, and there are at
    least `latency_min_outliers` of them.
    """
    if known.models.get(model_id, {}).get("simulated"):
        return  # its seconds are those of this machine
    limits = known.thresholds
    latency = answers.numbers("latency_s")
    timed = latency > 0
    if timed.sum() < limits.min_answers:
        return
    logs = np.log(latency[timed])
    median = np.median(logs)
    # A server with constant latency has no spread to judge by.
    mad = max(float(np.median(np.abs(logs - median))), 0.05)
    slow = 0.6745 * (logs - median) / mad > limits.latency_z
    slow &= np.exp(logs) > np.exp(median) + limits.latency_floor_s
    if slow.sum() >= limits.latency_min_outliers:
        bad = answers.where(timed).where(slow)
        yield "answers far slower than the rest", bad, int(timed.sum())


def _price(known: MeteringInput, model_id: str) -> Price:
    model = known.models.get(model_id, {})
    return Price.of_row(model)


def _price_unknown(
    known: MeteringInput, model_id: str, answers: AnswerColumns
) -> Iterator[Problem]:
    price = _price(known, model_id)
    bad = answers.where(answers.null("cost_usd") & ~_declined(answers))
    why = "their tokens are not known" if price.known else "the model has no price"
    unpriced = [name.removesuffix("_tokens") for name in CACHED if (bad.numbers(name) > 0).any()]
    unpriced = [f"price_{name}" for name in unpriced if getattr(price, name) is None]
    if price.known and unpriced:
        why = f"the model has no {' and no '.join(unpriced)}"
    yield f"answers of unknown cost, as {why}", bad, len(answers)


def _price_mismatch(
    known: MeteringInput, model_id: str, answers: AnswerColumns
) -> Iterator[Problem]:
    """Tables that are off by ten have been published: the provider's figure shows it."""
    price = _price(known, model_id)

    def differ(row: Row) -> bool:
        table = price.of(*(row.get(name) for name in _PRICED))
        if table is None:
            return False
        return bool(row["cost_usd"] > 3 * table + 1e-9 or row["cost_usd"] * 3 + 1e-9 < table)

    billed = answers.equal("cost_source", "provider")
    if 2 * billed.sum() > len(answers):
        bad = answers.where(_only(answers, billed, differ))
        if len(bad) > len(answers) / 2:
            says = "answers billed at more than three times, or less than a third of, the price "
            yield f"{says}table", bad, len(answers)


_PRICED = ("prompt_tokens", "completion_tokens", *CACHED)
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")
#: Name → check, in the order in which findings are listed.
CHECKS = {
    "usage_missing": _each("answers without usage", _lacks_usage, "usage_missing"),
    "totals": _each("answers whose counts do not add up", _adds_up_wrong, needs=_COUNTS),
    "constant_count": MeteringCheck(_constant, needs=_COUNTS),
    "implausible_count": _each(
        "answers whose text cannot have that many tokens", _implausible, needs=_COUNTS
    ),
    "cached_tokens": _each(
        "answers with more cached tokens than prompt tokens", too_many_cached, needs=CACHED
    ),
    "cache_unwritten": MeteringCheck(unwritten, "cache_unwritten", needs=CACHED),
    "logprob_count": _each(
        "answers with fewer or more log-probabilities than tokens",
        _other_logprob_count,
        needs=("logprobs",),
    ),
    "served_model": MeteringCheck(_served, needs=("served_model",)),
    "truncated": _each(
        "truncated answers", lambda known, those: those.equal("status", "truncated"), "truncated"
    ),
    "refused": _each("refusals", lambda known, those: those.equal("status", "refused"), "refused"),
    "latency": MeteringCheck(_slow, "latency_outliers", needs=("latency_s",)),
    "price_unknown": MeteringCheck(_price_unknown, "price_unknown"),
    "price_mismatch": MeteringCheck(_price_mismatch, needs=("cost_usd",)),
}


# The metering audit: are usage, prices and served models what they claim to be?
#
#     found = audit(responses, models, thresholds)
#     unresolved, waived = apply_waivers(found, recipe.release.waivers)
#
# A finding names its check, its model and its rows. An unresolved finding stops a release.

#: Columns of an answer that the checks read.
NEEDED = (
    "query_id", "model_id", "sample", "status", "text", "served_model", "prompt_tokens",
    "completion_tokens", "reasoning_tokens", "cost_usd", "cost_source", "latency_s", "logprobs",
    "calls", "cache_read_tokens", "cache_write_tokens", "requested_at",
)  # fmt: skip
#: What a ledger knows and a release does not.
_EXTRA = ("total_tokens",)


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
    thresholds = thresholds or Metering()
    prompts: dict[str, str] = {}
    if queries is not None:
        ids, texts = (queries.column(n).to_pylist() for n in ("query_id", "prompt"))
        prompts = dict(zip(ids, texts, strict=True))
    known = MeteringInput(
        models={row["model_id"]: row for row in models.to_pylist()},
        thresholds=thresholds,
        prompts=prompts,
        names=names or {},
    )
    found = [
        finding
        for model_id, answers, there in _by_model(responses)
        for name, check in CHECKS.items()
        if not check.needs or there.intersection(check.needs)
        for finding in run_check(name, known, model_id, answers)
    ]
    if canaries is not None:
        found += _canary_drift(thresholds, canaries)
    order = [*CHECKS, "canary_drift"]
    return tuple(sorted(found, key=lambda f: (order.index(f.check), f.model_id)))


def audited(
    recipe: Recipe, responses: pa.Table, queries: pa.Table, models: pa.Table
) -> tuple[tuple[MeteringFinding, ...], tuple[tuple[MeteringFinding, Waiver], ...]]:
    """(unresolved findings, findings that the recipe waives) over answers to its questions."""
    thresholds, names = recipe.collect.metering, names_of(recipe.pool)
    found = audit(responses, models, thresholds, queries=queries, names=names)
    return apply_waivers(found, recipe.release.waivers)


def names_of(pool: Pool) -> dict[str, str]:
    """`names` for `audit`: model_id → its name at the endpoint, where that differs."""
    return {m.model_id: m.endpoint_model for m in pool.models if m.endpoint_model}


def check_gate(gate: str, *, where: str | None = None) -> None:
    """Raises UnknownName: there is no such gate, so that waiving it would waive nothing."""
    from routeyard.pipelines.audit.checks import CHECKS as DEFECTS

    kinds = {GATE: (*CHECKS, "canary_drift"), "audit": tuple(one.kind for one in DEFECTS)}
    known = [name for word in kinds for name in (word, *(f"{word}:{k}" for k in kinds[word]))]
    if gate not in known:
        raise UnknownName(
            f"there is no gate {gate!r} to waive",
            where=where,
            next_step=f"known: {', '.join(known)}; `{GATE}` or `audit` alone waives all of its "
            "checks",
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


def _by_model(responses: pa.Table) -> Iterator[tuple[str, AnswerColumns, set[str]]]:
    """Answers of one model at a time, and the columns in which any of them has a value."""
    names = [n for n in (*NEEDED, *_EXTRA) if n in responses.column_names]
    answers = responses.select(names)
    named = answers.column("model_id")
    answered = pc.invert(pc.is_in(answers.column("status"), value_set=pa.array(ANSWERLESS)))
    for model_id in sorted(pc.unique(named.filter(answered)).to_pylist()):
        mine = answers.filter(pc.and_(answered, pc.equal(named, model_id)))
        there = {n for n in names if mine.column(n).null_count < mine.num_rows}
        yield model_id, AnswerColumns(mine), there


def _canary_drift(thresholds: Metering, canaries: pa.Table) -> list[MeteringFinding]:
    """Fixed prompts at temperature 0, asked at the start and again at the end."""
    answers: dict[tuple[str, str], dict[str, tuple[str | None, str | None]]] = {}
    for row in canaries.to_pylist():
        pair = answers.setdefault((row["model_id"], row["prompt"]), {})
        pair[row["phase"]] = (row["text"], row["served_model"])
    by_model: dict[str, list[tuple[str, bool]]] = {}
    for (model_id, prompt), phases in sorted(answers.items()):
        if {"start", "end"} <= set(phases):
            differs = phases["start"] != phases["end"]
            by_model.setdefault(model_id, []).append((prompt, differs))
    found = []
    for model_id, pairs in by_model.items():
        drifted = [prompt for prompt, differs in pairs if differs]
        if len(drifted) > thresholds.canary_drift * len(pairs):
            found.append(
                MeteringFinding(
                    "canary_drift",
                    model_id,
                    "canary prompts answered differently at the end",
                    len(drifted),
                    tuple((prompt[:80], 0) for prompt in drifted[:SHOWN]),
                    len(drifted) / len(pairs),
                )
            )
    return found


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


#: What the audit reads of an answer, as the contract of `responses` has it.
_SCHEMA = pa.schema([RESPONSES.schema.field(name) for name in NEEDED])
