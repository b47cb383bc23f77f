"""A hard limit in USD over all runs, processes and hosts, which counts what is in flight.

Before a call is sent its worst case is charged in the ledger: every byte of the
prompt a token (no byte-level tokenizer makes more) plus what a chat template adds,
and `max_tokens` for each answer. When the answer comes the charge becomes its
cost. A call whose outcome is not known (time-out, reset, 5xx, a kill) may have
been billed: its charge stays. What a provider says a call cost is believed only
where it is not below what the price table makes of its tokens, and tokens only where they are not
fewer than the text must have, nor cached where no earlier prompt began so.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from routeyard.pipelines.collect.ledger import BILLED, Attempt, Charge, ChargeBounds, Ledger
from routeyard.pipelines.collect.reply import TOOL_CALLS, CallFault, ReplyChoice, Usage
from routeyard.pipelines.collect.request import Request, canonical, image_tokens
from routeyard.schemas.recipe.collect import Budget

# What a call costs: the provider's own figure where it can be believed, else tokens × price.
#
# A figure below what the price table makes of the tokens is not believed, in the tables as in the
# budget; a figure of 0 from a model that has a price does not count. Otherwise the cost is unknown.

#: Providers round what they bill: so much below the table is not below it.
_ROUNDED = 0.01


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; null is unknown, never free."""

    input: float | None = None
    output: float | None = None
    date: str | None = None
    source: str | None = None
    #: Of prompt tokens that were read from, or written to, the provider's cache.
    cache_read: float | None = None
    cache_write: float | None = None
    #: Prompt tokens up to which the prices hold, and all prices of a call with a longer prompt.
    up_to: int | None = None
    beyond: Price | None = None

    @classmethod
    def of_model(cls, model: Any) -> Price:
        """The price in a model of the pool."""
        return cls.of_row(model.price_columns)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Price:
        """The price in a row of `models`; what it does not state is unknown."""
        rates, dear = (
            {rate: row.get(name + end) for rate, name in _RATES.items()} for end in ("", "_beyond")
        )
        return cls(
            **rates, date=row.get("price_date"), source=row.get("price_source"),
            up_to=row.get("price_up_to"),
            beyond=None if set(dear.values()) == {None} else cls(**dear),
        )  # fmt: skip

    @property
    def columns(self) -> dict[str, Any]:
        """The price as columns of `models`."""
        plain = {name: getattr(self, rate) for rate, name in _RATES.items()}
        dear = {f"{name}_beyond": getattr(self.beyond, rate, None) for rate, name in _RATES.items()}
        about = {"price_date": self.date, "price_source": self.source, "price_up_to": self.up_to}
        return plain | about | dear

    @property
    def stated(self) -> dict[str, Any]:
        """The price as keys of a model of the pool."""
        keys = {name: usd for name, usd in self.columns.items() if not name.endswith("_beyond")}
        if self.beyond is not None:
            dear = {name: getattr(self.beyond, rate) for rate, name in _RATES.items()}
            known = {name: usd for name, usd in dear.items() if usd is not None}
            keys["price_up_to"] = {"tokens": self.up_to, **known}
        return keys

    @property
    def known(self) -> bool:
        return self.input is not None and self.output is not None

    @property
    def free(self) -> bool:
        """Whether it is stated as 0, as of a model on one's own machine."""
        return self.input == 0 and self.output == 0

    @property
    def paid(self) -> bool:
        """Whether a price above 0 is stated: a cost of 0 is then no bill."""
        return bool(self.input or self.output)

    def of(
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        cache_read: int | None = None,
        cache_write: int | None = None,
    ) -> float | None:
        """USD for so many tokens; null when a count, or a price of so many, is unknown.

        Args:
            cache_read, cache_write: Of the prompt; where they are unknown, nothing is taken to be
                cached. Cached tokens have a separate price, or no known one, unless
                prompts are free.
        """
        if prompt_tokens is None or completion_tokens is None:
            return None
        if self.input is None or self.output is None:
            return None
        if self.up_to is not None and prompt_tokens > self.up_to:
            counts = prompt_tokens, completion_tokens, cache_read, cache_write
            return self.at(prompt_tokens).of(*counts)
        fresh, cached = prompt_tokens - (cache_read or 0) - (cache_write or 0), 0.0
        for tokens, price in ((cache_read, self.cache_read), (cache_write, self.cache_write)):
            if tokens:
                price = 0.0 if price is None and self.input == 0 else price
                if price is None:
                    return None
                cached += tokens * price
        if fresh < 0:
            return None
        return (fresh * self.input + cached + completion_tokens * self.output) / 1e6

    def at(self, prompt_tokens: float) -> Price:
        """The prices of calls with prompts of this length, for sums over several of them."""
        beyond = self.up_to is not None and prompt_tokens > self.up_to
        return (self.beyond or Price()) if beyond else replace(self, up_to=None, beyond=None)

    @property
    def dearest(self) -> Price:
        """The price of calls whose prompts are written to the cache, where that costs more."""
        price = self
        if self.beyond is not None:  # never below: a worst case counts more tokens than there are
            dear = self.beyond.dearest
            both = {
                rate: None if None in (a, b) else max(a, b)
                for rate in ("input", "output")
                for a, b in [(getattr(self, rate), getattr(dear, rate))]
            }
            price = replace(self, beyond=replace(dear, **both))
        if self.input is None or self.cache_write is None:
            return price
        return replace(price, input=max(self.input, self.cache_write))


