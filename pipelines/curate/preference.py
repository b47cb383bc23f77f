"""Preference pairs from semantic entropy or scores."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import format_of, rows
from routeyard.pipelines.common.sql import runner
from routeyard.pipelines.common.staging import replacing
from routeyard.pipelines.common.usage import Token, sequence_logprob, tokens
from routeyard.pipelines.curate.entailment import Entailment, Pair
from routeyard.pipelines.curate.rule import Curated, Rule, removals
from routeyard.schemas import ENTROPIES, PREFERENCES, SIGNALS, VERDICTS
from routeyard.schemas.errors import BadInput, RecipeError, did_you_mean
from routeyard.schemas.text import guarded, unguarded

# Scores that decide a pair without entropy: correctness labels and a judge's verdicts.

#: (query, model) → score; None where it is undecided.
Scores = Mapping[tuple[str, str], float | None]
_SQL = Path(__file__).with_name("preference.sql")


def by_correctness(labels: pa.Table | None, models: Sequence[str]) -> Scores:
    """1 for right and 0 for wrong; undecided labels stay None."""
    columns = ("query_id", "model_id", "correct")
    rows = [] if labels is None else zip(*(labels[c].to_pylist() for c in columns), strict=True)
    return {(query, model): right for query, model, right in rows if model in models}


def by_judge(verdicts: pa.Table, models: Sequence[str], scorer: str) -> Scores:
    """A judge's mean score over samples.

    Abstentions and outages are no scores; of several versions of the judge the
    newest counts.
    """
    with runner(_SQL, {"verdicts": verdicts}) as run:
        rows = run.table("judged", scorer=scorer, models=list(models)).to_pylist()
    return {
        (row["query_id"], row["model_id"]): sum(row["scores"]) / len(row["scores"]) for row in rows
    }


def judge_scorer(verdicts: pa.Table, judge: str | None) -> str:
    """`judge:<name>` as the verdicts spell it; the only judge there is when none is named."""
    names = verdicts.column("scorer").unique().to_pylist()
    judges = sorted(name for name in names if name.startswith("judge:"))
    wanted = None if judge is None else judge if judge.startswith("judge:") else f"judge:{judge}"
    if wanted in judges:
        return str(wanted)
    if wanted is None and len(judges) == 1:
        return str(judges[0])
    raise RecipeError(
        f"no verdicts of {wanted}"
        if wanted
        else f"{len(judges)} judges recorded verdicts; expected one",
        where="rule 'preference', basis 'judge'",
        next_step=did_you_mean(wanted or "judge:", judges),
    )


# Meaning clusters: greedy clustering of sampled answers by bidirectional entailment.
#
# Each new answer is compared with the representative (first member) of each
# cluster, in the order in which the clusters were formed, and joins the first
# that it entails and that entails it (Kuhn et al. 2023, "Semantic Uncertainty",
# its clustering algorithm).


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """The answers of one model to one query, in sample order.

    Attributes:
        answers: What the backend compares; None where nothing could be
            extracted: such an answer equals none but its own repetition.
        keys: Answers with equal keys are settled without asking (`answer_key`).
    """

    question: str
    answers: tuple[str | None, ...]
    keys: tuple[Hashable, ...]
    scorer: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clustering:
    """Result of `cluster`.

    Attributes:
        assignments: Per group, the cluster number of each answer, int32 of shape
            (n answers,), numbered in order of formation; None where the backend
            could not decide a pair that the clustering needed.
        calls: Entailment questions put to the backend.
        calls_naive: Questions the plain loop asks: no cheap equality, no cache. A
            lower bound where canonical forms told answers apart.
        rounds: Batches put to the backend.
    """

    assignments: list[npt.NDArray[np.int32] | None]
    calls: int
    calls_naive: int
    rounds: int


def plain(text: str) -> str:
    """Text without differences that never carry meaning: whitespace, Unicode form, a full stop.

    Case, operators and superscripts stay: `x²` is not `x2`, `Mb` is not `MB`.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split()).removesuffix(".")


def answer_key(text: str, extracted: str | None) -> tuple[str, str]:
    """Cheap equality: equal extracted answers, or equal text where none was extracted."""
    return ("text", plain(text)) if extracted is None else ("answer", plain(extracted))


def cluster(
    groups: Sequence[AnswerGroup], entailment: Entailment | None, *, batch: int = 4096
) -> Clustering:
    """Cluster every group; equal to the plain loop, with fewer questions.

    The groups advance together: in each round every unfinished group puts its
    next undecided pair, so that the backend sees batches of up to `batch`
    pairs from many queries. A pair is asked once, whichever group needs it.

    Args:
        entailment: None clusters by cheap equality alone.
    """
    known: dict[Hashable, bool | None] = {}
    results: list[_Greedy | None] = [None] * len(groups)
    waiting: list[tuple[int, _Steps, Pair, Hashable]] = []
    calls = rounds = 0

    def advance(index: int, steps: _Steps, answer: bool | None, first: bool) -> None:
        # Runs the plain loop until it needs an answer nobody has given yet.
        try:
            pair = next(steps) if first else steps.send(answer)
            assert entailment is not None
            key = entailment.key(pair)
            while key in known:
                pair = steps.send(known[key])
                key = entailment.key(pair)
            waiting.append((index, steps, pair, key))
        except StopIteration as stop:
            results[index] = stop.value

    for index, group in enumerate(groups):
        advance(index, _greedy(group, entailment), None, True)
    while waiting:
        asked = waiting[:]
        waiting.clear()
        unknown: dict[Hashable, Pair] = {}
        for _, _, pair, key in asked:
            unknown.setdefault(key, pair)
        pairs = list(unknown.values())
        for start in range(0, len(pairs), batch):
            assert entailment is not None
            decided = entailment.entails(pairs[start : start + batch])
            known.update(zip(list(unknown)[start : start + batch], decided, strict=True))
            rounds += 1
        calls += len(unknown)
        for index, steps, _, key in asked:
            advance(index, steps, known[key], False)
    done = [result for result in results if result is not None]
    return Clustering(
        [result.assignment for result in done], calls, sum(result.naive for result in done), rounds
    )


