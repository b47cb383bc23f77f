"""What is wrong with a recipe, in words: line of the file, name of the source, what to write.

    for fault in faults("my.yaml"):    # all of them at once
        print(fault)

`routeyard.flows.recipe.load` stops at the first fault and words it in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from routeyard.schemas.errors import BadInput, did_you_mean

#: Words for patterns of the schema, for entries of its lists and for kinds of faults.
_WORDS = yaml.safe_load(Path(__file__).with_name("recipe_words.yaml").read_text(encoding="utf-8"))

Place = tuple[str | int, ...]
#: Place of a recipe's key, what is wrong, and the next step.
Finding = tuple[Place, str, str]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `place` is its path of keys, `line` counts from 1 (0: not known)."""

    file: str
    line: int
    place: str
    says: str
    next: str = ""

    def __str__(self) -> str:
        at = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{at}: {self.place}: {self.says}"
        return f"{text}\n  next:  {self.next}" if self.next else text


def finding(place: Place, error: BadInput, *, where: bool = False) -> Finding:
    """An error at a place of the recipe; with `where`, its text names its own place too."""
    says = f"{error.what} ({error.where})" if where and error.where else error.what
    return place, says, error.next_step or ""


def of_findings(findings: Iterable[Finding], path: Path, content: Any) -> list[Fault]:
    """Findings with their lines and the names of their entries."""
    lines = _KeyLines(path)
    return [
        Fault(str(path), lines.of(place), words_of(place, content), says, then)
        for place, says, then in findings
    ]


def of_validation(error: ValidationError, path: Path, content: Any) -> list[Fault]:
    """The faults that pydantic found, in the order of the file."""
    problems = error.errors(include_url=False)
    found = [(_real(one["loc"], content), in_words(one), "") for one in problems]
    return sorted(of_findings(found, path, content), key=lambda fault: fault.line)


def names(content: Mapping[str, Any]) -> Iterator[tuple[Place, BadInput]]:
    """Rules, scorers and gates that do not exist, and parameters that a rule does not have."""
    from routeyard.pipelines.curate import RULES
    from routeyard.pipelines.metering.audit import check_gate
    from routeyard.pipelines.scorers import SCORERS

    def rule(entry: dict[str, Any]) -> None:
        parameters = entry.get("parameters")
        if not isinstance(parameters, dict):
            parameters = {k: v for k, v in entry.items() if k != "rule"}
        RULES.get(entry["rule"]).check(parameters, where="curate")

    release = content.get("release")
    checks: list[tuple[Place, str, Callable[[dict[str, Any]], Any], Sequence[dict[str, Any]]]] = [
        (("curate",), "rule", rule, entries(content, "curate")),
        (("sources",), "scorer", lambda one: SCORERS.get(one["scorer"]), _scored(content)),
        (
            ("release", "waivers"),
            "gate",
            lambda one: check_gate(one["gate"]),
            entries(release, "waivers") if isinstance(release, dict) else [],
        ),
    ]
    for place, key, check, listed in checks:
        for number, entry in enumerate(listed):
            if not isinstance(entry.get(key), str):
                continue
            try:
                check(entry)
            except BadInput as error:
                yield (*place, number, *([key] if key == "scorer" else [])), error


def _scored(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one if one.get("scorer") != "none" else {} for one in entries(content, "sources")]


def entries(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The entries of a list of a recipe; empty ones for those that are no mappings."""
    listed = content.get(key)
    if not isinstance(listed, list):
        return []
    return [one if isinstance(one, dict) else {} for one in listed]


def in_words(problem: Mapping[str, Any]) -> str:
    """One problem of pydantic as a sentence without its vocabulary."""
    kind, given, told = problem["type"], problem.get("input"), problem.get("ctx") or {}
    shown = repr(given)[:60]
    if kind == "missing":
        return f"{problem['loc'][-1]!r} is missing"
    if kind == "string_pattern_mismatch":
        pattern = str(told.get("pattern"))
        return (
            f"{shown} does not fit: {_WORDS['patterns'].get(pattern, 'other signs are expected')}"
        )
    if kind == "literal_error":
        choices = str(told.get("expected", "")).replace("'", "").replace(" or ", ", ").split(", ")
        return f"{shown} is not known; {did_you_mean(str(given), choices)}"
    if kind in _WORDS["kinds"]:
        return f"{_WORDS['kinds'][kind]}, not {shown}"
    if kind == "too_short":
        return "at least one entry is needed"
    limits = {"greater_than_equal": ("ge", "at least"), "greater_than": ("gt", "more than"),
              "less_than_equal": ("le", "at most"), "less_than": ("lt", "less than")}  # fmt: skip
    if kind in limits:
        key, word = limits[kind]
        return f"{shown} does not fit: {word} {told.get(key)}"
    if kind == "string_too_short":
        return f"{shown} is too short: at least {told.get('min_length')} characters"
    return str(problem["msg"]).removeprefix("Value error, ")


def words_of(place: Sequence[str | int], content: Any) -> str:
    """`source 'gsm8k', fields.question` for `sources.0.fields.question`."""
    names: list[str] = []
    keys: list[str] = []
    here, last = content, ""
    for part in place:
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            here = None
        if isinstance(part, int) and last in _WORDS["entries"]:
            what, key = _WORDS["entries"][last]
            named = here.get(key) if isinstance(here, dict) else None
            names.append(f"{what} {named!r}" if named else f"{what} number {part + 1}")
            keys = []
        else:
            keys.append(str(part))
        last = str(part)
    return ", ".join([*names, ".".join(keys)]).strip(", ") or "recipe"


class _KeyLines:
    """Lines of the keys of one YAML file."""

    def __init__(self, path: Path):
        try:
            self._root: yaml.Node | None = yaml.compose(
                path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader
            )
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            self._root = None

    def of(self, place: Sequence[str | int]) -> int:
        node, line = self._root, 1 if self._root is not None else 0
        for part in place:
            found = _step(node, part)
            if found is None:
                break
            key, node = found
            line = key.start_mark.line + 1
        return line


def _step(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == str(part):
                return key, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _real(place: Sequence[str | int], content: Any) -> Place:
    """A place without the parts that pydantic adds for the branches of a union."""
    kept: list[str | int] = []
    here = content
    for number, part in enumerate(place):
        inside = (isinstance(here, dict) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        )
        if inside:
            here = here[part]
            kept.append(part)
        elif number == len(place) - 1 and isinstance(here, dict):
            kept.append(part)
    return tuple(kept)