#: Prices of tokens → their columns.
_RATES = {
    "input": "price_in", "output": "price_out",
    "cache_read": "price_cache_read", "cache_write": "price_cache_write",
}  # fmt: skip


def cost_of(usage: Usage, price: Price) -> tuple[float | None, str | None]:
    """(USD, source) of one call; source is `provider`, `price_table` or null."""
    by_table = price.of(
        usage.prompt_tokens, usage.completion_tokens,
        usage.cache_read_tokens, usage.cache_write_tokens,
    )  # fmt: skip
    cost_usd = usage.cost_usd
    if cost_usd is not None and by_table is not None and cost_usd >= by_table * (1 - _ROUNDED):
        return cost_usd, "provider"
    if by_table is not None:
        return by_table, "price_table"
    if cost_usd is None or (cost_usd == 0 and price.paid):
        return None, None
    return cost_usd, "provider"


# What a budget counts for a call: what the provider reports, or a lower bound where that is more.
#
# The bound needs nothing but the text that was asked and answered: a token holds at most two words
# or runs of signs, and at most 16 bytes, on average over a text (`least_tokens`). Tokenizers with
# byte-pair merges make two to three times as many tokens of running text. What a text does not
# show,
# such as reasoning that is hidden, has no bound: there the provider's word is all there is. Cached
# tokens cost the cached price only as far as an earlier prompt began in the same way.
#
# `cost_usd` in the tables stays the provider's figure; the bound is the budget's alone.

#: Fewest tokens per word or sign, and bytes that a token holds then.
TOKENS_PER_WORD, BYTES_PER_TOKEN = 0.5, 16
_WORD = re.compile(r"\w+|[^\w\s]+")
#: One sign many times over, and spaces: a single token can hold very many of those.
_REPEATED = re.compile(r"\s+|(\S)\1{7,}")


def words(text: str) -> int:
    """Words and runs of signs: no common tokenizer joins two of them."""
    return len(_WORD.findall(text))


def least_tokens(text: str) -> int:
    """Fewest tokens that a text can have, by its words and by its bytes."""
    dense = _REPEATED.sub(lambda match: (match[1] or "") * 8, text)
    size = len(dense.encode("utf-8", "surrogatepass"))
    return math.ceil(max(TOKENS_PER_WORD * words(text), size / BYTES_PER_TOKEN))