@dataclass(frozen=True, slots=True)
class _Greedy:
    assignment: npt.NDArray[np.int32] | None
    naive: int


_Steps = Generator[Pair, "bool | None", _Greedy]


def _greedy(group: AnswerGroup, entailment: Entailment | None) -> _Steps:
    """The plain loop over distinct answers; yields each question, is sent its answer."""
    repeats = Counter(group.keys)
    both_ways = 1 if entailment is not None and entailment.symmetric else 2
    if len(repeats) == 1 and entailment is not None:
        # All agree, as most do: the plain loop would have asked for each repetition.
        asked = 0 if group.answers[0] is None else both_ways
        return _Greedy(np.zeros(len(group.keys), dtype=np.int32), (len(group.keys) - 1) * asked)

    answer_of: dict[Hashable, str | None] = {}
    for key, answer in zip(group.keys, group.answers, strict=True):
        answer_of.setdefault(key, answer)
    representatives: list[_Form] = []
    cluster_of: dict[Hashable, int] = {}
    naive = 0
    for key, answer in answer_of.items():
        form: Hashable | None = None
        compared = False
        if entailment is not None and answer is not None:
            form, compared = entailment.canonical(group.scorer, answer), True
        questions = 0
        for number, other in enumerate(representatives):
            if not compared or other.answer is None:
                continue
            same, asked = yield from _same(group, entailment, other, _Form(answer, form))
            questions += asked
            if same is None:
                return _Greedy(None, naive + questions)
            if same:
                cluster_of[key] = number
                break
        naive += questions * repeats[key]
        if key not in cluster_of:
            cluster_of[key] = len(representatives)
            representatives.append(_Form(answer, form))
            if compared:
                # Each repetition of a representative meets itself in the plain loop.
                naive += (repeats[key] - 1) * both_ways
    return _Greedy(np.array([cluster_of[key] for key in group.keys], dtype=np.int32), naive)


class _Form(NamedTuple):
    """An answer and its canonical form, None where it has none."""

    answer: Any
    form: Hashable | None


def _same(
    group: AnswerGroup, entailment: Any, first: _Form, other: _Form
) -> Generator[Pair, bool | None, tuple[bool | None, int]]:
    """Whether two answers mean the same, and how many questions the plain loop asks for it."""
    if first.form is not None and other.form is not None:
        # The plain loop asks at least once, twice where the answers are equal.
        equal = first.form == other.form
        return equal, 2 if equal and not entailment.symmetric else 1
    forward = yield _pair(group, first.answer, other.answer)
    if not forward or entailment.symmetric:
        return forward, 1
    return (yield _pair(group, other.answer, first.answer)), 2


def _pair(group: AnswerGroup, premise: str, hypothesis: str) -> Pair:
    return Pair(group.question, premise, hypothesis, group.scorer, group.choices)


# Semantic entropy of one group of clustered samples, in nat.
#
# Kuhn, Gal and Farquhar 2023, "Semantic Uncertainty: Linguistic Invariances for
# Uncertainty Estimation in Natural Language Generation";
# Farquhar et al. 2024, "Detecting hallucinations in large language models using
# semantic entropy", for the renormalised and the discrete forms.

#: The paper's estimator −(1/|C|) Σ log p(Cᵢ | x) on probabilities as they are.
SEQUENCE = "sequence_probability"
#: The same with p(C) renormalised over the clusters that were sampled.
RENORMALISED = "sequence_probability_renormalised"
#: −Σ p log p over those renormalised probabilities: the entropy proper.
RAO_BLACKWELL = "rao_blackwell"
#: −Σ p log p over the clusters' shares of the samples; needs no log-probabilities.
DISCRETE = "discrete"

ESTIMATORS = (SEQUENCE, RENORMALISED, RAO_BLACKWELL, DISCRETE)


def discrete(clusters: npt.NDArray[np.int32]) -> float | None:
    """−Σ p log p over cluster frequencies; 0 for one sample, None for none."""
    if clusters.size == 0:
        return None
    share = np.bincount(clusters) / clusters.size
    share = share[share > 0]
    return max(0.0, float(-(share * np.log(share)).sum()))


def cluster_logprobs(
    clusters: npt.NDArray[np.int32], sequences: Sequence[str], logprobs: Sequence[float]
) -> npt.NDArray[np.float64]:
    """log p(C | x) for each cluster: log-sum-exp over its distinct sequences.

    A sequence that was sampled twice is still one sequence with one
    probability; its first log-probability counts.

    Returns:
        float64 of shape (number of clusters,), not normalised: with
        length-normalised log-probabilities a sum may exceed one.
    """
    members: dict[int, dict[str, float]] = {}
    for number, sequence, value in zip(clusters.tolist(), sequences, logprobs, strict=True):
        members.setdefault(number, {}).setdefault(sequence, value)
    return np.array(
        [_log_sum_exp(np.array(list(members[number].values()))) for number in sorted(members)]
    )


