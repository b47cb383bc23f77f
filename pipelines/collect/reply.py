"""What a server sent, read as untrusted bytes: choices and usage, or a named fault.

Nothing is invented: a body that cannot be read is a fault, a count that is not a
whole number is unknown, and a text is the text that was sent (lone surrogates,
which no file can hold, become U+FFFD).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

from routeyard.pipelines.common.usage import amount_of, count_of, usage_of_events, whole_sum
from routeyard.schemas.statuses import ANSWERLESS, status_of

_SURROGATE = re.compile("[\ud800-\udfff]")
#: Finish reason of an answer whose text is what `called_tools` gives, and how many calls it reads.
TOOL_CALLS, MOST_CALLS = "tool_calls", 8


@dataclass(eq=False, repr=False)
class CallFault(Exception):
    """An attempt without an answer.

    Attributes:
        kind: Error class for people and for counting (`http_429`, `timeout`, …).
        status: HTTP status, when there was one.
        permanent: Asking again in this run cannot succeed.
        concerns: What is refused beside this question: its `model`, or the `provider` (key,
            account, address). A person can mend that, so nothing is settled.
        refused: The server declines what this question says (moderation).
        throttled: The server asks to slow down.
        retry_after: Seconds the server asks to wait.
        maybe_billed: The server may have done the work: a budget must count it.
        unreachable: No connection came about; the server was asked nothing.
        usage: What the server metered for an answer that cannot be used; such an
            attempt was billed.
    """

    kind: str
    message: str
    _: KW_ONLY
    status: int | None = None
    permanent: bool = False
    concerns: Literal["model", "provider"] | None = None
    refused: bool = False
    throttled: bool = False
    retry_after: float | None = None
    maybe_billed: bool = True
    unreachable: bool = False
    usage: Usage | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message)

    @property
    def words(self) -> str:
        """Kind and message for a person."""
        return f"{self.kind}: {self.message[:200]}"


@dataclass(frozen=True, slots=True)
class ReplyChoice:
    """One answer: `status` is `ok`, `truncated` or `refused`."""

    text: str | None
    status: str
    finish_reason: str | None
    logprobs: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Metered counts of one call; null where the server gave none that can be read."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    #: The provider's own figure in USD.
    cost_usd: float | None = None
    #: Among the prompt's tokens: read from the provider's cache, and written to it.
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A completion: its choices in order, without repeats of one index."""

    choices: tuple[ReplyChoice, ...]
    usage: Usage
    served_model: str | None
    provider: str | None
    system_fingerprint: str | None


def read_json(body: bytes) -> dict[str, Any]:
    """A JSON object, or a `CallFault` that says what was received instead.

    A stream that nobody asked for is read as one.
    """
    if not body.strip():
        raise CallFault("empty_body", "the server answered 200 with an empty body", status=200)
    if body.lstrip().startswith((b"data:", b"event:", b":")):
        events = Assembled()
        for line in body.decode("utf-8", "replace").splitlines():
            events.add(line)
        return events.completion()
    return _object(body, "the body")


