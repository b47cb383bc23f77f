"""Verifiers and judges: which verdicts policies still need, prompts, and replies read."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Required, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.collect.budget import BudgetLedger, Price
from routeyard.pipelines.collect.client import Client, RequestsClient, Timeouts
from routeyard.pipelines.collect.ledger import Attempt, Ledger
from routeyard.pipelines.collect.prompts import PromptResults, ask_prompts, request_for
from routeyard.pipelines.collect.reply import CallFault, ModelReply
from routeyard.pipelines.collect.request import Request, RequestSettings
from routeyard.pipelines.collect.runner import ModelQueue
from routeyard.pipelines.common.untrusted import short_text
from routeyard.pipelines.label.error_rates import kind_of, p_correct
from routeyard.pipelines.label.policies import (
    AnswerToJudge,
    Costs,
    FiledVerdicts,
    ResponseKey,
    add,
    answers,
    failure,
    newest,
    open_steps,
    verdict,
    verdict_table,
    verdicts_from,
)
from routeyard.pipelines.label.scorers.patterns import patterns
from routeyard.schemas.errors import BadInput, did_you_mean
from routeyard.schemas.recipe import Judge, Label, ServedModel, Verifier
from routeyard.schemas.recipe.collect import UNANSWERED_AFTER, Budget, RateLimits

# Prompt templates: text files with a version and `{{names}}` that are filled once.
#
# What is filled in is material to judge, written by models that may want another
# verdict: it can neither close the tag around it nor open one of the template's,
# and what would be read as a verdict (`[[1]]`, `Rating: [5]`, and `LLM 2` where answers are
# numbered) is not left in one piece, so that a judge that quotes it gives none.

_TEMPLATES_RE = patterns("templates")


_FOLDER = Path(__file__).parent / "prompts"
#: Places in the prompt files of other projects, as Python's `str.format` fills them → ours.
_FORMAT = {"question": "question", "output": "answer", "answer": "references"}
#: Bytes of a template's file.
_TEMPLATES_MOST = 1_000_000

#: Tags of the templates that come with Routeyard; every template's are fenced.
_NAMES_OF_TAGS = ("question", "answer", "output", "reference", "references", "truth")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt. `version` changes with its text, whatever the file is called."""

    name: str
    text: str

    @property
    def version(self) -> str:
        return f"{self.name}-{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"

    @property
    def numbered(self) -> bool:
        """Whether several answers are listed as LLM 1, LLM 2, …, and not by letters."""
        return "numbered" in _TEMPLATES_RE["name"].findall(self.text)

    def fill(self, values: Mapping[str, str], *, fenced: Mapping[str, str] | None = None) -> str:
        """The prompt. Values are not read again, so an answer may hold `{{question}}`.

        Args:
            values: Put in as `fence` leaves them.
            fenced: Put in as they are: their parts went through `fence` before.
        """
        ready = {name: self.fence(value) for name, value in values.items()} | dict(fenced or {})
        return _TEMPLATES_RE["name"].sub(lambda match: ready[match[1]], self.text)

    def fence(self, value: str) -> str:
        """The value with the template's tags and whatever reads as a verdict taken apart."""
        names = "|".join(sorted({*_TEMPLATES_RE["tag"].findall(self.text), *_NAMES_OF_TAGS}))
        # Look-alikes of the bracket count: a model reads them as one.
        tag = re.compile(rf"[<＜‹〈⟨﹤]([\s/\\／]{{0,5}}(?:{names})\b)", re.IGNORECASE)
        value = _TEMPLATES_RE["verdict"].sub(r"[ [\1] ]", tag.sub(r"&lt;\1", value))
        value = _TEMPLATES_RE["grade"].sub(r"\1[ \2 ]", value)
        if '"""' in self.text:  # the prompt delimits values so
            value = value.replace('"""', "'''")
        return _TEMPLATES_RE["named"].sub(r"\1-\2", value) if self.numbered else value