def entropies(
    clusters: npt.NDArray[np.int32],
    sequences: Sequence[str],
    logprobs: Sequence[float | None],
) -> Mapping[str, float | None]:
    """Estimator → entropy. The three that need log-probabilities are left out if one is missing.

    Args:
        clusters: Cluster number per sample, int of shape (n,), numbered from 0 without gaps.
        sequences: The n sampled texts.
        logprobs: log p(s | x) per sample (nat), None where the server gave none.
    """
    result: dict[str, float | None] = {DISCRETE: discrete(clusters)}
    values = [value for value in logprobs if value is not None]
    if clusters.size == 0 or len(values) < len(logprobs):
        return result
    log_p = cluster_logprobs(clusters, sequences, values)
    log_share = log_p - _log_sum_exp(log_p)
    # + 0.0 turns the negative zero of a certain cluster into zero.
    result[SEQUENCE] = float(-log_p.mean()) + 0.0
    result[RENORMALISED] = max(0.0, float(-log_share.mean()))
    result[RAO_BLACKWELL] = max(0.0, float(-(np.exp(log_share) * log_share).sum()))
    return result


def _log_sum_exp(values: npt.NDArray[np.float64]) -> float:
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum()))


# Preference records in and out of the field's files: CSV, JSONL and Parquet.
#
# The form is that of the arena preference data and of the routers trained on it:
# `id, model_a, model_b, prompt, response_a, response_b, winner_model_a,
# winner_model_b, winner_tie`, where prompt and responses are JSON lists with one
# text per turn.

TEXTS = ("prompt", "response_a", "response_b")
WINNERS = ("winner_model_a", "winner_model_b", "winner_tie")
COLUMNS = ("id", "model_a", "model_b", *TEXTS, *WINNERS)
#: What else our own files say; other programs may leave these columns unread.
MORE = ("query_id", "se_a", "se_b", "delta", "basis", "estimator", "backend")

_SCHEMA = pa.schema(
    [(name, pa.int64() if name in WINNERS else pa.string()) for name in COLUMNS]
    + [(name, pa.float64() if name in ("se_a", "se_b", "delta") else pa.string()) for name in MORE]
)


def import_preferences(path: Path) -> pa.Table:
    """`preferences` rows of a file in the field's form.

    A text that is not a JSON list is one turn. Where the file carries no
    `query_id`, it is made from the prompt, so that records on one prompt share
    it; where it carries no `basis`, the basis is `imported`.

    Raises:
        SourceError: a column is missing, a winner is not 0 or 1, or the turns of
            prompt and responses differ; says in which record.
        ContractError: ids are repeated or not exactly one side wins.
    """
    where = str(path)
    records = []
    for number, row in enumerate(rows(path), start=1):
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise SourceError(
                f"column {missing[0]!r} is missing",
                where=where,
                next_step=f"the form has the columns {', '.join(COLUMNS)}",
            )
        if format_of(path, None) == "csv":  # texts are lists in JSON, which no spreadsheet runs
            row = {k: unguarded(v) if isinstance(v, str) and k not in TEXTS else v
                   for k, v in row.items()}  # fmt: skip
        records.append(_record(row, f"{where}, record {number}"))
    return PREFERENCES.from_rows(records, where=where)


def export_preferences(preferences: pa.Table, path: Path, *, entropies: bool = True) -> Path:
    """Write `preferences` in the field's form, in the order of the table.

    Args:
        entropies: Also write our own columns (`MORE`); without them the file has
            exactly the nine of the form.

    The file is written beside its place and renamed: it is whole or not there.
    """
    kind = format_of(path, None)
    names = COLUMNS + MORE if entropies else COLUMNS
    records = (_exported(row, names) for row in PREFERENCES.conform(preferences).to_pylist())
    with replacing(path) as part:
        _write(records, part, kind, names)
    return path


def _write(
    records: Iterator[dict[str, Any]], path: Path, kind: str, names: tuple[str, ...]
) -> None:
    if kind == "parquet":
        schema = pa.schema([_SCHEMA.field(name) for name in names])
        pq.write_table(pa.Table.from_pylist(list(records), schema=schema), path, compression="zstd")
        return
    with path.open("w", encoding="utf-8", newline="") as stream:
        if kind == "csv":
            writer = csv.DictWriter(stream, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: guarded(item) for name, item in row.items()} for row in records)
        else:
            stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in records)