@dataclass(frozen=True, slots=True)
class LeastUsage:
    """Fewest tokens of a call.

    Attributes:
        silent: An answer came that holds no text: it has tokens all the same.
        cached: Most of the prompt that can have been read from a cache, as a share.
    """

    prompt: int = 0
    completion: int = 0
    silent: bool = False
    cached: float = 0.0


def least_usage(
    messages: Sequence[Mapping[str, Any]],
    choices: Iterable[ReplyChoice] = (),
    cached: float = 0.0,
) -> LeastUsage:
    """Lower bounds from the messages of a request and the choices of its reply."""
    texts = [_said(choice) for choice in choices if choice.status != "refused" or choice.text]
    return LeastUsage(
        prompt=sum(least_tokens(_text(message.get("content"))) for message in messages),
        completion=sum(max(1, least_tokens(text)) for text in texts),
        silent=any(not text.strip() for text in texts),
        cached=cached,
    )


def counted(usage: Usage, price: Price, least: LeastUsage | None = None) -> float | None:
    """USD that a budget counts for an answer; null when it cannot be known.

    Where a server reports no tokens for an answer without text, its usage is not believed at all.
    """
    least = least or LeastUsage()
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is None or completion is None or (least.silent and completion == 0):
        by_table = None
    else:
        read = min(usage.cache_read_tokens or 0, int(least.cached * prompt))
        if price.cache_write is not None:  # writing is never cheaper than not caching
            price = replace(price, cache_write=max(price.cache_write, price.input or 0.0))
        by_table = price.of(
            max(prompt, least.prompt), max(completion, least.completion),
            read if price.cache_read is not None else 0, usage.cache_write_tokens,
        )  # fmt: skip
    if by_table is None:
        # Without a price nothing can be held against the provider's own figure.
        return None if price.known or price.paid else usage.cost_usd
    return max(by_table, usage.cost_usd or 0.0)


def counted_fault(
    fault: CallFault, price: Price, least: LeastUsage, charged: float = math.inf
) -> float | None:
    """USD that a budget counts for an attempt without an answer; null is all that was charged.

    An error whose body holds usage was billed, whatever its status. No text says how much it was
    at least, so that all of the charge stays, or what the server says where that is more.
    """
    if fault.usage is None:
        return None if fault.maybe_billed else 0.0
    usd = counted(fault.usage, price, least)
    if fault.kind in BILLED and fault.usage.completion_tokens:
        return usd
    return usd if usd is not None and usd > charged else None


#: Digests that are kept of one model's prompts, and bytes between two of them: of the first bytes
#: of a message, and of what follows.
_KEPT, _FINE, _COARSE, _FIRST = 2**16, 64, 1024, 2**14


class PromptsSeen:
    """How the prompts began that one model has answered: only that can have been in a cache.

    The newest are kept, as caches do.
    """

    def __init__(self) -> None:
        self._digests: dict[bytes, None] = {}

    def add(self, request: Request) -> float:
        """Keep a prompt; the share of it with which an earlier one began."""
        shared = whole = 0
        for digest, whole in _beginnings(request):
            shared = whole if digest in self._digests else shared
            self._digests.pop(digest, None)
            self._digests[digest] = None
        while len(self._digests) > _KEPT:
            del self._digests[next(iter(self._digests))]
        return shared / whole if whole else 0.0


def _beginnings(request: Request) -> Iterator[tuple[bytes, int]]:
    """Digests of a prompt's beginnings, the whole last, with their bytes and tokens of images."""
    digest, size = hashlib.blake2b(digest_size=8), 0
    for part in (request.settings.parameters.get("tools", ""), *request.messages):
        text, start = canonical(part), 0
        while piece := text[start : start + (_FINE if start < _FIRST else _COARSE)]:
            digest.update(piece)
            start += len(piece)
            size += len(piece)
            if start == len(text) and isinstance(part, Mapping):  # a message, not the tools
                size += image_tokens(part)
            yield digest.digest(), size