def shipped() -> list[str]:
    """Names of the templates that come with Routeyard, which a recipe may name."""
    return sorted({file.name.split(".")[0] for file in _FOLDER.glob("*.txt")})


def load_template(default: str, source: str | None, *, names: frozenset[str]) -> Template:
    """The template of `source`, else the newest default of that name.

    Args:
        source: A file, the name of one that is shipped, or the prompt itself (it has
            `{{answer}}` or another name in it; that is what a loaded recipe holds).
        names: What the caller fills in; the text may use no other name and must
            use `answer` or `answers`.

    Raises:
        BadInput: the file is missing, or uses an unknown name.
    """
    if source is None:
        return _newest(default)
    if _TEMPLATES_RE["name"].search(source):
        template, where = Template("file", source), "the prompt in `template`"
    elif source in shipped():
        template, where = _newest(source), f"template {source!r}"
    else:
        template, where = Template("file", read_template(Path(source))), source
    used = set(_TEMPLATES_RE["name"].findall(template.text))
    for name in sorted(used - names):
        raise BadInput(
            f"the prompt template uses {{{{{name}}}}}, which nothing fills",
            where=where,
            next_step=did_you_mean(name, names),
        )
    if not used & {"answer", "answers", "numbered"}:
        raise _no_answer(where)
    return template


def read_template(path: Path) -> str:
    """The text of a template's file.

    Raises:
        BadInput: it cannot be read, or has no place for an answer: a recipe holds it from here
            on, and what is no template would be shown, or sent, as if it were one.
    """
    try:
        text = short_text(path, _TEMPLATES_MOST)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"the prompt template cannot be read: {error}",
            where=str(path),
            next_step="name a UTF-8 text file, one of those shipped "
            f"({', '.join(shipped())}), or leave `template` out for the default",
        ) from error
    text = formatted(text)
    if not _TEMPLATES_RE["name"].search(text):
        raise _no_answer(str(path))
    return text


def formatted(text: str) -> str:
    """The text, with the places of a `str.format` prompt (`{question}`, `{output}`, `{answer}`).

    The prompt of xVerify has those three; a text that has other places, or not all three, is
    returned as it is.
    """
    places = set(re.findall(r"\{(\w{1,40})\}", text))
    if _TEMPLATES_RE["name"].search(text) or places != set(_FORMAT):
        return text
    return re.sub(r"\{(\w{1,40})\}", lambda match: f"{{{{{_FORMAT[match[1]]}}}}}", text)


def _no_answer(where: str) -> BadInput:
    return BadInput(
        "the prompt template never shows the answer",
        where=where,
        next_step="write {{answer}} where the model's output belongs",
    )


def _newest(name: str) -> Template:
    file = max(_FOLDER.glob(f"{name}.*.txt"), key=lambda path: int(path.suffixes[0][1:]))
    return Template(f"{name}.{file.suffixes[0][1:]}", file.read_text(encoding="utf-8"))


# Requests to a verifier or judge: its limits, its budget and the replies that can be used.

#: Characters of an unreadable reply that its error shows.
_SHOWN = 300


def settings_of(served: ServedModel, **parameters: Any) -> RequestSettings:
    """What identifies a request to this model, besides the messages."""
    sent = {"max_tokens": served.max_tokens, **parameters, **served.parameters}
    return RequestSettings.of(
        served.provider, served.model, {k: v for k, v in sent.items() if v is not None}
    )


class PromptRun(TypedDict, total=False):
    """Whose prompts are asked: a run, the benchmark whose budget it is; `send` False only looks at
    what the ledger holds."""

    run: Required[str]
    benchmark: str
    send: bool


#: Seconds after which a call of a verifier or judge has failed.
DEADLINE_S = 120.0