def _exported(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    record = {name: row[name] for name in names}
    if row["n_turns"] == 1:
        for name in TEXTS:
            record[name] = json.dumps([row[name]], ensure_ascii=False)
    return record


def _record(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    turns = {name: _turns(row[name]) for name in TEXTS}
    lengths = {len(texts) for texts in turns.values()}
    if len(lengths) != 1 or not lengths.pop():
        raise SourceError(
            "prompt and responses have different numbers of turns: "
            + ", ".join(f"{name} {len(texts)}" for name, texts in turns.items()),
            where=where,
            next_step="each is a JSON list with one text per turn",
        )
    n_turns = len(turns["prompt"])
    record: dict[str, Any] = {"n_turns": n_turns}
    for name, texts in turns.items():
        record[name] = texts[0] if n_turns == 1 else json.dumps(texts, ensure_ascii=False)
    if record["prompt"] is None:
        raise SourceError("the prompt is empty", where=where, next_step="leave the record out")
    for name in ("id", "model_a", "model_b"):
        record[name] = str(row[name])
    for name in WINNERS:
        record[name] = _flag(row[name], name, where)
    for name in ("se_a", "se_b", "delta"):
        value = row.get(name)
        record[name] = None if value in (None, "") else float(value)
    for name in ("estimator", "backend"):
        record[name] = row.get(name) or None
    record["basis"] = row.get("basis") or "imported"
    digest = hashlib.sha256(record["prompt"].encode("utf-8")).hexdigest()
    record["query_id"] = row.get("query_id") or "q" + digest[:20]
    return record


def _turns(text: object) -> list[str | None]:
    """Texts of a JSON list of texts and nulls; anything else is one turn."""
    if isinstance(text, list):
        value: object = text
    else:
        try:
            value = json.loads(str(text))
        except (ValueError, RecursionError):
            value = None
    if isinstance(value, list) and all(turn is None or isinstance(turn, str) for turn in value):
        return [None if turn is None else _encodable(turn) for turn in value]
    return [None if text is None else _encodable(str(text))]


def _encodable(text: str) -> str:
    # The public data escape halves of emoji (`\ud83d`), which no file can hold as UTF-8.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _flag(value: object, name: str, where: str) -> int:
    known = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
    flag = known.get(str(value).strip().casefold())
    if flag is None:
        raise SourceError(
            f"{name} is {value!r}", where=where, next_step="winners are 0 or 1, one of three is 1"
        )
    return flag


# Preference records: which of two models is preferred on a query, in the field's form.
#
# The form is that of the public arena data and of the confidence-driven router
# ("Leveraging Uncertainty Estimation for Efficient LLM Routing", arXiv
# 2502.11021, section 2.2): model_a, model_b, prompt, both responses and a one-hot winner.

Winner = Literal["strong", "weak", "tie"]


def delta(se_strong: float, se_weak: float) -> float | None:
    """δ = |(SE_strong − SE_weak) / SE_strong|; None when SE_strong is 0."""
    if se_strong == 0:
        return None
    value = abs((se_strong - se_weak) / se_strong)
    # A strong model all but certain overflows the ratio: as good as SE_strong = 0.
    return value if math.isfinite(value) else None


def winner_by_entropy(se_strong: float, se_weak: float, tau: float) -> Winner:
    """The model with the lower entropy when δ > τ, else a tie.

    SE_strong = 0 has no δ: a tie when SE_weak is 0 too, else the strong model wins
    (the weak one when its entropy is below zero, which length-normalised
    probabilities allow).
    """
    gap = delta(se_strong, se_weak)
    if se_strong == se_weak or (gap is not None and gap <= tau):
        return "tie"
    return "strong" if se_strong < se_weak else "weak"


def winner_by_score(score_strong: float, score_weak: float) -> Winner:
    """The model with the higher score; equal scores tie."""
    if score_strong == score_weak:
        return "tie"
    return "strong" if score_strong > score_weak else "weak"


def record(
    query: Mapping[str, Any],
    names: tuple[str, str],
    texts: Sequence[str | None],
    winner: Winner,
    *,
    basis: str,
    seed: int,
    entropy: tuple[float | None, float | None] = (None, None),
    **more: Any,
) -> dict[str, Any]:
    """One `preferences` row. Which model comes first is drawn from seed and query.

    The draw hashes the record's own identity, so that adding or removing
    other queries moves no model to the other side.

    Args:
        query: Its `query_id` and `prompt`.
        names: The strong and the weak model, as `texts` and `entropy` have them.
        more: Further columns.
    """
    identity = "|".join((query["query_id"], *names, basis))
    a, b = (1, 0) if _digest(f"{seed}|{identity}")[0] % 2 else (0, 1)
    won = [int(winner == side) for side in ("strong", "weak")]
    return {
        "id": "p" + _digest(identity).hex()[:20],
        "query_id": query["query_id"],
        "model_a": names[a],
        "model_b": names[b],
        "prompt": query["prompt"],
        "response_a": texts[a],
        "response_b": texts[b],
        "winner_model_a": won[a],
        "winner_model_b": won[b],
        "winner_tie": int(winner == "tie"),
        "se_a": entropy[a],
        "se_b": entropy[b],
        "basis": basis,
        "n_turns": 1,
        **more,
    }


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


# The samples of each (query, model): texts, extracted answers, sequence probabilities.


@dataclass(frozen=True, slots=True)
class Samples:
    """Usable answers of one model to one query, by sample number.

    Attributes:
        extracted: What the query's own scorer read in each; None where it read nothing.
        outcomes: That scorer's verdict on each; None where it filed none.
        logprobs: log p(s | x) in nat; None where the server gave none.
    """

    query: Mapping[str, Any]
    model_id: str
    numbers: tuple[int, ...]
    texts: tuple[str, ...]
    extracted: tuple[str | None, ...]
    outcomes: tuple[str | None, ...]
    logprobs: tuple[float | None, ...]


def need(tables: Mapping[str, pa.Table], name: str, rule: str) -> pa.Table:
    """The table a rule reads, or an error that says what is missing."""
    if name not in tables:
        raise BadInput(
            f"rule {rule!r} needs the table {name!r}",
            where=f"tables at hand: {', '.join(sorted(tables)) or 'none'}",
            next_step="put the rule after the stage that makes that table",
        )
    return tables[name]


def gather(
    tables: Mapping[str, pa.Table],
    models: Sequence[str],
    *,
    length_normalised: bool = False,
    statuses: Sequence[str] = ("ok",),
) -> list[Samples]:
    """Samples in the order of `queries`, then of `models`; queries nobody answered are left out.

    Truncated and failed responses are no samples of the model's meaning: their
    answer was never finished.
    """
    queries = need(tables, "queries", "preference").select(list(QUERY))
    inputs = {
        "queries": queries,
        "responses": need(tables, "responses", "preference"),
        "verdicts": tables.get("verdicts", VERDICTS.empty()),
    }
    with runner(_SQL, inputs) as run:
        rows = run.table("samples", models=list(models), statuses=list(statuses)).to_pylist()
    results = {(row["query_id"], row["model_id"]): row for row in rows}
    result = []
    for query in queries.to_pylist():
        for model in models:
            if (row := results.get((query["query_id"], model))) is None:
                continue
            columns = {name: tuple(row[name]) for name in SAMPLED if name != "logprobs"}
            logprobs = (
                _logprob(item, f"query {query['query_id']}, model {model}, sample {number}",
                         length_normalised)
                for number, item in zip(row["numbers"], row["logprobs"], strict=True)
            )  # fmt: skip
            result.append(Samples(query, model, **columns, logprobs=tuple(logprobs)))
    return result


QUERY = ("query_id", "question", "prompt", "choices", "scorer")


def _logprob(text: str | None, where: str, length_normalised: bool) -> float | None:
    if text is None:
        return None
    return sequence_logprob(tokens(text, where=where), length_normalised=length_normalised)


# Semantic entropies of every (query, model): samples → clusters → estimators → table.

#: Fields of `Samples` with an entry for each sample.
SAMPLED = ("numbers", "texts", "extracted", "outcomes", "logprobs")
#: The `backend` of clusters made by equal answers alone.
EQUALITY = "equality"


@dataclass(frozen=True, slots=True)
class SampleEntropies:
    """Entropies of one (query, model).

    Attributes:
        clusters: Cluster per sample; None when the backend could not decide.
        entropies: Estimator → entropy in nat; empty when `clusters` is None.
    """

    samples: Samples
    clusters: npt.NDArray[np.int32] | None
    entropies: Mapping[str, float | None]

    def first(self, n: int) -> SampleEntropies:
        """The same over its first n samples."""
        if self.clusters is None or n >= len(self.samples.texts):
            return self
        some = replace(
            self.samples,
            **{name: getattr(self.samples, name)[:n] for name in SAMPLED},
        )
        # Clusters are numbered without gaps: those of the first samples are again.
        clusters = np.unique(self.clusters[:n], return_inverse=True)[1].astype(np.int32)
        return SampleEntropies(some, clusters, entropies(clusters, some.texts, some.logprobs))

    @property
    def majority(self) -> int | None:
        """Index of the first sample of the largest cluster (the earlier one of two)."""
        if self.clusters is None or self.clusters.size == 0:
            return None
        return int(np.argmax(self.clusters == np.bincount(self.clusters).argmax()))


def group(samples: Samples, entailment: Entailment | None) -> AnswerGroup:
    """What clustering sees of the samples: extracted answers or whole texts."""
    reads_answers = entailment is None or entailment.reads == "answer"
    return AnswerGroup(
        question=samples.query["question"],
        answers=samples.extracted if reads_answers else samples.texts,
        keys=tuple(map(answer_key, samples.texts, samples.extracted)),
        scorer=samples.query["scorer"],
        choices=tuple(samples.query["choices"] or ()),
    )


def measure(
    gathered: Sequence[Samples], entailment: Entailment | None
) -> tuple[list[SampleEntropies], Clustering]:
    """Cluster all samples in one pass and apply every estimator that applies."""
    clustering = cluster([group(samples, entailment) for samples in gathered], entailment)
    measured = []
    for samples, clusters in zip(gathered, clustering.assignments, strict=True):
        result: Mapping[str, float | None] = {}
        if clusters is not None:
            result = entropies(clusters, samples.texts, samples.logprobs)
        measured.append(SampleEntropies(samples, clusters, result))
    return measured, clustering


def entropy_table(
    measured: Sequence[SampleEntropies], backend: str, *, length_normalised: bool
) -> pa.Table:
    """`entropies` rows, one per estimator, ordered by key.

    A group whose backend failed has no rows: its number of clusters is unknown.
    """
    rows = [
        {
            "query_id": item.samples.query["query_id"],
            "model_id": item.samples.model_id,
            "estimator": estimator,
            "backend": backend,
            "n_samples": int(item.clusters.size),
            "n_clusters": int(item.clusters.max()) + 1,
            "semantic_entropy": item.entropies[estimator],
            "length_normalised": None if estimator == "discrete" else length_normalised,
        }
        for item in measured
        if item.clusters is not None
        for estimator in ESTIMATORS
        if estimator in item.entropies
    ]
    key = ("query_id", "model_id", "estimator", "backend")
    return ENTROPIES.from_rows(sorted(rows, key=lambda row: tuple(str(row[k]) for k in key)))


def predictive_power(
    measured: Sequence[SampleEntropies],
) -> list[dict[str, str | int | float | None]]:
    """Per model and estimator: AUROC of entropy for a wrong majority answer.

    The majority answer is wrong when the query's scorer called the first
    sample of the largest cluster incorrect; where it abstained or filed
    nothing, the query is counted in `undecided` and left out.
    """
    rows: list[dict[str, str | int | float | None]] = []
    for model in sorted({entry.samples.model_id for entry in measured}):
        for estimator in ESTIMATORS:
            scores, wrong, undecided = [], [], 0
            for item in measured:
                value = item.entropies.get(estimator)
                if item.samples.model_id != model or value is None or item.majority is None:
                    continue
                outcome = item.samples.outcomes[item.majority]
                if outcome not in ("correct", "incorrect"):
                    undecided += 1
                    continue
                scores.append(value)
                wrong.append(outcome == "incorrect")
            if scores or undecided:
                rows.append(
                    {
                        "model_id": model,
                        "estimator": estimator,
                        "queries": len(scores),
                        "wrong": sum(wrong),
                        "undecided": undecided,
                        "auroc": auroc(scores, wrong),
                    }
                )
    return rows


def auroc(scores: npt.ArrayLike, positive: npt.ArrayLike) -> float | None:
    """Probability that a positive scores above a negative; ties count one half.

    The Mann-Whitney statistic over average ranks (Hanley and McNeil 1982).

    Args:
        scores: float of shape (n,), finite.
        positive: bool of shape (n,).

    Returns:
        None when one of the two classes is empty.
    """
    values = np.asarray(scores, dtype=np.float64)
    flags = np.asarray(positive, dtype=bool)
    n_positive, n_negative = int(flags.sum()), int((~flags).sum())
    if not n_positive or not n_negative:
        return None
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[codes]
    above = ranks[flags].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))


