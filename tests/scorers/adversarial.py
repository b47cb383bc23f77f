"""Long repetitive outputs that make careless patterns take quadratic time."""

from __future__ import annotations

_SIGNS = ["a", " ", "\n", "(", "[", "{", "\\", "*", "1", "-", "$", '"', "=", ".", ",", "√2·", "- ("]
_NUMBERS = ["1,", "1 ", "1/", "1+", "1 + 1 = ", "2^", "{,}", "1{,}", "(1", "1)", "= ", "1 000 "]
_MARKS = ["The answer is ", "the answer to ", "answer is (", "Answer:", "answer: A, ", "#### "]
_LATEX = ["\\boxed{", "\\frac{", "\\text{", "The final answer is: $\\boxed{5}$ ", "\\sqrt{"]
_JSON = ['"answer": "', '"answer": ', "{"]
_WORDS = ["correct ", "option ", "choice that ", "A ", "one ", "twenty ", "and ", "wait ", "if "]
_PHRASES = ["the correct option is ", "The answer is (A). ", "The answer is 5. ", "not one "]
_NEXT = ["Question", "\nQ", "\nQuestion 1", "<|", "答案", "选", "answer of the option ", "x = "]
PIECES = _SIGNS + _NUMBERS + _MARKS + _LATEX + _JSON + _WORDS + _PHRASES + _NEXT


def outputs(size: int) -> list[tuple[str, str]]:
    """(piece, output of about `size` characters made of it), with and without an ending."""
    made = []
    for piece in PIECES:
        body = piece * (size // len(piece) + 1)
        made += [(piece, body), (piece + "!", body + "!"), (piece + "18", "x\n" + body + "18")]
    return made