def ask_model(
    requests: Sequence[Request],
    served: ServedModel,
    ledger: Ledger,
    *,
    purpose: str,
    read: Callable[[str], object],
    transport: Callable[..., Client] = Client,
    **how: Unpack[PromptRun],
) -> PromptResults:
    """Ask a verifier or judge what the ledger does not answer yet.

    Args:
        read: What a reply says, or null. One that says nothing, or that was cut by
            length or by a filter, is asked again, then counts as an error.

    Raises:
        BadInput: the key is not set, or a budget is set without both prices.
    """
    price = Price(served.price_in, served.price_out)
    if served.budget_usd is not None and not price.known:
        raise BadInput(
            f"{served.name!r} has a budget but no price, so nothing could be counted",
            where=f"label, {served.name}",
            next_step="give price_in and price_out in USD per million tokens",
        )
    if not requests:
        return PromptResults({})
    name = requests[0].model_id
    budget = BudgetLedger(
        Budget(usd=served.budget_usd),
        ledger,
        f"{how.get('benchmark', '')}, {name}",
        raise_by=f"budget_usd of {name}",
    )
    queue = ModelQueue(
        model_id=name,
        provider=served.provider,
        requests=iter(()),
        wanted=0,
        limits=RateLimits(concurrency=served.concurrency),
        price=price,
        max_tokens=served.max_tokens,
        unusable=lambda reply: unusable(reply, read),
        unanswered_after=UNANSWERED_AFTER,
        transport=transport,
    )
    return ask_prompts(
        requests,
        queue,
        ledger,
        purpose=purpose,
        retry=served.retry,
        budget=budget,
        timeouts=Timeouts(deadline_s=DEADLINE_S),
        run=how["run"],
        send=how.get("send", True),
    )


def unusable(reply: ModelReply, read: Callable[[str], object]) -> CallFault | None:
    """Reason why a reply has no verdict, or null."""
    choice = reply.choices[0]
    if choice.status == "truncated":
        fault, why = "cut_verdict", "the reply was cut by its length, so what it would have said "
        why += "is not known"
    elif choice.status == "refused":
        fault, why = "filtered_verdict", "the reply was filtered or refused"
    elif choice.text is None or read(choice.text) is None:
        fault, why = "unreadable_verdict", "no verdict in"
    else:
        return None
    return CallFault(fault, f"{why}: {(choice.text or '')[:_SHOWN]!r}", status=200)


# What a judge's reply says: a grade, right or wrong, or which of several answers are best.

_REPLY_RE = patterns("judge_replies")


#: Names of answers that are listed by letter.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def rating_in(text: str, lowest: int = 1) -> float | None:
    """The last `[[n]]`, else the last `Rating: [n]`, with n from `lowest` to 10; decimals count.

    Both are what the prompt of RouterXBench (appendix B.1, Figure 5) leads to. Null
    without one, or when the number is off the scale.
    """
    result = _last(text)
    if result is None:
        single = _REPLY_RE["rating"].findall(text)
        result = single[-1] if single else None
    if not result or not re.fullmatch(r"\d{1,2}(\.\d{1,4})?", result):
        return None
    n = float(result)
    return n if lowest <= n <= 10 else None


def decision_in(text: str) -> bool | None:
    """The last `[[1]]` or `[[0]]`."""
    return {"1": True, "0": False}.get(_last(text) or "")


def winners_in(text: str, n: int, *, numbered: bool = True) -> frozenset[int] | None:
    """Positions named in the last `[[A, C]]`, none for `[[none]]`; null when unreadable.

    Where answers are numbered, `LLM 1 and LLM 3`, `LLM 1, 3` or `LLMs 1 and 3` without brackets
    is read, the form that the prompt of the confidence-driven router (appendix A.4) asks for.
    """
    result = _last(text)
    if result is None and not numbered:
        return None  # `LLM 2` is no answer's name, but perhaps a word of one
    if result is None:
        lists = " ".join(_REPLY_RE["numbered"].findall(text))
        places = [int(number) - 1 for number in re.findall(r"\d+", lists)]
        named = frozenset(places)
        return named if named and all(0 <= place < n for place in named) else None
    if result.lower() == "none":
        return frozenset()
    letters = [part.strip().upper() for part in result.split(",")]
    if any(len(letter) != 1 or letter not in LETTERS[:n] for letter in letters):
        return None
    return frozenset(LETTERS.index(letter) for letter in letters)