# Whether two groups of samples make a pair by semantic entropy, and if not, why.


class Entropies(NamedTuple):
    """The two entropies of a pair, from one estimator."""

    se_strong: float
    se_weak: float
    estimator: str


class NoPair(NamedTuple):
    """Why a query makes no pair: short reason, and a sentence."""

    reason: str
    detail: str


def compare(
    strong: SampleEntropies | None,
    weak: SampleEntropies | None,
    *,
    names: tuple[str, str],
    estimator: str,
    min_samples: int,
) -> Entropies | NoPair:
    """Entropies of both models by one estimator, over as many samples of each.

    n samples reach ln n at most: of the model with more of them the first ones are taken.
    `auto` takes the paper's sequence-probability form where both models have
    it, else the discrete form for both.
    """
    if strong is None or weak is None:
        lacking = [name for name, entry in zip(names, (strong, weak), strict=True) if entry is None]
        return NoPair("no_response", f"no usable response of {' and '.join(lacking)}")
    for item in (strong, weak):
        model, n = item.samples.model_id, len(item.samples.texts)
        if n < min_samples:
            return NoPair(
                "too_few_samples", f"{model} has {n} usable samples; {min_samples} are needed"
            )
        if item.clusters is None:
            return NoPair("backend_failed", f"no decision on the answers of {model}")
    fewest = min(len(strong.samples.texts), len(weak.samples.texts))
    strong, weak = strong.first(fewest), weak.first(fewest)
    used = estimator
    if estimator == "auto":
        both = SEQUENCE in strong.entropies and SEQUENCE in weak.entropies
        used = SEQUENCE if both else DISCRETE
    values = strong.entropies.get(used), weak.entropies.get(used)
    if values[0] is None or values[1] is None:
        without = names[0] if values[0] is None else names[1]
        return NoPair("no_entropy", f"{without} has no entropy of estimator {used}")
    return Entropies(values[0], values[1], used)


