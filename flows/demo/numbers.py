"""Arithmetic, algebra, units and sequences: each story is written once and filled with numbers.

Stories differ in words as well as numbers: two questions that differ in
numbers alone come close to the near-duplicate threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random

from flows.demo.question import Draft

Story = Callable[[Random], tuple[str, int | Fraction]]


def _decimal(value: int | Fraction) -> str:
    """`value` as a terminating decimal."""
    if Fraction(value).denominator == 1:
        return str(int(value))
    return f"{float(value):.6f}".rstrip("0")


def _pick(random: Random, low: int, high: int) -> int:
    return random.randint(low, high)


def _eggs(r: Random) -> tuple[str, int]:
    a, b, c = _pick(r, 3, 9), _pick(r, 12, 30), _pick(r, 5, 20)
    return (
        f"A farmer fills {a} trays with {b} eggs each and then drops {c} eggs. "
        "How many eggs are left?",
        a * b - c,
    )


def _train(r: Random) -> tuple[str, int]:
    speed, hours = _pick(r, 6, 19) * 10, _pick(r, 2, 7)
    return (
        f"A night train travels {speed} kilometres every hour without stopping. "
        f"How many kilometres does it cover in {hours} hours?",
        speed * hours,
    )


def _library(r: Random) -> tuple[str, int]:
    a, b, c = _pick(r, 200, 900), _pick(r, 20, 99), _pick(r, 10, 80)
    return (
        f"The village library owned {a} books, bought {b} more in spring and gave {c} away in "
        "autumn. How many books does it own now?",
        a + b - c,
    )


def _paint(r: Random) -> tuple[str, int]:
    a, b = _pick(r, 3, 12), _pick(r, 4, 15)
    return (
        f"One rectangular wall is {a} metres high and {b} metres wide. "
        "How many square metres must be painted?",
        a * b,
    )


def _tickets(r: Random) -> tuple[str, int]:
    a, b, p, q = _pick(r, 2, 6), _pick(r, 2, 6), _pick(r, 11, 19), _pick(r, 4, 9)
    return (
        f"Cinema tickets cost {p} euros for adults and {q} euros for children. What do {a} adults "
        f"and {b} children pay together, in euros?",
        a * p + b * q,
    )


def _bakery(r: Random) -> tuple[str, int]:
    rolls, bags = _pick(r, 6, 12), _pick(r, 11, 29)
    return (
        f"Omar packs {rolls * bags} bread rolls into paper bags that hold {rolls} rolls each. "
        "How many full bags does he get?",
        bags,
    )


def _ages(r: Random) -> tuple[str, int]:
    child, times, later = _pick(r, 6, 12), _pick(r, 3, 5), _pick(r, 2, 9)
    return (
        f"Lena is {child} years old and her grandmother is {times + 3} times as old. "
        f"How old will the grandmother be in {later} years?",
        child * (times + 3) + later,
    )


def _garden(r: Random) -> tuple[str, int]:
    a, b = _pick(r, 5, 20), _pick(r, 5, 20)
    return (
        f"A fence goes once around a rectangular garden of {a} by {b} metres. "
        "How long is the fence in metres?",
        2 * (a + b),
    )


def _discount(r: Random) -> tuple[str, int]:
    price, percent = _pick(r, 4, 30) * 20, r.choice([5, 10, 15, 20, 25, 30, 35, 40])
    return (
        f"A bicycle is marked at {price} dollars and sold with {percent} percent off. "
        "What does the buyer pay in dollars?",
        price - price * percent // 100,
    )


def _stickers(r: Random) -> tuple[str, int]:
    friends, each, rest = _pick(r, 3, 8), _pick(r, 6, 20), _pick(r, 1, 5)
    return (
        f"After sharing stickers fairly among {friends} friends, who got {each} each, Ines kept "
        f"the remaining {rest}. How many stickers were there at first?",
        friends * each + rest,
    )


def _recipe(r: Random) -> tuple[str, int]:
    grams, people = _pick(r, 4, 12) * 10, _pick(r, 5, 14)
    return (
        f"A soup needs {grams} grams of lentils per person. "
        f"How many grams does a cook weigh out for {people} guests?",
        grams * people,
    )


def _bus(r: Random) -> tuple[str, int]:
    start, off, on = _pick(r, 25, 50), _pick(r, 5, 20), _pick(r, 3, 18)
    return (
        f"There are {start} passengers on a bus. At the market square {off} get off and {on} get "
        "on. How many passengers does the bus carry afterwards?",
        start - off + on,
    )


def _savings(r: Random) -> tuple[str, int]:
    weekly, weeks, spent = _pick(r, 6, 25), _pick(r, 8, 20), _pick(r, 10, 40)
    return (
        f"Pavel puts {weekly} coins in a jar every week for {weeks} weeks, then spends {spent} "
        "coins on a kite. How many coins stay in the jar?",
        weekly * weeks - spent,
    )


def _average(r: Random) -> tuple[str, int]:
    mean, shift = _pick(r, 50, 90), _pick(r, 1, 12)
    return (
        f"Three exam results are {mean - shift}, {mean} and {mean + shift} points. "
        "What is their mean?",
        mean,
    )


def _tiles(r: Random) -> tuple[str, int]:
    side, broken = _pick(r, 9, 25), _pick(r, 3, 20)
    return (
        f"A square floor has {side} tiles along each edge, and {broken} tiles are cracked. "
        "How many tiles are whole?",
        side * side - broken,
    )


def _pump(r: Random) -> tuple[str, int]:
    litres, minutes = _pick(r, 12, 45), _pick(r, 15, 50)
    return (
        f"Water leaves a tank through a pump at {litres} litres per minute. "
        f"How many litres are gone after {minutes} minutes?",
        litres * minutes,
    )


def _linear(r: Random) -> tuple[str, int]:
    a, x, b = _pick(r, 2, 9), _pick(r, -9, 14), _pick(r, 1, 30)
    return f"Solve for x: {a}x + {b} = {a * x + b}.", x


def _both_sides(r: Random) -> tuple[str, int]:
    a, c, y = _pick(r, 6, 12), _pick(r, 2, 5), _pick(r, 2, 15)
    return f"Find y such that {a}y equals {c}y plus {(a - c) * y}.", y


def _evaluate(r: Random) -> tuple[str, int]:
    a, b, x = _pick(r, 2, 6), _pick(r, 3, 11), _pick(r, 2, 9)
    return f"Let f(t) = {a}t² - {b}t. What is f({x})?", a * x * x - b * x


def _power(r: Random) -> tuple[str, int]:
    base, exponent = _pick(r, 2, 5), _pick(r, 3, 6)
    return f"Compute {base} to the power of {exponent}.", base**exponent


def _remainder(r: Random) -> tuple[str, int]:
    a, b = _pick(r, 100, 999), _pick(r, 6, 17)
    return f"What remainder does {a} leave when it is divided by {b}?", a % b


def _root(r: Random) -> tuple[str, int]:
    a = _pick(r, 11, 40)
    return f"Which positive number has the square {a * a}?", a


def _two_numbers(r: Random) -> tuple[str, int]:
    a, b = _pick(r, 20, 60), _pick(r, 3, 18)
    return (
        f"The sum of two numbers is {a + b} and their difference is {a - b}. "
        "What is the larger number?",
        max(a, b),
    )


def _percent(r: Random) -> tuple[str, int]:
    part, whole = r.choice([5, 10, 20, 25, 40, 60, 75]), _pick(r, 3, 40) * 20
    return f"How much is {part}% of {whole}?", part * whole // 100


def _absolute(r: Random) -> tuple[str, int]:
    a, b = _pick(r, 3, 40), _pick(r, 41, 90)
    return f"Simplify |{a} - {b}| + {a}.", b - a + a


def _fraction(r: Random) -> tuple[str, int]:
    n, d, k = _pick(r, 2, 3), _pick(r, 4, 8), _pick(r, 5, 25)
    return f"Write down the whole number that is {n}/{d} of {d * k}.", n * k


def _product(r: Random) -> tuple[str, int]:
    a, b = _pick(r, 12, 49), _pick(r, 12, 49)
    return f"Expand and add up: ({a} + 1)({b} - 1) = ?", (a + 1) * (b - 1)


STORIES: tuple[Story, ...] = (
    _eggs, _train, _library, _paint, _tickets, _bakery, _ages, _garden, _discount, _stickers,
    _recipe, _bus, _savings, _average, _tiles, _pump,
)  # fmt: skip
EQUATIONS: tuple[Story, ...] = (
    _linear, _both_sides, _evaluate, _power, _remainder, _root, _two_numbers, _percent, _absolute,
    _fraction, _product,
)  # fmt: skip

# thing, from, to, factor
_UNITS: tuple[tuple[str, str, str, Fraction], ...] = (
    ("a rope", "metres", "centimetres", Fraction(100)),
    ("a country road", "kilometres", "metres", Fraction(1000)),
    ("a film", "hours", "minutes", Fraction(60)),
    ("a sack of flour", "kilograms", "grams", Fraction(1000)),
    ("a barrel of juice", "litres", "millilitres", Fraction(1000)),
    ("a holiday", "weeks", "days", Fraction(7)),
    ("a plank", "feet", "inches", Fraction(12)),
    ("a football pitch", "yards", "feet", Fraction(3)),
    ("a memory card", "gibibytes", "mebibytes", Fraction(1024)),
    ("a song", "minutes", "seconds", Fraction(60)),
    ("a beetle", "centimetres", "millimetres", Fraction(10)),
    ("a lorry load", "tonnes", "kilograms", Fraction(1000)),
    ("a field", "hectares", "square metres", Fraction(10000)),
    ("a lease", "years", "months", Fraction(12)),
    ("a turn", "full rotations", "degrees", Fraction(360)),
    ("a crate", "dozen bottles", "single bottles", Fraction(12)),
)


def arithmetic(random: Random, rounds: int = 3) -> list[Draft]:
    """Word problems, `rounds` of every story."""
    return [_draft(story(random)) for _ in range(rounds) for story in STORIES]


def algebra(random: Random, rounds: int = 4) -> list[Draft]:
    """Short equations and expressions, `rounds` of every kind."""
    return [_draft(kind(random)) for _ in range(rounds) for kind in EQUATIONS]


def units(random: Random) -> list[Draft]:
    """Conversions in both directions."""
    drafts = []
    for thing, big, small, factor in _UNITS:
        amount = Fraction(random.randint(5, 60), 2)
        drafts.append(
            _draft(
                (
                    f"The size of {thing} is {_decimal(amount)} {big}. "
                    f"How much is that in {small}?",
                    amount * factor,
                )
            )
        )
        whole = random.randint(2, 19)
        drafts.append(
            _draft(
                (f"Convert {_decimal(whole * factor)} {small} into {big}.", Fraction(whole)),
            )
        )
    return drafts


def sequences(random: Random, rounds: int = 5) -> list[Draft]:
    """Number sequences of seven kinds, each asking for another thing."""
    drafts = []
    for _ in range(rounds):
        start, step = random.randint(2, 30), random.randint(3, 14)
        terms = [start + step * i for i in range(6)]
        drafts.append(_next("Continue the list by one number: {}, ...", terms))
        first, ratio = random.randint(1, 6), random.randint(2, 4)
        terms = [first * ratio**i for i in range(5)]
        drafts.append(_next("Each term is a fixed multiple of the one before: {}. Next?", terms))
        terms = [random.randint(1, 8), random.randint(2, 9)]
        while len(terms) < 7:
            terms.append(terms[-1] + terms[-2])
        drafts.append(_next("Which number follows if two neighbours add up to the next? {}", terms))
        shift = random.randint(0, 12)
        terms = [i * i + shift for i in range(1, 7)]
        drafts.append(_next("These numbers grow like squares: {}. What comes after them?", terms))
        top, down = random.randint(80, 200), random.randint(3, 9)
        terms = [top - down * i for i in range(6)]
        drafts.append(_next("A countdown goes {}. Say the following value.", terms))
        n, d = random.randint(10, 40), random.randint(2, 9)
        drafts.append(
            _draft(
                (
                    f"An arithmetic progression begins with {d} and has the common difference "
                    f"{d + 2}. What is its term number {n}?",
                    d + (n - 1) * (d + 2),
                )
            )
        )
        last = random.randint(12, 60)
        drafts.append(
            _draft((f"Add all whole numbers from 1 to {last}.", last * (last + 1) // 2)),
        )
    return drafts


def _next(text: str, terms: list[int]) -> Draft:
    return _draft((text.format(", ".join(map(str, terms[:-1]))), terms[-1]))


def _draft(made: tuple[str, int | Fraction]) -> Draft:
    text, value = made
    return Draft(text, (_decimal(value),))