def _last(text: str) -> str | None:
    result = _REPLY_RE["brackets"].findall(text)
    return str(result[-1]) if result else None


# Language models as judges; blind to which model answered.
#
# * `rating`: a number from 1 (or 0) to 10, read from `[[n]]` or `Rating: [n]`; score
#   (n − lowest) / (10 − lowest).
# * `relative`: y = 1[S_model ≥ S_reference] on the same query, as in the
#   triple-perspective routing paper.
# * `reference`: `[[1]]` or `[[0]]` against the reference answers.
# * `choice`: which of all answers to a query are right, several winners allowed (confidence-driven
#   routing's response quality). Asked in a seeded order and its reverse; abstains where they
#   differ.

_NAMES = frozenset({"question", "answer", "answers", "references", "lowest"})
#: Of several answers to one question; `numbered` lists them as LLM 1, LLM 2, ….
_LISTED = frozenset({"question", "answer", "answers", "references", "numbered"})


def judge(
    queries: pa.Table,
    responses: pa.Table,
    by: Judge,
    ledger: Ledger,
    *,
    only: Iterable[ResponseKey] | None = None,
    **how: Unpack[PromptRun],
) -> FiledVerdicts:
    """Verdicts of `judge:<name>`; figures count prompts asked and failed.

    For `relative`, `responses` must hold the reference model's; for `choice`, all
    answers of a query are shown together, also those that `only` leaves out.
    """
    keys = None if only is None else set(only)
    ask = partial(ask_model, served=by, ledger=ledger, purpose="judge", **how)
    if by.kind == "choice":
        return _choose(list(answers(queries, responses)), by, ask, keys)
    kind = "reference" if by.kind == "reference" else "rating"
    if kind == "rating" and by.lowest == 0:
        kind = "rating-from-zero"
    template = load_template(kind, by.template, names=_NAMES)
    shown = _about(list(answers(queries, responses)), by, keys)
    asked = [(answer, _request(template, answer, by)) for answer in shown]
    read = decision_in if by.kind == "reference" else partial(rating_in, lowest=by.lowest)
    results = ask([request for _, request in asked], read=read)
    bars = _bars(by, asked, results) if by.kind == "relative" else None
    version = f"{by.kind}-{template.version}"
    said = partial(_said, by, bars)
    rows = verdicts_from(asked, results, f"judge:{by.name}", version, said)
    return _filed(rows, results, keys)


def _about(
    shown: list[AnswerToJudge], by: Judge, keys: set[ResponseKey] | None
) -> list[AnswerToJudge]:
    """Answers to ask about; for `relative` the reference model's answers to the same queries."""
    if keys is None:
        return shown
    queries = {key[0] for key in keys} if by.kind == "relative" else set()
    return [a for a in shown if a.key in keys or (_is_reference(a, by) and a.key[0] in queries)]


def _filed(
    rows: list[dict[str, Any]], results: PromptResults, keys: set[ResponseKey] | None
) -> FiledVerdicts:
    if keys is not None:
        rows = [row for row in rows if (row["query_id"], row["model_id"], row["sample"]) in keys]
    return FiledVerdicts(verdict_table(rows), results.figures)


def _bars(
    by: Judge, asked: Iterable[tuple[AnswerToJudge, Request]], results: PromptResults
) -> dict[str, float | None]:
    """Query → rating of the reference model's first answer to it."""
    bars = {}
    for answer, request in sorted(asked, key=lambda pair: pair[0].key, reverse=True):
        attempt = results.answers.get(request.request_hash)
        if _is_reference(answer, by) and attempt and attempt.status == "ok" and attempt.text:
            bars[answer.key[0]] = rating_in(attempt.text, by.lowest)
    return bars


