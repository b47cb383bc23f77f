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

A program that imports a module which neither Python nor `label.code_modules` provides is
`incorrect`; `error` where the question's own code imports it, too, and this machine lacks it.

The program and its tests run in two processes of a jail (`isolation.jail`): nothing the
program prints, patches, returns or exits with can replace a result. Where
the kernel offers no isolation, this refuses unless the run's option
`run_code_without_isolation` accepts the risk.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from routeyard.pipelines.common.errors import BadInput, Unsafe
from routeyard.pipelines.common.isolation.jail.host import NoIsolation, ProgramLimits, run
from routeyard.pipelines.label.scorers.reading import opening_of, thinking, without_closers
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

#: Name of the option (recipe: `label.run_code_without_isolation`).
OPTION = "run_code_without_isolation"
#: Name of the option that lists the third-party modules programs may import.
MODULES = "code_modules"
#: A looping output repeats its block thousands of times; the last ones are as good.
MOST_BLOCKS = 100
#: A longer text is read as no program.
LONGEST = 200_000
#: A fence may stand in a list or a quotation, behind tags, or (with its language) behind words.
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:>|[-*+]|\d{1,3}[.)])[ \t]*)*)(?P<words>[^`~\n]{0,300})"
    r"(?P<ticks>```+|~~~+)[ \t]*(?P<language>[A-Za-z0-9+_.-]{0,20})[^`\n]{0,100}$",
    re.M,
)
_TAGS = re.compile(r"(?:\s|</?[|\w:]{1,30}>|\[/?[A-Za-z]{1,12}\])*")
#: Fences within a program (in its texts) that may come before the one that closes it.
_MOST_WITHIN = 8
#: What base models write after the answer is done.
_RUN_ON = re.compile(r"\n(?=(?:class |def |#|@|if __name__|print\(|assert |import |from |```))")


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """`correct` when every test holds; `abstain` when there is no program.

    A block that is marked as Python and cannot be parsed is a program, and wrong.
    """
    entry = _entry(asked)
    kind = _kind(asked)
    prompt = _prompt(asked)
    value = _program(output, prompt, entry, whole=kind != "check")
    if value is None:
        if broken := _broken(output, truncated=asked.truncated):
            says = "the program is no Python: it cannot be parsed"
            return ScoreResult.of(False, output[slice(*broken)], broken, says)
        return ScoreResult("abstain", reason="no program in the output")
    program, span = value
    job: dict[str, Any] = {"kind": kind, "program": program, "entry_point": entry}
    own = [prompt]
    if kind in ("check", "asserts"):
        setup = str(asked.metadata.get("test_setup") or (prompt if kind == "check" else ""))
        job |= {"setup": setup, "tests": list(asked.references)}
        own += [setup, *asked.references]
    else:
        try:
            job["cases"] = [case for text in asked.references for case in _cases(text, kind)]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            said = f"{type(error).__name__}: {error}"[:200]
            return ScoreResult("error", reason=f"the question's tests are not in form: {said}")
        job["tolerance"] = asked.metadata.get("float_tolerance")
        job["any_order"] = asked.metadata.get("any_order") is True
    job["needs"] = sorted(_imported(own))
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
    if result.fault:
        return ScoreResult("error", reason=result.fault)
    return ScoreResult.of(result.passed, output[slice(*span)], span, result.reason)


def _imported(texts: list[str]) -> set[str]:
    """Top-level names of the modules that a question's own code imports."""
    results: set[str] = set()
    for text in filter(_parses, texts):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                results |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                results.add(node.module.partition(".")[0])
    return results


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
    match = re.search(r'"fn_name"\s*:\s*"(\w+)"', "".join(asked.references[:1]))
    return str(next(filter(None, named), match[1] if match else ""))


def _prompt(asked: ScoringInput) -> str:
    """The code a completion continues; empty when the question is prose."""
    prompt = str(asked.metadata.get("prompt") or asked.question)
    return prompt if "def " in prompt and _parses(prompt) else ""


def _program(
    output: str, prompt: str, entry: str, *, whole: bool
) -> tuple[str, tuple[int, int]] | None:
    """The program, and its span in the output; not one within finished thinking."""
    defining = re.compile(rf"^[ \t]{{0,8}}(?:async )?def {re.escape(entry)}\b", re.M)
    blocks = _blocks(output, prompt)
    # Tags in an output that is a program as it is are texts of the program.
    alone = not blocks and (_parses(output) or (prompt and _parses(prompt + output)))
    thoughts = [(0, 0)] if alone else _thoughts(output, blocks)
    good = [block for block in blocks if not any(a <= block[1][0] < b for a, b in thoughts)]
    # The last block that defines what was asked for; a usage example may follow it.
    if best := [item for item in good if entry and defining.search(item[0])]:
        return f"{prompt}\n{best[-1][0]}", best[-1][1]
    floor = max(end for _, end in thoughts)
    text = output[floor:].rstrip()
    if entry and defining.search(text) and (end := _longest(text, "")):
        return f"{prompt}\n{text[:end]}", (floor, floor + end)
    if good:
        program, span = good[-1] if entry else max(good, key=lambda item: len(item[0]))
        return f"{prompt}\n{program}", span
    end = _unfenced(text, prompt, entry, whole)
    program = ("" if whole else prompt) + text[:end]
    return (program, (floor, floor + end)) if end else None


