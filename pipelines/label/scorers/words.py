"""Values of answers and whether two are equal: numbers, quantities, mathematical forms, words."""

from __future__ import annotations

import re
import unicodedata

from routeyard.pipelines.label.scorers.patterns import patterns

# Texts → comparable words: SQuAD normalisation with care for operators and CJK.

_RE = patterns("words")


# Han, kana and hangul syllables: written without spaces, so each sign is a token.
_CJK = re.compile(
    "([\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f])"
)
#: Signs that change what a formula says: √2+√3 is not √2·√3. Category "Sm"
#: (mathematical symbol) is kept as well.
_OPERATORS = frozenset("+-*/^=<>%·√°|&@#")
#: Signs that spaces around are dropped of.
_SPACED = frozenset("+*/^=<>·√")
#: Signs that are a space where no hyphen may depend on it.
_BLANKS = dict.fromkeys(map(ord, "!():;?[\\]_{}"), " ")
_ARTICLES = frozenset(("a", "an", "the"))
_MINUS = str.maketrans("−–—‐‑⋅∙•×÷", "-----···*/")
_QUOTE = "'’‘`\"“”"


def normalise(text: str, *, articles: bool = False) -> str:
    """SQuAD's normal form: lower case, no punctuation, no articles, single spaces.

    Differences to the SQuAD script (Rajpurkar et al. 2016), each of which made
    different answers equal or equal answers different: operators and decimal
    points stay (a hyphen between words is a space), thousands separators go,
    and Unicode is compatibility-folded.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_MINUS)).translate(_MINUS)
    text = text.casefold()
    if "-" not in text:
        text = text.translate(_BLANKS)
    if _RE["sign"].search(text):
        text = " ".join(_RE["sign"].sub(_kept, text).split())
        if not _SPACED.isdisjoint(text):
            text = _RE["spaced_operator"].sub(r"\1", text)
        return text if articles else " ".join(_RE["article"].sub(" ", text).split()) or text
    words = text.split()
    told = words if articles else [word for word in words if word not in _ARTICLES]
    return " ".join(told or words)


def _kept(found: re.Match[str]) -> str:
    sign, text, index = found[0], found.string, found.start()
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    if sign == "." and after.isdigit():  # 3.5 and .5 keep their point
        return sign
    if sign == "," and before.isdigit() and _RE["thousands"].match(text, index):
        return ""
    if sign == "-":
        word = before.isalpha() and after.isalpha() and text[max(0, index - 2) : index].isalpha()
        dash = (not after or after.isspace()) and not before.strip().isdigit()
        # well-known → well known; 3-2, -5 and x-1 keep their minus.
        return " " if (word and index > 1) or dash else sign
    if sign in _OPERATORS or unicodedata.category(sign)[0] in "MS":
        return "" if sign == "`" else sign
    return "" if sign in _QUOTE else " "


def tokens(text: str, *, articles: bool = False) -> list[str]:
    """Normalised words; each CJK sign is a word."""
    return _CJK.sub(r" \1 ", normalise(text, articles=articles)).split()


def all_tokens(text: str) -> list[str]:
    """`tokens` with the articles kept, for scorers that compare whole texts."""
    return tokens(text, articles=True)