def _said(
    by: Judge, bars: Mapping[str, float | None] | None, answer: AnswerToJudge, text: str
) -> dict[str, Any]:
    """Columns of the verdict that a readable reply is; `bars` of a `relative` judge."""
    if by.kind == "reference":
        return {"outcome": _outcome(decision_in(text) is True)}
    n = rating_in(text, by.lowest)
    bar = by.correct_from if bars is None else bars.get(answer.key[0])
    if n is None or bar is None:
        reason = f"{by.reference_model} has no rating on this query to compare with"
        return {"outcome": "error", "reason": reason}
    result = {"outcome": _outcome(n >= bar), "extracted": f"{n:g}"}
    if bars is None:
        return result | {"score": (n - by.lowest) / (10 - by.lowest)}
    return result | {"extracted": f"{n:g} against {bar:g}"}


def _choose(
    shown: list[AnswerToJudge],
    by: Judge,
    ask: Callable[..., PromptResults],
    keys: set[ResponseKey] | None,
) -> FiledVerdicts:
    template = load_template("choice", by.template, names=_LISTED)
    scorer, version = f"judge:{by.name}", f"choice-{template.version}"
    pairs: list[tuple[list[AnswerToJudge], Request, Request]] = []
    ordered = sorted(shown, key=lambda answer: answer.key)
    for query_id, group in groupby(ordered, key=lambda answer: answer.key[0]):
        together = list(group)
        if keys is not None and not any(answer.key in keys for answer in together):
            continue
        random.Random(f"0|{query_id}").shuffle(together)
        for start in range(0, len(together), len(LETTERS)):
            part = together[start : start + len(LETTERS)]
            forward = _choice_request(template, part, by)
            pairs.append((part, forward, _choice_request(template, part[::-1], by)))
    # Every list is at least as long as what an answer may name.
    sizes = {r.request_hash: len(part) for part, *both in pairs for r in both}
    longest = max(sizes.values(), default=0)
    named = partial(winners_in, numbered=template.numbered)
    results = ask(
        [request for _, *both in pairs for request in both],
        read=partial(winners_in, n=longest, numbered=template.numbered),
    )
    rows, costs = [], Costs()
    for part, *requests in pairs:
        both = [result for r in requests if (result := results.answers.get(r.request_hash))]
        if len(both) < 2:
            continue
        spent = [costs.of(attempt) for attempt in both]
        cost = None if None in spent else sum(filter(None, spent), 0.0)
        named = partial(winners_in, n=len(part), numbered=template.numbered)
        for place, answer in enumerate(part):
            said = _chosen(place, len(part), both, named)
            rows.append(verdict(answer.key, scorer, version, cost_usd=cost, **said))
            cost = 0.0  # The first answer of a list bears what asking about the list cost.
    return _filed(rows, results, keys)


def _chosen(
    place: int,
    n: int,
    both: Sequence[Attempt],
    named: Callable[[str], frozenset[int] | None],
) -> dict[str, Any]:
    """Columns of the verdict on the answer at a place of a list, from both orders' replies."""
    for attempt in both:
        if attempt.status != "ok" or attempt.text is None:
            return {"outcome": "error", "reason": failure(attempt)}
    first, second = (attempt.text or "" for attempt in both)
    won, swapped = named(first), named(second)
    if won is None or swapped is None:
        return {"outcome": "error", "reason": "the judge named an answer that was not listed"}
    reason = f"in order: {first}\n\nreversed: {second}"
    if (place in won) != (n - 1 - place in swapped):
        return {"outcome": "abstain", "conflict": True, "reason": reason}
    return {"outcome": _outcome(place in won), "reason": reason}


