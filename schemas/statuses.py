"""How responses end: the one list of statuses, what each means for a label, and others' words.

`contracts.yaml` describes each, `statuses.yaml` holds the words. A status never says whether a text
is right; it says what a label is where no scorer could read an answer.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from routeyard.schemas.contracts import CONTRACTS
from routeyard.schemas.text import own_table

#: Every status, as `responses.status` lists them.
STATUSES = tuple(CONTRACTS["responses"]["status"].values)
#: Nothing was answered: no verdict is filed, and the label is null.
ANSWERLESS = ("error", "timeout", "unanswered")
#: The model replied and gave no answer to read: incorrect, and reported by status.
NO_CREDIT = ("truncated", "refused", "empty")

_TABLE = own_table(Path(__file__).with_name("statuses.yaml"))
_STATUS_OF: dict[str, str] = {
    word: status for status, words in _TABLE["words"].items() for word in (status, *words.split())
}
#: What the audit reads a word for → the words.
AUDITED = {what: frozenset(words.split()) for what, words in _TABLE["audited"].items()}
#: Words that say of an answer that it is wrong, and of a call that it failed: the rest of the row
#: tells which.
FAILED = ("failed", "failure", "fail", "unsuccessful")
_OF, _BAD = (f"(?:{'|'.join(_TABLE[part])})" for part in ("of", "bad"))
_FAMILIES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(rf"(?<![a-z0-9])(?:{'|'.join(pieces)})(?![a-z0-9])".replace("{of}", _OF)
                .replace("{bad}", _BAD)), status)
    for status, *pieces in _TABLE["families"]
]  # fmt: skip
_CODE = {*_TABLE["code"]}
#: Words from which a status is a sentence.
_SENTENCE = 10
#: What turns the meaning of a word round.
_NEGATION = re.compile(r"(?<![a-z])(?:no|not|non|never|without|un)(?![a-z])(?! found)")


def status_of(word: object) -> str | None:
    """The status that a word of a server, a harness or a file means; None where it is not known.

    Case, signs and an enumeration's or a module's name before a dot do not count
    (`FinishReason.MAX_TOKENS`, `openai.RateLimitError`). Words that are not listed are understood
    by families of meaning, and numbers as codes of HTTP.
    """
    return None if word is None else _status_of(str(word)[:400])


@lru_cache(maxsize=8192)
def _status_of(word: str) -> str | None:
    plain = re.sub(r"[\s-]+", "_", word.strip().lower())
    apart = _apart(word)
    last = _apart(re.split(r"[.:](?=\w)", word.strip())[-1])
    for known in (plain.rpartition(".")[2], apart.replace(" ", "_"), last.replace(" ", "_")):
        if known in _STATUS_OF:
            return _STATUS_OF[known]
    if (code := _code(apart)) is not None and code != "error":
        return code
    if _NEGATION.search(apart):
        return None
    result = next((status for pattern, status in _FAMILIES if pattern.search(apart)), code)
    # A sentence may speak of a filter or a limit, and mean something else.
    return None if result in NO_CREDIT and apart.count(" ") >= _SENTENCE else result


def _apart(word: str) -> str:
    """The words of a name in any spelling, in lower case with spaces between them."""
    word = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[45]\d\d\b)",
                  " ", word)  # fmt: skip
    return " ".join(re.findall(r"[^\W_]+", word.lower()))


def _code(apart: str) -> str | None:
    """What a code of HTTP means; None where no number is one."""
    words = [part for part in apart.split() if part != "0"] or [apart]  # `429.0` of a table
    if any(word in ("4xx", "5xx") for word in words):
        return "error"
    numbers = [word for word in words if re.fullmatch(r"[1-5]\d\d", word)]
    if not numbers or not (words[0] == numbers[0] or _CODE & {*words}):
        return None
    if numbers[0][0] in "45":
        return "error" if _CODE & {*words} or len(words) == 1 else None
    return "ok" if numbers[0][0] == "2" and {*words} <= {*_CODE, numbers[0], "ok"} else None


#: A text in place of an answer that says that the call failed.
FAILED_TEXT = "".join(_TABLE["failed_text"])
_FAILED_TEXT = re.compile(FAILED_TEXT, re.IGNORECASE)


def says_failed(text: object) -> bool:
    """Whether a text in place of an answer says that the call failed."""
    return len(said := str(text or "")) <= 2_000 and _FAILED_TEXT.search(said) is not None


def attempt_status(
    word: object, *, text: object, score: object, finish: object = None, error: object = None
) -> str | None:
    """The status of an attempt by all that its row says of it; None where it says nothing.

    `failed` beside an answer or a score is how somebody graded it: the answer counts. Without an
    answer, its finish reason and its error's message say how it ended.

    Raises:
        LookupError: beside no answer there is a word that is not known; it is the argument.
    """
    there = _says(text)
    stated = _stated(word) if _says(word) else None
    if stated == "error" and str(word).strip().lower() in FAILED:
        stated = "ok" if (there and not says_failed(text)) or score is not None else "error"
    ended = status_of(finish)
    if stated in (None, "ok") and ended in ("truncated", "refused"):
        return ended
    if there or score is not None or stated not in (None, "ok"):
        return stated
    if _says(finish):
        stated = _stated(finish)
    if error is not None and str(error).strip().lower() not in _TABLE["no_error"]:
        ended = status_of(error)
        return ended if ended in (*ANSWERLESS, "refused") else "error"
    return stated


def _says(value: object) -> bool:
    """Whether a value is no null, no NaN and no text of blanks."""
    return value is not None and value == value and bool(str(value).strip())


def _stated(word: object) -> str:
    """The status of a word; `LookupError` where it is not known."""
    if (status := status_of(word)) is None:
        raise LookupError(word)
    return status


def response_status(status: str, text: str | None, error_class: str | None = None) -> str:
    """The status of a response by what its call came to.

    A reply of blanks alone is `empty`, an error whose class means a time limit is `timeout`.
    Ledgers of every version hold `ok` and `error` for the two.

    Args:
        status: `ok`, `truncated`, `refused` or `error`.
    """
    if status == "ok" and text is not None and not text.strip():
        return "empty"
    return "timeout" if status == "error" and status_of(error_class) == "timeout" else status


#: Queries with this in their `scorer` column have no rule: verifier, judge or person decides.
NO_RULE = "none"


#: The scorer that copies a source's score; its verdicts are kept beside those of rules.
GIVEN = "given"