# Logit-based signals of a response: entropy, margin, largest logit, perplexity.
#
# Computed from token log-probabilities as servers return them: the generated
# token and a few alternatives. What was not returned is reported, and enters
# the entropy as one outcome, which makes it a lower bound.


def token_signals(sequence: Sequence[Token]) -> dict[str, float | None]:
    """Means over tokens; a signal that no token allows is None.

    Entropy and unreturned mass need alternatives, the margin at least two.
    """
    entropies, margins, largest, unreturned = [], [], [], []
    for token in sequence:
        alternatives = [value for _, value in token.top]
        if all(name != token.token for name, _ in token.top):
            # A sampled token need not be among the most likely ones.
            alternatives.append(token.logprob)
        ranked = sorted(alternatives, reverse=True)
        if token.top:
            p = [math.exp(value) for value in ranked]
            rest = max(0.0, 1.0 - math.fsum(p))
            entropies.append(-math.fsum(x * math.log(x) for x in (*p, rest) if x > 0))
            unreturned.append(rest)
            largest.append(ranked[0])
        if len(ranked) > 1:
            margins.append(max(0.0, math.exp(ranked[0]) - math.exp(ranked[1])))
    generated = _mean([token.logprob for token in sequence])
    return {
        "entropy": _mean(entropies),
        "margin": _mean(margins),
        "max_logit": _mean(largest),
        "perplexity": math.exp(-generated)
        if generated is not None and -700 < generated < math.inf
        else None,
        "unreturned_mass": _mean(unreturned),
    }


def signal_table(
    queries: pa.Table,
    responses: pa.Table,
    model: str,
    assess: Callable[[Sequence[tuple[str, str]]], Sequence[float | None]] | None = None,
) -> pa.Table:
    """`signals` rows of one model's responses, ordered by key.

    A response without log-probabilities has a row only when the model was
    asked about it (`assess` returns one probability or None per (question, answer)).
    """
    with runner(_SQL, {"queries": queries, "responses": responses}) as run:
        rows: list[dict[str, Any]] = run.table("signalled", model=model).to_pylist()
    assessed: Sequence[float | None] = [None] * len(rows)
    if assess is not None:
        assessed = assess([(row["prompt"], row["text"]) for row in rows])
    result = []
    for row, certainty in zip(rows, assessed, strict=True):
        where = f"query {row['query_id']}, model {model}, sample {row['sample']}"
        value = tokens(row["logprobs"], where=where)
        if value is None and certainty is None:
            continue
        result.append(
            {
                "query_id": row["query_id"],
                "model_id": model,
                "sample": row["sample"],
                "n_tokens": len(value or ()),
                **token_signals(value or ()),
                "self_assessment": certainty,
            }
        )
    return SIGNALS.from_rows(result)


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    mean = math.fsum(values) / len(values) if all(map(math.isfinite, values)) else None
    return mean


# What the threshold τ costs and buys: share of ties, and agreement with correctness.

#: Default thresholds of a sweep.
TAUS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0)


