"""`numeric`: the output's last committed answer, read as one number.

What counts as a commitment is listed in `committed`; without one, the number
of the concluding sentence is taken, provided the output was not cut off.
Comparison is exact, over rationals:

- integers and decimals must be equal (`18.0` is 18, `18.4` is not);
- a repeating fraction agrees with its decimal rounded or cut to three or more
  significant digits (1/3 and 0.333), in either direction;
- `metadata["tolerance"]` (relative) or `metadata["absolute_tolerance"]` of a
  query widens this, both inclusive;
- units and currencies are not compared; a missing percent sign is forgiven
  where the question asks for a percentage or the number exceeds 1, and never
  lets 0.5 pass for 0.5 %.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from pipelines.scorers.answers.commitment import Committed, committed
from pipelines.scorers.answers.number_words import spoken
from pipelines.scorers.answers.plain import amount
from pipelines.scorers.answers.quantity import Found, Quantity, plain, scan
from pipelines.scorers.answers.run_on import end_of_answer
from pipelines.scorers.scorer import Asked, Reading, Scorer

CORRECTION = re.compile(
    r"\b(?:wait|actually|sorry|apolog\w+|mistake\w*|correction|correct(?:ed|ing)|error|incorrect\w*|"
    r"re-?(?:check|calculat|evaluat|consider|comput|examin|vis|do)\w*|instead|let me|let's|however|"
    r"upon|should be|misunder\w+|misread\w*|mis-?calculat\w*|clarif\w+|adjust\w*|revis\w+)\b",
    re.IGNORECASE,
)
# "Ms. Thompson" does not end a sentence.
_SENTENCE = re.compile(
    r"(?<!\bM[rs]\.)(?<!\bMrs\.)(?<!\bDr\.)(?<=[a-z0-9%)][.!?])\s{1,4}(?=[A-Z\"'*$(\\])"
    r"|\n|(?:\\n)|;\s"
)
# Words that make a number a circumstance ("for $1", "if you use 1 pod", "out of 20")
# unless a verb of result stands between ("of both cars is $160").
_SUBORDINATE = re.compile(
    r"\b(?:if|when|because|since|as|while|where|which|whereas|compared|vs|versus)\b", re.IGNORECASE
)
_GOVERNED = re.compile(
    r"\b(?:to|by|for|out of|after|with|per|than|at|in|from|before|over|within|during|every|each|of|"
    r"vs)\b(?!.*\b(?:is|are|was|were|be|equals?|has|have|makes|gets|costs|needs|spends|spent|"
    r"earns|earned|paid|pays|left with|total of)\b)"
    r"|\b(?:the|these|those|his|her|their|its|my)\s{1,3}$",
    re.IGNORECASE | re.DOTALL,
)
_CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|so|total|altogether|in all|finally|overall)\b", re.IGNORECASE
)
_UNFINISHED = re.compile(r"[\s$(]{0,9}[-\d.,][-\d.,\s$()]{0,60}[-+*/x^][-+*/x^\d.,\s$()]{1,200}")
_TIME = re.compile(r"(\d{1,2})(?::(\d\d))?([ap]?)")
_PARENTHESIS = re.compile(r"\([^()]{0,300}\)")
_ENDS = re.compile(r"[.!?\d)%$\]*\"'`}>a-z]\s*$")
_UNSURE = re.compile(
    r"cannot|can't|can not|not possible|impossible|unknown|undetermined|undefined|none"
)


def read(asked: Asked, output: str) -> Reading:
    """Reads the last committed number and compares it with the references."""
    known = [value for value in map(_reference, asked.references) if value is not None]
    if not known:
        return Reading("error", reason=f"no reference is a number: {list(asked.references)!r}")
    commitments = committed(output)
    readable = [(one, got) for one in commitments if (got := numeric_answer(one.text)) is not None]
    if readable:
        last, got = readable[-1]
        how = last.kind
        start, end = last.start, last.end
    else:
        concluded = _conclusion(output) if not commitments else None
        if concluded is None and not commitments:
            return Reading("abstain", reason="no committed answer")
        if concluded is None:
            last = commitments[-1]
            return _not_a_number(last, asked)
        start, end, got = concluded
        how = "concluding sentence"
    conflict = _conflicting(readable, output)
    right = any(agree(got, reference, asked) for reference in known)
    reason = f"{how}: {_shown(got)}"
    if conflict:
        reason += "; commits to several answers: " + ", ".join(_shown(q) for _, q in readable)
    return Reading(
        "correct" if right else "incorrect",
        1.0 if right else 0.0,
        output[start:end],
        (start, end),
        reason,
        conflict,
    )


def _not_a_number(last: Committed, asked: Asked) -> Reading:
    if any(last.text.strip() == reference.strip() for reference in asked.references):
        return Reading("correct", 1.0, last.text, (last.start, last.end), f"{last.kind}: same text")
    if scan(plain(last.text)) or _UNSURE.search(last.text.lower()):
        why = "not one number" if not _UNSURE.search(last.text.lower()) else "declines to answer"
        return Reading("incorrect", 0.0, last.text, (last.start, last.end), f"{last.kind}: {why}")
    return Reading("abstain", reason=f"{last.kind}: no number in {last.text[:80]!r}")


@lru_cache(maxsize=65536)
def _reference(text: str) -> Quantity | None:
    """A reference may be the number or a worked solution that ends in it."""
    stated = committed(text)
    return numeric_answer(stated[-1].text if stated else text.lstrip("# "))


@lru_cache(maxsize=65536)
def numeric_answer(text: str) -> Quantity | None:
    """The one number a committed answer gives, None when there is not exactly one."""
    shown = plain(text).lstrip(" \t*_`:\"'").rstrip(" \t*_`$.,;:!\"'")
    numbers = scan(shown)
    if not numbers:
        said = spoken(shown)
        return Quantity(said[0]) if said else None
    if len(numbers) == 1:
        return numbers[0].quantity
    return _narrow(shown)


def _narrow(text: str) -> Quantity | None:
    """The value an answer of several numbers comes to: `a + b = c`, "…, so she has c"."""
    sentence = _telling_sentence(text)
    if _UNFINISHED.fullmatch(sentence.rpartition("=")[2]):
        return None  # "27+18", "= 3 * 4": not worked out, so no number is given
    bare = _PARENTHESIS.sub(" ", sentence)
    if bare != sentence and "=" not in bare and scan(bare):
        sentence = bare
    numbers = scan(sentence)
    if "=" in sentence:
        tail = sentence.rpartition("=")[2]
        after = scan(tail)
        if after:
            return after[0].quantity
    if len({one.quantity for one in numbers}) == 1:
        return numbers[-1].quantity
    leads = [lead.strip(" $") for _, lead in _with_lead(numbers, sentence)][1:]
    if any(lead in ("to", "or", "and", "-", "through") for lead in leads):
        return None  # a range, or alternatives
    main = []
    for one, lead in _with_lead(numbers, sentence):
        if not _SUBORDINATE.search(lead):
            main.append((one, lead))
        elif main:
            break  # "…, when it cools by 65 and she adds 15": circumstances to the end
    for clause in ([n for n, lead in main if not _GOVERNED.search(lead)], [n for n, _ in main]):
        if len({one.quantity for one in clause}) == 1:
            return clause[0].quantity
    return None


def _telling_sentence(text: str) -> str:
    """The last sentence that concludes, else the last that holds a number."""
    sentences = [one for one in _SENTENCE.split(text) if scan(one)]
    concluding = [one for one in sentences if _CONCLUDES.search(one)]
    return (concluding or sentences)[-1]


def _with_lead(numbers: list[Found], sentence: str) -> Iterator[tuple[Found, str]]:
    """Each number with the words of its clause that lead up to it."""
    end = 0
    for one in numbers:
        yield one, sentence[end : one.start]
        end = one.end


def _conclusion(output: str) -> tuple[int, int, Quantity] | None:
    """Number of the concluding sentence of an output without a marked answer."""
    end = end_of_answer(output)
    text = output[max(0, end - 1500) : end].rstrip()
    if not text or not _ENDS.search(text) or '"reasoning"' in output[:200]:
        return None
    line_start = text.rfind("\n") + 1
    line = text[line_start:]
    numbers = scan(plain(line))
    if not numbers:
        return None
    got = _computed(text[:line_start], numbers) if "=" not in line else None
    got = got or numeric_answer(line) or numbers[-1].quantity
    if got is None:
        return None
    offset = max(0, end - 1500) + line_start
    return offset, offset + len(line), got


def _computed(before: str, numbers: list[Found]) -> Quantity | None:
    """The number of a sentence that the last equation before it came to, if there are several."""
    worked = before.rpartition("=")[2]
    results = scan(plain(worked[:60])) if len(worked) < len(before) else []
    if not results or results[0].quantity is None or len(numbers) < 2:
        return None
    computed = results[0].quantity.value
    named = [one.quantity for one in numbers if one.quantity is not None]
    return next((quantity for quantity in named if quantity.value == computed), None)


def _conflicting(readable: list[tuple[Committed, Quantity]], output: str) -> bool:
    """Whether differing answers stand side by side without a word of correction between."""
    for (first, one), (second, other) in pairwise(readable):
        if one.value != other.value and not CORRECTION.search(output, first.start, second.start):
            return True
    return False


def agree(got: Quantity, reference: Quantity, asked: Asked | None = None) -> bool:
    """Whether two quantities are the same answer; symmetric in the first two."""
    question = asked.question.lower() if asked else ""
    metadata = asked.metadata if asked else {}
    if isinstance(got.value, str) or isinstance(reference.value, str):
        return _same_text(got.value, reference.value)
    pairs = [(got.value, reference.value)]
    if got.percent != reference.percent:
        in_percent = "percent" in question or "%" in question
        bare = reference.value if got.percent else got.value
        signed = got.value if got.percent else reference.value
        pairs = [(signed / 100, bare)]
        if in_percent or abs(signed) > 1:
            pairs.append((signed, bare))
    return any(_equal(a, b, got, reference, metadata) for a, b in pairs)


def _same_text(one: Fraction | str, other: Fraction | str) -> bool:
    """Times and very long numbers; a time on the hour is that hour ("2:00 pm" answers "2")."""
    if str(one) == str(other):
        return True
    first, second = (_TIME.fullmatch(str(value)) for value in (one, other))
    if not first or not second or not (first[2] or second[2]):
        return False
    halves = {first[3], second[3]} - {""}
    return first[1] == second[1] and (first[2] or "00") == (second[2] or "00") and len(halves) < 2


def _equal(a: Fraction, b: Fraction, got: Quantity, reference: Quantity, metadata: object) -> bool:
    if a == b:
        return True
    if isinstance(metadata, dict):
        relative = metadata.get("tolerance")
        absolute = metadata.get("absolute_tolerance")
        if isinstance(relative, int | float) and abs(a - b) <= Fraction(str(relative)) * abs(b):
            return True
        if isinstance(absolute, int | float) and abs(a - b) <= Fraction(str(absolute)):
            return True
    return _rounded(a, b, got.decimals) or _rounded(b, a, reference.decimals)


def _rounded(decimal: Fraction, exact: Fraction, places: int | None) -> bool:
    """Whether `decimal`, written with `places`, is a repeating fraction rounded or cut off."""
    if places is None or not _repeats(exact):
        return False
    step = Fraction(1, 10**places)
    if len(str(abs(int(decimal / step)))) < 3:
        return False
    return abs(decimal - exact) <= step / 2 or 0 <= abs(exact) - abs(decimal) < step


def _repeats(value: Fraction) -> bool:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest != 1


def _shown(quantity: Quantity) -> str:
    text = str(quantity.value)
    return (text if len(text) <= 60 else text[:57] + "...") + ("%" if quantity.percent else "")


SCORER = Scorer(
    "numeric",
    "2",
    read,
    instruction=(
        "Work it out, then end with one line of the form "
        '"Answer: N", where N is a single number without further words.'
    ),
    symmetric=True,
    canonical=amount,
)
