"""Texts → comparable words: SQuAD normalisation with care for operators and CJK."""

from __future__ import annotations

import re
import unicodedata

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
# Han, kana and hangul syllables: written without spaces, so each sign is a token.
_CJK = re.compile(
    "([\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f])"
)
#: Signs that change what a formula says: √2+√3 is not √2·√3. Category "Sm"
#: (mathematical symbol) is kept as well.
_OPERATORS = frozenset("+-*/^=<>%·√°|&@#")
_DIGIT_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DECIMAL_POINT = re.compile(r"(?<=\d)\.(?=\d)")
_MINUS = str.maketrans("−–—‐‑⋅∙•×÷", "-----···*/")
_SPACED_OPERATOR = re.compile(r"\s*([+*/^=<>·√])\s*")


def normalise(text: str) -> str:
    """SQuAD's normal form: lower case, no punctuation, no articles, single spaces.

    Differences to the SQuAD script (Rajpurkar et al. 2016), each of which made
    different answers equal or equal answers different: operators and decimal
    points stay (a hyphen between letters is still a space), thousands separators
    go, and Unicode is compatibility-folded.
    """
    text = unicodedata.normalize("NFKC", text.translate(_MINUS)).casefold().translate(_MINUS)
    text = _DIGIT_SEPARATOR.sub("", text)
    text = _DECIMAL_POINT.sub("\0", text)
    if not text.isascii() or not text.replace(" ", "").isalnum():
        text = "".join(_kept(text, index) for index in range(len(text)))
    text = _SPACED_OPERATOR.sub(r"\1", text).replace("\0", ".")
    return " ".join(_ARTICLE.sub(" ", text).split()) or " ".join(text.split())


def _kept(text: str, index: int) -> str:
    sign = text[index]
    if sign.isalnum() or sign.isspace() or sign == "\0":
        return sign
    if sign == "-":
        before, after = text[index - 1 : index], text[index + 1 : index + 2]
        # well-known → well known; 3-2, -5, x-1 keep their minus.
        joins = before.isalpha() and after.isalpha() and (len(_word(text, index - 1, -1)) > 1)
        dash = (not after or after.isspace()) and not before.isdigit()
        return " " if joins or dash else sign
    if sign in _OPERATORS or unicodedata.category(sign) == "Sm":
        return sign
    category = unicodedata.category(sign)
    if category[0] == "M":
        return sign
    if sign in "'’`\"":
        return ""
    return " " if category[0] == "P" else sign


def _word(text: str, index: int, step: int) -> str:
    word = ""
    while 0 <= index < len(text) and text[index].isalpha() and len(word) < 2:
        word += text[index]
        index += step
    return word


def tokens(text: str) -> list[str]:
    """Normalised words; a CJK sign is a word of its own."""
    return _CJK.sub(r" \1 ", normalise(text)).split()