#: Entropies of a pair, and whether each model is right (None when undecided); the strong first.
Compared = tuple[float, float, float | None, float | None]


def tau_sweep(
    pairs: Sequence[Compared], taus: Sequence[float] = TAUS
) -> list[dict[str, float | int | None]]:
    """One row per τ.

    Returns:
        Rows with `tau`, `pairs`, `ties`, `tie_share`, `strong_wins`, `weak_wins`,
        `comparable` (decided pairs in which exactly one model is right) and
        `agreement` (share of those whose winner is the model that is right).
        A share of nothing is None.
    """
    rows: list[dict[str, float | int | None]] = []
    for tau in sorted(set(taus)):
        winners = [winner_by_entropy(*pair[:2], tau) for pair in pairs]
        agree = [
            (winner == "strong") == right[0]
            for winner, (_, _, *right) in zip(winners, pairs, strict=True)
            if winner != "tie" and None not in right and right[0] != right[1]
        ]
        ties = winners.count("tie")
        rows.append(
            {
                "tau": tau,
                "pairs": len(pairs),
                "ties": ties,
                "tie_share": ties / len(pairs) if pairs else None,
                "strong_wins": winners.count("strong"),
                "weak_wins": winners.count("weak"),
                "comparable": len(agree),
                "agreement": sum(agree) / len(agree) if agree else None,
            }
        )
    return rows


# Rule `preference`: pairs of a strong and a weak model, won by the surer one.
#
# Zhang et al. 2025, "Leveraging Uncertainty Estimation for Efficient LLM
# Routing" (the confidence-driven router), section 3.

STAGE = "curate.preference"
BASES = ("semantic_entropy", "correctness", "judge")

#: (prompt, answer) pairs of the weak model → its probability that each answer is right.
Assess = Callable[[Sequence[tuple[str, str]]], Sequence[float | None]]


#: A record, its winner and, where they decided, both entropies.
_Made = tuple[dict[str, Any], Winner, Any]


def preference(
    tables: Mapping[str, pa.Table],
    *,
    strong: str,
    weak: str,
    tau: float = 0.1,
    backend: str | Mapping[str, Any] = "equivalence",
    estimator: str = "auto",
    length_normalised: bool = False,
    min_samples: int = 2,
    basis: str | Sequence[str] = "semantic_entropy",
    judge: str | None = None,
    taus: Sequence[float] = TAUS,
    seed: int = 0,
    self_assessment: bool = False,
    entailment: Entailment | None = None,
    assess: Assess | None = None,
) -> Curated:
    """Entropies of two models' samples, and which of the two each query prefers.

    Args:
        strong: `model_id` of the strong model; δ is relative to its entropy.
        weak: `model_id` of the weak model; its `signals` are added too.
        tau: δ at or below which a pair is a tie (the paper's 0.1).
        backend: `equivalence`, or `{name: cross_encoder, model: FOLDER_OR_HUB_ID}`, or
            `{name: judge, model: model_id}`: the flow makes `entailment` from it.
            `equality` needs nothing and calls two answers the same when their
            extracted answers or texts are equal.
        estimator: One of `entropy.ESTIMATORS`, or `auto`: the paper's
            sequence-probability form where both models have log-probabilities
            for every sample, else the discrete form for both. Entropies of two
            estimators are never compared.
        min_samples: Fewer usable samples of either model make no pair: one
            sample agrees with itself.
        basis: What decides: `semantic_entropy`, `correctness`, `judge`, or several.
        judge: With basis `judge`, the judge's name as in `judge:<name>`.
        self_assessment: Ask the weak model whether its answers are right.
        entailment: What decides that two answers mean the same.
        assess: Puts the question of `self_assessment`.

    Returns:
        `queries` unchanged; `entropies`, `preferences` and, where the weak model
        has log-probabilities, `signals` added; one `removals` row of entity
        `pair` for each query and basis that made no pair.

    Raises:
        RecipeError: an unknown model, backend, estimator or basis.
    """
    bases = (basis,) if isinstance(basis, str) else tuple(dict.fromkeys(basis))
    _check(tables, (strong, weak), tau, estimator, bases)
    if entailment is None and backend != EQUALITY:
        raise _refused(
            f"no entailment backend {backend!r} was given to the rule",
            "run it through `routeyard build`, which makes one, or set 'backend: equality'",
        )
    if self_assessment and assess is None:
        raise _refused(
            "no way to ask the weak model was given to the rule",
            "run it through `routeyard build`, or set 'self_assessment: false'",
        )
    queries = need(tables, "queries", "preference")
    responses = need(tables, "responses", "preference")
    verdicts = tables.get("verdicts", VERDICTS.empty())
    name = entailment.name if entailment is not None else EQUALITY
    names = (strong, weak)

    gathered = gather(tables, names, length_normalised=length_normalised)
    measured, clustering = measure(gathered, entailment)
    groups = {(item.samples.query["query_id"], item.samples.model_id): item for item in measured}
    correct = by_correctness(tables.get("labels"), names)
    scorers = [judge_scorer(verdicts, judge)] if "judge" in bases else []
    scores = {"correctness": correct} if "correctness" in bases else {}
    scores |= {scorer: by_judge(verdicts, names, scorer) for scorer in scorers}

    def by_entropy(here: Sequence[Any]) -> tuple[Winner | NoPair, dict[str, Any]]:
        result = compare(*here, names=names, estimator=estimator, min_samples=min_samples)
        return _by_entropy(result, tau, name)

    by = by_entropy if "semantic_entropy" in bases else None
    made, removed = _pairs(queries, groups, names, by, scores, seed)
    records = sorted((row for row, _, _ in made), key=lambda row: str(row["id"]))
    added = {
        "entropies": entropy_table(measured, name, length_normalised=length_normalised),
        "preferences": PREFERENCES.from_rows(records),
    }
    signals = signal_table(queries, responses, weak, assess)
    if signals.num_rows:
        added["signals"] = signals
    figures: dict[str, Any] = {
        "strong": strong,
        "weak": weak,
        "tau": tau,
        "backend": name,
        "length_normalised": length_normalised,
        "queries": queries.num_rows,
        "pairs": len(records),
        "pairs_by_basis": _wins(made),
        "estimators": dict(
            sorted(Counter(row["estimator"] for row in records if "estimator" in row).items())
        ),
        "no_pair": dict(sorted(Counter(reason for _, reason, _ in removed).items())),
        "tau_sweep": tau_sweep(_compared(made, names, correct), taus),
        "predictive_power": predictive_power(measured),
        "truncated_pairs": getattr(entailment, "truncated", None),
        "entailment_calls": clustering.calls,
        "entailment_calls_naive": clustering.calls_naive,
        "unreadable_samples": sum(
            extracted is None for samples in gathered for extracted in samples.extracted
        ),
    }
    return Curated({"queries": queries}, removals(STAGE, "pair", removed), added, figures)