@dataclass
class UsageWatch:
    """The metering audit of one model while it is asked: is what it reports possible?

    Reported tokens are held against their lower bounds over all answers so far: where they are
    fewer than `_SHARE` of those, no tokenizer can have counted them.

    Args:
        after: Answers before anything is judged.
    """

    after: int = 20
    _answers: int = 0
    _stated: list[int] = field(default_factory=lambda: [0, 0])
    _least: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, usage: Usage, least: LeastUsage) -> str | None:
        """Count one answer; why the model's usage is impossible, or null."""
        counts = usage.prompt_tokens, usage.completion_tokens
        if counts[0] is None or counts[1] is None:
            return None
        self._answers += 1
        for at, (count, fewest) in enumerate(
            ((counts[0], least.prompt), (counts[1], least.completion))
        ):
            self._stated[at] += count
            self._least[at] += fewest
        if self._answers < self.after:
            return None
        for what, count, fewest in zip(
            ("prompts", "answers"), self._stated, self._least, strict=True
        ):
            if count < _SHARE * fewest:
                return (
                    f"its usage is impossible: {self._answers} {what} of at least {fewest} tokens "
                    f"are reported as {count}; correct the server, or take the budget away if its "
                    "tokens are so few"
                )
        return None


#: Tolerance for servers that strip or rewrite what they count.
_SHARE = 0.8


def _said(choice: ReplyChoice) -> str:
    """What the model wrote of a choice: of called tools, names and arguments."""
    if choice.finish_reason != TOOL_CALLS or not choice.text:
        return choice.text or ""
    try:
        said = json.loads(choice.text)
        calls = [f"{call['name']} {call['arguments']}" for call in said["tool_calls"]]
        return " ".join([said.get("content") or "", *calls])
    except (ValueError, KeyError, TypeError):
        return choice.text


def _text(content: object) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


# What a run knows of itself while it runs: one snapshot, for whoever shows it.

_FIGURES = (
    "wanted", "before", "ok", "truncated", "refused", "failed", "permanent", "unanswered"
)  # fmt: skip


