"""Long repetitive outputs that make careless patterns take quadratic time."""

from __future__ import annotations

PIECES = (
    "a", " ", "\n", "(", "[", "{", "\\", "*", "1", "-", "$", '"', "=", ".", ",", "A ", "1,", "1 ",
    "The answer is ", "the answer to ", "answer is (", "Answer:", "answer: A, ", "\\boxed{", "#### ",
    '"answer": "', '"answer": ', "\\frac{", "\\text{", "correct ", "the correct option is ",
    "option ", "choice that ", "The answer is (A). ", "The answer is 5. ", "1/", "1+", "1 + 1 = ",
    "2^", "Question", "\nQ", "\nQuestion 1", "<|", "[", "答案", "选", "answer of the option ",
    "one ", "twenty ", "and ", "not one ", "{,}", "1{,}", "(1", "1)", "= ", "√2·", "1 000 ", "wait ",
    "The answer is A or ", "The final answer is: $\\boxed{5}$ ", "- (", "USD ", "if ", "x = ",
)  # fmt: skip


def outputs(size: int) -> list[tuple[str, str]]:
    """(piece, output of about `size` characters made of it), with and without an ending."""
    made = []
    for piece in PIECES:
        body = piece * (size // len(piece) + 1)
        made += [(piece, body), (piece + "!", body + "!"), (piece + "18", "x\n" + body + "18")]
    return made