def _pairs(
    queries: pa.Table,
    groups: Mapping[tuple[str, str], SampleEntropies],
    names: tuple[str, str],
    by_entropy: Callable[[Sequence[Any]], tuple[Winner | NoPair, dict[str, Any]]] | None,
    scores: Mapping[str, Scores],
    seed: int,
) -> tuple[list[_Made], list[tuple[str, str, str]]]:
    """Pairs of all queries on every basis, and (key, reason, detail) of those without one."""
    made: list[_Made] = []
    removed: list[tuple[str, str, str]] = []
    for query in queries.select(["query_id", "prompt"]).to_pylist():
        keys = [(query["query_id"], model) for model in names]
        here = [groups.get(key) for key in keys]
        texts = [None if item is None else item.samples.texts[0] for item in here]
        result = {} if by_entropy is None else {"semantic_entropy": by_entropy(here)}
        for basis, known in scores.items():
            result[basis] = _by_score([known.get(key) for key in keys], names, basis), {}
        for basis, (winner, more) in result.items():
            if isinstance(winner, NoPair):
                removed.append(("|".join((query["query_id"], *names, basis)), *winner))
                continue
            row = record(query, names, texts, winner, basis=basis, seed=seed, **more)
            made.append((row, winner, more.get("entropy")))
    return made, removed


def _wins(made: Sequence[_Made]) -> dict[str, dict[str, int]]:
    """Basis → number of pairs, ties, and wins of each side."""
    wins: dict[str, Counter[Winner]] = defaultdict(Counter)
    for row, winner, _ in made:
        wins[row["basis"]][winner] += 1
    return {
        item: {
            "pairs": n.total(),
            "ties": n["tie"],
            "strong_wins": n["strong"],
            "weak_wins": n["weak"],
        }
        for item, n in sorted(wins.items())
    }


def _compared(made: Sequence[_Made], names: tuple[str, str], correct: Scores) -> list[Compared]:
    """Entropies and labels of the pairs that have entropies."""
    return [
        (*entropy, *(correct.get((row["query_id"], model)) for model in names))
        for row, _, entropy in made
        if entropy is not None
    ]


def _by_entropy(
    entropies: Entropies | NoPair, tau: float, backend: str
) -> tuple[Winner | NoPair, dict[str, Any]]:
    """The winner, and the columns that only this basis has."""
    if isinstance(entropies, NoPair):
        return entropies, {}
    entropy = (entropies.se_strong, entropies.se_weak)
    more = {"entropy": entropy, "delta": delta(*entropy), "estimator": entropies.estimator}
    return winner_by_entropy(*entropy, tau), {**more, "backend": backend}


def _by_score(
    scores: Sequence[float | None], names: tuple[str, str], basis: str
) -> Winner | NoPair:
    strong, weak = scores
    if strong is None or weak is None:
        without = [model for model, score in zip(names, scores, strict=True) if score is None]
        return NoPair("no_score", f"no {basis} score of {' and '.join(without)}")
    return winner_by_score(float(strong), float(weak))


def _check(
    tables: Mapping[str, pa.Table],
    models: tuple[str, str],
    tau: float,
    estimator: str,
    bases: Sequence[str],
) -> None:
    if models[0] == models[1]:
        raise _refused(f"strong and weak are both {models[0]!r}", "name two different models")
    if not tau >= 0:
        raise _refused(f"tau is {tau}", "tau is a relative difference: 0 or more, usually 0.1")
    if estimator not in ("auto", *ESTIMATORS):
        raise _refused(
            f"there is no estimator {estimator!r}", did_you_mean(estimator, ("auto", *ESTIMATORS))
        )
    for base in bases:
        if base not in BASES:
            raise _refused(f"there is no basis {base!r}", did_you_mean(base, BASES))
    if "correctness" in bases and "labels" not in tables:
        raise _refused("basis 'correctness' needs the table 'labels'", "label before curating")
    if "models" in tables:
        known = tables["models"].column("model_id").to_pylist()
        for model in models:
            if model not in known:
                raise _refused(f"the pool has no model {model!r}", did_you_mean(model, known))


def _refused(what: str, next_step: str) -> RecipeError:
    return RecipeError(what, where="curation rule 'preference'", next_step=next_step)


RULE = Rule(
    "preference",
    preference,
    reads=("responses", "verdicts", "labels"),
    needs=("entailment", "assess"),
)
