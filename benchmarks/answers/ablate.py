"""What each rule of the scorers earns: verdicts that change without it, and how many it has right.

A rule is an expression of `patterns/*.yaml` or a function of the scorers that finds something
(returns a bool, a text, a list, or None). Switched off, the expression never matches and the
function finds nothing. A first pass notes which rules find something in which answer; each rule
is then switched off for those answers alone. Sets with verdicts of people, graders and upstream
rules come from ROUTEYARD_DATA; the invented answers are those of `tests/scorers`, where a verdict
that is neither right nor open is silently wrong.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.answers.judged import Judged, judged
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import DATA_HINT
from routeyard.pipelines.label import scorers
from routeyard.pipelines.label.scorers import SCORERS, symbolic
from routeyard.pipelines.label.scorers.patterns import Patterns
from routeyard.pipelines.label.scorers.scorer import ScoringInput

#: Set → scorer, and answers that are read at most.
SETS = {
    "evouna_nq": ("contains", 4000), "gaokao_mcq": ("mcq", 700), "theoremqa": ("auto", 1600),
    "mathvista": ("auto", 2000), "crux": ("literal", 2000), "mint": ("auto", 2000),
    "gsm8k": ("numeric", 4000), "mmlu_pro": ("mcq", 4000),
}  # fmt: skip
#: Scorers' modules whose functions are no rules of reading.
_NO_RULES = ("code", "bartscore", "meteor", "score_answers", "symbolic", "latex_equality")
_NOTHING: dict[str, Any] = {"bool": False, "str": "", "None": None, "list": [], "tuple": ()}
#: Answers for which one rule is switched off at most.
_MOST = 1500


class Row(NamedTuple):
    set: str
    scorer: str
    asked: ScoringInput
    output: str
    #: Verdicts that are right; any other but `abstain` is wrong.
    right: str


class Rule:
    """An expression or a function in place of another, which notes what it finds."""

    off: frozenset[str] = frozenset()
    seen: set[str] = set()  # noqa: RUF012

    def __init__(self, name: str, own: Any, nothing: Any = None) -> None:
        self.name, self.own, self.nothing = name, own, nothing

    def __call__(self, *args: Any, **named: Any) -> Any:
        if self.name in Rule.off:
            return [] if self.nothing == [] else self.nothing
        result = self.own(*args, **named)
        if result:
            Rule.seen.add(self.name)
        return result

    def __getattr__(self, key: str) -> Any:
        """The same of the methods of an expression."""
        value = getattr(self.own, key)
        nothing: Any = {"finditer": (), "findall": []}.get(key)
        return Rule(self.name, value, nothing) if key in _METHODS else value

    def sub(self, replacement: Any, text: str, count: int = 0) -> str:
        return str(text if self.name in Rule.off else self.own.sub(replacement, text, count))

    def split(self, text: str, maxsplit: int = 0) -> list[Any]:
        return [text] if self.name in Rule.off else list(self.own.split(text, maxsplit))


_METHODS = ("search", "match", "fullmatch", "finditer", "findall")


def put_rules() -> Callable[[], None]:
    """Puts a `Rule` in place of each rule; returns what empties all caches."""
    folder = Path(scorers.__file__).parent
    names = [path.stem for path in sorted(folder.glob("*.py")) if path.stem not in _NO_RULES]
    modules = [importlib.import_module(f"{scorers.__name__}.{name}") for name in names[1:]]
    caches, rules = [], {}
    for module in modules:
        for key, value in vars(module).items():
            own = getattr(value, "__wrapped__", value)
            if hasattr(value, "cache_clear"):
                caches.append(value.cache_clear)
            name = f"{module.__name__.rpartition('.')[2]}.{key}"
            if isinstance(value, Patterns):
                for item in value.pieces if "parts" not in value.pieces else ():
                    value[item] = Rule(f"{name}[{item}]", value[item])  # type: ignore[assignment]
            elif isinstance(value, re.Pattern):
                rules[id(value)] = Rule(name, value)
            elif inspect.isfunction(own) and own.__module__ == module.__name__:
                parts = re.findall(r"bool$|str$|None$|^list|^tuple", own.__annotations__["return"])
                if parts and key != "read":
                    rules[id(value)] = Rule(name, value, _NOTHING[parts[-1]])
    for module in modules:
        for key, value in list(vars(module).items()):
            if id(value) in rules:
                setattr(module, key, rules[id(value)])

    def clear() -> None:
        for cache in caches:
            cache()

    return clear


def answers(data: Path) -> Iterator[Row]:
    """All answers that are read, the invented ones last."""
    from tests.scorers import case_files
    from tests.scorers.test_contrasts import KINDS, TEXTS
    from tests.scorers.test_told import TOLD

    for name, (scorer, most) in SETS.items():
        rows = list(_mmlu_pro(data, most) if name == "mmlu_pro" else judged(data, name))
        for row in random.Random(7).sample(rows, min(most, len(rows))):
            yield Row(name, scorer, row.asked, row.output, "correct" if row.right else "incorrect")
    for scorer, right, wrong, question, choices, text in TOLD:
        options = tuple(choices.split(";; ")) if choices else ()
        for one in filter(None, [right, *wrong.split(";; ")]):
            asked = ScoringInput(question.replace("⏎", "\n"), (one,), options)
            wanted = "correct" if one == right else "incorrect"
            yield Row("invented", scorer, asked, text.replace("⏎", "\n"), wanted)
    for scorer, right, wrong, known in KINDS:
        for _, text in TEXTS if scorer != "literal" else ():
            output = text.replace("{A}", right).replace("{W}", wrong)
            for one, wanted in ((right, "correct"), (wrong, "incorrect")):
                yield Row(
                    "invented", scorer, ScoringInput("Which one?", (one,), known), output, wanted
                )
    for case in case_files.cases():
        if case.wanted in ("correct", "incorrect", "abstain"):
            yield Row("invented", case.scorer, case.asked, case.output, case.wanted)


def _mmlu_pro(data: Path, most: int) -> Iterator[Judged]:
    import pandas as pd

    queries: Any = pd.read_parquet(data / "mmlu_pro" / "queries.parquet")
    queries = queries.set_index("question_id")
    texts: Any = pd.read_parquet(data / "mmlu_pro" / "responses.parquet")
    texts = texts.sample(most, random_state=7)
    for row in texts.itertuples():
        query = queries.loc[row.question_id]
        asked = ScoringInput(query.question, (row.answer_in_run,), tuple(query.options))
        yield Judged(str(row.model), asked, row.output or "", row.pred == row.answer_in_run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="rules whose name holds this text")
    parser.add_argument("--group", action="append", default=[], help="RULE,RULE: off together")
    parser.add_argument("--share", type=float, default=1.0, help="of the answers of each set")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = os.environ.get("ROUTEYARD_DATA")
    if not folder:
        raise SourceError("ROUTEYARD_DATA is not set", next_step=DATA_HINT)
    chosen = random.Random(7)
    rows = [row for row in answers(Path(folder)) if chosen.random() < arguments.share]
    clear = put_rules()
    found: dict[str, list[int]] = defaultdict(list)
    with_it: list[str] = []
    for place, row in enumerate(rows):
        clear()
        Rule.seen = set()
        with_it.append(_outcome(row))
        for name in Rule.seen:
            found[name].append(place)
    groups = [tuple(group.split(",")) for group in arguments.group]
    groups += [(name,) for name in sorted(found) if not groups and arguments.only in name]
    table = {}
    for group in groups:
        Rule.off = frozenset(group)
        places = sorted({place for name in group for place in found.get(name, ())})
        tried = sorted(random.Random(7).sample(places, min(_MOST, len(places))))
        counts: Counter[str] = Counter()
        silent: list[str] = []
        for place in tried:
            clear()
            row, before = rows[place], with_it[place]
            if (after := _outcome(row)) != before:
                better = _worth(before, row.right) > _worth(after, row.right)
                counts[f"{row.set}: {'right' if better else 'wrong'} with it"] += 1
                if row.set == "invented" and _worth(after, row.right) < 0 <= _worth(
                    before, row.right
                ):
                    silent.append(f"{row.scorer}: {row.output[:80]!r}")
        Rule.off = frozenset()
        table["+".join(group)] = {"finds": len(places), "tried": len(tried), **counts} | (
            {"silently wrong without it": len(silent), "first": silent[:3]} if silent else {}
        )
    symbolic.close()
    return {"answers": len(rows), "rules": table}


def _outcome(row: Row) -> str:
    try:
        return str(SCORERS.get(row.scorer).score(row.asked, row.output).outcome)
    except (AttributeError, TypeError, ValueError, IndexError, KeyError, StopIteration):
        return "error"


def _worth(outcome: str, right: str) -> int:
    return 1 if outcome == right else 0 if outcome in ("abstain", "error") else -1
