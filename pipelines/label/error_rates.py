"""How often each scorer is wrong, measured on answers that people or official graders judged.

`error_rates.csv` counts verdicts per scorer and kind of answer (task type × format of the
reference × length × script of the answer). A kind with few judged answers borrows the counts of a
coarser one. The file is made by `python -m benchmarks error_rates`; `docs/labels.md` prints it.
Counts of an earlier version of a scorer are not used: its readings were others.
"""

from __future__ import annotations

import csv
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import pyarrow as pa

from routeyard.pipelines.label.policies import UNREADABLE
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.contains import accepted, is_date, is_number
from routeyard.schemas.statuses import GIVEN, NO_CREDIT

FILE = Path(__file__).with_name("error_rates.csv")
COLUMNS = ("set", "judged_by", "scorer", "version", "task", "format", "length", "script")
OUTCOMES = ("correct", "incorrect", "abstain")
#: Columns of counts: each outcome on right and on wrong answers.
COUNTS = tuple(f"{outcome}_{truth}" for outcome in OUTCOMES for truth in ("right", "wrong"))
#: Judged answers below which a kind says nothing about its own rates.
ENOUGH = 200
#: Sensitivity + specificity below which a corrected accuracy is mostly noise.
INFORMATIVE = 1.5
#: Who judged a set whose verdicts are shown, but are no ground for rates.
UNRELIABLE = "official rule, often wrong"
_TASKS = {
    "mcq": "multiple choice",
    "numeric": "mathematics",
    "math": "mathematics",
    "literal": "program output",
    "code": "program output",
}
_LENGTHS = ((60, "short"), (400, "sentences"), (math.inf, "long"))


class Kind(NamedTuple):
    """A kind of answer, from what is known when it is labelled."""

    task: str
    format: str
    length: str
    script: str


class Rates(NamedTuple):
    """Counts of verdicts on judged answers; the first index is the verdict, the second the truth.

    Attributes:
        counts: ((correct and right, correct and wrong), (incorrect …), (abstain …)).
        kind: The kind that was measured, coarser where the asked one has few answers.
    """

    counts: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    kind: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        return sum(map(sum, self.counts))

    @property
    def with_abstentions(self) -> Rates:
        """The same where a policy calls every abstention incorrect."""
        yes, no, open_ = self.counts
        return Rates((yes, (no[0] + open_[0], no[1] + open_[1]), (0, 0)), self.kind)

    @property
    def sensitivity(self) -> tuple[int, int]:
        """Right answers called correct, of the right ones that are decided."""
        return self.counts[0][0], self.counts[0][0] + self.counts[1][0]

    @property
    def specificity(self) -> tuple[int, int]:
        """Wrong answers called incorrect, of the wrong ones that are decided."""
        return self.counts[1][1], self.counts[0][1] + self.counts[1][1]


def kind_of(scorer: str, references: Sequence[str], choices: Sequence[str], output: str) -> Kind:
    """The kind of one answer."""
    form = _format(references[0] if references else "", bool(choices))
    default = "multiple choice" if form == "option" else "open question"
    if scorer == "auto" and form in ("number", "expression"):
        default = "mathematics"
    elif scorer == "auto" and form == "literal":
        default = "program output"
    signs = len(output.strip())
    length = next(name for most, name in _LENGTHS if signs <= most)
    return Kind(_TASKS.get(scorer, default), form, length, _script(output))


@lru_cache(maxsize=8192)
def _format(reference: str, choices: bool) -> str:
    text = reference.strip()
    if choices or (len(text) == 1 and text.isascii() and text.isalpha()):
        return "option"
    if text[:1] in "[{('\"" or text in ("True", "False", "None"):
        return "literal"
    parts = accepted(text)
    if not parts or not parts[0].forms:
        return "phrase"
    if is_date(parts[0]):
        return "date"
    if any(sign in text for sign in "\\^=") or (
        len(text) > 2 and not any(c.isalnum() for c in text)
    ):
        return "expression"
    if is_number(parts[0].forms[0]):
        return "number"
    return "name" if all(word.name for word in parts[0].words) else "phrase"


def _script(output: str) -> str:
    begun = output[:2000]
    if begun.isascii():
        return "Latin" if any(map(str.isalpha, begun)) else "None"
    scripts = Counter(map(_script_of, islice(filter(str.isalpha, begun), 200)))
    return max(scripts, key=lambda name: (scripts[name], name)).capitalize() if scripts else "None"