@dataclass
class Tally:
    """Counts of one model; `done` grows when an answer is durable."""

    wanted: int
    #: Answers that were there before this run.
    before: int = 0
    asked: int = 0
    in_flight: int = 0
    ok: int = 0
    truncated: int = 0
    refused: int = 0
    #: Pairs that ended as an error in this run.
    failed: int = 0
    #: Those of them that cannot succeed: nothing is missing any more.
    permanent: int = 0
    #: Those of them that were billed as often as the recipe allows, without an answer.
    unanswered: int = 0
    #: Pairs without an answer by what came back: where the model, the key or the address was
    #: refused, and where it may have been the question.
    set_up: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    #: Attempts that failed, by class.
    errors: Counter[str] = field(default_factory=Counter)
    spent_usd: float = 0.0
    #: Answers whose cost is not known.
    unpriced: int = 0
    #: Answered by another process meanwhile.
    elsewhere: int = 0
    #: Answers that another process asks for, where nothing but these is left to do.
    held: int = 0
    #: Why nothing more is asked of this model in this run.
    paused: str | None = None
    #: True where `paused` is the budget's doing.
    out_of_budget: bool = False
    #: What the budget is set aside for while calls wait for it; of one model of a run.
    waits: str | None = None
    #: In a snapshot: whose counts these are, and seconds since the run began.
    model_id: str = ""
    elapsed_s: float = 0.0

    def count(self, rows: Sequence[Attempt]) -> None:
        """Count attempts that are durable now."""
        for row in rows:
            if row.usable:
                setattr(self, row.status, getattr(self, row.status) + 1)
                self.unpriced += row.cost_usd is None
            self.spent_usd += row.cost_usd or 0.0

    def met(self, fault: CallFault) -> None:
        """Note a fault that asking again does not mend."""
        if fault.permanent:
            (self.set_up if fault.concerns else self.rejected)[fault.words] += 1

    def gave_up(self, rows: Sequence[Attempt], *, unanswered: bool = False) -> None:
        """Count pairs that end as an error in this run."""
        self.failed += len(rows)
        self.permanent += sum(row.permanent for row in rows)
        self.unanswered += len(rows) if unanswered else 0

    def figures(self) -> dict[str, Any]:
        """JSON-ready counts."""
        figures = {name: getattr(self, name) for name in _FIGURES}
        figures |= {"attempts": self.asked, "errors": dict(sorted(self.errors.items()))}
        return figures | {
            "spent_usd": self.spent_usd,
            "cost_unknown": self.unpriced,
            "paused": self.paused,
        }

    @property
    def left(self) -> int:
        """Answers that asking again may bring."""
        final = self.permanent if self.done else 0
        return max(0, self.wanted - self.done - final - self.unanswered)

    @property
    def refusal(self) -> str | None:
        """What came back where answers are missing by a fault of set-up.

        A model that refuses every question and has answered none refuses how it is asked.
        """
        met = self.set_up or (Counter() if self.done else self.rejected)
        return max(met, key=lambda words: met[words]) if met and self.left else None

    @property
    def done(self) -> int:
        return self.before + self.answered + self.elsewhere

    @property
    def answered(self) -> int:
        return self.ok + self.truncated + self.refused

    @property
    def missing(self) -> int:
        return max(0, self.wanted - self.done - self.failed)

    @property
    def rate(self) -> float:
        """Answers and failures per second of this run."""
        return (self.answered + self.failed) / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def projected_usd(self) -> float | None:
        """Null while no answer of this run had a known cost."""
        priced = self.answered - self.unpriced
        return self.spent_usd + self.spent_usd / priced * self.missing if priced > 0 else None

    @property
    def eta_s(self) -> float | None:
        """Seconds to go; null when nothing has come yet."""
        if self.paused or (self.missing and not self.rate):
            return None
        return self.missing / self.rate if self.missing else 0.0


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The whole run at one moment."""

    elapsed_s: float
    models: tuple[Tally, ...]
    finished: bool

    @property
    def wanted(self) -> int:
        return sum(model.wanted for model in self.models)

    @property
    def done(self) -> int:
        return sum(model.done for model in self.models)

    @property
    def spent_usd(self) -> float:
        return sum(model.spent_usd for model in self.models)


OnProgress = Callable[[RunProgress], None]


def snapshot(tallies: Mapping[str, Tally], elapsed_s: float, *, finished: bool) -> RunProgress:
    """Freeze the tallies (model_id → tally)."""
    models = (
        replace(tally, errors=Counter(tally.errors), model_id=name, elapsed_s=elapsed_s)
        for name, tally in tallies.items()
    )
    return RunProgress(elapsed_s, tuple(models), finished)


#: Tokens a chat template adds around one message, generously.
TEMPLATE_TOKENS = 64
RUN_NOTE = "run:"
#: Seconds between looks at what other processes hold.
_LOOK_S = 0.5


class BudgetLedger:
    """The budget of one benchmark as one run sees it.

    Args:
        account: Whose money it is: the benchmark's name.
        raise_by: The recipe key that a person raises to go on.
    """

    def __init__(
        self,
        budget: Budget,
        ledger: Ledger,
        account: str = "",
        *,
        raise_by: str = "collect.budget",
    ) -> None:
        self._budget = budget
        self._ledger = ledger
        self._account = account
        self._raise_by = raise_by
        self._before: dict[str, float] | None = None
        self._settled: dict[str, float | None] = {}
        self._writing: asyncio.TimerHandle | None = None
        self._changed = asyncio.Condition()
        self._asking = asyncio.Lock()
        self._waits = False
        self._seen: dict[tuple[str, str], PromptsSeen] = defaultdict(PromptsSeen)

    @property
    def limited(self) -> bool:
        return self._budget.is_set

    async def begin(self, run: str) -> None:
        """Note whose run this is; every attempt of it counts against the account."""
        note = json.dumps({"account": self._account, "charged": self.limited})
        await asyncio.to_thread(self._ledger.remember, {RUN_NOTE + run: note})

    async def reserve(self, model_id: str, usd: float, tally: Tally | None = None) -> str | None:
        """Charge one call, waiting for calls in flight where they can still make room.

        Args:
            tally: Is told what it waits for, once in a run.

        Returns:
            The charge's id, for `settle`; null when it does not fit any more.
        """
        while True:
            (charge,), (answer,) = await self._ask(model_id, [usd])
            if answer == "yes":
                return charge
            if answer == "full":
                return None
            if tally is not None and not self._waits:
                self._waits = True
                calls, held = await asyncio.to_thread(self._ledger.set_aside, self._account)
                tally.waits = (
                    f"{held:.4f} USD of the budget are set aside for {calls:,} calls in flight, at "
                    "their worst case; further calls wait until those are answered"
                )
            async with self._changed:
                try:
                    async with asyncio.timeout(_LOOK_S):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    async def reserve_many(self, model_id: str, usd: Sequence[float]) -> list[str]:
        """Charge calls in order as far as they fit at once; ids of those that do."""
        charges, answers = await self._ask(model_id, usd)
        fit = next((n for n, answer in enumerate(answers) if answer != "yes"), len(answers))
        for charge in (c for c, a in zip(charges[fit:], answers[fit:], strict=True) if a == "yes"):
            await self.settle(charge, 0.0)
        return charges[:fit]

    async def settle(self, charge: str, spent: float | None) -> None:
        """Replace a charge by what the call cost; null keeps all of it."""
        if not charge:
            return
        self._settled[charge] = spent
        if self._writing is None:
            # Others wait for what is still charged, and this run may ask nothing more.
            self._writing = asyncio.get_running_loop().call_later(_LOOK_S, self._write)
        async with self._changed:
            self._changed.notify_all()

    def cached(self, request: Request) -> float:
        """Most of a prompt that a cache can have held, as a share; from now on all of it."""
        model = request.settings.provider, request.settings.endpoint_model
        return self._seen[model].add(request)

    def _write(self) -> Future[Any] | None:
        """Write down what is settled."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if not self._settled:
            return None
        settled, self._settled = self._settled, {}
        return self._ledger.charge(self._account, ChargeBounds(None, {}), [], settled)

    async def close(self) -> None:
        """Write down what is settled, and wait for it."""
        if (writing := self._write()) is not None:
            await asyncio.shield(asyncio.wrap_future(writing))

    def full(self, model_id: str) -> str:
        """Why nothing more is asked of a model, and what to do."""
        own = self._budget.models.get(model_id)
        parts = [
            (own, f"models.{model_id}"),
            (self._budget.per_model_usd if own is None else None, "per_model_usd"),
            (self._budget.usd, "usd"),
        ]
        limits = [(usd, key) for usd, key in parts if usd is not None]
        said = " and ".join(f"{usd:g} USD ('{key}')" for usd, key in limits)
        raised = self._raise_by
        if raised == "collect.budget" and limits:
            raised += f".{limits[0][1]}" if len(limits) == 1 else ""
        return (
            f"the budget is reached: {said} for all runs of this benchmark; raise '{raised}' to go "
            "on"
        )

    async def explain(self, tallies: Mapping[str, Tally]) -> None:
        """Add to why models were stopped, once, what the budget went to."""
        out = [tally for tally in tallies.values() if tally.out_of_budget and tally.paused]
        first = out[0].paused if out else None
        why = await asyncio.to_thread(self._gone_to) if out else ""
        for tally in out:
            # One limit stops several models in the same words, which are printed once.
            tally.paused = f"{first} ({why})" if tally.paused == first else tally.paused

    def spent(self) -> dict[str, float]:
        """USD per model that no further call can have: costs, and what is set aside."""
        spent = self._known_costs(charged=False)
        for model_id, usd in self._ledger.charged(self._account).items():
            spent[model_id] = spent.get(model_id, 0.0) + usd
        return spent

    def _gone_to(self) -> str:
        """Sentence on what an account's money went to."""
        known = [sum(self._known_costs(charged=item).values()) for item in (True, False)]
        calls, held = self._ledger.set_aside(self._account)
        charged = sum(self._ledger.charged(self._account).values())
        unknown = charged - held - known[0]
        said = [f"{sum(known):.4f} USD are the known cost of calls"]
        if calls:
            said.append(
                f"{held:.4f} USD are set aside for {calls:,} calls in flight or of killed runs, at "
                "their worst case"
            )
        if unknown > 5e-5:
            said.append(
                f"{unknown:.4f} USD are set aside for calls whose cost is unknown, such as "
                "time-outs, and for tokens that cannot be as few, or as cached, as reported"
            )
        if self._budget.usd is not None and (left := self._budget.usd - charged - known[1]) > 5e-5:
            said.append(f"{left:.4f} USD are left, and the next call may cost more")
        return "; ".join(said)

    async def _ask(self, model_id: str, usd: Sequence[float]) -> tuple[list[str], list[str]]:
        if not self._bounded(model_id):
            usd = [item if math.isfinite(item) else 0.0 for item in usd]
        charges = [Charge(uuid.uuid4().hex, model_id, item) for item in usd]
        if not self.limited:
            return [charge.id for charge in charges], ["yes"] * len(charges)
        async with self._asking:
            if self._before is None:
                self._before = await asyncio.to_thread(self._known_costs, charged=False)
            settled, self._settled = self._settled, {}
            asked = self._ledger.charge(self._account, self._bounds(model_id), charges, settled)
            try:
                # Cancelled with us, it would take along what is settled.
                answers = await asyncio.shield(asyncio.wrap_future(asked))
            except asyncio.CancelledError:
                unused = dict.fromkeys((charge.id for charge in charges), 0.0)
                self._ledger.charge(self._account, ChargeBounds(None, {}), [], unused)
                raise
        return [charge.id for charge in charges], list(answers)

    def _bounded(self, model_id: str) -> bool:
        limit = self._budget.models.get(model_id, self._budget.per_model_usd)
        return limit is not None or self._budget.usd is not None

    def _bounds(self, model_id: str) -> ChargeBounds:
        assert self._before is not None
        limit = self._budget.models.get(model_id, self._budget.per_model_usd)
        if limit is not None:
            limit -= self._before.get(model_id, 0.0)
        total = self._budget.usd
        if total is not None:
            total -= sum(self._before.values())
        return ChargeBounds(total, {model_id: limit})

    def _known_costs(self, *, charged: bool) -> dict[str, float]:
        """USD per model of runs that charged their calls, or of those that did not: they had no
        budget."""
        notes = {run: json.loads(text) for run, text in self._ledger.recall(RUN_NOTE).items()}
        spent: dict[str, float] = defaultdict(float)
        for run, model_id, usd in self._ledger.spending():
            note = notes.get(run, {})
            if (note.get("account"), note.get("charged")) == (self._account, charged):
                spent[model_id] += usd
        return dict(spent)


def worst_case(request: Request, price: Price, max_tokens: int | None) -> float:
    """Most USD the request can cost; infinite where that cannot be known."""
    if not max_tokens:
        return float("inf")
    prompt = sum(
        _bytes(message) + TEMPLATE_TOKENS + image_tokens(message) for message in request.messages
    )
    # Declared tools are read with the prompt.
    prompt += _bytes(request.settings.parameters.get("tools", ""))
    cost = price.dearest.of(prompt, max_tokens * len(request.samples))
    return float("inf") if cost is None else cost


def _bytes(message: object) -> int:
    return len(str(message).encode("utf-8", "surrogatepass"))
