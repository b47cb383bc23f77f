"""One spelling for what mathematical answers write in many: LaTeX, Unicode or plain."""

# ruff: noqa: E501 - the tables and patterns read better in one line
from __future__ import annotations

import re

_SINGLE = re.compile(r"(?<!\\)(?:\\\\)*\\[a-zA-Z]")
_NOISE = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|limits|big[lr]?|Big[lr]?|bigg[lr]?)(?![A-Za-z])"
    r"|\\[hv]?phantom\s?\{[^{}]{0,40}\}"
    r"|(?<![\d\\])\\[!,;:>](?!\d{3})|\\quad|\\qquad|\$|\\\(|\\\)|\\\[|\\\]|~"
)
_ROOT = re.compile(
    r"√\s?(\d+|[a-zA-Z])|√\s?\(([^()]{1,80})\)|(?<![A-Za-z\\])sqrt\s?\(([^()]{1,80})\)"
)
_SAME = [
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r",\s?\\[!,]\s?(?=\d)|\{,\}|(?<=\d)\s?(?<!\\)\\[,!;: ]\s?(?=\d{3}(?!\d))"), ","),
    (re.compile(r"(?<!\\)\\[!,;:> ]"), " "),
    (re.compile(r"(?<=[\d}])\s?\\(?:mathrm|rm|mathbf|operatorname)\s{0,2}\{([a-zA-Z]{2,20})\}"), r" \1"),
    (re.compile(r"\\(?:text|mathrm|mbox)\s?\{\s*(and|or)\s*\}"), r" \1 "),
    (re.compile(r"(?<=[\d)}\]])\s?(and|or)\s?(?=[-\w(\\{])"), r" \1 "),
    (re.compile(r"!=|≠|\\(?:neq|ne|not\s?=)(?![A-Za-z])"), r"\\neq "),
    (re.compile(r"\\(?:math(?:rm|bf|bb|it|cal)|boldsymbol|bf|rm)\s{0,2}\{([^{}]{1,60})\}"), r"\1"),
    (re.compile(r"\\(?:leq|leqslant)(?![A-Za-z])|≤|<="), r"\\le "),
    (re.compile(r"\\(?:geq|geqslant)(?![A-Za-z])|≥|>="), r"\\ge "),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\(?:cdotp|bullet)(?![A-Za-z])|·|⋅|∙"), r"\\cdot "),
    (re.compile(r"×"), r"\\times "),
    (re.compile(r"÷"), r"\\div "),
    (re.compile(r"π"), r"\\pi "),
    (re.compile(r"∞"), r"\\infty "),
    (re.compile(r"∪"), r"\\cup "),
    (re.compile(r"∈"), r"\\in "),
    (re.compile(r"±"), r"\\pm "),
    (re.compile(r"∅"), r"\\emptyset "),
    (re.compile(r"\\varnothing"), r"\\emptyset "),
    (re.compile(r"[−–]"), "-"),
    (_ROOT, None),
    (re.compile(r"\\sqrt\s?(\d|[a-zA-Z])(?!\w)"), r"\\sqrt{\1}"),
    (re.compile(r"\\frac\s?(\d)\s?(\d)(?!\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\frac\s?\{([^{}]{1,60})\}\s?(\d)(?!\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\frac\s?(\d)\s?\{"), r"\\frac{\1}{"),
    (re.compile(r"\\frac\s?(\d)\s?(\\(?:sqrt|pi|binom)(?:\{[^{}]{1,40}\})?)"), r"\\frac{\1}{\2}"),
    (re.compile(r"(?:\^\s?\\circ|\^\s?\{\s?\\circ\s?\}|°|\\degree)"), ""),
    (re.compile(r"\\frac\s([a-zA-Z])\s?(\w)(?!\w)"), r"\\frac{\1}{\2}"),
    # "4.3 C0": an index of a plain text, and no factor of nought.
    (re.compile(r"(?<![A-Za-z\\_{\d])(?<!\\sqrt )([A-Za-z])(\d)(?![\w.])"), r"\1_{\2}"),
    # "27^0" alone is an angle: nobody answers with a power that is one.
    (re.compile(r"\A(-?(?!10(?!\d))\d{2,3}(?:\.\d+)?)\s?\^\s?(?:0|\{0\})\Z"), r"\1"),
    (re.compile(r"(?<![A-Za-z\\])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"(?<![A-Za-z\\])(sin|cos|tan|log|ln|exp)(?=[\s(^_])"), r"\\\1"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\^\s?-\s?(\d{1,3})(?![\d.A-Za-z(])"), r"^{-\1}"),
    (re.compile(r"(?<=[\w)}\]])\s?\*\s?(?=[\w(\\{])"), r"\\cdot "),
    (re.compile(r"\^\(([^()]{1,40})\)"), r"^{\1}"),
]  # fmt: skip
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SUPERS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")


def tidy(text: str) -> str:
    """One spelling for what has many: fractions, operators, brackets, spaces."""
    text = text.strip().strip('*_`"“”').strip()
    if text.startswith("'") and text.endswith("'"):
        text = text.strip("'")
    if "\\\\" in text and not _SINGLE.search(text):
        text = text.replace("\\\\", "\\")  # every backslash doubled: LaTeX out of a JSON string
    text = _NOISE.sub(" ", text) if ("\\" in text or "$" in text or "~" in text) else text
    text = _SUPERS.sub(lambda m: "^{" + m[0].translate(_SUPER) + "}", text)
    for pattern, replacement in _SAME:
        if replacement is None:
            text = pattern.sub(lambda m: "\\sqrt{" + (m[1] or m[2] or m[3]) + "}", text)
        else:
            text = pattern.sub(replacement, text)
    text = " ".join(text.split()).rstrip(".,;: ")
    return text