def _request(
    template: Template, answer: AnswerToJudge, by: Judge, *, listed: str | None = None
) -> Request:
    values = {
        "question": answer.question,
        "answer": answer.text,
        "answers": answer.text,
        "references": "\n".join(answer.references),
        "lowest": str(by.lowest),
    }
    fenced = {} if listed is None else dict.fromkeys(("answer", "answers", "numbered"), listed)
    prompt = template.fill(values, fenced=fenced)
    settings = settings_of(by, temperature=0.0, seed=0)
    return request_for(settings, f"judge:{by.name}", answer.key[0], prompt)


def _choice_request(template: Template, part: list[AnswerToJudge], by: Judge) -> Request:
    heads = [f'<answer letter="{letter}">' for letter in LETTERS[: len(part)]]
    if template.numbered:
        heads = [f"LLM {place} response:\n<answer>" for place in range(1, len(part) + 1)]
    listed = "\n\n".join(
        f"{head}\n{template.fence(answer.text)}\n</answer>"
        for head, answer in zip(heads, part, strict=True)
    )
    return _request(template, part[0], by, listed=listed)


def _is_reference(answer: AnswerToJudge, by: Judge) -> bool:
    return answer.key[1] == by.reference_model


def _outcome(right: bool) -> str:
    return "correct" if right else "incorrect"


# Verifiers: small models, such as xVerify, trained to compare an answer with its reference.
#
# One user message holds question, output and reference; the model says `Correct` or
# `Incorrect`. Everything else, an outage included, is an `error` verdict after bounded
# retries. Temperature 0.1 and top_p 0.7 are the ones that xVerify was published with.
#
# The xVerify models (0.5B-I, 3B-Ia, 8B-I, 9B-C) and the prompt that they were trained on are
# licensed CC BY-NC-ND 4.0, so neither comes with Routeyard: `template` names a file with that
# prompt. The prompt `verification` is ours; an xVerify model that is asked with it is warned about
# (`Verifier.foreign_prompt`).

_XVERIFY_RE = patterns("verdict_replies")


#: What a prompt shows.
PLACES = frozenset({"question", "answer", "references"})
#: Characters of a reply that are read; a verdict is one word.
_XVERIFY_MOST = 20_000


def verdict_in(text: str) -> str | None:
    """`correct` or `incorrect` of a verifier's reply; null where it says neither, or both.

    Read are the word alone or at the beginning ("Correct. The output matches."), and where it
    is announced or bracketed ("Judgement: [Incorrect]"). Thoughts do not count.
    """
    text = without_thoughts(text).strip()[-_XVERIFY_MOST:]
    first = _XVERIFY_RE["first"].match(text)
    said = {match[1].lower() for match in _XVERIFY_RE["marked"].finditer(text)}
    if first:
        said.add(first[1].lower())
    return said.pop() if len(said) == 1 else None


def without_thoughts(text: str) -> str:
    """The text behind its `<think>` blocks; the whole where nothing is behind them."""
    rest = _XVERIFY_RE["thought"].sub("", text) if "</think" in text else text
    return rest if rest.strip() else text


def alternatives(references: Sequence[str]) -> str:
    """One reference as it is; several as a list that says that any of them is right."""
    if len(references) <= 1:
        return "".join(references)
    listed = "\n".join(f"{number}. {item}" for number, item in enumerate(references, start=1))
    return f"any one of these {len(references)} alternatives:\n{listed}"


def verify(
    queries: pa.Table,
    responses: pa.Table,
    verifier: Verifier,
    ledger: Ledger,
    *,
    only: Iterable[ResponseKey] | None = None,
    **how: Unpack[PromptRun],
) -> FiledVerdicts:
    """Verdicts of `xverify:<name>` on responses that hold a text; the version names the prompt.

    What the ledger already answers is not asked again, so a stopped run resumes.
    A response that was not asked about (budget, outage) gets no verdict.
    """
    template = load_template("verification", verifier.template, names=PLACES)
    scorer, version = f"xverify:{verifier.name}", template.version
    settings = settings_of(verifier, temperature=0.1, top_p=0.7)
    asked = []
    for answer in answers(queries, responses, only):
        prompt = template.fill(
            {
                "question": answer.question,
                "answer": without_thoughts(answer.text),
                "references": alternatives(answer.references),
            }
        )
        asked.append((answer, request_for(settings, scorer, answer.key[0], prompt)))
    results = ask_model(
        [request for _, request in asked],
        verifier,
        ledger,
        purpose="verify",
        read=verdict_in,
        transport=RequestsClient,
        **how,
    )
    rows = verdicts_from(
        asked, results, scorer, version, lambda answer, text: {"outcome": verdict_in(text)}
    )
    return FiledVerdicts(verdict_table(rows), results.figures)