def _broken(output: str, *, truncated: bool) -> tuple[int, int] | None:
    """Span of the last block marked as Python that cannot be parsed; none within thinking.

    What a token limit cut off, or a session (`>>> f(1)`), is no program.
    """
    fences = list(_FENCE.finditer(output))[-2 * MOST_BLOCKS :]
    thoughts = _thoughts(output, [])
    for at, fence in reversed(list(enumerate(fences))):
        if not re.fullmatch(r"py(thon)?[\d.]*", fence["language"], re.I):
            continue
        closed = at + 1 < len(fences)
        span = (fence.end() + 1, fences[at + 1].start() if closed else len(output))
        body = output[slice(*span)].strip()
        thought = any(a <= span[0] < b for a, b in thoughts)
        if thought or not body or body.startswith(">>>") or (truncated and not closed):
            continue
        if not _parses(dedent(body)):
            return span
    return None


def _unfenced(text: str, prompt: str, entry: str, whole: bool) -> int:
    """How much of a text is a script, or the rest of the function that the prompt begins."""
    if not _is_program(text):
        return 0
    if whole:
        return len(text) if not entry and _parses(text) else 0
    return _longest(text, prompt) if prompt else 0


def _blocks(output: str, prompt: str) -> list[tuple[str, tuple[int, int]]]:
    """Fenced programs without the indentation of their fences, and their spans.

    Only what parses is a block: a fence that was left open, or only closes, does not change how
    those behind it are paired. An unclosed last block ends with the output.
    """
    blocks, done = [], 0
    fences = list(_FENCE.finditer(output))[-2 * MOST_BLOCKS :]
    if fences and not fences[0]["language"]:  # may close a program that the prompt's fence opened
        stop = fences[0].start()
        start = max((end for _, _, (_, end) in thinking(output, 0, stop)), default=0)
        if stop - start <= LONGEST and (program := _unindented(output[start:stop], "", prompt)):
            blocks, done = [(program, (start, stop))], fences[0].end()
    for at, fence in enumerate(fences):
        language, start = fence["language"].lower(), fence.end() + 1
        if fence.start("ticks") < done:
            continue
        if language and not language.startswith("py"):
            if at + 1 < len(fences) and not fences[at + 1]["language"]:
                done = fences[at + 1].end()
            continue
        if not language and not _TAGS.fullmatch(fence["words"]):
            continue  # closes a line of a program
        for end, opens in _ends(output, start, fences[at + 1 : at + 1 + _MOST_WITHIN]):
            stop = without_closers(output, start, start + len(output[start:end].rstrip()))
            stop = stop if output[stop:end].strip() else end
            if program := _unindented(output[start:stop], fence["indent"], prompt):
                blocks.append((program, (start, stop)))
                # A tag between ends thinking within which the fence was left open.
                done = end + 3 if stop == end and not opens else stop
                break
    return blocks


def _ends(output: str, start: int, fences: list[re.Match[str]]) -> Iterator[tuple[int, bool]]:
    """Where a program that begins at `start` may end, and whether what ends it opens a block.

    At the next fence, at a later one where the program has a text that holds fences, or at the end
    of the output; else at a fence on the program's last line.
    """
    own = [item for item in fences if _TAGS.fullmatch(item["words"])]
    for end, opens in (
        *((item.start("ticks"), bool(item["language"])) for item in own),
        (len(output), False),
    ):
        if end - start > LONGEST:
            return
        yield end, opens
        if not any(output.count(quotes, start, end) % 2 for quotes in ('"""', "'''")):
            break
    for fence in fences:
        if fence not in own and not fence["language"]:
            yield fence.start("ticks"), False


def _unindented(body: str, indent: str, prompt: str) -> str:
    """A program as it was before a list or a quotation indented it; empty for no program."""
    signs = r"[ \t>]" if ">" in indent else r"[ \t]"
    stripped = re.sub(rf"^{signs}{{1,{len(indent)}}}", "", body, flags=re.M) if indent else body
    for text in dict.fromkeys((stripped, body, dedent(body))):
        if _is_program(text) and _parses(f"{prompt}\n{text}"):
            return text
    return ""


def _thoughts(output: str, blocks: list[tuple[str, tuple[int, int]]]) -> list[tuple[int, int]]:
    """Spans of finished thinking; a tag in the text of a program ends none."""
    spans, since = [(0, opening_of(output, len(output)))], 0
    opened: dict[str, int] = {}
    for start, stop in (*(span for _, span in blocks), (len(output), 0)):
        for name, closes, (first, last) in thinking(output, since, start):
            if not closes:
                opened.setdefault(name, first)
            elif opened or len(spans) == 1:
                # Templates may open the block before the output begins.
                begun = opened.get(name, min(opened.values(), default=0))
                spans.append((begun, last))
                opened = {item: at for item, at in opened.items() if at < begun}
        since = stop
    return spans


def _longest(text: str, before: str) -> int:
    """How much of `text` is a program, cut where a base model ran on; 0 for none."""
    if _parses(before + text):
        return len(text)
    cuts = [match.start() for match in _RUN_ON.finditer(text)][:50]
    return next((cut for cut in reversed(cuts) if _parses(before + text[:cut])), 0)


def _is_program(text: str) -> bool:
    """Not merely a word that happens to parse, such as `None`; the rest of a function is one."""
    if not _parses(text := dedent(text)):
        return bool(text.strip())  # its other lines are indented
    body = ast.parse(text).body
    return any(not isinstance(s, ast.Expr) or isinstance(s.value, ast.Call) for s in body)


def _parses(text: str) -> bool:
    if len(text) > LONGEST:
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
            return [{"arguments": list(inputs), "value": out} for inputs, out in pairs]
        return [{"input": _text(inputs), "output": _text(out)} for inputs, out in pairs]
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
    "7",
    read,
    instruction=(
        "Reply with one complete Python program or function in a single fenced code block, "
        "imports included and without tests or example calls."
    ),
    equates=False,  # equal results on some inputs do not make two programs one answer
)
