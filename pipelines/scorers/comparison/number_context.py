"""What stands next to a number and makes it part of something else.

`6*sqrt(2)` is not 6, `4i` not 4, `2 + sqrt(3)` not 2, `x > 5` not 5: a reader of
numbers must refuse an answer whose number is only a piece.
"""

from __future__ import annotations

import re

_FUNCTION = r"\\?(?:sqrt|ln|log|sin|cos|tan|exp|pi)(?![a-z])|[√π]"
# Letters that are no unit or magnitude when glued to a number: "4i", "2x", "3n".
_VARIABLE = r"[abeijnqruvwxyz](?![A-Za-z'’-])"
_RIGHT = re.compile(
    rf"\s{{0,2}}[*·]?\s{{0,2}}(?:{_FUNCTION})"
    rf"|[*·]?{_VARIABLE}"
    r"|\s{0,2}\^\s{0,2}[({]?\s{0,2}[a-z]"
    # … and what is added to it: "-1 + i", "2 + sqrt(3)", "5 - 2x"
    rf"|\s{{0,2}}[+-]\s{{0,2}}\d{{0,9}}\s?[*·]?\s?(?:{_FUNCTION}|{_VARIABLE}(?=\s{{0,3}}(?:$|[.,;)}}\]$])))"
    # … whatever follows: "160 - y red roses"
    r"|\s{0,2}[+-]\s{0,2}[nqruvwxyz](?![\w'’-])",
)
_I = re.compile(r"\s?i\s*[.$)}\]]*\s*$")
_LEFT = re.compile(
    rf"(?:{_FUNCTION})(?:_\{{?\d{{1,4}}\}}?)?\s{{0,2}}[({{]?\s{{0,2}}$"
    r"|(?<![A-Za-z])(?:\\?pi|π|i)\s{0,2}[+*/-]\s{0,2}$"
    r"|(?<![A-Za-z])[a-z]\s{0,2}(?:\+|\^|\*)\s{0,2}$"
    r"|[A-Za-z)]\^-?\d{1,3}\s{0,2}[+*/-]\s{0,2}$"
    r"|(?:≤|≥|≠|!=|\\(?:le|ge|lt|gt|ne|leq|geq|neq))\s{0,2}$"
    r"|(?<![<>])[A-Za-z0-9)]\s{0,2}[<>]=?\s{0,2}$"
)
_TAG = re.compile(r"<[/A-Za-z]{1,9}>\s{0,2}$")


def part_of_more(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]`, a number, is a factor, a summand or a bound of something.

    `text` is already `plain`.
    """
    left = text[max(0, start - 16) : start]
    if _RIGHT.match(text, end, end + 32) or (len(text) - end <= 6 and _I.match(text, end)):
        return True
    return bool(_LEFT.search(left)) and not _TAG.search(left)