def ask_verifiers_and_judges(
    queries: pa.Table,
    responses: pa.Table,
    verdicts: pa.Table,
    *,
    policy: Label,
    ledger: Ledger,
    **how: Unpack[PromptRun],
) -> FiledVerdicts:
    """The verdicts given, plus those of every verifier and judge that a policy calls on.

    Steps are asked in rounds: a judge behind a verifier is asked only about what
    the verifier left open. An error is asked again by the next run, not by this one.

    Returns:
        All verdicts; figures per scorer: prompts asked, failed, and why it stopped.

    Raises:
        BadInput: a policy names a verifier or judge that the recipe does not define.
    """
    verifiers = {f"xverify:{verifier.name}": verifier for verifier in policy.verifiers}
    judges = {f"judge:{item.name}": item for item in policy.judges}
    figures: dict[str, Any] = {}
    while True:
        wanted = open_steps(queries, responses, verdicts, policy=policy)
        due = {
            name: keys
            for name, keys in wanted.items()
            if name not in figures and name.startswith(("xverify:", "judge:"))
        }
        if not due:
            return FiledVerdicts(verdicts, figures)
        for name, keys in due.items():
            served = verifiers.get(name) or judges.get(name)
            if served is not None and served.budget_usd is not None:
                keys = least_certain_first(queries, responses, verdicts, keys)
            if name in verifiers:
                filed = verify(queries, responses, verifiers[name], ledger, only=keys, **how)
            elif name in judges:
                shown = responses
                if not judges[name].decides:  # it compares the models' first answers
                    shown = responses.filter(pc.equal(responses.column("sample"), 0))
                filed = judge(queries, shown, judges[name], ledger, only=keys, **how)
            else:
                raise BadInput(
                    f"the policy calls on {name!r}, which the recipe does not define",
                    where="label",
                    next_step=did_you_mean(name, [*verifiers, *judges])
                    if verifiers or judges
                    else "add it under label.verifiers or label.judges",
                )
            figures[name] = dict(filed.figures)
            verdicts = add(verdicts, filed.verdicts)


def least_certain_first(
    queries: pa.Table, responses: pa.Table, verdicts: pa.Table, keys: Sequence[ResponseKey]
) -> list[ResponseKey]:
    """The responses, those first whose rule scorer is right least surely: a budget may end.

    Certainty is the distance of `p_correct` from one half; a verdict without a measured rate
    counts as least certain.
    """
    columns = ["query_id", "scorer", "choices"]
    asked = {row["query_id"]: row for row in queries.select(columns).to_pylist()}
    rule = {}
    for row in newest(verdicts).to_pylist():
        if row["scorer"] == asked[row["query_id"]]["scorer"]:
            rule[row["query_id"], row["model_id"], row["sample"]] = row["outcome"]
    unsure = dict.fromkeys(keys, 0.0)
    for answer in answers(queries, responses, only=keys):
        of = asked[answer.key[0]]
        kind = kind_of(of["scorer"], answer.references, of["choices"], answer.text)
        chance = p_correct(of["scorer"], rule.get(answer.key, ""), kind)
        unsure[answer.key] = 0.0 if chance is None else abs(chance - 0.5)
    return sorted(keys, key=lambda key: (unsure[key], key))
