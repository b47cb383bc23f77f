"""Whether an answer names a rival of the reference: another name, number or date."""

from __future__ import annotations

from routeyard.pipelines.scorers.open_answers.dates import is_month
from routeyard.pipelines.scorers.open_answers.texts import RE, Text
from routeyard.pipelines.scorers.open_answers.words import Word, is_number, words


def names_another(answer: Text, start: int, end: int, after: str, question: frozenset[str]) -> bool:
    """Whether a clause names another as what is asked for, or as what follows from the rest.

    "The capital is Ottawa", "Adams came before Jefferson, so Adams."
    """
    own = set(answer.forms[start:end])
    concluded = RE["concluded"].search(after)
    if concluded and own.isdisjoint(word.form for word in words(concluded["name"])):
        return True
    for said in RE["says"].finditer(answer.folded):
        names = {word.form for word in words(said["name"])}
        asked = not question.isdisjoint(word.form for word in words(said["what"]))
        if asked and names and names.isdisjoint(own | question):
            return True
    return False


def offered(
    answer: Text,
    start: int,
    end: int,
    both: tuple[frozenset[str], frozenset[str]],
    asked: frozenset[str],
) -> bool:
    """Whether the answer has both names that a question offers, the reference not as its subject.

    The subject of the last sentence that has one is the answer, where its comparative is the
    question's: to "Which is older, A or B?" "A is younger than B" leaves it open.
    """
    own = frozenset(answer.forms[start:end])
    rival = next((pair[1] - pair[0] for pair in (both, both[::-1]) if own <= pair[0]), frozenset())
    places = [place for place, form in enumerate(answer.forms) if form in own | rival]
    if not rival or not rival <= set(answer.forms):
        return False
    at = answer.words[places[-1]].start
    begin = max((found.end() for found in RE["ends"].finditer(answer.folded, 0, at)), default=0)
    subject = next(place for place in places if answer.words[place].start >= begin)
    compared = RE["compared"].findall(answer.folded, begin)
    return answer.forms[subject] not in own or not asked.issuperset(compared)


def candidate(answer: Text, start: int, clause: int, question: frozenset[str]) -> bool:
    """Whether the sentence has a word like the reference's before the clause that names it."""
    sentence = max(answer.folded.rfind(end, 0, clause) for end in (". ", "\n", "? ", "! "))
    said = [word for word in answer.words[:start] if sentence < word.start < clause]
    wanted = answer.words[start]
    return any(rivals(wanted, word) for word in said if word.form not in question)


def rivals(word: Word, other: Word) -> bool:
    """Whether both are numbers (or dates) or both names: candidates for one answer."""
    numbers = [is_number(form) or is_month(form) for form in (word.form, other.form)]
    return all(numbers) or (not any(numbers) and word.name and other.name)
