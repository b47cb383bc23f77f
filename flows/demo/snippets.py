"""Code questions: what a snippet prints. The gold is computed here, by hand-written twins
of the snippets; no text is ever executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from flows.demo.question import Draft

_WORDS = (
    "planet", "garden", "silver", "window", "bridge", "orange", "velvet", "rocket", "lantern",
    "puzzle", "harbour", "meadow", "thunder", "copper", "whistle", "candle", "marble", "forest",
    "pepper", "island", "sparrow", "violin", "blanket", "compass", "drizzle", "feather",
)  # fmt: skip

Snippet = Callable[[Random], tuple[str, str]]


def _loop_sum(r: Random) -> tuple[str, str]:
    n, k = r.randint(5, 12), r.randint(2, 5)
    code = f"total = 0\nfor i in range(1, {n}):\n    total += i * {k}\nprint(total)"
    return code, str(sum(i * k for i in range(1, n)))


def _comprehension(r: Random) -> tuple[str, str]:
    n, k = r.randint(6, 11), r.randint(2, 3)
    code = f"print([x * x for x in range({n}) if x % {k} == 0])"
    return code, str([x * x for x in range(n) if x % k == 0])


def _slice(r: Random) -> tuple[str, str]:
    word, a = r.choice(_WORDS), r.randint(1, 3)
    return f'name = "{word}"\nprint(name[{a}:-1].upper())', word[a:-1].upper()


def _counter(r: Random) -> tuple[str, str]:
    text = "".join(r.choice("abc") for _ in range(9)) + "b"
    code = f'from collections import Counter\nprint(Counter("{text}")["b"])'
    return code, str(Counter(text)["b"])


def _while(r: Random) -> tuple[str, str]:
    n = r.randint(20, 200)
    steps, m = 0, n
    while m > 1:
        m, steps = m // 2, steps + 1
    code = f"n, steps = {n}, 0\nwhile n > 1:\n    n //= 2\n    steps += 1\nprint(steps)"
    return code, str(steps)


def _dict(r: Random) -> tuple[str, str]:
    a, b, c = (r.randint(1, 20) for _ in range(3))
    code = f'stock = {{"nail": {a}, "bolt": {b}}}\nstock["bolt"] += {c}\nprint(sum(stock.values()))'
    return code, str(a + b + c)


def _recursion(r: Random) -> tuple[str, str]:
    n = r.randint(5, 10)
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    code = f"def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n\nprint(f({n}))"
    return code, str(a)


def _division(r: Random) -> tuple[str, str]:
    a, b = r.randint(-60, 99), r.randint(3, 9)
    return f"print({a} // {b}, {a} % {b})", f"{a // b} {a % b}"


def _sorted(r: Random) -> tuple[str, str]:
    words = r.sample(_WORDS, 3)
    code = f"animals = {words!r}\nprint(sorted(animals, key=len)[-1])"
    return code, sorted(words, key=len)[-1]


def _default_argument(r: Random) -> tuple[str, str]:
    a, b = r.randint(1, 9), r.randint(10, 20)
    code = (
        f"def add(x, box=[]):\n    box.append(x)\n    return len(box)\n\nadd({a})\nprint(add({b}))"
    )
    return code, "2"


def _enumerate(r: Random) -> tuple[str, str]:
    word = r.choice(_WORDS)
    code = (
        f'for i, letter in enumerate("{word}"):\n'
        '    if letter in "aeiou":\n        print(i)\n        break'
    )
    return code, str(next(i for i, letter in enumerate(word) if letter in "aeiou"))


def _sets(r: Random) -> tuple[str, str]:
    left, right = (sorted(r.sample(range(1, 10), 5)) for _ in range(2))
    code = f"a = set({left})\nb = set({right})\nprint(len(a & b))"
    return code, str(len(set(left) & set(right)))


def _ternary(r: Random) -> tuple[str, str]:
    x, y = r.randint(1, 50), r.randint(1, 50)
    code = f'x, y = {x}, {y}\nprint("high" if x > y else "equal" if x == y else "low")'
    return code, "high" if x > y else "equal" if x == y else "low"


def _zip(r: Random) -> tuple[str, str]:
    a, b = ([r.randint(1, 9) for _ in range(3)] for _ in range(2))
    code = f"print(sum(p * q for p, q in zip({a}, {b})))"
    return code, str(sum(p * q for p, q in zip(a, b, strict=True)))


def _javascript(r: Random) -> tuple[str, str]:
    items, floor = [r.randint(1, 30) for _ in range(5)], r.randint(8, 16)
    code = f"const kept = {items}.filter(v => v >= {floor});\nconsole.log(kept.length);"
    return code, str(sum(v >= floor for v in items))


def _shell(r: Random) -> tuple[str, str]:
    words = r.sample(_WORDS, r.randint(3, 6))
    return f'echo "{" ".join(words)}" | wc -w', str(len(words))


SNIPPETS: tuple[Snippet, ...] = (
    _loop_sum, _comprehension, _slice, _counter, _while, _dict, _recursion, _division, _sorted,
    _default_argument, _enumerate, _sets, _ternary, _zip, _javascript, _shell,
)  # fmt: skip

_LEADS = (
    "What does this program print?",
    "Read the code and give its output.",
    "Which output appears on the screen?",
)


def code_output(random: Random, rounds: int = 3) -> list[Draft]:
    """What a snippet prints, `rounds` of every kind."""
    drafts, seen = [], set()
    for lead in _LEADS[:rounds]:
        for snippet in SNIPPETS:
            code, output = snippet(random)
            while code in seen:
                code, output = snippet(random)
            seen.add(code)
            drafts.append(Draft(f"{lead}\n\n{code}", (output,)))
    return drafts


def string_operations(random: Random) -> list[Draft]:
    """Small operations on words, one word each."""
    words = random.sample(_WORDS, len(_WORDS))
    tasks: tuple[Callable[[str], tuple[str, str]], ...] = (
        lambda w: (f'Write the word "{w}" backwards.', w[::-1]),
        lambda w: (f'How many letters does the word "{w}" have?', str(len(w))),
        lambda w: (f'Take away every vowel (a, e, i, o, u) from "{w}". What is left?', _bare(w)),
        lambda w: (f'Put the letters of "{w}" in alphabetical order.', "".join(sorted(w))),
        lambda w: (f'Move the first letter of "{w}" to its end.', w[1:] + w[0]),
        lambda w: (f'Write the last three letters of "{w}" in capitals.', w[-3:].upper()),
    )
    drafts = []
    for index, word in enumerate(words):
        text, answer = tasks[index % len(tasks)](word)
        drafts.append(Draft(text, (answer,)))
    return drafts


def _bare(word: str) -> str:
    return "".join(letter for letter in word if letter not in "aeiou")