@lru_cache(maxsize=8192)
def _script_of(letter: str) -> str:
    return unicodedata.name(letter, "OTHER").split()[0].split("-")[0]


@lru_cache(maxsize=4)
def _table(file: Path) -> dict[tuple[str, ...], list[int]]:
    """(scorer, task, …) cut at every depth → `COUNTS`; this version only."""
    table: dict[tuple[str, ...], list[int]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            known = SCORERS.targets.get(row["scorer"])
            stale = known and SCORERS.get(row["scorer"]).version != row["version"]
            if stale or row["judged_by"] == UNRELIABLE:
                continue
            key = (row["scorer"], *(row[name] for name in Kind._fields))
            for depth in range(1, len(key) + 1):
                counts = table.setdefault(key[:depth], [0] * len(COUNTS))
                for at, name in enumerate(COUNTS):
                    counts[at] += int(row[name])
    return table


def rates(scorer: str, kind: Kind, *, enough: int = ENOUGH, file: Path = FILE) -> Rates | None:
    """The rates of a scorer on the finest kind with enough judged answers of the same task type.

    None where fewer are judged: rates of another task type say nothing about this one.
    """
    key = (scorer, *kind)
    for depth in range(len(key), 1, -1):
        counts = _table(file).get(key[:depth], [])
        if sum(counts) >= enough:
            a, b, c, d, e, f = counts
            return Rates(((a, b), (c, d), (e, f)), key[1:depth])
    return None


def p_correct(
    scorer: str, outcome: str, kind: Kind, *, enough: int = 30, file: Path = FILE
) -> float | None:
    """Probability that an answer with this verdict is right (with Laplace's 1 and 1 added)."""
    measured = rates(scorer, kind, enough=enough, file=file)
    if measured is None or outcome not in OUTCOMES:
        return None
    right, wrong = measured.counts[OUTCOMES.index(outcome)]
    return (right + 1) / (right + wrong + 2) if right + wrong >= enough else None


class Corrected(NamedTuple):
    """An accuracy corrected for the errors of its labels, with a 95 % interval, in [0, 1]."""

    accuracy: float
    low: float
    high: float


def corrected_accuracy(correct: int, decided: int, measured: Rates | None) -> Corrected | None:
    """The accuracy behind labels that err at known rates (Rogan and Gladen 1978).

    p = (q + specificity − 1) / (sensitivity + specificity − 1), q the labelled share. The interval
    adds the variances of q and of both rates (the delta method, their equation 5).

    Returns:
        None where fewer than `ENOUGH` answers of the kind were judged, or the rates do not inform.
    """
    if measured is None or not decided or measured.judged < ENOUGH:
        return None
    (hits, right), (rejected, wrong) = measured.sensitivity, measured.specificity
    if not right or not wrong:
        return None
    sensitivity, specificity = hits / right, rejected / wrong
    informs = sensitivity + specificity - 1
    if informs < INFORMATIVE - 1:
        return None
    share = correct / decided
    raw = (share + specificity - 1) / informs
    variance = (
        _variance(correct, decided)
        + raw**2 * _variance(hits, right)
        + (1 - raw) ** 2 * _variance(rejected, wrong)
    ) / informs**2
    half = 1.959964 * math.sqrt(variance)
    return Corrected(*(min(1.0, max(0.0, value)) for value in (raw, raw - half, raw + half)))


def _variance(hits: int, n: int) -> float:
    """Variance of a share; one hit and one miss are added, so that 0 of n is not certain."""
    share = (hits + 1) / (n + 2)
    return share * (1 - share) / n


# Expected wrong labels, and accuracies corrected for them, from the scorers' measured rates.

#: Labels that are looked at; of a larger release every k-th pair by its hash.
MOST = 200_000
#: (model, deciding scorer, kind, verdict, whether the policy says correct) of one label.
_Cell = tuple[str, str, Kind, str, bool]


def label_errors(queries: pa.Table, responses: pa.Table, labels: pa.Table) -> dict[str, Any]:
    """How many labels are expected to be wrong, and accuracies corrected for that.

    Args:
        queries: QUERIES contract.
        responses: RESPONSES contract; a pair's first sample tells the kind of its answer.
        labels: LABELS contract.

    Returns:
        `expected_wrong` over `covered` labels; `unknown` labels have no measured rates (another
        scorer, too few judged answers of their kind); `corrected`: model → [labelled, corrected,
        low, high], where rates are known for all of a model's labels; `kinds`: of each scorer, kind
        of answer and verdict the labels, and `p_correct`, the probability that an answer with that
        verdict is right (null where too few were judged). Labels that a person or
        the source decided are neither: they are the truth here.
    """
    every = -(-labels.num_rows // MOST)
    cells = Counter(_cells(queries, responses, labels, max(1, every)))
    expected, covered, unknown = 0.0, 0, 0
    for (_, scorer, kind, outcome, correct), n in cells.items():
        right = p_correct(scorer, outcome, kind)
        if right is None:
            unknown += n
        else:
            covered += n
            expected += n * (1 - right if correct else right)
    return {
        "expected_wrong": round(expected * every, 1) if covered else None,
        "covered": covered * every,
        "unknown": unknown * every,
        "corrected": _corrected(cells),
        "kinds": _kinds(cells, every),
    }


def _kinds(cells: Counter[_Cell], every: int) -> list[dict[str, Any]]:
    """Labels of each deciding scorer, kind of answer and verdict, and how probably it is right."""
    counts: Counter[tuple[str, Kind, str]] = Counter()
    for (_, scorer, kind, outcome, _), n in cells.items():
        counts[scorer, kind, outcome] += n * every
    return [
        {"scorer": scorer, **kind._asdict(), "verdict": outcome, "labels": n}
        | {"p_correct": p_correct(scorer, outcome, kind)}
        for (scorer, kind, outcome), n in sorted(counts.items())
    ]


def _corrected(cells: Counter[_Cell]) -> dict[str, list[float]]:
    """Model → [labelled, corrected, low, high]; kinds with the same rates are corrected as one."""
    groups: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for (model, scorer, kind, outcome, correct), n in cells.items():
        counts = groups[model, scorer, rates(scorer, kind)]
        counts[0] += n * correct
        counts[1] += n
        counts[2] += outcome == "abstain"
    parts: dict[str, list[tuple[int, int, Corrected | None]]] = defaultdict(list)
    for (model, _, result), (right, n, abstained) in groups.items():
        measured = result.with_abstentions if result and abstained else result
        parts[model].append((n, right, corrected_accuracy(right, n, measured)))
    out = {}
    for model, done in sorted(parts.items()):
        total = sum(n for n, _, _ in done)
        if all(item is not None for _, _, item in done):
            mean = sum(n * item.accuracy for n, _, item in done if item) / total
            half = math.sqrt(sum((n * (ci.high - ci.low) / 2) ** 2 for n, _, ci in done if ci))
            labelled = sum(right for _, right, _ in done) / total
            bounds = (max(0.0, mean - half / total), min(1.0, mean + half / total))
            out[model] = [round(value, 5) for value in (labelled, mean, *bounds)]
    return out


def _cells(queries: pa.Table, responses: pa.Table, labels: pa.Table, every: int) -> Iterator[_Cell]:
    columns = (queries.column(name).to_pylist() for name in ("scorer", "references", "choices"))
    ids = queries.column("query_id").to_pylist()
    asked = dict(zip(ids, zip(*columns, strict=True), strict=True))
    decided = {
        (query, model): (by, correct)
        for query, model, by, correct in _rows(labels, ["decided_by", "correct"], every)
        if correct is not None and by
    }
    for query, model, text in _rows(responses, ["text"], every):
        by, correct = decided.pop((query, model), (GIVEN, False))
        if text is None or by == GIVEN or by.startswith("human:"):
            continue
        scorer, references, choices = asked[query]
        unread = by == UNREADABLE or by in NO_CREDIT
        scorer = scorer if unread else by
        verdict = "abstain" if unread else "correct" if correct else "incorrect"
        yield (
            model,
            scorer,
            kind_of(scorer, references or [], choices or [], text),
            verdict,
            correct,
        )


def _rows(table: pa.Table, columns: list[str], every: int) -> Iterator[tuple[Any, ...]]:
    """(query_id, model_id, columns) of every k-th pair, by a hash of its ids."""
    for batch in table.select(["query_id", "model_id", *columns]).to_batches(10_000):
        if every > 1:
            pairs = zip(*(batch.column(k).to_pylist() for k in range(2)), strict=True)
            batch = batch.filter(
                pa.array([not crc32(f"{q} {m}".encode()) % every for q, m in pairs])
            )
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