def _object(text: bytes | str, what: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CallFault("invalid_json", f"{what} is no JSON: {error}", status=200) from None
    if not isinstance(data, dict):
        raise CallFault("invalid_json", f"{what} is JSON but no object", status=200)
    return data


# One rule for what a stranger leaves out: null, a blank text, and an empty object say nothing.


def present(value: Any, depth: int = 4) -> Any:
    """The value; None where it is null, a blank text, or an object or list of nothing else."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, dict | list) and depth:
        items = value.values() if isinstance(value, dict) else value
        return value if any(present(item, depth - 1) is not None for item in items) else None
    return value


def error_of(data: Mapping[str, Any]) -> Any:
    """The error that an object states; None where it has none (`0` and `false` too)."""
    error = present(data.get("error"))
    if error is None and data.get("object") == "error":  # as vLLM writes it
        return data
    if isinstance(error, dict) and not any(map(present, error.values())):
        return None
    return error or None


def name_of(value: Any) -> str | None:
    """A name or id; None where it is missing, blank or no text."""
    return _text(present(value))


# Server-sent events, put together into the body that they describe.


#: What is kept of a message and of its choice, and the keys whose values come in pieces.
_SAID, _ABOUT = ("content", "refusal", "tool_calls"), ("finish_reason", "error", "logprobs")
_GROWING = ("content", "refusal", "arguments")


def _grown(before: Any, piece: Any, key: str = "", depth: int = 4) -> Any:
    """A value with a further piece of it: pieces are listed, anything else that says something is
    replaced; of tool calls, each is a value under its index."""
    if isinstance(piece, list) and key == "tool_calls":
        items = [item for item in piece if isinstance(item, dict)]
        places = [count_of(item.get("index")) for item in items]
        piece = {place if place is not None else n: items[n] for n, place in enumerate(places)}
    if isinstance(piece, dict) and depth:
        known: dict[Any, Any] = before if isinstance(before, dict) else {}
        for name, item in piece.items():
            known[name] = _grown(known.get(name), item, name, depth - 1)
        return known
    if key in _GROWING and piece is not None:
        pieces: list[Any] = before if isinstance(before, list) else []
        pieces += piece if isinstance(piece, list) else [piece]
        return pieces
    return before if present(piece) is None else piece


def _whole(message: dict[str, Any]) -> None:
    """Join the pieces of a message in place: what is secret in them may be cut."""
    calls = message.get("tool_calls")
    message["tool_calls"] = calls = [*calls.values()] if isinstance(calls, dict) else []
    for holder in (message, *(call.get("function") for call in calls)):
        for name in _GROWING if isinstance(holder, dict) else ():
            pieces = holder.get(name)
            if isinstance(pieces, list) and all(isinstance(piece, str) for piece in pieces):
                holder[name] = "".join(pieces) if pieces else None


class Assembled:
    """Collects the lines of a stream; `completion` is what an unstreamed body would hold.

    Attributes:
        ended: `[DONE]` came; nothing after it is read.
    """

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: list[dict[str, Any]] = []
        self._choices: dict[int, dict[str, Any]] = {}
        self._events = 0
        self._plain: list[str] = []
        self.ended = False

    def add(self, line: str) -> bool:
        """Take one line; true when it carried text."""
        line = line.removeprefix("\ufeff")
        if not line.startswith("data:"):
            if not self._events and not line.startswith((":", "event:", "id:", "retry:")):
                self._plain.append(line)  # a body, where the server knows no streams
            return False
        data = line[5:].strip()
        self.ended = self.ended or data == "[DONE]"
        if self.ended or not data or data == "null":  # what follows belongs to no answer
            return False
        event = _object(data, "an event")
        self._events += 1
        if (error := error_of(event)) is not None:
            self._head["error"] = error
        for name in ("model", "provider", "system_fingerprint", "timings"):
            value = event.get(name)
            if value and value != self._head.get(name) and present(value) is not None:
                self._head[name] = value
        self._usage += _usage_records(event)
        said = [self._take(item, place) for place, item in enumerate(_objects(event))]
        return any(said)

    def _take(self, choice: Mapping[str, Any], place: int) -> bool:
        index = count_of(choice.get("index"))
        index = place if index is None else index
        entry = self._choices.setdefault(index, {"index": index, "message": {}})
        said, delta, whole = entry["message"], choice.get("delta"), choice.get("message")
        if whole and present(delta) is None and not _content(said):  # as some send it at the end
            delta = whole
        delta = delta if isinstance(delta, dict) else {}
        for holder, source, names in ((said, delta, _SAID), (entry, choice, _ABOUT)):
            for name in names:
                if (piece := source.get(name)) is not None:
                    holder[name] = _grown(holder.get(name), piece, name)
        return bool(_content(delta) or _refusal(delta))

    def completion(self) -> dict[str, Any]:
        """The completion's object, as an unstreamed body would hold it.

        Raises:
            CallFault: nothing came, or the stream broke off before its end.
        """
        if not self._events:
            if any(line.strip() for line in self._plain):
                return _object("\n".join(self._plain), "the body")
            raise CallFault("empty_body", "the stream ended without an event", status=200)
        choices = list(self._choices.values())
        for item in choices:
            _whole(item["message"])
        data = {**self._head, "usage": self._usage, "choices": choices}
        unfinished = any(item.get("finish_reason") is None for item in choices)
        failed = any(error_of(item) is not None for item in (self._head, *choices))
        if unfinished and not self.ended and not failed:
            # Half an answer is not an answer, and not a truncated one either.
            why = "the stream broke off before its end"
            raise CallFault("broken_stream", why, status=200, usage=usage_in(data))
        return data


def _objects(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = data.get("choices")
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def reply_from(data: Mapping[str, Any], *, tools: bool = False) -> ModelReply:
    """The reply in a decoded chat completion: a body, a stream put together, a line of a batch.

    Args:
        tools: The request declared tools, so that calls of them are an answer (`tool_calls`).

    Raises:
        CallFault: it carries an error, or has no answer.
    """
    if error_of(data) is not None:
        raise fault_of(data, None)
    choices: dict[int, ReplyChoice] = {}
    for position, item in enumerate(_objects(data)):
        if (error := error_of(item)) is not None or item.get("finish_reason") == "error":
            raise fault_of(data, None, error=error)
        index = count_of(item.get("index"))
        # The first choice of an index counts; a repeat is not another sample.
        choices.setdefault(position if index is None else index, _choice(item, tools))
    reply = tuple(choices[index] for index in sorted(choices))
    if not reply:
        sent = json.dumps(data, ensure_ascii=False)[:150]
        why = f"the server answered 200 without a choice: {sent}"
        raise CallFault("no_choices", why, status=200, usage=usage_in(data))
    usage = _usage(data)
    if usage.completion_tokens == 0 and any(choice.text for choice in reply):
        usage = replace(usage, completion_tokens=None)  # an answer has tokens, too
    if all(choice.text is None and choice.status == "ok" for choice in reply):
        why = "the answer has neither text nor refusal"
        raise CallFault("no_content", why, status=200, usage=usage)
    return ModelReply(
        choices=tuple(c for c in reply if not (c.text is None and c.status == "ok")),
        usage=usage,
        served_model=name_of(data.get("model")),
        provider=name_of(data.get("provider")),
        system_fingerprint=name_of(data.get("system_fingerprint")),
    )


def _choice(item: Mapping[str, Any], tools: bool) -> ReplyChoice:
    message = item.get("message")
    message = message if isinstance(message, dict) else {}
    text, refusal = _text(_content(message)), _text(_refusal(message))
    called = called_tools(message) if tools else None
    finish = name_of(item.get("finish_reason"))
    ended = status_of(finish)
    status = "refused" if refusal else ended if ended in ("refused", "truncated") else "ok"
    if status == "refused":
        text = text or refusal
    if called is not None and status == "ok":
        return ReplyChoice(called, status, TOOL_CALLS, _logprobs(item.get("logprobs")))
    if status == "ok" and finish and not (text or "").strip() and ended in (None, *ANSWERLESS):
        text = None  # no empty answer: the call failed, or nobody knows how it ended
    return ReplyChoice(text, status, finish, _logprobs(item.get("logprobs")))


def called_tools(message: Mapping[str, Any]) -> str | None:
    """`{content, tool_calls: [{name, arguments}]}` as JSON; null where no tool was called."""
    listed = message.get("tool_calls")
    calls = []
    for item in listed[:MOST_CALLS] if isinstance(listed, list) else []:
        result = item.get("function") if isinstance(item, dict) else None
        function = result if isinstance(result, dict) else {}
        name, arguments = name_of(function.get("name")), function.get("arguments")
        if isinstance(arguments, dict):  # some servers send the object itself
            arguments = json.dumps(arguments, ensure_ascii=False)
        if name and (text := _text(arguments)) is not None:
            calls.append({"name": name, "arguments": text})
    said = {"content": _text(_content(message)), "tool_calls": calls}
    return json.dumps(said, ensure_ascii=False) if calls else None


#: Kinds of parts that are no answer.
_THOUGHTS = ("thinking", "reasoning", "redacted_thinking")


def _content(message: Mapping[str, Any], key: str = "text") -> str | None:
    """Text of a message; a list of parts is joined as it is; None where it has no text."""
    value = message.get("content")
    if not isinstance(value, list):
        return value if key == "text" and isinstance(value, str) else None
    texts = []
    for part in value:
        if isinstance(part, dict):
            part = None if part.get("type") in _THOUGHTS else part.get(key)
        elif key != "text":
            part = None
        if isinstance(part, str):
            texts.append(part)
    return "".join(texts) if texts else None


def _refusal(message: Mapping[str, Any]) -> str | None:
    value = message.get("refusal")
    return value if value and isinstance(value, str) else _content(message, "refusal")


def _text(value: Any) -> str | None:
    """A text that files can hold: halves of a sign are put together, a single half is U+FFFD."""
    if not isinstance(value, str):
        return None
    if value.isascii() or not _SURROGATE.search(value):
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _logprobs(value: Any) -> str | None:
    """`[{token, logprob, top: [[token, logprob], …]}]` as JSON, or null."""
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not content:
        return None
    rows = []
    for item in content:
        token, logprob = _token(item)
        if token is None:
            return None
        top = item.get("top_logprobs")
        pairs = [_token(entry) for entry in top] if isinstance(top, list) else []
        likeliest = [[t, lp] for t, lp in pairs if t is not None]
        rows.append({"token": token, "logprob": logprob, "top": likeliest})
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def _token(item: Any) -> tuple[str | None, float | None]:
    if not isinstance(item, dict):
        return None, None
    return _text(item.get("token")), _number(item.get("logprob"))


def _usage_records(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The usage in a body or an event: at OpenAI's place, Groq's, Google's or Moonshot's."""
    choices = event.get("choices")
    only = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    for place, key in (
        (event, "usage"), (event, "usageMetadata"), (event.get("x_groq"), "usage"), (only, "usage")
    ):  # fmt: skip
        if not isinstance(place, dict) or not (value := place.get(key)):
            continue
        listed = value if isinstance(value, list) else [value]
        if records := [item for item in listed if isinstance(item, dict) and present(item)]:
            return records
    return []


def _usage(data: Mapping[str, Any]) -> Usage:
    """The usage of an answer, from all its events; unknown where they contradict each other."""
    timings = data.get("timings")
    record, usage = usage_of_events(
        _usage_records(data), timings if isinstance(timings, dict) else None
    )
    # A prompt has tokens: 0 is a server that does not count.
    prompt, completion, cost = usage.prompt or None, usage.known.completion, record.get("cost")
    cached, thoughts = (usage.read or 0) + (usage.write or 0), usage.reasoning or 0
    beyond = (prompt and cached > prompt) or (completion and thoughts > completion)
    if usage.contradictory or beyond:
        return Usage()
    # What a total counts differs: it is the sum where both are known.
    total = whole_sum((prompt, completion)) or count_of(record.get("total_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        reasoning_tokens=usage.reasoning,
        total_tokens=total or None,
        cost_usd=amount_of(cost.get("total_cost") if isinstance(cost, dict) else cost),
        cache_read_tokens=usage.read,
        cache_write_tokens=usage.write,
    )


def _number(value: Any) -> float | None:
    """A log-probability."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def usage_in(body: Mapping[str, Any]) -> Usage | None:
    """What a body without an answer says was metered; null for nothing."""
    inner = body.get("error")
    usage = _usage(inner if isinstance(inner, dict) and not _usage_records(body) else body)
    return usage if any((usage.prompt_tokens, usage.completion_tokens, usage.cost_usd)) else None


def fault_of(
    data: Any, status: int | None, *, error: Any = None, wait: float | None = None
) -> CallFault:
    """The fault that a body means.

    Args:
        data: The body, decoded as far as it can be.
        status: Of HTTP; None where an error came as a success, as some gateways send it: then its
            own code or name says what it is.
        error: What a choice says, in place of the body.
    """
    if isinstance(data, list) and len(data) == 1:  # as Google writes it
        data = data[0]
    stated = data if isinstance(data, dict) else {}
    error = error or error_of(stated) or (data if status else None)
    detail = error if isinstance(error, dict) else {"message": error}
    # Not cut here: what is secret in it is not hidden yet (`client.cleaned`).
    said = present(detail.get("message")) or present(detail.get("detail")) or (status and error)
    name, code = error_names(detail), str(detail.get("code") or "")
    if status is None:
        status = int(code) if re.fullmatch(r"[45]\d\d", code) else _status_named(name)
        said = said or "the server reported an error"
    if status is None:
        fault = CallFault("error_in_body", str(said), status=200)
    else:
        words = str(said or f"HTTP {status}")
        fault = from_status(status, words, code_name=name, retry_after=wait)
    fault.usage = usage_in(stated)
    return fault


def error_names(error: Mapping[str, Any]) -> str:
    """The code or type that an error states, in its API's terms."""
    named = (error.get(key) for key in ("code", "type", "status"))
    return " ".join(name for name in named if isinstance(name, str))


#: Characters of an error's message that are read.
_MOST_READ = 2000
#: What may succeed when it is asked again.
_RETRYABLE = frozenset({408, 409, 425, 429})
#: Names of errors in bodies that came with another status.
_NAMED = (
    (re.compile(r"api_?key|authentication|unauthori[sz]ed", re.I), 401),
    (re.compile(r"permission|forbidden|access_denied", re.I), 403),
    (re.compile(r"model_not_found|not_found", re.I), 404),
)
_QUOTA = re.compile(r"insufficient_(quota|balance|credits?|funds)|billing_", re.I)
#: A refusal that speaks of a key, of an account, of a model, or of the address.
_KEY = re.compile(
    r"api[ _-]?key|credential|authenticat|unauthori[sz]ed|billing|credit balance"
    r"|insufficient (quota|balance|credit|funds)",
    re.I,
)
_ACCOUNT = re.compile(
    rf"{_KEY.pattern}|permission|payment|subscription|account|suspended|organi[sz]ation", re.I
)
_MODEL = re.compile(r"\b(models?|deployments?|engines?)\b|model_|deployment", re.I)
_NO_MODEL = re.compile(
    r"(unknown|invalid|unsupported|not a valid|no such) model\b"
    r"|\b(model|deployment)\b.{0,80}"
    r"(not found|not exist|not a valid|is unknown|decommission|deprecat)"
    r"|model_not_found|model_not_supported",
    re.I | re.S,
)
_ROUTE = re.compile(
    r"<html|<!doctype|cannot post|no route"
    r"|(invalid|unknown|no such|unrecogni[sz]ed) (url|route|path|endpoint|request url)"
    r"|^(http )?(404 )?((page|resource|url|path) )?(not found|404)\W*$",
    re.I,
)
_CONTENT = re.compile(
    r"moderat|flagged|safety|content[ _-]?(policy|filter|management)|usage polic"
    r"|responsible ?ai|prohibited content",
    re.I,
)


def from_status(
    status: int, message: str, *, code_name: str | None, retry_after: float | None
) -> CallFault:
    """The fault an HTTP status and the error's names and words mean."""
    name = code_name or ""
    quota = bool(_QUOTA.search(name))
    retryable = not quota and (status in _RETRYABLE or status >= 500)
    said = message[:_MOST_READ].strip()
    refused = not retryable and not quota and _is_about_content(status, name, said)
    return CallFault(
        "insufficient_quota" if quota else f"http_{status}",
        message,
        status=status,
        permanent=not retryable,
        concerns=None if retryable or refused else _concerned(status, name, said, quota),
        refused=refused,
        throttled=status == 429 and not quota,
        retry_after=retry_after if retryable else None,
        maybe_billed=not quota and (status >= 500 or status == 408),
    )


def _is_about_content(status: int, name: str, message: str) -> bool:
    """Whether a refusal declines what was asked, and not who asks it or of whom."""
    if status in (401, 402, 407):  # a payment may be declined, too
        return False
    if any(status_of(word) == "refused" for word in name.split()) or _CONTENT.search(name):
        return True
    return (
        status in (403, 451)
        and bool(_CONTENT.search(message))
        and not _ACCOUNT.search(message)
        and not _ROUTE.search(message)
    )


def _concerned(
    status: int, name: str, message: str, quota: bool
) -> Literal["model", "provider"] | None:
    """Whether the model or its whole provider is refused; null where it may be the question."""
    said = f"{name} {message}"
    if quota or status in (402, 405, 407):
        return "provider"
    if status in (401, 403):
        mine = _MODEL.search(said) or not (status == 401 or _ACCOUNT.search(said))
        return "model" if mine else "provider"
    if status in (404, 410):
        return "provider" if _ROUTE.search(message) and not _MODEL.search(said) else "model"
    if _NO_MODEL.search(said):
        return "model"
    # Other messages may quote the question, which may speak of an account.
    return "provider" if status == 400 and _KEY.search(said) else None


def _status_named(name: str) -> int | None:
    """The status that an error's name means where no status says it."""
    if _QUOTA.search(name):
        return 429
    if any(status_of(word) == "refused" for word in name.split()):
        return 400
    return next((status for pattern, status in _NAMED if pattern.search(name)), None)
