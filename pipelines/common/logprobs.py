"""Token log-probabilities of a response, as `responses.logprobs` keeps them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from routeyard.pipelines.common.errors import BadInput


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token: its log-probability and the alternatives returned with it.

    `top` holds (token, log-probability) in the server's order, most likely
    first as a rule; it need not hold the token itself.
    """

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


def tokens(logprobs: str | None, *, where: str | None = None) -> tuple[Token, ...] | None:
    """Tokens of one response; None when the server returned no log-probabilities.

    Raises:
        BadInput: the column holds something other than the list its contract describes.
    """
    if logprobs is None:
        return None
    try:
        return tuple(
            Token(
                str(entry["token"]),
                _number(entry["logprob"]),
                tuple((str(token), _number(value)) for token, value in entry.get("top") or ()),
            )
            for entry in json.loads(logprobs)
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInput(
            f"logprobs are not a JSON list of {{token, logprob, top}}: {error!r}",
            where=where,
            next_step="compare with the column's description in schemas/contracts.yaml",
        ) from error


def sequence_logprob(
    found: tuple[Token, ...] | None, *, length_normalised: bool = False
) -> float | None:
    """log p(s | x) in nat: the sum over tokens, or their mean.

    None when there are no tokens or one of them has no finite log-probability:
    a probability of zero for a text that was sampled is a gap in the record.
    """
    if not found:
        return None
    total = math.fsum(token.logprob for token in found)
    if not math.isfinite(total):
        return None
    return total / len(found) if length_normalised else total


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a log-probability is {value!r}")
    return float(value)
