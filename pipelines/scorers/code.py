"""`code`: runs the program in an output against the question's unit tests.

What a query carries:

* `references`: the tests. HumanEval: one text with `def check(candidate)`;
  MBPP: assert statements; LiveCodeBench: JSON lists of `{"input", "output"}`;
  APPS: JSON objects of `inputs` and `outputs`, with `fn_name` for functions.
* `metadata`: `entry_point` (or `func_name`), and, where they exist, `prompt` (the
  code the question starts with; else the question itself is tried), `test_setup`
  (code the asserts need), `float_tolerance` and `any_order` where the task allows
  for either, and `test_kind` (`check`, `asserts`, `functional`,
  `stdio`), which otherwise follows from the tests.

The program and its tests run in two processes of a jail (`isolation.jail`): nothing the
program prints, patches, returns or exits with can replace a result. Where
the kernel offers no isolation, this refuses unless the run's option
`run_code_without_isolation` accepts the risk.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from routeyard.pipelines.errors import BadInput, Unsafe
from routeyard.pipelines.isolation.jail.host import NoIsolation, ProgramLimits, run
from routeyard.pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput

#: Name of the option (recipe: `label.run_code_without_isolation`).
OPTION = "run_code_without_isolation"
#: Name of the option that lists the third-party modules programs may import.
MODULES = "code_modules"
#: A looping output repeats its block thousands of times; the last ones are as good.
MOST_BLOCKS = 100
_FENCE = re.compile(r"^[ \t]{0,3}(?:```+|~~~+)[ \t]*([A-Za-z0-9+_.-]{0,20})[^\n]{0,100}$", re.M)
_PYTHON = frozenset({"", "python", "py", "python3"})
#: What base models write after the answer is done.
_RUN_ON = re.compile(r"\n(?=(?:class |def |#|@|if __name__|print\(|assert |import |from |```))")


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """`correct` when every test holds; `abstain` when there is no program."""
    entry = _entry(asked)
    kind = _kind(asked)
    prompt = _prompt(asked)
    found = _program(output, prompt, entry, whole=kind != "check")
    if found is None:
        return ScoreResult("abstain", reason="no program in the output")
    program, span = found
    job: dict[str, Any] = {"kind": kind, "program": program, "entry_point": entry}
    if kind in ("check", "asserts"):
        setup = str(asked.metadata.get("test_setup") or (prompt if kind == "check" else ""))
        job |= {"setup": setup, "tests": list(asked.references)}
    else:
        try:
            job["cases"] = [case for text in asked.references for case in _cases(text, kind)]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            said = f"{type(error).__name__}: {error}"[:200]
            return ScoreResult("error", reason=f"the question's tests are not in form: {said}")
        job["tolerance"] = asked.metadata.get("float_tolerance")
        job["any_order"] = asked.metadata.get("any_order") is True
    try:
        result = run(
            job,
            _limits(asked),
            without_isolation=asked.options.get(OPTION) is True,
            modules=_modules(asked),
        )
    except NoIsolation as refused:
        raise Unsafe(
            "the scorer `code` runs programs that models wrote, and this machine offers no "
            f"isolation for them ({refused})",
            next_step="allow unprivileged user namespaces, run as root, or accept the risk with "
            f"`label: {{{OPTION}: true}}` in the recipe",
        ) from refused
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the programs may use {error.name!r} (`label.{MODULES}`), which is not installed here",
            next_step=f"pip install {error.name}, or take it off the list",
        ) from error
    if result.missing is not None:
        return ScoreResult("error", reason=f"needs {result.missing}")
    return ScoreResult.of(result.passed, output[slice(*span)], span, result.reason)


def _kind(asked: ScoringInput) -> str:
    named = asked.metadata.get("test_kind")
    if named in ("check", "asserts", "functional", "stdio"):
        return str(named)
    first = asked.references[0] if asked.references else ""
    if "def check(" in first:
        return "check"
    if first.lstrip().startswith(("[", "{")):
        return "functional" if _entry(asked) else "stdio"
    return "asserts"


def _entry(asked: ScoringInput) -> str:
    """Name of the function asked for; APPS holds it among the tests."""
    named = (asked.metadata.get(key) for key in ("entry_point", "func_name", "fn_name"))
    found = re.search(r'"fn_name"\s*:\s*"(\w+)"', "".join(asked.references[:1]))
    return str(next(filter(None, named), found[1] if found else ""))


def _prompt(asked: ScoringInput) -> str:
    """The code a completion continues; empty when the question is prose."""
    prompt = str(asked.metadata.get("prompt") or asked.question)
    return prompt if "def " in prompt and _parses(prompt) else ""


def _program(
    output: str, prompt: str, entry: str, *, whole: bool
) -> tuple[str, tuple[int, int]] | None:
    """The program, and its span in the output."""
    defining = re.compile(rf"^[ \t]{{0,8}}(?:async )?def {re.escape(entry)}\b", re.M)
    # The last block that defines what was asked for; a usage example may follow it.
    blocks = _blocks(output)[-MOST_BLOCKS:]
    good = [span for span in blocks if _parses(prompt + "\n" + output[slice(*span)])]
    if best := [s for s in good if entry and defining.search(output, *s)] or good:
        span = best[-1] if entry else max(best, key=lambda s: s[1] - s[0])
        return f"{prompt}\n{output[slice(*span)]}", span
    text = output.rstrip()
    if not text:
        return None
    if entry and defining.search(text) and (end := _longest(text, "")):
        return f"{prompt}\n{text[:end]}", (0, end)
    if not whole and prompt and (end := _longest(text, prompt)):
        # The rest of the function that the prompt begins.
        return prompt + text[:end], (0, end)
    if whole and not entry and _parses(text) and _is_script(text):
        return text, (0, len(text))
    return None


def _blocks(output: str) -> list[tuple[int, int]]:
    """Spans of fenced Python blocks; an unclosed last one runs to the end."""
    spans, start, python = [], -1, False
    for fence in _FENCE.finditer(output):
        if start < 0:
            start, python = fence.end() + 1, fence[1].lower() in _PYTHON
        else:
            if python:
                spans.append((start, fence.start()))
            start = -1
    if start >= 0 and python and start < len(output):
        spans.append((start, len(output)))
    return spans


def _longest(text: str, before: str) -> int:
    """How much of `text` is a program, cut where a base model ran on; 0 for none."""
    if _parses(before + text):
        return len(text)
    cuts = [match.start() for match in _RUN_ON.finditer(text)][:50]
    return next((cut for cut in reversed(cuts) if _parses(before + text[:cut])), 0)


def _is_script(text: str) -> bool:
    """Not merely a sentence that happens to parse, such as `None`."""
    body = ast.parse(text).body
    return any(not isinstance(s, ast.Expr) or isinstance(s.value, ast.Call) for s in body)


def _parses(text: str) -> bool:
    if len(text) > 200_000:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _cases(text: str, kind: str) -> list[dict[str, Any]]:
    """Cases of LiveCodeBench (`input`, `output`) or APPS (`inputs`, `outputs`)."""
    loaded = json.loads(text)
    if isinstance(loaded, dict) and "inputs" in loaded:
        pairs = zip(loaded["inputs"], loaded["outputs"], strict=True)
        if kind == "functional":
            return [{"arguments": list(given), "value": out} for given, out in pairs]
        return [{"input": _text(given), "output": _text(out)} for given, out in pairs]
    cases = loaded if isinstance(loaded, list) else [loaded]
    return [{"input": str(case["input"]), "output": str(case["output"])} for case in cases]


def _text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _modules(asked: ScoringInput) -> tuple[str, ...]:
    named = asked.options.get(MODULES)
    return tuple(sorted(map(str, named))) if isinstance(named, list | tuple) else ()


def _limits(asked: ScoringInput) -> ProgramLimits:
    cpu = asked.options.get("code_cpu_s")
    return (
        ProgramLimits(cpu_s=int(cpu), wall_s=3.0 * cpu) if isinstance(cpu, int) else ProgramLimits()
    )


SCORER = Scorer(
    "code",
    "5",
    read,
    instruction=(
        "Reply with one complete Python program or function in a single fenced code block, "
        "imports included and without tests or example calls."
    ),
    equates=False,  # equal results on some inputs do not make two programs one answer
)
