"""Logic puzzles and calendar questions."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from random import Random

from flows.demo.question import Draft

_NAMES = (
    "Ada", "Bruno", "Chen", "Dilan", "Elif", "Farid", "Greta", "Hugo", "Iris", "Jonas", "Kira",
    "Luca", "Mina", "Noor", "Otto", "Priya", "Quinn", "Rosa", "Sven", "Tara",
)  # fmt: skip
_ORDERS = (
    ("taller than", "the tallest", "the shortest"),
    ("older than", "the oldest", "the youngest"),
    ("a faster runner than", "the fastest runner", "the slowest runner"),
    ("richer than", "the richest", "the poorest"),
    ("seated in front of", "at the very front", "at the very back"),
    ("living above", "on the top floor", "on the lowest floor"),
)
_KINDS = (
    ("glims", "torvs", "plinks"), ("dragons", "bakers", "early risers"),
    ("zorps", "blue things", "heavy things"), ("poets", "dreamers", "night owls"),
    ("wugs", "swimmers", "animals with tails"), ("robots", "machines", "owners of a battery"),
    ("cakes", "sweet things", "things from the oven"), ("sailors", "tea drinkers", "singers"),
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_UNKNOWN = "it cannot be known"


def logic(random: Random) -> list[Draft]:
    """Orders of four people, syllogisms and true-or-false islanders."""
    drafts = []
    for relation, top, bottom in _ORDERS:
        people = random.sample(_NAMES, 4)
        clues = [f"{a} is {relation} {b}." for a, b in pairwise(people)]
        random.shuffle(clues)
        wanted, right = random.choice(((top, people[0]), (bottom, people[-1])))
        others = tuple(name for name in people if name != right)
        drafts.append(Draft(f"{' '.join(clues)} Who is {wanted}?", (right,), others))
    for small, middle, large in _KINDS:
        drafts.append(
            Draft(
                f"All {small} are {middle}. All {middle} are {large}. What follows?",
                (f"all {small} are {large}",),
                (f"all {large} are {small}", f"no {small} are {large}", _UNKNOWN),
            )
        )
        drafts.append(
            Draft(
                f"Suppose that every one of the {large} sleeps at noon, but no {middle} sleep "
                f"then. Can some {middle} be {large}?",
                ("no",),
                ("yes", "only at noon", _UNKNOWN),
            )
        )
    for _ in range(5):
        left, right, third = random.sample(_NAMES, 3)
        drafts.append(
            Draft(
                f"Exactly one of {left}, {right} and {third} tells the truth. {left} says: "
                f'"{right} lies." {right} says: "{third} lies." {third} says: '
                f'"{left} and {right} both lie." Who tells the truth?',
                (right,),
                (left, third, _UNKNOWN),
            )
        )
    return drafts


def dates(random: Random) -> list[Draft]:
    """Weekdays, spans and leap years."""
    drafts = []
    for month in range(1, 13):
        day = date(random.randint(1995, 2030), month, random.randint(1, 28))
        drafts.append(
            Draft(f"On which weekday did or will {_long(day)} fall?", (_WEEKDAYS[day.weekday()],))
        )
    for index in range(8):
        start = date(random.randint(2001, 2028), index + 2, random.randint(1, 28))
        days = random.randint(15, 120)
        drafts.append(
            Draft(
                f"How many days lie between {_long(start)} and {_long(start + timedelta(days))}?",
                (str(days),),
            )
        )
    for index, weekday in enumerate(_WEEKDAYS):
        later = random.randint(8, 60)
        drafts.append(
            Draft(
                f"If today is a {weekday}, which day of the week is it {later} days later?",
                (_WEEKDAYS[(index + later) % 7],),
            )
        )
    for name in ("March", "June", "September", "November"):
        length = 31 if name == "March" else 30
        drafts.append(Draft(f"How many days does the month of {name} have?", (str(length),)))
    return drafts


def _long(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
