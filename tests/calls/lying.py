"""Servers that bill for their work and say less, and what a budget makes of them."""

from __future__ import annotations

import base64
import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routeyard.pipelines.collect.budget import least_tokens
from routeyard.pipelines.collect.runner import RunResult
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Budget, RateLimits, Retry
from routeyard.schemas.recipe.pool import Model
from tests.calls.asking import ask, pool_of
from tests.calls.loopback import Do, Loopback, answer, completion

LIMIT, PRICE, MAX_TOKENS, CONCURRENCY = 0.6, 100.0, 200, 4
_WORDS = [
    "".join(random.Random(n).choices("etaoinshrdlucmfw", k=random.Random(n).randrange(2, 9)))
    for n in range(400)
]
ONE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
NONE = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}


def english(n: int, words: int = 25) -> str:
    return " ".join(random.Random(n).choices(_WORDS, k=words))


def chinese(n: int) -> str:
    return "".join(chr(random.Random(n * 97 + k).randrange(0x4E00, 0x6000)) for k in range(60))


def dense(n: int) -> str:
    return base64.b64encode(random.Random(n).randbytes(120)).decode()


def tokens(text: str) -> int:
    """What a byte-pair tokenizer makes of it, about: four letters, or a Chinese sign and a half."""
    wide = sum(ord(sign) > 0x2E80 for sign in text)
    return math.ceil((len(text) - wide) / 4 + wide / 1.5)


@dataclass
class Lie:
    """One kind of server.

    Attributes:
        says: (texts it bills, tokens it reports of the prompt, of the answer) → its reply.
        text: Its n-th answer; what the reply shows of it is up to `says`.
        hidden: Whether the bill holds what no text shows.
    """

    says: Callable[[list[str], int, int], Do]
    text: Callable[[int], str] = english
    settings: dict[str, Any] = field(default_factory=dict)
    samples: int = 1
    hidden: bool = False


def usage(prompt: int, answered: int) -> dict[str, int]:
    counts = {"prompt_tokens": prompt, "completion_tokens": answered}
    return counts | {"total_tokens": prompt + answered}


def told(reported: dict[str, Any]) -> Callable[[list[str], int, int], Do]:
    return lambda texts, prompt, answered: answer(completion(texts[0], usage=reported))


def error(status: int, reported: dict[str, int] | None = None, **inner: Any) -> Any:
    def says(texts: list[str], prompt: int, answered: int) -> Do:
        body = {"error": {"message": "no", **inner}, "usage": reported or usage(prompt, answered)}
        return Do(status=status, body=json.dumps(body).encode())

    return says


def choices(texts: list[str], prompt: int, answered: int) -> Do:
    made = [
        {"index": n, "message": {"content": text}, "finish_reason": "stop"}
        for n, text in enumerate(texts)
    ]
    return answer(completion(choices=made, usage=ONE))


def streamed(texts: list[str], prompt: int, answered: int) -> Do:
    events = [
        {"choices": [{"index": 0, "delta": {"content": texts[0]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": ONE},
    ]
    lines = [*(f"data: {json.dumps(event)}\n\n" for event in events), "data: [DONE]\n\n"]
    return Do(body="".join(lines).encode(), headers={"content-type": "text/event-stream"})


LIES: dict[str, Lie] = {
    "one token each": Lie(told(ONE)),
    "one token an answer": Lie(
        lambda texts, prompt, _: answer(completion(texts[0], usage=usage(prompt, 1)))
    ),
    "one token a prompt": Lie(
        lambda texts, _, answered: answer(completion(texts[0], usage=usage(1, answered)))
    ),
    "costs nothing": Lie(told(ONE | {"cost": 0})),
    "empty text of no tokens": Lie(lambda *_: answer(completion("", usage=NONE)), hidden=True),
    "no text, no tokens": Lie(lambda *_: answer(completion(None, usage=NONE)), hidden=True),
    "200 with an error and usage": Lie(error(200, code=400), hidden=True),
    "400 with usage": Lie(error(400), hidden=True),
    "500 with little usage": Lie(error(500, ONE), hidden=True),
    "Chinese": Lie(told(ONE), chinese),
    "one long word": Lie(told(ONE), dense),
    "four answers, one token": Lie(choices, samples=4),
    "streamed": Lie(streamed, settings={"stream": True}),
    "cut by length": Lie(
        lambda texts, *_: answer(completion(texts[0], usage=ONE, finish="length"))
    ),
    "a half, more or less": Lie(
        lambda texts, prompt, answered: answer(
            completion(texts[0], usage=usage(prompt // 2, answered // 2))
        )
    ),
}


@dataclass
class Bill:
    """A server that tells a lie, and what it bills by its own count."""

    lie: Lie
    usd: float = 0.0
    calls: int = 0
    #: The largest bill of a call by the least its text must have cost.
    ratio: float = 1.0
    #: USD of it that neither the texts nor the reports show: what nobody could have counted.
    unseen: float = 0.0

    def __call__(self, body: dict[str, Any], seen: int) -> Do:
        self.calls += 1
        prompt = body["messages"][0]["content"]
        texts = [self.lie.text(self.calls * 8 + n) for n in range(body.get("n", 1))]
        asked, said = tokens(prompt) + 8, sum(map(tokens, texts))
        self.usd += (asked + said) * PRICE / 1e6
        shown = least_tokens(prompt) + (0 if self.lie.hidden else sum(map(least_tokens, texts)))
        if not self.lie.hidden:
            self.ratio = max(self.ratio, (asked + said) / shown)
        done = self.lie.says(texts, asked, said)
        done.delay = 0.01
        seen = 0
        for key, billed, least in (
            ("prompt_tokens", asked, least_tokens(prompt)),
            ("completion_tokens", said, 0 if self.lie.hidden else sum(map(least_tokens, texts))),
        ):
            told = re.search(rb'"%s": (\d+)' % key.encode(), done.body)
            seen += min(billed, max(least, int(told[1]) if told else 0))
        if not self.lie.hidden:
            self.unseen += (asked + said - seen) * PRICE / 1e6
        return done


def spend(lie: Lie, folder: Path) -> tuple[Bill, RunResult]:
    """The server's own bill after collecting under a budget of `LIMIT` USD, and how that ended."""
    bill = Bill(lie)
    known = {"price_in": PRICE, "price_out": PRICE, "price_date": "2026-01-01"}
    with Loopback(bill) as server, SqliteLedger(folder / "l.sqlite") as ledger:
        ended = ask(
            ledger,
            pool_of(server, Model(model_id="m", **known), supports_n=lie.samples > 1),
            [english(10_000 + n, 40) for n in range(300)],
            benchmark="b",
            max_tokens=MAX_TOKENS,
            samples=lie.samples,
            budget=Budget(usd=LIMIT),
            retry=Retry(attempts=3, first_wait_s=0, pause_after=10_000),
            limits=RateLimits(concurrency=CONCURRENCY),
            **lie.settings,
        ).ended
    return bill, ended


def worst_call() -> float:
    """USD of the dearest call, about: every byte of a prompt a token, and the longest answers."""
    return (600 + 64 + 4 * MAX_TOKENS) * PRICE / 1e6
