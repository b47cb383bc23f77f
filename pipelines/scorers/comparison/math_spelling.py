"""One spelling for what mathematical answers write in many: LaTeX, Unicode or plain."""

from __future__ import annotations

from routeyard.pipelines.scorers.patterns import patterns, rewrites

_RE = patterns("math_spelling")

_SAME = rewrites("math_rewrites")
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def tidy(text: str) -> str:
    """One spelling for what has many: fractions, operators, brackets, spaces."""
    text = text.strip().strip('*_`"“”').strip()
    if text.startswith("'") and text.endswith("'"):
        text = text.strip("'")
    if "\\\\" in text and not _RE["single"].search(text):
        text = text.replace("\\\\", "\\")  # every backslash doubled: LaTeX out of a JSON string
    text = _RE["noise"].sub(" ", text) if ("\\" in text or "$" in text or "~" in text) else text
    text = _RE["supers"].sub(lambda m: "^{" + m[0].translate(_SUPER) + "}", text)
    for pattern, replacement in _SAME:
        text = pattern.sub(replacement, text)
    text = " ".join(text.split()).rstrip(".,;: ")
    return text
